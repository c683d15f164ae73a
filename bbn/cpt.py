"""CPT: a conditional probability table P(variable | parents), checked when it is made.

The array has one axis per parent, in their order, and the variable's own axis last, so each row along the
last axis is a distribution: entries at least 0, sum 1. A sum off by at most 1e-9 is kept bit for bit, one
off by at most 1e-6 (single precision) is renormalised, anything else is a ModelError that names the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from bbn.budget import require_table
from bbn.errors import ModelError
from bbn.factor import Factor
from bbn.frozen import Array, Frozen, read_only
from bbn.text import grid
from bbn.variable import State, Variable

if TYPE_CHECKING:
    import pandas as pd

EXACT = 1e-9
"""A row's sum may be off 1 by this much and the row is kept as it is."""
ROUNDED = 1e-6
"""A row's sum may be off 1 by this much and the row is renormalised."""


@runtime_checkable
class Conditional(Protocol):
    """What a network is made of: a variable given its parents. A CPT is the first kind."""

    @property
    def variable(self) -> Variable: ...

    @property
    def parents(self) -> tuple[Variable, ...]: ...


class CPT(Frozen):
    """The conditional probability table of `variable` given `parents`.

    Parameters
    ----------
    variable
        The child.
    parents
        Its parents; their order is the order of the table's axes.
    table
        One of: an array of shape (\\*parents' cards, variable's card); a mapping from a tuple of the parents'
        states (a bare state where there is one parent) to a row; a DataFrame as `to_frame` makes it. A row is
        a list of probabilities in the order of the states, or a mapping from state to probability. Without
        parents the table is a single row.

    >>> storm, bus = Variable("Storm", ["yes", "no"]), Variable("Bus", ["yes", "no"])
    >>> campfire = CPT(
    ...     Variable("Campfire", ["yes", "no"]),
    ...     parents=[storm, bus],
    ...     table={
    ...         ("yes", "yes"): [0.4, 0.6],
    ...         ("yes", "no"): [0.1, 0.9],
    ...         ("no", "yes"): {"yes": 0.8, "no": 0.2},
    ...         ("no", "no"): [0.2, 0.8],
    ...     },
    ... )
    >>> campfire.table.shape
    (2, 2, 2)
    >>> campfire.row("yes", "no")
    {'yes': 0.1, 'no': 0.9}
    """

    __slots__ = ("_hash", "parents", "table", "variable")

    variable: Variable
    parents: tuple[Variable, ...]
    table: Array
    _hash: int | None

    def __init__(self, variable: Variable, parents: Sequence[Variable] = (), table: Any = None) -> None:
        variable, parents = _checked_family(variable, parents)
        if table is None:
            raise ModelError(f"CPT {variable.name!r}: no table given; CPT.uniform makes one")
        if hasattr(table, "columns") and hasattr(table, "index"):
            table = _mapping_from_frame(variable, parents, table)
        if isinstance(table, Mapping):
            array = _array_from_mapping(variable, parents, table)
        else:
            array = _array_from_numbers(variable, parents, table)
        self._set(
            variable=variable, parents=parents, table=read_only(_checked_rows(variable, parents, array)), _hash=None
        )

    @classmethod
    def trusted(cls, variable: Variable, parents: tuple[Variable, ...], table: Array) -> CPT:
        """A CPT from parts known to be right; `table` is not copied and becomes read-only."""
        cpt = cls.__new__(cls)
        cpt._set(variable=variable, parents=parents, table=read_only(table), _hash=None)
        return cpt

    @classmethod
    def uniform(cls, variable: Variable, parents: Sequence[Variable] = ()) -> CPT:
        """Every state equally probable, whatever the parents.

        >>> CPT.uniform(Variable("Coin", ["heads", "tails"])).table
        array([0.5, 0.5])
        """
        variable, parents = _checked_family(variable, parents)
        return cls.trusted(variable, parents, np.full(_shape(variable, parents), 1.0 / variable.card))

    @classmethod
    def deterministic(
        cls, variable: Variable, parents: Sequence[Variable], function: Callable[..., State]
    ) -> CPT:
        """The state that `function` gives for the parents' states has probability 1.

        >>> a, b = Variable("A", [False, True]), Variable("B", [False, True])
        >>> CPT.deterministic(Variable("Both", [False, True]), [a, b], lambda a, b: a and b).row(True, True)
        {False: 0.0, True: 1.0}
        """
        variable, parents = _checked_family(variable, parents)
        table = np.zeros(_shape(variable, parents))
        for index, states in _settings(parents):
            result = function(*states)
            code = variable.find(result)
            if code is None:
                raise ModelError(f"{_row_name(variable, parents, index)}: {variable.unknown(result)}")
            table[(*index, code)] = 1.0
        return cls.trusted(variable, parents, table)

    @classmethod
    def noisy_or(
        cls,
        variable: Variable,
        parents: Sequence[Variable],
        probabilities: Mapping[str, float] | Sequence[float],
        leak: float = 0.0,
    ) -> CPT:
        """Each parent that holds causes the variable with its own probability, independently (Pearl 1988, 4.3.2).

        P(variable does not hold) = (1 − leak) ∏ (1 − p_i) over the parents that hold. All variables are binary;
        the state that means "holds" is True of a boolean variable, 1 of one with states 0 and 1, else the first.

        >>> cold, flu = Variable("Cold", ["yes", "no"]), Variable("Flu", ["yes", "no"])
        >>> fever = CPT.noisy_or(Variable("Fever", ["yes", "no"]), [cold, flu], {"Cold": 0.4, "Flu": 0.8})
        >>> round(fever.row("yes", "yes")["yes"], 12)
        0.88
        """
        variable, parents = _checked_family(variable, parents)
        for v in (variable, *parents):
            if v.card != 2:
                raise ModelError(f"CPT {variable.name!r}: noisy-or needs binary variables, {v.name!r} has {v.card} states")
        names = [p.name for p in parents]
        given = dict(probabilities) if isinstance(probabilities, Mapping) else dict(zip(names, probabilities, strict=False))
        if set(given) != set(names) or (not isinstance(probabilities, Mapping) and len(probabilities) != len(names)):
            raise ModelError(f"CPT {variable.name!r}: noisy-or needs one probability for each of {names}, found {probabilities}")
        for name, p in {**given, "the leak": leak}.items():
            if not 0 <= p <= 1:
                raise ModelError(f"CPT {variable.name!r}: noisy-or probability of {name} is {p}; expected 0 to 1")
        holds = _positive(variable)
        table = np.empty(_shape(variable, parents))
        for index, _ in _settings(parents):
            fails = 1.0 - leak
            for parent, code in zip(parents, index, strict=True):
                if code == _positive(parent):
                    fails *= 1.0 - given[parent.name]
            table[(*index, holds)] = 1.0 - fails
            table[(*index, 1 - holds)] = fails
        return cls.trusted(variable, parents, table)

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    def factor(self) -> Factor:
        """The table as a factor over (\\*parents, variable)."""
        return Factor.trusted((*self.parents, self.variable), self.table)

    def row(self, *states: State) -> dict[State, float]:
        """The distribution for these states of the parents, in their order."""
        if len(states) != len(self.parents):
            raise ModelError(f"CPT {self.name!r} has {len(self.parents)} parents, found {len(states)} states")
        index = tuple(p.code(s) for p, s in zip(self.parents, states, strict=True))
        return dict(zip(self.variable.states, self.table[index].tolist(), strict=True))

    def to_frame(self) -> pd.DataFrame:
        """One row per setting of the parents (a level of the index each), one column per state."""
        import pandas as pd

        rows = self.table.reshape(-1, self.variable.card)
        columns = pd.Index(list(self.variable.states), name=self.name)
        if not self.parents:
            return pd.DataFrame(rows, columns=columns)
        if len(self.parents) == 1:
            index: pd.Index[Any] = pd.Index(list(self.parents[0].states), name=self.parents[0].name)
        else:
            index = pd.MultiIndex.from_product(
                [list(p.states) for p in self.parents], names=[p.name for p in self.parents]
            )
        return pd.DataFrame(rows, index=index, columns=columns)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, CPT):
            return NotImplemented
        return (
            self.variable == other.variable
            and self.parents == other.parents
            and np.array_equal(self.table, other.table)
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._set(_hash=hash((self.variable, self.parents, (self.table + 0.0).tobytes())))
        return self._hash  # type: ignore[return-value]  # set just above

    def __repr__(self) -> str:
        given = f" | {', '.join(p.name for p in self.parents)}" if self.parents else ""
        return f"<CPT P({self.name}{given}), shape {self.table.shape}>"

    def __str__(self) -> str:
        given = f" | {', '.join(p.name for p in self.parents)}" if self.parents else ""
        head = [*(p.name for p in self.parents), *map(str, self.variable.states)]
        rows = [
            [*map(str, states), *(f"{x:.6g}" for x in self.table[index].tolist())]
            for index, states in _settings(self.parents)
        ]
        return f"P({self.name}{given})\n" + grid(head, rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return CPT.trusted, (self.variable, self.parents, self.table)


def _checked_family(
    variable: Variable, parents: Sequence[Variable]
) -> tuple[Variable, tuple[Variable, ...]]:
    if not isinstance(variable, Variable):
        raise ModelError(f"a CPT's variable must be a Variable, found {variable!r} ({type(variable).__name__})")
    if isinstance(parents, Variable | str) or not isinstance(parents, Iterable):
        raise ModelError(f"CPT {variable.name!r}: parents must be a list of Variables, found {parents!r}")
    parents = tuple(parents)
    seen = {variable.name}
    for parent in parents:
        if not isinstance(parent, Variable):
            raise ModelError(
                f"CPT {variable.name!r}: a parent must be a Variable, found {parent!r} ({type(parent).__name__})"
            )
        if parent.name in seen:
            problem = "is its own parent" if parent.name == variable.name else f"has the parent {parent.name!r} twice"
            raise ModelError(f"CPT {variable.name!r} {problem}")
        seen.add(parent.name)
    require_table(
        [*(p.card for p in parents), variable.card], f"CPT {variable.name!r}", "use fewer parents or states"
    )
    return variable, parents


def _shape(variable: Variable, parents: Sequence[Variable]) -> tuple[int, ...]:
    return (*(p.card for p in parents), variable.card)


def _settings(parents: Sequence[Variable]) -> list[tuple[tuple[int, ...], tuple[State, ...]]]:
    """Every setting of the parents as (codes, states), the last parent running fastest."""
    codes = product(*(range(p.card) for p in parents))
    states = product(*(p.states for p in parents))
    return list(zip(codes, states, strict=True))


def _array_from_numbers(variable: Variable, parents: Sequence[Variable], table: Any) -> Array:
    shape = _shape(variable, parents)
    axes = ", ".join([*(p.name for p in parents), variable.name])
    try:
        array = np.array(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(
            f"CPT {variable.name!r}: the table is not an array of numbers of shape {shape} (axes {axes})"
        ) from None
    if array.shape != shape:
        rows = int(np.prod(shape[:-1]))
        hint = ""
        if parents and array.shape == (variable.card, rows) and array.shape != (rows, variable.card):
            hint = "; the child's axis comes last here: transpose it, then reshape"
        elif array.size == rows * variable.card:
            hint = f"; reshape({', '.join(map(str, shape))}) gives it that shape"
        raise ModelError(
            f"CPT {variable.name!r}: expected a table of shape {shape} (axes {axes}), found {array.shape}{hint}"
        )
    return array


def _array_from_mapping(variable: Variable, parents: Sequence[Variable], table: Mapping[Any, Any]) -> Array:
    if not parents:
        row = table[()] if () in table else table
        return _row(variable, parents, (), row)
    array = np.empty(_shape(variable, parents))
    given: set[tuple[int, ...]] = set()
    for key, row in table.items():
        index = _row_index(variable, parents, key)
        if index in given:
            raise ModelError(f"{_row_name(variable, parents, index)}: given twice")
        given.add(index)
        array[index] = _row(variable, parents, index, row)
    expected = int(np.prod(array.shape[:-1]))
    if len(given) < expected:
        missing = [states for index, states in _settings(parents) if index not in given]
        shown = ", ".join(_key_text(states) for states in missing[:5])
        more = f", … ({len(missing)} in all)" if len(missing) > 5 else ""
        raise ModelError(
            f"CPT {variable.name!r}: missing rows for {', '.join(p.name for p in parents)} = {shown}{more}"
        )
    return array


def _row_index(variable: Variable, parents: Sequence[Variable], key: Any) -> tuple[int, ...]:
    states = key if isinstance(key, tuple) else (key,)
    names = ", ".join(p.name for p in parents)
    if len(states) != len(parents):
        raise ModelError(
            f"CPT {variable.name!r}: row {key!r} names {len(states)} states; expected {len(parents)}, one for each of {names}"
        )
    index = []
    for parent, state in zip(parents, states, strict=True):
        code = parent.find(state)
        if code is None:
            raise ModelError(f"CPT {variable.name!r}: extra row {_key_text(states)}: {parent.unknown(state)}")
        index.append(code)
    return tuple(index)


def _row(variable: Variable, parents: Sequence[Variable], index: tuple[int, ...], row: Any) -> Array:
    """One row as an array, from a mapping by state or from numbers in the order of the states."""
    if isinstance(row, Mapping):
        values = [None] * variable.card
        for state, value in row.items():
            code = variable.find(state)
            if code is None:
                raise ModelError(f"{_row_name(variable, parents, index)}: {variable.unknown(state)}")
            values[code] = value
        if None in values:
            missing = [variable.states[code] for code, value in enumerate(values) if value is None]
            raise ModelError(f"{_row_name(variable, parents, index)}: no entry for {_key_text(missing)}")
        row = values
    try:
        array = np.array(row, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{_row_name(variable, parents, index)}: expected numbers, found {row!r}") from None
    if array.shape != (variable.card,):
        found = f"{len(array)} entries" if array.ndim == 1 else f"an array of shape {array.shape}"
        raise ModelError(
            f"{_row_name(variable, parents, index)}: expected {variable.card} entries "
            f"({_key_text(variable.states)}), found {found}"
        )
    return array


def _mapping_from_frame(variable: Variable, parents: Sequence[Variable], frame: Any) -> dict[Any, Any]:
    """A DataFrame as `to_frame` makes it (levels in any order if they are named) as a mapping of mappings."""
    names = [p.name for p in parents]
    levels = list(frame.index.names)
    if parents and all(level is not None for level in levels) and levels != names:
        if sorted(map(str, levels)) != sorted(names):
            raise ModelError(f"CPT {variable.name!r}: expected index levels {names}, found {levels}")
        frame = frame.reorder_levels(names)
    rows = [dict(zip(frame.columns, values, strict=True)) for values in frame.to_numpy().tolist()]
    if not parents:
        if len(rows) != 1:
            raise ModelError(f"CPT {variable.name!r}: expected one row, as it has no parents, found {len(rows)}")
        return {(): rows[0]}
    keys = list(frame.index)
    if len(set(keys)) != len(keys):
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise ModelError(f"CPT {variable.name!r}: row {twice!r} given twice")
    return dict(zip(keys, rows, strict=True))


def _checked_rows(variable: Variable, parents: Sequence[Variable], table: Array) -> Array:
    """`table` if every row is a distribution, renormalised where rounding explains it; else ModelError."""
    sums = table.sum(axis=-1)
    off = np.abs(sums - 1.0).max()
    if off <= EXACT and table.min() >= 0:  # NaN and infinity fail the first comparison
        return table
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0)))
    if len(bad):
        *index, code = (int(i) for i in bad[0])
        value = table[tuple(bad[0])]
        raise ModelError(
            f"{_row_name(variable, parents, tuple(index))}: the entry for {variable.states[code]!r} is {value}; "
            "expected a probability"
        )
    wrong = np.argwhere(np.abs(sums - 1.0) > ROUNDED)
    if len(wrong):
        index = tuple(int(i) for i in wrong[0])
        more = f" (and {len(wrong) - 1} more rows)" if len(wrong) > 1 else ""
        raise ModelError(f"{_row_name(variable, parents, index)}: sums to {sums[index]:.9g}, expected 1{more}")
    return np.asarray(np.where(np.abs(sums - 1.0)[..., None] > EXACT, table / sums[..., None], table))


def _row_name(variable: Variable, parents: Sequence[Variable], index: tuple[int, ...]) -> str:
    if not parents:
        return f"CPT {variable.name!r}"
    setting = ", ".join(f"{p.name}={p.states[code]}" for p, code in zip(parents, index, strict=True))
    return f"CPT {variable.name!r}, row {setting}"


def _key_text(states: Sequence[object]) -> str:
    return "(" + ", ".join(str(state) for state in states) + ")"


def _positive(variable: Variable) -> int:
    """The code of the state of a binary variable that means that it holds."""
    if set(variable.states) == {0, 1}:  # also {False, True}
        return variable.states.index(1)
    return 0
