"""How a decision depends on each table entry and each utility: by how much, and where the policy flips.

Let one number t of the network move, the others of its row making room in proportion. The expected utility of a fixed
policy, times P(evidence), is linear in t, so that of the best policy is convex and piecewise linear, and the policy
stays best on an interval around the present value. Its ends are found by Newton's method from outside: the policy that
is best at a far point crosses the present one nearer by; there the best policy is asked for again, until it is the
present one. Each step is one elimination, and a few are enough (van der Gaag and Coupé 2000; Nielsen and Jensen 2003).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError, nearest
from bbn.core.frozen import Array, Frozen
from bbn.core.threads import limited
from bbn.decisions.elimination import INSTEAD, Answer, evidence_tables
from bbn.decisions.problem import DecisionProblem, Known, Tab, known, log_evidence_of
from bbn.decisions.solve import evaluate, rules_of, strong_tape
from bbn.kernels.watch import check
from bbn.model.decision_network import DecisionNetwork
from bbn.model.evidence import Evidence
from bbn.results.policy import Policy
from bbn.results.rule import Rule

REACH = 10.0
"""The farthest that a utility is moved, in ranges of all totals."""
CLOSE = 1e-9
"""Policies whose worths differ by at most this much of the range of all totals are equally good."""
STEPS = 60
"""The most crossings on the way to where a policy flips; a handful is usual."""


MOST = 600.0
"""Evidence counts as at most e to this times as probable as at present."""


class Influence(NamedTuple):
    """One number of the network, and how the decision depends on it."""

    name: str
    """In words, such as P(Oil=wet) or Profit(Oil=wet, Drill=yes)."""
    node: str
    place: tuple[int, ...]
    value: float
    derivative: float
    """How the expected utility of the policy changes per unit, at the present value."""
    low: float
    """The policy stays best down to here; −inf, or 0 for a probability, if it never flips."""
    high: float
    """The policy stays best up to here; inf, or 1 for a probability, if it never flips."""
    flips_below: Policy | None
    """The best policy just beyond `low`, None if it never flips."""
    flips_above: Policy | None

    @property
    def margin(self) -> float:
        """How far the number can move before the policy flips; inf if it never does."""
        down = self.value - self.low if self.flips_below is not None else math.inf
        up = self.high - self.value if self.flips_above is not None else math.inf
        return min(down, up)


class DecisionSensitivity(Tabular, Frozen):
    """What each number of the network means for the decision, those that flip the policy soonest first.

    Attributes
    ----------
    expected_utility, policy
        The present solution.
    entries
        `Influence` of each number: probabilities first compared by how far they can move, then utilities likewise.
    """

    __slots__ = ("entries", "expected_utility", "policy")

    expected_utility: float
    policy: Policy
    entries: tuple[Influence, ...]

    def __init__(self, expected_utility: float, policy: Policy, entries: Sequence[Influence]) -> None:
        self._set(expected_utility=expected_utility, policy=policy, entries=tuple(entries))

    @property
    def flips(self) -> tuple[Influence, ...]:
        """The numbers that can change the policy."""
        return tuple(e for e in self.entries if e.margin < math.inf)

    def __getitem__(self, name: str) -> Influence:
        """The influence of the number of this name."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise EvidenceError(f"there is no number {name!r}{nearest(name, [e.name for e in self.entries])}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DecisionSensitivity):
            return NotImplemented
        return self.policy == other.policy and self.entries == other.entries

    def __hash__(self) -> int:
        return hash((self.expected_utility, self.policy))

    def __repr__(self) -> str:
        return f"<DecisionSensitivity: {len(self.flips)} of {len(self.entries)} numbers can flip the policy>"

    def _table(self) -> Table:
        top = self.entries[:15]
        most = max((abs(e.derivative) for e in top), default=0.0) or 1.0
        rows: list[list[Cell]] = [
            [e.name, f"{e.value:.6g}", f"{e.derivative:+.4g}", _interval(e), Bar(abs(e.derivative) / most)]
            for e in top
        ]
        left_out = len(self.entries) - len(top)
        note = f"{left_out} more numbers" if left_out else ""
        title = f"expected utility {self.expected_utility:.6g}"
        return Table(["number", "value", "derivative", "the policy stays best", ""], rows, title, note)

    def __reduce__(self) -> tuple[Any, ...]:
        return DecisionSensitivity, (self.expected_utility, self.policy, self.entries)


def _interval(e: Influence) -> str:
    if e.flips_below is None and e.flips_above is None:
        return "always"
    if e.flips_below is None:
        return f"up to {e.high:.5g}"
    return f"from {e.low:.5g}" + (f" to {e.high:.5g}" if e.flips_above is not None else "")


@limited(INSTEAD)
def sensitivity(
    dn: DecisionNetwork,
    evidence: Evidence | None = None,
    names: Sequence[str] | None = None,
    certain: bool = False,
    memory_limit: int | float | str | None = None,
    *,
    time_limit: float | None = None,
) -> DecisionSensitivity:
    """See `DecisionNetwork.sensitivity`."""
    if dn.recall == "limited":
        raise EvidenceError(
            "sensitivity needs perfect recall: with limited memory one pass does not find the best policy"
        )
    problem, given = known(dn, evidence)
    for name in names or ():
        if dn.kind(name) == "decision":
            raise EvidenceError(f"{name!r} is a decision; it has no numbers")
    walk = _Walk(problem, given, evidence, memory_limit)
    entries = [
        walk.influence(number)
        for number in _numbers(dn, problem)
        if (names is None or number.node in names)
        and (certain or not number.is_probability or 0 < problem.cells[number.row][number.column] < 1)
    ]
    entries.sort(key=lambda e: _delicacy(e, walk.span))
    return DecisionSensitivity(walk.value, Policy(walk.rules), entries)


def _delicacy(entry: Influence, span: float) -> tuple[float, float]:
    """How far the number can move, utilities on the scale of all totals; rounded, so that equals keep their order."""
    margin = entry.margin / (1.0 if entry.name.startswith("P(") else span)
    return float(f"{margin:.9g}"), -float(f"{abs(entry.derivative):.9g}")


class _Number(NamedTuple):
    """One number: its row in the cells, its place in it, and whether the row is a distribution."""

    name: str
    node: str
    place: tuple[int, ...]
    row: slice
    column: int
    is_probability: bool


def _numbers(dn: DecisionNetwork, problem: DecisionProblem) -> list[_Number]:
    """Every entry of every table, in the order of the nodes; chains of tables have none that a node is made of."""
    found = []
    for tab in problem.chance:
        if tab.head in problem.chained:
            continue
        name, card = problem.names[tab.head], problem.cards[tab.head]
        for place, at in _places(problem, tab):
            start = at - place[-1]
            given = ", ".join(_settings(problem, tab.scope[:-1], place))
            title = f"P({_settings(problem, tab.scope[-1:], place[-1:])[0]}{' | ' + given if given else ''})"
            found.append(_Number(title, name, place, slice(start, start + card), place[-1], True))
    plain = [u for u in dn.utilities if u.combine is None and not u.continuous_parents]
    used = {p.name for u in dn.utilities if u.combine is not None for p in u.parents}
    for utility, tab in (
        zip(plain, problem.utilities, strict=False) if len(plain) == len(dn.utilities) else ()
    ):
        if utility.name in used:
            continue
        for place, at in _places(problem, tab):
            title = f"{utility.name}({', '.join(_settings(problem, tab.scope, place))})"
            found.append(_Number(title, utility.name, place, slice(at, at + 1), 0, False))
    return found


def _places(problem: DecisionProblem, tab: Tab) -> list[tuple[tuple[int, ...], int]]:
    shape = [problem.cards[v] for v in tab.scope]
    return [(place, tab.start + i) for i, place in enumerate(np.ndindex(*shape))]


def _settings(problem: DecisionProblem, scope: Sequence[int], place: Sequence[int]) -> list[str]:
    return [
        f"{problem.names[v]}={problem.variables[v].states[code]}"
        for v, code in zip(scope, place, strict=False)
    ]


class _Walk:
    """The present policy, and the search for where it stops being best."""

    def __init__(
        self,
        problem: DecisionProblem,
        given: Known,
        evidence: Evidence | None,
        memory_limit: int | float | str | None,
    ) -> None:
        self.problem, self.given, self.memory_limit = problem, given, memory_limit
        self.tape = strong_tape(problem, given, (), None, memory_limit)
        self.rules, self.value = self.best(problem.cells)
        answer = evaluate(problem, given, self.rules, memory_limit)
        # all worths and weights are relative to the present P(evidence), which may be too small for a double
        self.log_weight = log_evidence_of(answer.weight, answer.log_scale, evidence)
        spans = [np.ptp(problem.cells[t.start : t.start + self._size(t)]) for t in problem.utilities]
        self.span = float(sum(spans)) or 1.0

    def _size(self, tab: Tab) -> int:
        return math.prod(self.problem.cards[v] for v in tab.scope)

    def best(self, cells: Array) -> tuple[dict[str, Rule], float]:
        """The best policy for these numbers, and what it is worth."""
        answer = self.tape.run(cells, self.given.hard, evidence_tables(self.given), self.memory_limit)
        rules = rules_of(self.problem, self.given, self.tape.slots, answer.choices)
        return rules, answer.value

    def worth(self, rules: dict[str, Rule], cells: Array) -> float:
        """What a policy is worth for these numbers, times P(evidence) over the present one: linear in each number."""
        return self._weighed(rules, cells)[0]

    def _weighed(self, rules: dict[str, Rule], cells: Array) -> tuple[float, float]:
        """That, and P(evidence) over the present one."""
        answer = evaluate(self.problem, self.given, rules, self.memory_limit, cells)
        weight = self._weight(answer)
        return answer.value * weight, weight

    def _weight(self, answer: Answer) -> float:
        """P(evidence) over the present one."""
        if not answer.weight > 0:
            return 0.0
        return math.exp(min(math.log(answer.weight) + answer.log_scale - self.log_weight, MOST))

    def moved(self, number: _Number, value: float) -> Array:
        """The cells with one number at another value."""
        cells = self.problem.cells.copy()
        row = cells[number.row]
        if number.is_probability:
            rest = 1.0 - row[number.column]
            others = row * ((1.0 - value) / rest) if rest > 0 else np.full(len(row), 0.0)
            if rest <= 0 and len(row) > 1:
                others[:] = (1.0 - value) / (len(row) - 1)
            row[:] = others
        row[number.column] = value
        return cells

    def influence(self, number: _Number) -> Influence:
        """How the decision depends on one number."""
        check()
        value = float(self.problem.cells[number.row][number.column])
        low, high = (0.0, 1.0) if number.is_probability else (-math.inf, math.inf)
        if number.is_probability and number.row.stop - number.row.start == 1:
            return Influence(number.name, number.node, number.place, value, 0.0, low, high, None, None)
        reach = REACH * self.span
        down, up = (0.0, 1.0) if number.is_probability else (value - reach, value + reach)
        here = self.worth(self.rules, self.problem.cells)
        far = up if up - value >= value - down else down
        present = _Line(value, here, far, self.worth(self.rules, self.moved(number, far)))
        derivative = present.slope
        if number.is_probability:  # P(evidence) moves too
            derivative -= self.value * self._weight_slope(number, value, far)
        below = self._flip(number, present, value, down)
        above = self._flip(number, present, value, up)
        return Influence(
            number.name,
            number.node,
            number.place,
            value,
            derivative,
            below[0] if below else low,
            above[0] if above else high,
            below[1] if below else None,
            above[1] if above else None,
        )

    def _weight_slope(self, number: _Number, value: float, far: float) -> float:
        if not self.given.hard and not self.given.likelihoods:
            return 0.0
        return (self._weighed(self.rules, self.moved(number, far))[1] - 1.0) / (far - value)

    def _flip(self, number: _Number, present: _Line, value: float, far: float) -> tuple[float, Policy] | None:
        """Where, between the value and a far point, the policy stops being best, and the one that is best there."""
        if far == value:
            return None
        at, found = far, None
        for _ in range(STEPS):
            cells = self.moved(number, at)
            rules, _ = self.best(cells)
            worth, weight = self._weighed(rules, cells)
            gain = worth - present(at)
            if gain <= CLOSE * self.span * max(weight, 1.0):
                return (self._rounded(at), found) if found is not None else None
            other = _Line(value, self.worth(rules, self.problem.cells), at, present(at) + gain)
            steeper = other.slope - present.slope
            crossing = value + (present(value) - other(value)) / steeper if steeper else value
            nearer = abs(crossing - value) < abs(at - value) * (1 - 1e-12)
            at, found = (crossing if (crossing - value) * (far - value) >= 0 else value), Policy(rules)
            if not nearer or at == value:
                break
        return (self._rounded(at), found) if found is not None else None

    def _rounded(self, at: float) -> float:
        """The number without the noise of its last digits."""
        return 0.0 if abs(at) < 1e-12 * self.span else float(f"{at:.12g}")


class _Line:
    """The line through two points."""

    def __init__(self, x0: float, y0: float, x1: float, y1: float) -> None:
        self.x0, self.y0 = x0, y0
        self.slope = (y1 - y0) / (x1 - x0) if x1 != x0 else 0.0

    def __call__(self, x: float) -> float:
        return self.y0 + self.slope * (x - self.x0)
