"""The families around a child and its parents, counted in one call: against counting rows one by one."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from bbn.data import as_source
from bbn.data import coded_table as module
from bbn.kernels import COMPILED
from bbn.kernels import count as kernels
from bbn.kernels.pure import count as twin

RADIXES = np.array([2, 3, 4, 300, 1, 2, 5, 3])
PLACE = np.array([5, 0, 7, 2, 1, 6, 3, 4])
"""The column of each variable."""
WANTED = [
    (0, (), [1, 2, 3, 4, 5, 6, 7], []),
    (1, (2, 3), [0, 4, 5, 6, 7], [2, 3]),
    (4, (5,), [], [5]),
    (2, (0, 1, 3, 4, 7), [5], [7, 0, 4]),
    (3, (6,), [0, 1, 2], []),
    (5, (), [], []),
]


def columns_of(rng, n_rows):
    kinds = [np.uint16 if r > 256 else np.uint8 for r in RADIXES]
    return [rng.integers(r, size=n_rows).astype(kind) for r, kind in zip(RADIXES, kinds, strict=True)]


def slow_tables(columns, weights):
    """Every table by adding up its rows one by one."""
    for child, own, add, delete in WANTED:
        families = [(z, *own, child) for z in add]
        families += [(*(p for p in own if p != z), child) for z in delete]
        for family in (*families, (*own, child)):
            picked = [columns[PLACE[v]] for v in family]
            cells: Counter = Counter()
            for i, row in enumerate(zip(*(column.tolist() for column in picked), strict=True)):
                cells[row] += 1 if weights is None else weights[i]
            table = np.zeros(RADIXES[PLACE[list(family)]], dtype=np.int64 if weights is None else np.float64)
            for row, count in cells.items():
                table[row] = count
            yield table


@pytest.mark.parametrize("n_rows", [0, 1, 64, 700])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("way", [kernels, twin])
def test_every_table(n_rows, weighted, mapped, way):
    rng = np.random.default_rng(n_rows)
    columns = columns_of(rng, n_rows)
    maps = [
        way.bitmaps(c, int(r)) if mapped and r <= 256 else None for c, r in zip(columns, RADIXES, strict=True)
    ]
    weights = rng.random(n_rows) if weighted else None
    held = way.Columns(columns, maps, RADIXES)
    cells, offsets, cards = held.around(WANTED, PLACE, weights)
    truth = list(slow_tables(columns, weights))
    assert len(offsets) == len(cards) + 1 == len(truth) + 1
    for t, table in enumerate(truth):
        np.testing.assert_allclose(cells[offsets[t] : offsets[t + 1]], table.reshape(-1), rtol=1e-12)
        assert cards[t] == table.shape[-1]
    ends = sorted({0, n_rows // 128 * 64, n_rows})
    parts = [held.around(WANTED, PLACE, weights, a, b)[0] for a, b in itertools.pairwise(ends)]
    if parts:
        np.testing.assert_allclose(sum(parts), cells, rtol=1e-12)


@pytest.mark.parametrize("way", [kernels, twin])
def test_what_does_not_fit_is_refused(way):
    held = way.Columns(columns_of(np.random.default_rng(0), 100), [None] * 8, RADIXES)
    wide = [(0, (6,) * 8, [], [])]
    for wanted, place in (
        ([(8, (), [], [])], PLACE),
        ([(0, (-1,), [], [])], PLACE),
        ([(0, (), [1, 9], [])], PLACE),
        ([(0, (1,), [2], [2])], PLACE),
        (WANTED, PLACE + 1),
        (wide, PLACE),
    ):
        with pytest.raises(ValueError):
            held.around(wanted, place, None)
    with pytest.raises(ValueError, match="rows"):
        held.around(WANTED, PLACE, None, 1, 64)
    wrong = columns_of(np.random.default_rng(0), 100)
    wrong[0][7] = 2
    with pytest.raises(ValueError, match="column 0"):
        way.Columns(wrong, [None] * 8, RADIXES).around(WANTED, PLACE, None)


def coded(n_rows, weighted=False):
    rng = np.random.default_rng(3)
    rows = {f"v{i}": rng.integers(8, size=n_rows) for i in range(7)}
    return as_source(rows, weights=rng.random(n_rows) if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_count_the_same(monkeypatch, weighted):
    """To the last digit, weights too: these are added up in the same parts whatever the number of threads."""
    wanted, place = [(0, (1, 2), [3, 4, 5], [1]), (3, (), [0, 1, 2, 4], [])], np.arange(7)
    monkeypatch.setattr(module, "PARALLEL", 0)
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(coded(5_000, weighted).around(wanted, place, 10_000)[0])
    assert found[0].tolist() == found[1].tolist() == found[2].tolist()


@pytest.mark.parametrize("ask", ["around", "counts"])
def test_copies_of_tables_are_priced(monkeypatch, ask):
    """Threads that share rows have tables of their own only where these fit beside each other."""
    source = coded(300_000)
    names, cells = [v.name for v in source.variables], 8**6
    family = (6, (0, 1, 2, 3), [4], [])
    monkeypatch.setattr(module, "PARALLEL", 0)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    peaks = {}
    for copies in (1, 2, 4):
        limit = int(12.5 * cells * copies)
        monkeypatch.setenv("BBN_MEMORY_LIMIT", str(limit))
        tracemalloc.start()
        if ask == "around":
            found = source.around([family], np.arange(7), cells)[0][:cells]
        else:
            found = source.counts([(names[4], *names[:4], names[6])])[0]
        peaks[copies] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.sum() == 300_000
        assert peaks[copies] <= limit or not COMPILED  # the twin has an index of its own for each row
    assert peaks[4] > 2.5 * 8 * cells  # with room for all, each has its own
