"""How evidence over time may be given, what is refused, filters that stream, Kalman's case and particles."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest

import bbn
from tests.support.dynamic_truth import random_dynamic, random_evidence

UMBRELLA = bbn.example("umbrella")
DAYS = ["yes", "yes", "no", "yes", "yes"]


def test_the_umbrella_world_of_russell_and_norvig():
    """Section 15.2: filtering gives 0.818, 0.883; smoothing day 1 gives 0.883; forecasts approach a half."""
    beliefs = UMBRELLA.filter({"Umbrella": DAYS})
    np.testing.assert_allclose(beliefs["Rain"][:2, 0], [9 / 11, 0.7 * 9 / 11 + 0.3 * 2 / 11], atol=0.3)
    first = np.array([0.9, 0.2]) * 0.5
    first /= first.sum()
    second = np.array([0.9, 0.2]) * (first @ [[0.7, 0.3], [0.3, 0.7]])
    np.testing.assert_allclose(beliefs["Rain"][:2], [first, second / second.sum()], atol=1e-12)
    assert UMBRELLA.viterbi({"Umbrella": DAYS})["Rain"] == ["yes", "yes", "no", "yes", "yes"]
    far = UMBRELLA.forecast({"Umbrella": DAYS}, 200)["Rain"]
    np.testing.assert_allclose(far[-1], [0.5, 0.5], atol=1e-12)


def test_every_way_of_giving_sequences_is_the_same():
    long = UMBRELLA.sample(6, n=4, seed=3)
    observed = long[["sequence", "Umbrella"]]
    each = [observed.loc[observed["sequence"] == s, ["Umbrella"]] for s in range(4)]
    by_name = UMBRELLA.filter(observed, sequence="sequence")
    as_list = UMBRELLA.filter(each)
    by_length = UMBRELLA.filter(observed[["Umbrella"]], lengths=[6] * 4)
    mixed = observed.assign(day=list(observed.index)).sample(frac=1, random_state=0)
    by_time = UMBRELLA.filter(mixed, sequence="sequence", time="day")
    for s in range(4):
        alone = UMBRELLA.filter(each[s])["Rain"]
        for found in (by_name, as_list, by_length, by_time):
            np.testing.assert_array_equal(found[s]["Rain"], alone)
    logs = UMBRELLA.log_likelihood(observed, sequence="sequence")
    assert logs[2] == pytest.approx(UMBRELLA.log_likelihood(each[2]), abs=1e-12)


def test_a_gap_in_time_is_a_step_without_evidence():
    gap = UMBRELLA.smooth({"day": [12, 10, 13], "Umbrella": ["no", "yes", "yes"]}, time="day")
    full = UMBRELLA.smooth({"Umbrella": ["yes", None, "no", "yes"]})
    np.testing.assert_array_equal(gap["Rain"], full["Rain"])
    assert gap.steps == range(10, 14)


BAD = [
    ({"evidence": {"Umbrela": ["yes"]}}, "did you mean 'Umbrella'"),
    ({"evidence": {"Umbrella": ["maybe"]}}, "no state 'maybe'"),
    ({"evidence": {"Umbrella": []}}, "no rows"),
    ({"evidence": []}, "empty"),
    ({"evidence": [{"Umbrella": ["yes"]}, {"Umbrella": []}]}, "table 1: the table has no rows"),
    ({"evidence": {"Umbrella": ["yes", "no"]}, "lengths": [1]}, "add up to 2"),
    ({"evidence": {"Umbrella": ["yes", "no"]}, "lengths": [2, 0]}, "at least 1"),
    ({"evidence": {"Umbrella": ["yes"]}, "sequence": "id"}, "not a column"),
    ({"evidence": {"Umbrella": ["yes"] * 2, "t": [3, 3]}, "time": "t"}, "there twice"),
    ({"evidence": {"Umbrella": ["yes"] * 2, "t": [1.5, 2]}, "time": "t"}, "whole numbers"),
    ({"evidence": {"Umbrella": ["yes"] * 2, "t": [None, 2]}, "time": "t"}, "which step"),
    ({"evidence": {"Umbrella": ["yes"] * 2, "id": [None, 2]}, "sequence": "id"}, "which sequence"),
    ({"evidence": {"Umbrella": [bbn.Soft({"yes": 0.5, "no": 0.5})]}}, "Soft"),
    ({"evidence": {"Umbrella": [{"yes": 0.5, "no": 0.5}]}}, "bare mapping"),
]


@pytest.mark.parametrize(("given", "said"), BAD)
def test_bad_evidence_is_an_error_that_says_what(given, said):
    with pytest.raises(bbn.EvidenceError, match=said):
        UMBRELLA.filter(**given)
    with pytest.raises(bbn.DataError, match=said):
        UMBRELLA.log_likelihood(given["evidence"], **{k: v for k, v in given.items() if k != "evidence"})


def test_wide_gaps_in_time_are_refused_before_they_are_filled():
    with pytest.raises(bbn.BudgetError, match="gaps"):
        UMBRELLA.filter({"Umbrella": ["yes", "no"], "t": [0, 10**15]}, time="t")


@pytest.mark.parametrize("stray", [10**6, 1_713_000_000, -(10**9), 10**12])
def test_a_number_far_from_the_other_steps_is_named_with_its_row(stray):
    data = {"Umbrella": DAYS * 2, "who": ["a"] * 5 + ["b"] * 5, "t": [*range(5), 0, 1, 2, 3, stray]}
    for ask in (
        UMBRELLA.filter,
        UMBRELLA.viterbi,
        UMBRELLA.log_likelihood,
        lambda d, **s: bbn.fit(UMBRELLA, d, **s),
    ):
        with pytest.raises(
            bbn.BudgetError, match=r"row \d: the column 't' holds .* in sequence 'b' \(row \d\)"
        ) as refused:
            ask(data, sequence="who", time="t")
        assert "row 9" in str(refused.value) or "(row 9)" in str(refused.value)


@pytest.mark.parametrize("stray", [2**63, -(2**70), "2024-13-45", 1.5, np.inf, pd.Timestamp("2024-01-01")])
def test_what_cannot_number_a_step(stray):
    said = rf"row 3: the column 't' holds {re.escape(repr(stray))}; expected whole numbers of steps"
    for values in ([0, 1, 2, stray, 4], [0, 1, 2, stray, stray], pd.Series([0, 1, 2, stray, 4])):
        if isinstance(stray, pd.Timestamp):
            said = r"row 3: the column 't' holds .*2024.*; expected whole numbers of steps"
        with pytest.raises(bbn.EvidenceError, match=said):
            UMBRELLA.filter({"Umbrella": DAYS, "t": values}, time="t")


def test_gaps_within_reason_are_unobserved_steps():
    far = UMBRELLA.filter({"Umbrella": ["yes", "no"], "t": [0, 90_000]}, time="t")["Rain"]
    near = UMBRELLA.filter({"Umbrella": ["yes", "no"], "t": [0, 400]}, time="t")["Rain"]
    np.testing.assert_allclose(far[-1], near[-1], atol=1e-12)


def test_a_forecast_that_would_not_fit_is_refused_before_it_is_made():
    with pytest.raises(bbn.BudgetError, match="forecast fewer steps"):
        UMBRELLA.forecast({"Umbrella": ["yes"]}, 10**11)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: UMBRELLA.smooth({"Umbrella": ["yes"]}, lag=-1), "lag"),
        (lambda: UMBRELLA.forecast({"Umbrella": ["yes"]}, 0), "horizon"),
        (lambda: UMBRELLA.viterbi({"Umbrella": ["yes"]}, 0), "k must be"),
        (lambda: UMBRELLA.filter({"Umbrella": ["yes"]}, method="magic"), "no method"),
        (lambda: UMBRELLA.unroll(0), "steps"),
        (lambda: UMBRELLA.sample(0), "length"),
        (lambda: UMBRELLA.query("Rain"), "which step"),
        (lambda: UMBRELLA.query("Rain[0]", {"Umbrella": "yes"}), "at which step"),
        (lambda: UMBRELLA.filter({"Umbrella": ["yes"]})["Snow"], "Snow"),
        (lambda: UMBRELLA.filter({"Umbrella": ["yes"]}).at(5, "Rain"), "no step 5"),
        (lambda: UMBRELLA.start()["Rain"], "no step was taken"),
        (lambda: UMBRELLA.start().update({"Rain[0]": "yes"}), "no variable"),
    ],
)
def test_bad_questions(call, said):
    with pytest.raises(bbn.EvidenceError, match=said):
        call()


def test_impossible_evidence_names_the_step():
    a = bbn.Variable("A", ["x", "y"])
    stuck = bbn.DynamicNetwork([bbn.CPT(a, table=[0.5, 0.5])], [bbn.CPT(a, [bbn.Previous("A")], np.eye(2))])
    with pytest.raises(bbn.ImpossibleEvidenceError, match="step 2: A=y"):
        stuck.filter({"A": ["x", None, "y"]})
    assert stuck.log_likelihood({"A": ["x", None, "y"]}) == -np.inf
    with pytest.raises(bbn.ImpossibleEvidenceError):
        stuck.viterbi({"A": ["x", "y"]})
    state = stuck.start().update({"A": "x"})
    with pytest.raises(bbn.ImpossibleEvidenceError, match="step 1"):
        state.update({"A": "y"})


def test_a_path_that_doubles_cannot_hold_is_still_found():
    """Staying in x is 1e-320 times as likely as in y after 80 steps, and then only x is possible."""
    a, o = bbn.Variable("A", ["x", "y"]), bbn.Variable("O", ["p", "q"])
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(a, table=[0.5, 0.5])],
        [bbn.CPT(a, [bbn.Previous("A")], np.eye(2)), bbn.CPT(o, [a], [[1e-4, 1 - 1e-4], [1.0, 0.0]])],
    )
    seen = {"O": ["p"] * 100 + ["q"]}
    expected = np.log(0.5) + 100 * np.log(1e-4) + np.log(1 - 1e-4)
    assert dyn.log_likelihood(seen) == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(dyn.smooth(seen)["A"], np.tile([1.0, 0.0], (101, 1)), atol=1e-12)
    assert dyn.viterbi(seen).log_probability == pytest.approx(expected, abs=1e-9)


def test_densities_that_doubles_cannot_hold():
    a = bbn.Variable("A", ["x", "y"])
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(a, table=[1.0, 0.0])],
        [
            bbn.CPT(a, [bbn.Previous("A")], [[0.5, 0.5], [0.0, 1.0]]),
            bbn.Gaussian("X", [a], means=[0.0, 1000.0], variances=1.0),
        ],
    )
    net = dyn.unroll(2)
    expected = net.log_likelihood({"X[0]": [1000.0], "X[1]": [0.0]})[0]
    assert dyn.log_likelihood({"X": [1000.0, 0.0]}) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_filtering_keeps_nothing_of_what_it_has_seen():
    import tracemalloc

    dyn = bbn.example("umbrella")
    column = np.array(["yes", "no"])[np.random.default_rng(0).integers(0, 2, 100_000)]
    state = dyn.start().run({"Umbrella": column[:1000]})[0]
    tracemalloc.start()
    peaks, held = [], []
    for i in range(0, len(column), 1000):
        state = state.run({"Umbrella": column[i : i + 1000]})[0]
        now, peak = tracemalloc.get_traced_memory()
        held.append(now)
        peaks.append(peak)
        tracemalloc.reset_peak()
    tracemalloc.stop()
    one_batch = 1000 * 4 * 8  # what the beliefs of a batch take; keeping them would add 90 times that
    # nine batches of ten: tracemalloc sees what other threads of the process take, too
    assert sorted(peaks)[90] < sorted(peaks[:10])[9] + 3 * one_batch
    assert held[-1] < held[9] + 3 * one_batch
    assert state.step == 101_000


def test_a_million_steps_do_not_underflow():
    rng = np.random.default_rng(0)
    column = np.array(["yes", "no"])[rng.integers(0, 2, 1_000_000)]
    found = UMBRELLA.smooth({"Umbrella": column})["Rain"]
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    near = UMBRELLA.smooth({"Umbrella": column[499_900:500_100]})["Rain"]
    np.testing.assert_allclose(found[499_950:500_050], near[50:150], atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_row_by_row_and_in_batches_is_the_same_as_at_once(seed):
    rng = np.random.default_rng(seed)
    dyn = random_dynamic(rng, gaussians=seed % 4 == 0)
    steps = 6
    columns = random_evidence(rng, dyn, steps, virtual=seed % 3 == 0)
    whole = dyn.filter(columns)
    state = dyn.start(
        likelihoods=[n for n, own in columns.items() if any(isinstance(v, bbn.Virtual) for v in own)]
    )
    begun = state
    for t in range(steps):
        state = state.update({name: own[t] for name, own in columns.items()})
        for name in dyn.names:
            np.testing.assert_allclose(state[name], whole[name][t], atol=1e-10, err_msg=f"{name} {t}")
    assert state.log_evidence == pytest.approx(whole.log_evidence, abs=1e-9)
    assert pickle.loads(pickle.dumps(state)).update() is not None
    halves = [{name: own[part] for name, own in columns.items()} for part in (slice(0, 2), slice(2, None))]
    state, first = begun.run(halves[0])
    state, second = state.run(halves[1])
    for name in dyn.names:
        np.testing.assert_allclose(np.concatenate([first[name], second[name]]), whole[name], atol=1e-10)


def test_a_source_is_filtered_batch_by_batch(tmp_path):
    table = UMBRELLA.sample(50, n=3, seed=0)[["sequence", "Umbrella"]].reset_index(drop=True)
    paths = []
    for k in range(3):
        paths.append(tmp_path / f"{k}.parquet")
        table[["Umbrella"]].iloc[50 * k : 50 * k + 50].to_parquet(paths[-1])
    whole = UMBRELLA.filter(table[["Umbrella"]])
    parts = list(UMBRELLA.filter(bbn.open_data(str(tmp_path / "*.parquet"))))
    assert len(parts) > 1
    np.testing.assert_allclose(np.concatenate([part["Rain"] for part in parts]), whole["Rain"], atol=1e-12)
    table.iloc[:70].to_csv(tmp_path / "a.csv", index=False)
    found = {}
    for batch in UMBRELLA.filter(bbn.open_data(tmp_path / "a.csv"), sequence="sequence"):
        found |= batch
    assert [len(own) for own in found.values()] == [50, 20]


def kalman(rng: np.random.Generator) -> bbn.DynamicNetwork:
    x, y = bbn.Continuous("X"), bbn.Continuous("Y")
    pair = [bbn.Previous(x), bbn.Previous(y)] + ([bbn.Previous(x, 2)] if rng.random() < 0.5 else [])
    regime = bbn.Variable("R", ["a", "b"])
    start = [
        bbn.Gaussian("X", means=1.0, variances=2.0),
        bbn.Gaussian("Y", [x], means=0.0, variances=1.0, weights=0.5),
    ]
    later = [
        bbn.CPT(regime, table=[0.4, 0.6]),
        bbn.Gaussian("X", pair, means=0.3, variances=0.5, weights=rng.normal(0, 0.5, len(pair))),
        bbn.Gaussian("Y", [x, bbn.Previous(y)], means=-0.2, variances=0.7, weights=[0.8, -0.4]),
        bbn.Gaussian(
            "Z", [regime, x, y], means=[0.0, 1.0], variances=[1.0, 0.5], weights=rng.normal(size=(2, 2))
        ),
    ]
    return bbn.DynamicNetwork(start, later)


@pytest.mark.parametrize("seed", range(20))
def test_kalman_is_the_joint_gaussian_conditioned(seed):
    rng = np.random.default_rng(seed)
    dyn, steps = kalman(rng), 5
    regime = rng.choice(["a", "b"], steps).tolist()
    z = np.where(rng.random(steps) < 0.3, np.nan, rng.normal(size=steps))
    x = np.where(rng.random(steps) < 0.8, np.nan, rng.normal(size=steps))
    columns = {"R": regime, "Z": z, "X": x}
    mean, covariance, place = joint(dyn, steps, regime)
    seen = [(place["Z", t], z[t]) for t in range(steps) if z[t] == z[t]]
    seen += [(place["X", t], x[t]) for t in range(steps) if x[t] == x[t]]
    smoothed, filtered = dyn.smooth(columns), dyn.filter(columns)
    for t in range(steps):
        for name in ("X", "Y", "Z"):
            whole = conditioned(mean, covariance, seen, place[name, t])
            np.testing.assert_allclose(smoothed[name][t], whole, atol=1e-9)
            sofar = [(i, v) for i, v in seen if i < place["X", t + 1]]
            np.testing.assert_allclose(
                filtered[name][t], conditioned(mean, covariance, sofar, place[name, t]), atol=1e-9
            )
    at = [i for i, _ in seen]
    apart = np.array([v for _, v in seen]) - mean[at]
    own = covariance[np.ix_(at, at)]
    log = -0.5 * (apart @ np.linalg.solve(own, apart) + np.linalg.slogdet(2 * np.pi * own)[1])
    log += np.log([{"a": 0.4, "b": 0.6}[r] for r in regime]).sum()
    assert dyn.log_likelihood(columns) == pytest.approx(log, abs=1e-9)


def joint(dyn, steps, regime):
    """The joint normal of all numbers, by the structural equations one variable at a time."""
    net = dyn.unroll(steps)
    names = ["X", "Y", "Z"]
    place = {(n, t): 3 * t + k for t in range(steps + 1) for k, n in enumerate(names)}
    size = 3 * steps
    mean, covariance = np.zeros(size), np.zeros((size, size))
    for t in range(steps):
        for n in names:
            gaussian, i = net[f"{n}[{t}]"], place[n, t]
            index = (["a", "b"].index(regime[t]),) if gaussian.discrete_parents else ()
            row = np.zeros(size)
            for k, p in enumerate(gaussian.continuous_parents):
                own, _, at = p.name.partition("[")
                row[place[own, int(at[:-1])]] = gaussian.weights[index][k]
            mean[i] = gaussian.means[index] + row @ mean
            across = covariance @ row
            covariance[i], covariance[:, i] = across, across
            covariance[i, i] = gaussian.variances[index] + row @ across
    return mean, covariance, place


def conditioned(mean, covariance, seen, i):
    at = [k for k, _ in seen]
    if i in at:
        return [dict(seen)[i], 0.0]
    if not at:
        return [mean[i], covariance[i, i]]
    gain = np.linalg.solve(covariance[np.ix_(at, at)], covariance[at, i])
    return [
        mean[i] + gain @ (np.array([v for _, v in seen]) - mean[at]),
        covariance[i, i] - gain @ covariance[at, i],
    ]


def test_hidden_numbers_beside_hidden_states_are_refused_exactly_and_sampled():
    mode = bbn.Variable("Mode", ["slow", "fast"])
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(mode, table=[0.5, 0.5]), bbn.Gaussian("X", means=0.0, variances=1.0)],
        [
            bbn.CPT(mode, [bbn.Previous("Mode")], [[0.9, 0.1], [0.1, 0.9]]),
            bbn.Gaussian("X", [mode, bbn.Previous("X")], means=[0.0, 1.0], variances=0.5, weights=1.0),
            bbn.Gaussian("Y", [bbn.Continuous("X")], means=0.0, variances=0.3, weights=1.0),
        ],
    )
    with pytest.raises(bbn.EvidenceError, match="particles"):
        dyn.filter({"Y": [0.1, 0.5, 2.0]})
    found = dyn.filter({"Y": [0.1, 0.5, 2.0]}, method="particles", n_particles=4000, seed=0)
    net = dyn.unroll(3)
    exact = net.query("Mode[2]", {"Y[0]": 0.1, "Y[1]": 0.5, "Y[2]": 2.0})
    off = abs(found["Mode"][2] - exact.values)
    assert (off < 5 * found.std_error["Mode"][2]).all()
    assert 0 < found.effective_sample_size.min() <= 4000
    again = dyn.filter({"Y": [0.1, 0.5, 2.0]}, method="particles", n_particles=4000, seed=0)
    assert again == found


def test_a_wide_interface_can_be_sampled():
    chains = [bbn.Variable(f"C{i}", [0, 1]) for i in range(30)]
    stay = np.array([[0.8, 0.2], [0.3, 0.7]])
    total = bbn.Variable("O", [0, 1])
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(c, table=[0.5, 0.5]) for c in chains],
        [bbn.CPT(c, [bbn.Previous(c)], stay) for c in chains]
        + [bbn.CPT(total, chains[:3], np.full((2, 2, 2, 2), 0.5))],
    )
    exact = dyn.filter({"O": [0, 1]})
    np.testing.assert_allclose(exact["C29"][1], np.array([0.5, 0.5]) @ stay, atol=1e-12)
    found = dyn.filter({"O": [0, 1]}, method="particles", n_particles=500, seed=1)
    np.testing.assert_allclose(found["C29"][1], np.array([0.5, 0.5]) @ stay, atol=0.1)


def test_particles_approach_the_exact_beliefs():
    columns = {"Umbrella": DAYS * 4}
    exact = UMBRELLA.filter(columns)
    found = UMBRELLA.filter(columns, method="particles", n_particles=20_000, seed=5)
    assert abs(found["Rain"] - exact["Rain"]).max() < 0.02
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=0.1)
    never = bbn.DynamicNetwork([], [bbn.CPT(bbn.Variable("A", [0, 1]), table=[1.0, 0.0])])
    with pytest.raises(bbn.NoSampleError, match="n_particles"):
        never.filter({"A": [1]}, method="particles", seed=0)


def test_samples_follow_the_network():
    drawn = UMBRELLA.sample(3, n=20_000, seed=1)
    assert drawn.equals(UMBRELLA.sample(3, n=20_000, seed=1))
    assert list(drawn.columns) == ["sequence", "Rain", "Umbrella"]
    last = drawn[drawn.index == 2]
    exact = UMBRELLA.unroll(3).query(["Rain[2]", "Umbrella[2]"]).values
    counts = pd.crosstab(last["Rain"], last["Umbrella"]).to_numpy() / len(last)
    np.testing.assert_allclose(counts, exact, atol=0.02)
    assert list(UMBRELLA.sample(3, seed=1).columns) == ["Rain", "Umbrella"]


def test_the_k_best_paths_are_those_of_the_unrolled_network():
    found = UMBRELLA.viterbi({"Umbrella": ["yes", None, "no"]}, 4)
    best = UMBRELLA.unroll(3).mpe({"Umbrella[0]": "yes", "Umbrella[2]": "no"}, 4)
    assert [path.log_probability for path in found] == pytest.approx(
        [own.log_probability for own in best], abs=1e-12
    )
    assert (
        found[0] == UMBRELLA.viterbi({"Umbrella": ["yes", None, "no"]})
        or found[0].states == UMBRELLA.viterbi({"Umbrella": ["yes", None, "no"]}).states
    )


def test_beliefs_as_a_table_and_a_picture(tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    beliefs = UMBRELLA.smooth({"Umbrella": DAYS})
    frame = beliefs.to_frame()
    assert frame["Rain", "yes"].tolist() == beliefs["Rain"][:, 0].tolist()
    assert frame.index.name == "step"
    assert pickle.loads(pickle.dumps(beliefs)) == beliefs
    assert beliefs.mode("Rain") == ["yes", "yes", "no", "yes", "yes"]
    axes = beliefs.plot()
    assert axes.get_ylabel() == "Rain"
    assert len(beliefs.plot(["Rain", "Umbrella"])) == 2
    with pytest.raises(bbn.EvidenceError, match="one variable"):
        beliefs.plot(["Rain", "Umbrella"], ax=axes)
    assert UMBRELLA.plot().svg.count("Rain[1]")


def test_hmmlearn_agrees_on_the_same_parameters():
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(0)
    n, m = 4, 5
    model = hmmlearn.CategoricalHMM(n_components=n, n_features=m)
    model.startprob_ = rng.dirichlet(np.ones(n))
    model.transmat_, model.emissionprob_ = rng.dirichlet(np.ones(n), n), rng.dirichlet(np.ones(m), n)
    z, o = bbn.Variable("Z", list(range(n))), bbn.Variable("O", list(range(m)))
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(z, table=model.startprob_)],
        [bbn.CPT(z, [bbn.Previous("Z")], model.transmat_), bbn.CPT(o, [z], model.emissionprob_)],
    )
    lengths = rng.integers(1, 60, 20).tolist()
    x = rng.integers(0, m, (sum(lengths), 1))
    assert dyn.log_likelihood({"O": x[:, 0]}, lengths=lengths).sum() == pytest.approx(
        model.score(x, lengths), rel=1e-9
    )
    smoothed = dyn.smooth({"O": x[:, 0]}, lengths=lengths)
    found = np.concatenate([own["Z"] for own in smoothed.values()])
    np.testing.assert_allclose(found, model.predict_proba(x, lengths), atol=1e-9)
    paths = dyn.viterbi({"O": x[:, 0]}, lengths=lengths)
    logs, states = model.decode(x, lengths)
    assert sum(path.log_probability for path in paths.values()) == pytest.approx(logs, rel=1e-9)
    assert [s for path in paths.values() for s in path["Z"]] == states.tolist()
