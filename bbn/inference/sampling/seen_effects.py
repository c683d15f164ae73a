"""Observed effects of many causes, without their tables: what draws of the causes look at.

Of an observed NoisyMax, and of an observed maximum or minimum, what depends on one cause alone is taken into that cause's
likelihood (`bbn.inference.sampling.gibbs_causes`). What is left is a noisy-or that is known to be there: 1 − ∏ n_i(x_i), where
n_i(x) is the probability that cause i in state x does not bring it. Nothing between causes and effect is drawn: rows weigh
1 − ∏ n_i. Drawing the causes in turn, each may look at what those before it left unexplained, and at what those after
it are likely to explain: E[n_j] under the message that loopy propagation sends from x_j to the effect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.sampling.draws import Draw, Term
from bbn.inference.sampling.gibbs_causes import Family, effect_family
from bbn.model.evidence import Findings, Model
from bbn.model.expansion import free_names
from bbn.model.factor import Factor
from bbn.model.factored import Factored
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable


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
    draws: Sequence[Draw],
    effects: Sequence[Effect],
    columns: Mapping[str, int],
    expected: Sequence[Mapping[str, Array]] | None = None,
) -> list[Draw]:
    """The draws with what each cause does to the effects, and what it leaves to hope for.

    `expected` gives per effect and cause the distribution that the cause is likely to be drawn from, but for this
    effect; None: draws do not look at the effects, which only weigh.
    """
    turn = {draw.column: i for i, draw in enumerate(draws)}
    terms: dict[int, list[Term]] = {}
    for f, effect in enumerate(effects):
        order = sorted(range(len(effect.causes)), key=lambda i: -turn[columns[effect.causes[i].name]])
        none_later = 1.0
        for i in order:
            name, leaf = effect.causes[i].name, effect.leaves[i]
            hope = np.ones(len(leaf)) if expected is None else leaf[:, 1] + leaf[:, 0] * (1 - none_later)
            terms.setdefault(columns[name], []).append(Term(f, np.column_stack([leaf, hope])))
            if expected is not None:
                none_later *= 1 - float(expected[f][name] @ leaf[:, 1])
    return [draw._replace(terms=tuple(terms.get(draw.column, ()))) for draw in draws]
