"""Necessity and sufficiency: whether the effect would have failed without the cause, or come about with it.

With y_x for "y, had X been set to x" (Pearl 2009, chapter 9), of a cause x and an effect y:

    necessity      PN  = P(y'_x' | x, y)       sufficiency      PS = P(y_x | x', y')
    both           PNS = P(y_x, y'_x')

Tables do not determine them. Let Z be what else acts on the effect, or on what lies between, and is not touched by the
cause (the optimal adjustment set). Given z the cause is as if chosen by chance, so observation and experiment tell
P(y_x | z) and P(y_x' | z) and no more, and the bounds of Tian and Pearl (2000) are

    max(0, P(y_x | z) − P(y_x' | z))  ≤  PNS(z)  ≤  min(P(y_x | z), P(y'_x' | z))

Every point between is the truth in some model, at every z apart from the others, so the sums over z are sharp too,
where the cause acts on the effect directly, or through what is not in the network:

    PNS = Σ_z P(z) PNS(z),    PN = Σ_z P(z, x) PNS(z) / P(x, y),    PS = Σ_z P(z, x') PNS(z) / P(x', y')

What lies between in the network is not used: the bounds hold, but knowing that its noises are independent can lower the
upper ends (Dawid, Musio and Murtas 2017). Where the cause never prevents the effect (monotonicity), the lower ends are
the truth. The cost is that of the joint
of Z, cause and effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.causal.graph.causal_graph import as_causal_graph
from bbn.causal.identification.adjustment import adjustment_sets
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.model.holding_state import holding_code
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State, Variable

Ends = tuple[float, float]
"""The least and the greatest value."""
SLACK = 1e-9
"""How far a cause that never prevents may lower the effect, for rounding."""


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
        A network whose arcs are causal, all common causes included. What its tables say of other causes of the effect
        makes the bounds tighter, and sharp; what lies between cause and effect is not used.
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
        For an unknown name or state, a continuous variable, a cause of more than two states, if nothing says which
        state is the cause or the effect, or for tables that are not monotonic where `monotonic` says so.
    BudgetError
        If the other causes have too many settings together.

    See Also
    --------
    BayesianNetwork.counterfactual : The exact answer where noise is explicit.

    References
    ----------
    Tian and Pearl (2000), Probabilities of causation: bounds and identification. Dawid, Musio and Murtas (2017), The
    probability of causation.

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
    acts = effect in as_causal_graph(net).descendants(cause)
    others = _others(net, cause, effect) if acts else []
    # axes: z, cause (x, x'), effect (y, y'); and P(z), P(z, y_x), P(z, y_x')
    joint = _joint(net, [*others, cause, effect], None).reshape(-1, x.card, y.card)[:, [i, 1 - i]]
    joint = np.stack([joint[..., j], joint.sum(axis=-1) - joint[..., j]], axis=-1)
    share = joint.sum(axis=(1, 2))
    y_x, y_o = (
        np.minimum(_joint(net, [*others, effect], {cause: state}).reshape(-1, y.card)[:, j], share)
        for state in (x.states[i], x.states[1 - i])
    )
    least = np.maximum(0.0, y_x - y_o)
    most = np.minimum(y_x, share - y_o) if acts else least
    if monotonic:
        _require_monotonic(y_x, y_o, cause, effect)
        most = least
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(share[:, None] > 0, joint.sum(axis=2) / share[:, None], 0.0)
    bounds = (
        _within(shares[:, 0], least, most, float(joint[:, 0, 0].sum())),
        _within(shares[:, 1], least, most, float(joint[:, 1, 1].sum())),
        _within(np.ones(len(share)), least, most, 1.0),
    )
    return _of_states(bounds, x.states[i], y.states[j])


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


def _others(net: BayesianNetwork, cause: str, effect: str) -> list[str]:
    """What acts on the effect, or on what lies between, and is not touched by the cause."""
    found = adjustment_sets(net, cause, effect, optimal=True)[0]
    return [name for name in net.names if name in found]


def _joint(net: BayesianNetwork, names: list[str], do: dict[str, State] | None) -> Array:
    return np.asarray(net.query(names if len(names) > 1 else names[0], do=do).values)


def _require_monotonic(y_x: Array, y_o: Array, cause: str, effect: str) -> None:
    """EvidenceError where the cause makes the effect rarer, so that it must prevent it sometimes."""
    short = float((y_o - y_x).max())
    if short > SLACK:
        raise EvidenceError(
            f"monotonic=True says that {cause!r} never prevents {effect!r}, but with the other causes in one of their "
            f"settings it makes it rarer, by {short:.3g} of all cases; leave monotonic= out, or exchange the states"
        )


def _within(shares: Array, least: Array, most: Array, given: float) -> Ends:
    """Both ends over the share that they are conditioned on, kept between 0 and 1."""
    if not given > 0:
        return float("nan"), float("nan")
    low, high = (min(1.0, max(0.0, float(shares @ ends) / given)) for ends in (least, most))
    return low, high


def _discrete(net: BayesianNetwork, name: str) -> Variable:
    variable = net.variable(name)
    if isinstance(variable, Continuous):
        raise EvidenceError(f"{name!r} is continuous; causes and effects are states here")
    return variable
