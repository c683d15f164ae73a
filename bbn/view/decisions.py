"""A decision network drawn: ovals for chance, squares for decisions, diamonds for utilities.

Solved, a decision shows what each of its choices is worth, the other decisions being made as well as can be; a chance
variable its most probable state, and a utility what it is expected to come to, both under the best policy. Dashed arcs
are what a decision observes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bbn.core.errors import EvidenceError
from bbn.decisions.solve import expected_utility, solve, with_policy
from bbn.model.decision_network import DecisionNetwork
from bbn.model.evidence import Evidence, as_mapping, check_evidence
from bbn.view.colours import BELIEF, EDGE, HEAD, HEAD_OBSERVED, OBSERVED, PAPER, TRACK
from bbn.view.layout import layered
from bbn.view.measures import BAR, PAD, ROW, TITLE, clipped, text_width
from bbn.view.scene import Box, Curve, Diamond, Drawing, Oval, Words

SPOKEN = 40
"""The most nodes that the words of a picture name."""
MAX_CHOICES = 12
"""A decision with more choices shows the best ones."""

Shape = Box | Words | Curve


def draw_decisions(
    dn: DecisionNetwork, evidence: Evidence | None = None, solved: bool = True, **options: Any
) -> Drawing:
    """See `DecisionNetwork.plot`."""
    answers = _answers(dn, evidence, options) if solved else _Answers({}, {}, {}, "")
    hard = check_evidence(dn, evidence).hard  # type: ignore[arg-type]  # what is asked of a model is there
    cards: dict[str, _Node] = {}
    for name in dn.names:
        kind = dn.kind(name)
        known = f"{dn.states(name)[hard[name]]}" if name in hard else ""
        if kind == "decision":
            cards[name] = _Square(name, [str(s) for s in dn.states(name)], answers.choices.get(name), known)
        else:
            shape = Oval if kind == "chance" else Diamond
            told = known or answers.beliefs.get(name, "") or answers.worths.get(name, "")
            cards[name] = _Round(name, told, shape, bool(known))
    plan = layered({name: (card.width, card.height) for name, card in cards.items()}, dn.arcs)
    shapes: list[Shape] = []
    for (parent, child), path in plan.arcs.items():
        (x0, y0), (x1, y1) = plan.centres[parent], plan.centres[child]
        start, end = (x0, y0 + cards[parent].height / 2), (x1, y1 - cards[child].height / 2)
        observed = dn.kind(child) == "decision"
        title = f"{child} observes {parent}" if observed else f"{parent} → {child}"
        shapes.append(Curve((start, *path, end), dashed=observed, title=title))
    for name, card in cards.items():
        x, y = plan.centres[name]
        shapes += card.shapes(x - card.width / 2, y - card.height / 2)
    return Drawing(plan.width, plan.height, tuple(shapes), _description(dn, evidence, answers))


class _Answers(NamedTuple):
    """What a solved network shows: what each choice is worth, beliefs and expected worths as text, and the headline."""

    choices: dict[str, list[float]]
    beliefs: dict[str, str]
    worths: dict[str, str]
    headline: str


def _answers(dn: DecisionNetwork, evidence: Evidence | None, options: dict[str, Any]) -> _Answers:
    best = solve(dn, evidence, **options)
    given = dict(as_mapping(evidence))
    choices = {
        d.name: [expected_utility(dn, {d.name: state}, given, **options) for state in d.states]
        for d in dn.decisions
        if d.name not in given and _can_be_fixed(dn, d.name, given)
    }
    made = {d.name: given.pop(d.name) for d in dn.decisions if d.name in given}
    net = with_policy(dn, {**best.policy, **made})
    posteriors: Any = net.posteriors(given)
    beliefs, worths = {}, {}
    for name in net.names:
        if name in posteriors and net.states(name):
            p = posteriors[name]
            beliefs[name] = f"{p.mode()} {p.values.max():.0%}"
    for utility in dn.utilities:
        if utility.combine is None and not utility.continuous_parents:
            names = [p.name for p in utility.parents]
            share = net.query(names, given).values if names else 1.0
            worths[utility.name] = f"{float((share * utility.table).sum()):.4g}"
    return _Answers(choices, beliefs, worths, f"expected utility {best.expected_utility:.6g}")


def _can_be_fixed(dn: DecisionNetwork, name: str, given: dict[str, Any]) -> bool:
    try:
        expected_utility(dn, {name: dn.states(name)[0]}, given)
    except EvidenceError:
        return False
    return True


class _Node:
    """One node: its size, and its shapes at a place."""

    width: float
    height: float

    def shapes(self, x: float, y: float) -> list[Shape]:
        """The node with the top left corner of its frame at (x, y)."""
        raise NotImplementedError


class _Round(_Node):
    """An oval or a diamond with a name and a line below it."""

    def __init__(self, name: str, told: str, shape: type[Box], known: bool) -> None:
        self.name, self.told, self.shape, self.known = name, told, shape, known
        text = max(text_width(clipped(name), bold=True), text_width(clipped(told)))
        wide, high = (1.25, 1.5) if shape is Oval else (1.65, 2.4)
        self.width = wide * text + 2 * PAD + (20 if shape is Diamond else 10)
        self.height = high * (ROW * (2 if told else 1) + 2)

    def shapes(self, x: float, y: float) -> list[Shape]:
        edge, fill = (
            (OBSERVED, HEAD_OBSERVED) if self.known else (EDGE, PAPER if self.shape is Oval else HEAD)
        )
        middle, centre = x + self.width / 2, y + self.height / 2
        top = centre + 4 if not self.told else centre - 3
        frame = self.shape(
            x, y, self.width, self.height, fill, edge, title=f"{self.name} {self.told}".strip()
        )
        out: list[Shape] = [frame, Words(middle, top, clipped(self.name), anchor="middle", bold=True)]
        if self.told:
            out.append(Words(middle, top + ROW - 1, clipped(self.told), size=10.0, anchor="middle"))
        return out


class _Square(_Node):
    """A decision: its choices, with a bar and a number for what each is worth."""

    def __init__(self, name: str, states: list[str], worths: list[float] | None, known: str) -> None:
        self.name, self.known, self.worths = name, known, worths
        rows = list(zip(states, worths or [0.0] * len(states), strict=True))
        if len(rows) > MAX_CHOICES:
            rows = sorted(rows, key=lambda row: -row[1])[:MAX_CHOICES]
        self.rows = rows
        self.label = max(text_width(clipped(state)) for state, _ in rows)
        self.number = max(text_width(f"{worth:.4g}") for _, worth in rows) if worths else 0.0
        inner = self.label + (8 + BAR + 6 + self.number if worths else 0)
        self.width = 2 * PAD + max(text_width(clipped(name), bold=True), inner)
        self.height = TITLE + 6 + ROW * len(rows)

    def shapes(self, x: float, y: float) -> list[Shape]:
        edge, head = (OBSERVED, HEAD_OBSERVED) if self.known else (EDGE, HEAD)
        out: list[Shape] = [
            Box(x, y, self.width, self.height, PAPER, edge),
            Box(x + 0.8, y + 0.8, self.width - 1.6, TITLE - 1.6, head),
            Words(x + self.width / 2, y + 14, clipped(self.name), anchor="middle", bold=True),
        ]
        worths = [worth for _, worth in self.rows]
        low, span = min(worths), (max(worths) - min(worths)) or 1.0
        for i, (state, worth) in enumerate(self.rows):
            top = y + TITLE + 3 + ROW * i
            best = bool(self.worths) and worth == max(worths)
            chosen = state == self.known or best
            out.append(Words(x + PAD, top + 11, clipped(state), size=10.5, bold=chosen))
            if self.worths:
                left = x + PAD + self.label + 8
                room = self.width - 2 * PAD - self.label - 14 - self.number
                title = f"{self.name}={state} is worth {worth:.6g}"
                share = 0.15 + 0.85 * (worth - low) / span if max(worths) > low else 1.0
                out.append(Box(left, top + 3, room, 9, TRACK, title=title))
                out.append(Box(left, top + 3, room * share, 9, OBSERVED if best else BELIEF, title=title))
                out.append(Words(x + self.width - PAD, top + 11, f"{worth:.4g}", size=9.5, anchor="end"))
        return out


def _description(dn: DecisionNetwork, evidence: Evidence | None, answers: _Answers) -> str:
    """The picture in words: what is given, the nodes by kind, and what each choice is worth."""
    given = ", ".join(f"{name} = {value}" for name, value in as_mapping(evidence).items())
    told = f"Decision network {dn.name}".strip() + (f", given {given}" if given else "")
    told += f", {answers.headline}." if answers.headline else "."
    for kind, plural in (("chance", "Chance"), ("decision", "Decisions"), ("utility", "Utilities")):
        names = [name for name in dn.names if dn.kind(name) == kind][:SPOKEN]
        told += f" {plural}: {', '.join(names) or 'none'}."
    for name, worths in list(answers.choices.items())[:SPOKEN]:
        pairs = zip(dn.states(name), worths, strict=True)
        told += f" {name}: {', '.join(f'{state} is worth {worth:.4g}' for state, worth in pairs)}."
    return told
