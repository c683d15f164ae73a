"""Bounds of NoisyMax conditionals whose child has children of its own, or several states that are not observed.

The bound of `noisy_max_search` is a table for each parent and the child, and one for the child, with a slope for each
state of the child.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.search.variational_bounds import FLAT, STEEP, Codes, log_terms, tangent
from bbn.model.noisy_max import NoisyMax


class _Terms(NamedTuple):
    """Numbers of the variables, and ln α and T of each cause, all per child's state."""

    child: int
    parents: list[int]
    log_alpha: list[Array]
    """Per parent, shape (states of the parent, states of the child); the leak's, with one row, last."""
    shift: list[Array]
    """T, likewise."""


class Pairs:
    """NoisyMax conditionals that are bounded by tables of a parent and the child.

    Parameters
    ----------
    conditionals
        The conditionals.
    number
        Variable name to its number.
    """

    def __init__(self, conditionals: Sequence[NoisyMax], number: Mapping[str, int]) -> None:
        self.conditionals = conditionals
        self.terms = [
            _Terms(number[own.name], [number[v.name] for v in own.parents], *log_terms(own))
            for own in conditionals
        ]
        self.starts: list[list[int]] = []

    def tables(self) -> tuple[list[int], list[Array]]:
        """The variables of each table, one list of all, and tables of ones."""
        members: list[int] = []
        tables: list[Array] = []
        for own in self.terms:
            for v, logs in zip(own.parents, own.log_alpha, strict=False):
                members += [v, own.child]
                tables.append(np.ones(logs.shape))
            members.append(own.child)
            tables.append(np.ones(own.log_alpha[-1].shape[1]))
        return members, tables

    def placed(self, starts: Sequence[int]) -> None:
        """Note where each table begins among the flat tables."""
        at = 0
        for own in self.terms:
            self.starts.append(list(starts[at : at + len(own.shift)]))
            at += len(own.shift)

    def slopes(self) -> list[Array]:
        """Those of the leak alone, per state of the child: almost 0 for the weakest, whose bound is P itself."""
        return [np.asarray(tangent(own.shift[-1][0])) for own in self.terms]

    def values(self, slopes: Sequence[Array], low: Codes, high: Codes) -> Iterator[tuple[int, Array]]:
        """Where each table begins, and its logarithms under these slopes."""
        for own, conditional, slope, starts in zip(
            self.terms, self.conditionals, slopes, self.starts, strict=True
        ):
            if (
                low[own.parents] == high[own.parents]
            ).all():  # nothing is left to be bounded: the last table holds all
                for start, shift in zip(starts, own.shift[:-1], strict=False):
                    yield start, np.zeros(shift.shape)
                with np.errstate(divide="ignore"):
                    yield starts[-1], np.log(conditional.row_at(low[own.parents].tolist()))
                continue
            for start, logs, shift in zip(starts, own.log_alpha, own.shift, strict=True):
                last = start == starts[-1]
                yield start, logs - slope * shift + (_conjugate(slope) if last else 0.0)

    def move(self, slopes: Sequence[Array], codes: Codes, damped: float) -> float:
        """Move each slope toward where it bounds this explanation best; how far, in logarithms."""
        moved = 0.0
        for own, slope in zip(self.terms, slopes, strict=True):
            y = int(codes[own.child])
            change = (math.log(float(tangent(self._sum(own, codes)))) - math.log(slope[y])) / damped
            slope[y] = min(max(slope[y] * math.exp(change), FLAT), STEEP)
            moved = max(moved, abs(change))
        return moved

    def blame(self, slopes: Sequence[Array], codes: Codes, free: Any, blame: Array) -> None:
        """Add how much of the gap of each bound the choice of a variable makes; that of the child comes first."""
        for own, slope in zip(self.terms, slopes, strict=True):
            y, total = int(codes[own.child]), self._sum(own, codes)
            truth = math.log(-math.expm1(total)) if total < 0 else -math.inf
            gap = float(_conjugate(slope[y])) - slope[y] * total - truth
            if free[own.child]:
                blame[own.child] += max(gap, 1e-300)
                continue
            moves = [float(np.ptp(shift[:, y])) for shift in own.shift[:-1]]
            for v, move in zip(own.parents, moves, strict=True):
                if free[v]:
                    share = move / sum(moves) if sum(moves) > 0 else 0.0
                    blame[v] += min(max(gap, 0.0) * share, 1e300) + 1e-300

    def _sum(self, own: _Terms, codes: Codes) -> float:
        """T of an explanation."""
        y = codes[own.child]
        terms = [float(shift[codes[v], y]) for v, shift in zip(own.parents, own.shift, strict=False)]
        return sum(terms) + float(own.shift[-1][0, y])


def _conjugate(slope: Any) -> Any:
    """c(s), the highest of g(T) + s T."""
    return slope * np.log(slope) - (1 + slope) * np.log1p(slope)
