"""Edits of a network by value: each takes a network and gives a new one, the old one untouched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bbn.core.errors import EvidenceError, ModelError
from bbn.model.assembly import by_name
from bbn.model.cpt import CPT, Conditional, discrete_child
from bbn.model.factored import Factored
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.node_notes import renamed
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Continuous, State, Variable


def with_cpts(net: BayesianNetwork, cpts: Iterable[Conditional]) -> BayesianNetwork:
    """The network with these conditionals in place of (or beside) those of the same variables."""
    kept: dict[str, Conditional] = dict(zip(net.names, net.conditionals, strict=True))
    kept.update(by_name(cpts))
    return BayesianNetwork(kept.values(), net.name, net.metadata)


def rename(net: BayesianNetwork, names: Mapping[str, str]) -> BayesianNetwork:
    """The network with nodes renamed, old name to new name; swaps are fine."""
    if not isinstance(names, Mapping):
        raise EvidenceError(f"rename needs a mapping from old to new name, found {names!r}")
    for old in names:
        net.variable(old)
    return _substitute(
        net,
        {
            old: Continuous(new)
            if isinstance(net.variable(old), Continuous)
            else Variable(new, net.states(old))
            for old, new in names.items()
        },
    )


def relabel(net: BayesianNetwork, name: str, states: Mapping[State, State]) -> BayesianNetwork:
    """The network with states of one variable renamed, old state to new state; those not named stay."""
    variable = net.variable(name)
    if isinstance(variable, Continuous):
        raise EvidenceError(f"variable {name!r} is continuous; it has no states to rename")
    if not isinstance(states, Mapping):
        raise EvidenceError(f"relabel needs a mapping from old to new state, found {states!r}")
    new = list(variable.states)
    for old, label in states.items():
        new[variable.code(old)] = label
    return _substitute(net, {name: Variable(name, new)})


def add_arc(net: BayesianNetwork, parent: str, child: str) -> BayesianNetwork:
    """The network with the arc parent → child; the child's table is repeated along its new last parent.

    The joint does not change: the child is still independent of the new parent given the others.
    """
    given, new = net[child], net.variable(parent)
    if parent in net.parents(child):
        raise ModelError(f"{parent!r} is a parent of {child!r} already")
    if isinstance(given, Gaussian):
        return net.with_cpts([_one_parent_more(given, new)])
    cpt = _table(net, child)
    if isinstance(new, Continuous):
        raise ModelError(discrete_child(child, parent))
    if isinstance(cpt, NoisyMax):
        return net.with_cpts([cpt.with_parent(new)])
    shape = (*cpt.table.shape[:-1], new.card, cpt.variable.card)
    table = np.broadcast_to(np.expand_dims(cpt.table, -2), shape)
    return net.with_cpts([CPT(cpt.variable, [*cpt.parents, new], table)])


def _one_parent_more(given: Gaussian, new: Variable) -> Gaussian:
    """The Gaussian with one more parent, last, that changes nothing."""
    parents = (*given.parents, new)
    if isinstance(new, Continuous):
        weights = np.concatenate([given.weights, np.zeros((*given.means.shape, 1))], axis=-1)
        means, variances = given.means, given.variances
    else:
        means, variances = (
            np.repeat(a[..., None], new.card, axis=-1) for a in (given.means, given.variances)
        )
        weights = np.repeat(given.weights[..., None, :], new.card, axis=-2)
    return Gaussian(
        given.variable, parents, means, variances, weights, given.tied_variance, given.fixed_variance
    )


def remove_arc(
    net: BayesianNetwork, parent: str, child: str, weights: Mapping[State, float] | None = None
) -> BayesianNetwork:
    """The network without the arc parent → child; the child's table is averaged over the parent's states.

    The average is plain unless `weights` gives each state of the parent its weight.
    """
    cpt, gone = _table(net, child), net.variable(parent)
    if gone not in cpt.parents:
        raise ModelError(f"there is no arc {parent!r} → {child!r} to remove")
    shares = np.ones(gone.card)
    for state, weight in (weights or {}).items():
        shares[gone.code(state)] = weight
    if weights is not None and len(weights) != gone.card:
        raise EvidenceError(f"weights must name every state of {parent!r}: {list(gone.states)}")
    if not (np.isfinite(shares).all() and shares.min() >= 0 and shares.sum() > 0):
        raise EvidenceError(f"weights must be finite, not negative and not all zero, found {weights!r}")
    if isinstance(cpt, NoisyMax):
        return net.with_cpts([cpt.without_parent(gone, shares / shares.sum())])
    table = np.average(cpt.table, axis=cpt.parents.index(gone), weights=shares)
    return net.with_cpts([CPT(cpt.variable, [p for p in cpt.parents if p != gone], table)])


def discrete_part(net: BayesianNetwork) -> BayesianNetwork:
    """The network of the discrete variables, itself if there are no others."""
    if not net.continuous:
        return net
    discrete = [c for c in net.conditionals if not isinstance(c.variable, Continuous)]
    return BayesianNetwork(discrete, net.name, net.metadata)


def subnetwork(net: BayesianNetwork, names: Iterable[str]) -> BayesianNetwork:
    """The network of these variables and all their ancestors, whose joint is the marginal of the whole one."""
    wanted = net.ancestral_set([names] if isinstance(names, str) else names)
    return BayesianNetwork([c for c in net.conditionals if c.variable.name in wanted], net.name, net.metadata)


def _substitute(net: BayesianNetwork, variables: Mapping[str, Variable]) -> BayesianNetwork:
    """The network with variables replaced by others of as many states, old name to new variable."""
    conditionals: list[Conditional] = []
    for name in net.names:
        given: Conditional = net[name]
        parents = tuple(variables.get(p.name, p) for p in given.parents)
        if isinstance(given, Gaussian):
            conditionals.append(
                given.with_family(Continuous(variables.get(name, given.variable).name), parents)
            )
        elif isinstance(given, Factored):
            conditionals.append(given.with_family(variables.get(name, given.variable), parents))
        else:
            cpt = _table(net, name)
            conditionals.append(CPT(variables.get(name, cpt.variable), parents, cpt.table))
    new = {old: variable.name for old, variable in variables.items()}
    return BayesianNetwork(conditionals, net.name, renamed(net.metadata, net.names, new))


def _table(net: BayesianNetwork, name: str) -> CPT:
    cpt = net[name]
    if not isinstance(cpt, CPT):
        raise ModelError(f"{name!r} is a {type(cpt).__name__}, not a table; it cannot be edited this way")
    return cpt
