"""Identification: estimands against surgery on the full model, verdicts against the rank of the map to the data."""

import pickle

import numpy as np
import pytest

import bbn
from tests.support.causal_truth import random_hidden_causes, random_network, surgery

G = bbn.CausalGraph

BOW = G([("X", "Y")], confounded=[("X", "Y")])
FRONT_DOOR = G([("X", "M"), ("M", "Y")], confounded=[("X", "Y")])
NAPKIN = G([("W", "R"), ("R", "X"), ("X", "Y")], confounded=[("W", "X"), ("W", "Y")])
M_GRAPH = G([("X", "Y")], confounded=[("X", "M"), ("M", "Y")])
INSTRUMENT = G([("Z", "X"), ("X", "Y")], confounded=[("X", "Y")])


def one_case(seed):
    """A random network with hidden causes, a question about it, and the estimand or None."""
    rng = np.random.default_rng(seed)
    n, hidden = int(rng.integers(3, 7)), int(rng.integers(0, 5))
    names, latent, arcs = random_hidden_causes(rng, n, hidden, density=float(rng.uniform(0.3, 0.8)))
    picks = [str(name) for name in rng.permutation(names)]
    n_do, n_out = (2, 1) if n > 3 and rng.random() < 0.3 else (1, 1)
    if n > 4 and rng.random() < 0.3:
        n_out = 2
    n_given = int(rng.random() < 0.35 and n > n_do + n_out)
    do, out = picks[:n_do], picks[n_do : n_do + n_out]
    given = picks[n_do + n_out : n_do + n_out + n_given]
    cards = {name: 3 for name in names if rng.random() < 0.15}
    net = random_network(rng, arcs, names + latent, cards)
    try:
        estimand = bbn.identify(net, out, do, given, latent=latent)
    except bbn.NotIdentifiableError:
        estimand = None
    return rng, net, out, do, given, estimand


def check_against_surgery(seeds):
    identified = 0
    for seed in seeds:
        rng, net, out, do, given, estimand = one_case(seed)
        if estimand is None:
            continue
        identified += 1
        values = {name: str(rng.choice(net.states(name))) for name in do}
        seen = {name: str(rng.choice(net.states(name))) for name in given}
        found = estimand.evaluate(net, values, seen)
        assert found.names == tuple(out)
        truth = surgery(net, out, values, seen)
        np.testing.assert_allclose(
            found.values, truth, atol=1e-10, rtol=0, err_msg=f"seed {seed}: {estimand}"
        )
    return identified


def test_estimands_equal_surgery_on_a_thousand_graphs():
    assert check_against_surgery(range(1000)) > 500


def local_rank_verdict(rng, names, arcs, pairs, x, y, n_hidden=4):
    """Whether the effect is a function of the joint, to first order, at a random point of the model.

    Every two-headed arc is a hidden variable of several states. The joint P(v) and the effect P(y | do(x)) are
    polynomials of the tables; the effect follows from the joint only if its gradient is in the row space of the
    joint's Jacobian.
    """
    hidden = [f"H{i}" for i in range(len(pairs))]
    order = hidden + names
    cards = {**dict.fromkeys(hidden, n_hidden), **dict.fromkeys(names, 2)}
    parents = {name: [a for a, b in arcs if b == name] for name in names} | {h: [] for h in hidden}
    for h, pair in zip(hidden, pairs, strict=True):
        for end in pair:
            parents[end].append(h)
    tables = {}
    for name in order:
        shape = [cards[p] for p in parents[name]]
        tables[name] = rng.dirichlet(np.full(cards[name], 2.0), size=shape)
    letter = {name: i for i, name in enumerate(order)}

    def contract(over, out):
        operands = [np.ones(2), [letter[x]]]
        for name, table in over.items():
            scope = [letter[p] for p in parents[name]] + [letter[name]]
            operands += [table, scope]
        return np.einsum(*operands, [letter[n] for n in out], optimize=True).ravel()

    rows, effect_row = [], []
    for name in order:
        table = tables[name]
        for index in np.ndindex(*table.shape[:-1]):
            for k in range(table.shape[-1] - 1):  # moves along the simplex
                move = np.zeros_like(table)
                move[(*index, k)], move[(*index, table.shape[-1] - 1)] = 1.0, -1.0
                moved = {**tables, name: move}
                rows.append(contract(moved, names))
                cut = {n: t for n, t in moved.items() if n != x}
                effect_row.append(contract(cut, [x, y]) if name != x else np.zeros(4))
    jacobian, gradient = np.array(rows), np.array(effect_row)
    fit = np.linalg.lstsq(jacobian, gradient, rcond=1e-9)[0]
    return bool(np.abs(jacobian @ fit - gradient).max() < 1e-7)


def test_verdicts_equal_the_rank_of_the_map_from_model_to_data():
    yes = no = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 5))
        names = [f"V{i}" for i in range(n)]
        arcs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if rng.random() < 0.6]
        every = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        pairs = [pair for pair in every if rng.random() < 0.4][:3]
        x, y = (str(v) for v in rng.choice(names, 2, replace=False))
        try:
            bbn.identify(G(arcs, confounded=pairs, nodes=names), y, do=x)
            identified = True
        except bbn.NotIdentifiableError:
            identified = False
        assert identified == local_rank_verdict(rng, names, arcs, pairs, x, y), (arcs, pairs, x, y)
        yes, no = yes + identified, no + (not identified)
    assert yes >= 20
    assert no >= 5


@pytest.mark.parametrize(
    "graph", [BOW, INSTRUMENT, G([("X", "Z"), ("Z", "Y")], confounded=[("X", "Z"), ("X", "Y")])]
)
def test_not_identifiable_names_the_hedge(graph):
    with pytest.raises(bbn.NotIdentifiableError, match="hedge") as caught:
        bbn.identify(graph, "Y", do="X")
    outer, inner = caught.value.hedge
    assert inner < outer
    assert "X" in outer
    assert "X" not in inner
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.hedge == caught.value.hedge
    assert isinstance(caught.value, bbn.BBNError)


# y0's and causaleffect's published examples: figures 1 and 3 of Shpitser and Pearl (2008), Tikka and Karvanen (2017)
UNIDENTIFIED = {
    "1b": G([("X", "Z"), ("Z", "Y")], confounded=[("X", "Z")]),
    "1d": G([("X", "Y"), ("Z", "Y")], confounded=[("X", "Z"), ("Z", "Y"), ("X", "Y")]),
    "1h": G(
        [("Z", "X"), ("X", "W"), ("W", "Y"), ("Z", "Y")],
        confounded=[("X", "Z"), ("X", "Y"), ("Z", "W"), ("W", "Y")],
    ),
}
IDENTIFIED = {
    "2a": G([("X", "Y")]),
    "2b": G([("X", "Y"), ("X", "Z"), ("Z", "Y")], confounded=[("Z", "Y")]),
    "2c": G([("X", "Y"), ("Z", "X"), ("Z", "Y")], confounded=[("Z", "Y")]),
    "2d": G([("X", "Y"), ("Z", "X"), ("Z", "Y")], confounded=[("X", "Z")]),
    "2e": FRONT_DOOR,
    "napkin": NAPKIN,
    "M": M_GRAPH,
}


@pytest.mark.parametrize("name", UNIDENTIFIED)
def test_published_graphs_that_are_not_identified(name):
    with pytest.raises(bbn.NotIdentifiableError):
        bbn.identify(UNIDENTIFIED[name], "Y", do="X")


@pytest.mark.parametrize("name", IDENTIFIED)
def test_published_graphs_that_are_identified(name):
    asked, answer = bbn.identify(IDENTIFIED[name], "Y", do="X").formula.split(" = ", 1)
    assert asked == "P(Y | do(X))"
    assert "do(" not in answer


def test_formulas_of_the_famous_graphs():
    def formula(graph):
        return bbn.identify(graph, "Y", do="X").formula

    assert formula([("Z", "X"), ("Z", "Y"), ("X", "Y")]) == "P(Y | do(X)) = Σ_Z P(Y | X, Z) P(Z)"
    assert formula(FRONT_DOOR) == "P(Y | do(X)) = Σ_M P(M | X) Σ_X′ P(Y | M, X′) P(X′)"
    assert formula(M_GRAPH) == "P(Y | do(X)) = P(Y | X)"
    assert formula([("Y", "X")]) == "P(Y | do(X)) = P(Y)"
    napkin = bbn.identify(NAPKIN, "Y", do="X")
    assert napkin.any_value == ("R",)
    assert napkin.formula == "P(Y | do(X)) = [Σ_W P(X, Y | R, W) P(W)] / [Σ_W P(X | R, W) P(W)]"
    assert napkin.latex().count(r"\frac") == 1
    assert pickle.loads(pickle.dumps(napkin)) == napkin


def test_pyagrum_agrees_on_the_famous_graphs():
    gum = pytest.importorskip("pyagrum")
    rng = np.random.default_rng(3)
    for graph in (FRONT_DOOR, M_GRAPH, IDENTIFIED["2c"], IDENTIFIED["2d"]):
        names = list(graph.nodes)
        hidden = [f"U{i}" for i in range(len(graph.confounded))]
        arcs = list(graph.arcs)
        for h, pair in zip(hidden, graph.confounded, strict=True):
            arcs += [(h, end) for end in pair]
        net = random_network(rng, arcs, names + hidden)
        ours = bbn.identify(graph, "Y", do="X").evaluate(net, {"X": "s1"}).values
        observed = net.joint().sum_out(hidden)
        model = gum.BayesNet()
        for name in names:
            model.add(gum.LabelizedVariable(name, name, ["s0", "s1"]))
        for i, a in enumerate(names):  # any complete graph over what is measured holds its joint
            for b in names[i + 1 :]:
                model.addArc(a, b)
        for i, name in enumerate(names):
            before = names[:i]
            table = (
                observed.sum_out([n for n in names if n not in (*before, name)])
                .permute([*before, name])
                .values
            )
            table = table / table.sum(axis=-1, keepdims=True)
            for index in np.ndindex(*table.shape[:-1]):
                model.cpt(name)[{b: int(k) for b, k in zip(before, index, strict=True)}] = table[index]
        # arcs between the ends of a hidden cause are kept or dropped together
        kept = all(pair in graph.arcs for pair in graph.confounded)
        latent = [(f"L{i}", list(pair)) for i, pair in enumerate(graph.confounded)]
        causal = gum.CausalModel(model, latent, kept)
        _, potential, _ = gum.causalImpact(causal, on="Y", doing="X", values={"X": "s1"})
        assert potential is not None
        np.testing.assert_allclose(ours, potential.toarray(), atol=1e-6)


def test_evaluates_on_data_as_on_the_joint_that_the_data_have():
    rng = np.random.default_rng(0)
    net = random_network(rng, [*FRONT_DOOR.arcs, ("U", "X"), ("U", "Y")], ["X", "M", "Y", "U"])
    data = net.sample(3000, seed=1).drop(columns="U")
    estimand = bbn.identify(FRONT_DOOR, "Y", do="X")
    found = estimand.evaluate(data, do={"X": "s0"})
    # the front-door formula, counted by hand
    n = len(data)
    expected = np.zeros(2)
    for m in ("s0", "s1"):
        here = data[data["X"] == "s0"]
        p_m = (here["M"] == m).mean()
        for x in ("s0", "s1"):
            cell = data[(data["M"] == m) & (data["X"] == x)]
            share = np.array([(cell["Y"] == y).mean() for y in ("s0", "s1")])
            expected += p_m * share * (data["X"] == x).sum() / n
    np.testing.assert_allclose(found.values, expected, atol=1e-12)
    assert estimand.evaluate(data.to_dict("list"), do={"X": "s0"}) == found


def test_what_never_occurs_is_an_error_and_not_a_guess():
    data = {"Z": ["a", "a", "b", "b"], "X": ["lo", "hi", "lo", "lo"], "Y": ["n", "y", "n", "y"]}
    estimand = bbn.identify([("Z", "X"), ("Z", "Y"), ("X", "Y")], "Y", do="X")
    assert estimand.evaluate(data, do={"X": "lo"})["n"] == pytest.approx(0.5 * 1 + 0.5 * 0.5)
    with pytest.raises(bbn.ImpossibleEvidenceError, match="Z=b"):
        estimand.evaluate(data, do={"X": "hi"})
    # where the group itself never occurs, it does not matter
    states = {"Z": ["a", "b", "c"], "X": ["lo", "hi"], "Y": ["n", "y"]}
    assert estimand.evaluate(data, do={"X": "lo"}, states=states)["n"] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: bbn.identify(FRONT_DOOR, "Q", do="X"), "no variable 'Q'"),
        (lambda: bbn.identify(FRONT_DOOR, "Y", do="Y"), "two roles"),
        (lambda: bbn.identify(FRONT_DOOR, [], do="X"), "needs an outcome"),
        (lambda: bbn.identify([("U", "X"), ("U", "Y")], "Y", do="U", latent="U"), "hidden"),
        (
            lambda: bbn.identify(FRONT_DOOR, "Y", do="X").evaluate({"X": ["a"], "M": ["a"], "Y": ["a"]}),
            "needs a state",
        ),
        (
            lambda: bbn.identify(FRONT_DOOR, "Y", do="X").evaluate(
                {"X": ["a"], "M": ["a"], "Y": ["a"]}, {"X": "b"}
            ),
            "no state",
        ),
        (
            lambda: bbn.identify(FRONT_DOOR, "Y", do="X").evaluate(
                {"X": ["a"], "M": ["a"], "Y": ["a"]}, {"W": "b"}
            ),
            "does not",
        ),
        (lambda: bbn.identify(FRONT_DOOR, "Y", do="X").evaluate({"X": ["a"]}, {"X": "a"}), "no column"),
    ],
)
def test_bad_questions_say_what_is_wrong(call, match):
    with pytest.raises(bbn.BBNError, match=match):
        call()


def test_a_hundred_variables_are_quick_to_identify():
    rng = np.random.default_rng(5)
    names = [f"V{i:03d}" for i in range(100)]
    arcs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 : i + 6] if rng.random() < 0.5]
    pairs = [(names[i], names[i + 3]) for i in range(0, 90, 4)] + [("V007", "V008"), ("V007", "V009")]
    arcs += [("V007", "V008"), ("V008", "V009")]
    verdicts = set()
    for x in names[::7]:
        try:
            verdicts.add(bool(bbn.identify(G(arcs, confounded=pairs), "V099", do=x).formula))
        except bbn.NotIdentifiableError:
            verdicts.add(False)
    assert verdicts == {True, False}


def test_a_treatment_without_an_effect_need_not_be_measured():
    effect = bbn.identify([("A", "B"), ("C", "B")], "A", do="B")
    assert "B" not in effect.variables
    rows = {"A": [0, 1, 1, 1]}
    for data in (rows, {**rows, "B": [0, 0, 1, 1]}, {**rows, "B": [0.5, 1.5, 2.5, 3.5]}):
        assert effect.evaluate(data, do={"B": 1})[1] == 0.75
    numbers = {"A": [0.5, 1.5, 4.0]}
    assert effect.evaluate(numbers, do={"B": 7.0}).mean == pytest.approx(2.0)
    net = bbn.example("asia")
    effect = bbn.identify(net, "smoke", do="lung")
    assert effect.evaluate(net, do={"lung": "yes"})["yes"] == pytest.approx(0.5)
    with pytest.raises(bbn.EvidenceError, match="no state"):
        effect.evaluate(net, do={"lung": "perhaps"})
