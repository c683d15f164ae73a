"""What questions about time give back: `Beliefs`, a series of distributions, and `Path`, a series of states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.display import Table, Tabular
from bbn.core.errors import EvidenceError, nearest, shown
from bbn.core.frozen import Array, Frozen, read_only
from bbn.model.variable import Continuous, State, Variable
from bbn.results.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 12
"""The most steps that are shown when beliefs are printed."""
MOMENTS = ("mean", "variance")


class Beliefs(Tabular, Frozen):
    """The distribution of every variable in every step.

    Attributes
    ----------
    variables
        The variables, in the dynamic network's order.
    steps
        The numbers of the steps.
    log_evidence
        ln P(evidence).
    effective_sample_size
        Of a particle filter, how many independent particles each step's are worth, an array (steps,); None otherwise.
    std_error
        Of a particle filter, variable to the standard errors of its array; else empty.

    Examples
    --------
    >>> import bbn
    >>> beliefs = bbn.example("umbrella").filter({"Umbrella": ["yes", "no"]})
    >>> beliefs["Rain"].shape, beliefs.steps
    ((2, 2), range(0, 2))
    >>> print(beliefs)
    step  Rain=yes  Rain=no  Umbrella=yes  Umbrella=no
    ----  --------  -------  ------------  -----------
       0     0.818    0.182             1            0
       1     0.174    0.826             0            1
    """

    __slots__ = ("_arrays", "effective_sample_size", "log_evidence", "std_error", "steps", "variables")

    variables: tuple[Variable, ...]
    steps: range
    log_evidence: float
    effective_sample_size: Array | None
    std_error: Mapping[str, Array]
    _arrays: dict[str, Array]

    def __init__(
        self,
        variables: Sequence[Variable],
        arrays: Mapping[str, Array],
        log_evidence: float,
        first: int = 0,
        effective_sample_size: Array | None = None,
        std_error: Mapping[str, Array] | None = None,
    ) -> None:
        own = {v.name: read_only(arrays[v.name]) for v in variables}
        n = len(next(iter(own.values()))) if own else 0
        self._set(
            variables=tuple(variables),
            steps=range(first, first + n),
            log_evidence=float(log_evidence),
            effective_sample_size=None if effective_sample_size is None else read_only(effective_sample_size),
            std_error={name: read_only(array) for name, array in (std_error or {}).items()},
            _arrays=own,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names."""
        return tuple(self._arrays)

    def variable(self, name: str) -> Variable:
        """The variable of this name.

        Parameters
        ----------
        name : str
            One of the variables asked for.
        """
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise EvidenceError(f"there are no beliefs of a variable {shown(name)}{nearest(name, self.names)}")

    def __getitem__(self, name: str) -> Array:
        """The distribution of a variable in each step: (steps, states), or (steps, 2), mean and variance."""
        self.variable(name)
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.steps)

    def at(self, step: int, name: str) -> Posterior:
        """The distribution of a discrete variable in one step, by its number.

        Parameters
        ----------
        step : int
            The number of the step.
        name : str
            A discrete variable.

        Raises
        ------
        EvidenceError
            There is no such step, or the variable is continuous.
        """
        variable = self.variable(name)
        if step not in self.steps:
            raise EvidenceError(
                f"there is no step {step!r}; the steps are {self.steps.start} to {self.steps.stop - 1}"
            )
        if isinstance(variable, Continuous):
            raise EvidenceError(
                f"{name!r} is continuous: beliefs[{name!r}] holds its mean and variance in each step"
            )
        return Posterior((variable,), self._arrays[name][step - self.steps.start].copy(), self.log_evidence)

    def mode(self, name: str) -> list[State]:
        """The most probable state of a discrete variable in each step, by itself; `viterbi` finds the best path.

        Parameters
        ----------
        name : str
            A discrete variable.
        """
        states = self.variable(name).states
        if not states:
            raise EvidenceError(f"{name!r} is continuous: it has numbers, not states")
        return [states[code] for code in self._arrays[name].argmax(axis=1).tolist()]

    def to_frame(self) -> pd.DataFrame:
        """One row a step; the columns have two levels, the variable and its state, or "mean" and "variance"."""
        import pandas as pd

        heads = [(v.name, state) for v in self.variables for state in v.states or MOMENTS]
        values = np.concatenate(
            [np.empty((len(self), 0)), *(self._arrays[v.name] for v in self.variables)], axis=1
        )
        columns = pd.MultiIndex.from_tuples(heads, names=["variable", "state"])
        return pd.DataFrame(
            values, index=pd.RangeIndex(self.steps.start, self.steps.stop, name="step"), columns=columns
        )

    def plot(self, names: str | Sequence[str] | None = None, ax: Any = None) -> Any:
        """The beliefs over time, in bands: as high as each state is probable; of a number, its mean and two widths.

        Parameters
        ----------
        names
            The variables to draw, one below the other; None: those that are not observed throughout.
        ax
            Axes to draw on, where one variable is drawn; None makes a figure.

        Returns
        -------
        matplotlib.axes.Axes
            Or an array of them, where several variables are drawn.
        """
        from bbn.view.bands import draw_bands

        return draw_bands(self, names, ax)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Beliefs):
            return NotImplemented
        return (
            self.variables == other.variables
            and self.steps == other.steps
            and all(np.array_equal(self[n], other[n], equal_nan=True) for n in self.names)
        )

    def __hash__(self) -> int:
        return hash((self.variables, self.steps, tuple(array.tobytes() for array in self._arrays.values())))

    def __repr__(self) -> str:
        n = len(self)
        return f"<Beliefs: {n} step{'s' * (n != 1)} of {', '.join(self.names)}>"

    def _table(self) -> Table:
        head = ["step"]
        for v in self.variables:
            head += [f"{v.name}={state}" for state in v.states] or [f"{v.name} {what}" for what in MOMENTS]
        rows = [
            [str(step), *(f"{x:.3g}" for name in self.names for x in self._arrays[name][k].tolist())]
            for k, step in enumerate(self.steps[:SHOWN])
        ]
        note = f"… {len(self)} steps in all" if len(self) > SHOWN else ""
        return Table(head, rows, "", note)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.variables, self._arrays, self.log_evidence, self.steps.start)
        return Beliefs, (*parts, self.effective_sample_size, dict(self.std_error))


class Path(Tabular, Frozen):
    """The states of all discrete variables in all steps, found together.

    Attributes
    ----------
    states
        Variable name to its states, one a step.
    log_probability
        ln P(path, evidence).
    steps
        The numbers of the steps.

    Examples
    --------
    >>> import bbn
    >>> path = bbn.example("umbrella").viterbi({"Umbrella": ["yes", "no", "no"]})
    >>> path["Rain"], round(path.log_probability, 4)
    (['yes', 'no', 'no'], -2.8054)
    """

    __slots__ = ("log_probability", "states", "steps")

    states: dict[str, list[State]]
    log_probability: float
    steps: range

    def __init__(self, states: Mapping[str, list[State]], log_probability: float, first: int = 0) -> None:
        n = len(next(iter(states.values()))) if states else 0
        self._set(states=dict(states), log_probability=float(log_probability), steps=range(first, first + n))

    def __getitem__(self, name: str) -> list[State]:
        """The states of a variable, one a step."""
        if name not in self.states:
            raise EvidenceError(f"the path has no variable {shown(name)}{nearest(name, self.states)}")
        return list(self.states[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.states)

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.steps)

    def to_frame(self) -> pd.DataFrame:
        """One row a step, one column per variable."""
        import pandas as pd

        return pd.DataFrame(self.states, index=pd.RangeIndex(self.steps.start, self.steps.stop, name="step"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Path):
            return NotImplemented
        return (self.states, self.log_probability, self.steps) == (
            other.states,
            other.log_probability,
            other.steps,
        )

    def __hash__(self) -> int:
        return hash(
            (tuple((name, tuple(own)) for name, own in self.states.items()), self.log_probability, self.steps)
        )

    def __repr__(self) -> str:
        n = len(self)
        return (
            f"<Path: {n} step{'s' * (n != 1)} of {', '.join(self.states)}, ln P {self.log_probability:.6g}>"
        )

    def _table(self) -> Table:
        rows = [
            [str(step), *(str(own[k]) for own in self.states.values())]
            for k, step in enumerate(self.steps[:SHOWN])
        ]
        note = f"… {len(self)} steps in all" if len(self) > SHOWN else ""
        return Table(["step", *self.states], rows, "", note)

    def __reduce__(self) -> tuple[Any, ...]:
        return Path, (self.states, self.log_probability, self.steps.start)
