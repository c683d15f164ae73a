"""Factored: a conditional that is a few numbers for each parent, and its full table only when that is asked for.

What the parents bring is put together one parent at a time, so such a conditional is a chain of small tables, linear in
the parents; the engines take the chain (`bbn/model/expansion.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from bbn.core.budget import require_table
from bbn.core.errors import ModelError
from bbn.core.frozen import Array, read_only
from bbn.model.cpt import CPT, checked_parents, discrete_child
from bbn.model.variable import Continuous, Variable


class Factored(CPT, cached=("_made",)):
    """What conditionals without a table have in common.

    Attributes
    ----------
    table : ndarray
        The full table, made when it is asked for; BudgetError where it would not fit.
    """

    __slots__ = ("_made",)

    _made: Array | None

    trusted = CPT.trusted  # a plain table, as all that is made by rule

    def _hold(self, **parts: Any) -> None:
        """Set the parts; nothing is made yet."""
        self._set(**parts, _made=None, _hash=None)

    @property
    def table(self) -> Array:  # type: ignore[override]  # made when it is asked for
        """The full table, an axis per parent and the variable's own last; BudgetError if it would not fit."""
        if self._made is None:
            cards = [v.card for v in (*self.parents, self.variable)]
            what = f"the full table of {type(self).__name__} {self.name!r}"
            instead = (
                'exact queries (method="junction-tree"), `sample`, `fit` and `fit_em` work without it, and YAML and '
                "JSON files keep it as it is"
            )
            require_table(cards, what, instead, copies=2)
            self._set(_made=read_only(np.ascontiguousarray(self._full())))
        assert self._made is not None
        return self._made

    def to_cpt(self) -> CPT:
        """The full table as a CPT; BudgetError if it would not fit.

        Returns
        -------
        CPT
            A row for every setting of the parents.

        Examples
        --------
        >>> from bbn.model.noisy_max import NoisyOr
        >>> rain = Variable("Rain", [False, True])
        >>> NoisyOr(Variable("Wet", [False, True]), [rain], [0.9], leak=0.1).to_cpt().table.round(3)
        array([[0.9 , 0.1 ],
               [0.09, 0.91]])
        """
        return CPT.trusted(self.variable, self.parents, self.table)

    @property
    @abstractmethod
    def chain_cells(self) -> float:
        """The cells of the chain of tables."""

    @abstractmethod
    def steps(self) -> list[Array]:
        """The chain of tables: P(t_1 | x_1), then P(t_i | t_{i−1}, x_i), the last t being the child."""

    def with_family(self, variable: Variable, parents: tuple[Variable, ...]) -> Factored:
        """The same numbers for other variables of as many states.

        Parameters
        ----------
        variable : Variable
            The child.
        parents : tuple of Variable
            Its parents.

        Returns
        -------
        NoisyMax or Deterministic
            The conditional of these variables.
        """
        return self._moved(variable, parents, range(len(parents)))

    def ordered(self, ranked: Sequence[int]) -> Factored:
        """The same with its parents in another order.

        Parameters
        ----------
        ranked : sequence of int
            The places of the parents, in their new order.

        Returns
        -------
        NoisyMax or Deterministic
            The same function of the same variables.
        """
        return self._moved(self.variable, tuple(self.parents[i] for i in ranked), ranked)

    @abstractmethod
    def _moved(self, variable: Variable, parents: tuple[Variable, ...], ranked: Sequence[int]) -> Factored:
        """The numbers of the parents at these places, for these variables."""

    @abstractmethod
    def _full(self) -> Array:
        """The full table."""


def checked_family(
    kind: str, child: Variable, parents: Sequence[Variable]
) -> tuple[Variable, tuple[Variable, ...]]:
    """The child and its parents; ModelError if one of them has no states."""
    if not isinstance(child, Variable) or isinstance(child, Continuous):
        raise ModelError(f"{kind}: the child must be a Variable with states, found {child!r}")
    parents = checked_parents(child, parents, kind)
    for parent in parents:
        if isinstance(parent, Continuous):
            raise ModelError(discrete_child(child.name, parent.name).replace("CPT", kind, 1))
    return child, parents
