"""Sampling, in numpy. The compiled twin draws the same bits in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.causes import NO_CAUSES, STRONGEST, Causes, check_causes
from bbn.kernels.contracts.checks import check_doubles, check_numbers
from bbn.kernels.contracts.move_checks import check_groups, check_moves, check_sweep
from bbn.kernels.contracts.moves import CHUNK, Codes, Groups, Moves, Sweep
from bbn.kernels.contracts.seen import BLIND, NO_SEEN, Seen, check_seen
from bbn.kernels.contracts.types import Floats, Ints
from bbn.kernels.watch import check


def forward(bit_generator: Any, moves: Moves, codes: Codes, log_weight: Floats, seen: Seen = NO_SEEN) -> None:
    """Draw every move for every row of `codes`, and add the log weights to `log_weight` (empty: none wanted).

    `seen` holds observed effects that some moves look at; their probabilities are in the weights.
    """
    check_numbers("u", 2, codes)
    check_doubles(log_weight)
    n_rows = codes.shape[1]
    if n_rows == 0 or len(moves.member) == 0:
        return
    rows = check_moves(codes, moves)
    looks = len(seen.term_ptr) > 0
    if looks:
        check_seen(moves, seen, rows)
    if (looks or (moves.weight >= 0).any()) and len(log_weight) != n_rows:
        raise ValueError(f"log_weight: expected length {n_rows}, found {len(log_weight)}")
    kind = moves.thresholds.dtype
    for start in range(0, n_rows, CHUNK):
        check()
        chunk = codes[:, start : start + CHUNK]
        m = chunk.shape[1]
        left = np.repeat(seen.start.reshape(-1, 2)[:, :, None], m, axis=2)
        hopes = np.ones((len(seen.turn), m))
        for f in range(len(left)):
            hopes *= left[f, 1] + left[f, 0] * seen.reach[:, f, None]
        for i in range(len(moves.member)):
            size, member = int(moves.size[i]), int(moves.member[i])
            row = _index(chunk, moves.parent_ptr, moves.parents, moves.strides, i)
            state: Any = 0
            if looks and seen.term_ptr[i] < seen.term_ptr[i + 1]:
                bits = _bits(bit_generator, m, np.dtype(np.int64))
                state = _draw_looking(bits, row, size, seen, i, left, hopes, log_weight[start : start + m])
            elif size > 1:
                state = _draw(_bits(bit_generator, m, kind), row, moves.thresholds, int(moves.table[i]), size)
            if member >= 0:
                chunk[member] = state
            if moves.weight[i] >= 0:
                log_weight[start : start + m] += moves.log_weights[moves.weight[i] + row * size + state]
        if looks:
            with np.errstate(divide="ignore"):
                log_weight[start : start + m] += np.log(left[:, 1]).sum(axis=0)


def gibbs(
    bit_generator: Any,
    sweep: Sweep,
    codes: Codes,
    n_sweeps: int,
    groups: Groups,
    counts: Ints,
    causes: Causes = NO_CAUSES,
) -> None:
    """Run `n_sweeps` sweeps of every chain (a row of `codes`), and count the cells it visits.

    `counts` has the shape (chains, cells), or no cells where nothing is counted. `causes` adds terms to the moves.
    """
    check_numbers("u", 2, codes)
    check_numbers("i", 2, counts)
    n_chains = codes.shape[1]
    if counts.shape[1] and len(counts) != n_chains:
        raise ValueError(f"counts: expected {n_chains} chains, found {len(counts)}")
    if n_chains > CHUNK:
        raise ValueError(f"at most {CHUNK} chains run together")
    check_sweep(codes, sweep, groups, counts.shape[1])
    check_causes(codes, sweep, causes)
    kind = sweep.thresholds.dtype
    for _ in range(n_sweeps):
        for i in range(len(sweep.size)):
            size = int(sweep.size[i])
            if sweep.table[i] >= 0:
                row = _index(codes, sweep.parent_ptr, sweep.parents, sweep.strides, i)
                bits = _bits(bit_generator, n_chains, kind)
                state = _draw(bits, row, sweep.thresholds, int(sweep.table[i]), size)
                moved = None
            else:
                state, moved = _draw_product(
                    _bits(bit_generator, n_chains, np.dtype(np.int64)), sweep, codes, i, causes
                )
            for k in range(sweep.member_ptr[i], sweep.member_ptr[i + 1]):
                new = sweep.decode[sweep.decode_ptr[k] + state]
                column = codes[sweep.members[k]]
                column[:] = new if moved is None else np.where(moved, new, column)
        if counts.shape[1]:
            for g in range(len(groups.offset)):
                cell = groups.offset[g] + _index(codes, groups.ptr, groups.members, groups.strides, g)
                counts[np.arange(n_chains), cell] += 1


def accumulate(codes: Codes, groups: Groups, weights: Floats, sums: Floats) -> None:
    """Add each row's weight, and its square, to the cells it falls in; `sums` has the shape (cells, 2)."""
    check_numbers("u", 2, codes)
    check_doubles(weights, sums)
    check_numbers("f", 2, sums)
    if codes.shape[1] != len(weights) or sums.shape[1] != 2:
        raise ValueError(
            f"expected {codes.shape[1]} weights and 2 sums, found {len(weights)} and {sums.shape[1]}"
        )
    if codes.shape[1]:
        check_groups(codes, {}, groups, len(sums))
    squares = weights * weights
    for start in range(0, codes.shape[1], CHUNK):
        part = slice(start, start + CHUNK)
        for g in range(len(groups.offset)):
            cell = groups.offset[g] + _index(codes[:, part], groups.ptr, groups.members, groups.strides, g)
            np.add.at(sums[:, 0], cell, weights[part])
            np.add.at(sums[:, 1], cell, squares[part])


def _bits(bit_generator: Any, n: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """n random numbers of 31 bits, the low half of a word first, or of 53 bits."""
    if kind == np.int64:
        return np.asarray(bit_generator.random_raw(n) >> np.uint64(11), dtype=np.int64)
    words = bit_generator.random_raw((n + 1) // 2)
    halves = np.empty((len(words), 2), dtype=np.int32)
    halves[:, 0] = (words & np.uint64(0xFFFFFFFF)) >> np.uint64(1)
    halves[:, 1] = words >> np.uint64(33)
    return halves.reshape(-1)[:n]


def _index(codes: Codes, ptr: Ints, columns: Ints, strides: Ints, i: int) -> Ints:
    """The sum of codes times strides, for entry i of a ragged list of columns."""
    index = np.zeros(codes.shape[1], dtype=np.int64)
    for k in range(ptr[i], ptr[i + 1]):
        index += codes[columns[k]] * strides[k]
    return index


def _draw(bits: NDArray[Any], row: Ints, thresholds: NDArray[Any], table: int, size: int) -> Ints:
    """The number of thresholds of the row that the bits exceed."""
    state = np.zeros(len(row), dtype=np.int64)
    start = table + row * (size - 1)
    if size <= 64:
        for j in range(size - 1):
            state += bits > thresholds[start + j]
        return state
    above = np.full(len(row), size - 1, dtype=np.int64)  # thresholds never fall: bisect
    while (state < above).any():
        middle = (state + above) // 2
        right = (state < above) & (bits > thresholds[start + np.minimum(middle, size - 2)])
        above = np.where(right | (state >= above), above, middle)
        state = np.where(right, middle + 1, state)
    return state


def _draw_looking(
    bits: NDArray[Any],
    row: Ints,
    size: int,
    seen: Seen,
    i: int,
    left: Floats,
    hopes: Floats,
    log_weight: Floats,
) -> Ints:
    """The states drawn by their shares and what they leave to hope for; updates what is left, and the weights."""
    shares = seen.shares[seen.share[i] + row[:, None] * size + np.arange(size)]
    terms = range(int(seen.term_ptr[i]), int(seen.term_ptr[i + 1]))
    brings = [seen.brings[seen.bring[t] : seen.bring[t] + 2 * size].reshape(size, 2) for t in terms]
    later = range(int(np.searchsorted(seen.turn, i, side="right")), len(seen.turn))
    ratios = np.ones((len(seen.turn), size, len(row)))
    guess = np.zeros_like(shares) if later else np.ones_like(shares)
    none_yet = 1.0
    for j in later:
        before = np.ones(len(row))
        for t, part in zip(terms, brings, strict=True):
            (below, at), reach = left[seen.effect[t]], seen.reach[j, seen.effect[t]]
            before *= at + below * reach
            for k in range(size):
                ratios[j, k] *= at + below * (part[k, 1] + part[k, 0] * reach)
        before = 1 / before
        for k in range(size):
            ratios[j, k] *= before
            guess[:, k] += none_yet * seen.chance[j] * hopes[j] * ratios[j, k]
        none_yet *= 1 - seen.chance[j]
    total, whole = np.zeros(len(row)), np.zeros(len(row))
    for k in range(size):
        total += shares[:, k]
        whole += shares[:, k] * guess[:, k]
    factor = np.divide((1 - BLIND) * total, whole, out=np.zeros_like(total), where=whole > 0)
    chance = np.where(whole[:, None] > 0, guess * factor[:, None] + BLIND, 1.0)
    sums = np.cumsum(shares * chance, axis=1)
    level = np.ldexp(bits.astype(np.float64), -53) * sums[:, -1]
    state = np.asarray((sums[:, :-1] <= level[:, None]).sum(axis=1), dtype=np.int64)
    here = np.arange(len(row))
    log_weight -= np.log(chance[here, state])
    for j in later:
        hopes[j] *= ratios[j, state, here]
    for t, part in zip(terms, brings, strict=True):
        below, at = left[seen.effect[t]]
        at += below * part[state, 1]
        below *= part[state, 0]
    return state


def _draw_product(
    bits: NDArray[Any], sweep: Sweep, codes: Codes, i: int, causes: Causes
) -> tuple[Ints, NDArray[Any]]:
    """The states drawn from the product of the block's factors, and which of them are valid (not all zero)."""
    n, size = codes.shape[1], int(sweep.size[i])
    weights = np.ones((n, size))
    for k in range(sweep.factor_ptr[i], sweep.factor_ptr[i + 1]):
        base = sweep.offset[k] + _index(codes, sweep.scope_ptr, sweep.scope, sweep.scope_strides, k)
        shifts = sweep.shifts[sweep.shift[k] : sweep.shift[k] + size]
        weights *= sweep.values[base[:, None] + shifts]
    if len(causes.term_ptr):
        for t in range(causes.term_ptr[i], causes.term_ptr[i + 1]):
            for chain in range(n):
                weights[chain] *= term_weights(causes, t, codes[:, chain], size)
            top = weights.max(axis=1, keepdims=True)
            weights = np.where((top > 0) & (top < 2.0**-500), weights * 2.0**500, weights)
    sums = np.cumsum(weights, axis=1)
    total = sums[:, -1]
    level = np.ldexp(bits.astype(np.float64), -53) * total
    return np.asarray((sums[:, :-1] <= level[:, None]).sum(axis=1), dtype=np.int64), total > 0


def term_weights(causes: Causes, t: int, codes: Codes, n_states: int) -> Floats:
    """What a term says of each joint state of its move, given the codes of one chain."""
    f = int(causes.family[t])
    moved = causes.member[causes.member_ptr[t] : causes.member_ptr[t + 1]].tolist()
    kept = [leaf for leaf in range(causes.leaf_ptr[f], causes.leaf_ptr[f + 1]) if leaf not in moved]
    at = [int(codes[causes.column[leaf]]) if causes.column[leaf] >= 0 else 0 for leaf in kept]
    child, size, level = int(causes.child[f]), int(causes.size[f]), int(causes.level[f])
    strongest = causes.kind[f] == STRONGEST
    if causes.shown[t] >= 0:
        shown = causes.levels[causes.shown[t] : causes.shown[t] + n_states]
    elif child < 0:
        shown = np.full(n_states, causes.seen[f])
    else:
        shown = np.full(n_states, causes.levels[level + codes[child]] if strongest else codes[child])
    if not strongest:
        rest = sum(int(causes.numbers[causes.row[leaf] + code]) for leaf, code in zip(kept, at, strict=True))
        sums = rest + causes.numbers[causes.effect[t] : causes.effect[t] + n_states]
        found = causes.levels[level + np.minimum(sums, size - 1)]
        return np.asarray((sums < size) & (found == shown), np.float64)
    none = np.concatenate([np.eye(size)[0], np.ones(size)])
    for leaf, code in zip(kept, at, strict=True):
        start = int(causes.row[leaf]) + code * 2 * size
        none = _stronger(none, causes.effects[start : start + 2 * size])
    own = causes.effects[causes.effect[t] : causes.effect[t] + n_states * 2 * size].reshape(n_states, -1)
    return np.array([_stronger(none, row)[y] for row, y in zip(own, shown.tolist(), strict=True)])


def _stronger(a: Floats, b: Floats) -> Floats:
    """The stronger of two effects, each as P(=y) and P(≤y)."""
    (at, most), (other, other_most) = np.split(a, 2), np.split(b, 2)
    below = np.concatenate([[0.0], most[:-1]])
    return np.concatenate([at * other_most + below * other, most * other_most])
