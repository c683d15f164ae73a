"""Batches of families that share parents and child, counted by bit maps and bundles, against plain counting."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from bbn.data import as_source
from bbn.kernels import count as kernels
from bbn.kernels.pure import count as twin


def table(rng, n_rows, cards, holes=0.0):
    columns = {}
    for i, card in enumerate(cards):
        column = np.minimum(rng.geometric(0.5, size=n_rows) - 1, card - 1).astype(object)
        column[rng.random(n_rows) < holes] = None
        columns[f"v{i}"] = column.tolist()
    return columns, {f"v{i}": list(range(card)) for i, card in enumerate(cards)}


def slow_counts(columns, family):
    rows = zip(*(columns[name] for name in family), strict=True)
    return Counter(row for row in rows if None not in row)


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 700, 20_000])
@pytest.mark.parametrize("holes", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_runs_of_families_that_share_all_but_the_first(n_rows, holes, weighted):
    rng = np.random.default_rng(n_rows)
    cards = [1, 2, 3, 4, 2, 3, 300, 5, 2, 4]
    columns, states = table(rng, n_rows, cards, holes)
    if n_rows == 1:
        columns = {name: [0] for name in columns}
    names = list(columns)
    weights = np.ones(n_rows) if weighted else None
    source = as_source(columns, states=states, weights=weights)
    families = []
    for rest in (
        ["v1"],
        ["v2", "v3"],
        ["v9", "v3", "v7"],
        ["v6"],
        ["v6", "v2"],
        ["v2", "v3", "v4", "v5", "v7"],
    ):
        families += [(name, *rest) for name in names if name not in rest]
    for family, counts in zip(families, source.counts(families), strict=True):
        assert counts.shape == tuple(cards[names.index(name)] for name in family)
        found = {tuple(cell.tolist()): counts[tuple(cell)] for cell in np.argwhere(counts)}
        assert found == slow_counts(columns, family)


def test_compiled_kernels_equal_their_twins():
    rng = np.random.default_rng(0)
    for n_rows in (1, 130, 4096, 5000):
        radixes = np.array([2, 3, 4, 300, 1])
        columns = [rng.integers(r, size=n_rows).astype(np.uint16 if r > 256 else np.uint8) for r in radixes]
        narrow = [c for c in range(5) if c != 3]
        bits = [kernels.bitmaps(columns[c], int(radixes[c])) if c in narrow else None for c in range(5)]
        for c in narrow:
            np.testing.assert_array_equal(bits[c], twin.bitmaps(columns[c], int(radixes[c])))
        lists = [
            [0, 1],
            [2, 1],
            [4, 1],
            [3, 1],
            [0, 2, 1],
            [3, 2, 1],
            [4, 2, 1],
            [],
            [3],
            [0, 1, 2, 3, 4],
            [0],
            [],
        ]
        ptr = np.cumsum([0] + [len(members) for members in lists])
        members = np.array([c for family in lists for c in family])
        offsets = np.cumsum([0] + [int(np.prod(radixes[family])) if family else 1 for family in lists])
        for maps in (bits, [None] * 5):
            for weights in (None, rng.random(n_rows)):
                args = (columns, maps, radixes, ptr, members, offsets, weights)
                np.testing.assert_allclose(
                    kernels.count_families(*args), twin.count_families(*args), rtol=1e-12
                )


def test_threads_count_the_same(monkeypatch):
    from bbn.data import coded_table as module

    rng = np.random.default_rng(4)
    columns, states = table(rng, 500, [2, 3, 4, 2, 3, 5, 2, 4])
    families = [(a, b) for b in columns for a in columns if a != b]
    alone = as_source(columns, states=states).counts(families)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(module, "PARALLEL", 0)
    for one, other in zip(alone, as_source(columns, states=states).counts(families), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_rows", [64, 100, 20_000])
@pytest.mark.parametrize("sizes", [[4, 4, 4, 2], [3, 5], [2, 2, 1], [4, 4, 4, 4]])
def test_ranges_of_rows_add_up(n_rows, sizes):
    """Runs with few settings in common and with up to 256, some of them never seen, against the twin."""
    from bbn.kernels import count as kernels
    from bbn.kernels.pure import count as twin

    rng = np.random.default_rng(5)
    radixes = np.array([2, 3, 4, 2, 5, *sizes])
    columns = [rng.integers(rng.integers(1, r + 1), size=n_rows).astype(np.uint8) for r in radixes]
    bits = [kernels.bitmaps(column, int(r)) for column, r in zip(columns, radixes, strict=True)]
    shared = list(range(5, 5 + len(sizes)))
    families = [[c, *shared] for c in range(5)]
    ptr = np.arange(6) * (1 + len(sizes))
    members = np.array(families).reshape(-1)
    offsets = np.cumsum([0] + [int(np.prod(radixes[family])) for family in families])
    truth = twin.count_families(columns, bits, radixes, ptr, members, offsets, None)
    for module in (kernels, twin):
        for maps in (bits, [None] * len(columns)):
            held = module.Columns(columns, maps, radixes)
            np.testing.assert_array_equal(held.count(ptr, members, offsets, None), truth)
            ends = sorted({0, 64, n_rows // 128 * 64, n_rows})
            parts = [held.count(ptr, members, offsets, None, a, b) for a, b in itertools.pairwise(ends)]
            np.testing.assert_array_equal(sum(parts), truth)
            with pytest.raises(ValueError, match="rows"):
                held.count(ptr, members, offsets, None, 1, n_rows)
            with pytest.raises(ValueError, match="rows"):
                held.count(ptr, members, offsets, None, 0, n_rows + 64)


def test_threads_share_rows(monkeypatch):
    """Few cells beside the rows: each thread counts some of the rows."""
    from bbn.data import coded_table as module

    columns, states = table(np.random.default_rng(6), 5_000, [2, 3, 4, 2, 3, 5, 2, 4])
    families = [(a, *list(columns)[:2]) for a in list(columns)[2:]]
    alone = as_source(columns, states=states).counts(families)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(module, "PARALLEL", 0)
    for one, other in zip(alone, as_source(columns, states=states).counts(families), strict=True):
        np.testing.assert_array_equal(one, other)
