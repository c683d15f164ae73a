"""Necessity and sufficiency: whether the effect would have failed without the cause, or come about with it.

With y_x for "y, had X been set to x" (Pearl 2009, chapter 9), of a cause x and an effect y:

    necessity      PN  = P(y'_x' | x, y)       sufficiency      PS = P(y_x | x', y')
    both           PNS = P(y_x, y'_x')

Tables do not determine them. The distribution and the effects P(y_x), P(y_x') together allow an interval, each point
of which is the truth in some model (Tian and Pearl 2000). Where the cause never prevents the effect (monotonicity),
the lower ends are the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bbn.core.errors import EvidenceError
from bbn.core.keywords import keywords_checked
from bbn.model.holding_state import holding_code
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State, Variable

Ends = tuple[float, float]
"""The least and the greatest value."""


class _Bounds(NamedTuple):
    necessity: Ends
    """P(the effect would have failed without the cause | both were there)."""
    sufficiency: Ends
    """P(the cause would have brought the effect about | neither was there)."""
    necessity_and_sufficiency: Ends
    """P(the effect with the cause, and not without it)."""


class Causation(_Bounds):
    """Bounds of the probabilities of causation, each (least, greatest), in a tuple of three.

    Attributes
    ----------
    cause_state, effect_state
        The states that counted as cause and effect.
    """

    cause_state: State
    effect_state: State

    def __repr__(self) -> str:
        said = f", cause_state={self.cause_state!r}, effect_state={self.effect_state!r})"
        return f"Causation{super().__repr__().removeprefix(type(self).__name__)[:-1]}{said}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_states, (tuple(self), self.cause_state, self.effect_state)


@keywords_checked
def causation_bounds(
    net: BayesianNetwork,
    cause: str,
    effect: str,
    *,
    cause_state: State | None = None,
    effect_state: State | None = None,
    monotonic: bool = False,
) -> Causation:
    """Bound the probabilities that a cause was necessary, sufficient, or both.

    Parameters
    ----------
    net
        A network whose arcs are causal, all common causes included.
    cause
        A variable of two states.
    effect
        A discrete variable.
    cause_state, effect_state
        The states that count as cause and effect; by default, of two states, the one whose word says that it holds
        (True, 1, "yes", "present", …). Where the words do not tell, or there are more states, they must be named.
    monotonic
        Whether the cause never prevents the effect: then the bounds meet.

    Returns
    -------
    Causation
        `.necessity`, `.sufficiency` and `.necessity_and_sufficiency`, each (least, greatest); (NaN, NaN) where what
        they are conditioned on never occurs. `.cause_state` and `.effect_state` are the states that were taken.

    Raises
    ------
    EvidenceError
        For an unknown name or state, a continuous variable, a cause of more than two states, or if nothing says which
        state is the cause or the effect.

    See Also
    --------
    BayesianNetwork.counterfactual : The exact answer where noise is explicit.

    References
    ----------
    Tian and Pearl (2000), Probabilities of causation: bounds and identification.

    Examples
    --------
    >>> import bbn
    >>> found = bbn.causation_bounds(bbn.example("asia"), "smoke", "bronc")
    >>> [round(end, 4) for end in found.necessity]
    [0.5, 1.0]
    """
    x, y = _discrete(net, cause), _discrete(net, effect)
    if cause == effect:
        raise EvidenceError(f"{cause!r} is both cause and effect")
    if x.card != 2:
        raise EvidenceError(f"the cause {cause!r} has {x.card} states; expected two")
    i = _state(x, cause_state, "cause_state")
    j = _state(y, effect_state, "effect_state")
    joint = net.query([cause, effect]).values
    p_xy = float(joint[i, j])
    p_xn, p_oy = float(joint[i].sum() - joint[i, j]), float(joint[1 - i, j])
    p_on = float(joint[1 - i].sum() - joint[1 - i, j])
    p_y = p_xy + p_oy
    y_x, y_o = (
        float(net.query(effect, do={cause: state}).values[j]) for state in (x.states[i], x.states[1 - i])
    )
    both = (
        max(0.0, y_x - y_o, p_y - y_o, y_x - p_y),
        min(y_x, 1 - y_o, p_xy + p_on, y_x - y_o + p_xn + p_oy),
    )
    necessity = _within((p_y - y_o, (1 - y_o) - p_on), p_xy)
    sufficiency = _within((y_x - p_y, y_x - p_xy), p_on)
    if monotonic:
        both, necessity, sufficiency = ((ends[0], ends[0]) for ends in (both, necessity, sufficiency))
    return _of_states((necessity, sufficiency, both), x.states[i], y.states[j])


def _of_states(bounds: Sequence[Ends], cause_state: State, effect_state: State) -> Causation:
    """The bounds, in the order of the tuple, and the states that they are of."""
    made = Causation(*bounds)
    made.cause_state, made.effect_state = cause_state, effect_state
    return made


def _state(variable: Variable, told: State | None, option: str) -> int:
    """The code of the state that counts: as told, otherwise by the words."""
    if told is not None:
        return variable.code(told)
    return holding_code(variable, "causation_bounds", f"{option}=STATE", EvidenceError)


def _within(ends: Ends, share: float) -> Ends:
    """Both ends divided by the share they are conditioned on, kept between 0 and 1."""
    if not share > 0:
        return float("nan"), float("nan")
    low, high = (min(1.0, max(0.0, end / share)) for end in ends)
    return low, high


def _discrete(net: BayesianNetwork, name: str) -> Variable:
    variable = net.variable(name)
    if isinstance(variable, Continuous):
        raise EvidenceError(f"{name!r} is continuous; causes and effects are states here")
    return variable
