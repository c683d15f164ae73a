"""Draws: a model as a list of conditional draws, compiled to the flat arrays that the sampling kernel runs.

Without evidence the list is the network's own tables in topological order (ancestral or logic sampling; Henrion
1988). With evidence it may be any other list whose product is known: the exact conditional of `conditioning`, or
an importance distribution, where each draw carries ln(p/q), the log weight of what it drew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import ModelError
from bbn.core.frozen import Array
from bbn.kernels.contracts.moves import SMALLEST_NARROW, Moves, thresholds
from bbn.kernels.contracts.seen import NO_SEEN, Seen
from bbn.kernels.contracts.types import Ints
from bbn.model.network import BayesianNetwork


class Term(NamedTuple):
    """What a draw does to an observed effect: per state the probabilities that it is not brought, and that it is."""

    effect: int
    brings: Array


class Hope(NamedTuple):
    """What draws look at: observed effects, and who may still bring them; see `bbn.kernels.contracts.seen`.

    Attributes
    ----------
    start
        Per effect the probabilities that what is constant does not bring it, and that it does.
    leaders
        The columns of causes, in the order in which they are drawn; empty where draws do not look.
    chance
        The probability of each leader, and 1 for none of them.
    reach
        Per leader and effect the probability that it or what comes after it brings it; a last row for none of them.
    """

    start: list[Array]
    leaders: list[int]
    chance: Array
    reach: Array


class Draw(NamedTuple):
    """One conditional draw.

    Attributes
    ----------
    column
        The column to draw, or −1 for a draw that only weighs.
    parents
        The columns it depends on, all drawn earlier.
    table
        Non-negative weights of its states, one axis per parent and its own last; rows need not sum to 1. A draw
        that only weighs has a last axis of length 1.
    log_weights
        What to add to the row's log weight, in the shape of the table, or None.
    terms
        The observed effects that it looks at.
    """

    column: int
    parents: tuple[int, ...]
    table: Array
    log_weights: Array | None = None
    terms: tuple[Term, ...] = ()


def table_draws(
    net: BayesianNetwork, names: Iterable[str], columns: Mapping[str, int], hard: Mapping[str, int]
) -> list[Draw]:
    """The draws of these variables from their own tables; hard-observed parents are sliced out."""
    draws = []
    for name in names:
        cpt = net[name]
        index = tuple(hard.get(p.name, slice(None)) for p in cpt.parents)
        parents = tuple(columns[p.name] for p in cpt.parents if p.name not in hard)
        draws.append(Draw(columns[name], parents, cpt.factor().values[index]))
    return draws


def compile_draws(draws: Sequence[Draw]) -> Moves:
    """The draws as flat arrays; 31 random bits per draw where no positive share is too small for them."""
    tables = [draw.table.reshape(-1, draw.table.shape[-1]) for draw in draws]
    wide = any(smallest_share(table) < SMALLEST_NARROW for table in tables)
    parts = [thresholds(table, wide).reshape(-1) for table in tables]
    weighed = [draw.log_weights is not None for draw in draws]
    logs = [np.ravel(draw.log_weights) for draw in draws if draw.log_weights is not None]
    weight = np.full(len(draws), -1, np.int64)
    weight[weighed] = starts([len(log) for log in logs])
    strides = []
    for draw in draws:
        cards = draw.table.shape[:-1]
        strides += [int(np.prod(cards[axis + 1 :])) for axis in range(len(cards))]
    return Moves(
        member=np.array([draw.column for draw in draws], np.int64),
        size=np.array([draw.table.shape[-1] for draw in draws], np.int64),
        parent_ptr=offsets([len(draw.parents) for draw in draws]),
        parents=np.array([p for draw in draws for p in draw.parents], np.int64),
        strides=np.array(strides, np.int64),
        table=starts([len(part) for part in parts]),
        thresholds=_joined(parts, np.int64 if wide else np.int32),
        weight=weight,
        log_weights=_joined(logs, np.float64),
    )


def compile_seen(draws: Sequence[Draw], hope: Hope | None) -> Seen:
    """The observed effects that the draws look at, as flat arrays."""
    if hope is None or not hope.start:
        return NO_SEEN
    terms = [term for draw in draws for term in draw.terms]
    shares = [draw.table.reshape(-1) if draw.terms else np.empty(0) for draw in draws]
    looks = [bool(draw.terms) for draw in draws]
    turn = {draw.column: i for i, draw in enumerate(draws)}
    last = [len(draws)] if hope.leaders else []
    return Seen(
        term_ptr=offsets([len(draw.terms) for draw in draws]),
        effect=np.array([term.effect for term in terms], np.int64),
        bring=starts([term.brings.size for term in terms]),
        share=np.where(looks, starts([part.size for part in shares]), -1),
        turn=np.array([turn[column] for column in hope.leaders] + last, np.int64),
        start=np.concatenate([np.asarray(pair, float) for pair in hope.start]),
        brings=_joined([term.brings.reshape(-1) for term in terms], np.float64),
        shares=_joined(shares, np.float64),
        chance=hope.chance,
        reach=hope.reach,
    )


TABLE_COPIES = 3
"""Copies of the tables that drawing from them takes: as they are, their sums, and what is drawn from."""


def require_copies(
    net: BayesianNetwork, names: Iterable[str], copies: int, limit: int | float | str | None
) -> None:
    """BudgetError if drawing these variables, which takes `copies` copies of their tables, would not fit."""
    cells = sum(math.prod(v.card for v in (net.variable(n), *net[n].parents)) for n in names)
    require_memory(8 * copies * cells, "what is drawn from", "ask about a smaller part of the network", limit)


def code_type(cards: Iterable[int]) -> type[np.uint8] | type[np.uint16]:
    """The narrowest type that holds the codes of variables with these numbers of states, as signed numbers too."""
    most = max(cards, default=1)
    if most > 2**15:
        raise ModelError(f"a variable has {most} states; sampling goes up to {2**15}")
    return np.uint8 if most <= 2**7 else np.uint16


def offsets(sizes: Sequence[int]) -> Ints:
    """Where each part begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def starts(sizes: Sequence[int]) -> Ints:
    """Where each part begins."""
    return offsets(sizes)[:-1]


def smallest_share(table: Array) -> float:
    """The smallest positive share of a row's total."""
    if table.shape[1] == 1:
        return 1.0
    total = table.sum(axis=1, keepdims=True)
    share = np.divide(table, total, out=np.ones_like(table), where=(table > 0) & (total > 0))
    return float(share.min(initial=1.0))


def _joined(parts: Sequence[np.ndarray], kind: type) -> np.ndarray:
    """The parts as one array, with one entry more, so that an empty one has an address."""
    return np.concatenate([*parts, np.zeros(1)]).astype(kind)
