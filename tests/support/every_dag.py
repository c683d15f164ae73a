"""Every DAG of a few variables, and the score of every family by plain counting: the truth for exact searches."""

from __future__ import annotations

import functools
import math

import numpy as np
import pandas as pd
from scipy.special import gammaln


def table(seed: int, n: int, rows: int = 60) -> pd.DataFrame:
    """Random columns of two to four states that lean on those before them."""
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    for i in range(n):
        card = int(rng.integers(2, 5))
        value = rng.integers(card, size=rows)
        for other in columns.values():
            if rng.random() < 0.5:
                value = np.where(rng.random(rows) < 0.6, other % card, value)
        columns[f"X{i}"] = value
    names = rng.permutation(list(columns))
    return "s" + pd.DataFrame({name: columns[name] for name in names}).astype(str)


@functools.cache
def dags(n: int) -> np.ndarray:
    """Every DAG of n variables: a row each, the masks of their parents."""
    sets = [[m for m in range(1 << n) if not m >> i & 1] for i in range(n)]
    parents = np.stack(np.meshgrid(*sets, indexing="ij"), axis=-1).reshape(-1, n)
    left = np.full(len(parents), (1 << n) - 1)
    for _ in range(n):
        for i in range(n):
            free = (left >> i & 1 == 1) & (parents[:, i] & left == 0)
            left[free] ^= 1 << i
    return parents[left == 0]


def family_terms(data: pd.DataFrame, score: str) -> tuple[list[str], np.ndarray]:
    """The term [child, mask of parents] of every family, NaN where the child is among them."""
    names = sorted(data.columns)
    codes = [pd.factorize(data[name])[0] for name in names]
    cards = [int(column.max()) + 1 for column in codes]
    n = len(names)
    terms = np.full((n, 1 << n), np.nan)
    for i in range(n):
        for mask in range(1 << n):
            if mask >> i & 1:
                continue
            setting, q, r = np.zeros(len(data), dtype=int), 1, cards[i]
            for j in range(n):
                if mask >> j & 1:
                    setting, q = setting * cards[j] + codes[j], q * cards[j]
            counts = np.bincount(setting * r + codes[i], minlength=q * r).reshape(q, r).astype(float)
            if score == "bic":
                totals = counts.sum(axis=1)
                seen = counts[counts > 0]
                likelihood = (seen * np.log(seen)).sum() - (totals * np.log(np.maximum(totals, 1))).sum()
                terms[i, mask] = likelihood - 0.5 * math.log(len(data)) * q * (r - 1)
            else:
                a = 1 / (q * r)
                rows = gammaln(r * a) - gammaln(r * a + counts.sum(axis=1))
                terms[i, mask] = rows.sum() + (gammaln(a + counts) - gammaln(a)).sum()
    return names, terms


def totals(terms: np.ndarray) -> np.ndarray:
    """The score of every DAG."""
    every = dags(len(terms))
    return sum(terms[i, every[:, i]] for i in range(len(terms)))


def arc_shares(terms: np.ndarray) -> np.ndarray:
    """The posterior probability [parent, child] of every arc, all DAGs being equally probable beforehand."""
    n, every, logs = len(terms), dags(len(terms)), totals(terms)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return np.array([[weights[every[:, b] >> a & 1 == 1].sum() for b in range(n)] for a in range(n)])
