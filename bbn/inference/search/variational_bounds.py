"""Bounds of ln P(child | parents), for NoisyMax conditionals whose child has no children, all of them at once.

With T a sum over the parents (see `noisy_max_search`), the logarithm of P is a function of T on the
interval from the lowest to the highest T that the states left to the parents allow:

    an observed child          A + g(T),            g(T) = ln(1 − e^T), A a sum over the parents too
    a child of two states      max(T, g(T))         where it is not observed: the better state is taken

A line a − s T above it on that interval is a sum over the parents, so the child leaves the junction tree. Of use are
the slopes of g's tangents on the interval. Where the weakest state is the better one at the highest T, those are left
out that pass below its value there; where all do, the chord is the best line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.model.evidence import Findings
from bbn.model.noisy_max import NoisyMax

CERTAIN = -40.0
"""T of an effect that is certain: e^T is beyond the digits of 1 − e^T."""
FLAT, STEEP = 1e-18, 1e6
"""The least and the largest slope of a line."""
HALVINGS = 25
"""Steps to the tangent through a point."""

Codes = NDArray[np.intp]


class Span(NamedTuple):
    """What some states left to the parents allow, per conditional."""

    low: Array
    high: Array
    """The lowest and highest T."""
    least: Array
    most: Array
    """ln of the slopes of use."""
    chord: Array
    """The slope where one line alone is best, NaN elsewhere."""


class Lines:
    """NoisyMax conditionals that lines bound.

    Parameters
    ----------
    conditionals
        Those whose child has no children and is observed or has two states.
    number
        Variable name to its number among those that are not such children.
    start
        Where the states of each such variable begin, among those of all, and the end of the last.
    findings
        What is observed.
    """

    def __init__(
        self, conditionals: Sequence[NoisyMax], number: dict[str, int], start: Codes, findings: Findings
    ) -> None:
        self.names = [c.name for c in conditionals]
        self.n = len(conditionals)
        self.n_states = int(start[-1])
        self.fixed = np.zeros(self.n_states)
        """A: ln of what is certain, per state of a parent."""
        self.constant = 0.0
        self.either = np.zeros(self.n, bool)
        """Children that are not observed."""
        self.exact = np.zeros(self.n, bool)
        """Children that are observed in their weakest state: P is A."""
        self.leak = np.zeros(self.n)
        owner: list[Codes] = []
        parent: list[int] = []
        shifts: list[Array] = []
        places: list[Codes] = []
        for f, own in enumerate(conditionals):
            state = findings.hard.get(own.name, own.variable.card - 1 - own.weakest_code)
            self.either[f] = own.name not in findings.hard
            self.exact[f] = state == own.weakest_code
            logs, terms = log_terms(own)
            if self.exact[f]:
                terms = [np.zeros(term.shape) for term in terms]
            self.leak[f] = terms[-1][0, state]
            self.constant += logs[-1][0, state]
            for v, log, term in zip(own.parents, logs, terms, strict=False):
                i = number[v.name]
                places.append(np.arange(start[i], start[i + 1]))
                self.fixed[places[-1]] += log[:, state]
                owner.append(np.full(v.card, f))
                parent.append(i)
                shifts.append(term[:, state])
        self.parent = np.array(parent, np.intp)
        self.first = np.concatenate([[0], np.cumsum([len(s) for s in shifts])]).astype(np.intp)[:-1]
        self.owner = np.concatenate([*owner, np.zeros(0, np.intp)]).astype(np.intp)
        self.place = np.concatenate([*places, np.zeros(0, np.intp)]).astype(np.intp)
        self.shift = np.concatenate([*shifts, np.zeros(0)])
        self.link_owner = self.owner[self.first]

    def span(self, allowed: NDArray[np.bool_]) -> Span:
        """The T that these states of the parents allow."""
        low, high = self.leak.copy(), self.leak.copy()
        if len(self.first):
            lows, highs = self._ends(allowed)
            low += np.bincount(self.link_owner, lows, self.n)
            high += np.bincount(self.link_owner, highs, self.n)
        touch, chord = high.copy(), np.full(self.n, np.nan)
        e = np.flatnonzero(self.either & (_g(high) < high))
        if len(e):
            ends, width = high[e], high[e] - low[e]
            starts = np.maximum(low[e], _g(low[e]))
            none = _g(low[e]) - tangent(low[e]) * width <= ends
            a, b = low[e], high[e]
            for _ in range(HALVINGS):
                middle = (a + b) / 2
                over = _g(middle) - tangent(middle) * (ends - middle) > ends
                a, b = np.where(over, middle, a), np.where(over, b, middle)
            touch[e] = a
            slopes = np.divide(starts - ends, width, out=np.zeros(len(e)), where=width > 0)
            chord[e[none]] = slopes[none]
        return Span(low, high, np.log(tangent(low)), np.log(tangent(np.maximum(touch, low))), chord)

    def slopes(self, span: Span, logs: Array) -> Array:
        """The slopes whose logarithms these are, or of the chords."""
        slopes = np.where(np.isnan(span.chord), np.exp(np.clip(logs, span.least, span.most)), span.chord)
        return np.where(self.exact, 0.0, slopes)

    def wanted(self, span: Span, whole: Codes) -> Array:
        """ln of the slopes that bound this explanation best."""
        return np.asarray(np.clip(np.log(tangent(self.sums(whole))), span.least, span.most))

    def offsets(self, span: Span, slopes: Array) -> Array:
        """a: the highest of the function + s T on the interval."""
        with np.errstate(divide="ignore", invalid="ignore"):
            touch = np.where(slopes > 0, -np.log1p(1 / slopes), -np.inf)
        touch = np.clip(touch, span.low, span.high)
        lines = _g(touch) + slopes * touch
        steep = 1 + slopes
        either = np.maximum(steep * span.low, steep * span.high)
        return np.where(self.exact, 0.0, np.maximum(lines, np.where(self.either, either, -np.inf)))

    def unary(self, slopes: Array) -> Array:
        """What lines of these slopes bring to each state of the parents."""
        return self.fixed - np.bincount(self.place, slopes[self.owner] * self.shift, self.n_states)

    def sums(self, whole: Codes) -> Array:
        """T of an explanation."""
        return self.leak + np.bincount(self.link_owner, self._at(whole), self.n)

    def _at(self, whole: Codes) -> Array:
        return np.asarray(self.shift[self.first + whole[self.parent]])

    def truth(self, sums: Array) -> Array:
        """The logarithms that the lines bound, but for A."""
        shown = _g(sums)
        return np.where(self.exact, 0.0, np.where(self.either, np.maximum(sums, shown), shown))

    def shown(self, whole: Codes) -> NDArray[np.bool_]:
        """Per child that is not observed, whether its strongest state is the better."""
        sums = self.sums(whole)
        return np.asarray(_g(sums) > sums)

    def blame(self, gaps: Array, allowed: NDArray[np.bool_], whole: Codes) -> Array:
        """Per variable, how much of the gaps at an explanation the choice of its state makes: by how far it moves T.

        Where a child may have either state the line is right at the highest T: what leads away from there is to blame.
        """
        if not len(self.first):
            return np.zeros(len(whole))
        lows, highs = self._ends(allowed)
        moves = np.where(self.either[self.link_owner], highs - self._at(whole), highs - lows)
        sums = np.bincount(self.link_owner, moves, self.n)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.nan_to_num(gaps[self.link_owner] * moves / sums[self.link_owner], posinf=1e300)
        return np.asarray(np.bincount(self.parent, shares, len(whole)), float)

    def _ends(self, allowed: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Per link the lowest and highest of its terms of T."""
        here = allowed[self.place]
        lows = np.minimum.reduceat(np.where(here, self.shift, np.inf), self.first)
        highs = np.maximum.reduceat(np.where(here, self.shift, -np.inf), self.first)
        return lows, highs


def log_terms(own: NoisyMax) -> tuple[list[Array], list[Array]]:
    """ln α and T of each link and, with one row, of the leak; shape (states of the parent, states of the child)."""
    rises = own.strongest == own.variable.states[-1]
    logs, terms = [], []
    for link in (*own.links, own.leak[None]):
        ordered = link if rises else link[:, ::-1]
        alpha = np.cumsum(ordered, axis=1)
        alpha[:, -1] = 1.0
        beta = np.concatenate([np.zeros((len(link), 1)), alpha[:, :-1]], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log, term = np.log(alpha), np.log(beta) - np.log(alpha)
        term[term == -np.inf] = CERTAIN
        term[~(alpha > 0)] = 0.0
        logs.append(log if rises else log[:, ::-1])
        terms.append(term if rises else term[:, ::-1])
    return logs, terms


def _g(t: Any) -> Any:
    """ln(1 − e^T)."""
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(np.minimum(t, 0.0)))


def tangent(t: Any) -> Any:
    """The s of the line that touches g at T."""
    t = np.minimum(t, -1e-9)
    return np.clip(np.exp(t) / -np.expm1(t), FLAT, STEEP)
