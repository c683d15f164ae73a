"""Hypothesis spaces: the textbook's numbers, the laws of Bayes' rule, and theorems checked by enumeration."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import bbn
from bbn.core.errors import DataError, ImpossibleEvidenceError, ModelError
from bbn.datasets import enjoy_sport
from bbn.hypotheses import Conjunction, conjunctions, find_s
from bbn.hypotheses.space import HypothesisSpace

CANCER = {"cancer": {"+": 0.98, "-": 0.02}, "no cancer": {"+": 0.03, "-": 0.97}}


def test_likelihood(h, datum):
    return CANCER[h][datum]


test_likelihood.__test__ = False


def cancer_space():
    return HypothesisSpace({"cancer": 0.008, "no cancer": 0.992}, test_likelihood)


def random_space(rng, n_hypotheses=6, n_symbols=4, n_labels=3):
    """A space with random priors, likelihoods over symbols, and predictions; and its tables."""
    priors = rng.dirichlet(np.ones(n_hypotheses))
    likelihood = rng.dirichlet(np.ones(n_symbols), size=n_hypotheses)
    predict = rng.dirichlet(np.ones(n_labels), size=n_hypotheses)
    space = HypothesisSpace(
        dict(enumerate(priors.tolist())),
        lambda h, d: likelihood[h, d],
        lambda h, x: dict(enumerate(np.roll(predict[h], x).tolist())),
    )
    return space, priors, likelihood, predict


# The textbook's numbers


def test_cancer_test_exactly():
    after = cancer_space().update(["+"])
    right = Fraction(784, 100000) / (Fraction(784, 100000) + Fraction(2976, 100000))
    assert after.probabilities["cancer"] == pytest.approx(float(right), rel=1e-14)
    assert after.map() == "no cancer"
    assert after.log_evidence == pytest.approx(math.log(0.0376), rel=1e-13)


def test_two_positive_tests_turn_the_verdict():
    after = cancer_space().update(["+", "+"])
    a, b = 0.008 * 0.98**2, 0.992 * 0.03**2
    assert after.probabilities["cancer"] == pytest.approx(a / (a + b), rel=1e-14)
    assert after.map() == "cancer"


def test_three_hypotheses():
    says = {"h1": "+", "h2": "-", "h3": "-"}
    space = HypothesisSpace(
        {"h1": 0.4, "h2": 0.3, "h3": 0.3},
        lambda h, d: 1.0,
        lambda h, x: {"+": float(says[h] == "+"), "-": float(says[h] == "-")},
    )
    posterior = space.bayes_optimal("x")
    assert posterior["-"] == pytest.approx(0.6, abs=1e-15)
    assert posterior["+"] == pytest.approx(0.4, abs=1e-15)
    assert posterior.mode() == "-"
    assert says[space.map()] == "+"


def test_prince_and_king():
    """The prince picks A; the king, who knows, opens an empty B: 1/2 if the princess is at A, 1 if at C."""
    opens = {"A": {"B": 0.5, "C": 0.5}, "B": {"C": 1.0}, "C": {"B": 1.0}}
    space = HypothesisSpace(dict.fromkeys("ABC", 1 / 3), lambda h, opened: opens[h].get(opened, 0.0))
    after = space.update(["B"]).probabilities
    assert after == pytest.approx({"A": 1 / 3, "B": 0.0, "C": 2 / 3}, abs=1e-15)


def test_map_and_ml_differ_as_the_prior_says():
    space = cancer_space()
    assert space.ml(["+"]) == "cancer"
    assert space.update(["+"]).map() == "no cancer"
    assert space.update(["+"]).ml() == "cancer"


def test_mdl_gives_both_parts_in_bits_and_its_best_is_the_map():
    rng = np.random.default_rng(5)
    for _ in range(50):
        space, priors, likelihood, _ = random_space(rng)
        data = rng.integers(0, 4, size=7).tolist()
        lengths = space.mdl(data)
        for h, bits in lengths.items():
            assert bits.hypothesis == pytest.approx(-math.log2(priors[h]), rel=1e-12)
            assert bits.data == pytest.approx(-sum(math.log2(likelihood[h, d]) for d in data), rel=1e-12)
        assert lengths.best == min(lengths, key=lambda h: lengths[h].total) == space.update(data).map()
        assert list(lengths) == sorted(lengths, key=lambda h: lengths[h].total)


# Bayes' rule


def test_update_is_bayes_rule():
    rng = np.random.default_rng(0)
    for _ in range(50):
        space, priors, likelihood, predict = random_space(rng)
        data = rng.integers(0, 4, size=5).tolist()
        weights = priors.copy()
        for d in data:
            weights *= likelihood[:, d]
        after = space.update(data)
        np.testing.assert_allclose(list(after.probabilities.values()), weights / weights.sum(), rtol=1e-12)
        assert after.log_evidence == pytest.approx(math.log(weights.sum()), rel=1e-12)
        vote = weights / weights.sum() @ np.roll(predict, 1, axis=1)
        np.testing.assert_allclose(after.bayes_optimal(1).values, vote, rtol=1e-12)


def test_updating_one_by_one_gives_the_same_to_the_last_bit():
    rng = np.random.default_rng(1)
    space, *_ = random_space(rng)
    data = rng.integers(0, 4, size=200).tolist()
    step = space
    for d in data:
        step = step.update([d])
    batch = space.update(data)
    assert step == batch
    assert hash(step) == hash(batch)
    assert step.probabilities == batch.probabilities
    halves = space.update(data[:77]).update(data[77:])
    assert halves == batch


def test_ten_thousand_data_do_not_underflow():
    space = HypothesisSpace({"fair": 0.5, "bent": 0.5}, lambda h, d: 0.5 if h == "fair" else (0.4, 0.6)[d])
    data = [0, 1] * 5000 + [1] * 10
    after = space.update(data)
    log_odds = 5010 * math.log(0.6 / 0.5) + 5000 * math.log(0.4 / 0.5)
    assert after.probabilities["bent"] == pytest.approx(math.exp(log_odds), rel=1e-6)
    assert after.log_evidence < -6900


def test_log_likelihoods():
    plain = HypothesisSpace({"a": 0.5, "b": 0.5}, lambda h, d: {"a": 0.2, "b": 0.7}[h])
    logs = HypothesisSpace({"a": 0.5, "b": 0.5}, lambda h, d: math.log({"a": 0.2, "b": 0.7}[h]), log=True)
    assert logs.update([0, 0]).probabilities == pytest.approx(plain.update([0, 0]).probabilities, rel=1e-14)
    tiny = HypothesisSpace({"a": 0.5, "b": 0.5}, lambda h, d: {"a": -5000.0, "b": -5001.0}[h], log=True)
    assert tiny.update([0]).probabilities["a"] == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-12)


def test_no_data_change_nothing():
    space = cancer_space()
    assert space.update([]).probabilities == {"cancer": 0.008, "no cancer": 0.992}
    assert space.log_evidence == 0.0


def test_a_prior_of_zero_stays_zero_but_may_be_most_likely():
    space = HypothesisSpace({"a": 1.0, "b": 0.0}, lambda h, d: {"a": 0.1, "b": 0.9}[h])
    assert space.update([0]).probabilities == {"a": 1.0, "b": 0.0}
    assert space.ml([0]) == "b"
    assert space.mdl([0])["b"].hypothesis == math.inf


def test_updates_leave_the_old_space_alone():
    space = cancer_space()
    space.update(["+"])
    assert space.probabilities == {"cancer": 0.008, "no cancer": 0.992}
    with pytest.raises(AttributeError, match="frozen"):
        space.hypotheses = ()


def test_a_space_pickles():
    after = cancer_space().update(["+", "-"])
    assert pickle.loads(pickle.dumps(after)) == after


# Version spaces


def examples(frame, target):
    attributes = frame.drop(columns=target)
    return [
        (tuple(row), label == "Yes") for row, label in zip(attributes.to_numpy(), frame[target], strict=True)
    ]


def sport_attributes():
    skies = [["sunny", "cloudy", "rainy"]]
    rest = [["warm", "cold"], ["normal", "high"], ["strong", "weak"], ["warm", "cool"], ["same", "change"]]
    return [bbn.Variable(f"a{i}", states) for i, states in enumerate(skies + rest)]


def test_enjoy_sport_has_973_concepts_and_a_version_space_of_six():
    concepts = list(conjunctions(sport_attributes()))
    assert len(concepts) == len(set(concepts)) == 973
    data = examples(enjoy_sport(), "EnjoySport")
    after = HypothesisSpace.from_concepts(concepts).update(data)
    expected = {  # Mitchell 1997, figure 2.3
        "<sunny, warm, ?, strong, ?, ?>",
        "<sunny, ?, ?, strong, ?, ?>",
        "<sunny, warm, ?, ?, ?, ?>",
        "<?, warm, ?, strong, ?, ?>",
        "<sunny, ?, ?, ?, ?, ?>",
        "<?, warm, ?, ?, ?, ?>",
    }
    assert {str(h) for h in after.version_space()} == expected
    for h, p in after.probabilities.items():
        consistent = all(h(x) == y for x, y in data)
        assert p == (1 / 6 if consistent else 0.0)


def test_every_consistent_learner_is_a_map_learner():
    concepts = list(conjunctions(sport_attributes()))
    data = examples(enjoy_sport(), "EnjoySport")
    after = HypothesisSpace.from_concepts(concepts).update(data)
    best = max(after.probabilities.values())
    learned = find_s(data)
    assert all(learned(x) == y for x, y in data)
    assert after.probabilities[learned] == best


def test_find_s_is_map_under_a_prior_that_favours_the_specific():
    concepts = list(conjunctions(sport_attributes()))
    weights = [2.0**-h.generality for h in concepts]
    priors = {h: w / sum(weights) for h, w in zip(concepts, weights, strict=True)}
    rng = np.random.default_rng(3)
    instances = list(product(*(v.states for v in sport_attributes())))
    for _ in range(20):
        target = concepts[int(rng.integers(1, len(concepts)))]
        drawn = [instances[i] for i in rng.integers(0, len(instances), size=8)]
        data = [(x, target(x)) for x in drawn]
        space = HypothesisSpace.from_concepts(concepts, priors)
        assert space.update(data).map() == find_s(data)


def test_find_s_without_a_positive_example_holds_of_nothing():
    nothing = find_s([(("a", "b"), False)])
    assert nothing == Conjunction(None)
    assert not nothing(("a", "b"))


def test_concepts_with_noise():
    space = HypothesisSpace.from_concepts({"yes": lambda x: True, "no": lambda x: False}, noise=0.1)
    after = space.update([(0, True), (0, True), (0, False)])
    assert after.probabilities["yes"] == pytest.approx(0.9, rel=1e-12)


# Networks and classifiers as hypotheses


def test_networks_as_hypotheses_average_their_predictions():
    rng = np.random.default_rng(7)
    a, b = bbn.Variable("A", ["x", "y"]), bbn.Variable("B", ["x", "y"])
    tables = [(rng.dirichlet([1, 1]), rng.dirichlet([1, 1], size=2)) for _ in range(3)]
    nets = {
        i: bbn.BayesianNetwork([bbn.CPT(a, table=t), bbn.CPT(b, [a], s)]) for i, (t, s) in enumerate(tables)
    }
    space = HypothesisSpace.from_networks(nets, target="B")
    rows = [{"A": "x", "B": "y"}, {"A": None, "B": "x"}, {"A": "y", "B": None}]
    likelihood = [t[0] * s[0, 1] * (t @ s)[0] * t[1] for t, s in tables]
    weights = np.array(likelihood) / sum(likelihood)
    after = space.update(rows)
    np.testing.assert_allclose(list(after.probabilities.values()), weights, rtol=1e-12)
    vote = sum(w * s[0] for w, (_, s) in zip(weights, tables, strict=True))
    np.testing.assert_allclose(after.bayes_optimal({"A": "x"}).values, vote, rtol=1e-12)
    assert after.ml() == after.ml([]) == int(np.argmax(likelihood))
    assert space.update(row for row in rows) == after
    assert space.update({"A": ["x", None, "y"], "B": ["y", "x", None]}) == after
    with pytest.raises(ModelError, match="same variables"):
        HypothesisSpace.from_networks([nets[0], nets[0].rename({"A": "C"})])


def test_classifiers_as_hypotheses():
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, "pos", "neg")
    models = {
        "logistic": LogisticRegression().fit(X, y),
        "stump": DecisionTreeClassifier(max_depth=1).fit(X, y),
        "ridge": RidgeClassifier().fit(X, y),
    }
    rows, labels = X[:5], models["ridge"].predict(X[:5])
    after = HypothesisSpace.from_classifiers(models).update(list(zip(rows, labels, strict=True)))
    expected = []
    for name, model in models.items():
        if name == "ridge":
            expected.append(1.0)
        else:
            p = model.predict_proba(rows)
            expected.append(
                np.prod([p[i, list(model.classes_).index(label)] for i, label in enumerate(labels)])
            )
    expected = np.array(expected) / sum(expected)
    np.testing.assert_allclose(list(after.probabilities.values()), expected, rtol=1e-12)
    x = X[30]
    votes = [
        m.predict_proba([x])[0] if n != "ridge" else (m.classes_ == m.predict([x])[0])
        for n, m in models.items()
    ]
    np.testing.assert_allclose(after.bayes_optimal(x).values, expected @ np.array(votes), rtol=1e-12)


# Gibbs


def test_gibbs_draws_hypotheses_from_the_posterior():
    rng = np.random.default_rng(11)
    space, *_ = random_space(rng)
    after = space.update([0, 1, 2])
    p = after.bayes_optimal(0)
    n = 20_000
    draws = [after.gibbs(0, rng) for _ in range(n)]
    for label, share in p.to_dict().items():
        assert abs(draws.count(label) / n - share) < 5 * math.sqrt(share * (1 - share) / n)


def test_gibbs_is_reproducible_from_its_seed():
    space, *_ = random_space(np.random.default_rng(2))
    assert [space.gibbs(0, s) for s in range(20)] == [space.gibbs(0, s) for s in range(20)]
    assert len({space.gibbs(0, s) for s in range(50)}) > 1


def test_voting_gibbs_tends_to_bayes_optimal():
    rng = np.random.default_rng(4)
    for _ in range(10):
        space, *_ = random_space(rng)
        best = space.bayes_optimal(0)
        first, second = sorted(best.values, reverse=True)[:2]
        n = math.ceil(2 * 23 / (first - second) ** 2)  # Hoeffding: the vote errs with chance below 3 e^{-11}
        assert space.voting_gibbs(0, min(n, 200_000), rng) == best.mode()


def test_a_vote_of_one_is_one_draw_and_of_none_is_refused():
    space, *_ = random_space(np.random.default_rng(2))
    votes = {space.voting_gibbs(0, 1, seed) for seed in range(50)}
    assert votes == {label for label, p in space.bayes_optimal(0).to_dict().items() if p > 0}
    with pytest.raises(ValueError, match="at least one hypothesis"):
        space.voting_gibbs(0, 0)


def boolean_space(rng, n_hypotheses, n_instances):
    """Random boolean functions, as a table (hypothesis, instance), with a random prior."""
    table = rng.integers(0, 2, size=(n_hypotheses, n_instances)).astype(bool)
    priors = rng.dirichlet(np.full(n_hypotheses, 0.7))
    concepts = {h: (lambda x, h=h: bool(table[h, x])) for h in range(n_hypotheses)}
    return HypothesisSpace.from_concepts(concepts, dict(enumerate(priors.tolist()))), table, priors


def test_gibbs_errs_at_most_twice_as_often_by_enumeration():
    """Haussler et al. 1994: exactly, over every target (drawn from the prior), sample and instance.

    Bayes optimal errs no more than MAP and Gibbs do, and Gibbs at most twice as often as Bayes optimal.
    """
    rng = np.random.default_rng(0)
    for _ in range(8):
        space, table, priors = boolean_space(rng, n_hypotheses=5, n_instances=4)
        optimal = of_map = gibbs = 0.0
        for target, sample in product(range(5), product(range(4), repeat=2)):
            weight = priors[target] / 4**2 / 4
            after = space.update([(x, bool(table[target, x])) for x in sample])
            posterior = np.array(list(after.probabilities.values()))
            for x in range(4):
                truth = bool(table[target, x])
                optimal += weight * (after.bayes_optimal(x).mode() != truth)
                of_map += weight * (bool(table[after.map(), x]) != truth)
                gibbs += weight * posterior[table[:, x] != truth].sum()
        assert optimal <= of_map + 1e-12
        assert optimal <= gibbs + 1e-12
        assert gibbs <= 2 * optimal + 1e-12


def test_gibbs_errs_at_most_twice_as_often_by_simulation():
    """The mean of (Gibbs errors − 2 × Bayes optimal errors) is at most 0, up to 5 standard errors of it."""
    rng = np.random.default_rng(1)
    differences, over_map = [], []
    for _ in range(1500):
        space, table, priors = boolean_space(rng, n_hypotheses=12, n_instances=10)
        target = rng.choice(12, p=priors)
        after = space.update([(x, bool(table[target, x])) for x in rng.integers(0, 10, size=2).tolist()])
        truth = table[target]
        gibbs = np.mean([after.gibbs(x, rng) != truth[x] for x in range(10)])
        optimal = np.mean([after.bayes_optimal(x).mode() != truth[x] for x in range(10)])
        differences.append(gibbs - 2 * optimal)
        over_map.append(optimal - np.mean(table[after.map()] != truth))
    for sample in (np.array(differences), np.array(over_map)):
        assert sample.mean() <= 5 * sample.std() / math.sqrt(len(sample))


# Theory: what maximum likelihood means for regression and for predicting probabilities


def log_likelihood(space, data, h):
    """ln P(data | h), from the description length in bits."""
    return -space.mdl(data)[h].data * math.log(2)


def test_least_squares_is_maximum_likelihood_under_gaussian_noise():
    """With d = f(x) + N(0, σ²), the ML line of a grid is the one of least squared error (Mitchell 1997, 6.4)."""
    rng = np.random.default_rng(0)
    lines = [(a, b) for a in np.linspace(-2, 2, 21).tolist() for b in np.linspace(-1, 1, 11).tolist()]
    for sigma in (0.3, 2.0):
        x = rng.uniform(-3, 3, size=15)
        d = 0.7 * x - 0.3 + rng.normal(0, sigma, size=15)

        def density(h, point, sigma=sigma):
            error = point[1] - (h[0] * point[0] + h[1])
            return math.exp(-(error**2) / (2 * sigma**2)) / math.sqrt(2 * math.pi * sigma**2)

        space = HypothesisSpace(dict.fromkeys(lines, 1 / len(lines)), density)
        data = list(zip(x.tolist(), d.tolist(), strict=True))
        squares = {h: float(((d - h[0] * x - h[1]) ** 2).sum()) for h in lines}
        assert space.ml(data) == min(lines, key=squares.__getitem__)
        ranked = sorted(lines, key=lambda h: -log_likelihood(space, data, h))
        assert ranked == sorted(lines, key=squares.__getitem__)
        # and the least-squares solution itself beats every line of the grid
        a, b = np.polyfit(x, d, 1).tolist()
        wider = HypothesisSpace(dict.fromkeys([*lines, (a, b)], 1 / (len(lines) + 1)), density)
        assert wider.ml(data) == (a, b)


def sigmoid_unit(w, x):
    return 1 / (1 + math.exp(-sum(wi * xi for wi, xi in zip(w, x, strict=True))))


def unit_likelihood(w, datum):
    x, d = datum
    h = sigmoid_unit(w, x)
    return h if d else 1 - h


def unit_data(seed, n=40):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    d = rng.random(n) < 1 / (1 + np.exp(-x @ [0.4, 1.5, -1.0]))
    return x, d, [(tuple(row), bool(label)) for row, label in zip(x.tolist(), d, strict=True)]


def test_cross_entropy_is_maximum_likelihood_for_probabilities():
    """The ML hypothesis maximises Σ d ln h + (1−d) ln(1−h) (Mitchell 1997, 6.5)."""
    x, d, data = unit_data(0)
    rng = np.random.default_rng(1)
    units = [tuple(w) for w in rng.normal(scale=2, size=(100, 3)).tolist()]
    space = HypothesisSpace(dict.fromkeys(units, 0.01), unit_likelihood)
    h = {w: 1 / (1 + np.exp(-x @ w)) for w in units}
    entropy = {w: float((d * np.log(h[w]) + ~d * np.log1p(-h[w])).sum()) for w in units}
    for w in units:
        assert log_likelihood(space, data, w) == pytest.approx(entropy[w], rel=1e-9)
    assert space.ml(data) == max(units, key=entropy.__getitem__)


def test_the_gradient_rule_of_a_sigmoid_unit():
    """∂ ln P(D | w) / ∂w_j = Σ (d − h(x)) x_j (Mitchell 1997, equation 6.14), by central differences."""
    x, d, data = unit_data(2)
    step = 1e-5
    for w in np.random.default_rng(3).normal(size=(5, 3)).tolist():
        shifted = []
        for j in range(3):
            for sign in (1, -1):
                moved = list(w)
                moved[j] += sign * step
                shifted.append(tuple(moved))
        space = HypothesisSpace(dict.fromkeys(shifted, 1 / 6), unit_likelihood)
        logs = [log_likelihood(space, data, h) for h in shifted]
        by_rule = (d - 1 / (1 + np.exp(-x @ w))) @ x
        np.testing.assert_allclose(
            [(logs[2 * j] - logs[2 * j + 1]) / (2 * step) for j in range(3)], by_rule, atol=1e-5
        )


def test_climbing_the_gradient_reaches_the_maximum_likelihood_unit():
    from sklearn.linear_model import LogisticRegression

    x, d, data = unit_data(4, n=200)
    w = np.zeros(3)
    for _ in range(5000):
        w += 0.02 * (d - 1 / (1 + np.exp(-x @ w))) @ x
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000).fit(x, d)
    np.testing.assert_allclose(w, model.coef_[0], atol=1e-5)
    rivals = {f"beside {j}": tuple(w + 0.05 * np.eye(3)[j]) for j in range(3)}
    units = {"climbed": tuple(w), **rivals}
    space = HypothesisSpace(
        dict.fromkeys(units, 0.25), lambda name, datum: unit_likelihood(units[name], datum)
    )
    assert space.ml(data) == "climbed"


# Faults


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"a": 0.5, "b": 0.4}, "sum to 0.9"),
        ({"a": 1.5, "b": -0.5}, "the prior of 'b' is -0.5"),
        ({"a": math.nan}, "the prior of 'a' is nan"),
        ({"a": "much"}, "must be numbers"),
        ({}, "must map each hypothesis"),
        (["a"], "must map each hypothesis"),
    ],
)
def test_bad_priors(priors, message):
    with pytest.raises(ModelError, match=message):
        HypothesisSpace(priors, lambda h, d: 1.0)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_bad_likelihoods_are_named(value):
    space = HypothesisSpace({"a": 1.0}, lambda h, d: value)
    with pytest.raises(ModelError, match=r"P\('x' \| 'a'\)"):
        space.update(["x"])


@pytest.mark.parametrize("data", ["positive", {"A": 1}, 3])
def test_a_single_datum_must_be_put_in_a_list(data):
    with pytest.raises(DataError, match=r"\[datum\]"):
        cancer_space().update(data)


def test_impossible_data_name_the_datum():
    space = HypothesisSpace({"a": 0.5, "b": 0.5}, lambda h, d: float(h == d))
    with pytest.raises(ImpossibleEvidenceError, match="datum 2"):
        space.update(["a", "a", "b"])


def test_predicting_needs_predict():
    with pytest.raises(ModelError, match="predict="):
        cancer_space().bayes_optimal("x")


def test_predictions_must_be_distributions():
    space = HypothesisSpace({"a": 1.0}, lambda h, d: 1.0, lambda h, x: {"+": 0.5, "-": 0.6})
    with pytest.raises(ModelError, match="'a' predicts"):
        space.bayes_optimal(0)


def test_concepts_take_only_booleans_in_pairs():
    space = HypothesisSpace.from_concepts({"all": bool})
    with pytest.raises(DataError, match="True and False"):
        space.update([(1, "yes")])
    with pytest.raises(DataError, match="pair"):
        space.update([1])


def test_priors_must_be_of_the_hypotheses():
    with pytest.raises(ModelError, match="priors are of"):
        HypothesisSpace.from_concepts({"all": bool}, priors={"none": 1.0})


def test_rows_of_a_frame_are_dicts():
    import pandas as pd

    space = HypothesisSpace({"a": 0.5, "b": 0.5}, lambda h, row: 0.9 if row["x"] == h else 0.1)
    assert space.update(pd.DataFrame({"x": ["a", "a"]})) == space.update([{"x": "a"}, {"x": "a"}])


def test_plot():
    import matplotlib

    matplotlib.use("Agg")
    space = cancer_space()
    axes = space.plot(["+", "+", "-"])
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert lines["cancer"][2] == pytest.approx(space.update(["+", "+"]).probabilities["cancer"])
    bars = space.update(["+"]).plot().patches
    assert sorted(b.get_height() for b in bars)[0] == pytest.approx(0.20851, abs=1e-5)
    matplotlib.pyplot.close("all")
