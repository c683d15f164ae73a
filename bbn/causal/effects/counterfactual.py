"""Counterfactuals: what would have been, had something else been done, given what was (Balke and Pearl 1994).

A twin network holds both worlds: the one that was, with the evidence, and the one that might have been, with the
intervention. They share everything that the intervention does not reach, noise included. So the noise must be
explicit: a variable that the intervention does reach must be a function of its parents (a table of zeros and ones, or
a Deterministic); a Gaussian, whose noise is what the parents leave of it, so that
x* = x + mean(parents*) − mean(parents); or a NoisyMax, whose noise is the effect of each of its causes
(`bbn.causal.effects.noisy_twin`). A plain table does not say which function its noise picks in the other world; two
models with the same table answer differently, so there is no answer, only bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bbn.causal.effects.noisy_twin import twin_effects
from bbn.core.errors import EvidenceError, NotIdentifiableError
from bbn.model.cpt import CPT, Conditional
from bbn.model.deterministic import Deterministic
from bbn.model.evidence import Evidence, check_targets
from bbn.model.expansion import free_names
from bbn.model.gaussian import Gaussian
from bbn.model.interventions import Interventions, conditional_of
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Continuous, Variable
from bbn.results.mixture_posterior import MixturePosterior
from bbn.results.posterior import Posterior

KEPT = 64
"""The most twin networks that are kept with a network."""


def counterfactual(
    net: BayesianNetwork,
    targets: str | Sequence[str],
    evidence: Evidence | None,
    do: Interventions,
    **options: Any,
) -> Posterior | MixturePosterior:
    """The posterior that targets would have had under `do`, given evidence about the world as it is.

    See `BayesianNetwork.counterfactual`.
    """
    names = check_targets(net, targets)
    twin, other = twin_network(net, names, do)
    asked = [other.get(name, name) for name in names]
    answer = twin.query(asked if len(asked) > 1 else asked[0], evidence, **options)
    if isinstance(answer, MixturePosterior):
        variable = net.variable(names[0])
        assert isinstance(variable, Continuous)
        given = tuple(_unstarred(v, net, other) for v in answer.given)
        return MixturePosterior(
            variable,
            given,
            answer.weights,
            answer.means,
            answer.variances,
            answer.log_evidence,
            answer.sampling,
        )
    variables = tuple(net.variable(name) for name in names)
    return Posterior(variables, answer.values, answer.log_evidence, answer.sampling)


def twin_network(
    net: BayesianNetwork, targets: Sequence[str], do: Interventions
) -> tuple[BayesianNetwork, dict[str, str]]:
    """The network of both worlds, and the name in the other world of each variable that differs there.

    >>> import bbn
    >>> coin = bbn.CPT(bbn.Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])
    >>> bet = bbn.CPT(bbn.Variable("Bet", ["heads", "tails"]), table=[0.5, 0.5])
    >>> win = bbn.CPT.deterministic(bbn.Variable("Win", ["yes", "no"]), [coin.variable, bet.variable],
    ...     lambda coin, bet: "yes" if coin == bet else "no")
    >>> twin, other = twin_network(bbn.BayesianNetwork([coin, bet, win]), ["Win"], {"Bet": "heads"})
    >>> other, twin.parents("Win*")
    ({'Bet': 'Bet*', 'Win': 'Win*'}, ('Coin', 'Bet*'))
    """
    if not isinstance(do, Mapping) or not do:
        raise EvidenceError(
            f"a counterfactual needs what is done, a mapping from variable to state, found {do!r}"
        )
    placed = {name: conditional_of(net, net.variable(name), what) for name, what in do.items()}
    try:
        key: Any = (tuple(targets), tuple(placed.items()))
        kept = net.memo.setdefault("twins", {})
        found = kept.get(key)
    except TypeError:
        found = None
    if found is None:
        found = _twin(net, targets, placed)
        if len(kept) >= KEPT:
            kept.clear()
        kept[key] = found
    return found  # type: ignore[no-any-return]


def _twin(
    net: BayesianNetwork, targets: Sequence[str], placed: Mapping[str, Conditional]
) -> tuple[BayesianNetwork, dict[str, str]]:
    cut = net.with_cpts(placed.values())
    wanted = cut.ancestral_set(targets)
    differs: set[str] = set()
    for name in cut.names:  # causes first
        if name in wanted and (name in placed or any(parent in differs for parent in cut.parents(name))):
            differs.add(name)
    other: dict[str, str] = {}
    for name in cut.names:
        if name in differs:
            starred = f"{name}*"
            while starred in net or starred in other.values():
                starred += "*"
            other[name] = starred
    variables = {name: _starred(net.variable(name), other[name]) for name in other}
    here: dict[str, Conditional] = dict(zip(net.names, net.conditionals, strict=True))
    added: list[Conditional] = []
    free = free_names([*net.names, *other.values()])
    for name in cut.names:
        own = here[name]
        if name in placed and name in other:
            added.append(_moved(placed[name], variables))
        elif name in other and isinstance(own, NoisyMax):
            here[name], more = twin_effects(own, variables, placed, free)
            added += more
        elif name in other:
            added.append(_function(net, name, variables))
    return BayesianNetwork([*here.values(), *added], net.name), other


def _starred(variable: Variable, name: str) -> Variable:
    return Continuous(name) if isinstance(variable, Continuous) else Variable(name, variable.states)


def _unstarred(variable: Variable, net: BayesianNetwork, other: Mapping[str, str]) -> Variable:
    back = {starred: name for name, starred in other.items()}
    return net.variable(back[variable.name]) if variable.name in back else variable


def _moved(conditional: Conditional, variables: Mapping[str, Variable]) -> Conditional:
    """A conditional of the other world: the same numbers, variables that differ there in their other form."""
    child = variables[conditional.variable.name]
    parents = tuple(variables.get(p.name, p) for p in conditional.parents)
    if isinstance(conditional, Gaussian):
        assert isinstance(child, Continuous)
        return conditional.with_family(child, parents)
    assert isinstance(conditional, CPT)
    if isinstance(conditional, Deterministic):
        return conditional.with_family(child, parents)
    return CPT.trusted(child, parents, conditional.table)


def _function(net: BayesianNetwork, name: str, variables: Mapping[str, Variable]) -> Conditional:
    """The variable of the other world as a function of what it has there, and of its noise in this one."""
    own: Conditional = net[name]
    if isinstance(own, Gaussian):
        return _shifted(own, variables)
    if isinstance(own, Deterministic):
        return _moved(own, variables)
    if not isinstance(own, CPT) or not np.isin(own.table, (0.0, 1.0)).all():
        changed = [p.name for p in own.parents if p.name in variables]
        raise NotIdentifiableError(
            f"what {name!r} would have been had {', '.join(changed)} been different is not decided by its table: it "
            "gives probabilities, not what the noise behind them does in another world. Write the noise as a variable, "
            f"and {name!r} as a function of it and its causes (CPT.deterministic), or use Gaussians or bbn.NoisyMax; "
            "bbn.causation_bounds gives the sharp bounds of necessity and sufficiency that tables imply"
        )
    return _moved(own, variables)


def _shifted(own: Gaussian, variables: Mapping[str, Variable]) -> Gaussian:
    """x* = x + mean(parents*) − mean(parents), exactly: a Gaussian of variance 0."""
    child = variables[own.name]
    assert isinstance(child, Continuous)
    discrete = own.discrete_parents
    _require_same_noise(own, [v for v in discrete if v.name in variables], discrete)
    changed = [v for v in discrete if v.name in variables]
    there = tuple(variables.get(v.name, v) for v in discrete)
    axes = (*discrete, *(variables[v.name] for v in changed))
    here_index = tuple(range(len(discrete)))
    there_index = tuple(axes.index(v) for v in there)
    shape = tuple(v.card for v in axes)

    def spread(values: Any, index: tuple[int, ...]) -> Any:
        """An array by the settings of the parents, over the settings of both worlds."""
        grid = np.indices(shape)
        return values[tuple(grid[i] for i in index)]

    means = spread(own.means, there_index) - spread(own.means, here_index)
    weights: dict[Variable, Any] = {own.variable: np.ones(shape)}
    for k, parent in enumerate(own.continuous_parents):
        for variable, index, sign in (
            (variables.get(parent.name, parent), there_index, 1),
            (parent, here_index, -1),
        ):
            weights[variable] = weights.get(variable, 0.0) + sign * spread(own.weights[..., k], index)
    kept = {v: w for v, w in weights.items() if np.any(w != 0)}
    return Gaussian.trusted(
        child,
        (*axes, *kept),
        np.asarray(means, dtype=float),
        np.zeros(shape),
        np.stack([np.broadcast_to(w, shape) for w in kept.values()], axis=-1),
    )


def _require_same_noise(own: Gaussian, changed: list[Variable], discrete: tuple[Variable, ...]) -> None:
    """NotIdentifiableError if the width of the noise depends on what differs between the worlds."""
    for variable in changed:
        axis = discrete.index(variable)
        first = np.take(own.variances, [0], axis=axis)
        if not np.all(own.variances == first):
            raise NotIdentifiableError(
                f"the variance of {own.name!r} depends on {variable.name!r}, which differs between the worlds: what "
                "its noise would have been there is not decided; a tied variance (tied_variance=True) decides it"
            )
