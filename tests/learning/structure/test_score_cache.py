"""Scores against their formulas written out with dicts, against pgmpy, and against what is proved about them."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from bbn.core.errors import DataError, ModelError
from bbn.kernels import score as kernels
from bbn.kernels.pure import score as twin
from bbn.learning.structure.constraints import complete_source
from bbn.learning.structure.discrete_scores import SCORES, as_term, log_regret
from bbn.learning.structure.score_cache import ScoreCache, family_scores, score

TEN_CASES = ["100", "111", "001", "111", "000", "011", "111", "000", "111", "000"]


def ten_cases() -> dict[str, list[int]]:
    return {f"x{i + 1}": [int(case[i]) for case in TEN_CASES] for i in range(3)}


def random_data(rng: np.random.Generator, n_rows: int, cards: list[int]) -> dict[str, list[int]]:
    """Columns A, B, … that depend on each other; every state occurs."""
    columns: dict[str, list[int]] = {}
    earlier: list[np.ndarray] = []
    for i, card in enumerate(cards):
        base = sum(earlier) if earlier else np.zeros(n_rows, dtype=int)
        noise = rng.integers(card, size=n_rows)
        column = np.where(rng.random(n_rows) < 0.6, base % card, noise)
        column[:card] = np.arange(card)
        earlier.append(column)
        columns["ABCDEFGH"[i]] = column.tolist()
    return columns


def regret(card: int, n: int) -> float:
    """Σ over all ways to deal n rows to `card` states of the likelihood at its maximum, by definition."""
    total = 0.0
    for ks in product(range(n + 1), repeat=card):
        if sum(ks) == n:
            ways = math.factorial(n)
            p = 1.0
            for k in ks:
                ways //= math.factorial(k)
                p *= (k / n) ** k
            total += ways * p
    return math.log(total)


def slow_term(
    data: dict[str, list[Any]], child: str, parents: tuple[str, ...], name: str, ess: float = 1.0
) -> float:
    """One family's term from dictionaries of counts."""
    n_rows = len(data[child])
    r = len(set(data[child]))
    q = math.prod(len(set(data[p])) for p in parents)
    cells = Counter((tuple(data[p][i] for p in parents), data[child][i]) for i in range(n_rows))
    rows = Counter(tuple(data[p][i] for p in parents) for i in range(n_rows))
    likelihood = math.fsum(n * math.log(n / rows[j]) for (j, _), n in cells.items())
    if name == "log-likelihood":
        return likelihood
    if name in ("bic", "mdl"):
        return likelihood - 0.5 * math.log(n_rows) * q * (r - 1)
    if name == "aic":
        return likelihood - q * (r - 1)
    if name == "fnml":
        return likelihood - math.fsum(regret(r, n) for n in rows.values())
    alpha = {"k2": 1.0, "bdeu": ess / (q * r), "bds": ess / (len(rows) * r)}[name]
    return math.fsum(math.lgamma(alpha + n) - math.lgamma(alpha) for n in cells.values()) + math.fsum(
        math.lgamma(r * alpha) - math.lgamma(r * alpha + n) for n in rows.values()
    )


def test_the_ten_cases_of_cooper_and_herskovits():
    data = ten_cases()
    chain = math.exp(score([("x1", "x2"), ("x2", "x3")], data, "k2"))
    fork = math.exp(score([("x1", "x2"), ("x1", "x3")], data, "k2"))
    assert chain == pytest.approx(2.2268540787e-9, rel=1e-10)
    assert fork == pytest.approx(2.2268540787e-10, rel=1e-10)
    assert chain / fork == pytest.approx(10, rel=1e-12)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("seed", range(10))
def test_each_score_is_its_formula(name, seed):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, size=4).tolist() if name == "fnml" else rng.integers(1, 6, size=4).tolist()
    data = random_data(rng, int(rng.integers(8, 13 if name == "fnml" else 400)), cards)
    arcs = [("A", "B"), ("A", "C"), ("B", "C"), ("A", "D"), ("B", "D"), ("C", "D")]
    kept = [arc for arc in arcs if rng.random() < 0.6]
    graph = nx.DiGraph(kept)
    graph.add_nodes_from("ABCD")
    terms = family_scores(graph, data, name)
    for child in "ABCD":
        expected = slow_term(data, child, tuple(graph.predecessors(child)), name)
        assert terms[child] == pytest.approx(expected, rel=1e-11, abs=1e-9)
    assert score(graph, data, name) == pytest.approx(sum(terms.values()), rel=1e-13)


@pytest.mark.parametrize("ess", [0.5, 10, 200])
def test_another_equivalent_sample_size(ess):
    class Prior:
        equivalent_sample_size = ess

    data = random_data(np.random.default_rng(3), 300, [2, 3, 4])
    expected = slow_term(data, "C", ("A", "B"), "bdeu", ess)
    assert family_scores([("A", "C"), ("B", "C")], data, Prior())["C"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["bdeu", "bic", "aic", "log-likelihood"])
def test_equivalent_structures_score_alike(name):
    data = random_data(np.random.default_rng(5), 500, [2, 3, 4])
    chain, back, fork = [("A", "B"), ("B", "C")], [("C", "B"), ("B", "A")], [("B", "A"), ("B", "C")]
    values = [score(arcs, data, name) for arcs in (chain, back, fork)]
    np.testing.assert_allclose(values, values[0], rtol=1e-12)
    collider = score([("A", "B"), ("C", "B")], data, name)
    assert abs(collider - values[0]) > 1e-3


def test_k2_tells_equivalent_structures_apart():
    data = random_data(np.random.default_rng(5), 500, [2, 3])
    assert abs(score([("A", "B")], data, "k2") - score([("B", "A")], data, "k2")) > 1e-3


@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        ("k2", "K2", {}),
        ("bdeu", "BDeu", {"equivalent_sample_size": 1}),
        ("bic", "BIC", {}),
        ("aic", "AIC", {}),
    ],
)
def test_pgmpy_agrees(ours, theirs, options):
    scores = pytest.importorskip("pgmpy.structure_score")
    data = random_data(np.random.default_rng(11), 400, [2, 3, 2, 4])
    frame = pd.DataFrame(data)
    scorer = getattr(scores, theirs)(frame, **options)
    for child, parents in [("A", ()), ("B", ("A",)), ("D", ("A", "B")), ("C", ("A", "B", "D"))]:
        graph = nx.DiGraph((p, child) for p in parents)
        graph.add_nodes_from(data)
        assert family_scores(graph, data, ours)[child] == pytest.approx(
            scorer.local_score(child, parents), rel=1e-10
        )


def test_the_regret_is_its_definition():
    for card in range(1, 5):
        sizes = np.arange(1, 9)
        np.testing.assert_allclose(log_regret(card, sizes), [regret(card, int(n)) for n in sizes], rtol=1e-12)


def test_the_regret_of_many_rows():
    # √(πn/2) + 2/3 + … (Szpankowski 1998), whose next term is below 0.001 here
    n = 10**6
    exact = float(np.exp(log_regret(2, np.array([n])))[0])
    assert exact == pytest.approx(math.sqrt(math.pi * n / 2) + 2 / 3, abs=1e-3)


def test_compiled_kernels_equal_their_twins():
    rng = np.random.default_rng(0)
    cards = rng.integers(1, 6, size=40)
    sizes = cards * rng.integers(1, 30, size=40)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.where(rng.random(ptr[-1]) < 0.4, 0, rng.integers(0, 3000, size=ptr[-1]))
    alphas = rng.choice([1.0, 0.01, 0.3, 50.0], size=40)
    for cells in (counts, counts + np.where(counts > 0, rng.random(ptr[-1]), 0.0)):
        np.testing.assert_allclose(
            kernels.log_likelihoods(cells, ptr, cards),
            twin.log_likelihoods(cells, ptr, cards),
            rtol=1e-12,
            atol=1e-9,
        )
        np.testing.assert_allclose(
            kernels.log_dirichlets(cells, ptr, cards, alphas),
            twin.log_dirichlets(cells, ptr, cards, alphas),
            rtol=1e-12,
            atol=1e-8,
        )
        assert (kernels.observed_rows(cells, ptr, cards) == twin.observed_rows(cells, ptr, cards)).all()


@pytest.mark.parametrize("kernel", [kernels, twin])
@pytest.mark.parametrize("ess", [1e-3, 1.0, 1e3, 1e7, 1e12])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_any_equivalent_sample_size_keeps_its_digits(kernel, ess, dtype):
    """Against ln ∏ (α + i), summed without error."""
    counts = np.array([[3, 0, 40], [1, 900, 17], [2, 2, 16]])
    alpha = ess / counts.size
    logs = [math.log(alpha + i) for n in counts.reshape(-1).tolist() for i in range(n)]
    logs += [-math.log(3 * alpha + i) for n in counts.sum(axis=1).tolist() for i in range(n)]
    found = kernel.log_dirichlets(
        counts.reshape(-1).astype(dtype), np.array([0, 9]), np.array([3]), np.array([alpha])
    )
    assert found[0] == pytest.approx(math.fsum(logs), abs=1e-15 * sum(map(abs, logs)))


def test_weights_count_as_repeated_rows():
    data = random_data(np.random.default_rng(2), 60, [2, 3])
    times = np.random.default_rng(3).integers(1, 4, size=60)
    repeated = {name: np.repeat(column, times).tolist() for name, column in data.items()}
    for name in SCORES:
        assert score([("A", "B")], data, name, weights=times) == pytest.approx(
            score([("A", "B")], repeated, name), rel=1e-12
        )


def test_a_declared_state_that_never_occurs_counts():
    data = {"A": [0, 0, 1], "B": ["x", "y", "x"]}
    graph = nx.DiGraph([("A", "B")])
    graph.nodes["B"]["states"] = ("x", "y", "z")
    two, three = score([("A", "B")], data, "k2"), score(graph, data, "k2")
    assert three < two
    assert three == score([("A", "B")], data, "k2", states={"B": ["x", "y", "z"]})


def test_families_are_counted_once():
    data = random_data(np.random.default_rng(7), 50, [2, 2, 3])
    cache = ScoreCache(complete_source(data, "test"), "bic")
    first = cache.many([(2, 0b011), (1, 0b001), (2, 0b011)])
    assert cache.n_evaluated == 2
    assert cache[2, 0b011] == first[0] == first[2]
    assert cache.n_evaluated == 2
    assert first[0] == pytest.approx(slow_term(data, "C", ("A", "B"), "bic"), rel=1e-12)


class TestErrors:
    def test_an_unknown_score_names_the_nearest(self):
        with pytest.raises(ValueError, match="did you mean 'bdeu'"):
            as_term("bdue")

    def test_missing_values_name_the_way_out(self):
        with pytest.raises(DataError, match=r"structural_em.*fit_em"):
            score([("A", "B")], {"A": [0, None, 1], "B": [0, 1, 1]})

    def test_a_cycle(self):
        with pytest.raises(ModelError, match="cycle"):
            score([("A", "B"), ("B", "C"), ("C", "A")], {n: [0, 1] for n in "ABC"})

    def test_a_cpdag_names_to_dag(self):
        with pytest.raises(ModelError, match="to_dag"):
            score(nx.DiGraph([("A", "B"), ("B", "A")]), {n: [0, 1] for n in "AB"})

    def test_an_unknown_column(self):
        with pytest.raises(DataError, match="did you mean 'Rain'"):
            score([("Rian", "Wet")], {"Rain": [0, 1], "Wet": [0, 1]})

    def test_fractional_weights_under_fnml(self):
        with pytest.raises(DataError, match="whole counts"):
            score([("A", "B")], {"A": [0, 1], "B": [0, 1]}, "fnml", weights=[0.5, 1.0])
