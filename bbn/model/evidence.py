"""Evidence, checked once against a model.

A finding on a variable is a state (hard evidence), a likelihood λ(x) to multiply in (`Virtual`; Pearl 1988,
section 2.2.2), a set of states (`OneOf`, `Not`), or a marginal that the posterior must have (`Soft`; Jeffrey's
rule). On a continuous variable it is a number. None and NaN mean unobserved. `check_evidence` turns findings into
codes and arrays, the `Findings` that engines work on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from bbn.core.errors import EvidenceError, shown
from bbn.core.frozen import Array, Frozen
from bbn.core.frozen import numbers as as_numbers
from bbn.model.factor import Factor
from bbn.model.table_input import sums_of
from bbn.model.variable import Continuous, State, Variable

Evidence = Mapping[str, Any]
"""Variable name to finding: a state, Virtual, Soft, OneOf, Not, a number, or None for unobserved."""


class Model(Protocol):
    """What can be asked: variables by name, and the factors whose product is the (unnormalised) joint."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, in the model's order."""

    def variable(self, name: str) -> Variable:
        """The variable of this name; EvidenceError if there is none."""

    def factors(self) -> list[Factor]:
        """The factors."""


class Virtual(Frozen):
    """A likelihood finding: how probable the observation is in each state, up to a common factor.

    Parameters
    ----------
    weights : mapping
        Each state to a number: finite, not negative, not all zero; it may exceed 1.

    Raises
    ------
    EvidenceError
        The weights are not a mapping, or when asked, do not fit the variable's states.

    See Also
    --------
    Soft : A marginal that the posterior must have.
    OneOf, Not : A set of states.

    Examples
    --------
    >>> Virtual({"yes": 0.8, "no": 0.2})
    Virtual({'yes': 0.8, 'no': 0.2})
    """

    __slots__ = ("weights",)

    weights: dict[State, float]

    def __init__(self, weights: Mapping[State, float]) -> None:
        if not isinstance(weights, Mapping):
            raise EvidenceError(
                f"{type(self).__name__} needs a mapping from each state to a number, found {shown(weights)}"
            )
        self._set(weights=dict(weights))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weights!r})"

    def array(self, variable: Variable) -> Array:
        """The weights in the order of the variable's states, checked.

        Parameters
        ----------
        variable : Variable
            The variable observed.

        Returns
        -------
        ndarray
            One weight per state.

        Raises
        ------
        EvidenceError
            A state is unknown or missing, or a weight is not allowed.
        """
        kind = type(self).__name__
        values: list[Any] = [None] * variable.card
        for state, weight in self.weights.items():
            values[variable.code(state)] = weight
        missing = [state for state, value in zip(variable.states, values, strict=True) if value is None]
        if missing:
            raise EvidenceError(
                f"{kind} evidence on {variable.name!r} must name every state; {missing!r} missing"
            )
        try:
            array = as_numbers(values)
        except OverflowError:
            raise EvidenceError(
                f"{kind} evidence on {variable.name!r}: a weight is beyond what a float holds, found {shown(values)}"
            ) from None
        except (TypeError, ValueError):
            raise EvidenceError(
                f"{kind} evidence on {variable.name!r}: expected numbers, found {shown(values)}"
            ) from None
        if not (np.isfinite(array).all() and array.min() >= 0 and array.max() > 0):
            raise EvidenceError(
                f"{kind} evidence on {variable.name!r}: weights must be finite, not negative "
                f"and not all zero, found {shown(self.weights)}"
            )
        return array


class Soft(Virtual):
    """A marginal that the posterior of the variable must have (Jeffrey's rule).

    Parameters
    ----------
    weights : mapping
        Each state to its posterior probability; they sum to 1.

    Raises
    ------
    EvidenceError
        The weights are not a mapping, or when asked, do not fit the variable's states.

    See Also
    --------
    Virtual : A likelihood, to be multiplied in.

    Examples
    --------
    >>> Soft({"yes": 0.8, "no": 0.2})
    Soft({'yes': 0.8, 'no': 0.2})
    """

    __slots__ = ()

    def array(self, variable: Variable) -> Array:
        """The marginal in the order of the variable's states, checked to sum to 1.

        Parameters
        ----------
        variable : Variable
            The variable observed.

        Returns
        -------
        ndarray
            One probability per state.

        Raises
        ------
        EvidenceError
            A state is unknown or missing, or the probabilities do not sum to 1.
        """
        array = super().array(variable)
        total = sums_of(array)
        if abs(total - 1.0) > 1e-6:
            raise EvidenceError(
                f"Soft evidence on {variable.name!r} sums to {total:.9g}, expected 1; "
                "for a likelihood, which need not, use Virtual"
            )
        return np.asarray(array / total)


class OneOf(Frozen):
    """The variable is in one of these states.

    Parameters
    ----------
    *states
        The states that remain possible.

    Raises
    ------
    EvidenceError
        A list was given in place of the states, or when asked, a state is unknown.

    See Also
    --------
    Not : All but these states.

    Examples
    --------
    >>> OneOf("a", "b")
    OneOf('a', 'b')
    """

    __slots__ = ("states",)

    states: tuple[State, ...]

    def __init__(self, *states: State) -> None:
        if len(states) == 1 and isinstance(states[0], list | tuple | set | frozenset):
            listed = ", ".join(map(repr, states[0]))
            kind = type(self).__name__
            raise EvidenceError(f"{kind} takes the states themselves: {kind}({listed})")
        self._set(states=states)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.states))})"

    def array(self, variable: Variable) -> Array:
        """1 for the states that remain, 0 for the others; EvidenceError if none remains.

        Parameters
        ----------
        variable : Variable
            The variable observed.

        Returns
        -------
        ndarray
            One number per state.

        Raises
        ------
        EvidenceError
            A state is unknown, or none remains.
        """
        array = self._allowed(variable, [variable.code(state) for state in self.states])
        if not array.any():
            raise EvidenceError(f"{self!r} leaves {variable.name!r} no state; it has {list(variable.states)}")
        return array

    def _allowed(self, variable: Variable, codes: list[int]) -> Array:
        allowed = np.zeros(variable.card)
        allowed[codes] = 1.0
        return allowed


class Not(OneOf):
    """The variable is in none of these states.

    Parameters
    ----------
    *states
        The states that are ruled out.

    Raises
    ------
    EvidenceError
        A list was given in place of the states, or when asked, a state is unknown or none remains.

    See Also
    --------
    OneOf : These states alone.

    Examples
    --------
    >>> Not("a")
    Not('a')
    """

    __slots__ = ()

    def _allowed(self, variable: Variable, codes: list[int]) -> Array:
        return np.asarray(1.0 - super()._allowed(variable, codes))


class Findings(NamedTuple):
    """Checked evidence: what engines take."""

    hard: dict[str, int]
    """Variable name to the code of its observed state."""
    likelihood: dict[str, Array]
    """Variable name to λ over its states, from Virtual, OneOf and Not."""
    soft: dict[str, Array]
    """Variable name to the marginal its posterior must have."""

    def without(self, name: str) -> Findings:
        """These findings but for the ones on one variable."""
        return Findings(*({n: v for n, v in part.items() if n != name} for part in self))  # type: ignore[arg-type]


def check_evidence(model: Model, evidence: Evidence | None) -> Findings:
    """Evidence as codes and arrays; EvidenceError that names the variable, the value and the nearest choice.

    Numbers on continuous variables are checked, and given by `observed_numbers`.
    """
    hard: dict[str, int] = {}
    likelihood: dict[str, Array] = {}
    soft: dict[str, Array] = {}
    if evidence is None:
        return Findings(hard, likelihood, soft)
    given = evidence if type(evidence) is dict else as_mapping(evidence)
    for name, value in given.items():
        variable = model.variable(name)
        code = variable.find(value)
        if code is not None:
            hard[name] = code
        elif isinstance(variable, Continuous):
            _number(variable, value)
        elif isinstance(value, Soft):
            soft[name] = value.array(variable)
        elif isinstance(value, Virtual | OneOf):
            likelihood[name] = value.array(variable)
        elif not is_missing(value):
            raise EvidenceError(_bad_finding(variable, value))
    return Findings(hard, likelihood, soft)


def as_mapping(evidence: Any) -> Evidence:
    """Evidence as a mapping: itself, nothing for None, and a row of a pandas table by its labels.

    >>> as_mapping(None)
    {}
    """
    if isinstance(evidence, Mapping):
        return evidence
    if evidence is None:
        return {}
    if type(evidence).__name__ == "Series" and hasattr(evidence, "to_dict"):
        return dict(evidence.to_dict())
    raise EvidenceError(
        "evidence must be a mapping from variable to finding, such as {'Rain': 'yes'}, or a row of a pandas table, "
        f"found {shown(evidence)}"
    )


def observed_numbers(model: Model, evidence: Evidence | None) -> dict[str, float]:
    """Continuous variable name to the number observed."""
    found = {
        name: _number(variable, value)
        for name, value in as_mapping(evidence).items()
        if isinstance(variable := model.variable(name), Continuous)
    }
    return {name: number for name, number in found.items() if number is not None}


def _number(variable: Continuous, value: object) -> float | None:
    """The number observed, None where it is unobserved."""
    return None if is_missing(value) else variable.number(value)


def is_missing(value: object) -> bool:
    """Whether a value means "unobserved": None, NaN, or pandas' NA and NaT."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"
    except ValueError:  # an array
        return False


def check_targets(model: Model, targets: str | Sequence[str]) -> tuple[str, ...]:
    """Targets as a tuple of names, each known, none twice, at least one."""
    if isinstance(targets, str):
        model.variable(targets)
        return (targets,)
    if isinstance(targets, set | frozenset):
        raise EvidenceError(f"a set of targets has no order; list them: {sorted(targets, key=str)!r}")
    names = tuple(targets) if isinstance(targets, Iterable) else ()
    if not names:
        raise EvidenceError(f"targets must be a variable's name or a list of names, found {shown(targets)}")
    for i, name in enumerate(names):
        model.variable(name)
        if name in names[:i]:
            raise EvidenceError(f"target {name!r} is named twice")
    return names


def _bad_finding(variable: Variable, value: object) -> str:
    name = variable.name
    if isinstance(value, Mapping):
        return (
            f"evidence on {name!r} is a bare mapping, which could mean two things: bbn.Virtual({value!r}) is a "
            f"likelihood to multiply in, bbn.Soft({value!r}) fixes the posterior marginal"
        )
    if isinstance(value, list | tuple | np.ndarray) and _are_weights(value):
        each = dict(zip(variable.states, np.asarray(value).tolist(), strict=False))
        return (
            f"evidence on {name!r} is {shown(value)}; for a likelihood of each state use bbn.Virtual({each!r}), "
            f"for the posterior marginal that it must have bbn.Soft({each!r})"
        )
    if isinstance(value, list | tuple | set | frozenset):
        return f"evidence on {name!r} is {value!r}; for a set of states use bbn.OneOf({', '.join(map(repr, value))})"
    return variable.unknown(value)


def _are_weights(values: Any) -> bool:
    """Whether these are numbers that are hardly states: fractions among them, or an array."""
    return all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values
    ) and any(isinstance(value, float | np.floating) for value in values)
