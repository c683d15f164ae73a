"""Elimination orders: greedy rules, and a search for a better order where that pays.

The best order is hard to find, and no rule wins everywhere. Small networks take min-fill; larger ones the best of three
rules. Where a run is long, a small share of its predicted cost is spent on search. First pieces of the order are
ordered anew (`kernels.pieces`), which takes microseconds each. Where the share allows for more, the rules choose among
costs that are multiplied by a bias for each variable, and the biases climb (randomised greedy orders: Kask, Gelfand,
Otten and Dechter 2011; keys as a search space: Bean 1994): each step changes some biases of one of the orders found so
far and eliminates anew, giving up with the first clique that is larger than all cliques of the order to beat; and what
the climb finds is ordered anew in pieces again. Where even that would run for a second or more, the pieces are
annealed: some that have more cells are kept, fewer and fewer, which leaves what no single piece can better. The search
is seeded, and what it may spend is counted in nominal seconds (`prices`), so the same question has the same order on
any machine.

A search pays for itself where a run follows. Where the plan does not fit the memory none does, so the search ends after
PATIENCE if the plan still does not fit by then. A time limit says how long to look instead, and is
looked at by the clock: climb and annealing each end when they have taken SHARE_OF_LIMIT of what is left of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from bbn import kernels
from bbn.inference.exact.prices import CELL, ORDER_PAIR, ORDER_STEP, PIECE
from bbn.kernels.contracts.types import Floats, Ints
from bbn.kernels.watch import check, time_left
from bbn.model.graphs import ORDERS, Elimination, find_rule

PORTFOLIO = ("min-fill", "weighted-min-fill", "min-weight")
"""The rules that "auto" tries: the first alone where its cliques are small, otherwise all, and the cheapest is kept."""
SMALL = 100_000.0
"""Cells up to which the first rule of the portfolio is good enough."""
HUGE = 1_000_000.0
"""Cells from which a search is worth its while: by then elimination is quick beside a run."""
BEYOND, HOPELESS = 1e15, 1e18
"""Cells past which no layout is made, and past which no order is looked for."""
VAST = 3e8
"""Cells from which a run takes a second or more: then a larger share of it goes into the search."""
SHARE, SHARE_OF_MANY = 0.025, 0.08
"""The share of a run's cost that a search may take: of the only run, and of one of many."""
SHARE_OF_VAST = 0.15
"""The share of a run of over VAST cells, with either."""
SHARE_OF_LIMIT = 0.05
"""The share of the time that a limit leaves which a climb may take, and then the annealing."""
PATIENCE, CLIMBED, NEAR, LAST = 0.16, 0.5, 8.0, 0.48
"""What a search may cost, in nominal seconds, while its plan does not fit the memory, the share CLIMBED of it in the
climb; and up to LAST where the plan takes at most NEAR times the memory limit."""
ASKED = 4000
"""The pieces of an annealing after which it is asked again whether the plan fits."""
FEWEST, PER_VARIABLE, MOST_PIECES = 50, 0.25, 10_000
"""The pieces of a search: where the plan will be run again and again, at least FEWEST and so many for each variable."""
MOST = 2000
"""The steps of a climb, at most."""
LOST = 200
"""The steps after which a climb ends that is still past BEYOND."""
ANNEALED, ROUNDS, BURST = 20_000, 5, 500
"""The pieces of the first annealing, the most of them (each twice as long as the last), and the pieces of a heat."""
HOT, COLD = 0.02, 0.0005
"""The first heat and the last; see `kernels.pieces`."""
WORTHWHILE = 4
"""With fewer steps or pieces than this, nothing much is found."""
MOVES = ((1.0, 0.03), (1.0, 0.1), (0.2, 0.2), (0.05, 0.5))
"""What a step may do: the share of biases that change, and the standard deviation of the logarithm of the change."""


class Order(NamedTuple):
    """An elimination, and how it was found."""

    elimination: Elimination
    cells: float
    """The cells of its cliques."""
    tried: int
    """How many orders were worked out, or given up."""
    greedy: float
    """The cells of the best that the rules alone gave."""
    starts: tuple[tuple[str, Elimination, float], ...] = ()
    """Where a search may begin: the rule, elimination and cells of each; none where no search is worth its while."""


Needs = Callable[[Order], float]
"""How many times the memory limit the plan of an order takes."""


class _Start:
    """The best order of one rule, and the biases that it came of."""

    def __init__(self, rule: str, elimination: Elimination, cells: float, n: int) -> None:
        self.rule, self.elimination, self.cells = rule, elimination, cells
        self.bias: Floats = np.ones(n)


def greedy(cards: Ints, ptr: Ints, scope: Ints, order: str = "auto", most: float = inf) -> Order:
    """An elimination of these scopes by rules; "auto" tries the portfolio where the first rule's cliques are large.

    Parameters
    ----------
    cards, ptr, scope
        The states of each variable, and the scopes as offsets and members.
    order
        A rule, or "auto".
    most
        Each rule is given up with its first clique of more cells than this, and the elimination ends there if all are.
    """
    rules = PORTFOLIO if order == "auto" else (order,)
    elimination = find_rule(rules[0])(cards, ptr, scope, None, most)
    cells = kernels.triangulate.total_cells(cards, *elimination)
    if cells <= SMALL or order != "auto":
        return Order(elimination, cells, 1, cells)
    found = [(rules[0], elimination, cells)]
    for name in rules[1:]:
        other = ORDERS[name](cards, ptr, scope, None, min(10 * cells, most))
        if len(other[0]) == len(elimination[0]) or cells > most:
            found.append((name, other, kernels.triangulate.total_cells(cards, *other)))
    _, best, fewest = min(found, key=itemgetter(2))
    pays = HUGE < fewest <= min(most, HOPELESS) and kernels.COMPILED
    return Order(best, fewest, len(rules), fewest, tuple(found) if pays else ())


def searched(
    cards: Ints, ptr: Ints, scope: Ints, found: Order, thorough: bool = False, needs: Needs | None = None
) -> Order:
    """The best of a search from what the rules found, as long as that pays.

    Parameters
    ----------
    cards, ptr, scope, found
        As `greedy` took them, and what it gave.
    thorough
        Whether the plan will be run again and again.
    needs
        How many times the memory limit the plan of an order takes, which ends a long search; by default that fits.
    """
    if not found.starts:
        return found
    starts = [_Start(name, other, cells, len(cards)) for name, other, cells in found.starts]
    patience = _Patience(needs)
    return patience.best(_search(cards, ptr, scope, starts, found._replace(starts=()), thorough, patience))


def triangulate(
    cards: Ints,
    ptr: Ints,
    scope: Ints,
    order: str = "auto",
    thorough: bool = False,
    most: float = inf,
    needs: Needs | None = None,
) -> Order:
    """The best elimination that rules and a search find; see `greedy` and `searched`."""
    return searched(cards, ptr, scope, greedy(cards, ptr, scope, order, most), thorough, needs)


class _Patience:
    """How long an order is looked for while its plan does not fit the memory.

    Parameters
    ----------
    needs
        How many times the memory limit the plan of an order takes; None if that need not be asked.
    """

    def __init__(self, needs: Needs | None) -> None:
        self._needs = needs if time_left() == inf else None
        self._fitting: Order | None = None
        self.spent = 0.0
        """What the search has cost."""

    def ends(self, order: Order, least: float, near: float = 1.0, most: float = 0.0) -> bool:
        """Whether a search that has come to this order ends, as the plan is too large.

        It may cost `least`, and `most` where the plan takes at most `near` times the memory limit.
        """
        if self._needs is None or self._fitting is not None or self.spent < least:
            return False
        times = self._needs(order)
        if times <= 1.0:
            self._fitting = order
            return False
        return times > near or self.spent >= most

    def best(self, found: Order) -> Order:
        """What a search has found, or an order with more cells if the plan of that alone fits."""
        if self._needs is None or self._fitting is None or self._needs(found) <= 1.0:
            return found
        return self._fitting._replace(tried=found.tried)


def _search(
    cards: Ints,
    ptr: Ints,
    scope: Ints,
    starts: list[_Start],
    found: Order,
    thorough: bool,
    patience: _Patience,
) -> Order:
    """The best of pieces ordered anew, and of a climb from these starts whose pieces are ordered anew in turn."""
    fewest, usual = 0, SHARE
    if thorough:
        fewest, usual = max(FEWEST, int(PER_VARIABLE * len(found.elimination[0]))), SHARE_OF_MANY
    best = in_pieces(cards, ptr, scope, found, _share(usual, found.cells), fewest)
    cost = step_cost(found.elimination)
    if CELL * _share(usual, best.cells) * best.cells < WORTHWHILE * cost:
        return best
    climb = Climb([cards], ptr, scope, starts)

    def climbed() -> Order:
        return Order(climb.best.elimination, climb.best.cells, best.tried + climb.tried, found.greedy)

    until = time.monotonic() + SHARE_OF_LIMIT * time_left()
    while time.monotonic() < until:
        least = min(best.cells, climb.best.cells)
        most = LOST if least > BEYOND else MOST
        if climb.tried >= most or (climb.tried + 1) * cost > CELL * _share(usual, least) * least:
            break
        enough = CLIMBED * PATIENCE
        if patience.spent >= enough and patience.ends(min(best, climbed(), key=_cells), enough):
            break
        climb.step()
        patience.spent += cost
    other = climbed()
    other = in_pieces(cards, ptr, scope, other, _share(usual, other.cells))
    best = min(best._replace(tried=other.tried), other, key=_cells)
    return _annealed(cards, ptr, scope, best, patience) if VAST < best.cells <= BEYOND else best


def _cells(order: Order) -> float:
    return order.cells


def _share(usual: float, cells: float) -> float:
    """The share of a run of so many cells that a search may take."""
    return SHARE_OF_VAST if cells > VAST else usual


def _annealed(cards: Ints, ptr: Ints, scope: Ints, best: Order, patience: _Patience) -> Order:
    """The best of longer and longer annealings, each from the best so far."""
    until = time.monotonic() + SHARE_OF_LIMIT * time_left()
    steps, tried = ANNEALED, 0
    samples = cards[None].astype(np.float64)
    for _ in range(ROUNDS):
        pieces = kernels.pieces.Pieces(samples, ptr, scope, *best.elimination)
        for done in range(0, steps, BURST):
            spent = (tried + BURST) * PIECE
            if spent > CELL * SHARE_OF_VAST * best.cells or time.monotonic() > until:
                return best._replace(tried=best.tried + tried)
            if done % ASKED == 0 and patience.ends(best, PATIENCE, NEAR, LAST):
                return best._replace(tried=best.tried + tried)
            pieces.improve(BURST, HOT * (COLD / HOT) ** (done / steps))
            tried += BURST
            patience.spent += BURST * PIECE
            if pieces.cells() < best.cells:
                best = best._replace(elimination=pieces.elimination(), cells=pieces.cells())
        steps *= 2
    return best._replace(tried=best.tried + tried)


def in_pieces(cards: Ints, ptr: Ints, scope: Ints, found: Order, share: float, fewest: int = 0) -> Order:
    """An order whose pieces are ordered anew, at least `fewest` of them, more where that takes a share of a run."""
    steps = min(max(fewest, int(CELL * share * found.cells / PIECE)), MOST_PIECES)
    if steps < WORTHWHILE:
        return found
    pieces = kernels.pieces.Pieces(cards[None].astype(np.float64), ptr, scope, *found.elimination)
    pieces.improve(steps)
    return Order(pieces.elimination(), pieces.cells(), found.tried + steps, found.greedy)


class Climb:
    """A search for a better order, step by step; it may be put aside and continued.

    Parameters
    ----------
    samples
        The states of each variable, as they may be; what counts is the mean number of cells.
    ptr, scope
        The scopes as offsets and members.
    starts
        Where to climb from; the three rules of the portfolio unless given.
    """

    def __init__(
        self, samples: list[Ints], ptr: Ints, scope: Ints, starts: list[_Start] | None = None
    ) -> None:
        self._samples, self._ptr, self._scope = samples, ptr, scope
        self._cards = np.maximum(np.rint(np.mean(samples, axis=0)), 1).astype(np.int64)
        if starts is None:
            starts = []
            for name in PORTFOLIO:
                elimination = ORDERS[name](self._cards, ptr, scope)
                starts.append(_Start(name, elimination, self.cells(elimination), len(self._cards)))
        self._starts = starts
        self._rng = np.random.default_rng(0)
        self.best = min(starts, key=lambda start: start.cells)
        self.tried = 0

    def cells(self, elimination: Elimination) -> float:
        """The mean number of cells of the cliques of an elimination."""
        counted = [kernels.triangulate.total_cells(cards, *elimination) for cards in self._samples]
        return sum(counted) / len(counted)

    def step(self) -> bool:
        """Try one more order; whether it is the best by now."""
        check()
        rng, starts = self._rng, self._starts
        start = self.best if rng.random() < 0.5 else starts[rng.integers(len(starts))]
        part, spread = MOVES[rng.integers(len(MOVES))]
        moved = rng.random(len(self._cards)) < part
        bias = start.bias.copy()
        bias[moved] *= np.exp(spread * rng.standard_normal(int(moved.sum())))
        other = ORDERS[start.rule](self._cards, self._ptr, self._scope, most=start.cells, bias=bias)
        self.tried += 1
        if len(other[0]) < len(start.elimination[0]):  # given up
            return False
        cells = self.cells(other)
        if cells > start.cells:
            return False
        best = cells < self.best.cells
        start.elimination, start.cells, start.bias = other, cells, bias
        if best:
            self.best = start
        return best


def step_cost(elimination: Elimination) -> float:
    """What a step of the search costs."""
    sizes = np.diff(elimination[1]).astype(np.float64) + 2
    return ORDER_STEP + ORDER_PAIR * float(sizes @ sizes)
