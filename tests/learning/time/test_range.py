"""EM over sequences whose numbers leave the range of a double, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import bbn
from tests.inference.time.test_range import coin
from tests.support.exact_truth import log


def hidden_chain(start: np.ndarray, moves: np.ndarray, shows: np.ndarray) -> bbn.DynamicNetwork:
    """A hidden Markov model with these tables."""
    hidden = bbn.Variable("Z", list(range(len(start))))
    sign = bbn.Variable("X", list(range(shows.shape[1])))
    return bbn.DynamicNetwork(
        [bbn.CPT(hidden, [], start)],
        [bbn.CPT(hidden, [bbn.Previous(hidden)], moves), bbn.CPT(sign, [hidden], shows)],
    )


def fractions(table: np.ndarray) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(table)


def exact_step(
    tables: list[np.ndarray], sequences: list[list[int | None]], weights: list[int]
) -> tuple[float, list[np.ndarray]]:
    """ln P of all sequences, and the expected counts: forward and backward in exact fractions."""
    start, moves, shows = map(fractions, tables)
    starts, pairs, seen = start * 0, moves * 0, shows * 0
    whole = 0.0
    for codes, weight in zip(sequences, weights, strict=True):
        given = [shows[:, x] if x is not None else start * 0 + 1 for x in codes]
        alpha = [start * given[0]]
        for own in given[1:]:
            alpha.append((alpha[-1] @ moves) * own)
        total = alpha[-1].sum()
        whole += weight * log(total)
        beta = start * 0 + 1
        for t in range(len(codes) - 1, -1, -1):
            gamma = weight * alpha[t] * beta / total
            if codes[t] is None:
                seen += gamma[:, None] * shows
            else:
                seen[:, codes[t]] += gamma
            if t == 0:
                starts += gamma
                break
            pairs += weight * alpha[t - 1][:, None] * moves * (given[t] * beta)[None] / total
            beta = moves @ (given[t] * beta)
    return whole, [starts, pairs, seen]


def step_of(
    dyn: bbn.DynamicNetwork, sequences: list[list[int | None]], weights: list[int]
) -> tuple[float, list]:
    result = bbn.fit_em(dyn, [{"X": own} for own in sequences], weights=weights, max_iter=1, tol=-1.0)
    found = result.network
    return result.log_likelihoods[0], [found.conditional("Z", 0).table, found["Z"].table, found["X"].table]


def agrees(
    tables: list[np.ndarray], sequences: list[list[int | None]], weights: list[int], rtol: float
) -> None:
    whole, expected = exact_step(tables, sequences, weights)
    found, learned = step_of(hidden_chain(*tables), sequences, weights)
    assert found == pytest.approx(whole, rel=1e-11)
    for table, counts in zip(learned, expected, strict=True):
        sums = counts.sum(axis=-1, keepdims=True).astype(float)
        # counts are doubles: one below 1e-300 is as good as none
        np.testing.assert_allclose(
            np.where(sums > 1e-290, table * sums, counts.astype(float)), counts.astype(float), rtol, 1e-300
        )


def test_a_coin_that_is_pulled_both_ways() -> None:
    found = bbn.fit_em(coin([0.5, 0.5]), {"Toss": ["h"] * 900 + ["t"] * 900}, max_iter=1, tol=-1.0)
    np.testing.assert_allclose(found.network["Toss"].table, 0.5, rtol=1e-9)
    np.testing.assert_allclose(found.network.conditional("Bias", 0).table, 0.5, rtol=1e-9)
    np.testing.assert_allclose(found.network["Bias"].table, np.eye(2), atol=1e-300)


def test_one_sequence_out_of_range_among_others() -> None:
    tables = [np.array([0.25, 0.75]), np.eye(2), np.array([[0.25, 0.75], [0.625, 0.375]])]
    long: list[int | None] = [0] * 800 + [1] * 740
    agrees(tables, [[0, 1, None, 0], long, [1] * 5, long[::-1]], [1, 2, 1, 3], 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_with_entries_down_to_1e_300(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    tables = []
    for shape in ((n,), (n, n), (n, m)):
        table = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
        small = rng.random(shape) < 0.3
        table = np.where(small, table * 10.0 ** -rng.uniform(50, 300, shape), table)
        table = np.where(rng.random(shape) < 0.1, 0.0, table)
        sums = table.sum(axis=-1, keepdims=True)
        tables.append(np.where(sums > 0.01, table / np.where(sums > 0, sums, 1), 1 / shape[-1]))
    sequences = []
    for _ in range(3):
        codes: list[int | None] = rng.integers(0, m, int(rng.integers(1, 12))).tolist()
        sequences.append([None if rng.random() < 0.2 else x for x in codes])
    possible = []
    for own in sequences:
        try:
            exact_step(tables, [own], [1])
        except (ZeroDivisionError, ValueError):
            continue
        possible.append(own)
    if possible:
        agrees(tables, possible, [1] * len(possible), 1e-8)
