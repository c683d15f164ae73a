"""Best explanations by cliques gone through band by band: against all cells of the joint table, sorted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import prepared_queries, query_compiler
from bbn.inference.exact import sparse_cliques as bands
from bbn.inference.exact.problem import Question, flatten
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts import tape as t
from tests.inference.exact import test_range
from tests.inference.exact.test_sparse_cliques import banded_network, joint_of
from tests.inference.exact.test_sparse_cliques import every as every
from tests.inference.search.test_noisy_max_search import zeroed
from tests.kernels.test_twins import numpy_program
from tests.support import exact_truth

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="the junction tree in numpy has no bands")


@pytest.fixture
def at_once(every, monkeypatch):
    """A plan has bands from its first run on, wherever there may be any."""
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: 1)


def best_by(model, layout, own, hard, vectors, k):
    """The k best assignments by a layout, and ln of the best."""
    program = kernels.propagate.Program(model.cards, model.tables, layout, True, own)
    reader = kernels.explain.Explainer(model.cards, model.tables, layout, None if own is None else own.remade)
    workspace, log = program.hold(hard, vectors)
    if log == -math.inf:
        return [], log
    ranked = reader.ranked(workspace.work, program.base, hard, vectors)
    return list(itertools.islice(ranked, k)), log


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_by_their_joint_tables(seed, every, monkeypatch):
    """100 networks each: codes, likelihoods with zeros, impossible evidence; with bands, without, and in numpy."""
    rng = np.random.default_rng(9000 + seed)
    if seed % 2:
        monkeypatch.setattr(bands, "DIFFER", math.inf)  # bands differ by value wherever they can
    monkeypatch.setattr("bbn.inference.exact.rematerialised_rows.SPLIT", 2 if seed % 4 < 2 else math.inf)
    cut = by_value = still = heads = impossible = 0
    for _ in range(100):
        net = banded_network(rng)
        joint = joint_of(net)
        model = flatten(net)
        draws = rng.random(len(net.variables))
        sliced = np.flatnonzero((draws < 0.3) & (model.cards > 1))
        likely = np.flatnonzero((draws > 0.8) & (model.cards > 1)).tolist()
        question = Question(frozenset(sliced.tolist()), frozenset(likely), goal=t.COLLECTED, maximise=True)
        plan = plan_tree(model, question)
        layout, in_numpy = plan.layout, numpy_program(plan)
        thin, own = bands.in_bands(model.cards, model.tables, layout, True) or (layout, None)
        if own is not None:
            cut += 1
            written = [f for op, f in t.instructions(thin.run) if op == t.BANDS]
            assert written
            by_value += any(f[3] >= 0 for f in written)
            still += any(f[8] == t.BASE for f in written)
            heads += len(thin.parent) > len(layout.parent)
        for _ in range(2):
            hard = [(int(v), int(rng.integers(model.cards[v]))) for v in sliced]
            vectors = [(v, np.where(rng.random(model.cards[v]) < 0.5, 0.0, 0.7)) for v in likely]
            weight = joint.copy()
            for v, values in [*((v, np.eye(model.cards[v])[code]) for v, code in hard), *vectors]:
                weight *= values.reshape([-1 if k == v else 1 for k in range(joint.ndim)])
            k = int(rng.integers(1, 12))
            truth = np.sort(weight[weight > 0])[::-1][:k]
            impossible += not len(truth)
            found = [best_by(model, thin, own, hard, vectors, k)]
            found.append(best_by(model, layout, None, hard, vectors, k))
            ranked, log = in_numpy.ranked(hard, vectors)
            found.append((list(itertools.islice(ranked, k)), log))
            for answers, log in found:
                if not len(truth):
                    assert (answers, log) == ([], -math.inf)
                    continue
                logs = [log + ratio for _, ratio in answers]
                assert logs == sorted(logs, reverse=True)
                np.testing.assert_allclose(logs, np.log(truth), rtol=0, atol=1e-10)
                own_weights = [weight[tuple(codes)] for codes, _ in answers]
                np.testing.assert_allclose(np.log(own_weights), logs, rtol=0, atol=1e-10)
                assert len({tuple(codes) for codes, _ in answers}) == len(answers)
                for codes, others in zip(answers, found[0][0], strict=True):
                    assert codes[0].tolist() == others[0].tolist()
    assert cut >= 60
    assert still >= 5
    assert impossible >= 5
    assert by_value >= 5 or not seed % 2
    assert heads >= 20 or seed % 4 >= 2


def noisy_network(rng: np.random.Generator) -> bbn.BayesianNetwork:
    """Tables and noisy maxima, most entries zero."""
    variables = [bbn.Variable(f"V{i}", [f"s{k}" for k in range(rng.integers(2, 5))]) for i in range(6)]
    parts: list[bbn.CPT | bbn.NoisyMax] = []
    for i, v in enumerate(variables):
        parents = [variables[int(p)] for p in rng.permutation(i)[: int(rng.integers(0, min(i, 3) + 1))]]
        if parents and rng.random() < 0.5:
            links = [zeroed(rng, p.card, v.card) for p in parents]
            parts.append(bbn.NoisyMax(v, parents, links, zeroed(rng, 1, v.card)[0], strongest=v.states[-1]))
            continue
        shape = [*(p.card for p in parents), v.card]
        rows = rng.dirichlet(np.ones(v.card), math.prod(shape[:-1])) * (
            rng.random((math.prod(shape[:-1]), v.card)) < 0.4
        )
        rows[rows.sum(axis=1) == 0, int(rng.integers(v.card))] = 1.0
        parts.append(bbn.CPT(v, parents, (rows / rows.sum(axis=1, keepdims=True)).reshape(shape)))
    return bbn.BayesianNetwork(parts)


@pytest.mark.parametrize("seed", range(20))
def test_engines_on_networks_with_noisy_maxima(seed, at_once):
    """20 networks each, asked three times, since the third question goes the short way."""
    rng = np.random.default_rng(9500 + seed)
    for _ in range(20):
        net = noisy_network(rng)
        joint = net.joint()
        names = [v.name for v in joint.variables]
        engine = bbn.JunctionTree(net)
        seen = [name for name in names if rng.random() < 0.3]
        for _ in range(3):
            codes = {name: int(rng.integers(len(net.states(name)))) for name in seen}
            evidence = {name: net.states(name)[code] for name, code in codes.items()}
            part = joint.values[tuple(codes.get(name, slice(None)) for name in names)]
            truth = np.sort(part[part > 0])[::-1][:6]
            if not len(truth):
                for k in (None, 6):
                    with pytest.raises(bbn.ImpossibleEvidenceError):
                        engine.mpe(evidence, k)
                continue
            answers = engine.mpe(evidence, 6)
            np.testing.assert_allclose(
                [one.log_probability for one in answers], np.log(truth), rtol=0, atol=1e-10
            )
            assert engine.mpe(evidence).log_probability == answers[0].log_probability
            for one in answers:
                assert list(one.states) == [name for name in net.names if name not in seen]
                assert math.log(net.probability({**evidence, **one.states})) == pytest.approx(
                    one.log_probability, abs=1e-10
                )


@pytest.mark.parametrize("seed", range(20))
def test_entries_down_to_1e_300_keep_their_digits(seed, at_once):
    """Products leave the range of a double, in runs and in rows that are made again."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        net = test_range.tiny_network(rng)
        engine = bbn.JunctionTree(net)
        for share in (0.0, 0.3, 0.7):
            evidence = test_range.random_evidence(rng, net, share)
            whole = exact_truth.weights(net, evidence)
            if not whole:
                continue
            truth = sorted(whole.values(), reverse=True)[:4]
            logs = [math.log(one.numerator) - math.log(one.denominator) for one in truth]
            found = [one.log_probability for one in engine.mpe(evidence, k=4)]
            np.testing.assert_allclose(found, logs, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_of_states_that_tie_the_first_is_best(seed, at_once):
    """Under each state the signs have the same probabilities in another order, and products are rounded."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(0.1, 0.9, 4)
    orders = rng.permutation(list(itertools.permutations(numbers)))
    cause = bbn.Variable("cause", [f"s{k}" for k in range(24)])
    signs = [bbn.Variable(f"sign{i}", ["no", "yes"]) for i in range(4)]
    parts = [bbn.CPT(cause, [], np.full(24, 1 / 24))]
    parts += [
        bbn.CPT(sign, [cause], np.column_stack([1 - orders[:, i], orders[:, i]]))
        for i, sign in enumerate(signs)
    ]
    engine = bbn.JunctionTree(bbn.BayesianNetwork(parts))
    evidence = {sign.name: "yes" for sign in signs}
    for _ in range(3):
        assert [one["cause"] for one in engine.mpe(evidence, k=24)] == list(cause.states)
        assert engine.mpe(evidence)["cause"] == "s0"


def test_states_that_tie_come_in_one_order_with_bands_and_without(at_once):
    """Each row has the same numbers, so that many assignments tie."""
    rng = np.random.default_rng(0)
    coins = [bbn.Variable(f"C{i}", [f"s{k}" for k in range(5)]) for i in range(6)]
    for _ in range(30):
        table = np.zeros((5, 5))
        for k in range(5):  # each row the same numbers, elsewhere
            table[k] = np.roll([0.1, 0.3, 0.6, 0.0, 0.0], k)
        parts = [bbn.CPT(coins[0], [], np.full(5, 0.2))]
        parts += [bbn.CPT(b, [coins[int(rng.integers(i + 1))]], table) for i, b in enumerate(coins[1:])]
        net = bbn.BayesianNetwork(parts)
        engine = bbn.JunctionTree(net)
        plain = bbn.JunctionTree(net)
        first = engine.mpe(k=40)
        assert engine.mpe(k=40)[0].states == first[0].states
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prepared_queries, "runs_before", lambda layout, goal: 0)
            assert [one.states for one in plain.mpe(k=40)] == [one.states for one in first]
        model = flatten(net)
        question = Question(goal=t.COLLECTED, maximise=True)
        ranked, _ = numpy_program(plan_tree(model, question)).ranked()
        found = [
            dict(zip(model.names, codes.tolist(), strict=True)) for codes, _ in itertools.islice(ranked, 40)
        ]
        assert [{name: f"s{code}" for name, code in one.items()} for one in found] == [
            one.states for one in first
        ]


@pytest.mark.parametrize("name", ["mildew", "water", "pathfinder"])
def test_the_best_of_a_real_network_stays_the_best(name, monkeypatch):
    """With bands as without, one by one and of several; the memory that it takes is counted."""
    monkeypatch.setattr(query_compiler, "FILTERED", math.inf)
    net = bbn.example(name)
    cases = net.sample(3, seed=3)[list(net.names[::10])].to_dict("records")
    plain, banded = bbn.JunctionTree(net), bbn.JunctionTree(net)
    expected = [plain.mpe(case, k=5) for case in cases]
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: 1)
    for _ in range(2):
        for case, wanted in zip(cases, expected, strict=True):
            found = banded.mpe(case, k=5)
            assert [one.states for one in found] == [one.states for one in wanted]
            np.testing.assert_allclose(
                [one.log_probability for one in found],
                [one.log_probability for one in wanted],
                rtol=0,
                atol=1e-9,
            )
            assert banded.mpe(case).states == wanted[0].states
    (made,) = (one.executor for one in banded.compiler.known._queries.values())
    assert made.plan.sparse is not None
    assert made.kept == made.bytes + made.plan.more
    assert made.plan.sparse[0].work_size < made.layout.work_size


def test_rows_that_do_not_fit_are_refused(every):
    rng = np.random.default_rng(1)
    found = None
    while found is None or len(found[1].remade) < 60:
        model = flatten(banded_network(rng))
        question = Question(frozenset([0]), frozenset([1]), goal=t.COLLECTED, maximise=True)
        found = bands.in_bands(model.cards, model.tables, plan_tree(model, question).layout, True)
    thin, own = found
    reader = kernels.explain.Explainer
    reader(model.cards, model.tables, thin, own.remade)
    with pytest.raises(TypeError, match="int64"):
        reader(model.cards, model.tables, thin, own.remade.astype(np.int32))
    with pytest.raises(ValueError, match="tables"):
        reader(model.cards, model.tables[:-1], thin, own.remade)
    for k in range(len(own.remade)):
        for wrong in (-(2**40), -1, 2**40):
            words = own.remade.copy()
            words[k] = wrong
            with pytest.raises(ValueError, match="again"):
                reader(model.cards, model.tables, thin, words)
    reader = reader(model.cards, model.tables, thin, own.remade)
    with pytest.raises(ValueError, match="potentials"):
        reader.ranked(np.ones(thin.work_size - 1), np.ones(thin.base_size))
