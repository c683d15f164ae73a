"""Observed effects of many causes, without their tables: what draws of the causes look at.

Of an observed NoisyMax, and of an observed maximum or minimum, what depends on one cause alone is taken into that
cause's likelihood (`bbn.inference.sampling.gibbs_causes`). What is left is a noisy-or that is known to be there: 1 −
∏ n_i(x_i), where n_i(x) is the probability that cause i in state x does not bring it. Nothing between causes and
effect is drawn: rows weigh 1 − ∏ n_i. Drawing the causes in turn, each may look at what those before it left
unexplained, and at which cause after it may explain that, alone or with others (`bbn.kernels.contracts.seen`). How
probable those are is what loopy propagation says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.sampling.draws import Draw, Hope, Term
from bbn.inference.sampling.gibbs_causes import Family, effect_family
from bbn.model.evidence import Findings, Model
from bbn.model.expansion import free_names
from bbn.model.factor import Factor
from bbn.model.factored import Factored
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable

MOST_LEADERS = 64
"""The most causes that are looked for one by one; of more, the others are hoped for together."""
FAINT = 1e-12


class Effect(NamedTuple):
    """An observed effect of several causes.

    Attributes
    ----------
    causes
        The causes that are not observed.
    leaves
        Per cause, an array (states, 2): the probability that it does not bring the effect, and that it does.
    start
        The same of all that is constant.
    """

    causes: tuple[Variable, ...]
    leaves: list[Array]
    start: Array


class SeenEffects(NamedTuple):
    """The observed effects of a question, and the question without them.

    Attributes
    ----------
    names
        The variables that are still drawn or weighed.
    findings
        The findings, with likelihoods for what an effect says of one cause alone.
    effects
        The effects of two causes or more.
    scale
        The factor that all rows share.
    """

    names: list[str]
    findings: Findings
    effects: list[Effect]
    scale: float


def seen_effects(model: Model, net: BayesianNetwork, names: Sequence[str], findings: Findings) -> SeenEffects:
    """Take the observed effects of many causes out of a question.

    Parameters
    ----------
    model
        The network asked.
    net
        The same with chains of small tables for some conditionals.
    names
        The variables of `net` that matter.
    findings
        What is observed.
    """
    assert isinstance(model, BayesianNetwork)
    likelihood, scale = dict(findings.likelihood), 1.0
    effects: list[Effect] = []
    taken: set[str] = set()
    for name in findings.hard:
        own = model[name]
        found = effect_family(own, findings.hard) if isinstance(own, Factored) else None
        if found is None:
            continue
        taken |= _chain(net, name, model)
        family, factors = found
        if family is not None and len(family.parents) < 2:
            factors = [*factors, _alone(family)]
        elif family is not None:
            effects.append(Effect(family.parents, family.leaves[:-1], family.leaves[-1][0]))
        for factor in factors:
            if factor.names:
                (cause,) = factor.names
                likelihood[cause] = likelihood.get(cause, 1.0) * factor.values
            else:
                scale *= float(factor.values)
    left = [name for name in names if name not in taken]
    return SeenEffects(left, findings._replace(likelihood=likelihood), effects, scale)


def _alone(family: Family) -> Factor:
    """What an effect of at most one cause says of it."""
    (below, at), leaves = family.leaves[-1][0], family.leaves[:-1]
    if not leaves:
        return Factor.trusted((), np.asarray(at))
    return Factor.trusted(family.parents, at + below * leaves[0][:, 1])


def _chain(net: BayesianNetwork, name: str, model: BayesianNetwork) -> set[str]:
    """An effect and the variables of its chain, which the model does not have."""
    found, waiting = {name}, [name]
    while waiting:
        for parent in net.parents(waiting.pop()):
            if parent not in model and parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def chain_factors(effects: Sequence[Effect], names: Collection[str]) -> list[list[Factor]]:
    """Per effect a chain of small tables, one per cause in order, with variables between them that `names` lack."""
    free = free_names(names)
    chains = []
    for effect in effects:
        before: tuple[Variable, ...] = ()
        chain = []
        for i, (cause, leaf) in enumerate(zip(effect.causes, effect.leaves, strict=True)):
            table = np.zeros((2, cause.card, 2))
            table[0], table[1, :, 1] = leaf, 1.0
            if i == 0:
                table = np.tensordot(effect.start, table, 1)
            after: tuple[Variable, ...] = (Variable(free(f"after {cause.name}"), [0, 1]),)
            if i == len(effect.causes) - 1:
                table, after = table[..., 1], ()
            chain.append(Factor.trusted((*before, cause, *after), table))
            before = after
        chains.append(chain)
    return chains


def looking(
    draws: Sequence[Draw], effects: Sequence[Effect], columns: Mapping[str, int]
) -> tuple[list[Draw], Hope]:
    """The draws with what each cause does to the effects; they do not look at them, which only weigh."""
    terms: dict[int, list[Term]] = {}
    for f, effect in enumerate(effects):
        for cause, leaf in zip(effect.causes, effect.leaves, strict=True):
            terms.setdefault(columns[cause.name], []).append(Term(f, np.ascontiguousarray(leaf)))
    hope = Hope([effect.start for effect in effects], [], np.empty(0), np.empty((0, len(effects))))
    return [draw._replace(terms=tuple(terms.get(draw.column, ()))) for draw in draws], hope


def looked(
    draws: Sequence[Draw],
    effects: Sequence[Effect],
    columns: Mapping[str, int],
    alone: Mapping[str, Array],
    towards: Sequence[Mapping[str, Array]],
    boost: Mapping[str, float],
) -> Hope:
    """What draws look at: the causes still to come, and what they reach.

    Parameters
    ----------
    draws
        In order.
    alone
        The distribution of each cause but for the effects.
    towards
        Per effect and cause, the distribution of the cause but for this effect.
    boost
        Of how much more probable the effects make each cause; where there are many causes, those with most lead.
    """
    turn = {draw.column: i for i, draw in enumerate(draws)}
    causes = sorted(alone, key=lambda name: -turn[columns[name]])
    leading = set(sorted(causes, key=lambda name: -boost[name])[:MOST_LEADERS])
    leaves = [{c.name: leaf for c, leaf in zip(e.causes, e.leaves, strict=True)} for e in effects]
    missed = np.ones(len(effects))  # the probability that no cause after this one brings each effect
    others = np.ones(len(effects))  # that no cause does that is no leader
    for f, by_cause in enumerate(leaves):
        for name, leaf in by_cause.items():
            if name not in leading:
                others[f] *= 1 - float(towards[f][name] @ leaf[:, 1])
    leaders, chance, reach = [], [1.0], [np.maximum(1 - others, FAINT)]
    for name in causes:
        own = [by_cause.get(name) for by_cause in leaves]
        if name in leading:
            active = _active(name, own, alone[name])
            total = float(active.sum())
            brings = np.array(
                [0.0 if leaf is None else active @ leaf[:, 1] / max(total, FAINT) for leaf in own]
            )
            leaders.append(columns[name])
            chance.append(min(total, 1 - FAINT))
            reach.append(np.maximum(brings + (1 - brings) * (1 - missed), FAINT))
        for f, brought in enumerate(own):
            if brought is not None:
                missed[f] *= 1 - float(towards[f][name] @ brought[:, 1])
    return Hope(
        [effect.start for effect in effects],
        leaders[::-1],
        np.array(chance[::-1]),
        np.ascontiguousarray(reach[::-1]),
    )


def active_share(name: str, effects: Sequence[Effect], shares: Array) -> float:
    """How probable it is that a cause is in another state than the one that brings least."""
    own = [leaf for e in effects for c, leaf in zip(e.causes, e.leaves, strict=True) if c.name == name]
    return float(_active(name, own, shares).sum())


def _active(name: str, leaves: Sequence[Array | None], shares: Array) -> Array:
    """The shares of the states but for the one that brings least."""
    brings = sum(leaf[:, 1] for leaf in leaves if leaf is not None)
    kept = shares.copy()
    kept[int(np.argmin(brings))] = 0.0
    return kept
