"""Worked examples from books and lectures: model, question, answer, source; one row each.

Where the source prints a rounded number the row says to how many places; the answer must round to it, and must
agree with the plain-dict oracle to 1e-12. A new example is a new `Row`: `ask` may be any function of the model.
"""

# ruff: noqa: E501 (one example to a line reads best)
import math
from collections.abc import Callable
from fractions import Fraction as F
from functools import cache
from typing import Any, NamedTuple

import pytest

import bbn
from bbn import CPT, BayesianNetwork, HypothesisSpace, Variable
from tests.support import oracle

MITCHELL = "Mitchell, Machine Learning, 1997"
RUSSELL = "Russell and Norvig, Artificial Intelligence, A Modern Approach"
KOLLER = "Koller and Friedman, Probabilistic Graphical Models, 2009"
MURPHY = "Murphy, A brief introduction to graphical models and Bayesian networks, 1998"
LAURITZEN = "Lauritzen and Spiegelhalter, Local computations with probabilities, 1988"


class Row(NamedTuple):
    """One worked example."""

    model: str | Callable[[], Any]
    ask: Callable[[Any], Any]
    answer: Any
    source: str
    places: int | None = None
    """Decimal places the source prints; None where the answer is exact."""


def p(target: str, state: Any, **evidence: Any) -> Callable[[BayesianNetwork], float]:
    """P(target = state | evidence), checked against the oracle on the way."""

    def ask(net: BayesianNetwork) -> float:
        answer = net.query(target, evidence)[state]
        assert answer == pytest.approx(oracle.posterior(net, [target], evidence)[state,], abs=1e-12)
        return answer

    return ask


def probability(**assignment: Any) -> Callable[[BayesianNetwork], float]:
    """P(assignment), full or partial, checked against the oracle on the way."""

    def ask(net: BayesianNetwork) -> float:
        answer = net.probability(assignment)
        assert answer == pytest.approx(oracle.evidence_probability(net, assignment), rel=1e-12)
        return answer

    return ask


@cache
def play_tennis() -> BayesianNetwork:
    """Mitchell's 14 days as a naive Bayes network, each table the shares counted in the rows."""
    days = """sunny hot high weak No; sunny hot high strong No; overcast hot high weak Yes; rain mild high weak Yes;
    rain cool normal weak Yes; rain cool normal strong No; overcast cool normal strong Yes; sunny mild high weak No;
    sunny cool normal weak Yes; rain mild normal weak Yes; sunny mild normal strong Yes; overcast mild high strong Yes;
    overcast hot normal weak Yes; rain mild high strong No"""
    rows = [day.split() for day in days.split(";")]
    play = Variable("PlayTennis", ["Yes", "No"])
    played = [row[4] for row in rows]
    cpts = [CPT(play, table=[played.count(state) / 14 for state in play.states])]
    for column, name in enumerate(["Outlook", "Temperature", "Humidity", "Wind"]):
        values = Variable(name, sorted({row[column] for row in rows}))
        given = {s: [row[column] for row in rows if row[4] == s] for s in play.states}
        table = {s: [given[s].count(v) / len(given[s]) for v in values.states] for s in play.states}
        cpts.append(CPT(values, [play], table))
    return BayesianNetwork(cpts)


@cache
def hypotheses() -> BayesianNetwork:
    """Three hypotheses with P(h|D) = .4, .3, .3; the first says +, the others −."""
    h = Variable("Hypothesis", ["h1", "h2", "h3"])
    says = {"h1": "+", "h2": "-", "h3": "-"}
    label = CPT.deterministic(Variable("Label", ["+", "-"]), [h], says.__getitem__)
    return BayesianNetwork([CPT(h, table=[0.4, 0.3, 0.3]), label])


@cache
def version_space() -> BayesianNetwork:
    """The ten threshold concepts x ≥ t on 0..9 with a uniform prior, and the noise-free label of each x."""
    t = Variable("Threshold", range(10))
    labels = [
        CPT.deterministic(Variable(f"x{x}", [False, True]), [t], lambda t, x=x: x >= t) for x in range(10)
    ]
    return BayesianNetwork([CPT.uniform(t), *labels])


@cache
def cancer_space() -> HypothesisSpace:
    """Two hypotheses about a patient, told apart by a test."""
    positive = {"cancer": 0.98, "no cancer": 0.03}
    return HypothesisSpace(
        {"cancer": 0.008, "no cancer": 0.992}, lambda h, test: positive[h] if test == "+" else 1 - positive[h]
    )


@cache
def three_hypotheses() -> HypothesisSpace:
    """P(h|D) = .4, .3, .3; the first says +, the others −."""
    says = {"h1": "+", "h2": "-", "h3": "-"}
    return HypothesisSpace({"h1": 0.4, "h2": 0.3, "h3": 0.3}, lambda h, datum: 1.0, lambda h, x: says[h])


@cache
def prince_space() -> HypothesisSpace:
    """Where the prize is, told by the door that the king opens after the prince has picked A."""
    opens = {"A": {"B": 0.5, "C": 0.5}, "B": {"C": 1.0}, "C": {"B": 1.0}}
    return HypothesisSpace(dict.fromkeys("ABC", 1 / 3), lambda h, door: opens[h].get(door, 0.0))


@cache
def threshold_space() -> HypothesisSpace:
    """The ten threshold concepts x ≥ t on 0..9 with a uniform prior."""
    return HypothesisSpace.from_concepts({t: (lambda x, t=t: x >= t) for t in range(10)})


@cache
def tennis_classifier() -> Any:
    """NaiveBayes without smoothing, fitted to Mitchell's 14 days, and a day to classify."""
    days = bbn.datasets.play_tennis()
    model = bbn.NaiveBayes(m=0).fit(days.drop(columns="PlayTennis"), days["PlayTennis"])
    today = days.drop(columns="PlayTennis").iloc[:1].assign(**TENNIS_DAY)
    return model, today


TENNIS_DAY = {"Outlook": "sunny", "Temperature": "cool", "Humidity": "high", "Wind": "strong"}
SEEN = {"x2": False, "x6": True}

ROWS = {
    "cancer test": Row("cancer_test", p("Cancer", "yes", Test="positive"), F(784, 3760), MITCHELL + ", 6.2.1"),
    "cancer test, joint with cancer": Row(
        "cancer_test", probability(Cancer="yes", Test="positive"), F(784, 100_000), MITCHELL + ", 6.2.1"),
    "cancer test, joint without": Row(
        "cancer_test", probability(Cancer="no", Test="positive"), F(2976, 100_000), MITCHELL + ", 6.2.1"),
    "cancer test, MAP hypothesis": Row(
        "cancer_test", lambda net: net.mpe({"Test": "positive"}).states, {"Cancer": "no"}, MITCHELL + ", 6.2.1"),
    "campfire, storm and bus": Row("campfire", p("Campfire", "yes", Storm="yes", BusTourGroup="yes"), F(4, 10), MITCHELL + ", 6.11.1"),
    "campfire, storm": Row("campfire", p("Campfire", "yes", Storm="yes", BusTourGroup="no"), F(1, 10), MITCHELL + ", 6.11.1"),
    "campfire, bus": Row("campfire", p("Campfire", "yes", Storm="no", BusTourGroup="yes"), F(8, 10), MITCHELL + ", 6.11.1"),
    "campfire, neither": Row("campfire", p("Campfire", "yes", Storm="no", BusTourGroup="no"), F(2, 10), MITCHELL + ", 6.11.1"),
    "campfire, arcs": Row("campfire", lambda net: sorted(net.arcs), [
        ("BusTourGroup", "Campfire"), ("Campfire", "ForestFire"), ("Lightning", "ForestFire"),
        ("Lightning", "Thunder"), ("Storm", "Campfire"), ("Storm", "ForestFire"), ("Storm", "Lightning"),
    ], MITCHELL + ", figure 6.3"),
    "bayes optimal label": Row(hypotheses, p("Label", "-"), F(6, 10), MITCHELL + ", 6.7"),
    "bayes optimal, MAP hypothesis": Row(hypotheses, lambda net: net.map("Hypothesis").states, {"Hypothesis": "h1"}, MITCHELL + ", 6.7"),
    "version space, consistent": Row(version_space, p("Threshold", 4, **SEEN), F(1, 4), MITCHELL + ", 6.3.1"),
    "version space, inconsistent": Row(version_space, p("Threshold", 7, **SEEN), 0, MITCHELL + ", 6.3.1"),
    "play tennis, yes": Row(play_tennis, probability(PlayTennis="Yes", **TENNIS_DAY), F(9, 14) * F(2 * 3 * 3 * 3, 9**4), MITCHELL + ", 6.9.1"),
    "play tennis, no": Row(play_tennis, probability(PlayTennis="No", **TENNIS_DAY), F(5, 14) * F(3 * 1 * 4 * 3, 5**4), MITCHELL + ", 6.9.1"),
    "play tennis": Row(play_tennis, p("PlayTennis", "No", **TENNIS_DAY), 0.795, MITCHELL + ", 6.9.1", 3),
    "prince and king, stay": Row("prince_and_king", p("Prize", "A", Prince="A", King="B"), F(1, 3), "Selvin 1975"),
    "prince and king, switch": Row("prince_and_king", p("Prize", "C", Prince="A", King="B"), F(2, 3), "Selvin 1975"),
    "prince and king, opened": Row("prince_and_king", p("Prize", "B", Prince="A", King="B"), 0, "Selvin 1975"),
    "flu, factorisation": Row(
        "flu", probability(Flu="yes", Allergy="no", Sinus="yes", Headache="yes", Nose="no"),
        F(1, 10) * F(8, 10) * F(6, 10) * F(7, 10) * F(2, 10), "Mitchell, lectures on graphical models"),
    "burglary": Row("burglary", p("Burglary", "yes", JohnCalls="yes", MaryCalls="yes"), 0.284, RUSSELL + ", 14.4", 3),
    "burglary, exactly": Row(
        "burglary", p("Burglary", "yes", JohnCalls="yes", MaryCalls="yes"), 0.2841718353643929, RUSSELL + ", 14.4"),
    "burglary, one event": Row(
        "burglary", probability(JohnCalls="yes", MaryCalls="yes", Alarm="yes", Burglary="no", Earthquake="no"),
        F(9, 10) * F(7, 10) * F(1, 1000) * F(999, 1000) * F(998, 1000), RUSSELL + ", 14.2.1"),
    "cancer test by Bayes' rule": Row(
        cancer_space, lambda space: space.update(["+"]).probabilities["cancer"], F(784, 3760), MITCHELL + ", 6.2.1"),
    "cancer test, MAP of two": Row(cancer_space, lambda space: space.update(["+"]).map(), "no cancer", MITCHELL + ", 6.2.1"),
    "cancer test, ML of two": Row(cancer_space, lambda space: space.ml(["+"]), "cancer", MITCHELL + ", 6.2"),
    "cancer test, shortest description": Row(cancer_space, lambda space: space.mdl(["+"]).best, "no cancer", MITCHELL + ", 6.6"),
    "bayes optimal vote": Row(three_hypotheses, lambda space: space.bayes_optimal(None)["-"], F(6, 10), MITCHELL + ", 6.7"),
    "bayes optimal against MAP": Row(
        three_hypotheses, lambda space: (space.bayes_optimal(None).mode(), space.map()), ("-", "h1"), MITCHELL + ", 6.7"),
    "prince and king by Bayes' rule": Row(
        prince_space, lambda space: space.update(["B"]).probabilities["C"], F(2, 3), "Selvin 1975"),
    "version space, one over its size": Row(
        threshold_space, lambda space: space.update([(2, False), (6, True)]).probabilities[4], F(1, 4), MITCHELL + ", 6.3.1"),
    "version space, its members": Row(
        threshold_space, lambda space: space.update([(2, False), (6, True)]).version_space(), (3, 4, 5, 6), MITCHELL + ", 6.3.1"),
    "play tennis, classifier, no": Row(
        tennis_classifier, lambda pair: math.exp(pair[0].predict_joint_log_proba(pair[1])[0, 0]), 0.0206, MITCHELL + ", 6.9.1", 4),
    "play tennis, classifier, yes": Row(
        tennis_classifier, lambda pair: math.exp(pair[0].predict_joint_log_proba(pair[1])[0, 1]), 0.0053, MITCHELL + ", 6.9.1", 4),
    "play tennis, classifier": Row(
        tennis_classifier, lambda pair: pair[0].predict_proba(pair[1])[0, 0], F(3 * 4 * 3 * 5, 14 * 5**4) / (F(3 * 4 * 3 * 5, 14 * 5**4) + F(9 * 2 * 27, 14 * 9**4)), MITCHELL + ", 6.9.1"),
    "sprinkler, rain": Row("sprinkler", p("Rain", "yes", WetGrass="yes"), 0.708, MURPHY, 3),
    "sprinkler, sprinkler": Row("sprinkler", p("Sprinkler", "yes", WetGrass="yes"), 0.430, MURPHY, 3),
    "sprinkler, wet grass": Row("sprinkler", probability(WetGrass="yes"), F(6471, 10_000), MURPHY),
    "sprinkler, explaining away": Row("sprinkler", p("Sprinkler", "yes", WetGrass="yes", Rain="yes"), 0.1945, MURPHY, 4),
    "student, letter": Row("student", p("Letter", "strong"), 0.502, KOLLER + ", 3.2.1.2", 3),
    "student, letter if not bright": Row("student", p("Letter", "strong", Intelligence="low"), 0.389, KOLLER + ", 3.2.1.2", 3),
    "student, letter if not bright and easy": Row(
        "student", p("Letter", "strong", Intelligence="low", Difficulty="easy"), 0.513, KOLLER + ", 3.2.1.2", 3),
    "student, intelligence after a C": Row("student", p("Intelligence", "high", Grade="C"), 0.079, KOLLER + ", 3.2.1.2", 3),
    "student, difficulty after a C": Row("student", p("Difficulty", "hard", Grade="C"), 0.629, KOLLER + ", 3.2.1.2", 3),
    "student, intelligence after a weak letter": Row("student", p("Intelligence", "high", Letter="weak"), 0.14, KOLLER + ", 3.2.1.2", 2),
    "student, a high SAT": Row("student", p("Intelligence", "high", Grade="C", SAT="high"), 0.578, KOLLER + ", 3.2.1.2", 3),
    "student, hard after a high SAT": Row("student", p("Difficulty", "hard", Grade="C", SAT="high"), 0.76, KOLLER + ", 3.2.1.2", 2),
    "student, explaining away": Row("student", p("Intelligence", "high", Grade="B", Difficulty="hard"), 0.34, KOLLER + ", 3.2.1.2", 2),
    "asia, tuberculosis": Row("asia", p("tub", "yes"), F(104, 10_000), LAURITZEN),
    "asia, lung cancer": Row("asia", p("lung", "yes"), F(55, 1000), LAURITZEN),
    "asia, either": Row("asia", p("either", "yes"), F(104, 10_000) + F(55, 1000) * (1 - F(104, 10_000)), LAURITZEN),
    "asia, bronchitis": Row("asia", p("bronc", "yes"), F(45, 100), LAURITZEN),
    "asia, x-ray": Row("asia", p("xray", "yes"), 0.1103, LAURITZEN, 4),
    "asia, dyspnoea": Row("asia", p("dysp", "yes"), 0.4360, LAURITZEN, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_worked_example(name):
    row = ROWS[name]
    net = bbn.example(row.model) if isinstance(row.model, str) else row.model()
    found = row.ask(net)
    if not isinstance(row.answer, F | int | float):
        assert found == row.answer
    elif row.places is None:
        assert found == pytest.approx(float(row.answer), rel=1e-12, abs=1e-15)
    else:
        assert round(found, row.places) == row.answer
