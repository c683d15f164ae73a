"""The page about a learned network: one HTML file that needs nothing else.

It says what was read and what was done with each column, shows the network with its arcs as wide as they are strong,
lists arcs and tables, and tells how well rows are predicted that were held out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from bbn.core.display import Table
from bbn.core.errors import BBNError
from bbn.view.cards import draw_network
from bbn.view.scene import Box, Curve, Drawing, Words

if TYPE_CHECKING:
    from bbn.learning.evaluation.cross_validation import CrossValidation
    from bbn.learning.learn_result import LearnResult

FOLDS = 5
"""Parts of the cross-validation on the page."""
MOST_NODES = 150
"""A network with more nodes is not drawn."""
MOST_ENTRIES = 2_000
"""Tables with more entries are left out of the page."""
MOST_TABLES = 100

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #fff; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid
  #d8dee6; padding-bottom: .2rem; }
table { border-collapse: collapse; margin: .6rem 0; } th, td { padding: .15rem .7rem .15rem 0; vertical-align: top;
  text-align: left; } thead th { border-bottom: 1px solid #9aa7b4; } caption { padding: .3rem 0; }
.scroll { overflow-x: auto; } @media (max-width: 40rem) { .scroll td, .scroll th { white-space: nowrap; } }
.warning { background: #fff4d6; border-left: 4px solid #d09000; padding: .4rem .8rem; }
code, pre { background: #f2f5f8; padding: .1rem .3rem; } pre { padding: .6rem; overflow-x: auto; }
svg { max-width: 100%; height: auto; } details { margin: .4rem 0; } summary { cursor: pointer; }
.quiet { color: #55636f; }
"""


def report_page(
    result: LearnResult,
    data: Any = None,
    *,
    target: str | None = None,
    command: str = "",
    title: str = "",
    kinds: Mapping[str, str] | None = None,
    weights: Any = None,
    missing: Any = (),
) -> str:
    """The page as HTML text.

    Parameters
    ----------
    result
        What `bbn.learn` gave.
    data
        The data it was learned from, for the cross-validation; None leaves that out.
    target
        The column whose prediction is judged.
    command
        The command that made the page.
    title
        What the data are called.
    kinds, weights, missing
        As they were given to `bbn.learn`.
    """
    net = result.network
    name = title or net.name or "data"
    sizes = ", ".join(
        f"{n:,} {what}{'s' * (n != 1)}"
        for n, what in ((len(net), "variable"), (len(net.arcs), "arc"), (net.n_parameters, "free parameter"))
    )
    rows = f"{result.columns.n_rows:,} rows, " if result.columns is not None else ""
    parts = [
        f"<h1>A network learned from {escape(name)}</h1>",
        f"<p class='quiet'>{escape(rows + sizes)}, by {escape(result.method)}</p>",
        *(f"<p class='warning'>{escape(sentence)}</p>" for sentence in result.warnings),
        *_columns(result),
        "<h2>The network</h2>",
        _picture(result),
        *_arcs(result),
        *_held_out(result, data, target, kinds, weights, missing),
        *_tables(result),
        *_how(result, command),
    ]
    return (
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>A network learned from {escape(name)}</title><style>{_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _columns(result: LearnResult) -> list[str]:
    from bbn.learning.learn_result import done_with

    if result.columns is None:
        return []
    rows = [
        [
            c.name,
            c.kind,
            str(c.missing) if c.missing else "",
            "" if c.distinct is None else str(c.distinct),
            done_with(c.name, result.columns, result.network),
            c.why,
        ]
        for c in result.columns
    ]
    head = ["column", "kind", "missing", "different", "is", "because"]
    return ["<h2>What was done with each column</h2>", f"<div class='scroll'>{Table(head, rows).html}</div>"]


def _picture(result: LearnResult) -> str:
    net = result.network
    if len(net) > MOST_NODES:
        return f"<p>{len(net)} variables are too many for a picture that can be read.</p>"
    try:
        drawing = draw_network(net)
    except BBNError:  # such as beliefs that would take too much memory
        drawing = draw_network(net, beliefs=False)
    said = "Arcs are as wide as they are strong; bars are the probabilities before anything is observed."
    picture = with_strengths(drawing, result.strengths).svg
    return f"<div class='scroll'>{picture}</div><p class='quiet'>{said}</p>"


def with_strengths(drawing: Drawing, strengths: Mapping[tuple[str, str], float]) -> Drawing:
    """The drawing with each arc as wide as it is strong, by the logarithm."""
    named = {f"{a} → {b}": max(strength, 0.0) for (a, b), strength in strengths.items()}
    top = math.log1p(max(named.values(), default=0.0)) or 1.0
    shapes: list[Box | Words | Curve] = []
    for shape in drawing.shapes:
        if isinstance(shape, Curve) and shape.title in named:
            strength = named[shape.title]
            width = 0.8 + 3.2 * math.log1p(strength) / top
            shapes.append(replace(shape, width=width, title=f"{shape.title}: strength {strength:.1f}"))
        else:
            shapes.append(shape)
    return replace(drawing, shapes=tuple(shapes))


def _arcs(result: LearnResult) -> list[str]:
    arcs = sorted(result.network.arcs, key=lambda arc: (-result.strengths.get(arc, 0.0), arc))
    if not arcs:
        return ["<p>No arcs: no column tells anything about another that the score finds worth an arc.</p>"]
    rows = [[a, b, f"{result.strengths[a, b]:.1f}" if (a, b) in result.strengths else ""] for a, b in arcs]
    note = "The strength of an arc is by how much the score falls, in nats, if it is taken away."
    return ["<h2>Arcs, strongest first</h2>", Table(["from", "to", "strength"], rows, note=note).html]


def _held_out(
    result: LearnResult, data: Any, target: str | None, kinds: Any, weights: Any, missing: Any
) -> list[str]:
    """How well held-out rows are predicted; nothing where that cannot be found out."""
    if data is None or result.columns is None:
        return []
    from bbn.learning.evaluation.cross_validation import cross_validate

    rows = result.columns.n_rows
    discrete = (
        target
        if target is not None and target in result.network and result.network.variable(target).card
        else None
    )
    try:
        found = cross_validate(
            data,
            "auto",
            min(FOLDS, rows),
            target=discrete,
            seed=0,
            kinds=kinds,
            weights=weights,
            missing=missing,
            progress=False,
        )
    except (BBNError, ValueError) as error:
        return ["<h2>On rows that were held out</h2>", f"<p>Not judged: {escape(str(error))}</p>"]
    parts = ["<h2>On rows that were held out</h2>"]
    k = len(found.folds)
    if discrete is None:
        value = f"{found.mean:.4g} ± {found.std_error:.2g}"
        return [*parts, f"<p>Mean log-likelihood of a row that was held out: <b>{value}</b> ({k} parts).</p>"]
    lines = [
        [name, f"{mean:.4g}", f"{error:.2g}"]
        for name in found.metrics
        for mean, error in [found.metric(name)]
    ]
    note = f"Everything, cuts and structure included, was learned anew for each of {k} parts of the rows."
    parts.append(f"<p>Predicting <b>{escape(discrete)}</b>:</p>")
    parts.append(Table(["", "mean", "standard error"], lines, note=note).html)
    parts.append(_calibration(found))
    return parts


def _calibration(found: CrossValidation) -> str:
    """Predicted against observed, as a picture and as a table."""
    drawn = found.calibration
    if drawn is None:
        return ""
    side, pad = 220.0, 34.0
    top = max(drawn.weight)

    def place(x: float, y: float) -> tuple[float, float]:
        return pad + x * side, pad / 2 + (1 - y) * side

    dots = []
    for x, y, weight in zip(*drawn, strict=True):
        a, b = place(x, y)
        radius = 2.5 + 5 * math.sqrt(weight / top)
        dots.append(
            f"<circle cx='{a:.1f}' cy='{b:.1f}' r='{radius:.1f}' fill='#4878a8' fill-opacity='.75'>"
            f"<title>predicted {x:.2f}, observed {y:.2f}, {weight:.0f} rows</title></circle>"
        )
    (x0, y0), (x1, y1) = place(0, 0), place(1, 1)
    label = "Calibration: predicted probability across, observed share up; dots on the diagonal are right"
    svg = (
        f"<svg role='img' aria-label='{label}' width='{side + 2 * pad:.0f}' height='{side + 1.6 * pad:.0f}' "
        "font-family='system-ui, sans-serif' font-size='12'>"
        f"<rect x='{x0}' y='{y1}' width='{side}' height='{side}' fill='none' stroke='#9aa7b4'/>"
        f"<path d='M{x0} {y0} L{x1} {y1}' stroke='#9aa7b4' stroke-dasharray='4 4'/>{''.join(dots)}"
        f"<text x='{x0}' y='{y0 + 14}'>0</text><text x='{x1 - 6}' y='{y0 + 14}'>1</text>"
        f"<text x='{x0 + side / 2}' y='{y0 + 28}' text-anchor='middle'>predicted probability</text>"
        f"<text x='{x0 - 8}' y='{y0 - side / 2}' text-anchor='middle' "
        f"transform='rotate(-90 {x0 - 8} {y0 - side / 2})'>observed share</text></svg>"
    )
    rows = [[f"{x:.2f}", f"{y:.2f}", f"{weight:.0f}"] for x, y, weight in zip(*drawn, strict=True)]
    table = Table(["predicted", "observed", "rows"], rows).html
    return f"<h3>Calibration</h3>{svg}<details><summary>As a table</summary>{table}</details>"


def _tables(result: LearnResult) -> list[str]:
    net = result.network
    parts = ["<h2>Tables</h2>"]
    for name in net.names[:MOST_TABLES]:
        cpt = net[name]
        size = getattr(getattr(cpt, "table", None), "size", 0)
        body = (
            f"<p>{size:,} entries, too many to list.</p>"
            if size > MOST_ENTRIES
            else f"<div class='scroll'>{cpt._repr_html_()}</div>"
            if hasattr(cpt, "_repr_html_")
            else f"<pre>{escape(str(cpt))}</pre>"
        )
        given = f" given {', '.join(net.parents(name))}" if net.parents(name) else ""
        parts.append(f"<details><summary>{escape(name + given)}</summary>{body}</details>")
    if len(net.names) > MOST_TABLES:
        parts.append(f"<p>… {len(net.names) - MOST_TABLES} more variables.</p>")
    return parts


def _how(result: LearnResult, command: str) -> list[str]:
    lines = result.report.split("\n\n")[0] if result.report else ""
    parts = ["<h2>How it was made</h2>"]
    if command:
        parts.append(f"<pre><code>{escape(command)}</code></pre>")
    if lines:
        parts.append(f"<pre>{escape(lines)}</pre>")
    return parts
