"""The elimination tape of decisions: both twins against numpy, and tapes that do not fit refused by both."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest


def twins() -> list[Any]:
    pure = importlib.import_module("bbn.kernels.pure.decide")
    try:
        return [pure, importlib.import_module("bbn.kernels.compiled.decide")]
    except ImportError:
        return [pure]


DECIDE = twins()
SUM, MAX, MIN, MOST = range(4)


class Step:
    """A random step: tables over parts of (axes…, X), in one array of cells, and its words."""

    def __init__(self, seed: int, kind: int) -> None:
        rng = np.random.default_rng(seed)
        self.kind = kind
        self.cards = rng.integers(1, 4, rng.integers(0, 4)).tolist()
        self.card = int(rng.integers(1, 5))
        shape = (*self.cards, self.card)
        n_p, n_u = int(rng.integers(0, 4)), int(rng.integers(0, 3)) if kind in (SUM, MAX) else 0
        n_allowed = int(rng.integers(0, 2)) if kind != SUM else 0
        self.p, self.u, self.allowed = [], [], []
        cells: list[np.ndarray] = []
        tables: list[int] = []
        for into, count in ((self.p, n_p), (self.u, n_u), (self.allowed, n_allowed)):
            for _ in range(count):
                held = rng.random(len(shape)) < 0.7
                table = rng.random([n if h else 1 for n, h in zip(shape, held, strict=True)])
                if into is self.allowed:
                    table = (table < 0.7).astype(float)
                    table[..., -1] = 1.0
                elif into is self.p:
                    table[rng.random(table.shape) < 0.2] = 0.0
                else:
                    table = rng.normal(0, 5, table.shape).round(1)
                strides = np.array(table.strides) // 8 * held
                tables += [sum(map(np.size, cells)), *strides.tolist()]
                cells.append(table.ravel())
                into.append(np.broadcast_to(table, shape))
        size = math.prod(self.cards)
        start = sum(map(np.size, cells))
        self.cells = np.concatenate([*cells, np.full(2 * size, np.nan)])
        self.places = start, start + size
        length = 10 + len(self.cards) + len(tables)
        made = (start, start + size, 0 if kind != SUM else -1)
        head = [kind, length, len(self.cards), self.card, n_p, n_u, n_allowed, *made]
        self.words = np.array([*head, *self.cards, *tables], np.int64)
        self.choices = np.zeros(size, np.int64)

    def expected(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        shape = (*self.cards, self.card)
        p = np.prod(self.p, axis=0) if self.p else np.ones(shape)
        u = np.sum(self.u, axis=0) if self.u else np.zeros(shape)
        if self.kind == SUM:
            total = p.sum(-1)
            with np.errstate(invalid="ignore"):
                return total, np.where(total > 0, (p * u).sum(-1) / total, 0.0), None
        goal = {MAX: u, MIN: -p, MOST: p}[self.kind]
        for allowed in self.allowed:
            goal = np.where(allowed > 0, goal, -math.inf)
        chosen = goal.argmax(-1)
        pick = chosen[..., None]
        return np.take_along_axis(p, pick, -1)[..., 0], np.take_along_axis(u, pick, -1)[..., 0], chosen


@pytest.mark.parametrize("kind", [SUM, MAX, MIN, MOST])
def test_a_step_is_what_numpy_says(kind):
    for seed in range(120):
        step = Step(seed, kind)
        p, u, chosen = step.expected()
        for module in DECIDE:
            cells, choices = step.cells.copy(), step.choices.copy()
            assert module.run(step.words, cells, choices) == 0.0
            for at, exact in zip(step.places, (p, u), strict=True):
                assert np.allclose(cells[at : at + p.size], exact.ravel(), rtol=1e-13, atol=1e-13)
            if chosen is not None:
                assert np.array_equal(choices, chosen.ravel())


def test_tables_that_get_very_small_or_large_are_scaled():
    for factor in (1e-200, 1e200):
        cells = np.array([factor, 2 * factor, 0.0, 0.0])
        words = np.array([SUM, 16, 1, 1, 1, 0, 0, 2, -1, -1, 2, 0, 1, 0, 0, 0], np.int64)[:14]
        words[1] = 14
        for module in DECIDE:
            work = cells.copy()
            log = module.run(words, work, np.zeros(0, np.int64))
            assert log == pytest.approx(math.log(2 * factor))
            assert work[2:].tolist() == [0.5, 1.0]


def test_words_that_do_not_fit_are_refused_by_both():
    step = Step(3, MAX)
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(400):
        words = step.words.copy()
        words[rng.integers(len(words))] = int(rng.choice([-5, -1, 0, 1, 7, 100, 2**40]))
        told = []
        for module in DECIDE:
            cells, choices = step.cells.copy(), step.choices.copy()
            try:
                module.run(words, cells, choices)
                told.append("")
            except ValueError as error:
                told.append(str(error))
        assert len({bool(text) for text in told}) == 1, (words.tolist(), told)
        refused += bool(told[0])
    assert refused > 150
    for module in DECIDE:
        with pytest.raises(ValueError, match="expected 10 words"):
            module.run(np.array([0, 4], np.int64), np.zeros(3), np.zeros(0, np.int64))
        assert module.run(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)) == 0.0


@pytest.mark.parametrize("kernel", DECIDE)
def test_a_product_beyond_a_double_is_told_and_answered_in_logs(kernel: Any) -> None:
    """Nine findings of 1e-40 on X, and X summed out: P(x) ∝ prior · 1.1^(9x); a zero is not such a product."""
    tables = [np.array([0.3, 0.7]), *[np.array([1e-40, 1.1e-40])] * 9]
    cells = np.concatenate([*tables, [5.0, -2.0], [0.0, 0.0]])
    words = [SUM, DECIDE[0].HEAD + 11 * 2, 0, 2, 10, 1, 0, 22, 23, -1]
    words += [word for k in range(11) for word in (2 * k, 1)]
    tape, choices = np.array(words, np.int64), np.zeros(0, np.int64)
    assert np.isnan(kernel.run(tape, cells.copy(), choices))
    weights = [3 * 10**9, 7 * 11**9]
    log = DECIDE[0].run_in_logs(tape, cells, choices)
    assert cells[23] == pytest.approx((5 * weights[0] - 2 * weights[1]) / sum(weights), rel=1e-12)
    assert cells[22] == 1
    assert log == pytest.approx(np.log(0.3 + 0.7 * 1.1**9) + 9 * np.log(1e-40), rel=1e-14)
    cells[[0, 1]] = 0.0
    assert kernel.run(tape, cells, choices) == 0
    assert cells[22] == 0
