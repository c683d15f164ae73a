"""NoisyMax: a conditional whose causes act on their own, and the strongest effect shows (Henrion 1989; Díez 1993).

Each parent x_i gives the child an effect of its own, drawn from its link c_i(· | x_i), and so does a leak that stands
for all that is not in the model. The child is the strongest of these effects:

    P(child ≤ y | x) = leak(≤ y) ∏ c_i(≤ y | x_i)

So n parents take numbers that grow with n, where a table takes a number for every setting of all of them. The exact
engine never makes that table: effects join one parent at a time, m_i = max(m_{i−1}, effect of x_i), a chain of small
tables (temporal form; Heckerman 1993). All of its numbers are sums of products of probabilities, never differences, so
small probabilities keep their digits. Noisy-OR is the case of two states (Pearl 1988, section 4.3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.display import Table
from bbn.core.errors import ModelError
from bbn.core.frozen import Array, read_only
from bbn.core.keywords import keywords_checked
from bbn.model.cpt import checked_parents
from bbn.model.factored import Factored, checked_family
from bbn.model.holding_state import holding_code, require_family, told_holding_code
from bbn.model.table_input import by_parent, read_table, require_chances
from bbn.model.variable import State, Variable


class NoisyMax(Factored, compared=("leak", "links", "parents", "strongest", "variable")):
    """The strongest of the effects that each parent, and a leak, have on a variable.

    Parameters
    ----------
    child : Variable
        The child. Its states go from one end to the other in strength: the last is the strongest, unless `strongest`
        says otherwise; of two states the one that means "holds" is (True, 1, "yes", …, see `CPT.noisy_or`), and where
        the words do not tell, `strongest` must.
    parents : sequence of Variable
        Its causes.
    links : mapping or sequence
        For each parent, by name or in their order, what `CPT` takes as the table of the child given that parent alone:
        an array with a row per state of the parent, or a mapping from state to row. A row is the distribution of the
        effect: a list of probabilities in the order of the child's states, or a mapping from state to probability.
    leak : list or mapping, optional
        The distribution of the effect of all other causes; by default there is none, the weakest state for sure.
    strongest : state, optional
        The strongest state of the child: its first or its last.

    Attributes
    ----------
    variable, parents
        The child, and its parents in order.
    links : tuple of ndarray
        Per parent, shape (states of the parent, states of the child).
    leak : ndarray
        Shape (states of the child,).
    strongest : state
        The state that is the strongest.
    table : ndarray
        The full table, made when it is asked for; BudgetError where it would not fit.

    Raises
    ------
    ModelError
        A link is missing, a row is not a distribution over the child's states, or nothing says which of two states is
        the strongest.

    See Also
    --------
    NoisyOr : Two states, and one probability per parent.
    CPT : A table with a row for every setting of the parents.

    Examples
    --------
    >>> flu, cold = Variable("Flu", ["no", "yes"]), Variable("Cold", ["no", "yes"])
    >>> fever = NoisyMax(
    ...     Variable("Fever", ["none", "mild", "high"]),
    ...     [flu, cold],
    ...     {"Flu": [[1, 0, 0], [0.1, 0.3, 0.6]], "Cold": [[1, 0, 0], [0.5, 0.4, 0.1]]},
    ...     leak=[0.9, 0.1, 0],
    ... )
    >>> {state: round(p, 3) for state, p in fever.row("yes", "yes").items()}
    {'none': 0.045, 'mild': 0.315, 'high': 0.64}
    """

    __slots__ = ("leak", "links", "strongest")

    links: tuple[Array, ...]
    leak: Array
    strongest: State

    @keywords_checked
    def __init__(
        self,
        child: Variable,
        parents: Sequence[Variable],
        links: Mapping[str, Any] | Sequence[Any],
        leak: Any = None,
        *,
        strongest: State | None = None,
    ) -> None:
        kind = type(self).__name__
        child, parents = checked_family(kind, child, parents)
        strong = _strongest(kind, child, strongest)
        weak = child.card - 1 - strong
        given = by_parent(kind, child, parents, links)
        arrays = [
            _link(kind, child, (parent,), own, f"the link of {parent.name!r}")
            for parent, own in zip(parents, given, strict=True)
        ]
        if leak is None:
            none = np.zeros(child.card)
            none[weak] = 1.0
            leak = none
        self._take(child, parents, arrays, _link(kind, child, (), leak, "the leak"), child.states[strong])

    def _take(
        self,
        variable: Variable,
        parents: tuple[Variable, ...],
        links: Sequence[Array],
        leak: Array,
        strongest: State,
    ) -> None:
        held = tuple(map(read_only, links))
        self._hold(variable=variable, parents=parents, links=held, leak=read_only(leak), strongest=strongest)

    @classmethod
    def made(
        cls,
        variable: Variable,
        parents: tuple[Variable, ...],
        links: Sequence[Array],
        leak: Array,
        strongest: State,
    ) -> NoisyMax:
        """A NoisyMax from parts known to be right; the arrays are not copied and become read-only.

        Parameters
        ----------
        variable : Variable
            The child.
        parents : tuple of Variable
            Its causes.
        links : sequence of ndarray
            Per parent, shape (states of the parent, states of the child).
        leak : ndarray
            Shape (states of the child,).
        strongest : state
            The first or the last state of the child.

        Returns
        -------
        NoisyMax
            The conditional, unchecked.
        """
        noisy = cls.__new__(cls)
        noisy._take(variable, parents, links, leak, strongest)
        return noisy

    def _full(self) -> Array:
        effects = self._weak_to_strong(self.leak)
        for link in self.links:
            effects = joined(effects[..., None, :], self._weak_to_strong(link))
        return self._weak_to_strong(effects)

    @property
    def rows(self) -> Array:
        """All rows, shape (rows, states of the child): those of each link, in the parents' order, then the leak."""
        return read_only(np.concatenate([*self.links, self.leak[None]]))

    @property
    def n_parameters(self) -> int:
        """The free parameters: one less than the child's states per row of a link or leak that has an effect."""
        return int((self.rows[:, self.weakest_code] < 1).sum()) * (self.variable.card - 1)

    def row_name(self, row: int, code: int) -> str:
        """An entry of `rows` in words, such as P(Fever=high by Flu=yes).

        Parameters
        ----------
        row, code : int
            The place of the entry.

        Returns
        -------
        str
            The name.
        """
        shown = f"{self.name}={self.variable.states[code]}"
        for parent in self.parents:
            if row < parent.card:
                return f"P({shown} by {parent.name}={parent.states[row]})"
            row -= parent.card
        return f"P({shown} by itself)"

    @property
    def n_entries(self) -> int:
        """How many numbers it is made of: those of its links and its leak."""
        return sum(link.size for link in self.links) + self.leak.size

    def _moved(self, variable: Variable, parents: tuple[Variable, ...], ranked: Sequence[int]) -> NoisyMax:
        strongest = variable.states[self.variable.code(self.strongest)]
        return NoisyMax.made(variable, parents, [self.links[i] for i in ranked], self.leak, strongest)

    def with_parent(self, parent: Variable) -> NoisyMax:
        """With one more parent, last, that has no effect.

        Parameters
        ----------
        parent : Variable
            The new parent.

        Returns
        -------
        NoisyMax
            The conditional with one more link.
        """
        none = np.zeros((parent.card, self.variable.card))
        none[:, self.weakest_code] = 1.0
        parents = checked_parents(self.variable, (*self.parents, parent), type(self).__name__)
        return NoisyMax.made(self.variable, parents, (*self.links, none), self.leak, self.strongest)

    def without_parent(self, parent: Variable, shares: Array) -> NoisyMax:
        """With one parent less, averaged over its states: its average effect joins the leak.

        Parameters
        ----------
        parent : Variable
            One of the parents.
        shares : ndarray
            The share of each of its states; they sum to 1.

        Returns
        -------
        NoisyMax
            The conditional with one link less.
        """
        i = self.parents.index(parent)
        kept = [k for k in range(len(self.parents)) if k != i]
        average = self._weak_to_strong(shares @ self.links[i])
        leak = self._weak_to_strong(joined(self._weak_to_strong(self.leak), average))
        return NoisyMax.made(
            self.variable,
            tuple(self.parents[k] for k in kept),
            [self.links[k] for k in kept],
            np.ascontiguousarray(leak),
            self.strongest,
        )

    @property
    def weakest_code(self) -> int:
        """The place of the weakest state."""
        return self.variable.card - 1 - self.variable.code(self.strongest)

    @property
    def chain_cells(self) -> float:
        """The cells of the chain of tables."""
        return float(self.variable.card) ** 2 * sum(p.card for p in self.parents)

    def _row(self, codes: Sequence[int]) -> Array:
        effects = self._weak_to_strong(self.leak)
        for link, code in zip(self.links, codes, strict=True):
            effects = joined(effects, self._weak_to_strong(link)[code])
        return self._weak_to_strong(effects)

    def steps(self) -> list[Array]:
        """The chain of tables: P(m_1 | x_1), then P(m_i | m_{i−1}, x_i), the last m being the child.

        All over the child's states, in their order; none without parents.
        """
        card = self.variable.card
        tables = []
        for i, link in enumerate(self.links):
            effect = self._weak_to_strong(link)
            before = self._weak_to_strong(self.leak) if i == 0 else np.eye(card)[:, None, :]
            table = joined(before, effect)
            flipped = table if self._rises else table[..., ::-1]
            tables.append(flipped if i == 0 or self._rises else flipped[::-1])
        return [np.ascontiguousarray(table) for table in tables]

    @property
    def _rises(self) -> bool:
        """Whether states go from the weakest to the strongest."""
        return self.variable.code(self.strongest) == self.variable.card - 1

    def _weak_to_strong(self, rows: Array) -> Array:
        """Rows over the child's states, from the weakest on; and the way back."""
        return rows if self._rises else rows[..., ::-1]

    def __repr__(self) -> str:
        given = f" | {', '.join(p.name for p in self.parents)}" if self.parents else ""
        return f"<{type(self).__name__} P({self.name}{given})>"

    def _table(self) -> Table:
        head = ["cause", "state", *map(str, self.variable.states)]
        rows = [
            [parent.name, str(state), *(f"{x:.6g}" for x in row)]
            for parent, link in zip(self.parents, self.links, strict=True)
            for state, row in zip(parent.states, link.tolist(), strict=True)
        ]
        rows.append(["leak", "", *(f"{x:.6g}" for x in self.leak.tolist())])
        return Table(
            head,
            rows,
            f"{self.name}: the strongest effect of its causes, {self.strongest} being the strongest state",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).made, (self.variable, self.parents, self.links, self.leak, self.strongest)


class NoisyOr(NoisyMax, compared=("leak", "links", "parents", "strongest", "variable"), like=NoisyMax):
    """Each parent that holds causes the variable with its own probability, independently (Pearl 1988, 4.3.2).

    P(variable does not hold) = (1 − leak) ∏ (1 − p_i) over the parents that hold. It says what `CPT.noisy_or` says, but
    stays factored: hundreds of parents are fine.

    Parameters
    ----------
    child : Variable
        The child, binary. The state that means "holds" is found as for `CPT.noisy_or`.
    parents : sequence of Variable
        Its causes, binary.
    links : mapping or sequence of float
        Each parent's probability of causing the variable: by name, or in the parents' order.
    leak : float, default 0.0
        The probability that the variable holds without any cause.
    holds : mapping or state, optional
        The state that means "holds", where the words do not tell: by variable's name, or one for all.

    Raises
    ------
    ModelError
        A variable is not binary, a probability is not between 0 and 1, or the words do not tell which state holds.

    See Also
    --------
    NoisyMax : More than two states.
    CPT.noisy_or : The same as a full table.

    Examples
    --------
    >>> causes = [Variable(f"C{i}", ["yes", "no"]) for i in range(40)]
    >>> alarm = NoisyOr(Variable("Alarm", ["yes", "no"]), causes, [0.05] * 40, leak=0.01)
    >>> round(alarm.row(*["yes"] * 40)["yes"], 6)
    0.872773
    """

    __slots__ = ()

    @keywords_checked
    def __init__(
        self,
        child: Variable,
        parents: Sequence[Variable],
        links: Mapping[str, float] | Sequence[float],
        leak: float = 0.0,
        *,
        holds: Mapping[str, State] | State | None = None,
    ) -> None:
        child, parents = checked_family("NoisyOr", child, parents)
        for v in (child, *parents):
            if v.card != 2:
                raise ModelError(
                    f"NoisyOr {child.name!r}: needs binary variables, {v.name!r} has {v.card} states; use bbn.NoisyMax"
                )
        given = by_parent("NoisyOr", child, parents, links)
        require_family(f"NoisyOr {child.name!r}", holds, child, parents)
        require_chances("NoisyOr", child, parents, given, leak)
        strong = told_holding_code(child, holds)

        def row(p: float) -> Array:
            effect = np.empty(2)
            effect[strong], effect[1 - strong] = p, 1.0 - p
            return effect

        arrays = []
        for parent, p in zip(parents, given, strict=True):
            link = np.empty((2, 2))
            code = told_holding_code(parent, holds)
            link[code], link[1 - code] = row(float(p)), row(0.0)
            arrays.append(link)
        self._take(child, parents, arrays, row(float(leak)), child.states[strong])


def joined(before: Array, effect: Array) -> Array:
    """The distribution of the stronger of two independent effects, from the weakest state on; arrays broadcast.

    P(y) = before(y) effect(≤ y) + before(< y) effect(y): no difference, so nothing is lost.
    """
    below = np.zeros(before.shape)
    np.cumsum(before[..., :-1], axis=-1, out=below[..., 1:])
    return np.asarray(before * np.cumsum(effect, axis=-1) + below * effect)


def _strongest(kind: str, child: Variable, told: State | None) -> int:
    """The code of the strongest state, the first or the last."""
    if told is None:
        if child.card != 2:
            return child.card - 1
        return holding_code(child, f"{kind} {child.name!r}", "strongest=STATE")
    code = child.find(told)
    if code is None:
        raise ModelError(f"{kind} {child.name!r}: {child.unknown(told)}")
    if code not in (0, child.card - 1):
        raise ModelError(
            f"{kind} {child.name!r}: the strongest state must be the first or the last of {list(child.states)}, "
            f"found {told!r}"
        )
    return code


def _link(kind: str, child: Variable, parents: tuple[Variable, ...], given: Any, what: str) -> Array:
    """A checked link or leak; a fault names which."""
    try:
        return read_table(child, parents, given)
    except ModelError as error:
        fault = str(error).removeprefix(f"CPT {child.name!r}").lstrip(":, ")
        raise ModelError(f"{kind} {child.name!r}: {what}: {fault}") from None
