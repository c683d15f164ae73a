"""A Gibbs sweep, compiled: each block's distribution given its Markov blanket, as a table of thresholds.

P(block | rest) ∝ the product of the factors that hold a variable of the block (Pearl 1987), so it depends on the
blanket alone. Where the blanket has too many settings for a table, the factors are multiplied in each draw.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from bbn.core.budget import Ledger
from bbn.core.frozen import Array
from bbn.inference.sampling.draws import offsets, smallest_share, starts
from bbn.inference.sampling.gibbs_blocks import GibbsBlock
from bbn.kernels.contracts.moves import SMALLEST_NARROW, Sweep, thresholds
from bbn.kernels.contracts.types import Ints
from bbn.kernels.watch import check
from bbn.model.factor import Factor

TABLE_BYTES = 20
"""What a cell of a block's table takes: its share, its threshold, and a copy of that."""
MOST_CELLS = 1 << 16
"""The most cells that a block's table may have."""


def compile_sweep(
    factors: Sequence[Factor],
    blocks: Sequence[GibbsBlock],
    columns: Mapping[str, int],
    limit: int | float | str | None = None,
    caused: Collection[str] = (),
) -> Sweep:
    """One move per block, of more than one state each; BudgetError if their tables would not fit.

    Blocks with one of the variables in `caused` have no table: what families of causes say of them is not in it.
    """
    cards = {v.name: v.card for factor in factors for v in factor.variables}
    tables: list[Array | None] = []
    blankets: list[list[str]] = []
    kept: list[list[Factor]] = []
    ledger, known = Ledger(limit), frozenset(caused)
    holding: dict[str, list[int]] = {}
    for i, factor in enumerate(factors):
        for name in factor.names:
            holding.setdefault(name, []).append(i)
    for block in blocks:
        check()
        held = [factors[i] for i in sorted({i for name in block.names for i in holding.get(name, ())})]
        blanket = [
            name for name in dict.fromkeys(n for f in held for n in f.names) if name not in block.names
        ]
        cells = math.prod(cards[name] for name in blanket) * len(block.states)
        if not known.isdisjoint(block.names):
            cells = MOST_CELLS + 1
        needed = cells if cells <= MOST_CELLS else sum(factor.values.size for factor in held)
        ledger.reserve(TABLE_BYTES * needed, "the tables that chains draw from", "observe more variables")
        if cells <= MOST_CELLS:
            tables.append(_table(block, blanket, held, cards))
            blankets.append(blanket)
            kept.append([])
        else:
            tables.append(None)
            blankets.append([])
            kept.append(held)
    wide = any(smallest_share(table) < SMALLEST_NARROW for table in tables if table is not None)
    parts = [np.empty(0) if table is None else thresholds(table, wide).reshape(-1) for table in tables]
    strides = [math.prod(cards[n] for n in b[k + 1 :]) for b in blankets for k in range(len(b))]
    members = [(name, block.states[:, k]) for block in blocks for k, name in enumerate(block.names)]
    products = [(block, factor) for block, held in zip(blocks, kept, strict=True) for factor in held]
    scopes = [[name for name in factor.names if name not in block.names] for block, factor in products]
    moved = [_strides(factor) for _, factor in products]
    return Sweep(
        member_ptr=offsets([len(block.names) for block in blocks]),
        members=np.array([columns[name] for name, _ in members], np.int64),
        decode_ptr=starts([len(codes) for _, codes in members]),
        decode=_ints(codes for _, codes in members),
        size=np.array([len(block.states) for block in blocks], np.int64),
        table=np.where([table is None for table in tables], -1, starts([len(part) for part in parts])),
        parent_ptr=offsets([len(blanket) for blanket in blankets]),
        parents=np.array([columns[name] for blanket in blankets for name in blanket], np.int64),
        strides=np.array(strides, np.int64),
        thresholds=np.concatenate([*parts, np.zeros(1)]).astype(np.int64 if wide else np.int32),
        factor_ptr=offsets([len(held) for held in kept]),
        offset=starts([factor.values.size for _, factor in products]),
        shift=starts([len(block.states) for block, _ in products]),
        scope_ptr=offsets([len(scope) for scope in scopes]),
        scope=np.array([columns[name] for scope in scopes for name in scope], np.int64),
        scope_strides=np.array(
            [s[n] for scope, s in zip(scopes, moved, strict=True) for n in scope], np.int64
        ),
        shifts=_ints(
            np.asarray(sum(block.states[:, k] * s[name] for k, name in enumerate(block.names) if name in s))
            for (block, _), s in zip(products, moved, strict=True)
        ),
        values=np.concatenate([*(factor.values.reshape(-1) for _, factor in products), np.zeros(1)]),
    )


def _table(block: GibbsBlock, blanket: list[str], held: list[Factor], cards: Mapping[str, int]) -> Array:
    """The product of the factors, one row per setting of the blanket, one column per state of the block."""
    axes = len(blanket) + 1
    index: dict[str, Ints] = {}
    for axis, name in enumerate(blanket):
        index[name] = np.arange(cards[name]).reshape([-1 if a == axis else 1 for a in range(axes)])
    for k, name in enumerate(block.names):
        index[name] = block.states[:, k].reshape([1] * len(blanket) + [-1])
    table = np.ones([*(cards[name] for name in blanket), len(block.states)])
    for factor in held:
        table *= factor.values[tuple(index[name] for name in factor.names)]
    return table.reshape(-1, len(block.states))


def _strides(factor: Factor) -> dict[str, int]:
    shape = factor.values.shape
    return {name: math.prod(shape[axis + 1 :]) for axis, name in enumerate(factor.names)}


def _ints(parts: Iterable[Ints]) -> Ints:
    return np.concatenate([*parts, np.zeros(1, np.int64)]).astype(np.int64)
