"""Which of the two ways of the interface algorithm answers: both are priced, in seconds, and the cheaper one is taken.

A chain over the S joint states of the interface pays for a junction tree of S² cells or more once for each distinct
row of evidence (and again for each state of each variable that the tree sums out, where beliefs are asked for), then
for S² numbers a step. Products of tables (`factored`) pay a few dozen calls of numpy and the cells of small tables in
each step. Where a chain would not fit in memory, it has no price.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, prod
from typing import Any

import numpy as np

from bbn.core.budget import memory_limit
from bbn.core.errors import BudgetError
from bbn.inference.time.chain import distinct_rows, slices_for
from bbn.inference.time.factored import wide_tables
from bbn.inference.time.sequences import Sequences
from bbn.inference.time.slices import BEFORE, Slices
from bbn.model.dynamic_network import DynamicNetwork

TREE_CELL = 3e-9
"""Seconds that the junction tree of a slice takes for a cell of a clique and each table or message there."""
CHAIN_CELL = 1e-9
"""Seconds of a pass along the chain for each of a matrix's S² numbers."""
TABLE, TABLE_CELL = 3e-5, 1e-8
"""Seconds of numpy for each product of tables, and for each of its cells."""


def is_wide(
    dyn: DynamicNetwork, sequences: Sequences, limit: Any = None, lag: int | None = 0, beliefs: bool = True
) -> bool:
    """Whether messages as products of tables are the way: a chain would not fit, or would take longer."""
    if dyn.continuous:
        return False
    try:
        slices = slices_for(dyn, sequences, limit)
    except BudgetError:
        return True
    passes = 1 + (1 if lag is None else lag)
    wide = passes * sequences.n_steps * _step_of_tables(dyn, sequences)
    # distinct rows are counted only where their number decides
    most = prod(slices.variables[n].card + 1 for n in slices.core if n in sequences.codes)
    if _chain(slices, sequences, min(most, sequences.n_steps), passes, beliefs, limit) <= wide:
        return False
    _, _, count = distinct_rows(slices, sequences, np.arange(sequences.n_steps))
    return _chain(slices, sequences, count, passes, beliefs, limit) > wide


def _chain(slices: Slices, sequences: Sequences, rows: int, passes: int, beliefs: bool, limit: Any) -> float:
    """Seconds along the chain; infinity where it would not fit."""
    square = slices.n_states**2
    if 16 * rows * square + 32 * sequences.n_steps * slices.n_states > memory_limit(limit):
        return inf
    summed_out = sum(slices.variables[n].card for n in _asked(slices, sequences)) if beliefs else 0
    matrices = TREE_CELL * slices.trees[-1].plan.visits
    return (
        rows * (1 + summed_out) * matrices + sequences.n_steps * (passes + summed_out) * CHAIN_CELL * square
    )


def _asked(slices: Slices, sequences: Sequences) -> Iterable[str]:
    """What the tree sums out and is not seen in every step."""
    for name in slices.core:
        codes = sequences.codes.get(name)
        if name in slices.dyn.names and (codes is None or int(codes.max()) == slices.variables[name].card):
            yield name


def _step_of_tables(dyn: DynamicNetwork, sequences: Sequences) -> float:
    """Seconds of a pass over one step by products of tables; what is seen in every step takes no room in them."""
    seen = frozenset(n for n, codes in sequences.codes.items() if int(codes.max()) < dyn.variable(n).card)
    prices: dict[frozenset[str], float] = dyn.memo.setdefault("prices of a step of tables", {})
    if seen not in prices:
        wide = wide_tables(dyn)
        gone = {name for name, card in wide.cards.items() if card == 1 or name.removesuffix(BEFORE) in seen}
        before = tuple(name + BEFORE for name in wide.layout.passed)
        scopes = [before, *(wide.scope(name, wide.layout.kinds - 1) for name in wide.names)]
        plan = wide.plan([tuple(n for n in own if n not in gone) for own in scopes], wide.state)
        prices[seen] = TABLE * len(scopes) + TABLE_CELL * plan.cells
    return prices[seen]
