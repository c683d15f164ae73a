"""Barren leaves: all posteriors where effects of many causes were not observed and cause nothing themselves.

Such an effect tells nothing about its causes, but in a junction tree its chain of small tables ties all of them
together; thousands of them make a tree that nothing can hold. So the tree is that of the network without them, and the
marginal of each is read from there. For a noisy-MAX with causes x_i, given the findings e,

    P(y' ≤ y | e) = leak(≤ y) E[∏ c_i(≤ y | x_i) | e],

and the mean is P(e with the likelihoods c_i(≤ y | ·)) / P(e): a run more for each state but the strongest, all of one
plan. Where the difference of two neighbours would lose digits it is a sum of positive terms instead, a run for each,

    ∏ a_i − ∏ b_i = Σ_i (∏_{j<i} b_j) (a_i − b_i) (∏_{j>i} a_j),   a_i = c_i(≤ y), b_i = c_i(< y), a_i − b_i = c_i(y).

Other functions of many parents are asked about one by one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.inference.exact.elimination_orders import HOPELESS, PORTFOLIO, greedy
from bbn.inference.exact.prices import CELL, RUN
from bbn.inference.exact.problem import Factors, Question, numbered, relevant, shape
from bbn.inference.exact.runtime_prediction import predicted_cells, tape_cells
from bbn.kernels.contracts.tape import MARGINALS
from bbn.model.expansion import factored_parts
from bbn.model.factored import Factored
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.results.posterior import Posteriors, Slot

if TYPE_CHECKING:
    from bbn.inference.exact.junction_tree import JunctionTree
    from bbn.model.evidence import Findings

DIGITS = 1e-3
"""A difference of less than DIGITS times what it is taken from is summed up from positive terms."""
TRIANGULATED, LARGE = 2000, 20_000
"""The causes of all loose effects, and of all effects, up to which the tree with them is priced, to compare."""
KEPT, KEPT_SHAPES = 8, 512
"""The trees that are kept, and the shapes of which it is known whether effects are left out."""

Array = NDArray[np.float64]


class BarrenEffects:
    """The effects of a network that may be left out of its tree, and the trees without them.

    Parameters
    ----------
    engine : JunctionTree
        The engine of the whole network.
    """

    def __init__(self, engine: JunctionTree) -> None:
        net = engine.model
        assert isinstance(net, BayesianNetwork)
        self._engine = engine
        self._net = net
        self._effects: dict[str, Factored] = {
            own.name: own
            for own in factored_parts(net)
            if len(own.parents) > 1 and not net.children(own.name)
        }
        self._links = sum(len(own.parents) for own in self._effects.values())
        self._trees: dict[tuple[str, ...], JunctionTree] = {}
        self._left_out: dict[Question, tuple[str, ...]] = {}

    def left_out(self, question: Question, findings: Findings, order: str) -> tuple[str, ...]:
        """The effects that are left out of the tree for this shape of question; none where the tree takes them well."""
        if not self._effects:
            return ()
        known = self._left_out.get(question)
        if known is None:
            seen = {*findings.hard, *findings.likelihood}
            loose = tuple(name for name in self._effects if name not in seen)
            known = loose if self._tied(loose, seen) and self._pays(loose, question, findings, order) else ()
            if len(self._left_out) >= KEPT_SHAPES:
                self._left_out.clear()
            self._left_out[question] = known
        return known

    def marginals(
        self, loose: tuple[str, ...], findings: Findings, options: Mapping[str, Any] | None
    ) -> Posteriors:
        """All posteriors, those of loose effects read from the tree without them; `options` if not the engine's."""
        tree = self._tree(loose)
        answers = tree._marginals(findings, options or tree.options)
        if answers.log_evidence == -math.inf:
            return answers
        found = {name: p.values for name, p in answers.items()}
        noisy = [own for name in loose if isinstance(own := self._effects[name], NoisyMax)]
        found |= _Runs(tree, noisy, answers, findings, options or tree.options).marginals(noisy)
        for name in loose:
            if name not in found:
                found[name] = self._engine._joint((name,), findings, options or self._engine.options)[0]
        slots: dict[str, Slot] = {}
        at = 0
        for v in self._net.variables:
            if v.name in found:
                slots[v.name] = v, at, at + v.card
                at += v.card
        return Posteriors(slots, np.concatenate([found[name] for name in slots]), answers.log_evidence)

    def _tied(self, loose: tuple[str, ...], seen: set[str]) -> bool:
        """Whether two ways lead from one cause to another through loose effects."""
        group: dict[str, str] = {}

        def root(name: str) -> str:
            while (above := group.get(name, name)) != name:
                group[name] = name = group.get(above, above)
            return name

        for name in loose:
            causes = [p.name for p in self._effects[name].parents if p.name not in seen]
            roots = [root(cause) for cause in causes]
            if len(set(roots)) < len(roots):
                return True
            group |= dict.fromkeys(roots, name)
        return False

    def _pays(self, loose: tuple[str, ...], question: Question, findings: Findings, order: str) -> bool:
        """Whether runs for the loose effects cost less than a tree with them."""
        if sum(len(self._effects[name].parents) for name in loose) > TRIANGULATED or self._links > LARGE:
            return True
        tree = self._tree(loose)
        without = shape(tree._with_certain(findings), tree.flat.number, goal=MARGINALS)
        runs = sum(self._effects[name].variable.card - 1 for name in loose)
        cells = cells_by_rule(tree.flat, without, order)
        most = cells + runs * (cells + RUN / CELL)
        return cells_by_rule(self._engine.flat, question, order, most) > most

    def _tree(self, loose: tuple[str, ...]) -> JunctionTree:
        """The engine of the network without these effects."""
        tree = self._trees.get(loose)
        if tree is None:
            kept = self._net.subnetwork(set(self._net.names) - set(loose))
            tree = type(self._engine)(kept, **self._engine.options)
            if len(self._trees) >= KEPT:
                self._trees.clear()
            self._trees[loose] = tree
        return tree


class _Runs:
    """Means of products of one factor per cause, given the findings.

    Causes that hang on no other cause, given the findings, count by their marginals; for the others there is one plan,
    with likelihoods on all of them.

    Parameters
    ----------
    tree
        The engine of the network without the effects.
    effects
        Those whose causes may have factors.
    answers
        All posteriors of that network.
    findings, options
        Of the question.
    """

    def __init__(
        self,
        tree: JunctionTree,
        effects: Sequence[NoisyMax],
        answers: Posteriors,
        findings: Findings,
        options: Mapping[str, Any],
    ) -> None:
        self._codes, self._answers = findings.hard, answers
        findings = tree._with_certain(findings)
        self._hard, given, _ = numbered(findings, tree.flat.number)
        number, likelihood = tree.flat.number, dict(given)
        causes = {p.name: p for effect in effects for p in effect.parents if p.name not in findings.hard}
        groups = _groups(tree.flat, frozenset(v for v, _ in self._hard))
        shared = Counter(groups[number[name]] for name in causes)
        for name, cause in causes.items():
            if shared[groups[number[name]]] > 1:
                likelihood.setdefault(number[name], np.ones(cause.card))
        self._number = number
        self._place = {v: i for i, v in enumerate(likelihood) if shared[groups[v]] > 1}
        self._given = list(likelihood.items())
        question = Question(frozenset(v for v, _ in self._hard), frozenset(likelihood))
        self._run = tree.compiler.tree(question, options).executor
        self._log_total = self._run.run(self._hard, self._given)[1]

    def marginals(self, effects: Sequence[NoisyMax]) -> dict[str, Array]:
        """The marginal of each effect, over its states in their order."""
        runs = 1.0 + sum(effect.variable.card - 1 for effect in effects)
        with predicted_cells(runs * tape_cells(self._run.layout.run)):
            return {effect.name: self._marginal(effect) for effect in effects}

    def _marginal(self, effect: NoisyMax) -> Array:
        """P(y | e) for each state."""
        names = [p.name for p in effect.parents]
        exact = [
            self._seen(name, _turned(effect, link)) for name, link in zip(names, effect.links, strict=True)
        ]
        leak = _turned(effect, effect.leak)
        up_to = [np.cumsum(link, axis=-1) for link in exact]  # c_i(≤ y)
        card = effect.variable.card
        found, below = np.empty(card), 0.0
        for k in range(card):
            last = k == card - 1
            whole = 1.0 if last else leak[: k + 1].sum() * self._mean(names, [own[..., k] for own in up_to])
            found[k] = whole - below
            if k and found[k] < DIGITS * whole:
                found[k] = self._difference(names, exact, up_to, leak, k)
            below = whole
        return np.asarray(_turned(effect, found / found.sum()))

    def _difference(
        self, names: list[str], exact: list[Array], up_to: list[Array], leak: Array, k: int
    ) -> float:
        """P(y = k | e) without a difference: one effect is k, those before it are less, those behind no more."""
        before = [own[..., k - 1] for own in up_to]
        behind = [np.ones_like(own[..., k]) if k == len(leak) - 1 else own[..., k] for own in up_to]
        total = leak[k] * self._mean(names, behind) if leak[k] else 0.0
        weaker = leak[:k].sum()
        for i, own in enumerate(exact):
            if weaker and own[..., k].any():
                total += weaker * self._mean(names, [*before[:i], own[..., k], *behind[i + 1 :]])
        return float(total)

    def _seen(self, name: str, link: Array) -> Array:
        """A link, or its row where the cause was observed."""
        code = self._codes.get(name)
        return link if code is None else link[code]

    def _mean(self, names: list[str], factors: Sequence[Array]) -> float:
        """The mean of a product: a factor for each of these causes, over its states, or a number where it is seen."""
        scale, together = 1.0, []
        for name, factor in zip(names, factors, strict=True):
            if not factor.ndim:
                scale *= float(factor)
            elif (place := self._place.get(self._number[name])) is None:
                scale *= float(factor @ self._answers[name].values)
            else:
                together.append((place, factor))
        if not scale or not together:
            return scale
        vectors = self._given.copy()
        for place, factor in together:
            v, own = vectors[place]
            vectors[place] = v, factor * own
        return scale * math.exp(self._run.run(self._hard, vectors)[1] - self._log_total)


def cells_by_rule(model: Factors, question: Question, order: str, most: float = HOPELESS) -> float:
    """The cells of all cliques by one rule without a search; past `most` cells some number that is larger."""
    needed = relevant(model, question)
    rule = PORTFOLIO[0] if order == "auto" else order
    return greedy(model.cards, needed.ptr, needed.scope, rule, most).cells


def _groups(model: Factors, sliced: frozenset[int]) -> list[int]:
    """A number for each variable, the same for those that hang together when some are sliced out."""
    group = list(range(len(model.cards)))

    def root(v: int) -> int:
        while group[v] != v:
            group[v] = v = group[group[v]]
        return v

    ptr, scope = model.scope_ptr.tolist(), model.scope.tolist()
    for a, b in pairwise(ptr):
        own = [root(v) for v in scope[a:b] if v not in sliced]
        for v in own:
            group[v] = own[0]
    return [root(v) for v in group]


def _turned(effect: NoisyMax, rows: Array) -> Array:
    """Rows over the effect's states, from the weakest on; and the way back."""
    return rows if effect.weakest_code == 0 else rows[..., ::-1]
