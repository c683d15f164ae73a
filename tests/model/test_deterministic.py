"""Deterministic: rules of many parents, against their tables and plain Python."""

import copy
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.inference.search import explanations
from bbn.inference.search.noisy_max_search import NoisyBest

RULES = ["or", "and", "xor", "at-least", "max", "min", "sum"]


def truth(rule, numbers, at_least, most):
    """The rule in plain Python."""
    return {
        "or": lambda: int(any(numbers)),
        "and": lambda: int(all(numbers)),
        "xor": lambda: sum(numbers) % 2,
        "at-least": lambda: int(sum(numbers) >= (at_least or 0)),
        "max": lambda: max(numbers),
        "min": lambda: min(numbers),
        "sum": lambda: min(sum(numbers), most),
    }[rule]()


def conditional(rule, rng, n, name="Y", parents=None):
    logical = rule in RULES[:4]
    if parents is None:
        cards = [2] * n if logical else rng.integers(2, 4, n).tolist()
        words = [["no", "yes"], ["yes", "no"]]
        parents = [
            bbn.Variable(f"X{i}", words[int(rng.integers(2))] if c == 2 else list(range(c)))
            for i, c in enumerate(cards)
        ]
    top = {"max": max, "min": max, "sum": lambda c: int(rng.integers(1, sum(c) + 1))}
    child = ["no", "yes"] if logical else list(range(top[rule]([p.card for p in parents]) + (rule == "sum")))
    if rng.random() < 0.5 and not logical:
        child = [f"s{i}" for i in range(len(child))] if len(child) > 2 else child
    at_least = int(rng.integers(0, n + 2)) if rule == "at-least" else None
    if len(child) == 1:
        child = ["only"]
    return bbn.Deterministic(bbn.Variable(name, child), parents, rule, at_least=at_least)


@pytest.mark.parametrize("rule", RULES)
def test_rows_and_table_are_the_rule(rule):
    rng = np.random.default_rng(RULES.index(rule))
    for _ in range(20):
        own = conditional(rule, rng, int(rng.integers(1, 5)))
        table = own.to_cpt().table
        for codes in itertools.product(*(range(p.card) for p in own.parents)):
            numbers = [
                (1 if p.states[c] == "yes" else 0) if p.card == 2 else c
                for p, c in zip(own.parents, codes, strict=True)
            ]
            result = truth(rule, numbers, own.at_least, own.variable.card - 1)
            expected = np.zeros(own.variable.card)
            expected[result] = 1.0
            np.testing.assert_array_equal(table[codes], expected)
            np.testing.assert_array_equal(own.row_at(codes), expected)


def network(rng):
    """A random network of tables with zeros, noisy maxima and rules."""
    variables, parts = [], []
    for i in range(int(rng.integers(4, 10))):
        chosen = [variables[j] for j in sorted(rng.permutation(i)[: int(rng.integers(0, 5))].tolist())]
        kind = rng.integers(3) if chosen else 0
        name = f"V{i}"
        if kind == 2:
            binary = all(v.card == 2 for v in chosen)
            rule = RULES[int(rng.integers(7 if binary else 3)) + (0 if binary else 4)]
            own = conditional(rule, rng, len(chosen), name, chosen)
        elif kind == 1:
            v = bbn.Variable(name, ["no", "yes"] if rng.random() < 0.6 else ["a", "b", "c"])
            links = [sparse(rng, (p.card,), v.card) for p in chosen]
            own = bbn.NoisyMax(v, chosen, links, sparse(rng, (), v.card))
        else:
            v = bbn.Variable(name, ["no", "yes"] if rng.random() < 0.6 else ["a", "b", "c"])
            own = bbn.CPT(v, chosen, sparse(rng, tuple(p.card for p in chosen), v.card))
        variables.append(own.variable)
        parts.append(own)
    return bbn.BayesianNetwork(parts)


def sparse(rng, shape, card):
    rows = rng.dirichlet(np.ones(card), shape) * (rng.random((*shape, card)) < 0.7)
    rows[..., 0] += rows.sum(axis=-1) == 0
    return rows / rows.sum(axis=-1, keepdims=True)


def joint(net):
    """P of every assignment: an axis per variable, in the order of the names."""
    names = list(net.names)
    table = np.ones([net.variable(n).card for n in names])
    for own in net.conditionals:
        axes = [names.index(v.name) for v in (*own.parents, own.variable)]
        order = np.argsort(axes)
        shape = [1] * len(names)
        for i in axes:
            shape[i] = table.shape[i]
        table = table * own.table.transpose(order).reshape(shape)
    return table


def check(seed):
    """Every exact question against the joint."""
    rng = np.random.default_rng(seed)
    net = network(rng)
    names = list(net.names)
    whole = joint(net)
    possible = np.argwhere(whole > 0)
    row = possible[int(rng.integers(len(possible)))].tolist()
    seen = {n: net.variable(n).states[c] for n, c in zip(names, row, strict=True) if rng.random() < 0.3}
    where = tuple(c if n in seen else slice(None) for n, c in zip(names, row, strict=True))
    free = [n for n in names if n not in seen]
    rest = whole[where]  # an axis per free variable
    total = float(rest.sum())
    posteriors = net.posteriors(seen)
    assert posteriors.log_evidence == pytest.approx(math.log(total), abs=1e-10)
    for i, n in enumerate(free):
        expected = rest.sum(axis=tuple(j for j in range(len(free)) if j != i)) / total
        np.testing.assert_allclose(posteriors[n].values, expected, atol=1e-10)
        if i < 2:
            for method in ("junction-tree", "elimination"):
                np.testing.assert_allclose(net.query(n, seen, method=method).values, expected, atol=1e-10)
            if seen:
                answer = net.predict_proba(pd.DataFrame([seen]), n)
                np.testing.assert_allclose(answer.to_numpy()[0], expected, atol=1e-10)
    if free:
        ranked = np.sort(rest[rest > 0], axis=None)[::-1][:5]
        found = net.mpe(seen, k=5)
        assert len(found) == len(ranked)
        for own, p in zip(found, ranked.tolist(), strict=True):
            assert own.log_probability == pytest.approx(math.log(p), abs=1e-10)
            assert net.probability({**seen, **own.states}) == pytest.approx(p, rel=1e-9)
        assert len({tuple(own.states.items()) for own in found}) == len(found)
        assert net.mpe(seen).log_probability == pytest.approx(math.log(ranked[0]), abs=1e-10)
    if seen:
        logs = net.log_likelihood(pd.DataFrame([seen]))
        assert float(np.asarray(logs)[0]) == pytest.approx(math.log(total), abs=1e-10)


@pytest.mark.parametrize("part", range(6))
def test_every_exact_question_is_that_of_the_joint(part):
    for seed in range(40 * part, 40 * part + 40):
        check(seed)


@pytest.mark.parametrize("part", range(3))
def test_explanations_by_bounds_are_those_of_the_joint(part, monkeypatch):
    searched = []
    real = NoisyBest.best
    monkeypatch.setattr("bbn.model.expansion.TABLE_CELLS", 1)
    monkeypatch.setattr(explanations, "LIGHT", -1.0)
    monkeypatch.setattr(explanations, "PATIENCE", math.inf)
    monkeypatch.setattr(NoisyBest, "best", lambda self: searched.append(self.k) or real(self))
    for seed in range(10_000 + 40 * part, 10_040 + 40 * part):
        check(seed)
    assert len(searched) > 10  # many of these networks have such a conditional


def many(rule, n=100, at_least=None, p=0.02):
    parents = [bbn.Variable(f"X{i}", ["no", "yes"]) for i in range(n)]
    states = list(range(6)) if rule == "sum" else ["no", "yes"]
    own = bbn.Deterministic(bbn.Variable("Y", states), parents, rule, at_least=at_least)
    return bbn.BayesianNetwork([*(bbn.CPT(v, table=[1 - p, p]) for v in parents), own])


def test_a_hundred_parents():
    from scipy.stats import binom

    counts = binom.pmf(np.arange(101), 100, 0.02)
    assert many("or").query("Y")["yes"] == pytest.approx(1 - counts[0], rel=1e-12)
    assert many("and", p=0.9).query("Y")["yes"] == pytest.approx(0.9**100, rel=1e-12)
    assert many("xor").query("Y")["yes"] == pytest.approx(counts[1::2].sum(), rel=1e-10)
    assert many("at-least", at_least=4).query("Y")["yes"] == pytest.approx(counts[4:].sum(), rel=1e-10)
    np.testing.assert_allclose(many("sum").query("Y").values, [*counts[:5], counts[5:].sum()], rtol=1e-10)
    net = many("at-least", at_least=4)
    best = net.mpe({"Y": "yes"})
    assert best.log_probability == pytest.approx(4 * math.log(0.02) + 96 * math.log(0.98), rel=1e-12)
    assert set(best.states) == set(net.names) - {"Y"}
    draws = net.sample(2000, {"Y": "yes"}, seed=0)
    assert ((draws.drop(columns="Y") == "yes").sum(axis=1) >= 4).all()
    assert net["Y"].n_parameters == 0
    with pytest.raises(bbn.BudgetError, match="the full table of Deterministic 'Y'"):
        net["Y"].to_cpt()
    for method in ("likelihood-weighting", "rejection", "importance"):
        given = net.query("X3", {"Y": "no"}, method=method, seed=1, n_samples=50_000)["yes"]
        assert given == pytest.approx(net.query("X3", {"Y": "no"})["yes"], abs=0.005)


def test_it_is_not_learned():
    net = many("or", 40, p=0.05)
    data = net.sample(1000, seed=1)
    learned = bbn.fit(net, data)
    assert learned["Y"] == net["Y"]
    assert learned["X3"].table[1] == pytest.approx((data["X3"] == "yes").mean())
    holes = net.sample(500, seed=2, missing=0.3)
    result = bbn.fit_em(net, holes, max_iter=5)
    assert result.network["Y"] == net["Y"]
    assert np.diff(result.log_likelihoods).min() > -1e-7
    assert set(result.network.names) == set(net.names)


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_files_keep_it(tmp_path, suffix):
    parts = [bbn.Variable(f"Part{i}", ["works", "broken"]) for i in range(40)]
    machine = bbn.Deterministic(
        bbn.Variable("Machine", ["up", "down"]),
        parts,
        "at-least",
        at_least=30,
        holds={"Machine": "up", **{p.name: "works" for p in parts}},
    )
    levels = [bbn.Variable(f"Level{i}", [0, 1, 2]) for i in range(3)]
    total = bbn.Deterministic(bbn.Variable("Total", [0, 1, 2, 3, 4]), levels, "sum")
    net = bbn.BayesianNetwork(
        [
            *(bbn.CPT(p, table=[0.9, 0.1]) for p in parts),
            *(bbn.CPT(p, table=[0.5, 0.25, 0.25]) for p in levels),
            machine,
            total,
        ]
    )
    path = tmp_path / f"net.{suffix}"
    net.save(path)
    assert bbn.load(path) == net
    assert "deterministic" in path.read_text()
    small = net.subnetwork([*(p.name for p in levels), "Total"])
    small.save(tmp_path / "small.bif")
    np.testing.assert_array_equal(bbn.load(tmp_path / "small.bif")["Total"].table, total.table)
    with pytest.raises(bbn.BudgetError):
        net.save(tmp_path / "large.bif")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule: orr", "'rule' must be one of"),
        ("states: [yes, no]", "rule"),
        ("rule: at-least", "at_least"),
        ("rule: at-least\n    at_least: many", "whole number"),
        ("rule: or\n    holds: {C: maybe}", "no state"),
        ("rule: or\n    hold: x", "unknown key 'hold'"),
    ],
)
def test_bad_files_say_where(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    states = "" if text.startswith("states") else "states: [yes, no]\n    "
    path.write_text(
        "nodes:\n  C: {states: [yes, no], table: [0.5, 0.5]}\n  E:\n    type: deterministic\n"
        f"    parents: [C]\n    {states}{text}\n"
    )
    with pytest.raises(bbn.ParseError, match=message):
        bbn.load(path)


def test_it_is_a_value():
    own = conditional("sum", np.random.default_rng(0), 3)
    for other in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own)):
        assert other == own
        assert hash(other) == hash(own)
    with pytest.raises(AttributeError, match="frozen"):
        own.rule = "max"
    assert "sum of X0, X1, X2" in repr(own)
    assert "counts as" in str(own)
    net = many("xor", 40)
    renamed = net.rename({"Y": "odd", "X1": "first"})
    assert isinstance(renamed["odd"], bbn.Deterministic)
    np.testing.assert_allclose(renamed.query("odd").values, net.query("Y").values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "xorr"}, r"no rule 'xorr'; did you mean 'xor'\?$"),
        (
            {"rule": None},
            "no rule None; expected one of 'or', 'and', 'xor', 'at-least', 'max', 'min', 'sum'$",
        ),
        ({"rule": "or", "holds": {"C": "yes"}}, "holds= names 'C', neither it nor a parent"),
        ({"rule": "or", "at_least": 1}, "goes with the rule 'at-least'"),
        ({"rule": "at-least"}, "goes with the rule 'at-least'"),
        ({"rule": "at-least", "at_least": -1}, "whole number from 0 on"),
        ({"rule": "or", "holds": {"A": "perhaps"}}, "not a state"),
    ],
)
def test_what_is_refused(arguments, message):
    a = bbn.Variable("A", ["no", "yes"])
    with pytest.raises(bbn.ModelError, match=message):
        bbn.Deterministic(bbn.Variable("B", ["no", "yes"]), [a], **arguments)


def test_a_result_that_is_no_state_is_refused():
    three = bbn.Variable("A", [0, 1, 2])
    with pytest.raises(bbn.ModelError, match="the max of the parents may be 2, which is none of the states"):
        bbn.Deterministic(bbn.Variable("B", [0, 1]), [three], "max")
    with pytest.raises(bbn.ModelError, match="needs binary variables, 'A' has 3 states"):
        bbn.Deterministic(bbn.Variable("B", ["no", "yes"]), [three], "or")
    with pytest.raises(bbn.ModelError, match="must be a Variable"):
        bbn.Deterministic("B", [three], "or")


@pytest.mark.parametrize("n", [10**12, 10**30])
def test_large_numbers_take_no_room(n):
    parents = [bbn.Variable(f"X{i}", ["no", "yes"]) for i in range(3)]
    never = bbn.Deterministic(bbn.Variable("Y", ["no", "yes"]), parents, "at-least", at_least=n)
    assert never.table[..., 1].sum() == 0
    assert [table.size for table in never.steps()] == [4, 12, 12]
    own = bbn.Variable("Y", [0, 10**11, 2 * 10**11])
    values = [bbn.Variable(f"X{i}", [0, 10**11]) for i in range(2)]
    for rule, whole in (("max", 1), ("sum", 2)):
        assert bbn.Deterministic(own, values, rule).row(10**11, 10**11)[whole * 10**11] == 1.0
    with pytest.raises(
        bbn.ModelError, match="a state of 'X' is 10000000000000000; at most 1099511627776 counts"
    ):
        bbn.Deterministic(own, [bbn.Variable("X", [0, 10**16])], "sum")


def test_sums_of_many_values_are_refused_before_they_are_made():
    parents = [bbn.Variable(f"X{i}", [0, 2**i]) for i in range(40)]
    with pytest.raises(bbn.ModelError, match="the sum of the parents may be 1, which is none of the states"):
        bbn.Deterministic(bbn.Variable("Y", [0, 2**40]), parents, "sum")
    more = [bbn.Variable("X", [2**39, 2**39 + 1])]
    always = bbn.Deterministic(bbn.Variable("Y", [0, 2**39]), [*parents[:30], *more], "sum")
    assert always.chain_cells < 500
    np.testing.assert_array_equal(always.row_at([1] * 31), [0.0, 1.0])


@pytest.mark.parametrize("rule", ["max", "min"])
def test_nothing_has_no_largest(rule):
    with pytest.raises(bbn.ModelError, match=f"without parents there is no {rule}"):
        bbn.Deterministic(bbn.Variable("Y", [0, 1, 2]), [], rule)
