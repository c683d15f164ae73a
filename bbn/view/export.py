"""A network as one HTML file that answers questions by itself: the page, the compiled tree, and an interpreter of it.

The file holds the tables and two tapes of the junction tree (sums for posteriors, maxima for the most probable
explanation; see `bbn.kernels.contracts.tape`), which `page/tape.js` runs. It loads nothing: its content policy allows
the scripts and the style in it, by their hashes, and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from html import escape
from importlib.resources import files
from typing import Any

from bbn.core.atomic import replacing
from bbn.core.errors import BudgetError, ModelError
from bbn.inference.exact.plan import FlatModel, Question, flatten, price
from bbn.kernels.contracts.tape import COLLECTED, MARGINALS
from bbn.model.network import BayesianNetwork
from bbn.view.explore import page_model

SCRIPTS = ("d3-zoom.js", "tape.js", "picture.js", "explore.js")
MOST_CELLS = 2_000_000
"""The most cells of a tree: beyond, a click takes seconds in a browser."""
MOST_BYTES = 20_000_000
"""The most bytes of a file."""


def export_html(net: BayesianNetwork, path: str | os.PathLike[str]) -> None:
    """Write the page of a network as one file; see `BayesianNetwork.export_html`."""
    text = html_text(net).encode()
    with replacing(path) as file:
        file.write(text)


def html_text(net: BayesianNetwork) -> str:
    """The page of a network as one HTML text; BudgetError, with numbers, if it is too large for a browser."""
    if net.continuous:
        raise ModelError(
            f"{net.continuous[0]!r} is continuous; a page in one file holds discrete variables: "
            "discrete_part() is what it can show of this network"
        )
    flat = flatten(net)
    data = {
        "model": {**page_model(net), "hidden": ["explain", "information", "sensitivity"]},
        "names": flat.names,
        "cards": flat.cards.tolist(),
        "tables": flat.tables.tolist(),
        "table_ptr": [*flat.table_ptr.tolist()[: len(flat.heads)], flat.tables.size],
        "factor": [flat.heads.tolist().index(v) for v in range(len(flat.names))],
        "sums": _layout(flat, Question(masked=True, goal=MARGINALS)),
        "maxima": _layout(flat, Question(masked=True, goal=COLLECTED, maximise=True)),
    }
    page = files("bbn.view").joinpath("page")
    scripts = [page.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS]
    style = page.joinpath("explore.css").read_text(encoding="utf-8")
    body = page.joinpath("index.html").read_text(encoding="utf-8")
    body = body[body.index("<header>") : body.index("<script")]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    text = "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(net.name or 'network')} · bbn</title>",
            f'<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n<body>',
            body,
            f'<script type="application/json" id="network">{_inert(data)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )
    if len(text) > MOST_BYTES:
        raise BudgetError(
            f"the page would take {len(text) / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f} MB; "
            "explore() serves this network"
        )
    return text


def _layout(flat: FlatModel, question: Question) -> dict[str, Any]:
    """The arrays of a tape that the page reads."""
    cost = price(flat, question)
    if cost.layout is None or cost.cells > MOST_CELLS:
        raise BudgetError(
            f"the junction tree has {cost.cells:.3g} cells, more than the {MOST_CELLS:,} that a page answers with "
            "at once; explore() serves this network"
        )
    made = cost.layout._asdict()
    return {key: value if isinstance(value, int) else value.tolist() for key, value in made.items()}


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _inert(data: dict[str, Any]) -> str:
    """JSON in which no name can end the script that holds it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
