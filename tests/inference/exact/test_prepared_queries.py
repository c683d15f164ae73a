"""Plans that get a better order while they are run: right before and after, with bands and without, in two threads."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bbn
from bbn.inference.exact import prepared_queries, query_compiler
from bbn.inference.exact.prepared_queries import _Reordering
from bbn.inference.exact.problem import Question, flatten
from bbn.inference.exact.runtime_prediction import tape_cells
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts.tape import MARGINALS
from tests.inference.exact.test_elimination_orders import grid
from tests.inference.exact.test_sparse_cliques import banded_network, joint_of


@pytest.fixture
def eager(monkeypatch):
    """Plans look for a better order at their second run, and take whatever is found."""
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: 2)
    monkeypatch.setattr(prepared_queries, "SHARE", 1e9)
    monkeypatch.setattr(prepared_queries, "SMALLER", 1.0)
    monkeypatch.setattr(query_compiler, "FILTERED", math.inf)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(25))
def test_answers_are_those_of_the_joint_before_and_after(seed):
    rng = np.random.default_rng(seed)
    net = banded_network(rng)
    joint = joint_of(net)
    engine = bbn.JunctionTree(net)
    drawn = net.sample(8, seed=seed)
    seen = net.names[int(rng.integers(len(net.names)))]
    axis = net.names.index(seen)
    for state in drawn[seen]:
        rest = joint.take(net.variable(seen).states.index(state), axis)
        for k, (name, found) in enumerate(engine.posteriors({seen: state}).items()):
            others = tuple(i for i in range(rest.ndim) if i != k)
            assert name == [other for other in net.names if other != seen][k]
            assert found.values == pytest.approx(rest.sum(others) / rest.sum(), abs=1e-10)


@pytest.mark.usefixtures("eager")
def test_a_better_order_is_taken_and_gives_the_same():
    net = bbn.example("andes")
    names = [net.names[i] for i in np.random.default_rng(1).permutation(len(net.names))[:22]]
    rows = net.sample(9, seed=1)[names].astype(str).to_dict("records")
    engine = bbn.JunctionTree(net)
    cells = []
    for row in rows:
        found = engine.posteriors(row)
        expected = bbn.JunctionTree(net, order="min-fill").posteriors(row)
        for name, posterior in found.items():
            assert posterior.values == pytest.approx(expected[name].values, abs=1e-12)
        (made,) = engine.compiler.known._queries.values()
        cells.append(tape_cells(made.executor.layout.run))
    assert cells[-1] < 0.8 * cells[0]


@pytest.mark.usefixtures("eager")
def test_another_order_than_auto_is_left_alone():
    model = grid(9, np.random.default_rng(3))
    engine = bbn.JunctionTree(model, order="min-weight")
    sizes = set()
    for _ in range(6):
        engine.posteriors({"4,4": 1})
        (made,) = engine.compiler.known._queries.values()
        sizes.add(made.executor.layout.whole_size)
    assert len(sizes) == 1


@pytest.mark.usefixtures("eager")
def test_threads_that_ask_while_it_is_looked_for():
    model = grid(8, np.random.default_rng(5))
    expected = {k: bbn.JunctionTree(model, order="min-fill").posteriors({"3,3": k}) for k in (0, 1)}
    engine = bbn.JunctionTree(model)

    def asked(k):
        return k, engine.posteriors({"3,3": k})

    with ThreadPoolExecutor(4) as pool:
        for k, found in pool.map(asked, [0, 1] * 100):
            for name, posterior in found.items():
                assert posterior.values == pytest.approx(expected[k][name].values, abs=1e-12)


@pytest.mark.usefixtures("eager")
def test_a_better_order_that_takes_more_memory_is_left_alone():
    net = bbn.example("andes")
    model = flatten(net)
    chosen = np.random.default_rng(1).permutation(len(net.names))[:22].tolist()
    question = Question(frozenset(chosen), goal=MARGINALS)
    cost = plan_tree(model, question)

    def better(most):
        return _Reordering(cost).plan(cost, most, 1)

    found = better(10**12)
    assert found is not None
    size = found.bytes - found.shared
    assert better(size) is not None
    assert better(size - 1) is None


@pytest.mark.usefixtures("eager")
def test_fewer_cells_in_all_but_more_in_each_run_are_left_alone():
    """What evidence cannot change is computed once, so a tree of fewer cells may cost more each time."""
    left_alone = 0
    for side in range(7, 14):
        model = flatten(grid(side, np.random.default_rng(3)))
        question = Question(frozenset([model.number["4,4"]]), goal=MARGINALS)
        cost = plan_tree(model, question)
        search = _Reordering(cost)
        found = search.plan(cost, 10**12, 1)
        if found is not None:
            assert tape_cells(found.layout.run) <= tape_cells(cost.layout.run)
        elif search._cells < cost.cells:
            left_alone += 1
    assert left_alone
