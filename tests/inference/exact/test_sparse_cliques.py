"""Cliques gone through band by band: against sums over the joint table, exact fractions, and pyAgrum."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import prepared_queries, query_compiler
from bbn.inference.exact import sparse_cliques as bands
from bbn.inference.exact.executor import open_plan
from bbn.inference.exact.prepared_queries import TreeQuery
from bbn.inference.exact.problem import Question, flatten
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts import tape as t
from tests.inference.exact import test_range
from tests.inference.exact.test_domain_filtering import some_evidence, sparse_network
from tests.support import exact_truth

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="the junction tree in numpy has no bands")


@pytest.fixture
def every(monkeypatch):
    """Each clique of two cells or more is cut into bands, whatever that costs; nothing is pruned or masked."""
    monkeypatch.setattr(bands, "SMALLEST", 2)
    monkeypatch.setattr(bands, "MOST_SET", 1.0)
    monkeypatch.setattr(bands, "PER_CELL", 1e9)
    monkeypatch.setattr(query_compiler, "FILTERED", math.inf)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)


@pytest.fixture
def at_once(every, monkeypatch):
    """The same, from the first run of a plan on."""
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: 1)


def banded_network(rng: np.random.Generator) -> bbn.BayesianNetwork:
    """Up to 12 states each, in which a row is zero but for a few neighbours, or here and there."""
    cards = rng.integers(1, 13, rng.integers(3, 7))
    while np.prod(cards.astype(float)) > 40_000:
        cards[cards.argmax()] //= 2
    variables = [bbn.Variable(f"V{i}", [f"s{k}" for k in range(card)]) for i, card in enumerate(cards)]
    parts = []
    for i, v in enumerate(variables):
        parents = [variables[int(p)] for p in rng.permutation(i)[: int(rng.integers(0, min(i, 3) + 1))]]
        shape = [*(p.card for p in parents), v.card]
        rows = rng.uniform(0.1, 1, (math.prod(shape[:-1]), v.card))
        middle = rng.integers(v.card, size=len(rows))
        near = np.abs(np.arange(v.card) - middle[:, None]) <= rng.integers(0, 4, len(rows))[:, None]
        kept = near if rng.random() < 0.7 else rng.random(rows.shape) < 0.4
        kept[np.arange(len(rows)), middle] = True
        rows *= kept
        parts.append(bbn.CPT(v, parents, (rows / rows.sum(axis=1, keepdims=True)).reshape(shape)))
    return bbn.BayesianNetwork(parts)


def joint_of(net: bbn.BayesianNetwork) -> np.ndarray:
    """The joint table, one axis for each variable."""
    place = {v.name: i for i, v in enumerate(net.variables)}
    operands = []
    for factor in net.factors():
        operands += [factor.values, [place[name] for name in factor.names]]
    return np.einsum(*operands, list(range(len(place))))


@pytest.mark.parametrize("seed", range(30))
def test_random_networks_by_their_joint_tables(seed, every, monkeypatch):
    """100 networks each: codes, likelihoods with zeros, evidence that cannot occur.

    In those from seed 20 on, a run stores no clique, or only small ones, as in large trees.
    """
    rng = np.random.default_rng(seed)
    if seed >= 20:
        limits = (1, 60 if seed % 2 else 1, 1)
        monkeypatch.setattr(kernels.layout, "lay_out", partial(kernels.layout.lay_out, limits=limits))
    if seed % 2:
        monkeypatch.setattr(bands, "DIFFER", math.inf)  # bands differ by value wherever they can
    monkeypatch.setattr(bands, "AGAIN", 1 if seed % 4 < 2 else math.inf)
    cut, by_value = 0, {t.NOTHING: 0, t.BASE: 0, t.WORK: 0}
    for _ in range(100):
        net = banded_network(rng)
        joint = joint_of(net)
        model = flatten(net)
        draws = rng.random(len(net.variables))
        sliced = np.flatnonzero((draws < 0.3) & (model.cards > 1))
        masked = rng.random() < 0.2
        likely = [] if masked else np.flatnonzero((draws > 0.8) & (model.cards > 1)).tolist()
        question = Question(
            frozenset() if masked else frozenset(sliced.tolist()), frozenset(likely), masked, goal=t.MARGINALS
        )
        layout = plan_tree(model, question).layout
        found = bands.in_bands(model.cards, model.tables, layout)
        if found is None:
            continue
        cut += 1
        thin, own = found
        written = [f for op, f in t.instructions(thin.run) if op == t.BANDS]
        assert written
        for f in written:
            by_value[f[8]] += f[3] >= 0
        assert thin.work_size <= layout.work_size
        assert thin.base_size <= layout.base_size
        programs = [kernels.propagate.Program(model.cards, model.tables, thin, False, own)]
        for _ in range(3):
            hard = [(int(v), int(rng.integers(model.cards[v]))) for v in sliced]
            vectors = [(v, np.where(rng.random(model.cards[v]) < 0.5, 0.0, 0.7)) for v in likely]
            weight = joint.copy()
            for v, values in [*((v, np.eye(model.cards[v])[code]) for v, code in hard), *vectors]:
                weight *= values.reshape([-1 if k == v else 1 for k in range(joint.ndim)])
            for program in programs:
                values, log = program.run(hard, vectors)
                if not weight.any():
                    assert log == -math.inf
                    continue
                assert log == pytest.approx(math.log(weight.sum()), abs=1e-10)
                for v, at in enumerate(layout.out.tolist()):
                    if at >= 0:
                        truth = weight.sum(axis=tuple(k for k in range(joint.ndim) if k != v)) / weight.sum()
                        np.testing.assert_allclose(
                            values[at : at + model.cards[v]], truth, rtol=0, atol=1e-10
                        )
    assert cut >= 50
    if seed >= 20:
        assert by_value[t.WORK] == 0 or seed % 2
    elif seed % 2:
        assert by_value[t.BASE] >= 5
        assert by_value[t.NOTHING if seed % 4 < 2 else t.WORK] >= 2


@pytest.mark.parametrize("seed", range(20))
def test_queries_of_random_networks_by_their_joint_tables(seed, every, monkeypatch):
    """100 networks each: the joint of up to three targets, codes and likelihoods with zeros."""
    rng = np.random.default_rng(500 + seed)
    monkeypatch.setattr(bands, "DIFFER", math.inf if seed % 2 else 0.8)
    cut = 0
    for _ in range(100):
        net = banded_network(rng)
        joint = joint_of(net)
        model = flatten(net)
        order = rng.permutation(joint.ndim).tolist()
        targets, sliced, likely = order[: rng.integers(0, 4)], order[4:6], order[3:4]
        question = Question(frozenset(sliced), frozenset(likely), False, tuple(targets))
        layout = plan_tree(model, question).layout
        found = bands.in_bands(model.cards, model.tables, layout)
        if found is None:
            continue
        cut += 1
        programs = [
            p.Program(model.cards, model.tables, found[0], False, found[1]) for p in [kernels.propagate]
        ]
        for _ in range(3):
            hard = [(v, int(rng.integers(model.cards[v]))) for v in sliced]
            vectors = [(v, np.where(rng.random(model.cards[v]) < 0.5, 0.0, 0.7)) for v in likely]
            weight = joint.copy()
            for v, values in [*((v, np.eye(model.cards[v])[code]) for v, code in hard), *vectors]:
                weight *= values.reshape([-1 if k == v else 1 for k in range(joint.ndim)])
            total = weight.sum()
            for program in programs:
                values, log = program.run(hard, vectors)
                if total == 0.0:
                    assert log == -math.inf
                    continue
                assert log == pytest.approx(math.log(total), abs=1e-10)
                if targets:
                    truth = np.einsum(weight, list(range(joint.ndim)), targets) / total
                    np.testing.assert_allclose(values, truth.ravel(), rtol=0, atol=1e-10)
    assert cut >= 50


@pytest.mark.parametrize("seed", range(100))
def test_every_kind_of_answer_is_the_exact_one(seed, at_once):
    rng = np.random.default_rng(7000 + seed)
    net = sparse_network(rng)
    engine = bbn.JunctionTree(net)
    names = [v.name for v in net.variables]
    for evidence in ({}, some_evidence(rng, net), some_evidence(rng, net)):
        whole = exact_truth.weights(net, evidence)
        if not whole:
            with pytest.raises(bbn.ImpossibleEvidenceError):
                engine.posteriors(evidence)
            assert engine.log_evidence(evidence) == -math.inf
            continue
        for _ in range(2):
            answers = engine.posteriors(evidence)
        assert answers.log_evidence == pytest.approx(math.log(exact_truth.total(whole)), abs=1e-10)
        for name, answer in answers.items():
            truth = exact_truth.marginal(whole, names.index(name), answer.variables[0].card)
            np.testing.assert_allclose(answer.values, truth, rtol=0, atol=1e-10)
        weights = sorted(map(float, whole.values()), reverse=True)
        best = [math.exp(one.log_probability) for one in engine.mpe(evidence, k=3)]
        np.testing.assert_allclose(best, weights[:3], rtol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_entries_down_to_1e_300_keep_their_digits(seed, at_once):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        net = test_range.tiny_network(rng)
        engine = bbn.JunctionTree(net)
        names = [v.name for v in net.variables]
        for share in (0.3, 0.7):
            evidence = test_range.random_evidence(rng, net, share)
            whole = exact_truth.weights(net, evidence)
            if not whole:
                with pytest.raises(bbn.ImpossibleEvidenceError):
                    engine.posteriors(evidence)
                continue
            for name, answer in engine.posteriors(evidence).items():
                truth = exact_truth.marginal(whole, names.index(name), answer.variables[0].card)
                test_range.close(answer.values, truth)


@pytest.mark.parametrize("name", ["mildew", "water", "diabetes"])
def test_the_answers_of_pyagrum(name, monkeypatch):
    gum = pytest.importorskip("pyagrum")
    if not kernels.COMPILED:
        pytest.skip("the numpy kernels have no bands")
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: goal != t.COLLECTED)
    monkeypatch.setattr(query_compiler, "FILTERED", math.inf)
    net = bbn.example(name)
    engine = bbn.JunctionTree(net)
    observed = net.names[::10]
    theirs = gum.LazyPropagation(bbn.to_pyagrum(net))
    for case in net.sample(2, seed=3)[list(observed)].to_dict("records"):
        answers = engine.posteriors(case)
        theirs.setEvidence({key: str(value) for key, value in case.items()})
        theirs.makeInference()
        for key, answer in answers.items():
            np.testing.assert_allclose(answer.values, theirs.posterior(key).toarray(), rtol=0, atol=1e-9)
    (made,) = [one for one in engine.compiler.known._queries.values() if one.question.goal == t.MARGINALS]
    assert made.executor.plan.sparse is not None


@pytest.mark.parametrize("seed", range(20))
def test_cliques_of_many_factors_are_rescaled(seed, every):
    """A pair of causes with 25 findings, of which a clique has all: a sum over the pair says what is right."""
    rng = np.random.default_rng(seed)
    one, two = (bbn.Variable(name, [f"s{k}" for k in range(9)]) for name in ("one", "two"))
    near = np.abs(np.subtract.outer(np.arange(9), np.arange(9))) <= 1
    parts = [bbn.CPT(one, [], rng.dirichlet(np.ones(9)))]
    table = rng.uniform(0.1, 1, (9, 9)) * near
    parts.append(bbn.CPT(two, [one], table / table.sum(axis=1, keepdims=True)))
    weight = parts[0].table[:, None] * parts[1].table
    hard = []
    for k in range(25):
        rows = rng.uniform(0.01, 1, (9, 9, 2))
        parts.append(
            bbn.CPT(bbn.Variable(f"F{k}", ["no", "yes"]), [one, two], rows / rows.sum(axis=2, keepdims=True))
        )
        hard.append((2 + k, int(rng.integers(2))))
        weight = weight * parts[-1].table[..., hard[-1][1]]
    model = flatten(bbn.BayesianNetwork(parts))
    question = Question(frozenset(v for v, _ in hard[:20]), frozenset([26]), goal=t.MARGINALS)
    layout = plan_tree(model, question).layout
    assert t.RESCALE in [op for op, _ in t.instructions(layout.run)]
    found = bands.in_bands(model.cards, model.tables, layout)
    thin, own = found or (layout, None)
    weight = weight / np.prod([parts[v].table[..., code] for v, code in hard[20:]], axis=0)
    for propagate in [kernels.propagate]:
        values, _ = propagate.Program(model.cards, model.tables, thin, False, own).run(
            hard[:20], [(26, np.ones(2))]
        )
        np.testing.assert_allclose(values[:9], weight.sum(axis=1) / weight.sum(), rtol=0, atol=1e-10)
        np.testing.assert_allclose(values[9:18], weight.sum(axis=0) / weight.sum(), rtol=0, atol=1e-10)


def marginals_plan(net: bbn.BayesianNetwork, limit: int | None = None) -> TreeQuery:
    """The plan of all marginals, a tenth of the variables observed."""
    model = flatten(net)
    question = Question(frozenset(range(0, len(net.names), 10)), goal=t.MARGINALS)
    return TreeQuery(open_plan(plan_tree(model, question), limit))


def hard_of(net: bbn.BayesianNetwork) -> list[tuple[int, int]]:
    """A case of what that plan observes."""
    case = net.sample(1, seed=8).iloc[0]
    return [(i, net.variable(net.names[i]).find(case.iloc[i])) for i in range(0, len(net.names), 10)]


def test_a_plan_that_is_run_often_has_bands_where_zeros_are_many(monkeypatch):
    monkeypatch.setattr(bands, "RUNS", 3)
    monkeypatch.setattr(bands, "SMALL_RUNS", 0)
    for name, expected in (("mildew", True), ("barley", False), ("alarm", False)):
        net = bbn.example(name)
        made, hard = marginals_plan(net), hard_of(net)
        first = made.run(hard)
        assert made.executor.plan.sparse is None
        for _ in range(3):
            values, log = made.run(hard)
        assert (made.executor.plan.sparse is not None) == expected
        np.testing.assert_allclose(values, first[0], rtol=0, atol=1e-12)
        assert log == pytest.approx(first[1], abs=1e-10)


def test_rows_in_blocks_find_whole_cliques_again(monkeypatch):
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: goal != t.COLLECTED)
    net = bbn.example("mildew")
    made, hard = marginals_plan(net), hard_of(net)
    values, _ = made.run(hard)
    assert made.executor.plan.sparse is not None
    assert made.whole().program.base.size > made.executor.layout.base_size
    assert made.executor.plan.sparse is None
    np.testing.assert_allclose(made.run(hard)[0], values, rtol=0, atol=1e-12)


def test_bands_are_not_looked_for_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: goal != t.COLLECTED)
    net = bbn.example("mildew")
    roomy = marginals_plan(net)
    least = roomy.executor.bytes + 8 * flatten(net).tables.size
    tight = marginals_plan(net, least + 1000)
    hard = hard_of(net)
    np.testing.assert_allclose(tight.run(hard)[0], roomy.run(hard)[0], rtol=0, atol=1e-12)
    assert roomy.executor.plan.sparse is not None
    assert tight.executor.plan.sparse is None


def places_read(cards, layout, own) -> set[int]:
    """The places in the lists that some run reads."""
    found: set[int] = set()
    for tape in (layout.once, layout.run):
        for op, f in t.instructions(tape):
            if op == t.BANDS:
                _, _, most, v, counts, starts, widths, _, left, keep, _, n_ops = f[:12]
                lists = [widths, *([starts] if left or keep else [])]
                at = 12
                for _ in range(n_ops):
                    lists.append(f[at + 6])
                    at += f[at + 1]
                for code in range(cards[v] if v >= 0 else 1):
                    found.add(counts + code)
                    for first in lists:
                        start = first + code * most
                        found.update(range(start, start + own.lists[counts + code]))
    return found


def test_lists_that_do_not_fit_are_refused(every):
    rng = np.random.default_rng(1)
    found = None
    while found is None or not any(op == t.BANDS and f[10] for op, f in t.instructions(found[0].run)):
        model = flatten(banded_network(rng))
        question = Question(frozenset([0]), goal=t.MARGINALS)
        layout = plan_tree(model, question).layout
        found = bands.in_bands(model.cards, model.tables, layout)
    thin, own = found
    propagate = kernels.propagate
    propagate.Program(model.cards, model.tables, thin, False, own)
    with pytest.raises(TypeError, match="int32"):
        propagate.Program(
            model.cards, model.tables, thin, False, own._replace(lists=own.lists.astype(np.int64))
        )
    with pytest.raises(ValueError, match="maximum"):
        propagate.Program(model.cards, model.tables, thin, True, own)
    read = sorted(places_read(model.cards, thin, own))
    assert len(read) > 50
    for k in read:
        for wrong in (-1, 2**31 - 50):
            lists = own.lists.copy()
            lists[k] = wrong
            with pytest.raises(ValueError, match="bands"):
                propagate.Program(model.cards, model.tables, thin, False, own._replace(lists=lists))
    for short in (
        own._replace(lists=own.lists[: read[-1]]),
        own._replace(n_ids=own.n_ids - 1),
        own._replace(slots=own.slots - 1),
    ):
        with pytest.raises(ValueError, match="bands"):
            propagate.Program(model.cards, model.tables, thin, False, short)


def test_the_memory_of_bands_counts(monkeypatch):
    """A query stores no large clique, so lists of bands take more memory than whole sweeps; kept plans say so."""
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: 1)
    monkeypatch.setattr(query_compiler, "FILTERED", math.inf)
    net = bbn.example("mildew")
    case = {name: net.sample(1, seed=8)[name].iloc[0] for name in net.names[::10]}
    engine = bbn.JunctionTree(net, memory_limit="100 MB")
    engine.query("udbytte", case)
    (made,) = (one.executor for one in engine.compiler.known._queries.values())
    plan = made.plan
    assert plan.sparse is not None
    assert plan.more == bands.more_bytes(plan.layout, *plan.sparse) > plan.sparse[1].lists.nbytes / 2
    assert engine.compiler.known.room.kept == made.kept == made.bytes + plan.more
    tight = bbn.JunctionTree(net, memory_limit=made.bytes + 8 * engine.flat.tables.size + plan.more - 1)
    assert tight.query("udbytte", case).values == pytest.approx(
        engine.query("udbytte", case).values, abs=1e-12
    )
    (other,) = (one.executor for one in tight.compiler.known._queries.values())
    assert other.plan.sparse is None
