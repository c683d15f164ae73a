"""The parts of the page in `static/`: modules for a server to send, or joined to one script for a file.

A module begins with one-line imports and marks what others use with `export`. Joined in the order of `MODULES`, the
imports and the word `export` are left out, as all is one scope then; so no two modules define the same name.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

MODULES = (
    "dom.js",
    "state.js",
    "findings.js",
    "tape.js",
    "soft.js",
    "gaussians.js",
    "file_answers.js",
    "ask.js",
    "layout.js",
    "density.js",
    "cards.js",
    "arcs.js",
    "zoom.js",
    "minimap.js",
    "keyboard.js",
    "find.js",
    "focus.js",
    "cases.js",
    "node_panel.js",
    "table_panel.js",
    "evidence_panel.js",
    "answer_panels.js",
    "panel.js",
    "edit.js",
    "sheet.js",
    "memory.js",
    "printing.js",
    "main.js",
)
"""The modules of the page, each after those that it uses when it is loaded."""
LIBRARY = "d3-zoom.js"
"""Zoom and pan, by other people; a plain script that defines d3."""
STYLE = "explore.css"
KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


@cache
def text(name: str) -> str:
    """A part of the page."""
    return files("bbn.view.page").joinpath("static", name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All modules as one script without imports.

    >>> "import {" in script()
    False
    """
    joined = "\n".join(text(name) for name in MODULES)
    joined = re.sub(r"^import .*;\n", "", joined, flags=re.MULTILINE)
    return re.sub(r"^export (?=\w)", "", joined, flags=re.MULTILINE)


@cache
def body() -> str:
    """What stands between the page's head and its scripts."""
    page = text("index.html")
    return page[page.index("<header") : page.index("<script")]
