"""Identification: whether P(outcome | do(treatment), given) follows from the graph and what is measured, and how.

ID and IDC (Shpitser and Pearl 2006a, 2006b), in the form of Tian and Pearl (2002). With Q[S] = P(S | do(all others)):

    V ← ancestors of Y;  D ← ancestors of Y in G[V \\ X]
    P(y | do(x)) = Σ_{D \\ Y} ∏ Q[D_i]            D_i the districts of G[D], each inside a district S_i of G[V]
    Q[S] = ∏_{v ∈ S} P(v | what precedes v)       for a district S
    Q[C] from Q[T], C ⊂ T, both in one piece:     A ← ancestors of C in G[T]
        A = C:  Σ_{T \\ C} Q[T]                    A = T:  not identifiable; T and C are a hedge
        else:   T' ← the district of G[A] around C;  Q[T'] from Σ_{T \\ A} Q[T];  go on with C and T'

It is complete (Huang and Valtorta 2006; Shpitser and Pearl 2006a): where it fails, two models agree on all that is
measured and differ in the effect. Each step takes time linear in the graph, and there are at most as many as nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from bbn.causal.graph.causal_graph import CausalGraph, as_causal_graph
from bbn.causal.graph.graph_parts import Names
from bbn.causal.identification.adjustment import smallest_adjustment
from bbn.causal.identification.estimand import Estimand
from bbn.causal.identification.expression import (
    Expression,
    Probability,
    probabilities,
    product,
    quotient,
    tidy,
    total,
)
from bbn.core.errors import EvidenceError, NotIdentifiableError
from bbn.core.keywords import keywords_checked


@keywords_checked
@keywords_checked
def identify(
    graph: Any,
    outcome: str | Iterable[str],
    do: str | Iterable[str],
    given: str | Iterable[str] = (),
    latent: str | Iterable[str] = (),
) -> Estimand:
    """Express the effect of an intervention by what is measured, or show that it cannot be done.

    Parameters
    ----------
    graph
        A `CausalGraph`, a DiGraph, a network or a list of arcs.
    outcome
        The variable, or several, whose distribution is asked for.
    do
        The variable, or several, that are set from outside.
    given
        Variables observed after the intervention.
    latent
        Variables of the graph that are not measured, besides those it says are hidden.

    Returns
    -------
    Estimand
        Prints as a formula, `.latex()` typesets it, `.evaluate(network_or_data, do={…})` computes it. It is an
        adjustment formula or the one that ID derives, whichever is shorter.

    Raises
    ------
    NotIdentifiableError
        If the effect does not follow; `.hedge` names the reason, and `bbn.effect_bounds` may still bound it.
    EvidenceError
        For a name that is unknown, hidden or in two roles.

    See Also
    --------
    adjustment_sets : The sets that an adjustment formula may use.
    effect : Estimates with intervals, from data.
    effect_bounds : What can be said where the effect is not identified.

    References
    ----------
    Shpitser and Pearl (2006a), Identification of joint interventional distributions in recursive semi-Markovian causal
    models. Shpitser and Pearl (2006b), Identification of conditional interventional distributions.

    Examples
    --------
    >>> import bbn
    >>> front_door = bbn.CausalGraph([("X", "M"), ("M", "Y")], confounded=[("X", "Y")])
    >>> print(bbn.identify(front_door, "Y", do="X"))
    P(Y | do(X)) = Σ_M P(M | X) Σ_X′ P(Y | M, X′) P(X′)
    >>> bbn.identify(bbn.CausalGraph([("X", "Y")], confounded=[("X", "Y")]), "Y", do="X")
    Traceback (most recent call last):
    bbn.core.errors.NotIdentifiableError: P(Y | do(X)) does not follow from what is measured: ...
    """
    full = as_causal_graph(graph, latent)
    measured = full.projected()
    asked = measured_names(full, outcome, "outcome")
    treated = measured_names(full, do, "do")
    seen = measured_names(full, given, "given")
    if not asked:
        raise EvidenceError("identify needs an outcome")
    roles = [*asked, *treated, *seen]
    twice = sorted({name for name in roles if roles.count(name) > 1})
    if twice:
        raise EvidenceError(f"{twice[0]!r} has two roles among outcome, do and given; each variable has one")
    known: dict[Any, Estimand] = measured.memo.setdefault("identify", {})
    key = (asked, treated, seen)
    if key not in known:
        try:
            expression = _conditional(measured, frozenset(asked), frozenset(treated), frozenset(seen))
        except Hedge as hedge:
            raise _not_identifiable(asked, treated, seen, hedge, measured) from None
        if treated and not seen:
            expression = _shorter(measured, asked, treated, expression)
        known[key] = Estimand(asked, treated, seen, expression)
    return known[key]


class Hedge(Exception):
    """The reason why an effect is not identified: two nested forests of two-headed arcs with the same roots.

    Attributes
    ----------
    outer, inner
        The variables of the larger one, which holds treatments, and of the smaller one, which does not.
    """

    def __init__(self, outer: Names, inner: Names) -> None:
        super().__init__(outer, inner)
        self.outer, self.inner = outer, inner


class Kernel(NamedTuple):
    """Q[T] as a chain: one factor per variable of T, given some of those before it and variables outside T."""

    order: tuple[str, ...]
    factors: tuple[Expression, ...]

    def within(self, names: Iterable[str]) -> Kernel:
        """The factors of some of the variables; of a district, they make up its Q."""
        kept = set(names)
        pairs = [(v, f) for v, f in zip(self.order, self.factors, strict=True) if v in kept]
        return Kernel(tuple(v for v, _ in pairs), tuple(f for _, f in pairs))

    def marginal(self, names: Iterable[str]) -> Kernel:
        """Σ over the other variables, as a chain again.

        With k the first variable that goes, factors before k stay; and q'(v | …) = N(v) / N(u), where
        N(v) = Σ over those that go, of the factors from k up to v, and u is the variable kept before v.
        """
        kept = set(names)
        order: list[str] = []
        factors: list[Expression] = []
        gone: list[str] = []
        since: list[Expression] = []
        last: Expression | None = None
        for name, factor in zip(self.order, self.factors, strict=True):
            if name not in kept:
                gone.append(name)
            elif not gone:
                order.append(name)
                factors.append(factor)
                continue
            since.append(factor)
            if name in kept:
                up_to_here = total(gone, product(since))
                order.append(name)
                factors.append(up_to_here if last is None else quotient(up_to_here, last))
                last = up_to_here
        return Kernel(tuple(order), tuple(factors))

    @property
    def expression(self) -> Expression:
        """The product of the chain."""
        return product(self.factors)


def interventional(graph: CausalGraph, outcome: Names, treated: Names) -> Expression:
    """P(outcome | do(treated)) as a function of both (ID); `Hedge` where there is none."""
    ancestors = graph.ancestors(outcome)
    kernel = observed_kernel(graph, ancestors)
    wanted = graph.ancestors(outcome, within=ancestors - treated)
    districts = [frozenset(part) for part in graph.districts(within=ancestors)]
    factors = []
    for part in graph.districts(within=wanted):
        around = next(district for district in districts if part[0] in district)
        factors.append(kernel_of(graph, frozenset(part), kernel.within(around)).expression)
    others = [name for name in graph.nodes if name in wanted and name not in outcome]
    return total(others, product(factors))


def observed_kernel(graph: CausalGraph, names: Names) -> Kernel:
    """P over an ancestral set as a chain, each variable given what makes it independent of the others before it."""
    order = [name for name in graph.nodes if name in names]
    before: set[str] = set()
    factors: list[Expression] = []
    for name in order:
        before.add(name)
        district = graph.district(name, within=before)
        near = {*district, *(parent for one in district for parent in graph.parents(one))} - {name}
        factors.append(Probability((name,), tuple(other for other in reversed(order) if other in near)))
    return Kernel(tuple(order), tuple(factors))


def kernel_of(graph: CausalGraph, part: Names, kernel: Kernel) -> Kernel:
    """Q[part] from Q[T], `part` in one piece inside T (Tian and Pearl 2002, figure 7); `Hedge` where there is none."""
    while True:
        around = frozenset(kernel.order)
        above = graph.ancestors(part, within=around)
        if above == part:
            return kernel.marginal(part)
        if above == around:
            raise Hedge(around, part)
        kernel = kernel.marginal(above).within(graph.district(next(iter(part)), within=above))


def _conditional(graph: CausalGraph, outcome: Names, treated: Names, given: Names) -> Expression:
    """P(outcome | do(treated), given) (IDC): seeing is exchanged for doing where the second rule of do allows it."""
    for name in sorted(given):
        cut = graph.without_arcs(into=treated, out_of=name)
        if cut.is_d_separated(outcome, name, treated | (given - {name})):
            return _conditional(graph, outcome, treated | {name}, given - {name})
    joint = interventional(graph, outcome | given, treated)
    if not given:
        return joint
    return quotient(joint, total([name for name in graph.nodes if name in outcome], joint))


def _shorter(
    graph: CausalGraph, outcome: tuple[str, ...], treated: tuple[str, ...], expression: Expression
) -> Expression:
    """The expression, or an adjustment formula if one exists that has fewer probabilities in it."""
    length = sum(1 for _ in probabilities(tidy(expression)))
    if length <= 2 or not graph.ancestors(outcome) & set(treated):
        return expression
    adjusted = smallest_adjustment(graph, frozenset(treated), frozenset(outcome))
    if adjusted is None:
        return expression
    covariates = tuple(name for name in graph.nodes if name in adjusted)
    conditional = Probability(outcome, (*treated, *covariates))
    return total(covariates, product([Probability(covariates), conditional]) if covariates else conditional)


def measured_names(graph: CausalGraph, names: str | Iterable[str], what: str) -> tuple[str, ...]:
    """Names in the order given, each once; EvidenceError for one that is unknown or hidden."""
    listed = [names] if isinstance(names, str) else list(names)
    graph.names(listed, what)
    for name in listed:
        if name in graph.latent:
            raise EvidenceError(f"{what}: {name!r} is hidden, so nothing is known about it from data")
    return tuple(dict.fromkeys(listed))


def _not_identifiable(
    outcome: tuple[str, ...],
    treated: tuple[str, ...],
    given: tuple[str, ...],
    hedge: Hedge,
    graph: CausalGraph,
) -> NotIdentifiableError:
    def listed(names: Iterable[str]) -> str:
        kept = set(names)
        return ", ".join(name for name in graph.nodes if name in kept)

    conditions = ", ".join([*([f"do({', '.join(treated)})"] if treated else []), *given])
    acting = listed(hedge.outer & set(treated)) or listed(hedge.outer - hedge.inner)
    return NotIdentifiableError(
        f"P({', '.join(outcome)} | {conditions}) does not follow from what is measured: hidden causes (↔) hold "
        f"{listed(hedge.outer)} together, and {acting} acts on {listed(hedge.inner)} inside of that, which is a hedge "
        f"({{{listed(hedge.outer)}}}, {{{listed(hedge.inner)}}}); two models with the same data differ in the effect. "
        "bbn.effect_bounds says what the data still tell, if the variables have few states",
        (hedge.outer, hedge.inner),
    )
