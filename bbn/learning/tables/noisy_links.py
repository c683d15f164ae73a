"""The links of a NoisyMax from complete data, by EM over the effects, which nobody sees.

With l_j = P(effect of cause j < y) and e_j = P(effect of cause j = y), the leak being one of the causes, the others of
cause i stay below y with probability ∏ l_j, and their strongest is y with a probability that is found by joining them
one by one, (l, e) and (l', e') to (l l', e (e' + l') + l e'): no difference, so nothing is lost. Given the child is y,

    P(effect of i = k | x, y) ∝ c_i(k | x_i) P(strongest other = y)        for k < y
                              ∝ c_i(y | x_i) P(strongest other ≤ y)        for k = y

(Vomlel 2006). A step costs rows × parents, whatever the number of settings of the parents. EM creeps where causes are
many, so after two steps a third goes on in their direction, as far as their lengths say (SQUAREM, Varadhan and Roland
2008), and is taken back where the likelihood would fall.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data import Block, DataSource
from bbn.learning.tables.extrapolation import extrapolated
from bbn.learning.tables.priors import Prior
from bbn.model.noisy_max import NoisyMax

STEPS = 2000
"""Steps of EM, at most."""
GAIN = 1e-10
"""A step that gains no more than this share of the log-likelihood is the last,"""
SLIGHT = 1e-7
"""and so is one that gains no more than this in all."""
CELLS = 1 << 20
"""Rows times causes that are looked at together."""


def fit_links(noisy: NoisyMax, source: DataSource, prior: Prior | None = None) -> NoisyMax:
    """The conditional with links and leak learned from complete data.

    Rows that have no effect, the weakest state for sure, say which states are absent causes, and stay. All others start
    from uniform rows.

    Parameters
    ----------
    noisy
        What to learn; only its rows without effect matter.
    source
        Complete data.
    prior
        Pseudo-counts of each link, as of a table of the child given that parent alone.
    """
    rises = noisy.variable.code(noisy.strongest) == noisy.variable.card - 1
    child = noisy.variable
    effects = [_start(link if rises else link[:, ::-1]) for link in (*noisy.links, noisy.leak[None])]
    alphas = [np.zeros(effect.shape) for effect in effects]
    if prior is not None:
        families = [*((parent, child) for parent in noisy.parents), (child,)]
        told = [prior.pseudocounts(family).reshape(-1, child.card) for family in families]
        alphas = [alpha if rises else alpha[:, ::-1] for alpha in told]
    step = _Step(noisy, source, rises, alphas)
    objective, following = step(effects)
    most = 4.0
    for _ in range(STEPS // 3):
        gained, after = step(following)
        if gained - objective <= GAIN * abs(gained) + SLIGHT:
            effects = following
            break
        further, length = _further(effects, following, after, most)
        effects, (objective, following) = further, step(further, strict=False)
        if objective >= gained:
            most = max(most, 4 * length)
        else:  # too far
            most = max(1.0, length / 4)
            effects, (objective, following) = after, step(after)
    *links, leak = (effect if rises else effect[:, ::-1] for effect in effects)
    copies = [np.ascontiguousarray(link) for link in links]
    return NoisyMax.made(child, noisy.parents, copies, np.ascontiguousarray(leak[0]), noisy.strongest)


def _start(link: Array) -> Array:
    """Uniform rows, but for those without effect."""
    start = np.full(link.shape, 1.0 / link.shape[1])
    start[link[:, 0] == 1.0] = np.eye(link.shape[1])[0]
    return start


def _normalised(counts: Array, old: Array) -> Array:
    """Rows divided by their sums; those without effect, or never seen, as they were."""
    sums = counts.sum(axis=1, keepdims=True)
    learned = np.divide(counts, sums, out=old.copy(), where=sums > 0)
    return np.where(old[:, :1] == 1.0, old, learned)


def _log_prior(alpha: Array, effect: Array) -> float:
    told = (alpha > 0) & (effect[:, :1] < 1.0)
    with np.errstate(divide="ignore"):
        return float(np.dot(alpha[told], np.log(effect[told])))


class _Step:
    """A step of EM: from effects to their objective and to better ones."""

    def __init__(self, noisy: NoisyMax, source: DataSource, rises: bool, alphas: list[Array]) -> None:
        self.noisy, self.source, self.rises, self.alphas = noisy, source, rises, alphas

    def __call__(self, effects: list[Array], strict: bool = True) -> tuple[float, list[Array]]:
        """The objective at these effects, −inf where they make a row impossible, and the effects after a step."""
        *counts, (objective, impossible) = self.source.reduce(_LinkPass(self.noisy, effects, self.rises))
        if impossible and not strict:
            return -np.inf, effects
        if impossible:
            raise DataError(
                f"NoisyMax {self.noisy.name!r}: {impossible:g} rows of the data have a state that no cause and no leak "
                "explain; give it a leak"
            )
        for alpha, effect in zip(self.alphas, effects, strict=True):
            objective += _log_prior(alpha, effect)
        following = [
            _normalised(own + alpha, effect)
            for own, alpha, effect in zip(counts, self.alphas, effects, strict=True)
        ]
        return float(objective), following


def _further(
    one: list[Array], two: list[Array], three: list[Array], most: float
) -> tuple[list[Array], float]:
    """Effects beyond three in a row, and how many steps from the first.

    As many, from 1 to `most`, as the first step is longer than the steps' change.
    """
    start, once, twice = (np.concatenate([e.ravel() for e in effects]) for effects in (one, two, three))
    guess, length = extrapolated(start, once, twice, most)
    found, begin = [], 0
    for own in three:
        reached = guess[begin : begin + own.size].reshape(own.shape)
        # no entry moves more than nine tenths of its way to 0, from where EM would never return
        reached = np.maximum(reached, 0.1 * own)
        found.append(reached / reached.sum(axis=1, keepdims=True))
        begin += own.size
    return found, length


class _LinkPass:
    """A step's pass over the data: the expected counts of each link, and the log-likelihood."""

    def __init__(self, noisy: NoisyMax, effects: list[Array], rises: bool) -> None:
        self.names = [*(p.name for p in noisy.parents), noisy.name]
        self.effects, self.rises = effects, rises

    def __call__(self, block: Block) -> list[Array]:
        counts = [np.zeros(effect.shape) for effect in self.effects]
        found = np.zeros(2)
        step = max(64, CELLS // len(self.effects))
        for start in range(0, block.n_rows, step):
            rows = slice(start, start + step)
            codes = [block.codes[name][rows].astype(np.intp) for name in self.names]
            self._add(codes, block.weights[rows], counts, found)
        return [*counts, found]

    def _add(self, codes: list[NDArray[np.intp]], weights: Array, counts: list[Array], found: Array) -> None:
        """Add some rows' expected counts, their log-likelihood, and the weight of those that are impossible."""
        *states, y = codes
        card = self.effects[0].shape[1]
        y = y if self.rises else card - 1 - y
        states = [*states, np.zeros(len(y), np.intp)]  # the leak has one state
        lower = [_below(effect)[x, y] for effect, x in zip(self.effects, states, strict=True)]
        equal = [effect[x, y] for effect, x in zip(self.effects, states, strict=True)]
        after = [(np.ones(len(y)), np.zeros(len(y)))]
        for below, at in zip(reversed(lower[1:]), reversed(equal[1:]), strict=True):
            after.append(_joined(after[-1], (below, at)))
        before = (np.ones(len(y)), np.zeros(len(y)))
        total: Array | None = None
        for i, (below, at) in enumerate(zip(lower, equal, strict=True)):
            others = _joined(before, after.pop())
            if total is None:
                total = others[1] * (below + at) + others[0] * at
                possible = total > 0
                found[1] += weights[~possible].sum()
                with np.errstate(divide="ignore"):
                    found[0] += weights[possible] @ np.log(total[possible])
                share = np.divide(weights, total, out=np.zeros(len(y)), where=possible)
            cells, size = states[i] * card + y, counts[i].size
            less = np.bincount(cells, share * others[1], size).reshape(-1, card)
            same = np.bincount(cells, share * (others[0] + others[1]), size).reshape(-1, card)
            same[:, :-1] += np.cumsum(less[:, :0:-1], axis=1)[:, ::-1]  # of the child's states beyond each
            counts[i] += self.effects[i] * same
            before = _joined(before, (below, at))


def _below(effect: Array) -> Array:
    """P(effect < y) for each y."""
    sums = np.zeros(effect.shape)
    np.cumsum(effect[:, :-1], axis=1, out=sums[:, 1:])
    return sums


def _joined(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """P(strongest < y) and P(strongest = y) of two groups of causes together."""
    return one[0] * other[0], one[1] * (other[1] + other[0]) + one[0] * other[1]
