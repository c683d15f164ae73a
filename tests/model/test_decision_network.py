"""Decisions, utilities and networks of them: what they are made of, and what is refused by name."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import bbn

OIL = bbn.Variable("Oil", ["wet", "dry"])
SEISMIC = bbn.Variable("Seismic", ["open", "closed"])
DRILL = bbn.Decision("Drill", ["yes", "no"], observes=["Seismic"])
CHANCE = [bbn.CPT(OIL, table=[0.3, 0.7]), bbn.CPT(SEISMIC, [OIL], [[0.2, 0.8], [0.9, 0.1]])]
PROFIT = bbn.Utility("Profit", [OIL, DRILL], [[100, 0], [-60, 0]])


def network(*more: object, recall: str = "perfect") -> bbn.DecisionNetwork:
    return bbn.DecisionNetwork([*CHANCE, DRILL, PROFIT, *more], recall=recall)


def test_what_a_network_is_made_of():
    dn = network()
    assert [v.name for v in dn.variables] == ["Oil", "Seismic", "Drill"]
    assert dn.names == ("Oil", "Seismic", "Drill", "Profit")
    assert (dn.decisions, dn.utilities) == ((DRILL,), (PROFIT,))
    assert dn.parents("Drill") == ("Seismic",)
    assert dn.children("Oil") == ("Seismic", "Profit")
    assert [dn.kind(name) for name in dn.names] == ["chance", "chance", "decision", "utility"]
    assert dn.graph.nodes["Drill"]["kind"] == "decision"
    assert dn["Drill"] is DRILL
    assert "Profit" in dn
    assert len(dn) == 4
    assert dn == network()
    assert hash(dn) == hash(network())
    assert dn != network(recall="limited")
    assert pickle.loads(pickle.dumps(dn)) == dn
    with pytest.raises(AttributeError, match="frozen"):
        dn.name = "x"
    with pytest.raises(ValueError, match="read-only"):
        PROFIT.table[0, 0] = 3
    assert repr(dn) == "<DecisionNetwork: 2 chance nodes, 1 decision, 1 utility>"


def test_a_decision_stands_for_its_variable():
    by_decision = bbn.CPT(SEISMIC, [OIL, bbn.Decision("Test", ["yes", "no"])], np.full((2, 2, 2), 0.5))
    by_variable = bbn.CPT(SEISMIC, [OIL, bbn.Variable("Test", ["yes", "no"])], np.full((2, 2, 2), 0.5))
    assert by_decision == by_variable


def test_a_utility_from_an_array_a_mapping_or_a_number():
    rows = {("wet", "yes"): 100, ("wet", "no"): 0, ("dry", "yes"): -60, ("dry", "no"): 0}
    assert bbn.Utility("Profit", [OIL, DRILL], rows) == PROFIT
    assert bbn.Utility("Fee", [DRILL], {"yes": 1, "no": 2}).table.tolist() == [1.0, 2.0]
    assert bbn.Utility("Tax", [], -3).table == -3
    assert PROFIT.value("dry", "yes") == -60
    assert PROFIT.to_frame()["utility"].tolist() == [100, 0, -60, 0]
    assert network(bbn.Utility("Tax", [], -3)).solve().expected_utility == pytest.approx(16.8)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: bbn.Utility("U", [OIL], [1, math.nan]), "utility 'U': the table holds nan"),
        (lambda: bbn.Utility("U", [OIL], [1, math.inf]), "the table holds inf"),
        (lambda: bbn.Utility("U", [OIL], [1, 2, 3]), r"expected the table of shape \(2,\), found \(3,\)"),
        (lambda: bbn.Utility("U", [OIL], {"wet": 1}), "missing rows for Oil"),
        (lambda: bbn.Utility("U", [OIL], {"wet": 1, "dri": 2}), "did you mean 'dry'"),
        (lambda: bbn.Utility("U", [OIL], ["a", "b"]), "must be numbers"),
        (lambda: bbn.Utility("U", ["Oil"], [1, 2]), "must be a Variable, a Decision or a Utility"),
        (lambda: bbn.Utility("U", [OIL, OIL], [[1, 2], [3, 4]]), "has the parent 'Oil' twice"),
        (lambda: bbn.Utility("U", OIL, [1, 2]), "parents must be a list"),
        (lambda: bbn.Utility("U", [OIL]), "no table given"),
        (lambda: bbn.Utility("U", [OIL], [1, 2], combine="sum"), "combine= is for utilities of utilities"),
        (lambda: bbn.Utility("U", [PROFIT], combine="summ"), "did you mean 'sum'"),
        (lambda: bbn.Utility("U", [PROFIT], [1]), "it takes combine=, not a table"),
        (lambda: bbn.Utility("U", [PROFIT, OIL], combine="sum"), "mixes utilities and variables"),
        (lambda: bbn.Utility("U", [PROFIT], combine="sum", weights=[1, 2]), "expected 1 weights"),
        (lambda: bbn.Utility("U", [PROFIT], combine="product", weights=[1]), "has no weights"),
        (lambda: bbn.Decision("D", [], ["A"]), "has no states"),
        (lambda: bbn.Decision("D", ["a"], "A"), "observes must be a list"),
        (lambda: bbn.Decision("D", ["a"], ["A", "A"]), "observes 'A' twice"),
        (lambda: bbn.Decision("D", ["a"], ["D"]), "observes itself"),
        (lambda: bbn.Decision("D", ["a"], [3]), "must be a string"),
        (lambda: bbn.DecisionNetwork([*CHANCE, DRILL]), "at least one utility"),
        (lambda: bbn.DecisionNetwork([]), "at least one utility"),
        (lambda: bbn.DecisionNetwork([*CHANCE, PROFIT]), "'Profit' has the unknown parent 'Drill'"),
        (lambda: bbn.DecisionNetwork([CHANCE[0], DRILL, PROFIT]), "observes 'Seismic', which is not a node"),
        (lambda: network(DRILL), "two nodes 'Drill'"),
        (lambda: network(OIL), "found Variable"),
        (lambda: network(bbn.Decision("D", ["a"], ["Profit"])), "observes the utility 'Profit'"),
        (lambda: network(recall="none"), "recall is 'none'"),
        (lambda: bbn.BayesianNetwork([*CHANCE, DRILL]), "made of CPTs"),
    ],
)
def test_what_is_wrong_is_told_by_name(make, told):
    with pytest.raises(bbn.ModelError, match=told):
        make()


def test_a_decision_cannot_observe_what_depends_on_it():
    test = bbn.Decision("Test", ["yes", "no"], observes=["Result"])
    result = bbn.CPT(bbn.Variable("Result", ["a", "b"]), [test], [[0.5, 0.5], [0.1, 0.9]])
    worth = bbn.Utility("U", [test], [0, 1])
    with pytest.raises(bbn.ModelError, match="'Test' observes 'Result', which is known only after it"):
        bbn.DecisionNetwork([test, result, worth])
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1])
    around = [bbn.CPT(a, [b], np.full((2, 2), 0.5)), bbn.CPT(b, [a], np.full((2, 2), 0.5))]
    with pytest.raises(bbn.ModelError, match="cycle: "):
        bbn.DecisionNetwork([*around, worth, bbn.Decision("Test", ["yes", "no"])])


def test_two_decisions_that_wait_for_each_other_are_a_cycle_through_time():
    one, two = bbn.Decision("One", [0, 1], ["Two"]), bbn.Decision("Two", [0, 1], ["One"])
    with pytest.raises(bbn.ModelError, match="known only after it"):
        bbn.DecisionNetwork([one, two, bbn.Utility("U", [one, two], [[1, 2], [3, 4]])])


def test_a_forgotten_observation_is_an_error_that_names_it():
    late = bbn.Decision("Sell", ["yes", "no"], observes=["Drill"])
    sale = bbn.Utility("Sale", [OIL, late], [[10, 0], [5, 0]])
    with pytest.raises(bbn.ModelError, match="'Sell' comes after 'Drill', which observes 'Seismic'"):
        network(late, sale)
    implied = network(late, sale, recall="implied")
    assert implied["Sell"].observes == ("Seismic", "Drill")
    assert implied.recall == "perfect"
    limited = network(late, sale, recall="limited")
    assert limited["Sell"].observes == ("Drill",)
    assert limited.solve().expected_utility <= implied.solve().expected_utility + 1e-12


def test_own_choices_need_not_be_listed():
    """What was chosen follows from what was known: the same worth, and a rule over what is listed."""
    short = bbn.example("troubleshooting")
    second = bbn.Decision("Second", short["Second"].states, ["WorksAfterFirst"])
    less = short.with_nodes([second])
    assert less.solve().expected_utility == pytest.approx(short.solve().expected_utility, abs=1e-9)
    rule = less.solve().policy["Second"]
    assert [v.name for v in rule.observes] == ["WorksAfterFirst"]
    assert rule["no"] == short.solve().policy["Second"]["cable", "no"] == "toner"
    assert less.expected_utility(less.solve().policy) == pytest.approx(-60)


def test_utilities_of_utilities_add_with_weights_and_multiply():
    time = bbn.Utility("Time", [DRILL], [2.0, 1.0])
    cost = bbn.Utility("Cost", [OIL], [1.0, 3.0])
    chosen = {"Drill": "yes"}
    product = network(time, cost, bbn.Utility("Both", [time, cost], combine="product"))
    plain = network()
    base = plain.expected_utility(chosen)
    assert product.expected_utility(chosen) == pytest.approx(base + 2.0 * (0.3 * 1 + 0.7 * 3))
    weighed = network(time, cost, bbn.Utility("Both", [time, cost], combine="sum", weights=[0.5, -1]))
    assert weighed.expected_utility(chosen) == pytest.approx(base + 0.5 * 2.0 - (0.3 * 1 + 0.7 * 3))
    added = bbn.Utility("Added", [time, cost], combine="sum")
    factor = bbn.Utility("Factor", [DRILL], [3.0, 1.0])
    whole = bbn.Utility("Whole", [added, factor], combine="product")
    nested = network(time, cost, added, factor, whole)
    assert nested.expected_utility(chosen) == pytest.approx(base + 3.0 * (2.0 + 0.3 * 1 + 0.7 * 3))
    assert pickle.loads(pickle.dumps(nested)) == nested


def test_a_utility_that_is_linear_in_numbers():
    volume = bbn.Gaussian("Volume", parents=[OIL], means=[10.0, 1.0], variances=[4.0, 1.0])
    price = bbn.Gaussian(
        "Income",
        parents=[volume.variable, OIL],
        means=[1.0, 0.0],
        variances=[1.0, 1.0],
        weights=[[2.0], [3.0]],
    )
    profit = bbn.Utility("Income worth", [DRILL, price.variable], [-5.0, 0.0], weights=[[1.5], [0.0]])
    dn = bbn.DecisionNetwork([*CHANCE, DRILL, volume, price, profit])
    mean = 0.3 * (1 + 2 * 10) + 0.7 * 3 * 1
    assert dn.expected_utility({"Drill": "yes"}) == pytest.approx(1.5 * mean - 5)
    with pytest.raises(bbn.EvidenceError, match="a utility depends on a continuous variable"):
        dn.solve({"Volume": 3.0})
    with pytest.raises(bbn.ModelError, match="continuous"):
        dn.with_nodes([bbn.Decision("Drill", ["yes", "no"], ["Volume"])])
    heard = bbn.DecisionNetwork([*CHANCE, DRILL, volume, PROFIT])
    by_bayes = [0.3 * math.exp(-9 / 8) / 2, 0.7 * math.exp(-36 / 2)]
    wet = by_bayes[0] / sum(by_bayes)
    found = heard.solve({"Volume": 7.0, "Seismic": "closed"})
    posterior = 0.8 * wet / (0.8 * wet + 0.1 * (1 - wet))
    assert found.expected_utility == pytest.approx(100 * posterior - 60 * (1 - posterior))


def test_questions_that_cannot_be_asked():
    dn = network()
    with pytest.raises(bbn.EvidenceError, match="did you mean 'Seismic'"):
        dn.solve({"Seismik": "open"})
    with pytest.raises(bbn.EvidenceError, match="has no state 'opn'; did you mean 'open'"):
        dn.solve({"Seismic": "opn"})
    with pytest.raises(bbn.EvidenceError, match="is a utility"):
        dn.solve({"Profit": 3})
    with pytest.raises(bbn.EvidenceError, match="not Soft"):
        dn.solve({"Seismic": bbn.Soft({"open": 0.5, "closed": 0.5})})
    with pytest.raises(bbn.EvidenceError, match="is a decision"):
        dn.solve({"Drill": bbn.OneOf("yes")})
    with pytest.raises(bbn.EvidenceError, match="no decision 'Dril'; did you mean 'Drill'"):
        dn.expected_utility({"Dril": "yes"})
    with pytest.raises(bbn.EvidenceError, match="no state 'maybe'"):
        dn.expected_utility({"Drill": "maybe"})
    with pytest.raises(bbn.EvidenceError, match="in the choices and in the evidence"):
        dn.expected_utility({"Drill": "yes"}, {"Drill": "no"})
    with pytest.raises(bbn.EvidenceError, match="choices must be a mapping"):
        dn.expected_utility(["yes"])
    with pytest.raises(bbn.ModelError, match="no rule for 'Drill'"):
        dn.with_policy({})
    with pytest.raises(ValueError, match="method is 'best'"):
        dn.solve(method="best")
    known = bbn.DecisionNetwork([bbn.CPT(OIL, table=[1.0, 0.0]), CHANCE[1], DRILL, PROFIT])
    with pytest.raises(bbn.ImpossibleEvidenceError, match="Oil='dry'"):
        known.solve({"Oil": "dry"})
    oil = bbn.example("oil_wildcatter")
    with pytest.raises(bbn.EvidenceError, match="'Seismic' depends on the decision 'Test'"):
        oil.solve({"Seismic": "open"})
    assert oil.solve({"Seismic": "open", "Test": "yes"}).policy["Drill"].choice == "yes"


def test_rules_are_indexed_by_what_is_observed():
    rule = bbn.example("oil_wildcatter").solve().policy["Drill"]
    assert rule["yes", "none"] == "no"
    assert rule[{"Seismic": "closed", "Test": "yes"}] == "yes"
    with pytest.raises(bbn.EvidenceError, match="expected 2 states, found 1"):
        rule["yes"]
    with pytest.raises(bbn.EvidenceError, match="depends on 'Seismic'; it is not given"):
        rule[{"Test": "yes"}]
    with pytest.raises(bbn.EvidenceError, match="does not observe 'Oil'"):
        rule[{"Oil": "wet"}]
    with pytest.raises(bbn.EvidenceError, match="depends on Test, Seismic"):
        rule.choice  # noqa: B018
    assert rule.to_dict()["yes", "none"] == "no"
    assert rule.to_frame().columns.tolist() == ["Test", "Seismic", "Drill"]
    assert rule.to_cpt().row("yes", "none") == {"yes": 0.0, "no": 1.0}
    policy = {"Test": "yes", "Drill": {key: rule[key] for key in rule.to_dict()}}
    assert bbn.example("oil_wildcatter").expected_utility(policy) == pytest.approx(22.5)


def test_work_that_would_not_fit_is_refused_before_it_starts():
    variables = [bbn.Variable(f"X{i}", list(range(10))) for i in range(12)]
    hidden = bbn.Variable("H", list(range(10)))
    rng = np.random.default_rng(1)
    tables = [bbn.CPT(v, [hidden], rng.dirichlet(np.ones(10), 10)) for v in variables]
    nodes: list[object] = [bbn.CPT.uniform(hidden), *tables]
    decision = bbn.Decision("D", list(range(10)), [v.name for v in variables])
    nodes += [decision, bbn.Utility("U", [hidden, decision], np.eye(10))]
    dn = bbn.DecisionNetwork(nodes)
    with pytest.raises(bbn.BudgetError, match="would need"):
        dn.solve()
    with pytest.raises(bbn.BudgetError):
        dn.solve({v.name: 0 for v in variables[:7]}, memory_limit="100 kB")
    assert dn.solve({v.name: 0 for v in variables[:9]}).expected_utility > 0
