"""Branch and cut: choose one parent set per variable so that no cluster of variables lacks a first one.

    maximise Σ s(i, Π) x(i, Π)   with Σ_Π x(i, Π) = 1 for every variable i, and the rows of every cluster (`clusters`)

    relax: x are fractions; solve the linear program, add the rows that x violates, until there are none
    then:  x are 0 or 1; solve the integer program, add the cycles of its solution, until there are none

Multipliers λ ≥ 0 of the rows R, with right-hand sides k, give a bound that holds whatever a solver's tolerances are:

    no structure scores more than Σ_i max_Π (s(i, Π) + Σ {λ_R: (i, Π) ∈ R}) − Σ_R λ_R k_R

A set that falls short of its variable's maximum by more than the gap is of no further use. The rows make the integer
programs small: HiGHS mostly ends them at the root. Cussens (2011) adds clusters inside the solver's tree instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from bbn.core.frozen import Array
from bbn.learning.structure.exact.clusters import SetColumns
from bbn.learning.structure.exact.order_climb import BestChoice
from bbn.learning.structure.exact.parts import SearchPart, Timer
from bbn.learning.structure.exact.program import CLOSE, LinearProgram, Row


def branch_and_cut(
    part: SearchPart, start: Sequence[int] | None, timer: Timer, advance: Callable[..., object]
) -> tuple[list[int], float, BaseException | None]:
    """The chosen set of each member, a bound that no choice exceeds, and what stopped the search, if anything did.

    `start` are parents of all variables, as masks, that the search should beat. Nothing is chosen where every choice
    has a cycle, or time ran out before an acyclic one was found.
    """
    search = BranchAndCut(part, timer, advance)
    try:
        search.run(start)
    except (TimeoutError, KeyboardInterrupt) as stop:
        return search.best.chosen, search.bound, stop
    return search.best.chosen, search.best.score, None


class BranchAndCut:
    """The state of a branch and cut: columns (a child and a set each), rows, the best choice, the bound."""

    def __init__(self, part: SearchPart, timer: Timer, advance: Callable[..., object]) -> None:
        self.timer, self.advance = timer, advance
        self.best = BestChoice(part)
        self.columns = SetColumns(part)
        self.top: Array = np.array([own[0] for own in part.values])
        self.bound = math.fsum(self.top.tolist())
        self.useful = np.ones(len(self.columns.value), dtype=bool)
        self.rows: list[Row] = []

    def run(self, start: Sequence[int] | None) -> None:
        """Until the bound meets the best score."""
        order = self.best.first_order()
        self.best.offer(self.best.follow(order))
        self.best.offer(self.best.climb(order, self.timer))
        if start is not None:
            self.best.offer_parents(start, self.timer)
        self.relax()
        if self.bound > self.best.score + CLOSE:
            self.decide()

    def relax(self) -> None:
        """Add violated rows to the linear program until there are none, or its bound is the best score."""
        program = self.program()
        while True:
            if not program.solve(self.timer.check):
                return  # no choice is acyclic: the integer program says so too
            self.lower(program)
            self.best.offer_rounded(self.columns.child, self.columns.contains, program.x)
            self.show()
            rows = self.columns.violated(program.x, self.timer)
            if not rows or self.bound <= self.best.score + CLOSE:
                return
            self.rows += rows
            program.add(rows)

    def lower(self, program: LinearProgram) -> None:
        """Lower the bound by the multipliers of the rows, and leave out what is of no further use."""
        raised = self.columns.value.copy()
        multipliers = program.multipliers()[self.columns.n :]
        for row, multiplier in zip(self.rows, multipliers, strict=True):
            if multiplier > 0.0:
                raised[row.columns] += multiplier
        raised[~self.useful] = -np.inf
        top = np.full(self.columns.n, -np.inf)
        np.maximum.at(top, self.columns.child, raised)
        priced = math.fsum(m * row.least for m, row in zip(multipliers, self.rows, strict=True))
        bound = math.fsum(top.tolist()) - priced
        self.bound = max(min(self.bound, bound), self.best.score)
        useless = self.useful & (top[self.columns.child] - raised > bound - self.best.score + CLOSE)
        self.useful &= ~useless
        program.leave_out(np.flatnonzero(useless))

    def decide(self) -> None:
        """Solve integer programs, with the cycles of each solution ruled out in the next."""
        program = self.program(whole=True)
        while True:
            if not program.solve(self.timer.check, self.heed, self.solution()):
                break
            self.lower_to(program.bound)
            chosen = np.flatnonzero(program.x > 0.5)
            self.best.offer_rounded(self.columns.child, self.columns.contains, program.x)
            rows = self.columns.cycles(chosen)
            self.show()
            if not rows or self.bound <= self.best.score + CLOSE:
                break
            self.rows += rows
            program.add(rows)
        self.bound = self.best.score

    def program(self, whole: bool = False) -> LinearProgram:
        """The program of the rows so far. The cost of a set is by how much it falls short of its variable's best."""
        program = LinearProgram(self.top[self.columns.child] - self.columns.value, whole)
        program.leave_out(np.flatnonzero(~self.useful))
        program.add(self.columns.one_each(), most=1.0)
        program.add(self.rows)
        return program

    def solution(self) -> Array | None:
        """The best choice, as a solution of the program."""
        if not self.best.chosen:
            return None
        chosen = np.array(self.best.chosen)[self.columns.child]
        return np.asarray(self.columns.rank == chosen, dtype=np.float64)

    def heed(self, bound: float, x: Array | None) -> None:
        """Use what an integer program reports while it runs."""
        self.lower_to(bound)
        if x is not None:
            self.best.offer_rounded(self.columns.child, self.columns.contains, x)
        self.show(0)

    def lower_to(self, short: float) -> None:
        """Lower the bound, given by how much every choice falls short of each variable's best set."""
        self.bound = max(min(self.bound, math.fsum(self.top.tolist()) - short), self.best.score)

    def show(self, steps: int = 1) -> None:
        """Show both bounds."""
        self.advance(steps, score=self.best.score, bound=self.bound)
