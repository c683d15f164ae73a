"""The results of asking: `Posterior`, `Posteriors` (all of one pass, each made when looked at), `Assignment`."""

from __future__ import annotations

import math
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn import kernels
from bbn.core.display import BAR, Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError, nearest
from bbn.core.frozen import Array, Frozen, read_only
from bbn.model.factor import TEXT_BYTES, cells_frame, labelled, require_cells
from bbn.model.variable import State, Variable
from bbn.results.sampling_report import SamplingReport

if TYPE_CHECKING:
    import pandas as pd

    from bbn.view.scene import Drawing


Slot = tuple[Variable, int, int]
"""A variable, and where its distribution starts and stops."""


class Posterior(Tabular, Frozen):
    """The distribution of one variable, or the joint of several, given evidence.

    Attributes
    ----------
    variables
        One per axis, in the order asked.
    values
        The probabilities, read-only.
    log_evidence
        ln P(evidence), of the hard and virtual part.
    sampling
        How far off an approximate answer may be, a SamplingReport; None for an exact one.

    >>> import bbn
    >>> p = bbn.example("campfire").query("Campfire", {"Storm": "yes", "BusTourGroup": "no"})
    >>> p["yes"], p.mode()
    (0.1, 'no')
    >>> print(p)
    Campfire  probability
    --------  -----------  --------------------
    yes               0.1  ██
    no                0.9  ██████████████████
    """

    __slots__ = ("log_evidence", "sampling", "values", "variables")

    variables: tuple[Variable, ...]
    values: Array
    log_evidence: float
    sampling: SamplingReport | None

    def __init__(
        self,
        variables: tuple[Variable, ...],
        values: Array,
        log_evidence: float,
        sampling: SamplingReport | None = None,
    ) -> None:
        values.flags.writeable = False
        self._set(variables=variables, values=values, log_evidence=log_evidence, sampling=sampling)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, one per axis."""
        return tuple(v.name for v in self.variables)

    def __getitem__(self, states: State | tuple[State, ...]) -> float:
        """The probability of these states, one per variable, by label."""
        wanted = states if isinstance(states, tuple) else (states,)
        if len(wanted) != len(self.variables):
            raise EvidenceError(
                f"the posterior of {', '.join(self.names)} needs {len(self.variables)} states, found {len(wanted)}"
            )
        index = tuple(v.code(state) for v, state in zip(self.variables, wanted, strict=True))
        return float(self.values[index])

    def mode(self) -> Any:
        """The most probable state, or tuple of states for a joint; the first in a tie."""
        index = np.unravel_index(int(self.values.argmax()), self.values.shape)
        states = tuple(v.states[i] for v, i in zip(self.variables, index, strict=True))
        return states[0] if len(states) == 1 else states

    def entropy(self, base: float = math.e) -> float:
        """−Σ p ln p, in nats; `base=2` gives bits.

        Parameters
        ----------
        base : float, default e
            The base of the logarithm: e gives nats, 2 bits.

        Returns
        -------
        float
            The entropy.
        """
        p = self.values[self.values > 0]
        return float(-(p * np.log(p)).sum() / math.log(base)) + 0.0

    def marginal(self, name: str) -> Posterior:
        """The distribution of one of the variables of a joint.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        Posterior
            Over that variable alone.

        Raises
        ------
        EvidenceError
            The joint does not have the variable.
        """
        if name not in self.names:
            raise EvidenceError(f"this posterior has no variable {name!r}{nearest(name, self.names)}")
        axis = self.names.index(name)
        others = tuple(i for i in range(len(self.variables)) if i != axis)
        return Posterior((self.variables[axis],), np.asarray(self.values.sum(axis=others)), self.log_evidence)

    # How far off it may be: None for an exact posterior

    @property
    def std_error(self) -> Array | None:
        """The standard error of each entry."""
        return None if self.sampling is None else self.sampling.std_error

    def interval(self, level: float = 0.95) -> tuple[Array, Array] | None:
        """The lower and upper ends of a confidence interval around each entry.

        Parameters
        ----------
        level : float, default 0.95
            The confidence, between 0 and 1.

        Returns
        -------
        tuple of ndarray, or None
            Arrays like `values`; None for an exact posterior.

        Raises
        ------
        ValueError
            The error is not known, as of loopy belief propagation, or the level is not between 0 and 1.
        """
        return None if self.sampling is None else self.sampling.interval(self.values, level)

    @property
    def ess(self) -> float | None:
        """The effective sample size."""
        return None if self.sampling is None else self.sampling.ess

    @property
    def n_samples(self) -> int | None:
        """The number of samples drawn."""
        return None if self.sampling is None else self.sampling.n_samples

    @property
    def acceptance_rate(self) -> float | None:
        """The share of samples that agree with the evidence."""
        return None if self.sampling is None else self.sampling.acceptance_rate

    @property
    def r_hat(self) -> float | None:
        """The split R-hat over chains, of the worst entry."""
        return None if self.sampling is None else self.sampling.r_hat

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped by hand; never so for an exact posterior."""
        return self.sampling is not None and self.sampling.interrupted

    @property
    def converged(self) -> bool:
        """Whether the answer is as good as it was meant to be; always so for an exact posterior."""
        return self.sampling is None or self.sampling.converged

    @property
    def reliable(self) -> bool:
        """Whether the error is known and intervals hold as often as they say; always so for an exact posterior."""
        return self.sampling is None or self.sampling.reliable

    def to_dict(self) -> dict[Any, float]:
        """State, or tuple of states for a joint, to probability."""
        return labelled(self.variables, self.values)

    def to_frame(self) -> pd.DataFrame:
        """One row per state or combination: a column per variable, and the column "probability"."""
        return cells_frame(self.variables, self.values, "probability")

    def plot(self) -> Drawing:
        """The distribution of one variable drawn as a card with a bar per state."""
        from bbn.view.beliefs import draw_posterior

        return draw_posterior(self)

    def __repr__(self) -> str:
        cells = labelled(self.variables, self.values, most=8)
        shown = ", ".join(f"{_label(key)}: {p:.6g}" for key, p in cells.items()) + (
            ", …" if self.values.size > 8 else ""
        )
        return f"<Posterior P({', '.join(self.names)}): {shown}>"

    def _table(self) -> Table:
        require_cells(self.values.size, TEXT_BYTES, "a table")
        errors = [] if self.std_error is None else [f"{error:.2g}" for error in self.std_error.ravel()]
        rows: list[list[Cell]] = [
            [*map(str, key if isinstance(key, tuple) else (key,)), f"{p:.6g}", *errors[i : i + 1], Bar(p)]
            for i, (key, p) in enumerate(self.to_dict().items())
        ]
        return Table([*self.names, "probability", *(["std error"] if errors else []), " " * BAR], rows)


EXACT = kernels.answers.Maker(Posterior)
"""Makes exact posteriors, by the thousand: the quick way past `Posterior.__init__`."""


class Posteriors(Tabular, Mapping[str, Posterior]):
    """The posterior of each variable by name, each made from one flat array when it is looked at.

    Parameters
    ----------
    slots
        Variable name to (variable, start, stop): where its distribution lies in `flat`.
    flat
        All distributions one after the other.
    log_evidence
        ln P(evidence).
    sampling
        How far off approximate answers may be, the standard errors laid out as `flat` is; None for exact ones.
    """

    __slots__ = ("_flat", "_slots", "log_evidence", "sampling")

    def __init__(
        self,
        slots: Mapping[str, Slot],
        flat: Array,
        log_evidence: float,
        sampling: SamplingReport | None = None,
    ) -> None:
        self._slots = slots
        self._flat = read_only(flat)
        self.log_evidence = log_evidence
        self.sampling = sampling

    def __getitem__(self, name: str) -> Posterior:
        try:
            slot = self._slots[name]
        except KeyError:
            hint = nearest(name, self._slots)
            raise EvidenceError(f"no posterior of {name!r}: it was observed or is unknown{hint}") from None
        report = self.sampling
        if report is None:
            return EXACT.view(slot, self._flat, self.log_evidence)  # type: ignore[no-any-return]
        variable, start, stop = slot
        if report.std_error is not None:
            report = report.with_error(report.std_error[start:stop])
        return Posterior((variable,), self._flat[start:stop], self.log_evidence, report)

    def values(self) -> ValuesView[Posterior]:
        """The posteriors, in the order of the names."""
        return _Values(self)

    def items(self) -> ItemsView[str, Posterior]:
        """(name, posterior) pairs."""
        return _Items(self)

    def _all(self) -> Iterator[Posterior]:
        """Each posterior in turn: the quick way through many."""
        if self.sampling is not None:
            return map(self.__getitem__, self._slots)
        return EXACT.each(self._slots.values(), self._flat, self.log_evidence)

    def __contains__(self, name: object) -> bool:
        return name in self._slots

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __hash__(self) -> int:
        return hash(frozenset(self._slots))

    def __repr__(self) -> str:
        return f"<Posteriors of {len(self)} variables: {', '.join(list(self._slots)[:6])}{', …' * (len(self) > 6)}>"

    def _table(self) -> Table:
        rows: list[list[Cell]] = []
        for name, posterior in self.items():
            for state, p in posterior.to_dict().items():
                rows.append([name, str(state), f"{p:.6g}", Bar(p)])
                name = ""
        note = "" if rows else "(no unobserved variables)"
        return Table(["variable", "state", "probability", " " * BAR] if rows else [], rows, note=note)

    def to_frame(self) -> pd.DataFrame:
        """One row per variable and state: the columns "variable", "state" and "probability"."""
        import pandas as pd

        cells = [(name, s, p) for name, posterior in self.items() for s, p in posterior.to_dict().items()]
        return pd.DataFrame(cells, columns=["variable", "state", "probability"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Posteriors, (dict(self._slots), self._flat, self.log_evidence, self.sampling)


class _Values(ValuesView[Posterior]):
    """The values of a Posteriors."""

    _mapping: Posteriors

    def __iter__(self) -> Iterator[Posterior]:
        return self._mapping._all()


class _Items(ItemsView[str, Posterior]):
    """The items of a Posteriors."""

    _mapping: Posteriors

    def __iter__(self) -> Iterator[tuple[str, Posterior]]:
        return zip(self._mapping, self._mapping._all(), strict=True)


class Assignment(Tabular, Frozen):
    """A joint state of some variables, and ln P(states, evidence).

    Parameters
    ----------
    states : mapping
        Variable name to state.
    log_probability : float
        ln P(states, evidence).

    Examples
    --------
    >>> best = Assignment({"A": "yes"}, math.log(0.25))
    >>> best["A"], best.probability
    ('yes', 0.25)
    """

    __slots__ = ("log_probability", "states")

    states: dict[str, State]
    log_probability: float

    def __init__(self, states: Mapping[str, State], log_probability: float) -> None:
        self._set(states=dict(states), log_probability=float(log_probability))

    @property
    def probability(self) -> float:
        """P(states, evidence); 0 where it is too small for a float."""
        return math.exp(self.log_probability)

    def __getitem__(self, name: str) -> State:
        if name not in self.states:
            raise EvidenceError(f"this assignment has no variable {name!r}{nearest(name, self.states)}")
        return self.states[name]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={state}" for name, state in list(self.states.items())[:8])
        more = f", … ({len(self.states)} in all)" if len(self.states) > 8 else ""
        return f"<Assignment {shown}{more}; ln P = {self.log_probability:.6g}>"

    def _table(self) -> Table:
        rows = [[name, str(state)] for name, state in self.states.items()]
        return Table(["variable", "state"], rows, note=f"ln P = {self.log_probability:.9g}")


def _label(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
