"""Tests where counts are small, against every permutation listed and against many drawn ones."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest

import bbn
from bbn.learning.structure.discrete_scores import flatten
from bbn.learning.structure.independence import CountTests, independence_test
from bbn.learning.structure.permutation_moments import small_count_tests


def pearson_and_ratio(x, y, z):
    """Pearson's statistic and G², over the strata of z, by their definitions."""
    pearson = ratio = 0.0
    for level in set(z):
        here = [(a, b) for a, b, c in zip(x, y, z, strict=True) if c == level]
        cells, n = Counter(here), len(here)
        rows, columns = Counter(a for a, _ in here), Counter(b for _, b in here)
        for a in rows:
            for b in columns:
                expected = rows[a] * columns[b] / n
                seen = cells[a, b]
                pearson += (seen - expected) ** 2 / expected
                ratio += 2 * seen * np.log(seen / expected) if seen else 0.0
    return pearson, ratio


def test_moments_over_every_permutation():
    from scipy import stats

    # two strata, of 6 rows and of 3; the first is shuffled in every way, and so is the second
    x, y, z = [0, 0, 0, 1, 1, 2, 0, 1, 1], [0, 1, 1, 0, 2, 2, 1, 0, 1], [0] * 6 + [1] * 3
    both = [
        [pearson_and_ratio(x[s], list(p), z[s]) for p in permutations(y[s])] for s in (slice(6), slice(6, 9))
    ]
    values = np.array([np.add(a, b) for a in both[0] for b in both[1]])
    mean, variance = values[:, 0].mean(), values[:, 0].var()
    pearson, ratio = pearson_and_ratio(x, y, z)
    told = stats.gamma.sf(pearson, mean**2 / variance, scale=variance / mean)
    far = stats.chi2.sf(ratio, values[:, 1].mean())
    source = bbn.data.code({"x": x, "y": y, "z": z})
    (found,) = CountTests(source, "permutation")([("x", "y", ("z",))])
    assert found == pytest.approx(told if told >= 0.02 else max(told, min(0.02, far)), abs=1e-12)
    # the same table with its rows four times over: the tail, where G² has a say
    x, y, z = (column * 4 for column in (x, y, z))
    (found,) = CountTests(bbn.data.code({"x": x, "y": y, "z": z}), "permutation")([("x", "y", ("z",))])
    assert 0 < found < 0.02


def shuffled(rng, y, z):
    """y in a random order within each stratum."""
    order = np.lexsort((rng.random(len(y)), z))
    out = np.empty_like(y)
    out[np.argsort(z, kind="stable")] = y[order]
    return out


@pytest.mark.parametrize("seed", range(6))
def test_p_values_are_those_of_a_permutation_test(seed):
    rng = np.random.default_rng(seed)
    n = 80
    z = rng.integers(0, 8, n)
    x = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    y = np.where(rng.random(n) < 0.25, x, rng.choice(3, n, p=[0.1, 0.3, 0.6]))
    (found,) = CountTests(bbn.data.code({"x": x, "y": y, "z": z}), "permutation")([("x", "y", ("z",))])
    seen = pearson_and_ratio(x.tolist(), y.tolist(), z.tolist())
    draws = np.array(
        [pearson_and_ratio(x.tolist(), shuffled(rng, y, z).tolist(), z.tolist()) for _ in range(1500)]
    )
    by_permutation = (draws >= np.array(seen) - 1e-9).mean(axis=0)
    if found > 0.05:
        assert found == pytest.approx(by_permutation[0], abs=0.05)
    else:
        assert by_permutation.min() < 0.07


def test_large_counts_are_tested_by_the_likelihood_ratio():
    rng = np.random.default_rng(0)
    source = bbn.data.code({name: rng.integers(0, 2, 400) for name in "ABC"})
    triples = [("A", "B", ()), ("A", "B", ("C",))]
    plain = CountTests(source, "g2")(triples)
    assert CountTests(source, "permutation")(triples).tolist() == plain.tolist()
    counts = flatten(source.counts([("A", "C", "B")]), source.total)
    chosen, p = small_count_tests(counts, np.array([2]))
    assert len(chosen) == len(p) == 0


def test_what_tells_nothing_is_never_rejected():
    rows = {"A": ["a"] * 20, "B": ["b", "c"] * 10, "C": [f"c{i}" for i in range(20)]}
    source = bbn.data.code(rows)
    triples = [("A", "B", ()), ("B", "C", ()), ("A", "B", ("C",)), ("B", "A", ("C",))]
    assert independence_test(source, "permutation")(triples).tolist() == [1.0] * 4


def test_pc_takes_it_by_name():
    rows = bbn.example("cancer").sample(3000, seed=1)
    assert set(bbn.pc(rows, test="permutation")) == set(rows.columns)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["asia", "alarm", "child", "insurance", "sachs"])
def test_five_in_a_hundred_true_independences_are_rejected_at_five_per_cent(name):
    net = bbn.example(name)
    rejected, alarms, n_sets = [], 0, 500
    for seed in range(n_sets):
        found = bbn.check_independences(net, net.sample(500, seed=seed))
        rejected.append(np.mean([one.p_value <= 0.05 for one in found]))
        alarms += not found.holds
    assert 0.04 <= np.mean(rejected) <= 0.06
    assert alarms / n_sets <= 0.06


@pytest.mark.parametrize("test", ["g2", "chi2", "mi", "permutation"])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_far_larger_than_the_data_give_the_same_from_the_settings_that_rows_have(test, weighted):
    """The settings of 14 columns, and the same settings as the states of one column that only lists them."""
    rng = np.random.default_rng(3)
    n = 600
    given = [f"Z{i:02d}" for i in range(14)]
    kinds = rng.integers(0, 2, (25, 14))
    kind = rng.integers(0, 25, n)
    rows = {name: kinds[kind, i] for i, name in enumerate(given)}
    rows |= {"X": rng.integers(0, 3, n), "Y": rng.integers(0, 2, n)}
    rows["V"] = np.where(rng.random(n) < 0.3, rows["X"], rng.integers(0, 3, n))
    settings = {tuple(row): k for k, row in enumerate(np.unique(kinds, axis=0).tolist())}
    rows["All"] = [settings[tuple(row)] for row in kinds[kind].tolist()]
    weights = rng.integers(1, 4, n) if weighted else None
    source = bbn.data.code(rows, weights=weights)
    wide = [("X", "Y", tuple(given)), ("X", "V", tuple(given))]
    narrow = [("X", "Y", ("All",)), ("X", "V", ("All",)), ("X", "V", ())]
    found = CountTests(source, test)([*wide, ("X", "V", ())])
    if test == "mi":  # counts every setting, also those that no row has
        ratio = CountTests(source, "g2")(narrow)
        freedom = np.array([2 * 2**14, 4 * 2**14])
        from scipy.stats import chi2

        statistic = chi2.isf(ratio[:2], [2 * len(settings), 4 * len(settings)])
        assert found[:2] == pytest.approx(chi2.sf(statistic, freedom), rel=1e-6)
        return
    assert found.tolist() == pytest.approx(CountTests(source, test)(narrow).tolist(), rel=1e-9)


def test_causes_that_no_table_could_hold_are_tested():
    """X has 40 causes, and W is said to be none: true in half of the data sets."""
    names = [f"Z{i:02d}" for i in range(40)]
    graph = bbn.CausalGraph([(name, "X") for name in names] + [("W", "Z00")])
    p_values = {True: [], False: []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rows = {name: (rng.random(300) < 0.02).astype(int) for name in (*names, "W")}
        rows["W"] = rng.integers(0, 2, 300)
        acts = bool(seed % 2)
        rows["X"] = (rng.random(300) < 0.3 + 0.3 * rows["Z01"] + 0.4 * acts * rows["W"]).astype(int)
        one = next(c for c in bbn.check_independences(graph, rows) if {c.x, c.y} == {"W", "X"})
        assert len(one.given) == 40
        p_values[acts].append(one.p_value)
    assert np.mean(np.array(p_values[False]) <= 0.05) <= 4 / 30  # a binomial has more once in 300
    assert np.median(p_values[True]) < 0.01
