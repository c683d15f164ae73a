"""Deterministic: a child that is a simple function of any number of parents, without its table.

Each state of a parent counts as a number, and the numbers are put together one parent at a time: the largest, the
smallest, their sum up to a cap, whether it is odd, or how many hold. What has been put together so far has few values,
so the function is a chain of small tables of zeros and ones, t_i = f(t_{i−1}, x_i), linear in the parents (the temporal
form; Heckerman 1993). Every t is certain given the parents, so the chain is right for sums and for maxima alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import require_memory
from bbn.core.display import Table
from bbn.core.errors import ModelError, nearest
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.model.factored import Factored, checked_family
from bbn.model.holding_state import holding, require_family, told_holding_code
from bbn.model.variable import State, Variable

Rule = Literal["or", "and", "xor", "at-least", "max", "min", "sum"]
LOGICAL = ("or", "and", "xor", "at-least")
"""Rules of variables that hold or do not."""
RULES: tuple[str, ...] = (*LOGICAL, "max", "min", "sum")
LARGEST = 2**40
"""The largest number that a state may count as."""
Numbers = tuple[int, ...]
"""The number that each state of a variable counts as."""
Values = NDArray[np.int64]
"""Numbers that have been put together."""


class _Joining(NamedTuple):
    """How numbers are put together: the first value, and the value after one more number."""

    start: int
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

    @keywords_checked
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
            raise ModelError(f"{where}: no rule {rule!r}{nearest(rule, RULES)}")
        if (rule == "at-least") != (at_least is not None):
            raise ModelError(f"{where}: at_least= goes with the rule 'at-least', and only with it")
        if at_least is not None and (
            isinstance(at_least, bool) or not isinstance(at_least, int | np.integer) or at_least < 0
        ):
            raise ModelError(f"{where}: at_least must be a whole number from 0 on, found {at_least!r}")
        if not parents and rule in ("max", "min"):
            raise ModelError(f"{where}: without parents there is no {rule}")
        require_family(where, holds, child, parents)
        numbers = []
        for v in (*parents, child):
            if rule in LOGICAL and v.card != 2:
                raise ModelError(f"{where}: {rule!r} needs binary variables, {v.name!r} has {v.card} states")
            numbers.append(_numbers(v, holds, rule in LOGICAL))
            if max(numbers[-1]) > LARGEST:
                raise ModelError(
                    f"{where}: a state of {v.name!r} is {max(numbers[-1])}; at most {LARGEST} counts"
                )
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
        return np.asarray(np.eye(self.variable.card)[self._codes(values)])

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
        row[self._codes(np.array(value))] = 1.0
        return row

    def steps(self) -> list[Array]:
        """The chain of tables: P(t_1 | x_1), then P(t_i | t_{i−1}, x_i), the last t being the child.

        Each t has as many values as may be put together by then; none without parents.
        """
        levels = self._levels()
        require_memory(
            int(16 * self.chain_cells), f"the chain of tables of {type(self).__name__} {self.name!r}"
        )
        tables = []
        for i, (before, after) in enumerate(pairwise(levels)):
            values = self._joined(before, i)
            last = i == len(self.parents) - 1
            place = self._codes(values) if last else np.searchsorted(after, values)
            table = np.eye(self.variable.card if last else len(after))[place]
            tables.append(np.ascontiguousarray(table[0] if i == 0 else table))
        return tables

    @property
    def chain_cells(self) -> float:
        """The cells of the chain of tables."""
        sizes = [float(len(level)) for level in self._levels()]
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
            return _Joining(0, np.maximum)
        if self.rule in ("and", "min"):
            return _Joining(self._highest(), np.minimum)
        if self.rule == "xor":
            return _Joining(0, np.bitwise_xor)
        most = max(self.numbers[-1]) if self.at_least is None else self._enough()
        return _Joining(0, lambda value, number: np.minimum(value + number, most))

    def _highest(self) -> int:
        return max([1, *(n for own in self.numbers[:-1] for n in own)])

    def _enough(self) -> int:
        """How many parents must hold, or one more than there are where not all of them are enough."""
        return min(self.at_least or 0, len(self.parents) + 1)

    def _codes(self, values: NDArray[Any]) -> NDArray[np.intp]:
        """The child's code for each value that was put together, 0 where there is none."""
        if self.at_least is not None:
            values = values >= self._enough()
        own = np.array(self.numbers[-1])
        ranked = np.argsort(own)
        place = ranked.take(np.searchsorted(own, values, sorter=ranked), mode="clip")
        return np.where(own[place] == values, place, 0)

    def _levels(self) -> list[Values]:
        """The values that may be put together before the first parent, and after each; sorted."""
        return list(self._growing())

    def _growing(self) -> Iterator[Values]:
        """These, one level at a time."""
        values = np.array([self._joining().start])
        yield values
        for i in range(len(self.parents)):
            values = np.unique(self._joined(values, i))
            yield values

    def _joined(self, before: Values, i: int) -> Values:
        """The value after each before the i-th parent, a row, with each of that parent's numbers, a column.

        Sums that are sure to end at the cap are not told apart, so there are never more than the child has states.
        """
        values: Values = self._joining().step(before[:, None], np.array(self.numbers[i])[None, :])
        return (
            np.minimum(values, max(self.numbers[-1]) - self._least_after(i)) if self.rule == "sum" else values
        )

    def _least_after(self, i: int) -> int:
        """The least that the parents after the i-th add up to."""
        return sum(map(min, self.numbers[i + 1 : -1]))

    def _require_results(self) -> None:
        """ModelError if a result is not a state of the child: as soon as one is known, for sums may have many."""
        if self.rule in LOGICAL:
            return
        last, most = len(self.parents), max(self.numbers[-1])
        for i, values in enumerate(self._growing()):
            if self.rule == "sum":
                values = np.minimum(values + self._least_after(i - 1), most)
            elif i < last:
                continue
            value = next((v for v in values.tolist() if v not in self.numbers[-1]), None)
            if value is not None:
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
