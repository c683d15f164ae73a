"""Deterministic: a child that is a simple function of any number of parents, without its table.

Each state of a parent counts as a number, and the numbers are put together one parent at a time: the largest, the
smallest, their sum up to a cap, whether it is odd, or how many hold. What has been put together so far has few values,
so the function is a chain of small tables of zeros and ones, t_i = f(t_{i−1}, x_i), linear in the parents (the temporal
form; Heckerman 1993). Every t is certain given the parents, so the chain is right for sums and for maxima alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from bbn.core.display import Table
from bbn.core.errors import ModelError, nearest
from bbn.core.frozen import Array
from bbn.model.factored import Factored, checked_family
from bbn.model.holding_state import holding, told_holding_code
from bbn.model.variable import State, Variable

Rule = Literal["or", "and", "xor", "at-least", "max", "min", "sum"]
LOGICAL = ("or", "and", "xor", "at-least")
"""Rules of variables that hold or do not."""
RULES: tuple[str, ...] = (*LOGICAL, "max", "min", "sum")
Numbers = tuple[int, ...]
"""The number that each state of a variable counts as."""


class _Joining(NamedTuple):
    """How numbers are put together: the first value, how many values there are, and the value after one more number."""

    start: int
    size: int
    step: Callable[[Any, Any], Any]


class Deterministic(Factored, compared=("at_least", "numbers", "parents", "rule", "variable")):
    """A variable that its parents decide by a simple rule.

    Parameters
    ----------
    child : Variable
        The child.
    parents : sequence of Variable
        What decides it; any number of them.
    rule : {"or", "and", "xor", "at-least", "max", "min", "sum"}
        "or": a parent holds; "and": all do; "xor": an odd number does; "at-least": `at_least` of them do. Child and
        parents have two states then. "max", "min": the largest or smallest number among the parents. "sum": the sum of
        their numbers, or the child's largest number if that is less. Whole numbers from 0 on, as states, count as what
        they are; of two states such as yes and no the one that holds is 1; any others count by their place, from 0.
    at_least : int, optional
        How many parents must hold; of the rule "at-least" alone.
    holds : mapping or state, optional
        The state that means "holds" where the words do not tell: by variable's name, or one for all.

    Attributes
    ----------
    variable, parents, rule, at_least
        As given.
    numbers : tuple of tuple of int
        The number of each state: of each parent, in order, and of the child last.
    table : ndarray
        The full table, made when it is asked for; BudgetError where it would not fit.

    Raises
    ------
    ModelError
        An unknown rule, variables that it does not take, or a result that is not a state of the child.

    See Also
    --------
    CPT.deterministic : Any function of few parents, as a table.
    NoisyMax : Causes that may fail.

    Examples
    --------
    >>> parts = [Variable(f"Part{i}", ["works", "broken"]) for i in range(60)]
    >>> machine = Deterministic(
    ...     Variable("Machine", ["yes", "no"]), parts, "at-least", at_least=50, holds={p.name: "works" for p in parts}
    ... )
    >>> machine.row(*["works"] * 55, *["broken"] * 5)
    {'yes': 1.0, 'no': 0.0}
    """

    __slots__ = ("at_least", "numbers", "rule")

    rule: str
    at_least: int | None
    numbers: tuple[Numbers, ...]

    def __init__(
        self,
        child: Variable,
        parents: Sequence[Variable],
        rule: Rule,
        *,
        at_least: int | None = None,
        holds: Mapping[str, State] | State | None = None,
    ) -> None:
        child, parents = checked_family("Deterministic", child, parents)
        where = f"Deterministic {child.name!r}"
        if rule not in RULES:
            raise ModelError(f"{where}: no rule {rule!r}{nearest(str(rule), RULES)}; expected one of {RULES}")
        if (rule == "at-least") != (at_least is not None):
            raise ModelError(f"{where}: at_least= goes with the rule 'at-least', and only with it")
        if at_least is not None and (
            isinstance(at_least, bool) or not isinstance(at_least, int | np.integer) or at_least < 0
        ):
            raise ModelError(f"{where}: at_least must be a whole number from 0 on, found {at_least!r}")
        numbers = []
        for v in (*parents, child):
            if rule in LOGICAL and v.card != 2:
                raise ModelError(f"{where}: {rule!r} needs binary variables, {v.name!r} has {v.card} states")
            numbers.append(_numbers(v, holds, rule in LOGICAL))
        at_least = None if at_least is None else int(at_least)
        self._hold(variable=child, parents=parents, rule=rule, at_least=at_least, numbers=tuple(numbers))
        self._require_results()

    @staticmethod
    def made(
        variable: Variable,
        parents: tuple[Variable, ...],
        rule: str,
        at_least: int | None,
        numbers: tuple[Numbers, ...],
    ) -> Deterministic:
        """A Deterministic from parts known to be right.

        Parameters
        ----------
        variable : Variable
            The child.
        parents : tuple of Variable
            What decides it.
        rule : str
            The rule.
        at_least : int or None
            How many must hold.
        numbers : tuple of tuple of int
            The number of each state, per parent and of the child.

        Returns
        -------
        Deterministic
            The conditional, unchecked.
        """
        own = Deterministic.__new__(Deterministic)
        own._hold(variable=variable, parents=parents, rule=rule, at_least=at_least, numbers=numbers)
        return own

    def _full(self) -> Array:
        joining = self._joining()
        values: Any = np.full((), joining.start)
        for own in self.numbers[:-1]:
            values = joining.step(values[..., None], np.array(own))
        return np.asarray(np.eye(self.variable.card)[self._codes(joining)[values]])

    @property
    def n_parameters(self) -> int:
        """None: nothing of it is learned."""
        return 0

    @property
    def n_entries(self) -> int:
        """How many numbers it is made of: one per state of each parent."""
        return sum(map(len, self.numbers[:-1]))

    def _moved(
        self, variable: Variable, parents: tuple[Variable, ...], ranked: Sequence[int]
    ) -> Deterministic:
        numbers = (*(self.numbers[i] for i in ranked), self.numbers[-1])
        return Deterministic.made(variable, parents, self.rule, self.at_least, numbers)

    def _row(self, codes: Sequence[int]) -> Array:
        joining = self._joining()
        value = joining.start
        for own, code in zip(self.numbers, codes, strict=False):
            value = int(joining.step(value, own[code]))
        row = np.zeros(self.variable.card)
        row[self._codes(joining)[value]] = 1.0
        return row

    def steps(self) -> list[Array]:
        """The chain of tables: P(t_1 | x_1), then P(t_i | t_{i−1}, x_i), the last t being the child.

        Each t has as many values as may be put together by then; none without parents.
        """
        joining = self._joining()
        codes = self._codes(joining)
        levels = self._levels(joining)
        tables = []
        for i, (own, (before, after)) in enumerate(zip(self.numbers[:-1], pairwise(levels), strict=True)):
            values = joining.step(np.array(before)[:, None], np.array(own)[None, :])
            last = i == len(self.parents) - 1
            place = codes[values] if last else np.searchsorted(np.array(after), values)
            table = np.eye(self.variable.card if last else len(after))[place]
            tables.append(np.ascontiguousarray(table[0] if i == 0 else table))
        return tables

    @property
    def chain_cells(self) -> float:
        """The cells of the chain of tables."""
        sizes = [float(len(level)) for level in self._levels(self._joining())]
        return sum(a * len(own) * b for own, (a, b) in zip(self.numbers[:-1], pairwise(sizes), strict=True))

    @property
    def holds(self) -> dict[str, State] | None:
        """What `holds=` must say to make it anew; None if it cannot be said."""
        said: dict[str, State] = {}
        for v, own in zip((*self.parents, self.variable), self.numbers, strict=True):
            if v.card == 2 and sorted(own) == [0, 1]:
                if self.rule in LOGICAL or own != _numbers(v, None, False):
                    said[v.name] = v.states[own.index(1)]
            elif own != _numbers(v, None, False):
                return None
        return {
            name: state
            for name, state in said.items()
            if (
                holding((v := self._member(name)).states) is None or v.states[holding(v.states) or 0] != state
            )
        }

    def _member(self, name: str) -> Variable:
        return next(v for v in (*self.parents, self.variable) if v.name == name)

    def _joining(self) -> _Joining:
        if self.rule in ("or", "max"):
            return _Joining(0, self._highest() + 1, np.maximum)
        if self.rule in ("and", "min"):
            return _Joining(self._highest(), self._highest() + 1, np.minimum)
        if self.rule == "xor":
            return _Joining(0, 2, np.bitwise_xor)
        most = max(self.numbers[-1]) if self.at_least is None else self.at_least
        return _Joining(0, most + 1, lambda value, number: np.minimum(value + number, most))

    def _highest(self) -> int:
        return max([1, *(n for own in self.numbers[:-1] for n in own)])

    def _codes(self, joining: _Joining) -> Any:
        """The child's code for each value that was put together, 0 where there is none."""
        own = self.numbers[-1]
        codes = np.zeros(joining.size, np.int64)
        for value in range(joining.size):
            number = int(value >= self.at_least) if self.at_least is not None else value
            if number in own:
                codes[value] = own.index(number)
        return codes

    def _levels(self, joining: _Joining) -> list[list[int]]:
        """The values that may be put together before the first parent, and after each."""
        levels = [[joining.start]]
        for own in self.numbers[:-1]:
            after = joining.step(np.array(levels[-1])[:, None], np.array(sorted(set(own)))[None, :])
            levels.append(np.unique(after).tolist())
        return levels

    def _require_results(self) -> None:
        """ModelError if a result is not a state of the child."""
        if self.rule in LOGICAL:
            return
        joining = self._joining()
        for value in self._levels(joining)[-1]:
            if value not in self.numbers[-1]:
                raise ModelError(
                    f"Deterministic {self.name!r}: the {self.rule} of the parents may be {value}, which is none of the "
                    f"states {list(self.variable.states)}, numbered {list(self.numbers[-1])}"
                )

    def __repr__(self) -> str:
        return f"<Deterministic {self.name} = {self._said()}>"

    def _said(self) -> str:
        what = f"at least {self.at_least}" if self.at_least is not None else self.rule
        return f"{what} of {', '.join(p.name for p in self.parents)}"

    def _table(self) -> Table:
        members = (*self.parents, self.variable)
        rows = [
            [v.name, str(state), str(number)]
            for v, own in zip(members, self.numbers, strict=True)
            for state, number in zip(v.states, own, strict=True)
        ]
        return Table(["variable", "state", "counts as"], rows, f"{self.name}: {self._said()}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Deterministic.made, (self.variable, self.parents, self.rule, self.at_least, self.numbers)


def _numbers(variable: Variable, holds: Any, logical: bool) -> Numbers:
    """The number that each state counts as."""
    told = holds.get(variable.name) if isinstance(holds, Mapping) else holds
    states = variable.states
    if logical or (variable.card == 2 and (told is not None or holding(states) is not None)):
        code = told_holding_code(variable, holds)
        return tuple(int(i == code) for i in range(variable.card))
    if all(isinstance(s, int | np.integer) and not isinstance(s, bool) and s >= 0 for s in states):
        return tuple(int(s) for s in states)
    return tuple(range(variable.card))
