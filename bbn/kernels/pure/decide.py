"""Eliminating variables from probabilities and utilities: a tape of steps on one array of cells.

A diagram stands for Π p · Σ u, a product of probability tables times a sum of utility tables. A step takes the tables
that hold one variable X and puts tables without X in their place:

- SUM, of a chance variable: p′ = Σ_X Π p and u′ = (Σ_X Π p · Σ u) / p′, with 0/0 = 0;
- MAX, of a decision: u′ = max_X Σ u over the states that are allowed, and the first state that attains it;
- MIN and MOST, of a decision where every table is a factor: p′ = min_X Π p, or max_X Π p, and the first such state

(Jensen, Jensen and Dittmer 1994; Dechter 2000). Words of a step, all int64:

====================  ================================================================================
kind                  SUM, MAX, MIN or MOST
length                of the step, in words
n_axes, card          of the result, and the states of X
n_p, n_u, n_allowed   how many tables of each kind
p, u, choice          where the results start, −1 for none: in the cells, in the cells, in the choices
cards                 n_axes of them
tables                for each: where it starts, its stride along each axis of the result, its stride along X
====================  ================================================================================

Results are in C order. A table of products that gets very small or large is scaled; the logarithms are added up.
"""

from __future__ import annotations

import math

import numpy as np

from bbn.kernels.contracts.types import Floats, Ints
from bbn.kernels.watch import check

SUM, MAX, MIN, MOST = range(4)
HEAD = 10
"""Words before the cards."""
TINY, HUGE = 1e-150, 1e150
"""A table of products whose largest entry is beyond these is scaled to 1."""
FAINT = 1e-290
"""A product of probabilities, none of them 0, that is below this or above its reciprocal is too much for a double."""
MOST_AXES = 32


def run(tape: Ints, cells: Floats, choices: Ints) -> float:
    """Carry out the steps in place; the sum of the logarithms of the scales, NaN where a product leaves the range.

    Parameters
    ----------
    tape
        The steps, one after the other.
    cells
        The tables given, and room for those that the steps make.
    choices
        Room for the codes that the decisions take, one for each cell of their results.
    """
    check_tape(tape, len(cells), len(choices))
    log_scale, at = 0.0, 0
    while at < len(tape):
        check()
        kind, length, n_axes, card, n_p, n_u, n_allowed, p_at, u_at, choice_at = tape[at : at + HEAD].tolist()
        cards = tape[at + HEAD : at + HEAD + n_axes].tolist()
        place = at + HEAD + n_axes
        shape = (*cards, card)
        tables = []
        for _ in range(n_p + n_u + n_allowed):
            start, strides = int(tape[place]), 8 * tape[place + 1 : place + 2 + n_axes]
            tables.append(np.lib.stride_tricks.as_strided(cells[start:], shape, strides.tolist()))
            place += n_axes + 2
        size = math.prod(cards)
        with np.errstate(under="ignore", over="ignore"):
            p = math.prod(tables[:n_p], start=np.ones(shape))
        outside = ~((p >= FAINT) & (p <= 1 / FAINT))
        if outside.any() and (outside & math.prod([t > 0 for t in tables[:n_p]], start=np.True_)).any():
            log_scale = math.nan
        u = sum(tables[n_p : n_p + n_u], start=np.zeros(shape))
        if kind == SUM:
            total = p.sum(-1)
            if u_at >= 0:
                worth = (p * u).sum(-1)
                if p_at >= 0:
                    worth = np.divide(worth, total, out=np.zeros(cards), where=total > 0)
                cells[u_at : u_at + size] = worth.ravel()
        else:
            goal = u if kind == MAX else p if kind == MOST else -p
            for allowed in tables[n_p + n_u :]:
                goal = np.where(allowed > 0, goal, -math.inf)
            chosen = goal.argmax(-1)
            choices[choice_at : choice_at + size] = chosen.ravel()
            total = np.take_along_axis(p, chosen[..., None], -1)[..., 0]
            if u_at >= 0:
                cells[u_at : u_at + size] = np.take_along_axis(u, chosen[..., None], -1).ravel()
        if p_at >= 0:
            most = total.max()
            if most > 0 and not TINY < most < HUGE:
                if ((total > 0) & (total < FAINT * most)).any():
                    log_scale = math.nan
                total = total / most
                log_scale += math.log(most)
            cells[p_at : p_at + size] = total.ravel()
        at += length
    return log_scale


def run_in_logs(tape: Ints, cells: Floats, choices: Ints) -> float:
    """As `run`, with logarithms of probabilities: slower, and of any range. The weight at the end is 1, or 0."""
    check_tape(tape, len(cells), len(choices))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(cells)  # those of utilities are not used
    at, found = 0, -math.inf
    while at < len(tape):
        check()
        kind, length, n_axes, card, n_p, n_u, n_allowed, p_at, u_at, choice_at = tape[at : at + HEAD].tolist()
        cards = tape[at + HEAD : at + HEAD + n_axes].tolist()
        place, shape, tables = at + HEAD + n_axes, (*cards, card), []
        for i in range(n_p + n_u + n_allowed):
            start, strides = int(tape[place]), 8 * tape[place + 1 : place + 2 + n_axes]
            source = logs if i < n_p else cells
            tables.append(np.lib.stride_tricks.as_strided(source[start:], shape, strides.tolist()))
            place += n_axes + 2
        size = math.prod(cards)
        p = sum(tables[:n_p], start=np.zeros(shape))
        u = sum(tables[n_p : n_p + n_u], start=np.zeros(shape))
        if kind == SUM:
            total = np.logaddexp.reduce(p, axis=-1)
            if u_at >= 0:
                shift = np.where(np.isneginf(total), 0.0, total if p_at >= 0 else 0.0)
                cells[u_at : u_at + size] = (np.exp(p - shift[..., None]) * u).sum(-1).ravel()
        else:
            goal = u if kind == MAX else p if kind == MOST else -p
            for allowed in tables[n_p + n_u :]:
                goal = np.where(allowed > 0, goal, -math.inf)
            chosen = goal.argmax(-1)
            choices[choice_at : choice_at + size] = chosen.ravel()
            total = np.take_along_axis(p, chosen[..., None], -1)[..., 0]
            if u_at >= 0:
                cells[u_at : u_at + size] = np.take_along_axis(u, chosen[..., None], -1).ravel()
        if p_at >= 0:
            logs[p_at : p_at + size] = total.ravel()
            found = float(total.ravel()[0])
            cells[p_at : p_at + size] = np.isfinite(total).ravel()
        at += length
    return 0.0 if math.isinf(found) else found


def check_tape(tape: Ints, n_cells: int, n_choices: int) -> None:
    """ValueError unless every step stays within the cells and the choices."""
    at, n = 0, len(tape)
    while at < n:
        if at + HEAD > n:
            raise ValueError(f"tape: expected {HEAD} words at {at}, found {n - at}")
        kind, length, n_axes, card, n_p, n_u, n_allowed, p_at, u_at, choice_at = tape[at : at + HEAD].tolist()
        if not SUM <= kind <= MOST or not 0 <= n_axes <= MOST_AXES or card < 1:
            raise ValueError(f"tape: the step at {at} is not one")
        if min(n_p, n_u, n_allowed) < 0 or max(n_p, n_u, n_allowed) > n:
            raise ValueError(f"tape: the step at {at} has a wrong number of tables")
        if length != HEAD + n_axes + (n_p + n_u + n_allowed) * (n_axes + 2) or at + length > n:
            raise ValueError(f"tape: the step at {at} has a wrong length, {length}")
        cards = tape[at + HEAD : at + HEAD + n_axes].tolist()
        if min(cards, default=1) < 1:
            raise ValueError(f"tape: the step at {at} has an axis without states")
        size = math.prod(cards)
        rooms = [(p_at, n_cells), (u_at, n_cells)] + ([(choice_at, n_choices)] if kind != SUM else [])
        for start, room in rooms:
            if start + size > room or (start < 0 and (start != -1 or room is n_choices)):
                raise ValueError(f"tape: the results of the step at {at} do not fit")
        if kind != SUM and choice_at < 0:
            raise ValueError(f"tape: the results of the step at {at} do not fit")
        place = at + HEAD + n_axes
        for _ in range(n_p + n_u + n_allowed):
            start = int(tape[place])
            strides = tape[place + 1 : place + 2 + n_axes].tolist()
            last = start + sum(s * (c - 1) for s, c in zip(strides, [*cards, card], strict=True))
            if start < 0 or min(strides) < 0 or last >= n_cells:
                raise ValueError(f"tape: a table of the step at {at} is outside the cells")
            place += n_axes + 2
        at += length
