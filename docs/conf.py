"""Sphinx configuration: MyST pages, the API from docstrings, a clean theme; warnings are errors (`make docs`)."""

from pathlib import Path

import bbn

project = "bbn"
author = "the bbn developers"
release = bbn.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "bbn"

ROUTING = [
    f"set_{name}_request" for name in ("fit", "partial_fit", "predict", "predict_proba", "score", "transform")
]
"""Methods that scikit-learn adds to every estimator; its own pages explain them."""

API_HEAD = """# API reference

Every public name, `bbn.NAME`, in the order in which the ideas build on each other.
"""


def write_api(app: object) -> None:
    """Write api.md from the table of public names, so that none is forgotten."""
    parts = [API_HEAD]
    for module, names in bbn._HOMES.items():
        parts.append(f"## {module.removeprefix('bbn.')}\n")
        for name in names:
            value = getattr(bbn, name)
            if isinstance(value, type) and issubclass(value, Exception):
                directive = f".. autoclass:: bbn.{name}"
            elif isinstance(value, type):
                directive = (
                    f".. autoclass:: bbn.{name}\n   :members:\n   :exclude-members: {', '.join(ROUTING)}"
                )
            else:
                directive = f".. autofunction:: bbn.{name}"
            parts.append(f"```{{eval-rst}}\n{directive}\n```\n")
    page = Path(__file__).parent / "api.md"
    text = "\n".join(parts)
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def head_examples(
    app: object, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Put a heading over an example that follows a section, which would swallow it otherwise."""
    first = next((i for i, line in enumerate(lines) if line.startswith(">>>")), None)
    if first is not None and any(set(line) == {"-"} for line in lines[:first]) and "Examples" not in lines:
        lines[first:first] = ["Examples", "--------", ""]


def setup(app: object) -> None:
    """Hook the API page and its examples in."""
    app.connect("builder-inited", write_api)  # type: ignore[attr-defined]
    app.connect("autodoc-process-docstring", head_examples, priority=400)  # type: ignore[attr-defined]
