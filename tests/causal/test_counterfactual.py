"""Counterfactuals against abduction by hand: every setting of the noise, weighed by the evidence, played again."""

from itertools import product

import numpy as np
import pytest

import bbn
from tests.support.causal_truth import random_network, surgery


def functional_network(rng):
    """Binary variables as random functions of causes and of a noise of their own; two noises are shared."""
    noise = {f"N{i}": bbn.Variable(f"N{i}", list(range(int(rng.integers(2, 5))))) for i in range(4)}
    cpts = [bbn.CPT(v, table=rng.dirichlet(np.ones(v.card))) for v in noise.values()]
    names = ["A", "B", "C", "D"]
    variables = {n: bbn.Variable(n, ["s0", "s1"]) for n in names}
    functions = {}
    for k, name in enumerate(names):
        causes = [c for c in names[:k] if rng.random() < 0.7]
        own = [f"N{k}", *([f"N{(k + 1) % 4}"] if rng.random() < 0.4 else [])]
        parents = [variables[c] for c in causes] + [noise[n] for n in own]
        table = {states: str(rng.choice(["s0", "s1"])) for states in product(*(p.states for p in parents))}
        functions[name] = ([p.name for p in parents], table)
        cpts.append(bbn.CPT.deterministic(variables[name], parents, lambda *s, table=table: table[s]))
    return bbn.BayesianNetwork(cpts), noise, functions


def played(functions, noise, do):
    world = dict(noise)
    for name, (parents, table) in functions.items():
        world[name] = do.get(name, table[tuple(world[p] for p in parents)])
    return world


def by_hand(net, noise, functions, target, evidence, do):
    """Abduction, action, prediction over every setting of the noise (Pearl 2009, section 7.1)."""
    total = dict.fromkeys(("s0", "s1"), 0.0)
    for states in product(*(v.states for v in noise.values())):
        setting = dict(zip(noise, states, strict=True))
        p = np.prod([net[n].table[v.code(setting[n])] for n, v in noise.items()])
        was = played(functions, setting, {})
        if all(was[name] == state for name, state in evidence.items()):
            total[played(functions, setting, do)[target]] += p
    whole = sum(total.values())
    return None if whole == 0 else {s: p / whole for s, p in total.items()}


def test_functions_against_every_setting_of_the_noise():
    checked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        net, noise, functions = functional_network(rng)
        x, y, e = (str(n) for n in rng.permutation(["A", "B", "C", "D"])[:3])
        evidence = {e: str(rng.choice(["s0", "s1"])), y: str(rng.choice(["s0", "s1"]))}
        do = {x: str(rng.choice(["s0", "s1"]))}
        truth = by_hand(net, noise, functions, y, evidence, do)
        if truth is None:
            with pytest.raises(bbn.ImpossibleEvidenceError):
                net.counterfactual(y, evidence, do)
            continue
        found = net.counterfactual(y, evidence, do)
        assert found.variables == (net.variable(y),)
        assert found.to_dict() == pytest.approx(truth, abs=1e-12)
        checked += 1
    assert checked > 30


def test_gaussians_keep_their_noise():
    rng = np.random.default_rng(0)
    d = bbn.Variable("D", ["a", "b"])
    z = bbn.Gaussian("Z", means=0.3, variances=2.0)
    x = bbn.Gaussian("X", [d, z.variable], means=[1.0, -1.0], variances=[1.0, 3.0], weights=[[0.5], [2.0]])
    m = bbn.Gaussian("M", [x.variable], means=1.0, variances=0.5, weights=[2.0])
    y = bbn.Gaussian(
        "Y", [m.variable, z.variable, d], means=[0.0, 4.0], variances=1.0, weights=[[1.0, -1.0], [3.0, 0.5]]
    )
    net = bbn.BayesianNetwork([bbn.CPT(d, table=[0.4, 0.6]), z, x, m, y])
    evidence = {"Y": 2.0, "X": 0.5}
    found = net.counterfactual("Y", evidence, {"X": 2.0})
    # in either state of D, M rises by 2 · 1.5 and Y by that times M's weight, whatever the noise is
    shares = net.query("D", evidence).values
    rises = np.array([2 * 1.5 * 1.0, 2 * 1.5 * 3.0])
    assert found.mean == pytest.approx(2.0 + shares @ rises, abs=1e-9)
    assert found.variance == pytest.approx(shares @ rises**2 - (shares @ rises) ** 2, abs=1e-9)
    # without evidence on it, Y is as uncertain as the other noises leave it: against samples of both worlds
    seen = {"Z": 1.0}
    n = 200_000
    code = rng.random(n) < 0.6
    xs = np.where(code, -1 + 2.0 * 1.0, 1 + 0.5 * 1.0) + rng.normal(size=n) * np.sqrt(
        np.where(code, 3.0, 1.0)
    )
    ms = 1 + 2 * np.where(True, 2.0, xs) + rng.normal(size=n) * np.sqrt(0.5)
    ys = np.where(code, 4 + 3 * ms + 0.5, ms - 1.0) + rng.normal(size=n)
    other = net.counterfactual("Y", seen, {"X": 2.0})
    assert other.mean == pytest.approx(ys.mean(), abs=4 * ys.std() / np.sqrt(n))
    assert other.variance == pytest.approx(ys.var(), rel=0.02)
    # a discrete act, with noise of the same width in both states
    change = net.counterfactual("Y", {"D": "a", "M": 1.0, "Z": 0.0, "Y": 1.5, "X": 1.0}, {"D": "b", "X": 1.0})
    assert change.mean == pytest.approx(1.5 + 4.0 + 2.0 * 1.0, abs=1e-9)
    with pytest.raises(bbn.NotIdentifiableError, match="variance of 'X' depends on 'D'"):
        net.counterfactual("Y", {"D": "a"}, {"D": "b"})


def test_what_the_act_does_not_reach_stays():
    net, _, _ = functional_network(np.random.default_rng(3))
    before = net.query("A", {"D": "s1"})
    assert net.counterfactual("A", {"D": "s1"}, {"C": "s0"}).values == pytest.approx(before.values)
    assert net.counterfactual("C", {"D": "s1"}, {"C": "s0"})["s0"] == 1.0
    joint = net.counterfactual(["D", "A"], {"D": "s1"}, {"C": "s0"})
    assert joint.names == ("D", "A")
    assert joint.marginal("A").values == pytest.approx(before.values)
    # had nothing been different, everything would have been as it was
    was = net.counterfactual("D", {"B": "s1", "C": "s0"}, {"B": "s1"})
    assert was.values == pytest.approx(net.query("D", {"B": "s1", "C": "s0"}).values)


def test_tables_alone_do_not_decide():
    with pytest.raises(bbn.NotIdentifiableError, match=r"'lung'.*not decided by its table.*causation_bounds"):
        bbn.example("asia").counterfactual("lung", {"lung": "yes"}, {"smoke": "no"})
    # but what does not depend on a table that the act reaches is decided
    assert bbn.example("asia").counterfactual("tub", {"xray": "yes"}, {"smoke": "no"})["yes"] > 0


def test_bad_questions():
    net = bbn.example("asia")
    with pytest.raises(bbn.EvidenceError, match="needs what is done"):
        net.counterfactual("lung", {}, {})
    with pytest.raises(bbn.EvidenceError, match="no variable"):
        net.counterfactual("lungs", {}, {"smoke": "no"})
    with pytest.raises(bbn.EvidenceError, match="no state"):
        net.counterfactual("lung", {}, {"smoke": "perhaps"})


def types_by_program(joint, treated, control):
    """Least and greatest PN, PS and PNS by a linear program over (z, x, y if x=0, y if x=1).

    The program is told P(z, x, y), and P(z, y_x) and P(z, y_x') of the two experiments.
    """
    from scipy.optimize import linprog

    cells = list(product(range(len(joint)), (0, 1), (0, 1), (0, 1)))
    rows, rhs = [], []
    for z, x, y in product(range(len(joint)), (0, 1), (0, 1)):
        rows.append([float(c[0] == z and c[1] == x and c[2 + x] == y) for c in cells])
        rhs.append(joint[z, x, y])
    for z, y in product(range(len(joint)), (0, 1)):
        rows.append([float(c[0] == z and c[3] == y) for c in cells])
        rhs.append(treated[z, y])
        rows.append([float(c[0] == z and c[2] == y) for c in cells])
        rhs.append(control[z, y])

    def ends(event, share):
        goal = np.array([float(event(*c[1:])) for c in cells])
        answers = [linprog(s * goal, A_eq=rows, b_eq=rhs, bounds=(0, 1)) for s in (1, -1)]
        return answers[0].fun / share, -answers[1].fun / share

    return (
        ends(lambda x, a, b: x == 1 and b == 1 and a == 0, joint[:, 1, 1].sum()),
        ends(lambda x, a, b: x == 0 and a == 0 and b == 1, joint[:, 0, 0].sum()),
        ends(lambda x, a, b: a == 0 and b == 1, 1.0),
    )


CAUSATION = {
    "cause alone": ([("X", "Y")], []),
    "confounder": ([("Z", "X"), ("Z", "Y"), ("X", "Y")], ["Z"]),
    "another cause": ([("W", "Y"), ("X", "Y")], ["W"]),
    "both": ([("Z", "X"), ("Z", "Y"), ("X", "Y"), ("W", "Y")], ["Z", "W"]),
    "on the way": ([("Z", "X"), ("Z", "M"), ("X", "M"), ("M", "Y"), ("Z", "Y")], ["Z"]),
    "far back": ([("Z", "V"), ("V", "X"), ("Z", "Y"), ("X", "Y"), ("Y", "S")], ["Z"]),
}


@pytest.mark.parametrize("design", CAUSATION)
def test_bounds_of_causation_are_those_of_the_program(design):
    arcs, others = CAUSATION[design]
    names = list(dict.fromkeys(name for arc in arcs for name in arc))
    for seed in range(85):
        rng = np.random.default_rng(seed)
        net = random_network(rng, arcs, names, {"Z": 3} if seed % 2 else {})
        found = bbn.causation_bounds(net, "X", "Y", cause_state="s1", effect_state="s1")
        size = int(np.prod([net.variable(name).card for name in others]))
        axes = [*others, "X", "Y"]
        joint = surgery(net, axes).reshape(size, 2, 2)
        acted = [surgery(net, axes, {"X": s}).sum(axis=-2).reshape(size, 2) for s in ("s1", "s0")]
        for ours, theirs in zip(found, types_by_program(joint, *acted), strict=True):
            assert ours == pytest.approx(theirs, abs=1e-9)


def test_the_lower_ends_are_the_truth_where_the_cause_never_prevents():
    told = 0
    for seed in range(60):
        net = random_network(np.random.default_rng(seed), *[CAUSATION["confounder"][0], ["Z", "X", "Y"]])
        options = {"cause_state": "s1", "effect_state": "s1"}
        table = net["Y"].table if net.parents("Y") == ("Z", "X") else net["Y"].table.transpose(1, 0, 2)
        if (table[:, 1, 1] >= table[:, 0, 1]).all():
            sure = bbn.causation_bounds(net, "X", "Y", monotonic=True, **options)
            loose = bbn.causation_bounds(net, "X", "Y", **options)
            assert sure.necessity == (loose.necessity[0],) * 2
            told += 1
        else:
            with pytest.raises(bbn.EvidenceError, match="monotonic=True says"):
                bbn.causation_bounds(net, "X", "Y", monotonic=True, **options)
    assert 5 < told < 55


def test_what_does_not_act_is_never_necessary():
    found = bbn.causation_bounds(bbn.example("asia"), "bronc", "smoke")
    assert found == ((0.0, 0.0),) * 3
    assert bbn.causation_bounds(bbn.example("asia"), "tub", "bronc") == ((0.0, 0.0),) * 3


def test_bounds_hold_the_exact_answer_of_a_functional_model():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        net, _, _ = functional_network(rng)
        found = bbn.causation_bounds(net, "A", "D", cause_state="s1", effect_state="s1")
        if net.probability({"A": "s1", "D": "s1"}) > 0:
            exact = net.counterfactual("D", {"A": "s1", "D": "s1"}, {"A": "s0"})["s0"]
            assert found.necessity[0] - 1e-9 <= exact <= found.necessity[1] + 1e-9
    with pytest.raises(bbn.EvidenceError, match="expected two"):
        bbn.causation_bounds(random_network(rng, [("X", "Y")], ["X", "Y"], {"X": 3}), "X", "Y")


@pytest.mark.parametrize("seed", range(20))
def test_bounds_of_causation_hold_whatever_lies_between(seed):
    """X → M → Y with functions drawn for M and Y: the truth by counting pairs of functions."""
    rng = np.random.default_rng(seed)
    functions = [(0, 0), (0, 1), (1, 0), (1, 1)]
    of_m, of_y, p_x = rng.dirichlet(np.full(4, 0.4)), rng.dirichlet(np.full(4, 0.4)), rng.uniform(0.1, 0.9)
    m, y = (
        [sum(p for p, f in zip(own, functions, strict=True) if f[k]) for k in (0, 1)] for own in (of_m, of_y)
    )
    names = [bbn.Variable(name, [False, True]) for name in "XMY"]
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(names[0], table=[1 - p_x, p_x]),
            bbn.CPT(names[1], [names[0]], [[1 - p, p] for p in m]),
            bbn.CPT(names[2], [names[1]], [[1 - p, p] for p in y]),
        ]
    )
    both = with_cause = without = 0.0
    for p, f in zip(of_m, functions, strict=True):
        for q, g in zip(of_y, functions, strict=True):
            y_x, y_o = g[f[1]], g[f[0]]
            both += p * q * y_x * (1 - y_o)
            with_cause += p * q * y_x
            without += p * q * (1 - y_o)
    truths = (both / with_cause, both / without, both)
    for truth, (low, high) in zip(truths, bbn.causation_bounds(net, "X", "Y"), strict=True):
        assert low - 1e-12 <= truth <= high + 1e-12
