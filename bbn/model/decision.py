"""Decision and Utility: what a decision network has besides conditionals.

A decision is a variable that somebody sets, knowing what it observes. A utility says what each setting of its parents
is worth; several of them add up. A utility of utilities adds (with weights) or multiplies them instead (an additive or
multiplicative utility function; Keeney and Raiffa 1976, chapter 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.budget import require_table
from bbn.core.display import Table, Tabular
from bbn.core.errors import ModelError, nearest, shown
from bbn.core.frozen import Array, Frozen, numbers, read_only
from bbn.core.keywords import keywords_checked
from bbn.model.table_input import indexed_rows, settings
from bbn.model.variable import Continuous, State, Variable, checked_name

if TYPE_CHECKING:
    import pandas as pd

COMBINE = ("sum", "product")
"""How a utility of utilities puts them together."""


class Decision(Frozen):
    """A decision: its choices, and what is known when it is made.

    Parameters
    ----------
    name
        Any non-empty string.
    states
        The choices, at least one, each a str, an int or a bool, all of one kind.
    observes
        What is known when the decision is made: the names of chance variables and earlier decisions (or these
        themselves). Their order is the order of the policy's keys.

    >>> drill = Decision("Drill", ["yes", "no"], observes=["Seismic"])
    >>> drill.states, drill.observes
    (('yes', 'no'), ('Seismic',))

    See Also
    --------
    Utility, bbn.DecisionNetwork
    """

    __slots__ = ("observes", "variable")

    variable: Variable
    """The variable that the decision sets; a Decision stands for it wherever a parent is asked for."""
    observes: tuple[str, ...]

    @keywords_checked
    def __init__(self, name: str, states: Sequence[State], observes: Iterable[Any] = ()) -> None:
        variable = Variable(name, states)
        if isinstance(observes, str | Mapping | set | frozenset) or not isinstance(observes, Iterable):
            raise ModelError(
                f"decision {variable.name!r}: observes must be a list of names, found {shown(observes)}"
            )
        names = tuple(
            checked_name(getattr(seen, "name", seen), f"decision {variable.name!r}: what it observes")
            for seen in observes
        )
        for i, seen in enumerate(names):
            if seen == variable.name:
                raise ModelError(f"decision {seen!r} observes itself")
            if seen in names[:i]:
                raise ModelError(f"decision {variable.name!r} observes {seen!r} twice")
        self._set(variable=variable, observes=names)

    @property
    def name(self) -> str:
        """The decision's name."""
        return self.variable.name

    @property
    def states(self) -> tuple[State, ...]:
        """The choices."""
        return self.variable.states

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return self.variable == other.variable and self.observes == other.observes

    def __hash__(self) -> int:
        return hash((self.variable, self.observes))

    def __repr__(self) -> str:
        seen = f", observes={list(self.observes)!r}" if self.observes else ""
        return f"Decision({self.name!r}, {list(self.states)!r}{seen})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Decision, (self.name, self.states, self.observes)


class Utility(Tabular, Frozen):
    """What each setting of the parents is worth.

    Parameters
    ----------
    name
        Any non-empty string.
    parents
        Chance variables and decisions; or utilities, which are put together as `combine` says.
    table
        A number for each setting of the discrete parents: an array with one axis per parent, in their order, or a
        mapping from a tuple of their states (a bare state where there is one parent) to a number. Without parents, a
        number. A utility of utilities has none.
    combine
        How a utility of utilities puts them together: "sum" or "product".
    weights
        What a unit of each continuous parent is worth, one number for each or an array (\\*discrete parents, continuous
        parents); of a sum of utilities, the weight of each (1).

    >>> oil, drill = Variable("Oil", ["wet", "dry"]), Decision("Drill", ["yes", "no"])
    >>> profit = Utility("Profit", [oil, drill], [[90, 0], [-10, 0]])
    >>> profit.value("wet", "yes")
    90.0
    >>> cost = Utility("Cost", [drill], {"yes": -5, "no": 0})
    >>> Utility("Total", [profit, cost], combine="sum")
    <Utility Total = Profit + Cost>

    See Also
    --------
    Decision, bbn.DecisionNetwork
    """

    __slots__ = ("combine", "name", "parents", "table", "weights")

    name: str
    parents: tuple[Any, ...]
    """Variables, or Utilities where `combine` is set."""
    table: Array
    """One axis per discrete parent; without cells for a utility of utilities."""
    combine: str | None
    weights: Array
    """Of continuous parents, shape (\\*discrete parents, continuous parents); of a sum, one per utility."""

    @keywords_checked
    def __init__(
        self,
        name: str,
        parents: Sequence[Any] = (),
        table: Any = None,
        *,
        combine: str | None = None,
        weights: Any = None,
    ) -> None:
        name = checked_name(name, "a utility's name")
        parents = _parents(name, parents)
        if parents and isinstance(parents[0], Utility):
            table, combine, weights = _combination(name, parents, table, combine, weights)
        else:
            if combine is not None:
                raise ModelError(f"utility {name!r}: combine= is for utilities of utilities")
            table, weights = _numbers(name, parents, table, weights)
        self._set(
            name=name, parents=parents, table=read_only(table), combine=combine, weights=read_only(weights)
        )

    @property
    def discrete_parents(self) -> tuple[Variable, ...]:
        """The parents that have states: the axes of the table."""
        return tuple(p for p in self.parents if isinstance(p, Variable) and not isinstance(p, Continuous))

    @property
    def continuous_parents(self) -> tuple[Variable, ...]:
        """The parents whose values are numbers; the utility is linear in each."""
        return tuple(p for p in self.parents if isinstance(p, Continuous))

    def value(self, *states: State) -> float:
        """The worth of these states of the discrete parents, continuous ones being 0.

        Parameters
        ----------
        *states : state
            One per discrete parent, in their order.

        Returns
        -------
        float
            The entry of the table.

        Raises
        ------
        ModelError
            It is a utility of utilities, or there are too few or too many states.
        """
        own = self.discrete_parents
        if self.combine is not None:
            raise ModelError(f"utility {self.name!r} is a {self.combine} of utilities and has no table")
        if len(states) != len(own):
            raise ModelError(f"utility {self.name!r} has {len(own)} parents, found {len(states)} states")
        return float(self.table[tuple(p.code(s) for p, s in zip(own, states, strict=True))])

    def to_frame(self) -> pd.DataFrame:
        """One row per setting of the discrete parents: a column each, and the column "utility"."""
        from bbn.model.factor import cells_frame

        return cells_frame(self.discrete_parents, self.table, "utility")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Utility):
            return NotImplemented
        return (
            (self.name, self.parents, self.combine) == (other.name, other.parents, other.combine)
            and np.array_equal(self.table, other.table)
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        arrays = (self.table + 0.0).tobytes(), (self.weights + 0.0).tobytes()
        return hash((self.name, self.parents, self.combine, arrays))

    def __repr__(self) -> str:
        names = [p.name for p in self.parents]
        if self.combine is None:
            return f"<Utility {self.name}({', '.join(names)})>"
        if self.combine == "sum":
            shares = ["" if w == 1 else f"{w:g} " for w in self.weights.tolist()]
            names = [share + own for share, own in zip(shares, names, strict=True)]
        return f"<Utility {self.name} = {' + '.join(names) if self.combine == 'sum' else ' × '.join(names)}>"

    def _table(self) -> Table:
        if self.combine is not None:
            return Table(["utility"], [[repr(self)]])
        own, numeric = self.discrete_parents, self.continuous_parents
        head = [*(p.name for p in own), self.name, *(f"per unit of {p.name}" for p in numeric)]
        rows = [
            [*map(str, states), f"{self.table[index]:.6g}", *(f"{w:.6g}" for w in self.weights[index])]
            for index, states in settings(own)
        ]
        return Table(head, rows)

    def __reduce__(self) -> tuple[Any, ...]:
        table = self.table if self.combine is None else None
        weighted = self.combine == "sum" or bool(self.continuous_parents)
        return _remade, (self.name, self.parents, table, self.combine, self.weights if weighted else None)


def _remade(name: str, parents: Any, table: Any, combine: Any, weights: Any) -> Utility:
    return Utility(name, parents, table, combine=combine, weights=weights)


def _parents(name: str, parents: Any) -> tuple[Any, ...]:
    """Variables (those of decisions and conditionals for these), or utilities; none twice, none the utility itself."""
    if isinstance(parents, Variable | Utility | Decision | str) or not isinstance(parents, Iterable):
        raise ModelError(
            f"utility {name!r}: parents must be a list of Variables and Decisions, found {shown(parents)}"
        )
    found: list[Any] = []
    for given in parents:
        parent = getattr(given, "variable", given)
        if not isinstance(parent, Variable | Utility):
            raise ModelError(
                f"utility {name!r}: a parent must be a Variable, a Decision or a Utility, "
                f"found {shown(given)} ({type(given).__name__})"
            )
        if parent.name == name:
            raise ModelError(f"utility {name!r} is its own parent")
        if parent.name in [other.name for other in found]:
            raise ModelError(f"utility {name!r} has the parent {parent.name!r} twice")
        found.append(parent)
    if len({isinstance(parent, Utility) for parent in found}) > 1:
        raise ModelError(f"utility {name!r} mixes utilities and variables among its parents; use one kind")
    return tuple(found)


def _combination(
    name: str, parents: tuple[Any, ...], table: Any, combine: str | None, weights: Any
) -> tuple[Array, str, Array]:
    if table is not None:
        raise ModelError(f"utility {name!r} is made of utilities; it takes combine=, not a table")
    if combine not in COMBINE:
        raise ModelError(f"utility {name!r}: combine is {shown(combine)}{nearest(combine, COMBINE)}")
    if combine == "product" and weights is not None:
        raise ModelError(f"utility {name!r}: a product of utilities has no weights")
    given = np.ones(len(parents)) if weights is None else _array(name, weights, "weights")
    if given.shape != (len(parents),):
        raise ModelError(
            f"utility {name!r}: expected {len(parents)} weights, one for each of "
            f"{', '.join(p.name for p in parents)}, found shape {given.shape}"
        )
    return np.empty(0), combine, given


def _numbers(name: str, parents: tuple[Variable, ...], table: Any, weights: Any) -> tuple[Array, Array]:
    own = tuple(p for p in parents if not isinstance(p, Continuous))
    shape, n_numbers = tuple(p.card for p in own), len(parents) - len(own)
    if table is None:
        raise ModelError(f"utility {name!r}: no table given")
    require_table(list(shape), f"the table of utility {name!r}", "use fewer parents or states")
    if isinstance(table, Mapping):
        array = np.empty(shape)
        label = Variable(name, ["utility"])
        rows = [((), table[()])] if not own and () in table else indexed_rows(label, own, table, "utility")
        for index, value in rows:
            array[index] = _array(name, value, "an entry", ())
    else:
        array = _array(name, table, "the table", shape)
    slopes = _array(name, np.empty(0) if weights is None else weights, "weights")
    if n_numbers and slopes.size == n_numbers:
        slopes = np.broadcast_to(slopes.reshape(n_numbers), (*shape, n_numbers)).copy()
    if slopes.size != array.size * n_numbers:
        raise ModelError(
            f"utility {name!r}: expected weights for {n_numbers} continuous parents, of shape "
            f"{(*shape, n_numbers)}, found {slopes.shape if weights is not None else 'none'}"
        )
    return array, slopes.reshape(*shape, n_numbers)


def _array(name: str, values: Any, what: str, shape: tuple[int, ...] | None = None) -> Array:
    try:
        array = numbers(values)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"utility {name!r}: {what} must be numbers, found {shown(values)}") from None
    if shape is not None and array.shape != shape:
        raise ModelError(f"utility {name!r}: expected {what} of shape {shape}, found {array.shape}")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)].flat[0]
        raise ModelError(f"utility {name!r}: {what} holds {bad}; expected finite numbers")
    return array
