"""CPT: a conditional probability table P(variable | parents), checked when it is made.

The array has one axis per parent, in their order, and the variable's own axis last, so each row along the
last axis is a distribution. `bbn.model.table_input` reads and checks what a user may write for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from bbn.core.budget import MAX_AXES, require_table
from bbn.core.display import Table, Tabular
from bbn.core.errors import ModelError
from bbn.core.frozen import Array, Frozen, read_only
from bbn.core.keywords import keywords_checked
from bbn.model.factor import Factor
from bbn.model.holding_state import require_family, told_holding_code
from bbn.model.previous import table_parents
from bbn.model.table_input import by_parent, read_table, require_chances, row_name, settings, shape_of
from bbn.model.variable import Continuous, State, Variable

if TYPE_CHECKING:
    import pandas as pd


SURELY_SMALL = 1 << 16
"""Tables of at most this many cells are made without asking for the memory limit."""


@runtime_checkable
class Conditional(Protocol):
    """What a network is made of: a variable given its parents. A CPT is the first kind, a Gaussian the second."""

    @property
    def variable(self) -> Variable:
        """The child."""

    @property
    def parents(self) -> tuple[Variable, ...]:
        """Its parents, in order."""


class CPT(Tabular, Frozen, cached=("_hash",)):
    """The conditional probability table of `variable` given `parents`.

    Parameters
    ----------
    variable
        The child.
    parents
        Its parents; their order is the order of the table's axes. In a dynamic network `Previous("Rain")` is the
        variable one slice earlier.
    table
        One of: an array with an axis per parent and the variable's own axis last; a mapping from a tuple of the
        parents' states (a bare state where there is one parent) to a row; a DataFrame as `to_frame` makes it. A
        row is a list of probabilities in the order of the states, or a mapping from state to probability.
        Without parents the table is a single row.

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

    @keywords_checked
    def __init__(self, variable: Variable, parents: Sequence[Variable] = (), table: Any = None) -> None:
        variable, parents = _checked_family(variable, table_parents(variable, parents, table))
        if table is None:
            raise ModelError(f"CPT {variable.name!r}: no table given; CPT.uniform makes one")
        array = read_only(read_table(variable, parents, table))
        self._set(variable=variable, parents=parents, table=array, _hash=None)

    @classmethod
    def trusted(cls, variable: Variable, parents: tuple[Variable, ...], table: Array) -> CPT:
        """A CPT from parts known to be right; `table` is not copied and becomes read-only.

        Parameters
        ----------
        variable : Variable
            The child.
        parents : tuple of Variable
            Its parents, in the order of the axes.
        table : ndarray
            An axis per parent and the variable's own axis last, rows summing to 1.

        Returns
        -------
        CPT
            The table, unchecked.
        """
        cpt = cls.__new__(cls)
        cpt._set(variable=variable, parents=parents, table=read_only(table), _hash=None)
        return cpt

    @classmethod
    @keywords_checked
    def uniform(cls, variable: Variable, parents: Sequence[Variable] = ()) -> CPT:
        """Every state equally probable, whatever the parents.

        Parameters
        ----------
        variable : Variable
            The child.
        parents : sequence of Variable, default ()
            Its parents, in the order of the axes.

        Returns
        -------
        CPT
            The table.

        See Also
        --------
        deterministic, noisy_or : Other tables made by rule.

        Examples
        --------
        >>> CPT.uniform(Variable("Coin", ["heads", "tails"])).table
        array([0.5, 0.5])
        """
        variable, parents = _checked_family(variable, parents)
        return cls.trusted(variable, parents, np.full(shape_of(variable, parents), 1.0 / variable.card))

    @classmethod
    @keywords_checked
    def deterministic(
        cls, variable: Variable, parents: Sequence[Variable], function: Callable[..., State]
    ) -> CPT:
        """The state that `function` gives for the parents' states has probability 1.

        Parameters
        ----------
        variable : Variable
            The child.
        parents : sequence of Variable
            Its parents, in the order of the axes.
        function : callable
            Takes one state per parent, in their order, and gives a state of the variable.

        Returns
        -------
        CPT
            A table of zeros and ones.

        Raises
        ------
        EvidenceError
            The function gives something that is not a state.

        See Also
        --------
        noisy_or : Causes that may fail.

        Examples
        --------
        >>> a, b = Variable("A", [False, True]), Variable("B", [False, True])
        >>> CPT.deterministic(Variable("Both", [False, True]), [a, b], lambda a, b: a and b).row(True, True)
        {False: 0.0, True: 1.0}
        """
        variable, parents = _checked_family(variable, parents)
        table = np.zeros(shape_of(variable, parents))
        for index, states in settings(parents):
            result = function(*states)
            code = variable.find(result)
            if code is None:
                raise ModelError(f"{row_name(variable, parents, index)}: {variable.unknown(result)}")
            table[(*index, code)] = 1.0
        return cls.trusted(variable, parents, table)

    @classmethod
    @keywords_checked
    def noisy_or(
        cls,
        variable: Variable,
        parents: Sequence[Variable],
        probabilities: Mapping[str, float] | Sequence[float],
        leak: float = 0.0,
        holds: Mapping[str, State] | State | None = None,
    ) -> CPT:
        """Each parent that holds causes the variable with its own probability, independently (Pearl 1988, 4.3.2).

        P(variable does not hold) = (1 − leak) ∏ (1 − p_i) over the parents that hold. All variables are binary;
        which state means "holds" is known from the words, in any order and any capitals: yes/no, true/false, 1/0,
        present/absent, positive/negative, on/off. For other words `holds` must say it.

        Parameters
        ----------
        variable : Variable
            The child, binary.
        parents : sequence of Variable
            Its causes, binary.
        probabilities : mapping or sequence of float
            Each parent's probability of causing the variable: by name, or in the parents' order.
        leak : float, default 0.0
            The probability that the variable holds without any cause.
        holds : mapping or state, optional
            The state that means "holds": by variable's name, or one for all.

        Returns
        -------
        CPT
            The full table.

        Raises
        ------
        ModelError
            A variable is not binary, a probability is not between 0 and 1, or the words do not tell which state holds.

        See Also
        --------
        deterministic : Causes that never fail.

        Examples
        --------
        >>> cold, flu = Variable("Cold", ["yes", "no"]), Variable("Flu", ["yes", "no"])
        >>> fever = CPT.noisy_or(Variable("Fever", ["yes", "no"]), [cold, flu], {"Cold": 0.4, "Flu": 0.8})
        >>> round(fever.row("yes", "yes")["yes"], 12)
        0.88
        """
        variable, parents = _checked_family(variable, parents)
        for v in (variable, *parents):
            if v.card != 2:
                raise ModelError(
                    f"CPT {variable.name!r}: noisy-or needs binary variables, {v.name!r} has {v.card} states"
                )
        given = by_parent("noisy-or", variable, parents, probabilities)
        require_chances("noisy-or", variable, parents, given, leak)
        require_family(f"noisy-or {variable.name!r}", holds, variable, parents)
        codes = {v.name: told_holding_code(v, holds) for v in (variable, *parents)}
        own = codes[variable.name]
        table = np.empty(shape_of(variable, parents))
        for index, _ in settings(parents):
            fails = 1.0 - leak
            for parent, code, p in zip(parents, index, given, strict=True):
                if code == codes[parent.name]:
                    fails *= 1.0 - p
            table[(*index, own)] = 1.0 - fails
            table[(*index, 1 - own)] = fails
        return cls.trusted(variable, parents, table)

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: the rows times one less than the states."""
        return self.table.size // self.variable.card * (self.variable.card - 1)

    @property
    def n_entries(self) -> int:
        """How many numbers it is made of."""
        return int(self.table.size)

    def factor(self) -> Factor:
        """The table as a factor over (\\*parents, variable)."""
        return Factor.trusted((*self.parents, self.variable), self.table)

    def row(self, *states: State) -> dict[State, float]:
        """The distribution for these states of the parents, in their order.

        Parameters
        ----------
        *states
            One state per parent, in their order.

        Returns
        -------
        dict
            State of the variable to probability.

        Raises
        ------
        EvidenceError
            A state is unknown, or there are too few or too many.
        """
        if len(states) != len(self.parents):
            raise ModelError(f"CPT {self.name!r} has {len(self.parents)} parents, found {len(states)} states")
        index = tuple(p.code(s) for p, s in zip(self.parents, states, strict=True))
        return dict(zip(self.variable.states, self.row_at(index).tolist(), strict=True))

    def row_at(self, codes: Sequence[int]) -> Array:
        """The distribution for these codes of the parents, in their order, as an array.

        Parameters
        ----------
        codes : sequence of int
            The position of each parent's state among its states.

        Returns
        -------
        ndarray
            One probability per state of the variable.
        """
        return self._row(codes)

    def _row(self, codes: Sequence[int]) -> Array:
        return np.asarray(self.table[tuple(codes)])

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

    def __repr__(self) -> str:
        given = f" | {', '.join(p.name for p in self.parents)}" if self.parents else ""
        return f"<CPT P({self.name}{given}), shape {self.table.shape}>"

    def _table(self) -> Table:
        given = f" | {', '.join(p.name for p in self.parents)}" if self.parents else ""
        head = [*(p.name for p in self.parents), *map(str, self.variable.states)]
        rows = [
            [*map(str, states), *(f"{x:.6g}" for x in self.table[index].tolist())]
            for index, states in settings(self.parents)
        ]
        return Table(head, rows, f"P({self.name}{given})")


def _checked_family(variable: Variable, parents: Sequence[Variable]) -> tuple[Variable, tuple[Variable, ...]]:
    if not isinstance(variable, Variable):
        raise ModelError(
            f"a CPT's variable must be a Variable, found {variable!r} ({type(variable).__name__})"
        )
    if isinstance(variable, Continuous):
        raise ModelError(f"CPT {variable.name!r}: a continuous variable has no table; use bbn.Gaussian")
    parents = checked_parents(variable, parents)
    for parent in parents:
        if isinstance(parent, Continuous):
            raise ModelError(discrete_child(variable.name, parent.name))
    shape = shape_of(variable, parents)
    if math.prod(shape) > SURELY_SMALL or len(shape) > MAX_AXES:
        require_table(list(shape), f"CPT {variable.name!r}", "use fewer parents or states")
    return variable, parents


def checked_parents(
    variable: Variable, parents: Sequence[Variable], kind: str = "CPT"
) -> tuple[Variable, ...]:
    """The parents as a tuple of Variables, none twice and none the variable itself."""
    if isinstance(parents, Variable | str) or not isinstance(parents, Iterable):
        raise ModelError(f"{kind} {variable.name!r}: parents must be a list of Variables, found {parents!r}")
    parents = tuple(parents)
    if not all(isinstance(parent, Variable) for parent in parents):  # a Decision stands for its variable
        parents = tuple(getattr(parent, "variable", parent) for parent in parents)
    seen = {variable.name}
    for parent in parents:
        if not isinstance(parent, Variable):
            raise ModelError(
                f"{kind} {variable.name!r}: a parent must be a Variable, found {parent!r} ({type(parent).__name__})"
            )
        if parent.name in seen:
            problem = (
                "is its own parent"
                if parent.name == variable.name
                else f"has the parent {parent.name!r} twice"
            )
            raise ModelError(f"{kind} {variable.name!r} {problem}")
        seen.add(parent.name)
    return parents


def discrete_child(child: str, parent: str) -> str:
    """What to tell the user about a discrete variable with a continuous parent."""
    return (
        f"CPT {child!r}: its parent {parent!r} is continuous; a discrete variable cannot have a continuous parent, "
        "because posteriors would no longer be mixtures of Gaussians; turn the arc around, or make the parent "
        "discrete with bbn.discretize"
    )
