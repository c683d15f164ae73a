"""Pruning: the model without the states that cannot occur given what is observed.

Large tables are mostly zeros. A state that only zeros agree with, given the states still possible of the others, cannot
occur (arc consistency, `kernels.consistency`). Without such states the cards are smaller, and what is then
planned has 2 to 120 times fewer cells. It depends on the values observed, so each new evidence has a plan of its own:
that pays where a run of the plan for all values costs more than making another, which is predicted. The first plan of a
shape is triangulated anew; later ones take a tree of the graph of all states, without the variables that have one
state left (`pruned_trees`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.inference.exact.flat_model import FlatModel
from bbn.inference.exact.joining import Joined, join
from bbn.inference.exact.orders import HOPELESS, HUGE, Order
from bbn.inference.exact.plan import Plan, Ranking
from bbn.inference.exact.pricing import Price, Question, lay_out, price, read_targets, reduced
from bbn.inference.exact.pruned_trees import PrunedTree, Shape
from bbn.kernels.contracts.types import Floats, Ints
from bbn.model.graphs import Elimination

CELLS = 300_000.0
"""Plans of fewer cells, or of no more than twice what making another costs, are run as they are."""
CELLS_PER_FACTOR = 300.0
"""What making a plan on a tree that is known costs for each factor, in cells of a run."""
CELLS_PER_ENTRY = 1.0
"""What looking for states costs for each entry of the tables, in cells of a run."""
FIRST = 20.0
"""How many times what making another plan costs a single answer must cost for pruning to be tried at the first of a
shape: that prepares the tables and looks for a tree too, so it is left to the second."""
GAIN = 1.6
"""How many times fewer cells there must be, beside those costs: what no value can change is computed anew too."""
FAR = 2.0
"""How many times the cells that a tree is known to have make it worth looking for another for one question alone."""
JOINED = 1e7
"""Cells by the rules alone from which it is looked for variables that fix each other; see `joining`."""
KEPT_BYTES = 1 << 20
"""The last plan of a shape is kept if it has no more bytes than this."""
KEPT_TREES = 512
"""The shapes whose tree is kept."""
KEPT = 64
"""The shapes of which a plan is kept."""

Flags = NDArray[np.uint8]
Hard = Sequence[tuple[int, int]]
Likelihoods = Sequence[tuple[int, Floats]]
Limit = int | float | str | None
"""The memory that a plan may take, as `memory_limit=` takes it."""
Whole = Price | Order
"""An elimination of the graph of all states, and its cells."""


class Pruning:
    """The states that can occur in a model, without evidence and with it.

    Parameters
    ----------
    model : FlatModel
        The model.
    """

    def __init__(self, model: FlatModel) -> None:
        self.model = model
        self.state_ptr = _offsets(model.cards)
        self._domains = kernels.consistency.Domains(
            self.state_ptr, model.scope_ptr, model.scope, model.table_ptr, model.tables
        )
        self._last: dict[Any, tuple[bytes, Plan, Joined | None]] = {}
        self._trees: dict[Any, PrunedTree] = {}
        self._joins: set[Any] = set()  # the shapes in whose first question variables fixed each other

    def domain(self, hard: Hard, likelihoods: Likelihoods) -> Flags | None:
        """1 for each state that is possible given findings, by variable number; None if a variable has none."""
        return self._domains.find(hard, likelihoods)

    def restricted(self, domain: Flags, needed: Ints) -> FlatModel:
        """The model of the states that are possible and of some factors."""
        model = self.model
        arrays = self._domains.restrict(domain, needed)
        heads = np.full(len(needed), -1, np.int64)
        return FlatModel(model.names, model.number, *arrays, heads, int(arrays[0].max(initial=1)))

    def spread(self, domain: Flags, plan: Plan, joined: Joined | None, values: Floats) -> Floats:
        """The marginals that a plan of these states gives, over all states; what it does not read has one left."""
        starts = plan.layout.out
        if joined is not None:
            starts = starts.copy()
            starts[list(joined.image)] = -1
        whole = self._domains.spread(domain, starts, values)
        if joined is not None:
            for v, states in joined.image.items():
                start = int(plan.layout.out[joined.speaker[v]])
                whole[self.state_ptr[v] + self.alive(domain, v)[states]] = values[start : start + len(states)]
        return whole

    def shape(self, key: Any, question: Question) -> Shape:
        """What all questions of a shape have in common.

        Which factors it needs is decided with all states: a table of a variable that has one state left still counts.
        """
        if key in self._trees:
            return self._trees[key].shape
        question = question._replace(targets=read_targets(self.model, question))
        return Shape(question, *reduced(self.model, question, question.targets))

    def gone(self, domain: Flags, hard: Hard) -> int:
        """How many states of variables that are not observed cannot occur."""
        observed = [v for v, _ in hard]
        return int(len(domain) - self.model.cards[observed].sum() - (domain.sum() - len(observed)))

    def pays(self, whole: Whole, pruned: Price) -> bool:
        """Whether a plan of its own costs less than a run of the plan for all values."""
        return whole.cells > GAIN * pruned.cells + making(self.model)

    def priced(
        self,
        model: FlatModel,
        shape: Shape,
        order: str,
        whole: Whole | None,
        key: Any,
        gone: bool,
        limit: Limit = None,
    ) -> tuple[Price, Joined | None] | None:
        """The cost of a plan of restricted tables, and how variables were joined for it; None if nothing is gained.

        With `whole`, the order of all states, it is that of a tree of its own, and `gone` says whether any state is
        left out. Otherwise of the tree that is known for the shape, which improves while it is used, or, where runs
        are long and it is far from the best for these states, of one of its own.
        """
        if whole is None:
            return self._priced_again(model, shape, order, key, limit)
        if len(self._trees) >= KEPT_TREES:
            self._trees.clear()
            self._joins.clear()
        known = whole.cells <= HOPELESS  # beyond that, the order was given up
        own = price(model, shape.question, order, once=True, limit=limit, enough=_large)
        if own.cells > JOINED:
            joined = join(model, shape.question.likelihood)
            if joined is not None:
                self._joins.add(key)
                self._trees[key] = PrunedTree(None, shape, model.cards)
                return self._joined(joined, shape, order, limit), joined
            own = price(model, shape.question, order, once=True, limit=limit) if gone else own
        if not gone:
            return None
        self._trees[key] = PrunedTree(whole.elimination if known else None, shape, model.cards)
        other = on_tree(model, shape, whole.elimination) if known else own
        return (own if own.cells <= other.cells else other), None

    def _priced_again(
        self, model: FlatModel, shape: Shape, order: str, key: Any, limit: Limit
    ) -> tuple[Price, Joined | None]:
        joined = join(model, shape.question.likelihood) if key in self._joins else None
        if joined is not None:
            return self._joined(joined, shape, order, limit), joined
        tree = self._trees[key]
        tree.choose(model.cards, order)
        if tree.elimination is None:
            return price(model, shape.question, order, once=True, limit=limit), None
        cost = on_tree(model, shape, tree.elimination)
        if cost.cells > max(HUGE, FAR * tree.cells):
            own = price(model, shape.question, order, once=True, limit=limit)
            tree.compare(cost.cells, own.cells)
            cost = own if own.cells < cost.cells else cost
        tree.used(model.cards, cost.cells + making(self.model))
        return cost, None

    def _joined(self, joined: Joined, shape: Shape, order: str, limit: Limit) -> Price:
        """The cost of a plan of joined variables."""
        question = shape.question._replace(targets=joined.speakers(shape.question.targets))
        return price(joined.model, question, order, once=True, limit=limit)

    def priced_alone(
        self, domain: Flags, question: Question, order: str, limit: Limit = None
    ) -> tuple[FlatModel, Price, Joined | None]:
        """The model of these states with variables joined, and what the question costs on it."""
        shape = self.shape(None, question)
        model = self.restricted(domain, shape.needed)
        joined = join(model, question.likelihood)
        if joined is None:
            return model, price(model, shape.question, order, once=True, limit=limit), None
        return joined.model, self._joined(joined, shape, order, limit), joined

    def left(self, v: int, code: int) -> Ints | None:
        """How many states of each variable a state of one leaves; None if it cannot occur."""
        domain = self.domain([(v, code)], ())
        return None if domain is None else np.add.reduceat(domain.astype(np.int64), self.state_ptr[:-1])

    def knows(self, key: Any) -> bool:
        """Whether the tree of a shape is known."""
        return key in self._trees

    def kept(self, key: Any, domain: Flags) -> tuple[Plan | None, Joined | None]:
        """The plan that was last made for a shape, if it is for these states, and how variables were joined for it."""
        known = self._last.get(key)
        return known[1:] if known is not None and known[0] == domain.tobytes() else (None, None)

    def keep(self, key: Any, domain: Flags, plan: Plan, joined: Joined | None) -> None:
        """Keep a plan, if it is small, in place of the last one of its shape."""
        if plan.bytes > KEPT_BYTES:
            self._last.pop(key, None)
            return
        if len(self._last) >= KEPT:
            self._last.clear()
        self._last[key] = domain.tobytes(), plan, joined

    def alive(self, domain: Flags, v: int) -> NDArray[np.intp]:
        """The codes of a variable that are possible."""
        return np.flatnonzero(domain[self.state_ptr[v] : self.state_ptr[v + 1]])

    def answer(
        self, plan: Plan, joined: Joined | None, domain: Flags, hard: Hard, likelihoods: Likelihoods, k: int
    ) -> PrunedAnswer:
        """What a plan of these states answers; of a maximum, the k best assignments."""
        sliced: Hard = ()
        left: Likelihoods = ()
        if plan.layout.run.size:  # otherwise all was done when the plan was made
            sliced = [(v, 0) for v, _ in hard]
            left = [(v, np.ascontiguousarray(values[self.alive(domain, v)])) for v, values in likelihoods]
        if plan.question.maximise:
            found, log = plan.explain(sliced, left, k)
            return PrunedAnswer(self, plan, joined, domain, np.empty(0), log, found)
        values, log = plan.run(sliced, left)
        return PrunedAnswer(self, plan, joined, domain, values, log, [])

    def codes(self, domain: Flags, joined: Joined | None, left: Ints) -> Ints:
        """The code of each variable among all its states, for codes among those left; -1: the only one."""
        left = np.maximum(left, 0)
        if joined is not None:
            for v, states in joined.image.items():
                left[v] = states[left[joined.speaker[v]]]
        alive = np.flatnonzero(domain)
        starts = np.concatenate([[0], np.cumsum(domain, dtype=np.int64)])[self.state_ptr[:-1]]
        return np.asarray(alive[starts + left[: len(starts)]] - self.state_ptr[:-1], np.int64)


def _large(found: Order) -> bool:
    """Whether an order by the rules is so large that joining variables comes before a search."""
    return found.cells > JOINED


def making(model: FlatModel) -> float:
    """What making a plan for new values costs, in cells of a run."""
    return CELLS_PER_FACTOR * len(model.heads) + CELLS_PER_ENTRY * model.tables.size


def on_tree(model: FlatModel, shape: Shape, elimination: Elimination) -> Price:
    """The cost of a question on the elimination of a larger model, without the variables that have one state.

    Those that are read or bring a likelihood stay.
    """
    question = shape.question
    stay = [*question.targets, *question.likelihood]
    smaller = kernels.triangulate.induced(model.cards, stay, *elimination)
    return lay_out(
        model, question, shape.role, smaller, kernels.triangulate.total_cells(model.cards, *smaller)
    )


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


class PrunedAnswer(NamedTuple):
    """An answer about the states that are possible."""

    pruning: Pruning
    plan: Plan | None
    """None where the evidence is impossible, and so are the states and the values."""
    joined: Joined | None
    """How variables that fix each other were joined, if they were."""
    domain: Flags | None
    values: Floats
    log_evidence: float
    """ln of the weight of the evidence; of a maximum, of the best assignment."""
    found: Ranking
    """Of a maximum: the best assignments, in codes among the states that are left."""

    def joint(self, targets: Sequence[int]) -> Floats:
        """The joint of targets over all their states, flat."""
        cards = self.pruning.model.cards[list(targets)]
        whole = np.zeros(cards)
        if self.domain is None or not targets:
            return whole.ravel()
        alive = [self.pruning.alive(self.domain, v) for v in targets]
        if self.joined is None:
            whole[np.ix_(*alive)] = self.values.reshape([len(own) for own in alive])
            return whole.ravel()
        speakers = self.joined.speakers(targets)
        shape = [int(self.joined.model.cards[v]) for v in speakers]
        places = []
        for v, own in zip(targets, alive, strict=True):
            along = [1] * len(shape)
            k = speakers.index(self.joined.speaker[v])
            along[k] = shape[k]
            places.append(own[self.joined.states(v)].reshape(along))
        whole[tuple(places)] = self.values.reshape(shape)
        return whole.ravel()

    def marginals(self) -> Floats:
        """The marginals of all variables over all their states, one after another."""
        if self.domain is None or self.plan is None:
            return np.zeros(int(self.pruning.state_ptr[-1]))
        return self.pruning.spread(self.domain, self.plan, self.joined, self.values)

    def best(self) -> Ranking:
        """The best assignments over all their states, and ln of their ratio to the best."""
        domain = self.domain
        if domain is None:
            return []
        return [(self.pruning.codes(domain, self.joined, left), ratio) for left, ratio in self.found]
