"""A network drawn as cards: each node a box with its states, their beliefs as bars, and arcs between the boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bbn.core.errors import EvidenceError
from bbn.model.evidence import Evidence, as_mapping, check_evidence, observed_numbers
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous
from bbn.view.colours import BELIEF, EDGE, HEAD, HEAD_OBSERVED, LIKELY, OBSERVED, PAPER, TRACK
from bbn.view.density import DensityCard
from bbn.view.fold import readable
from bbn.view.measures import BAR, PAD, PERCENT, ROW, TITLE, clipped, text_width
from bbn.view.scene import Box, Curve, Drawing, Words

SPOKEN = 40
"""The most arcs and nodes that the description of a picture names."""
MAX_STATES = 12
"""A node with more states shows the most probable ones."""


def draw_network(
    net: BayesianNetwork,
    evidence: Evidence | None = None,
    beliefs: bool = True,
    information: bool = False,
    focus: str | None = None,
    steps: int = 1,
    title: str = "",
    **options: Any,
) -> Drawing:
    """See `BayesianNetwork.plot`."""
    findings, numbers = check_evidence(net, evidence), observed_numbers(net, evidence)
    shown = set(net.names) if focus is None else near(net, focus, steps)
    arcs = [arc for arc in net.arcs if shown.issuperset(arc)]
    answers: Mapping[str, Any] = net.posteriors(evidence, **options) if beliefs else {}
    shares = _shares(net, answers, findings.hard) if beliefs else {}
    cards: dict[str, Card] = {}
    for v in net.variables:
        if v.name not in shown:
            continue
        if isinstance(v, Continuous):
            belief = answers[v.name] if v.name in answers else numbers.get(v.name)
            cards[v.name] = DensityCard(v.name, belief)
        else:
            cards[v.name] = _Card(v.name, v.states, shares.get(v.name), beliefs)
    plan = readable({name: (card.width, card.height) for name, card in cards.items()}, arcs)
    widths = _arc_widths(net, arcs, evidence, findings.hard, options) if information else {}
    shapes: list[Box | Words | Curve] = []
    for arc, path in plan.arcs.items():
        (x0, y0), (x1, y1) = (plan.centres[name] for name in arc)
        start, end = (x0, y0 + cards[arc[0]].height / 2), (x1, y1 - cards[arc[1]].height / 2)
        tip = f"{arc[0]} → {arc[1]}" + (f": {widths[arc][1]:.3g} bits" if arc in widths else "")
        width = widths[arc][0] if arc in widths else 1.2
        shapes.append(Curve((start, *path, end), width=width, title=tip))
    for name, card in cards.items():
        x, y = plan.centres[name]
        kind = (
            "observed"
            if name in findings.hard or name in numbers
            else "likely"
            if name in findings.likelihood or name in findings.soft
            else ""
        )
        shapes += card.shapes(x - card.width / 2, y - card.height / 2, kind)
    means = [f"{name} = {card.summary}" for name, card in cards.items() if isinstance(card, DensityCard)]
    told = _description(net, arcs, evidence, {n: p for n, p in shares.items() if n in shown})
    told += f" Numbers: {', '.join(means[:SPOKEN])}." if means else ""
    if focus is not None:
        told += f" Shown: {len(shown)} nodes within {steps} step{'s' * (steps != 1)} of {focus}."
    return Drawing(plan.width, plan.height, tuple(shapes), told).titled(title)


def near(net: BayesianNetwork, focus: str, steps: int) -> set[str]:
    """The names within a number of arcs of a node, in either direction.

    >>> import bbn
    >>> sorted(near(bbn.example("asia"), "tub", 1))
    ['asia', 'either', 'tub']
    """
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 0:
        raise EvidenceError(f"steps is {steps!r}, expected a whole number from 0")
    found = {net.variable(focus).name}
    for _ in range(steps):
        wider = found.union(*((*net.parents(name), *net.children(name)) for name in found))
        if wider == found:
            break
        found = wider
    return found


class Card(Protocol):
    """A box with a size, and its shapes at a place."""

    width: float
    height: float

    def shapes(self, x: float, y: float, kind: str) -> list[Box | Words | Curve]:
        """The card with its top left corner at (x, y); kind is "observed", "likely" or ""."""


class _Card:
    """One node's box: its size, and its shapes at a place."""

    def __init__(self, name: str, states: tuple[Any, ...], shares: list[float] | None, beliefs: bool) -> None:
        self.name = name
        rows = list(zip(map(str, states), shares or [0.0] * len(states), strict=True))
        self.left_out = max(0, len(rows) - MAX_STATES)
        if self.left_out:
            keep = sorted(sorted(range(len(rows)), key=lambda i: -rows[i][1])[: MAX_STATES - 1])
            self.left_out = len(rows) - len(keep)
            rows = [rows[i] for i in keep]
        self.rows, self.beliefs = rows, beliefs
        self.label = max(text_width(clipped(state)) for state, _ in rows)
        if self.left_out:
            self.label = max(self.label, text_width(f"… {self.left_out} more"))
        inner = self.label + (BAR + 8 + PERCENT if beliefs else 0)
        self.width = 2 * PAD + max(text_width(clipped(name), bold=True), inner)
        self.height = TITLE + 6 + ROW * (len(rows) + (self.left_out > 0))

    def shapes(self, x: float, y: float, kind: str) -> list[Box | Words | Curve]:
        """The card with its top left corner at (x, y); kind is "observed", "likely" or ""."""
        colour = {"observed": OBSERVED, "likely": LIKELY}.get(kind, BELIEF)
        head = HEAD_OBSERVED if kind else HEAD
        out: list[Box | Words | Curve] = [
            Box(x, y, self.width, self.height, PAPER, EDGE if not kind else colour, 4),
            Box(x + 0.8, y + 0.8, self.width - 1.6, TITLE - 1.6, head, radius=3.5),
            Words(x + self.width / 2, y + 14, clipped(self.name), anchor="middle", bold=True),
        ]
        bar = self.width - 2 * PAD - self.label - 8 - PERCENT
        for i, (state, share) in enumerate(self.rows):
            top = y + TITLE + 3 + ROW * i
            out.append(Words(x + PAD, top + 11, clipped(state), size=10.5))
            if self.beliefs:
                left = x + PAD + self.label + 8
                title = f"P({self.name}={state}) = {share:.6g}"
                out.append(Box(left, top + 3, bar, 9, TRACK, title=title))
                if share > 0:
                    out.append(Box(left, top + 3, max(0.5, bar * share), 9, colour, title=title))
                out.append(Words(x + self.width - PAD, top + 11, _percent(share), size=9.5, anchor="end"))
        if self.left_out:
            top = y + TITLE + 3 + ROW * len(self.rows)
            out.append(Words(x + PAD, top + 11, f"… {self.left_out} more", size=10.5, italic=True))
        return out


def _shares(
    net: BayesianNetwork, answers: Mapping[str, Any], hard: Mapping[str, int]
) -> dict[str, list[float]]:
    shares = {name: p.values.tolist() for name, p in answers.items() if net.states(name)}
    for name, code in hard.items():
        shares[name] = [float(i == code) for i in range(net.variable(name).card)]
    return shares


def _arc_widths(
    net: BayesianNetwork,
    arcs: Sequence[tuple[str, str]],
    evidence: Evidence | None,
    hard: Mapping[str, int],
    options: Mapping[str, Any],
) -> dict[tuple[str, str], tuple[float, float]]:
    """Arc to (line width, bits); arcs to continuous variables are left out."""
    bits = {}
    for parent, child in arcs:
        if not net.states(child):
            continue
        if parent in hard or child in hard:
            bits[parent, child] = 0.0
        else:
            pair = net.query([parent, child], evidence, **options)
            parts = pair.marginal(parent).entropy(2) + pair.marginal(child).entropy(2)
            bits[parent, child] = max(0.0, parts - pair.entropy(2))
    most = max(bits.values(), default=0.0) or 1.0
    return {arc: (0.6 + 5.4 * value / most, value) for arc, value in bits.items()}


def _description(
    net: BayesianNetwork,
    arcs: Sequence[tuple[str, str]],
    evidence: Evidence | None,
    shares: Mapping[str, list[float]],
) -> str:
    """The picture in words: what is given, the arcs, the most probable state of each node."""
    title = f"Bayesian network {net.name}".strip()
    given = ", ".join(f"{name} = {value}" for name, value in as_mapping(evidence).items())
    spoken = "; ".join(f"{parent} to {child}" for parent, child in arcs[:SPOKEN])
    told = (
        f"{title}, {len(net)} nodes" + (f", given {given}" if given else "") + f". Arcs: {spoken or 'none'}."
    )
    tops = []
    for name, values in list(shares.items())[:SPOKEN]:
        best = max(range(len(values)), key=values.__getitem__)
        tops.append(f"{name} = {net.states(name)[best]} ({_percent(values[best])})")
    return told + (f" Most probable: {', '.join(tops)}." if tops else "")


def _percent(share: float) -> str:
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 < share < 1:
        return ">99.9%"
    return f"{share:.1%}" if 0 < share < 1 else f"{share:.0%}"
