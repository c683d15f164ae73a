"""What learning in one call gives: the network, and a report of what was done to get it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bbn.core.display import Table, grid
from bbn.core.frozen import Frozen
from bbn.data.describe import Description
from bbn.model.network import BayesianNetwork

MOST_LINES = 40
"""The most arcs, and the most columns, that a report lists."""


class LearnResult(Frozen, compared=("network", "method")):
    """A learned network and how it came about.

    Attributes
    ----------
    network
        The network, structure and tables.
    method
        The method that was used, as it is named in `method=`.
    report
        What was known, what was chosen and why, what was done with each column, and what came out, as text.
    detail
        What the method itself gave: the structure with its score, or the result of the iterations; None for counting.
    columns
        The description of the data, one line per column; None for data that were coded already.
    numbers
        How numbers were modelled, "cut" or "gaussian"; empty where there were none.
    strengths
        Arc to its strength: by how much the score falls, in nats, if the arc is taken away. Empty where none is known.
    warnings
        What there is to be careful about, one sentence each.
    predictor
        A network that was fitted to predict the target from all other columns, where that predicts held-out rows better
        than `network` does; otherwise None. It is no joint distribution: of anything else ask `network`.
    """

    __slots__ = (
        "columns",
        "detail",
        "method",
        "network",
        "numbers",
        "predictor",
        "report",
        "strengths",
        "warnings",
    )

    network: BayesianNetwork
    method: str
    report: str
    detail: Any
    columns: Description | None
    numbers: str
    strengths: dict[tuple[str, str], float]
    warnings: tuple[str, ...]
    predictor: BayesianNetwork | None

    def __init__(
        self,
        network: BayesianNetwork,
        method: str,
        report: str,
        detail: Any = None,
        columns: Description | None = None,
        numbers: str = "",
        strengths: Mapping[tuple[str, str], float] | None = None,
        warnings: tuple[str, ...] = (),
        predictor: BayesianNetwork | None = None,
    ) -> None:
        self._set(
            network=network,
            method=method,
            report=report,
            detail=detail,
            columns=columns,
            numbers=numbers,
            strengths=dict(strengths or {}),
            warnings=warnings,
            predictor=predictor,
        )

    def __repr__(self) -> str:
        return f"<LearnResult: {self.network!r} by {self.method}>"

    def __str__(self) -> str:
        return self.report

    def _repr_html_(self) -> str:
        from html import escape

        parts = [f"<div>{escape(repr(self))}</div>"]
        if self.columns is not None:
            parts.append(self.columns._repr_html_())
        parts.append(f"<pre>{escape(self.report)}</pre>")
        return "".join(parts)


def column_lines(columns: Description, network: BayesianNetwork) -> list[str]:
    """What was done with each column."""
    rows = [
        [c.name, c.kind, str(c.missing) if c.missing else "", done_with(c.name, columns, network), c.why]
        for c in columns.columns[:MOST_LINES]
    ]
    more = len(columns) - MOST_LINES
    lines = grid(["column", "kind", "missing", "is", "because"], rows).splitlines()
    return [*lines, *([f"… {more} more columns"] if more > 0 else [])]


def done_with(name: str, columns: Description, network: BayesianNetwork) -> str:
    """What became of a column, in a few words."""
    if name not in network:
        return columns[name].will
    variable = network.variable(name)
    if not variable.card:
        return "a Gaussian"
    what = "interval" if hasattr(variable, "edges") else "state"
    return f"{variable.card} {what}{'s' * (variable.card != 1)}"


def arc_lines(strengths: Mapping[tuple[str, str], float], network: BayesianNetwork) -> list[str]:
    """The arcs, strongest first."""
    if not network.arcs:
        return ["no arcs: no column tells anything about another that the score finds worth an arc"]
    arcs = sorted(network.arcs, key=lambda arc: (-strengths.get(arc, 0.0), arc))
    shown = arcs[:MOST_LINES]
    rows = [[f"{a} → {b}", f"{strengths[a, b]:.1f}" if (a, b) in strengths else ""] for a, b in shown]
    lines = str(Table(["arc", "strength"], rows)).splitlines()
    return [*lines, *([f"… {len(arcs) - len(shown)} more arcs"] if len(arcs) > len(shown) else [])]
