"""Learning over sequences against sums over all hidden paths, against counting by hand, and its own theorems."""

import itertools

import numpy as np
import pytest

import bbn
from tests.support.dynamic_truth import random_dynamic


def brute_force_step(dyn, sequences):
    """One step of EM by listing every completion of every sequence: expected counts of each family of the template."""
    counts = {n: np.zeros(dyn.template[n].table.shape) for n in dyn.template.names if "[-" not in n}
    total = 0.0
    for rows in sequences:
        net = dyn.unroll(len(rows))
        names = list(net.names)
        given = {}
        for t, row in enumerate(rows):
            for name, state in row.items():
                if state is not None:
                    given[name if name in dyn.static else f"{name}[{t}]"] = state
        options = [[given[n]] if n in given else list(net.states(n)) for n in names]
        found = [(dict(zip(names, states, strict=True)), 0.0) for states in itertools.product(*options)]
        found = [(states, net.probability(states)) for states, _ in found]
        mass = sum(p for _, p in found)
        total += np.log(mass)
        for states, p in found:
            if p == 0:
                continue
            for n in names:
                plain, _, rest = n.partition("[")
                t = int(rest[:-1]) if rest else 0
                cpt = net[n]
                index = tuple(v.code(states[v.name]) for v in (*cpt.parents, cpt.variable))
                counts[dyn.family(plain, t) if plain not in dyn.static else plain][index] += p / mass
    tables = {}
    for n, own in counts.items():
        sums = own.sum(axis=-1, keepdims=True)
        tables[n] = np.where(sums > 0, own / np.where(sums > 0, sums, 1), 1 / own.shape[-1])
    return total, tables


def small_problem(seed):
    rng = np.random.default_rng(seed)
    while True:
        dyn = random_dynamic(rng)
        if np.prod([v.card for v in dyn.variables]) <= 12:
            break
    sequences = []
    for _ in range(2):
        drawn = dyn.sample(int(rng.integers(1, 4)), seed=rng)
        rows = [
            {name: None if rng.random() < 0.4 else row[name] for name in dyn.names}
            for _, row in drawn.iterrows()
        ]
        for name in dyn.static:  # said in the first step, or never
            for row in rows[1:]:
                row[name] = rows[0][name]
        sequences.append(rows)
    return dyn, sequences


@pytest.mark.parametrize("block", range(4))
def test_em_is_em_over_all_hidden_paths(block):
    for seed in range(25 * block, 25 * block + 25):
        dyn, sequences = small_problem(seed)
        data = [{name: [row[name] for row in rows] for name in dyn.names} for rows in sequences]
        result = bbn.fit_em(dyn, data, max_iter=3, tol=-1.0)
        current = dyn
        for step in range(result.n_iter):  # fewer where nothing was observed
            log, tables = brute_force_step(current, sequences)
            assert result.log_likelihoods[step] == pytest.approx(log, abs=1e-9), seed
            net = current.template.with_cpts(
                [
                    bbn.CPT(c.variable, c.parents, tables[c.name])
                    for c in current.template.conditionals
                    if c.name in tables
                ]
            )
            current = current.with_template(net)
        assert (np.diff(result.log_likelihoods) > -1e-9).all()
        for name, table in ((n, current.template[n].table) for n in current.template.names):
            if name in result.network.template:
                np.testing.assert_allclose(
                    result.network.template[name].table, table, atol=1e-9, err_msg=f"{seed} {name}"
                )


def test_counting_is_counting():
    dyn = bbn.example("umbrella")
    data = {
        "id": [1, 1, 1, 2, 2],
        "Rain": ["yes", "yes", "no", "no", "no"],
        "Umbrella": ["yes", "no", "no", "no", "yes"],
    }
    found = bbn.fit(dyn, data, sequence="id")
    assert found.conditional("Rain", 0).table.tolist() == [0.5, 0.5]
    assert found["Rain"].row("yes") == {"yes": 0.5, "no": 0.5}
    assert found["Rain"].row("no") == {"yes": 0.0, "no": 1.0}
    assert found["Umbrella"].row("no") == {"yes": pytest.approx(1 / 3), "no": pytest.approx(2 / 3)}
    halves = [{k: data[k][part] for k in ("Rain", "Umbrella")} for part in (slice(3), slice(3, None))]
    weighted = bbn.fit(dyn, halves, weights=[1, 3])
    assert weighted.conditional("Rain", 0).table.tolist() == [0.25, 0.75]
    smoothed = bbn.fit(dyn, data, sequence="id", prior=bbn.Dirichlet(1))
    assert smoothed["Rain"].row("yes") == {"yes": 0.5, "no": 0.5}
    assert smoothed["Rain"].row("no") == {"yes": pytest.approx(1 / 3), "no": pytest.approx(2 / 3)}
    complete = bbn.fit_em(dyn, data, sequence="id", max_iter=1)
    for name in found.template.names:
        np.testing.assert_allclose(
            complete.network.template[name].table, found.template[name].table, atol=1e-12
        )


def test_fit_recovers_what_drew_the_sequences():
    rng = np.random.default_rng(4)
    dyn = random_dynamic(np.random.default_rng(8), gaussians=True)
    drawn = dyn.sample(30, n=400, seed=rng)
    found = bbn.fit(dyn, drawn, sequence="sequence", prior=bbn.Dirichlet(1e-6))
    fitted = bbn.fit_em(dyn, drawn, sequence="sequence", max_iter=2, prior=bbn.Dirichlet(1e-6))
    for name in dyn.template.names:
        own = found.template[name]
        if isinstance(own, bbn.Gaussian):
            np.testing.assert_allclose(own.means, dyn.template[name].means, atol=0.2)
            np.testing.assert_allclose(fitted.network.template[name].means, own.means, atol=1e-6)
            np.testing.assert_allclose(fitted.network.template[name].variances, own.variances, atol=1e-6)
        else:
            np.testing.assert_allclose(fitted.network.template[name].table, own.table, atol=1e-6)


def test_hidden_states_with_gaussians_and_holes_never_fall():
    z = bbn.Variable("Z", ["a", "b"])
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(z, table=[0.5, 0.5])],
        [
            bbn.CPT(z, [bbn.Previous("Z")], [[0.9, 0.1], [0.2, 0.8]]),
            bbn.Gaussian("X", [z], means=[0.0, 3.0], variances=[1.0, 0.5]),
            bbn.Gaussian("Y", [z], means=[5.0, -5.0], variances=[2.0, 1.0]),
        ],
    )
    data = dyn.sample(50, n=40, seed=2).drop(columns="Z")
    data.loc[np.random.default_rng(0).random(len(data)) < 0.3, "X"] = np.nan
    result = bbn.fit_em(dyn, data, sequence="sequence", hidden=["Z"], restarts=2, seed=0)
    assert (np.diff(result.objectives) > -1e-7).all()
    found = sorted(result.network["Y"].means.tolist())
    assert found == pytest.approx([-5, 5], abs=0.3)
    total = result.network.log_likelihood(data, sequence="sequence").sum()
    assert result.log_likelihood == pytest.approx(total, rel=1e-9)


def test_an_autoregressive_number_below_a_hidden_state():
    z = bbn.Variable("Z", ["calm", "wild"])
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(z, table=[0.5, 0.5]), bbn.Gaussian("X", means=0.0, variances=1.0)],
        [
            bbn.CPT(z, [bbn.Previous("Z")], [[0.95, 0.05], [0.1, 0.9]]),
            bbn.Gaussian(
                "X", [z, bbn.Previous("X")], means=[0.0, 1.0], variances=[0.1, 2.0], weights=[[0.5], [0.9]]
            ),
        ],
    )
    data = dyn.sample(200, n=10, seed=1)[["sequence", "X"]]
    result = bbn.fit_em(dyn, data, sequence="sequence", max_iter=30)
    assert (np.diff(result.log_likelihoods) > -1e-7).all()
    np.testing.assert_allclose(result.network["X"].weights.ravel(), [0.5, 0.9], atol=0.1)
    total = result.network.log_likelihood(data, sequence="sequence").sum()
    assert result.log_likelihood == pytest.approx(total, rel=1e-9)


def test_checkpoints_weights_priors_and_fixed_tables(tmp_path):
    dyn = bbn.example("umbrella")
    data = dyn.sample(20, n=10, seed=0)[["sequence", "Umbrella"]]
    options = {"sequence": "sequence", "hidden": ["Rain"], "prior": bbn.Dirichlet(0.5), "tol": 0.0}
    whole = bbn.fit_em(dyn, data, max_iter=20, **options)
    path = tmp_path / "check"
    bbn.fit_em(dyn, data, max_iter=8, checkpoint=path, **options)
    went_on = bbn.fit_em(dyn, data, max_iter=20, checkpoint=path, **options)
    assert went_on.network == whole.network
    assert (np.diff(whole.objectives) > -1e-9).all()
    kept = bbn.fit_em(dyn, data, sequence="sequence", fixed=["Umbrella"], max_iter=5).network
    assert kept["Umbrella"] == dyn["Umbrella"]
    twice = data.assign(w=np.where(data["sequence"] == 3, 2.0, 1.0))
    doubled = [own[["Umbrella"]] for _, own in data.groupby("sequence")]
    doubled.append(doubled[3])
    a = bbn.fit_em(dyn, twice, sequence="sequence", weights="w", max_iter=3).network
    b = bbn.fit_em(dyn, doubled, max_iter=3).network
    np.testing.assert_allclose(a["Rain"].table, b["Rain"].table, atol=1e-12)


def test_a_source_larger_than_memory_gives_the_same(tmp_path):
    dyn = bbn.example("umbrella")
    data = dyn.sample(15, n=12, seed=0).reset_index(drop=True)
    for k, part in enumerate(np.array_split(np.arange(len(data)), 4)):
        data.iloc[part].to_parquet(tmp_path / f"{k}.parquet")
    source = bbn.open_data(str(tmp_path / "*.parquet"))
    assert bbn.fit(dyn, source, sequence="sequence") == bbn.fit(dyn, data, sequence="sequence")
    streamed = bbn.fit_em(dyn, source, sequence="sequence", max_iter=3)
    whole = bbn.fit_em(dyn, data, sequence="sequence", max_iter=3)
    np.testing.assert_allclose(streamed.network["Rain"].table, whole.network["Rain"].table, atol=1e-12)
    shuffled = data.sample(frac=1, random_state=0)
    for k, part in enumerate(np.array_split(np.arange(len(data)), 4)):
        shuffled.iloc[part].to_parquet(tmp_path / f"{k}.parquet")
    with pytest.raises(bbn.DataError, match="do not lie together"):
        bbn.fit(dyn, bbn.open_data(str(tmp_path / "*.parquet")), sequence="sequence")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda d: bbn.fit(d, {"Umbrella": ["yes"]}), "no column 'Rain'"),
        (lambda d: bbn.fit(d, {"Umbrella": ["yes"], "Rain": [None]}), "fit_em"),
        (lambda d: bbn.fit([("A", "B")], {"A": [1], "B": [2]}, sequence="A"), "dynamic"),
        (lambda d: bbn.fit_em(d, {"Umbrella": ["yes"]}, hidden=["Rian"]), "did you mean 'Rain'"),
        (lambda d: bbn.fit_em(d, {"Umbrella": ["yes"], "Rain": ["yes"]}, hidden=["Rain"]), "has values"),
        (lambda d: bbn.fit_em(d, {"Umbrella": ["yes"]}, hidden={"Rain": ["a", "b"]}), "the states"),
        (lambda d: bbn.fit_em(d, {"Umbrella": ["yes"]}, fixed=["Snow"]), "Snow"),
        (lambda d: bbn.fit_em(d, {"Umbrella": ["yes"]}, weights=[0.0]), "weight"),
    ],
)
def test_bad_input(call, said):
    with pytest.raises(bbn.DataError, match=said):
        call(bbn.example("umbrella"))
