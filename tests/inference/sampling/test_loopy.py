"""Loopy belief propagation: exact on trees, the known fixed point elsewhere, and a warning where there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from tests.inference.sampling.test_sample import random_evidence
from tests.support import oracle
from tests.support.strategies import random_table


def random_polytree(rng: np.random.Generator, n: int = 8) -> bbn.BayesianNetwork:
    """A network whose undirected graph is a tree: each new node is a child or a parent of one before it."""
    nodes = [bbn.Variable(f"N{i}", list(range(int(rng.integers(1, 4))))) for i in range(n)]
    parents: dict[int, list[int]] = {i: [] for i in range(n)}
    for i in range(1, n):
        j = int(rng.integers(i))
        if rng.random() < 0.5 and len(parents[j]) < 3:
            parents[j].append(i)
        else:
            parents[i].append(j)
    return bbn.BayesianNetwork(
        [
            bbn.CPT(
                v,
                [nodes[j] for j in parents[i]],
                random_table(rng, [*(nodes[j].card for j in parents[i]), v.card]),
            )
            for i, v in enumerate(nodes)
        ]
    )


@pytest.mark.parametrize("schedule", ["sequential", "flooding"])
@pytest.mark.parametrize("seed", range(25))
def test_trees_are_exact(seed, schedule):
    rng = np.random.default_rng(seed)
    net = random_polytree(rng)
    evidence = random_evidence(rng, net)
    if oracle.condition(net, evidence) is None:
        with pytest.raises(bbn.ImpossibleEvidenceError):
            net.posteriors(evidence, method="loopy")
        return
    answers = net.posteriors(evidence, method="loopy", schedule=schedule)
    assert answers.sampling.converged
    for name, p in answers.items():
        exact = oracle.posterior(net, [name], evidence)
        assert p.values == pytest.approx([exact[(s,)] for s in net.states(name)], abs=1e-10)
    assert answers.log_evidence == pytest.approx(
        math.log(oracle.evidence_probability(net, evidence)), abs=1e-9
    )
    targets = [net.names[int(i)] for i in rng.permutation(len(net))[:3]]
    joint = net.query(targets, evidence, method="loopy", schedule=schedule)
    exact = oracle.posterior(net, targets, evidence)
    for states, probability in joint.to_dict().items():
        assert probability == pytest.approx(exact[states], abs=1e-10)


def test_soft_evidence_on_a_tree():
    net = random_polytree(np.random.default_rng(3))
    name = next(v.name for v in net.variables if v.card == 2 and net.query(v.name).values.min() > 0.05)
    evidence = {name: bbn.Soft(dict(zip(net.states(name), [0.25, 0.75], strict=True)))}
    for target, p in net.posteriors(evidence, method="loopy").items():
        exact = oracle.posterior(net, [target], evidence)
        assert p.values == pytest.approx([exact[(s,)] for s in net.states(target)], abs=1e-8)


def test_the_fixed_point_is_that_of_another_implementation():
    gum = pytest.importorskip("pyagrum")
    net = bbn.example("alarm")
    evidence = {"HRBP": "HIGH", "CVP": "LOW", "BP": "LOW"}
    theirs = gum.BayesNet()
    label = {v.name: f"n{i}" for i, v in enumerate(net.variables)}
    for v in net.variables:
        theirs.add(gum.LabelizedVariable(label[v.name], "", [str(k) for k in range(v.card)]))
    for parent, child in net.arcs:
        theirs.addArc(label[parent], label[child])
    for v in net.variables:
        table = theirs.cpt(label[v.name])
        axes = [*(label[p] for p in net.parents(v.name)), label[v.name]]
        table[:] = np.ascontiguousarray(
            net[v.name].table.transpose([axes.index(n) for n in reversed(table.names)])
        )
    engine = gum.LoopyBeliefPropagation(theirs)
    engine.setEvidence({label[n]: net.variable(n).code(s) for n, s in evidence.items()})
    engine.setEpsilon(1e-10)
    engine.setMaxIter(10_000)
    engine.makeInference()
    for name, p in net.posteriors(evidence, method="loopy").items():
        assert p.values == pytest.approx(engine.posterior(label[name]).toarray(), abs=1e-4), name


def test_damping_and_schedule_lead_to_the_same_fixed_point():
    net = bbn.example("insurance")
    evidence = {"Age": "Adolescent", "PropCost": "Million"}
    reference = net.posteriors(evidence, method="loopy")
    for options in ({"damping": 0.5}, {"damping": 0.0}, {"schedule": "flooding", "damping": 0.3}):
        other = net.posteriors(evidence, method="loopy", **options)
        assert other.sampling.converged
        for name in reference:
            assert other[name].values == pytest.approx(reference[name].values, abs=1e-7), (name, options)


def frustrated() -> bbn.FactorGraph:
    """A complete graph of strong mixed couplings, in which undamped messages go round in circles."""
    rng = np.random.default_rng(2)
    vs = [bbn.Variable(f"V{i}", [0, 1]) for i in range(7)]
    factors = [bbn.Factor([v], np.exp(rng.normal(size=2))) for v in vs]
    for i, a in enumerate(vs):
        for b in vs[i + 1 :]:
            w = rng.normal() * 4
            factors.append(bbn.Factor([a, b], np.exp([[w, -w], [-w, w]])))
    return bbn.FactorGraph(factors)


def test_messages_that_do_not_settle_are_said_aloud():
    graph = frustrated()
    with pytest.warns(bbn.ConvergenceWarning, match="did not settle in 60 iterations"):
        p = graph.query("V0", method="loopy", damping=0.0, schedule="flooding", max_iter=60)
    assert not p.converged
    assert p.n_samples == 60


def test_an_answer_says_that_its_error_is_not_known():
    p = bbn.example("burglary").query("Alarm", {"JohnCalls": "yes"}, method="loopy")
    assert p.converged
    assert p.std_error is None
    assert p.sampling is not None
    with pytest.raises(ValueError, match="not known"):
        p.interval()


def test_impossible_evidence_is_named():
    with pytest.raises(bbn.ImpossibleEvidenceError, match="either"):
        bbn.example("asia").query("asia", {"lung": "yes", "either": "no", "smoke": "yes"}, method="loopy")


def test_options_are_checked():
    net = bbn.example("burglary")
    with pytest.raises(ValueError, match="damping"):
        net.query("Alarm", method="loopy", damping=1.0)
    with pytest.raises(ValueError, match="sequential"):
        net.query("Alarm", method="loopy", schedule="random")
    with pytest.raises(TypeError, match="damping"):
        net.query("Alarm", method="loopy", dampin=0.5)


def test_a_variable_with_many_children_does_not_underflow():
    root = bbn.Variable("R", [0, 1])
    leaves = [bbn.Variable(f"L{i}", [0, 1]) for i in range(1200)]
    net = bbn.BayesianNetwork(
        [bbn.CPT(root, table=[0.5, 0.5]), *(bbn.CPT(v, [root], [[0.5, 0.5], [0.499, 0.501]]) for v in leaves)]
    )
    evidence = {v.name: 0 for v in leaves}
    p, exact = net.query("R", evidence, method="loopy"), net.query("R", evidence)
    assert p.values == pytest.approx(exact.values, abs=1e-9)
    assert p.log_evidence == pytest.approx(exact.log_evidence, rel=1e-10)


def triangle() -> bbn.FactorGraph:
    """Three magnets that pull each other along, in a weak field: messages go round and count the field again."""
    vs = [bbn.Variable(name, [0, 1]) for name in "ABC"]
    pull = np.exp([[1.0, -1.0], [-1.0, 1.0]])
    pairs = [bbn.Factor([vs[i], vs[i - 1]], pull) for i in range(3)]
    return bbn.FactorGraph([*pairs, bbn.Factor([vs[0]], [1.0, 1.5])])


def test_messages_that_settle_do_not_make_an_answer_reliable():
    graph = triangle()
    loops, exact = graph.posteriors(method="loopy"), graph.posteriors()
    assert loops.sampling.converged
    assert max(abs(loops[name].values - exact[name].values).max() for name in "ABC") > 0.1
    assert not loops.sampling.reliable
    assert not loops["A"].reliable
    assert "how far off is not known" in repr(loops.sampling)
    tree = graph.query("A", {"B": 0}, method="loopy")
    assert tree.reliable
    assert tree.values == pytest.approx(graph.query("A", {"B": 0}).values, abs=1e-12)
    assert exact["A"].reliable
