"""A network as one HTML file that answers questions by itself: the page, the compiled tree, and an interpreter of it.

The file holds the tables and two tapes of the junction tree (sums for posteriors, maxima for the most probable
explanation; see `bbn.kernels.contracts.tape`), which `static/tape.js` runs. Continuous variables come as their
conditionals: the page conditions them for each setting of the discrete variables that they depend on, so there may be
few such settings. It loads nothing: its content policy allows the scripts and the style in it, by their hashes, and no
connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from html import escape
from math import prod
from typing import Any

from bbn import kernels
from bbn.core.atomic import replacing
from bbn.core.errors import BudgetError, ModelError
from bbn.inference.exact.problem import Factors, Question, flatten
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts.tape import COLLECTED, MARGINALS
from bbn.model.cpt import CPT
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from bbn.view.page import assets
from bbn.view.page.model import page_model

MOST_CELLS = 2_000_000
"""The most cells of a tree: beyond, a click takes seconds in a browser."""
MOST_BYTES = 20_000_000
"""The most bytes of a file."""
MOST_NUMBERS = 40
"""The most continuous variables."""
MOST_SETTINGS = 1024
"""The most settings of the discrete variables that continuous ones depend on: each is one run of the tree."""
HIDDEN = ["explain", "information", "sensitivity"]
"""The panels whose answers take Python."""


def export_html(net: BayesianNetwork, path: str | os.PathLike[str]) -> None:
    """Write the page of a network as one file; see `BayesianNetwork.export_html`."""
    text = html_text(net).encode()
    with replacing(path) as file:
        file.write(text)


def html_text(net: Any) -> str:
    """The page of a network as one HTML text; BudgetError, with numbers, if it is too large for a browser."""
    if not isinstance(net, BayesianNetwork):
        raise ModelError("a page in one file holds a Bayesian network; explore() serves decision networks")
    text = page_text(page_model(net), {**_trees(_discrete(net)), "numbers": _numbers(net)})
    if len(text) > MOST_BYTES:
        raise BudgetError(
            f"the page would take {len(text) / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f} MB; "
            "explore() serves this network"
        )
    return text


def page_text(model: dict[str, Any], answers: dict[str, Any] | None = None) -> str:
    """The page as one text: with what it answers from, or without, to be answered through its frame's messages."""
    data = {"model": model}
    if answers is not None:
        hidden = [*HIDDEN, "mpe"] if answers["numbers"] else HIDDEN
        data = {"model": {**model, "hidden": hidden}, **answers}
    scripts = [assets.text(assets.LIBRARY), assets.script()]
    style = assets.text(assets.STYLE)
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(model['name'] or 'network')} · bbn</title>",
            f'<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n<body>',
            assets.body(),
            f'<script type="application/json" id="network">{_inert(data)}</script>',
            f"<script>{scripts[0]}</script>",
            f'<script type="module">{scripts[1]}</script>',
            "</body>\n</html>\n",
        ]
    )


def _discrete(net: BayesianNetwork) -> BayesianNetwork:
    """The discrete part; where there is none, a coin with one side, which the page does not show."""
    if len(net.continuous) == len(net):
        return BayesianNetwork([CPT.uniform(Variable("discrete", ["none"]))])
    return net.discrete_part()


def _trees(net: BayesianNetwork) -> dict[str, Any]:
    """The tables and the tapes of the discrete part."""
    flat = flatten(net)
    heads = flat.heads.tolist()
    return {
        "names": flat.names,
        "cards": flat.cards.tolist(),
        "tables": flat.tables.tolist(),
        "table_ptr": [*flat.table_ptr.tolist()[: len(flat.heads)], flat.tables.size],
        "factor": [heads.index(v) for v in range(len(flat.names))],
        "parents": {c.variable.name: [p.name for p in c.parents] for c in net.conditionals if type(c) is CPT},
        "sums": _layout(flat, Question(masked=True, goal=MARGINALS)),
        "maxima": _layout(flat, Question(masked=True, goal=COLLECTED, maximise=True)),
    }


def _layout(flat: Factors, question: Question) -> dict[str, Any]:
    """The arrays of a tape that the page reads."""
    if not kernels.COMPILED:
        raise ModelError(
            "a page in one file runs a tape that the compiled kernels lay out, and there are none here "
            f"({kernels.why_pure()}); explore() serves this network without them"
        )
    plan = plan_tree(flat, question)
    if plan.layout is None or plan.cells > MOST_CELLS:
        raise BudgetError(
            f"the junction tree has {plan.cells:.3g} cells, more than the {MOST_CELLS:,} that a page answers with "
            "at once; explore() serves this network"
        )
    made = plan.layout._asdict()
    return {key: value if isinstance(value, int) else value.tolist() for key, value in made.items()}


def _numbers(net: BayesianNetwork) -> list[dict[str, Any]]:
    """The conditionals of the continuous variables, parents first."""
    own = [c for c in net.conditionals if isinstance(c, Gaussian)]
    switches = {p.name: p.card for g in own for p in g.discrete_parents}
    if len(own) > MOST_NUMBERS or prod(switches.values()) > MOST_SETTINGS:
        raise BudgetError(
            f"the network has {len(own)} continuous variables that depend on {prod(switches.values()):,} settings of "
            f"discrete ones; a page answers with at most {MOST_NUMBERS} and {MOST_SETTINGS:,}; "
            "explore() serves this network"
        )
    return [
        {
            "name": g.name,
            "discrete": [p.name for p in g.discrete_parents],
            "parents": [p.name for p in g.continuous_parents],
            "means": g.means.ravel().tolist(),
            "variances": g.variances.ravel().tolist(),
            "weights": g.weights.reshape(g.means.size, -1).tolist(),
        }
        for g in own
    ]


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _inert(data: dict[str, Any]) -> str:
    """JSON in which no name can end the script that holds it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
