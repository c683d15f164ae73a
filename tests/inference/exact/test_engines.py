"""Every exact engine against brute force: random networks, every kind of evidence, every question.

The truth is the tables multiplied into one array with numpy's einsum: no code of the library but the reading
of its tables. A few networks are also checked against the plain-dict oracle, and the two truths with each other.
"""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

from bbn.core.errors import EvidenceError, ImpossibleEvidenceError
from bbn.inference import ENGINES, engine_class
from bbn.model.cpt import CPT
from bbn.model.evidence import Not, OneOf, Soft, Virtual
from bbn.model.factor import Factor
from bbn.model.factor_graph import FactorGraph
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from tests.support import oracle
from tests.support.strategies import random_network

EXACT = [method for method in ENGINES if method in ("junction-tree", "elimination", "enumeration")]
KINDS = ["none", "hard", "virtual", "one-of", "not", "soft", "mixed", "arbitrary"]
N_NETWORKS = 2000
BATCHES = 10
TOLERANCE = 1e-10


class Truth:
    """One network and one set of findings, with the joint weighted by them as one array."""

    def __init__(self, net, evidence):
        self.net, self.evidence = net, evidence
        self.names = list(net.names)
        axis = {name: i for i, name in enumerate(self.names)}
        operands = []
        for name in self.names:
            cpt = net[name]
            operands += [cpt.table, [axis[v.name] for v in (*cpt.parents, cpt.variable)]]
        soft = []
        for name, finding in evidence.items():
            if isinstance(finding, Soft):
                soft.append((axis[name], np.array([finding.weights[s] for s in net.states(name)])))
            else:
                operands += [
                    np.array([oracle._likelihood(finding, s) for s in net.states(name)]),
                    [axis[name]],
                ]
        self.weighted = np.einsum(*operands, list(range(len(self.names))))
        self.total = float(self.weighted.sum())
        self.possible = self.total > 0
        if self.possible:
            self.posterior = self.weighted / self.total
            for _ in range(100_000 if soft else 0):
                off = 0.0
                for i, wanted in soft:
                    has = self.marginal([i])
                    off = max(off, np.abs(has - wanted).max())
                    ratio = np.divide(wanted, has, out=np.zeros_like(wanted), where=has > 0)
                    self.posterior = self.posterior * ratio.reshape(
                        [-1 if a == i else 1 for a in range(len(axis))]
                    )
                if off < 1e-13:
                    break

    def marginal(self, axes, array=None):
        array = self.posterior if array is None else array
        summed = array.sum(axis=tuple(i for i in range(array.ndim) if i not in axes))
        return summed.transpose([sorted(axes).index(a) for a in axes])

    def axes(self, names):
        return [self.names.index(name) for name in names]

    @property
    def hard(self):
        return {n for n, f in self.evidence.items() if not isinstance(f, Virtual | OneOf) and f is not None}

    @property
    def has_soft(self):
        return any(isinstance(f, Soft) for f in self.evidence.values())


def draw_evidence(rng, net, kind):
    """Findings on about a third of the nodes; those of all kinds but "arbitrary" can hold together."""
    if kind == "none":
        return {}
    joint = np.asarray(net.joint().values)
    codes = np.unravel_index(rng.choice(joint.size, p=joint.ravel() / joint.sum()), joint.shape)
    evidence = {}
    soft = []
    for name, code in zip(net.names, codes, strict=True):
        if rng.random() > 0.35:
            continue
        states = net.states(name)
        is_one = rng.choice(["hard", "virtual", "one-of", "not", "soft"]) if kind == "mixed" else kind
        if is_one == "hard":
            evidence[name] = states[code]
        elif is_one == "arbitrary":
            evidence[name] = states[rng.integers(len(states))]
        elif is_one == "virtual":
            weights = rng.random(len(states)) * rng.choice([1.0, 1e-3, 50.0])
            evidence[name] = Virtual(dict(zip(states, weights, strict=True)))
        elif is_one == "one-of":
            others = [s for s in states if s != states[code] and rng.random() < 0.4]
            evidence[name] = OneOf(states[code], *others)
        elif is_one == "not":
            evidence[name] = Not(*(s for s in states if s != states[code] and rng.random() < 0.6))
        else:
            soft.append(name)
    # Marginals of one distribution with the support of the posterior so far: soft findings that can hold together.
    truth = Truth(net, evidence)
    other = truth.weighted * rng.random(joint.shape)
    for name in soft[:3]:
        wanted = truth.marginal(truth.axes([name]), other) / other.sum()
        evidence[name] = Soft(dict(zip(net.states(name), wanted.tolist(), strict=True)))
    return evidence


@lru_cache
def batch(number):
    """Networks with evidence and targets, the same for every engine."""
    rng = np.random.default_rng([20, number])
    cases = []
    for i in range(N_NETWORKS // BATCHES):
        net = random_network(rng, max_cells=1500)
        if i % 10 == 9:  # interventions: the cut network is a network like any other
            name = net.names[rng.integers(len(net))]
            net = net.do({name: net.states(name)[rng.integers(net.variable(name).card)]})
        truth = Truth(net, draw_evidence(rng, net, KINDS[i % len(KINDS)]))
        count = int(rng.integers(1, min(4, len(net)) + 1))
        cases.append((truth, [net.names[int(j)] for j in rng.permutation(len(net))[:count]]))
    return cases


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("number", range(BATCHES))
def test_engine_against_brute_force(method, number):
    impossible = 0
    for i, (truth, targets) in enumerate(batch(number)):
        engine = engine_class(method)(truth.net)
        if truth.possible:
            check_answers(engine, truth, targets, thorough=method == "junction-tree" or i % 5 == 0)
        else:
            impossible += 1
            check_impossible(engine, truth, targets)
    assert impossible > 0


def check_answers(engine, truth, targets, thorough):
    """query, map, mpe and, where thorough, all posteriors, log_evidence and the three best, all to 1e-10."""
    log_total = pytest.approx(math.log(truth.total), rel=TOLERANCE, abs=TOLERANCE)
    for asked in (targets[0], targets) if thorough else (targets,):
        names = [asked] if isinstance(asked, str) else asked
        answer = engine.query(asked, truth.evidence)
        assert answer.names == tuple(names)
        np.testing.assert_allclose(answer.values, truth.marginal(truth.axes(names)), rtol=0, atol=TOLERANCE)
        assert answer.log_evidence == log_total
    if thorough:
        answers = engine.posteriors(truth.evidence)
        assert set(answers) == set(truth.names) - truth.hard
        for name in answers:
            exact = truth.marginal(truth.axes([name]))
            np.testing.assert_allclose(answers[name].values, exact, rtol=0, atol=TOLERANCE)
        assert answers.log_evidence == log_total
        assert engine.log_evidence(truth.evidence) == log_total
    if not truth.has_soft:
        check_explanations(engine, truth, targets, thorough)


def check_explanations(engine, truth, targets, thorough):
    """The best is as probable as the best there is, and its states really have that probability."""
    net, evidence = truth.net, truth.evidence
    table = truth.marginal(truth.axes(targets), truth.weighted)
    best = engine.map(targets, evidence)
    assert list(best.states) == targets
    check_assignment(net, best, targets, table, table.max())
    free = [n for n in truth.names if n not in truth.hard]
    weights = truth.marginal(truth.axes(free), truth.weighted)
    ranked = np.sort(weights[weights > 0], axis=None)[::-1]
    single = engine.mpe(evidence)
    assert set(single.states) == set(free)
    check_assignment(net, single, free, weights, ranked[0])
    if not thorough:
        return
    three = engine.mpe(evidence, k=3)
    assert len(three) == min(3, len(ranked))
    assert len({tuple(sorted((n, str(s)) for n, s in a.states.items())) for a in three}) == len(three)
    for answer, weight in zip(three, ranked, strict=False):
        check_assignment(net, answer, free, weights, weight)


def check_assignment(net, answer, names, table, weight):
    index = tuple(net.variable(n).code(answer[n]) for n in names)
    assert answer.log_probability == pytest.approx(math.log(weight), rel=TOLERANCE, abs=TOLERANCE)
    assert table[index] == pytest.approx(weight, rel=TOLERANCE, abs=0)


def check_impossible(engine, truth, targets):
    """Each question raises and names findings that suffice to be impossible, none of which can be left out."""
    evidence = truth.evidence
    for ask in (
        lambda: engine.query(targets, evidence),
        lambda: engine.posteriors(evidence),
        lambda: engine.mpe(evidence),
        lambda: engine.map(targets, evidence),
    ):
        with pytest.raises(ImpossibleEvidenceError) as caught:
            ask()
        findings = caught.value.findings
        assert findings.items() <= evidence.items()
        assert not Truth(truth.net, findings).possible
        for name in findings:
            assert name in str(caught.value)
            assert Truth(truth.net, {n: f for n, f in findings.items() if n != name}).possible
    assert engine.log_evidence(evidence) == -math.inf


def test_the_two_truths_agree():
    """einsum over arrays and sums over dicts give the same posterior, with soft findings too."""
    for truth, targets in batch(0)[:40]:
        slow = oracle.posterior(truth.net, targets, truth.evidence)
        assert (slow is None) == (not truth.possible)
        if slow is not None:
            fast = truth.marginal(truth.axes(targets))
            np.testing.assert_allclose(
                fast.ravel(), [*_in_order(truth.net, targets, slow)], rtol=0, atol=1e-12
            )


def _in_order(net, targets, table):
    for states in oracle.product(*(net.states(t) for t in targets)):
        yield table[states]


@pytest.mark.parametrize("method", EXACT)
def test_an_observed_target_is_certain(method):
    truth, _ = next(c for c in batch(1) if c[0].possible and c[0].hard)
    name = min(truth.hard)
    other = next((n for n in truth.names if n not in truth.hard), None)
    engine = engine_class(method)(truth.net)
    assert engine.query(name, truth.evidence)[truth.evidence[name]] == 1
    if other:
        joint = engine.query([name, other], truth.evidence)
        np.testing.assert_allclose(joint.values, truth.marginal(truth.axes([name, other])), atol=TOLERANCE)
    assert engine.map([name], truth.evidence)[name] == truth.evidence[name]


@pytest.mark.parametrize("method", EXACT)
def test_unknown_options_names_and_k(method):
    truth, targets = batch(0)[0]
    engine = engine_class(method)(truth.net)
    with pytest.raises(TypeError, match="memory_limti"):
        engine.query(targets, memory_limti=3)
    with pytest.raises(EvidenceError, match="no variable"):
        engine.query("no such node")
    with pytest.raises(EvidenceError, match="k must be"):
        engine.mpe(k=0)
    assert len(engine.mpe(k=np.int64(2))) == min(2, math.prod(v.card for v in truth.net.variables))
    with pytest.raises(EvidenceError, match=r"no inference method 'junction-tre'.*junction-tree"):
        truth.net.query(targets, method="junction-tre")


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.filterwarnings("error")
def test_soft_findings_that_cannot_hold_together(method):
    """Two copies of one variable cannot differ; nor can a state that hard evidence excludes have weight."""
    a, b = Variable("A", ["x", "y"]), Variable("B", ["x", "y"])
    net = BayesianNetwork([CPT(a, table=[0.5, 0.5]), CPT(b, [a], np.eye(2))])
    engine = engine_class(method)(net)
    with pytest.raises(ImpossibleEvidenceError, match=r"cannot hold together|other findings exclude"):
        engine.query("A", {"A": Soft({"x": 0.8, "y": 0.2}), "B": Soft({"x": 0.5, "y": 0.5})})
    with pytest.raises(
        ImpossibleEvidenceError, match="'A' gives weight to a state that the other findings exclude"
    ):
        engine.query("B", {"A": Soft({"x": 0.8, "y": 0.2}), "B": "x"})
    with pytest.raises(ImpossibleEvidenceError, match=r"cannot hold together|other findings exclude"):
        engine.posteriors({"A": Soft({"x": 1, "y": 0}), "B": Soft({"x": 1e-300, "y": 1 - 1e-300})})


@pytest.mark.parametrize("method", EXACT)
def test_soft_findings_that_pull_hard_are_still_met(method):
    """Marginals that leave a cell of the joint next to nothing, where plain sweeps need thousands of rounds."""
    a, b = Variable("A", ["x", "y"]), Variable("B", ["x", "y"])
    net = BayesianNetwork([CPT(a, table=[0.5, 0.5]), CPT(b, [a], [[0.5, 0.5], [0, 1]])])
    engine = engine_class(method)(net)
    for little in (1e-3, 1e-6, 0.0):  # P(A=x, B=y); none left is the limit, in which B says what A is
        evidence = {"A": Soft({"x": 0.6, "y": 0.4}), "B": Soft({"x": 0.6 - little, "y": 0.4 + little})}
        joint = engine.query(["A", "B"], evidence)
        np.testing.assert_allclose(joint.values, [[0.6 - little, little], [0, 0.4]], rtol=0, atol=TOLERANCE)
        assert joint.log_evidence == pytest.approx(0, abs=TOLERANCE)


def test_many_soft_findings():
    """More than have a joint that fits: each marginal is the one asked for, the chain between them intact."""
    nodes = [Variable(f"n{i}", ["x", "y"]) for i in range(40)]
    chain = [CPT(nodes[0], table=[0.5, 0.5])]
    chain += [CPT(b, [a], [[0.7, 0.3], [0.4, 0.6]]) for a, b in pairwise(nodes)]
    rng = np.random.default_rng(1)
    wanted = {v.name: float(p) for v, p in zip(nodes, rng.uniform(0.2, 0.8, len(nodes)), strict=True)}
    evidence = {name: Soft({"x": p, "y": 1 - p}) for name, p in wanted.items()}
    answers = BayesianNetwork(chain).posteriors(evidence)
    for name, p in wanted.items():
        assert answers[name]["x"] == pytest.approx(p, abs=TOLERANCE)
    assert answers.log_evidence == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("size", [1e308, 1e150, 1e-150, 1e-300])
@pytest.mark.filterwarnings("error")
def test_virtual_weights_may_be_of_any_size(method, size):
    """A common factor of the weights shows in ln P(evidence) alone."""
    truth, targets = next(c for c in batch(2) if len(c[0].net) > 5 and c[0].evidence == {})
    engine = engine_class(method)(truth.net)
    rng = np.random.default_rng(4)
    plain = {
        v.name: dict(zip(v.states, rng.uniform(0.1, 1, v.card), strict=True)) for v in truth.net.variables
    }
    large = {n: Virtual({s: w * size for s, w in weights.items()}) for n, weights in plain.items()}
    plain = {n: Virtual(weights) for n, weights in plain.items()}
    shift = len(plain) * math.log(size)
    for ask in (engine.query, engine.map):
        one, other = ask(targets, plain), ask(targets, large)
        if ask == engine.query:
            np.testing.assert_allclose(other.values, one.values, rtol=0, atol=TOLERANCE)
            assert other.log_evidence == pytest.approx(one.log_evidence + shift, rel=1e-12)
        else:
            assert other.states == one.states
            assert other.log_probability == pytest.approx(one.log_probability + shift, rel=1e-12)
    assert engine.posteriors(large).log_evidence == pytest.approx(
        engine.log_evidence(plain) + shift, rel=1e-12
    )
    assert engine.mpe(large).states == engine.mpe(plain).states
    assert engine.mpe(large).log_probability == pytest.approx(
        engine.mpe(plain).log_probability + shift, rel=1e-12
    )


@pytest.mark.parametrize("method", EXACT)
def test_jeffreys_rule(method):
    """One soft finding: P'(b) = Σ_a P(b | a) q(a), and its own posterior is q."""
    a, b = Variable("A", ["x", "y"]), Variable("B", [0, 1, 2])
    net = BayesianNetwork([CPT(a, table=[0.3, 0.7]), CPT(b, [a], [[0.1, 0.2, 0.7], [0.5, 0.5, 0]])])
    engine = engine_class(method)(net)
    soft = {"A": Soft({"x": 0.9, "y": 0.1})}
    np.testing.assert_allclose(engine.query("B", soft).values, [0.14, 0.23, 0.63], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(engine.posteriors(soft)["A"].values, [0.9, 0.1], rtol=0, atol=TOLERANCE)
    assert engine.query("B", soft).log_evidence == pytest.approx(0, abs=TOLERANCE)


@pytest.mark.parametrize("method", EXACT)
def test_ten_thousand_observed_nodes_do_not_underflow(method):
    """A root with 10,000 observed children: ln P(evidence) and the posterior by hand."""
    root = Variable("Root", ["x", "y"])
    leaves = [Variable(f"leaf{i}", ["x", "y"]) for i in range(10_000)]
    table = [[0.1, 0.9], [0.2, 0.8]]
    net = BayesianNetwork([CPT(root, table=[0.5, 0.5]), *(CPT(leaf, [root], table) for leaf in leaves)])
    evidence = {leaf.name: "x" if i % 5 == 0 else "y" for i, leaf in enumerate(leaves)}
    logs = [math.log(0.5) + 2000 * math.log(row[0]) + 8000 * math.log(row[1]) for row in table]
    total = logs[1] + math.log1p(math.exp(logs[0] - logs[1]))
    engine = engine_class(method)(net)
    answer = engine.query("Root", evidence)
    assert answer.log_evidence == pytest.approx(total, rel=1e-12)
    assert answer["x"] == pytest.approx(math.exp(logs[0] - total), rel=1e-9)
    assert engine.log_evidence(evidence) == pytest.approx(total, rel=1e-12)
    assert engine.mpe(evidence).states == {"Root": "y"}
    assert engine.mpe(evidence).log_probability == pytest.approx(logs[1], rel=1e-12)


@pytest.mark.parametrize("method", EXACT)
def test_one_engine_answers_any_evidence_in_any_order(method):
    """Whatever an engine keeps from one question must not show in the next."""
    rng = np.random.default_rng(5)
    for _ in range(15):
        net = random_network(rng, max_cells=500)
        engine = engine_class(method)(net)
        for kind in rng.permutation(KINDS):
            truth = Truth(net, draw_evidence(rng, net, kind))
            targets = [net.names[int(j)] for j in rng.permutation(len(net))[:2]]
            if truth.possible:
                check_answers(engine, truth, targets, thorough=False)
            else:
                check_impossible(engine, truth, targets)


@pytest.mark.parametrize("method", EXACT)
def test_factor_graphs_against_brute_force(method):
    """Any non-negative factors: ln Z, distributions and the best assignment, where the weights sum to anything."""
    rng = np.random.default_rng(8)
    for _ in range(60):
        variables = [
            Variable(f"v{i}", range(int(rng.integers(1, 4)))) for i in range(int(rng.integers(1, 6)))
        ]
        factors = []
        for _ in range(int(rng.integers(1, 7))):
            chosen = [variables[int(i)] for i in rng.permutation(len(variables))[: int(rng.integers(1, 4))]]
            values = rng.random([v.card for v in chosen]) * 10.0 ** rng.integers(-3, 4)
            factors.append(Factor(chosen, np.where(rng.random(values.shape) < 0.15, 0.0, values)))
        model = FactorGraph(factors)
        axis = {name: i for i, name in enumerate(model.names)}
        evidence = {v.name: v.states[-1] for v in model.variables if rng.random() < 0.2}
        operands = [x for f in factors for x in (f.values, [axis[n] for n in f.names])]
        operands += [
            x for name in evidence for x in (np.eye(model.variable(name).card)[-1], [axis[name]])
        ]  # fmt: skip
        weights = np.einsum(*operands, list(range(len(axis))))
        engine = engine_class(method)(model)
        if weights.sum() == 0:
            assert engine.log_evidence(evidence) == -math.inf
            with pytest.raises(ImpossibleEvidenceError):
                engine.posteriors(evidence)
            continue
        assert engine.log_evidence(evidence) == pytest.approx(math.log(weights.sum()), abs=TOLERANCE)
        assert engine.mpe(evidence).log_probability == pytest.approx(math.log(weights.max()), abs=TOLERANCE)
        for name, posterior in engine.posteriors(evidence).items():
            exact = weights.sum(axis=tuple(i for i in range(weights.ndim) if i != axis[name])) / weights.sum()
            np.testing.assert_allclose(posterior.values, exact, rtol=0, atol=TOLERANCE)
            np.testing.assert_allclose(engine.query(name, evidence).values, exact, rtol=0, atol=TOLERANCE)
