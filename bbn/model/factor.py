"""Factor: a non-negative array whose axes are variables, and the algebra of such arrays.

A product of factors aligns axes by variable (Koller and Friedman 2009, definition 4.2); summing out an axis
marginalises, restricting it slices, and products distribute over sums, which is all that exact inference uses.
A product costs one multiplication per cell of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bbn.core.budget import require_memory, require_table
from bbn.core.display import Table, Tabular
from bbn.core.errors import EvidenceError, ModelError, nearest
from bbn.core.frozen import Array, Frozen, numbers, read_only
from bbn.model.variable import Continuous, State, Variable

if TYPE_CHECKING:
    import pandas as pd


FEW_CELLS = 10_000
"""Up to this many cells, what is made of an array is not checked against the memory limit."""
DICT_BYTES = 140
"""What an entry of a dictionary takes."""
TEXT_BYTES = 700
"""What a line of text takes, with its cells."""


class Factor(Tabular, Frozen):
    """A table of non-negative numbers over variables.

    Parameters
    ----------
    variables
        One variable per axis, no two of the same name; none makes a scalar.
    values
        Shape: one axis per variable, as long as it has states. Copied.

    >>> a, b = Variable("A", ["y", "n"]), Variable("B", ["y", "n"])
    >>> joint = Factor([a], [0.2, 0.8]) * Factor([a, b], [[0.9, 0.1], [0.5, 0.5]])
    >>> joint.sum_out("A")
    Factor(B: y=0.58, n=0.42)
    """

    __slots__ = ("values", "variables")

    variables: tuple[Variable, ...]
    values: Array

    def __init__(self, variables: Sequence[Variable], values: ArrayLike) -> None:
        variables = _checked_variables(variables)
        shape = tuple(v.card for v in variables)
        require_table(list(shape), _describe(variables))
        try:
            array = numbers(values)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{_describe(variables)}: values are not an array of numbers ({error})"
            ) from None
        if array.shape != shape:
            raise ModelError(f"{_describe(variables)}: expected values of shape {shape}, found {array.shape}")
        if array.size and not (array.min() >= 0 and array.max() < np.inf):
            bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))[0]
            where = ", ".join(f"{v.name}={v.states[i]}" for v, i in zip(variables, bad, strict=True))
            raise ModelError(
                f"{_describe(variables)}: entry {where or 'of the scalar'} is {array[tuple(bad)]}; "
                "expected a finite number, not negative"
            )
        self._set(variables=variables, values=read_only(array))

    @classmethod
    def trusted(cls, variables: tuple[Variable, ...], values: Array) -> Self:
        """A factor from parts known to fit; `values` is not copied and becomes read-only.

        Parameters
        ----------
        variables : tuple of Variable
            One per axis.
        values : ndarray
            One axis per variable, as long as it has states.

        Returns
        -------
        Factor
            The factor, unchecked.
        """
        factor = cls.__new__(cls)
        factor._set(variables=variables, values=read_only(values))
        return factor

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, one per axis."""
        return tuple(v.name for v in self.variables)

    def __mul__(self, other: Factor) -> Factor:
        if not isinstance(other, Factor):
            return NotImplemented
        variables, left, right = aligned(self, other, "product")
        return Factor.trusted(variables, np.asarray(left * right))

    def __truediv__(self, other: Factor) -> Factor:
        """The quotient, with 0/0 = 0; anything else over 0 is a ModelError."""
        if not isinstance(other, Factor):
            return NotImplemented
        variables, left, right = aligned(self, other, "quotient")
        left, right = np.broadcast_arrays(left, right)
        if np.any((right == 0) & (left != 0)):
            raise ModelError(f"{_describe(variables)}: division of a positive entry by zero")
        return Factor.trusted(variables, np.divide(left, right, out=np.zeros(left.shape), where=right != 0))

    def sum_out(self, names: str | Iterable[str]) -> Self:
        """The factor with these variables summed away.

        Parameters
        ----------
        names : str or iterable of str
            Variables of the factor.

        Returns
        -------
        Factor
            Over the other variables.

        Raises
        ------
        ModelError
            The factor does not have a variable.

        See Also
        --------
        max_out : The largest entry instead of the sum.
        """
        axes, kept = self._split(names)
        return type(self).trusted(kept, np.asarray(self.values.sum(axis=axes)))

    def max_out(self, names: str | Iterable[str]) -> Self:
        """The factor with these variables maximised away.

        Parameters
        ----------
        names : str or iterable of str
            Variables of the factor.

        Returns
        -------
        Factor
            Over the other variables.

        Raises
        ------
        ModelError
            The factor does not have a variable.

        See Also
        --------
        sum_out : The sum instead of the largest entry.
        """
        axes, kept = self._split(names)
        return type(self).trusted(kept, np.asarray(self.values.max(axis=axes)) if axes else self.values)

    def restrict(self, assignment: Mapping[str, State]) -> Self:
        """The slice in which these variables have these states; their axes go. Other names are ignored.

        Parameters
        ----------
        assignment : mapping
            Variable name to state.

        Returns
        -------
        Factor
            Over the other variables.

        Raises
        ------
        EvidenceError
            A state is unknown.
        """
        index = tuple(
            v.code(assignment[v.name]) if v.name in assignment else slice(None) for v in self.variables
        )
        kept = tuple(v for v in self.variables if v.name not in assignment)
        return type(self).trusted(kept, np.array(self.values[index]))

    def normalise(self) -> Factor:
        """The factor divided by its sum; ModelError if that is zero."""
        total = self.values.sum()
        if not total > 0:
            raise ModelError(f"{_describe(self.variables)} is zero everywhere and cannot be normalised")
        return Factor.trusted(self.variables, np.asarray(self.values / total))

    def permute(self, names: Sequence[str]) -> Self:
        """The same factor with its axes in the order of `names`.

        Parameters
        ----------
        names : sequence of str
            All of the factor's variables, in the order wanted.

        Returns
        -------
        Factor
            The same values with other axes.

        Raises
        ------
        ModelError
            A name is unknown, missing or given twice.
        """
        if sorted(names) != sorted(self.names):
            raise ModelError(f"{_describe(self.variables)}: cannot permute its axes to {list(names)}")
        axes = [self.names.index(name) for name in names]
        return type(self).trusted(tuple(self.variables[axis] for axis in axes), self.values.transpose(axes))

    def __getitem__(self, states: State | tuple[State, ...]) -> float:
        """The entry for these states, one per axis, by label."""
        wanted = states if isinstance(states, tuple) else (states,)
        if len(wanted) != len(self.variables):
            raise EvidenceError(
                f"{_describe(self.variables)} needs {len(self.variables)} states, found {len(wanted)}"
            )
        return float(self.values[tuple(v.code(s) for v, s in zip(self.variables, wanted, strict=True))])

    def to_dict(self) -> dict[Any, float]:
        """State, or tuple of states where there are several axes, to entry."""
        return labelled(self.variables, self.values)

    def to_frame(self) -> pd.DataFrame:
        """One row per cell: a column per variable, and the column "value"."""
        return cells_frame(self.variables, self.values, "value")

    def __repr__(self) -> str:
        if len(self.variables) == 1:
            v = self.variables[0]
            shown = [f"{s}={x:.6g}" for s, x in zip(v.states[:8], self.values[:8], strict=True)]
            return f"Factor({v.name}: {', '.join(shown)}{', …' if v.card > 8 else ''})"
        if not self.variables:
            return f"Factor({float(self.values):.6g})"
        return f"Factor({', '.join(self.names)}; shape {self.values.shape})"

    def __str__(self) -> str:
        return repr(self)

    def _table(self) -> Table:
        require_cells(self.values.size, TEXT_BYTES, "a table")
        cells = labelled(self.variables, self.values).items()
        states = (key if isinstance(key, tuple) else (key,) for key, _ in cells)
        rows = [[*map(str, key), f"{x:.6g}"] for key, (_, x) in zip(states, cells, strict=True)]
        return Table([*self.names, "value"], rows)

    def _split(self, names: str | Iterable[str]) -> tuple[tuple[int, ...], tuple[Variable, ...]]:
        """The axes of `names`, and the variables that stay."""
        gone = [names] if isinstance(names, str) else list(names)
        for name in gone:
            if name not in self.names:
                raise EvidenceError(
                    f"{_describe(self.variables)} has no variable {name!r}{nearest(name, self.names)}"
                )
        axes = tuple(axis for axis, v in enumerate(self.variables) if v.name in gone)
        return axes, tuple(v for v in self.variables if v.name not in gone)


def labelled(variables: Sequence[Variable], values: Array, most: int | None = None) -> dict[Any, float]:
    """The entries (the first `most`) of a labelled array by state, or by tuple of states where it has several axes."""
    from itertools import islice, product

    if most is not None:
        keys = islice(product(*(v.states for v in variables)), most)
        first = values.flat[:most].tolist()
        return {key if len(variables) != 1 else key[0]: x for key, x in zip(keys, first, strict=True)}
    require_cells(values.size, DICT_BYTES + 8 * len(variables), "a dictionary")
    numbers = values.ravel().tolist()
    if len(variables) == 1:
        return dict(zip(variables[0].states, numbers, strict=True))
    return dict(zip(product(*(v.states for v in variables)), numbers, strict=True))


def require_cells(cells: int, each: int, what: str) -> None:
    """BudgetError if `what`, with an entry of `each` bytes per cell, would not fit; few cells always do."""
    if cells > FEW_CELLS:
        require_memory(cells * each, f"{what} of {cells:,} cells", "`values` is the array itself")


def cells_frame(variables: Sequence[Variable], values: Array, column: str) -> pd.DataFrame:
    """A labelled array as a DataFrame with one row per cell, the last axis running fastest."""
    import pandas as pd

    require_cells(values.size, 8 + 16 * len(variables), "a DataFrame")
    codes = np.indices(values.shape).reshape(len(variables), values.size)
    columns: dict[str, Any] = {
        v.name: pd.Categorical.from_codes(axis, categories=pd.Index(list(v.states)))
        for v, axis in zip(variables, codes, strict=True)
    }
    while column in columns:  # a variable of that name
        column += "_"
    return pd.DataFrame({**columns, column: values.ravel()})


def _checked_variables(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    checked = tuple(variables)
    for v in checked:
        if not isinstance(v, Variable):
            raise ModelError(f"a factor's variables must be Variables, found {v!r} ({type(v).__name__})")
        if isinstance(v, Continuous):
            raise ModelError(f"a factor is a table over states; {v.name!r} is continuous and has none")
    names = [v.name for v in checked]
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ModelError(f"a factor has the variable {twice!r} twice")
    return checked


def aligned(left: Factor, right: Factor, what: str) -> tuple[tuple[Variable, ...], Array, Array]:
    """The union of the variables, left's first, and both arrays as views that broadcast over it."""
    own = {v.name: v for v in left.variables}
    for v in right.variables:
        if own.get(v.name, v) != v:
            raise ModelError(
                f"{what}: variable {v.name!r} has states {own[v.name].states} on one side, {v.states} on the other"
            )
    variables = left.variables + tuple(v for v in right.variables if v.name not in own)
    require_table(
        [v.card for v in variables],
        f"the {what} {_describe(variables)}",
        "sum out variables before multiplying",
    )
    position = {v.name: axis for axis, v in enumerate(variables)}
    order = sorted(range(len(right.variables)), key=lambda axis: position[right.variables[axis].name])
    present = {v.name for v in right.variables}
    shape = [v.card if v.name in present else 1 for v in variables]
    tail = (1,) * (len(variables) - len(left.variables))
    return (
        variables,
        left.values.reshape(left.values.shape + tail),
        right.values.transpose(order).reshape(shape),
    )


def _describe(variables: Sequence[Variable]) -> str:
    names = [v.name for v in variables]
    shown = ", ".join(names[:6]) + (f", … ({len(names)} variables)" if len(names) > 6 else "")
    return f"factor over ({shown})"
