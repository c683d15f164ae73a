"""NoisyMax and NoisyOr: against the sum over all effects, in every engine, format and learner."""

from __future__ import annotations

import copy
import decimal
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import bbn
from bbn.model import expansion
from bbn.model.expansion import chained, linked


def variables(rng, n):
    return [bbn.Variable(f"X{i}", [f"s{k}" for k in range(rng.integers(1, 4))]) for i in range(n)]


def rows(rng, n, card):
    """Distributions, some of them without effect and some with zeros."""
    table = rng.dirichlet(np.ones(card), n)
    table[rng.random(table.shape) < 0.2] = 0.0
    table[table.sum(axis=1) == 0] = 1.0
    return table / table.sum(axis=1, keepdims=True)


def conditional(rng, parents, name="Y"):
    states = [f"y{k}" for k in range(rng.integers(2, 5))]
    child = bbn.Variable(name, states)
    links = [rows(rng, p.card, child.card) for p in parents]
    strongest = states[0] if rng.random() < 0.5 else states[-1]
    return bbn.NoisyMax(child, parents, links, rows(rng, 1, child.card)[0], strongest=strongest)


def by_hand(noisy, codes):
    """P(child | codes) in exact fractions: the sum over every combination of effects."""
    card = noisy.variable.card
    causes = [
        [Fraction(p) for p in link[code].tolist()] for link, code in zip(noisy.links, codes, strict=True)
    ]
    causes.append([Fraction(p) for p in noisy.leak.tolist()])
    stronger = max if noisy.strongest == noisy.variable.states[-1] else min
    found = [Fraction(0)] * card
    for effects in itertools.product(range(card), repeat=len(causes)):
        found[stronger(effects)] += math.prod(own[k] for own, k in zip(causes, effects, strict=True))
    return [float(p) for p in found]


@pytest.mark.parametrize("seed", range(12))
def test_the_table_is_the_strongest_effect(seed):
    rng = np.random.default_rng(seed)
    noisy = conditional(rng, variables(rng, int(rng.integers(0, 5))))
    for codes in itertools.product(*(range(p.card) for p in noisy.parents)):
        expected = by_hand(noisy, codes)
        np.testing.assert_allclose(noisy.table[codes], expected, rtol=1e-14, atol=0)
        np.testing.assert_allclose(noisy.row_at(codes), expected, rtol=1e-14, atol=0)
    assert noisy.to_cpt() == bbn.CPT(noisy.variable, noisy.parents, noisy.table)
    assert type(noisy.to_cpt()) is bbn.CPT
    assert noisy != noisy.to_cpt()


def test_small_probabilities_keep_their_digits():
    causes = [bbn.Variable(f"C{i}", [False, True]) for i in range(3)]
    noisy = bbn.NoisyOr(bbn.Variable("E", [False, True]), causes, [1e-20, 2e-20, 3e-20], leak=4e-20)
    assert noisy.table[1, 1, 1, 1] == pytest.approx(1e-19, rel=1e-14)


def network(rng, n_roots=7, n_children=3):
    """Roots, children that are noisy maxima of many of them, and a table below."""
    roots = variables(rng, n_roots)
    parts = [bbn.CPT(v, table=rng.dirichlet(np.ones(v.card))) for v in roots]
    for c in range(n_children):
        size = int(rng.integers(2, n_roots + 1))
        chosen = [roots[i] for i in rng.permutation(n_roots)[:size]]
        parts.append(conditional(rng, chosen, f"Y{c}"))
    last = bbn.Variable("Z", ["a", "b"])
    above = [parts[-1].variable, roots[0]]
    table = rng.dirichlet(np.ones(2), [v.card for v in above])
    return bbn.BayesianNetwork([*parts, bbn.CPT(last, above, table)])


def with_tables(net):
    return net.with_cpts([c.to_cpt() for c in net.conditionals if isinstance(c, bbn.NoisyMax)])


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_those_of_the_tables(seed, monkeypatch):
    monkeypatch.setattr(expansion, "_pays", lambda noisy: len(noisy.parents) > 1)
    rng = np.random.default_rng(seed)
    net = network(rng)
    tables = with_tables(net)
    assert len(chained(net).names) > len(net.names)
    row = tables.sample(1, seed=seed).iloc[0]
    seen = {name: row[name] for name in net.names if rng.random() < 0.4}
    truth = bbn.JunctionTree(tables).posteriors(seen)
    found = net.posteriors(seen)
    assert list(found) == list(truth)
    for name in truth:
        np.testing.assert_allclose(found[name].values, truth[name].values, atol=1e-12)
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=1e-10)
    free = [name for name in net.names if name not in seen]
    for method in ("junction-tree", "elimination"):
        for target in free[:2]:
            answer = net.query(target, seen, method=method)
            np.testing.assert_allclose(answer.values, truth[target].values, atol=1e-12)
    if free:
        assert net.mpe(seen).log_probability == pytest.approx(tables.mpe(seen).log_probability, abs=1e-10)
        best = net.mpe(seen).states
        assert net.probability({**seen, **best}) == pytest.approx(
            math.exp(net.mpe(seen).log_probability), rel=1e-10
        )
    full = {name: row[name] for name in net.names}
    assert net.probability(full) == pytest.approx(tables.probability(full), rel=1e-12)
    data = tables.sample(50, seed=seed, missing=0.2)
    np.testing.assert_allclose(net.log_likelihood(data), tables.log_likelihood(data), atol=1e-10)


def wide(n=100, seed=0):
    rng = np.random.default_rng(seed)
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(n)]
    chances, priors = rng.uniform(0.05, 0.5, n), rng.uniform(0.01, 0.05, n)
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, list(chances), leak=0.02)
    parts = [bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(causes, priors, strict=True)]
    return bbn.BayesianNetwork([*parts, effect]), chances, priors


def test_a_hundred_parents_need_no_table():
    net, chances, priors = wide()
    quiet = 1 - 0.98 * np.prod(1 - priors * chances)
    assert net.query("E")["yes"] == pytest.approx(quiet, rel=1e-12)
    # given the effect: P(c_i) (1 − (1 − leak)(1 − p_i) ∏ of the others) / P(effect)
    posteriors = net.posteriors({"E": "yes"})
    for i in (0, 7, 99):
        others = np.prod(np.delete(1 - priors * chances, i))
        expected = priors[i] * (1 - 0.98 * (1 - chances[i]) * others) / quiet
        assert posteriors[f"C{i}"]["yes"] == pytest.approx(expected, rel=1e-10)
    draws = net.sample(4000, {"E": "no"}, seed=1)
    assert list(draws.columns) == list(net.names)
    still = priors[3] * (1 - chances[3]) / (1 - priors[3] * chances[3])
    assert (draws["C3"] == "yes").mean() == pytest.approx(still, abs=0.01)
    assert (net.sample(4000, seed=2)["E"] == "yes").mean() == pytest.approx(quiet, abs=0.04)
    with pytest.raises(bbn.BudgetError, match="the full table of NoisyOr 'E'"):
        net["E"].to_cpt()


@pytest.mark.parametrize(
    "ask",
    [
        lambda net, data, path: net["E"].table,
        lambda net, data, path: net.save(path / "net.bif"),
        lambda net, data, path: net.save(path / "net.xmlbif"),
        lambda net, data, path: net.save(path / "net.net"),
        lambda net, data, path: net.save(path / "net.uai"),
    ],
)
def test_what_needs_the_table_of_a_hundred_parents_names_it(ask, tmp_path):
    net, _, _ = wide()
    data = net.sample(20, seed=0, missing=0.2)
    with pytest.raises(
        bbn.BudgetError, match=r"the full table of NoisyOr 'E' would need .* keep it as it is"
    ):
        ask(net, data, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["likelihood-weighting", "rejection", "importance"])
def test_samplers_agree_with_the_posteriors_of_a_hundred_parents(method):
    net, _, _ = wide()
    names = ["C0", "C7", "C50", "C99"]
    exact = net.posteriors({"E": "yes"})
    found = net.posteriors({"E": "yes"}, method=method, n_samples=100_000, seed=3)
    for name in names:
        assert 0 < found[name].std_error[0] < 0.002
        assert abs(found[name]["yes"] - exact[name]["yes"]) < 4 * found[name].std_error[0]
    draws = net.sample(20_000, {"E": "yes"}, seed=4)
    for name in names:
        p = exact[name]["yes"]
        assert abs((draws[name] == "yes").mean() - p) < 4 * math.sqrt(p * (1 - p) / 20_000)


def equal_links(priors, link, leak):
    """A noisy-OR whose links are equal, observed, and ln P of its best explanations with 0, 1, … causes.

    With m causes it is ∑ ln(1 − p), the m largest log odds, and ln(1 − (1 − leak)(1 − link)^m).
    """
    n = len(priors)
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(n)]
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, [link] * n, leak)
    net = bbn.BayesianNetwork(
        [*(bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(causes, priors.tolist(), strict=True)), effect]
    )
    odds = np.sort(np.log(priors) - np.log1p(-priors))[::-1]
    causes_on = np.concatenate([[0.0], np.cumsum(odds)])
    shows = np.log1p(-(1 - leak) * (1 - link) ** np.arange(n + 1))
    return net, np.log1p(-priors).sum() + causes_on + shows


@pytest.mark.parametrize(
    ("priors", "link", "leak", "n_causes"),
    [
        (np.full(100, 0.3), 0.3, 0.01, 1),
        (np.full(100, 0.02), 0.3, 0.05, 0),
        (np.random.default_rng(0).uniform(0.2, 0.49, 100), 0.2, 0.01, 6),
        (np.random.default_rng(1).uniform(0.01, 0.6, 100), 0.2, 0.01, None),
    ],
)
def test_the_best_explanation_of_a_hundred_parents_is_that_of_the_closed_form(priors, link, leak, n_causes):
    net, best = equal_links(priors, link, leak)
    found = net.mpe({"E": "yes"})
    present = [name for name, state in found.states.items() if state == "yes"]
    assert found.log_probability == pytest.approx(best.max(), abs=1e-9)
    assert len(present) == best.argmax()
    assert n_causes is None or len(present) == n_causes
    assert math.log(net.probability({"E": "yes", **found.states})) == pytest.approx(best.max(), abs=1e-9)
    if len(np.unique(priors)) > 1:  # no ties: the causes with the largest odds
        assert {int(name[1:]) for name in present} == set(np.argsort(-priors)[: len(present)].tolist())


def quickscore(priors, links, leaks, positive, negative):
    """P(findings) and P(disease | findings): a sum over subsets of the positive findings (Heckerman 1989).

    Its terms have both signs and cancel to a millionth of a millionth, so it is worked out in 40 digits.
    """
    decimals = np.vectorize(decimal.Decimal, otypes=[object])
    with decimal.localcontext() as context:
        context.prec = 40
        some = np.flatnonzero(links[positive].any(axis=0))  # the others are the same in every term
        other = np.setdiff1d(np.arange(len(priors)), some)
        alone = priors[other] * np.prod(1 - links[np.ix_(negative, other)], axis=0)
        none = alone + 1 - priors[other]
        p, one = decimals(priors[some]), decimal.Decimal(1)
        off = {f: one - decimals(links[f, some]) for f in (*positive, *negative)}
        leak_off = {f: one - decimal.Decimal(float(leaks[f])) for f in off}
        total, joint = decimal.Decimal(0), p * 0

        def add(rest, sign, quiet):
            nonlocal total, joint
            if rest:
                add(rest[1:], sign, quiet)
                add(rest[1:], -sign * leak_off[rest[0]], quiet * off[rest[0]])
                return
            each = p * quiet + (one - p)
            term = sign * np.prod(each)
            total += term
            joint = joint + term * p * quiet / each

        sign, quiet = one, p * 0 + 1
        for f in negative:
            sign, quiet = sign * leak_off[f], quiet * off[f]
        add(positive, sign, quiet)
        posterior = np.empty(len(priors))
        posterior[some], posterior[other] = (joint / total).astype(float), alone / none
        return float(total) * float(np.prod(none)), posterior


def diagnosis(n, m, causes_of, rng):
    """A network of n diseases over m findings, each with `causes_of` diseases at most."""
    diseases = [bbn.Variable(f"D{i}", ["yes", "no"]) for i in range(n)]
    priors = rng.uniform(0.001, 0.05, n)
    links = np.zeros((m, n))
    leaks = rng.uniform(0.001, 0.05, m)
    parts = [bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(diseases, priors, strict=True)]
    for f in range(m):
        causes = np.sort(rng.choice(n, int(rng.integers(1, causes_of + 1)), replace=False))
        links[f, causes] = rng.uniform(0.1, 0.9, len(causes))
        child = bbn.Variable(f"F{f}", ["yes", "no"])
        own = [diseases[i] for i in causes]
        parts.append(bbn.NoisyOr(child, own, links[f, causes].tolist(), float(leaks[f])))
    return bbn.BayesianNetwork(parts), priors, links, leaks


@pytest.mark.parametrize(
    ("n", "m", "causes", "n_positive", "n_negative"), [(40, 60, 8, 4, 3), (600, 4000, 30, 12, 40)]
)
def test_diagnosis_agrees_with_quickscore(n, m, causes, n_positive, n_negative):
    rng = np.random.default_rng(5)
    net, priors, links, leaks = diagnosis(n, m, causes, rng)
    findings = rng.choice(m, n_positive + n_negative, replace=False).tolist()
    positive, negative = findings[:n_positive], findings[n_positive:]
    evidence = {f"F{f}": "yes" for f in positive} | {f"F{f}": "no" for f in negative}
    total, expected = quickscore(priors, links, leaks, positive, negative)
    observed = net.subnetwork([*(f"D{i}" for i in range(n)), *evidence]).posteriors(evidence)
    assert observed.log_evidence == pytest.approx(math.log(total), abs=1e-10)
    np.testing.assert_allclose([observed[f"D{i}"]["yes"] for i in range(n)], expected, atol=1e-10)
    for i in (int(expected.argmax()), 7):  # of the whole network, whose other findings do not matter
        assert net.query(f"D{i}", evidence)["yes"] == pytest.approx(expected[i], abs=1e-10)


@pytest.mark.parametrize("suffix", ["yaml", "json", "yaml.gz"])
def test_files_keep_it_factored(tmp_path, suffix):
    net = network(np.random.default_rng(1))
    path = tmp_path / f"net.{suffix}"
    net.save(path)
    assert bbn.load(path) == net
    many, _, _ = wide()
    many.save(path)
    assert bbn.load(path) == many
    if suffix == "yaml":
        assert "type: noisy-or" in path.read_text()
        assert path.stat().st_size < 20_000


def test_xdsl_keeps_it_factored(tmp_path):
    many, _, _ = wide()
    many.save(tmp_path / "many.xdsl")
    again = bbn.load(tmp_path / "many.xdsl")
    assert isinstance(again["E"], bbn.NoisyMax)
    assert again == many


@pytest.mark.parametrize("seed", range(20))
def test_xdsl_keeps_it_whichever_state_is_the_strongest(tmp_path, seed):
    net = network(np.random.default_rng(seed))
    path = tmp_path / "net.xdsl"
    net.save(path)
    assert path.read_text().count("<noisymax") == 3
    assert bbn.load(path) == net
    # to others the first state is the strongest: without our property the states stand in reverse, the numbers go along
    path.write_text(path.read_text().replace("bbn_states", "other"))
    other = bbn.load(path)
    for own in net.conditionals:
        if isinstance(own, bbn.NoisyMax):
            assert other[own.name].strongest == own.strongest == other.states(own.name)[0]
    for name in net.names:
        expected = net.query(name)
        assert other.query(name).to_dict() == pytest.approx(expected.to_dict(), abs=1e-12)
    row = dict(net.sample(1, seed=0).iloc[0].items())
    assert other.probability(row) == pytest.approx(net.probability(row), rel=1e-12)


def test_xdsl_keeps_a_hundred_parents_of_a_last_strongest_state(tmp_path):
    causes = [bbn.Variable(f"C{i}", [False, True]) for i in range(100)]
    effect = bbn.NoisyOr(bbn.Variable("E", [False, True]), causes, [0.3] * 100, leak=0.1)
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.9, 0.1]) for v in causes), effect])
    net.save(tmp_path / "net.xdsl")
    assert bbn.load(tmp_path / "net.xdsl") == net


def test_other_formats_write_the_table(tmp_path):
    net = network(np.random.default_rng(3))
    for suffix in ("bif", "net", "xmlbif"):
        net.save(tmp_path / f"net.{suffix}")
        other = bbn.load(tmp_path / f"net.{suffix}")
        assert type(other["Y0"]) is bbn.CPT
        np.testing.assert_allclose(other["Y0"].table, net["Y0"].table, rtol=1e-12)


def test_fit_finds_the_links():
    net, chances, _ = wide(6, seed=3)
    data = net.with_cpts([bbn.CPT(net.variable(f"C{i}"), table=[0.5, 0.5]) for i in range(6)]).sample(
        60_000, seed=0
    )
    learned = bbn.fit(net, data)
    noisy = learned["E"]
    assert isinstance(noisy, bbn.NoisyMax)
    np.testing.assert_allclose([link[0, 0] for link in noisy.links], chances, atol=0.02)
    assert noisy.leak[0] == pytest.approx(0.02, abs=0.01)
    # no step of EM is left: the likelihood is at a maximum, so every direction loses
    own = learned.log_likelihood(data).sum()
    for i in range(6):
        for shift in (-1e-3, 1e-3):
            links = [link.copy() for link in noisy.links]
            links[i][0] += [shift, -shift]
            moved = bbn.NoisyMax(noisy.variable, noisy.parents, links, noisy.leak)
            assert learned.with_cpts([moved]).log_likelihood(data).sum() < own + 1e-6


def test_the_links_of_thirty_parents_are_found_and_the_likelihood_never_falls(monkeypatch):
    from bbn.learning.tables import noisy_links

    rng = np.random.default_rng(0)
    causes = [bbn.Variable(f"C{i}", ["no", "yes"]) for i in range(30)]
    chances = rng.uniform(0.02, 0.3, 30)
    effect = bbn.NoisyOr(bbn.Variable("E", ["no", "yes"]), causes, chances.tolist(), leak=0.05)
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.9, 0.1]) for v in causes), effect])
    data = net.sample(6_000, seed=1)
    taken = []
    real = noisy_links._Step.__call__

    def noted(step, effects, strict=True):
        objective, following = real(step, effects, strict)
        if taken and not strict and objective < taken[-1]:
            return objective, following  # taken back
        taken.append(objective)
        return objective, following

    further, calls = noisy_links._further, itertools.count()

    def at_times_lost(one, two, three, most):
        if next(calls) % 4 == 2:
            return [np.where(own.max(axis=1, keepdims=True) == 1.0, own, [0.01, 0.99]) for own in three], 40.0
        return further(one, two, three, most)

    monkeypatch.setattr(noisy_links, "_further", at_times_lost)
    monkeypatch.setattr(noisy_links._Step, "__call__", noted)
    learned = bbn.fit(net, data)
    assert np.diff(taken).min() >= 0
    assert len(taken) > 5
    # P(E = no | C_i = yes) / P(E = no | C_i = no) is 1 − the chance; about 600 rows have each cause
    found = np.array([link[1, 1] for link in learned["E"].links])
    assert np.sqrt(np.mean((found - chances) ** 2)) < 0.05
    # a maximum: the slope of the log-likelihood in each chance is 0, or points below 0 at a chance of 0
    codes = (data[[v.name for v in causes]] == "yes").to_numpy(float)
    quiet = codes @ np.log1p(-found) + math.log(learned["E"].leak[0])
    yes = (data["E"] == "yes").to_numpy()
    slopes = (codes * np.where(yes, 1 / np.expm1(-quiet), -1.0)[:, None]).sum(axis=0) / (1 - found)
    assert np.abs(slopes * found).max() < 1.0
    assert learned.log_likelihood(data).sum() >= net.log_likelihood(data).sum()


@pytest.mark.parametrize("seed", range(3))
def test_fit_and_em_agree_on_complete_data(seed):
    rng = np.random.default_rng(seed)
    roots = [bbn.Variable(f"X{i}", ["a", "b", "c"][: 2 + i % 2]) for i in range(3)]
    child = bbn.Variable("Y", ["low", "mid", "high"])
    links = [rng.dirichlet([2, 2, 2], v.card) for v in roots]
    noisy = bbn.NoisyMax(child, roots, links, rng.dirichlet([3, 1, 1]))
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=rng.dirichlet(np.ones(v.card))) for v in roots), noisy])
    data = net.sample(2000, seed=seed)
    start = net.with_cpts(
        [bbn.NoisyMax(child, roots, [np.full((v.card, 3), 1 / 3) for v in roots], [1 / 3] * 3)]
    )
    result = bbn.fit_em(start, data, tol=1e-12, max_iter=3000)
    assert isinstance(result.network["Y"], bbn.NoisyMax)
    assert set(result.network.names) == set(net.names)
    assert np.diff(result.log_likelihoods).min() > -1e-7
    complete = bbn.fit(net, data)
    assert complete.log_likelihood(data).sum() == pytest.approx(result.log_likelihood, abs=0.02)
    assert result.log_likelihood >= net.log_likelihood(data).sum()
    assert result.log_likelihood == pytest.approx(result.network.log_likelihood(data).sum(), rel=1e-9)


def test_em_with_holes_rises_and_keeps_absent_causes():
    net, _, _ = wide(5, seed=1)
    data = net.sample(3000, seed=0, missing=0.3)
    result = bbn.fit_em(net, data, max_iter=30)
    assert np.diff(result.log_likelihoods).min() > -1e-6
    for link in result.network["E"].links:
        assert link[1].tolist() == [0.0, 1.0]
    kept = bbn.fit_em(net, data, max_iter=5, fixed=["E"]).network
    assert kept["E"] == net["E"]


def test_a_state_that_nothing_explains_is_named():
    cause = bbn.Variable("C", [False, True])
    net = bbn.BayesianNetwork(
        [bbn.CPT(cause, table=[0.5, 0.5]), bbn.NoisyOr(bbn.Variable("E", [False, True]), [cause], [0.5])]
    )
    with pytest.raises(
        bbn.DataError, match="1 rows of the data have a state that no cause and no leak explain"
    ):
        bbn.fit(net, {"C": [False, True, True], "E": [True, True, False]})


def test_it_is_a_value():
    rng = np.random.default_rng(0)
    noisy = conditional(rng, variables(rng, 4))
    for other in (pickle.loads(pickle.dumps(noisy)), copy.deepcopy(noisy)):
        assert other == noisy
        assert hash(other) == hash(noisy)
    with pytest.raises(AttributeError, match="frozen"):
        noisy.leak = None
    with pytest.raises(ValueError):
        noisy.links[0][0, 0] = 1.0
    assert "NoisyMax" in repr(noisy)
    assert "leak" in str(noisy)


def test_edits_keep_it():
    net = network(np.random.default_rng(7))
    renamed = net.rename({"Y0": "effect", "X1": "cause"})
    assert isinstance(renamed["effect"], bbn.NoisyMax)
    np.testing.assert_array_equal(renamed["effect"].table, net["Y0"].table)
    new = bbn.CPT(bbn.Variable("new", ["a", "b"]), table=[0.5, 0.5])
    more = net.with_cpts([new]).add_arc("new", "Y0")
    assert isinstance(more["Y0"], bbn.NoisyMax)
    np.testing.assert_allclose(more.query("Y0").values, net.query("Y0").values, atol=1e-12)


def test_the_number_of_parameters():
    net, _, _ = wide(10)
    assert net["E"].n_parameters == 11
    assert net.n_parameters == 21


def test_links_may_be_written_as_tables_are():
    flu, fever = bbn.Variable("Flu", ["no", "yes"]), bbn.Variable("Fever", ["none", "mild", "high"])
    one = bbn.NoisyMax(
        fever, [flu], {"Flu": {"no": [1, 0, 0], "yes": {"none": 0.1, "mild": 0.3, "high": 0.6}}}
    )
    assert one == bbn.NoisyMax(
        fever, [flu], [[[1, 0, 0], [0.1, 0.3, 0.6]]], leak={"none": 1, "mild": 0, "high": 0}
    )
    assert one.strongest == "high"
    assert bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), [flu], [0.3]).strongest == "yes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"links": {"Flue": [[1, 0], [0, 1]]}}, "'Flue', which is not a parent; did you mean 'Flu'"),
        ({"links": {}}, "there is no link for the parent 'Flu'"),
        ({"links": []}, "expected a link for each of 1 parents, found 0$"),
        (
            {"links": 3},
            "links must be a mapping from each parent's name or a list in the order of the parents",
        ),
        ({"links": np.array(0.5)}, "links must be a mapping"),
        ({"links": [[[1, 0]]]}, "the link of 'Flu'"),
        ({"links": [[[0.5, 0.6], [0, 1]]]}, "^NoisyMax 'Fever': the link of 'Flu': row Flu=no: sums to 1.1"),
        ({"links": [[[1, 0], [0, 1]]], "leak": [0.5, 0.6]}, "^NoisyMax 'Fever': the leak: sums to 1.1"),
        ({"links": [[[1, 0], [0, 1]]], "strongest": "perhaps"}, "perhaps"),
    ],
)
def test_what_is_refused(arguments, message):
    flu = bbn.Variable("Flu", ["no", "yes"])
    with pytest.raises(bbn.ModelError, match=message):
        bbn.NoisyMax(bbn.Variable("Fever", ["no", "yes"]), [flu], **arguments)


def test_noisy_or_is_refused_what_it_cannot_take():
    three, two = bbn.Variable("A", ["x", "y", "z"]), bbn.Variable("B", [False, True])
    with pytest.raises(bbn.ModelError, match="needs binary variables, 'A' has 3 states"):
        bbn.NoisyOr(two, [three], [0.5])
    for p in (1.5, -0.1, math.nan, "x", True, 1j, np.complex128(0.5)):
        for make in (bbn.NoisyOr, bbn.CPT.noisy_or):
            with pytest.raises(bbn.ModelError, match="expected 0 to 1"):
                make(two, [bbn.Variable("C", [False, True])], [p])
    for make in (bbn.NoisyOr, bbn.CPT.noisy_or):
        cause = bbn.Variable("C", [False, True])
        with pytest.raises(
            bbn.ModelError, match="holds= names 'c', neither it nor a parent; did you mean 'C'"
        ):
            make(two, [cause], [0.5], holds={"c": False})
        with pytest.raises(bbn.ModelError, match="links must be a mapping"):
            make(two, [cause], None)
        assert make(two, [cause], [Fraction(1, 4)]).row(True) == {False: 0.75, True: 0.25}
    with pytest.raises(bbn.ModelError, match="continuous"):
        bbn.NoisyMax(two, [bbn.Gaussian("G", means=0, variances=1).variable], [[[1, 0]]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("links: {Q: [[1, 0], [0, 1]]}", "a link for 'Q', which is not a parent"),
        ("links: {}", "there is no link for the parent 'C'"),
        ("links: 3", "'links' must be a mapping"),
        ("links: {C: [[1, 0], [0.5, 0.6]]}", "link of 'C', row C=no: sums to 1.1"),
        ("links: {C: [[1, 0], [0, 1]]}\n    leak: [2, 0]", "leak"),
        ("links: {C: [[1, 0], [0, 1]]}\n    strongest: maybe", "'strongest' must be the first or the last"),
        ("links: {C: [[1, 0], [0, 1]]}\n    tabel: 1", "unknown key 'tabel'"),
    ],
)
def test_bad_files_say_where(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(
        "nodes:\n  C: {states: [yes, no], table: [0.5, 0.5]}\n  E:\n    type: noisy-max\n"
        f"    states: [yes, no]\n    parents: [C]\n    {text}\n"
    )
    with pytest.raises(bbn.ParseError, match=message) as error:
        bbn.load(path)
    assert error.value.line


def test_the_linked_network_has_the_same_joint():
    net = network(np.random.default_rng(11), 4, 1)
    whole, effects, known = linked(net)
    assert set(effects) == {"Y0"}
    assert "Y0" in known
    for name in net.names:
        np.testing.assert_allclose(whole.query(name).values, net.query(name).values, atol=1e-12)


def many_causes(n, rng):
    """A noisy-OR of n causes, and the network."""
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(n)]
    effect = bbn.Variable("E", ["yes", "no"])
    chances = dict(zip([c.name for c in causes], rng.uniform(0.05, 0.95, n).tolist(), strict=True))
    priors = rng.uniform(0.05, 0.6, n)
    tables = [bbn.CPT(c, [], [p, 1 - p]) for c, p in zip(causes, priors, strict=True)]
    return bbn.BayesianNetwork([*tables, bbn.NoisyOr(effect, causes, list(chances.values()), 0.02)])


def test_elimination_and_map_go_along_the_chain():
    net = many_causes(40, np.random.default_rng(3))
    evidence = {"E": "yes", "C7": "no", "C9": bbn.Virtual({"yes": 0.2, "no": 0.9})}
    for targets in ("C3", ["C3", "C11"]):
        tree, eliminated = net.query(targets, evidence), net.query(targets, evidence, method="elimination")
        np.testing.assert_allclose(eliminated.values, tree.values, atol=1e-12)
        assert eliminated.log_evidence == pytest.approx(tree.log_evidence, abs=1e-12)
    targets = [f"C{i}" for i in (0, 1, 2, 30, 39)]
    joint = net.query(targets, evidence)
    best = bbn.VariableElimination(net).map(targets, evidence)
    assert tuple(best.states[name] for name in targets) == joint.mode()
    assert best.log_probability == pytest.approx(joint.log_evidence + math.log(joint.values.max()), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_map_by_elimination_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    net = many_causes(9, rng)
    targets = [f"C{i}" for i in rng.permutation(9)[: int(rng.integers(1, 9))].tolist()]
    evidence = {"E": "yes"} if seed % 2 else {}
    found = bbn.VariableElimination(net).map(targets, evidence)
    joint = net.query(targets, evidence, method="enumeration")
    assert found.log_probability == pytest.approx(
        joint.log_evidence + math.log(joint.values.max()), abs=1e-12
    )
