"""Which variables Gibbs sampling must move together, so that zeros in the tables cannot trap it.

Changing one block of variables at a time reaches every possible state of a factor if the factor's support is
connected by such changes. Where it is not (a copy, a deterministic gate) blocks are merged until it is (Jensen,
Kong and Kjaerulff 1995, blocking Gibbs). A block's states are only those that the factors within it allow, so a
chain of copies is a block of few states. Factors that are each connected can still trap the chain together; where
the variables they tie have few joint states, that is checked too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bbn.errors import EvidenceError
from bbn.factor import Factor
from bbn.kernels.types import Ints

MOST_STATES = 4096
"""A block with more states than this is refused."""
MOST_CHECKED = 1 << 15
"""Tied variables with more joint states than this are not checked together."""


class Block(NamedTuple):
    """Variables that move together, and the joint states they may be in: ``states[j, k]`` is the code of names[k]."""

    names: tuple[str, ...]
    states: Ints


def choose_blocks(factors: Sequence[Factor], cards: dict[str, int]) -> list[Block]:
    """Blocks that cover the variables; EvidenceError if zeros tie too many together."""
    blocks = [Block((name,), np.arange(card)[:, None]) for name, card in cards.items()]
    zeros = [factor for factor in factors if (factor.values == 0).any()]
    for factor in zeros:
        blocks = _connected_within(factor, blocks, zeros)
    for tied in _tied(blocks, zeros):
        whole = _joined_all(tied, zeros)
        if whole is not None and not _is_connected(whole, tied):
            blocks = [*(b for b in blocks if b not in tied), _refuse_large(whole)]
    first = {name: i for i, name in enumerate(cards)}
    return sorted(blocks, key=lambda block: first[block.names[0]])


def _connected_within(factor: Factor, blocks: list[Block], zeros: list[Factor]) -> list[Block]:
    """The blocks, merged until changing one at a time connects the support of the factor."""
    support = Block(factor.names, np.argwhere(factor.values > 0))
    while _n_parts(support, blocks) > 1:
        inside = [b for b in blocks if set(b.names) & set(factor.names)]
        options = []
        for a, b in combinations(inside, 2):
            merged = _join(a, b, zeros)
            rest = [c for c in blocks if c is not a and c is not b]
            options.append((_n_parts(support, [*rest, merged]), len(merged.states), rest, merged))
        _, _, rest, merged = min(options, key=lambda option: option[:2])
        blocks = [*rest, _refuse_large(merged)]
    return blocks


def _n_parts(support: Block, blocks: Sequence[Block]) -> int:
    """The number of parts of the support that changes of one block at a time leave apart."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(support.states)
    if n < 2:
        return 1
    cells, keys, n_keys = [], [], 0
    for block in blocks:
        changed = [i for i, name in enumerate(support.names) if name in block.names]
        if not changed:
            continue
        fixed = np.delete(support.states, changed, axis=1)
        _, key = np.unique(
            fixed, axis=0, return_inverse=True
        )  # states that differ in this block alone share a key
        cells.append(np.arange(n))
        keys.append(key.reshape(-1) + n + n_keys)
        n_keys += int(key.max()) + 1
    rows, columns = np.concatenate(cells), np.concatenate(keys)
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n + n_keys, n + n_keys))
    return int(connected_components(graph, directed=False)[0])


def _is_connected(whole: Block, blocks: Sequence[Block]) -> bool:
    return _n_parts(whole, blocks) == 1


def _tied(blocks: list[Block], zeros: list[Factor]) -> list[list[Block]]:
    """Groups of two or more blocks that factors with zeros link."""
    groups = [[block] for block in blocks]
    for factor in zeros:
        linked = [g for g in groups if any(set(b.names) & set(factor.names) for b in g)]
        groups = [g for g in groups if g not in linked] + [[b for g in linked for b in g]]
    return [group for group in groups if len(group) > 1]


def _joined_all(blocks: list[Block], zeros: list[Factor]) -> Block | None:
    """One block of them all, or None if it has too many states to look at."""
    whole = blocks[0]
    for block in blocks[1:]:
        if len(whole.states) * len(block.states) > MOST_CHECKED:
            return None
        whole = _join(whole, block, zeros)
    return whole


def _join(a: Block, b: Block, zeros: list[Factor]) -> Block:
    """The joint block: the pairs of states that every factor within it allows."""
    if len(a.states) * len(b.states) > MOST_CHECKED * 8:
        raise _too_large(a.names + b.names)
    names = a.names + b.names
    states = np.hstack([np.repeat(a.states, len(b.states), axis=0), np.tile(b.states, (len(a.states), 1))])
    for factor in zeros:
        if set(factor.names) <= set(names):
            allowed = factor.values[tuple(states[:, names.index(name)] for name in factor.names)] > 0
            states = states[allowed]
    return Block(names, states)


def _refuse_large(block: Block) -> Block:
    if len(block.states) > MOST_STATES:
        raise _too_large(block.names)
    return block


def _too_large(names: tuple[str, ...]) -> EvidenceError:
    shown = ", ".join(names[:6]) + (f", … ({len(names)} variables)" if len(names) > 6 else "")
    return EvidenceError(
        f"gibbs: zeros in the tables tie {shown} together so that they cannot change one by one, and they have too "
        'many joint states to change at once; use an exact method or method="importance"'
    )
