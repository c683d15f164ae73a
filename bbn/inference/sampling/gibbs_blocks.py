"""Which variables Gibbs sampling must move together, so that zeros in the tables cannot trap it.

Changing one block of variables at a time reaches every possible state of a factor if the factor's support is
connected by such changes. Where it is not (a copy, a deterministic gate) blocks are merged until it is (Jensen,
Kong and Kjaerulff 1995, blocking Gibbs). A block's states are only those that the factors within it allow, so a
chain of copies is a block of few states. Factors that are each connected can still trap the chain together; where
the variables they tie have few joint states, that is checked too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bbn.core.errors import EvidenceError
from bbn.kernels.contracts.types import Ints
from bbn.model.factor import Factor

MOST_STATES = 4096
"""A block with more states than this is refused."""
MOST_CHECKED = 1 << 15
"""Tied variables with more joint states than this are not checked together."""


class GibbsBlock(NamedTuple):
    """Variables that move together, and the joint states they may be in: ``states[j, k]`` is the code of names[k]."""

    names: tuple[str, ...]
    states: Ints


def choose_blocks(factors: Sequence[Factor], cards: dict[str, int]) -> list[GibbsBlock]:
    """Blocks that cover the variables; EvidenceError if zeros tie too many together."""
    zeros = [factor for factor in factors if (factor.values == 0).any()]
    home = {name: GibbsBlock((name,), codes[:, None]) for name, codes in _domains(zeros, cards).items()}
    for factor in zeros:
        _connect(factor, home, zeros)
    for tied in _tied(home, zeros):
        whole = _joined(tied, zeros)
        if whole is not None and _parts(whole, tied).max(initial=0) > 0:
            _settle(_refuse_large(whole), home)
    return _distinct(home.values())


def _domains(zeros: list[Factor], cards: dict[str, int]) -> dict[str, Ints]:
    """The states of each variable that every factor can still complete (arc consistency; Mackworth 1977)."""
    possible = {name: np.ones(card, bool) for name, card in cards.items()}
    holding: dict[str, list[int]] = {name: [] for name in cards}
    for i, factor in enumerate(zeros):
        for name in factor.names:
            holding[name].append(i)
    waiting = dict.fromkeys(range(len(zeros)))
    while waiting:
        factor = zeros[waiting.popitem()[0]]
        support = factor.values > 0
        for axis, name in enumerate(factor.names):
            support = support & possible[name].reshape([-1 if a == axis else 1 for a in range(support.ndim)])
        for axis, name in enumerate(factor.names):
            kept = np.asarray(support.any(axis=tuple(a for a in range(support.ndim) if a != axis)))
            if (kept != possible[name]).any():
                possible[name] = kept
                waiting.update(dict.fromkeys(i for i in holding[name] if zeros[i] is not factor))
    return {name: np.flatnonzero(kept) for name, kept in possible.items()}


def _connect(factor: Factor, home: dict[str, GibbsBlock], zeros: list[Factor]) -> None:
    """Merge blocks until changing one at a time connects the support of the factor: the smallest merger that helps."""
    allowed = factor.values > 0
    for axis, name in enumerate(factor.names):
        position = home[name].names.index(name)
        codes = np.isin(np.arange(allowed.shape[axis]), home[name].states[:, position])
        allowed = allowed & codes.reshape([-1 if a == axis else 1 for a in range(allowed.ndim)])
    support = GibbsBlock(factor.names, np.argwhere(allowed))
    while True:
        inside = _distinct(home[name] for name in factor.names)
        part = _parts(support, inside)
        if part.max(initial=0) == 0:
            return
        pairs = sorted(combinations(inside, 2), key=lambda pair: len(pair[0].states) * len(pair[1].states))
        helpful = (pair for pair in pairs if _parts(support, [_pair(*pair)], part).max() < part.max())
        a, b = next(helpful, pairs[0])  # where no pair helps, three or more will
        _settle(_refuse_large(join_blocks(a, b, zeros)), home)


def _pair(a: GibbsBlock, b: GibbsBlock) -> GibbsBlock:
    """Both blocks as one, its states not worked out."""
    return GibbsBlock(a.names + b.names, np.empty((0, 0), np.int64))


def _parts(support: GibbsBlock, blocks: Sequence[GibbsBlock], part: Ints | None = None) -> Ints:
    """The part, from 0, of each state of the support: those that changes of one block at a time join.

    States that are in one part already, where `part` says so, stay together.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(support.states)
    sizes = support.states.max(axis=0, initial=0) + 1
    strides = np.append(np.cumprod(sizes[:0:-1])[::-1], 1)
    keys = [] if part is None else [part]
    for block in blocks:
        fixed = np.array([name not in block.names for name in support.names])
        if not fixed.all():  # states that differ in this block alone share a key
            keys.append(np.unique(support.states @ (strides * fixed), return_inverse=True)[1])
    ends = np.cumsum([0, *(int(key.max(initial=-1)) + 1 for key in keys)])
    columns = np.concatenate([n + start + key for start, key in zip(ends, keys, strict=False)])
    rows = np.tile(np.arange(n), len(keys))
    size = n + int(ends[-1])
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][:n], np.int64)


def _tied(home: dict[str, GibbsBlock], zeros: list[Factor]) -> list[list[GibbsBlock]]:
    """Groups of two or more blocks that factors with zeros link."""
    import networkx as nx

    graph: nx.Graph[tuple[str, ...]] = nx.Graph()
    for factor in zeros:
        names = [home[name].names for name in factor.names]
        nx.add_path(graph, names)
    groups = [
        [home[names[0]] for names in sorted(group)]
        for group in nx.connected_components(graph)
        if len(group) > 1
    ]
    return sorted(groups, key=lambda group: group[0].names)


def _joined(blocks: list[GibbsBlock], zeros: list[Factor]) -> GibbsBlock | None:
    """One block of them all, or None if it has too many states to look at."""
    whole = blocks[0]
    for block in blocks[1:]:
        if len(whole.states) * len(block.states) > MOST_CHECKED:
            return None
        whole = join_blocks(whole, block, zeros)
    return whole


def join_blocks(a: GibbsBlock, b: GibbsBlock, zeros: Sequence[Factor]) -> GibbsBlock:
    """The joint block: the pairs of states that every factor within it allows."""
    if len(a.states) * len(b.states) > 8 * MOST_CHECKED:
        raise too_large(a.names + b.names)
    names = a.names + b.names
    states = np.hstack([np.repeat(a.states, len(b.states), axis=0), np.tile(b.states, (len(a.states), 1))])
    for factor in zeros:
        if set(factor.names) <= set(names):
            allowed = factor.values[tuple(states[:, names.index(name)] for name in factor.names)] > 0
            states = states[allowed]
    return GibbsBlock(names, states)


def _settle(block: GibbsBlock, home: dict[str, GibbsBlock]) -> None:
    for name in block.names:
        home[name] = block


def _distinct(blocks: Iterable[GibbsBlock]) -> list[GibbsBlock]:
    return list({block.names: block for block in blocks}.values())


def _refuse_large(block: GibbsBlock) -> GibbsBlock:
    if len(block.states) > MOST_STATES:
        raise too_large(block.names)
    return block


def too_large(names: tuple[str, ...]) -> EvidenceError:
    """The error that names a block of too many states."""
    shown = ", ".join(names[:6]) + (f", … ({len(names)} variables)" if len(names) > 6 else "")
    return EvidenceError(
        f"gibbs: zeros in the tables tie {shown} together so that they cannot change one by one, and they have too "
        'many joint states to change at once; use an exact method or method="importance"'
    )
