"""What an effect is estimated with: the structure to fit, with the arcs into the treatment cut, or an estimand.

Without hidden causes the families of D, the ancestors of the outcome once the treatment is set, are all that is needed:
P(y | do(x)) = Σ ∏_{v ∈ D} P(v | parents of v). Where hidden causes leave a set Z to adjust for, the structure is the
saturated one over Z, treatment and outcome. Where there is none, `identify` may still find a formula.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import networkx as nx

from bbn.causal.effects.arm_rows import with_arm_rows
from bbn.causal.effects.outcome_regression import OutcomeRegression, needs_regression
from bbn.causal.graph.causal_graph import CausalGraph, as_causal_graph
from bbn.causal.graph.graph_parts import Names
from bbn.causal.identification.adjustment import adjustment_sets, check_adjustment
from bbn.causal.identification.estimand import Estimand
from bbn.causal.identification.evaluation import has_thin_levels, numeric_columns
from bbn.causal.identification.front_door import one_measured
from bbn.causal.identification.identify import identify
from bbn.core.errors import EvidenceError, NotIdentifiableError, UnseenRowsWarning
from bbn.data import DataSource, continuous_columns
from bbn.learning.tables.fit import fit
from bbn.learning.tables.priors import Prior
from bbn.model.equivalence import is_cpdag
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State


class EffectPlan(NamedTuple):
    """How an effect is estimated."""

    treatment: str
    outcome: str
    arcs: tuple[tuple[str, str], ...] | None
    """The structure to fit, without arcs into the treatment; None where an estimand is evaluated instead."""
    estimand: Estimand | None
    parents: tuple[str, ...] | None
    """What the treatment depends on, which suffices to adjust for; None if nothing measured does."""
    predictors: tuple[str, ...]
    """What predicts the outcome, besides the treatment, in the doubly robust estimator."""
    columns: tuple[str, ...]
    """The columns that are needed."""
    states: Mapping[str, Sequence[State]]
    """States that the graph declares."""
    adjusted: Names | None
    """The set that is adjusted for, or the parents of the treatment."""
    saturated: bool = False
    """Whether everything in that set may depend on everything else."""
    regressed: bool = False
    """Whether the outcome has states and a cause that is a number: then it is regressed, and there are no tables."""

    @property
    def acts(self) -> bool:
        """Whether the treatment has a way to the outcome, by the structure."""
        return self.arcs is None or nx.has_path(nx.DiGraph(self.arcs), self.treatment, self.outcome)

    def suited_to(self, source: DataSource) -> EffectPlan:
        """The plan for these data: tables cannot have parents that are numbers, so the outcome is regressed there."""
        numbers = frozenset(continuous_columns(source))
        if self.arcs is None or not needs_regression(self.arcs, numbers):
            return self
        if self.outcome not in numbers:
            return self._replace(regressed=True)
        arcs = [(a, self.outcome) for a in (*((self.treatment,) if self.acts else ()), *self.predictors)]
        return self._replace(
            arcs=_with_all(arcs, (self.treatment, *self.predictors, self.outcome)), saturated=True
        )


def plan_of(
    graph: Any,
    treatment: str,
    outcome: str,
    latent: str | Iterable[str],
    adjusted: str | Iterable[str] | None,
) -> EffectPlan:
    """The plan; NotIdentifiableError if there is none."""
    states = declared_states(graph)
    if not isinstance(graph, CausalGraph) and hasattr(graph, "predecessors") and is_cpdag(graph):
        chosen = _chosen(graph, treatment, outcome, latent, adjusted)
        if chosen is None:
            raise NotIdentifiableError(
                f"the members of the class disagree about the effect of {treatment!r} on {outcome!r}: no set of "
                "variables is valid in all of them; bbn.to_dag picks one member"
            )
        return _saturated(treatment, outcome, chosen, states)
    full = as_causal_graph(graph, latent)
    x, y = one_measured(full, treatment, "treatment"), one_measured(full, outcome, "outcome")
    if x == y:
        raise EvidenceError(f"{x!r} is both treatment and outcome")
    if adjusted is not None:
        return _saturated(x, y, _chosen(full, x, y, (), adjusted) or frozenset(), states)
    measured = full.projected()
    near = measured.ancestors([x, y])
    if not any(a in near and b in near for a, b in measured.confounded):
        return _factored(measured, x, y, states)
    found = adjustment_sets(full, x, y, optimal=True)
    if found:
        return _saturated(x, y, found[0], states)
    estimand = identify(full, y, do=x)
    columns = tuple(dict.fromkeys((*estimand.variables, x, y)))
    return EffectPlan(x, y, None, estimand, None, (), columns, states, None)


def declared_states(graph: Any) -> dict[str, Sequence[State]]:
    """The states that a graph's nodes, or a network's variables, declare."""
    if isinstance(graph, BayesianNetwork):
        return {v.name: v.states for v in graph.variables if not isinstance(v, Continuous)}
    if hasattr(graph, "nodes") and hasattr(graph, "predecessors"):
        return {name: listed for name, listed in graph.nodes(data="states") if listed}
    return {}


def declared_numbers(graph: Any) -> frozenset[str]:
    """The variables that a graph's nodes, or a network, declare to be numbers."""
    if isinstance(graph, BayesianNetwork):
        return frozenset(graph.continuous)
    if hasattr(graph, "nodes") and hasattr(graph, "predecessors"):
        return frozenset(name for name, told in graph.nodes(data="continuous") if told)
    return frozenset()


def numbers_among(
    data: Any,
    names: Sequence[str],
    graph: Any,
    continuous: str | Iterable[str] | None,
    kinds: Mapping[str, str] | None,
    states: Mapping[str, Sequence[State]],
    missing: Any,
    treatment: str | None = None,
) -> list[str]:
    """Which columns are numbers: those that are named, else what the graph or `kinds` says, else by what they hold."""
    if continuous is not None:
        listed = {continuous} if isinstance(continuous, str) else set(continuous)
        return [name for name in names if name in listed]
    numbers = declared_numbers(graph) - set(kinds or {}) - set(states)
    open_ones = [name for name in names if name not in numbers and name not in states]
    found = {*numbers, *numeric_columns(data, open_ones, kinds, missing)}
    if treatment in open_ones and treatment not in (kinds or {}) and has_thin_levels(data, treatment):
        found.add(treatment)
    return [name for name in names if name in found]


def _chosen(
    graph: Any,
    treatment: str,
    outcome: str,
    latent: str | Iterable[str],
    adjusted: str | Iterable[str] | None,
) -> Names | None:
    """The set that was asked for, if it is valid, or the best there is; None if there is none."""
    if adjusted is None:
        found = adjustment_sets(graph, treatment, outcome, latent, optimal=True)
        return found[0] if found else None
    chosen = frozenset([adjusted] if isinstance(adjusted, str) else adjusted)
    check = check_adjustment(graph, treatment, outcome, chosen, latent)
    if not check:
        raise EvidenceError(
            f"adjusting for {', '.join(sorted(chosen)) or 'nothing'} does not suffice: {check.reason}"
        )
    return chosen


def _factored(graph: CausalGraph, x: str, y: str, states: Mapping[str, Sequence[State]]) -> EffectPlan:
    """Every variable is measured: fit the families that the effect runs through."""
    wanted = graph.ancestors(y, within=frozenset(graph.nodes) - {x}) | {x}
    arcs = tuple((a, b) for a, b in graph.arcs if a in wanted and b in wanted and b != x)
    best = adjustment_sets(graph, x, y, optimal=True)
    predictors = tuple(name for name in graph.nodes if best and name in best[0])
    parents = graph.parents(x)
    inner = [name for name in graph.nodes if name in wanted]
    columns = tuple(dict.fromkeys((*inner, *parents, *predictors, x, y)))
    return EffectPlan(
        x, y, _with_all(arcs, inner), None, parents, predictors, columns, states, frozenset(parents)
    )


def _saturated(x: str, y: str, chosen: Names, states: Mapping[str, Sequence[State]]) -> EffectPlan:
    """Adjust for a set: everything in it may depend on everything else."""
    covariates = tuple(sorted(chosen))
    arcs = [(a, y) for a in (x, *covariates)]
    columns = (*covariates, x, y)
    return EffectPlan(
        x, y, _with_all(arcs, columns), None, covariates, covariates, columns, states, chosen, True
    )


def _with_all(arcs: Iterable[tuple[str, str]], names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Arcs, with a pair (name, name) for each name, which keeps those without arcs."""
    return (*arcs, *((name, name) for name in names))


def structure(plan: EffectPlan, source: DataSource) -> nx.DiGraph[str]:
    """The structure to fit; covariates that are adjusted for are joined, states before numbers."""
    assert plan.arcs is not None
    graph: nx.DiGraph[str] = nx.DiGraph()
    numbers = set(continuous_columns(source))
    graph.add_nodes_from(a for a, b in plan.arcs if a == b)
    graph.add_edges_from((a, b) for a, b in plan.arcs if a != b)
    if plan.saturated:
        order = sorted(plan.predictors, key=lambda name: (name in numbers, name))
        graph.add_edges_from((a, b) for i, a in enumerate(order) for b in order[i + 1 :])
    for v in source.variables:
        if v.name in graph:
            graph.nodes[v.name]["states"] = v.states
    for name in numbers & set(graph):
        graph.nodes[name]["continuous"] = True
    return graph


def fitted(
    plan: EffectPlan, source: DataSource, prior: Prior | None, keep_counts: bool = False
) -> BayesianNetwork | Estimand | OutcomeRegression:
    """The network fitted to the data in which the treatment has no causes, the estimand, or the regression."""
    if plan.regressed:
        return OutcomeRegression(plan, source)
    if plan.arcs is None:
        assert plan.estimand is not None
        return plan.estimand
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenRowsWarning)  # those that matter are told as a lack of overlap
        net = fit(structure(plan, source), source, prior, keep_counts=keep_counts)
    return with_arm_rows(net, source, plan.treatment) if prior is None else net
