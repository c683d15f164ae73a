"""Scores of families with a continuous child: terms from moments in each setting of the discrete parents.

A continuous child x is, in each setting j of its discrete parents, a linear regression on its continuous parents y
with n_j rows and residual sum of squares RSS_j (Lauritzen & Wermuth 1989). With σ_j² = RSS_j / n_j, J settings and p
slopes the terms are, in natural logs and higher is better:

===========================  =======================================================================================
loglik-cg, loglik-g          −½ Σ_j n_j (ln 2πσ_j² + 1)
aic-cg, aic-g                loglik − J (p + 2): intercept, slopes and variance of each setting
bic-cg, bic-g                loglik − ½ J (p + 2) ln N
bge                          ln p(data of x and y) − ln p(data of y) under a normal-Wishart prior
===========================  =======================================================================================

The -g scores and bge take numbers alone; in the -cg scores discrete children have the terms of `bbn.score`. A σ² is
never less than the floor that `bbn.fit` uses, so no term is infinite. BGe is Geiger & Heckerman's (1994, 2002) with the
correction of Kuipers, Moffa & Heckerman (2014): the prior mean is that of the columns, α_μ = 1, α_w = n + 2 and
T = α_μ (α_w − n − 1) / (α_μ + 1) · I, as in bnlearn.

Sums, products and weights per setting add up like counts, so one pass over any source serves all families with the same
discrete parents; each term then costs p³ J. Columns are measured in standard units, so no precision is lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import require_memory
from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data import Block, CodedTable, DataSource, continuous_columns
from bbn.learning.gaussian.estimates import FLOOR, LINKED_FLOOR, GaussianFamily, widths
from bbn.learning.gaussian.moments import moments_of
from bbn.model.variable import Continuous, Variable

Family = tuple[str, ...]

SETTINGS = 2**22
"""The most settings of the discrete parents that moments are kept of; families with more score −∞."""
CELLS = 2**24
"""The most entries of scatter matrices that are eliminated at a time."""
ROWS = 5
"""Rows for each coefficient of a regression from which on searches consider it."""
COLLINEAR = 1e-12
"""A parent of which the others leave less than this share is determined by them, and adds nothing."""
ROUNDING = 1e-14
"""The share of a sum of squares that is rounding: less than this is left of a column that does not vary."""


class SettingMoments(NamedTuple):
    """Moments of some columns, in standard units, in each of J settings of discrete parents."""

    columns: tuple[str, ...]
    n: Array
    """(J,) The weight of the rows."""
    scatter: Array
    """(J, q, q) Sums of products of deviations from the means of the setting."""
    squares: Array
    """(J, q) Sums of squares about the column's overall mean: what rounding is a share of."""


def too_few(own: Any, n_parents: Any, total: float) -> NDArray[np.bool_]:
    """Whether rows are too few for a regression on so many numbers, `own` of a setting and `total` in all.

    No more rows than coefficients leave no variance at all, and fewer than ROWS for each a variance that is small by
    chance: of many candidates some fit noise so well that no score punishes them enough.
    """
    n_coefficients = np.asarray(n_parents) + 1
    return np.asarray((own <= n_coefficients) | (n_coefficients > 1) & (total < ROWS * n_coefficients))


class MomentScores:
    """The moments of a source's columns of numbers, each asked for once, and terms made of them.

    Parameters
    ----------
    source
        Complete data.

    Attributes
    ----------
    centre, scale
        Mean and standard deviation of each column of numbers, in the order of `names`.
    """

    def __init__(self, source: DataSource) -> None:
        self.source = source
        # by name, and so are parents: rounding then does not depend on the order of columns or of parents
        self.names = tuple(sorted(continuous_columns(source)))
        self.discrete = {v.name: v for v in source.variables}
        whole = moments_of([GaussianFamily(Continuous(name), ()) for name in self.names], source)
        self.centre = np.array([float(m.means[0, 0]) for m in whole])
        variances = np.array([float(m.scatter[0, 0, 0] / m.n[0]) for m in whole])
        self.scale = widths(self.centre, variances)
        self._place = {name: i for i, name in enumerate(self.names)}
        self._known: dict[Family, SettingMoments] = {}
        self._standard: Array | None = None
        self._constants: Array | None = None

    def likelihoods(self, families: Sequence[Family], refuse_saturated: bool) -> tuple[Array, Array]:
        """The log-likelihood of each family (\\*parents, continuous child), and its number of free parameters.

        With `refuse_saturated`, a family with too few rows, in some setting or in all, has the log-likelihood −∞; see
        `too_few`.
        """
        logs, parameters = np.empty(len(families)), np.empty(len(families))
        for chosen, moments, scatter in self._batches(families):
            p = scatter.shape[-1] - 1
            floor = LINKED_FLOOR if p else FLOOR
            n, own = moments.n[:, None], [self._place[families[f][-1]] for f in chosen]
            squares = moments.squares[:, [moments.columns.index(families[f][-1]) for f in chosen]]
            terms = log_densities(residuals(scatter), squares, n, floor)
            logs[chosen] = terms.sum(axis=0) - float(n.sum()) * np.log(self.scale[own])
            if refuse_saturated and bool(((moments.n > 0) & too_few(moments.n, p, float(n.sum()))).any()):
                logs[chosen] = -np.inf
            parameters[chosen] = len(moments.n) * (p + 2)
        return logs, parameters

    def bge(self, families: Sequence[Family]) -> Array:
        """The BGe term of each family, all of numbers."""
        n_nodes, total = len(self.names), self.source.total
        mean_size, precision_size = 1.0, n_nodes + 2.0
        t = mean_size * (precision_size - n_nodes - 1) / (mean_size + 1)
        if self._constants is None:
            self._constants = _bge_constants(n_nodes, total, mean_size, precision_size, t)
        constants = self._constants
        terms = np.empty(len(families))
        for chosen, _, scatter in self._batches(families):
            size = scatter.shape[-1]
            units = np.array(
                [[self.scale[self._place[name]] for name in self._ordered(families[f], 1)] for f in chosen]
            )
            raw = scatter[0] * units[:, :, None] * units[:, None, :]
            raw[:, range(size), range(size)] += t
            logs = np.log(pivots(raw, t))
            parents, all_ = logs[:, :-1].sum(axis=1), logs.sum(axis=1)
            grown = total + precision_size - n_nodes
            terms[chosen] = (
                constants[size]
                - constants[size - 1]
                - 0.5 * (grown + size) * all_
                + 0.5 * (grown + size - 1) * parents
            )
        return terms

    def joint(self, sets: Sequence[Family]) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The log-likelihood of the numbers of each set given its states, jointly Gaussian in each setting.

        Then the number of free parameters, in settings that occur, and whether some of these has too few rows to tell.
        """
        logs, parameters = np.zeros(len(sets)), np.zeros(len(sets))
        scarce = np.zeros(len(sets), dtype=bool)
        measured = [s for s, names in enumerate(sets) if any(name in self._place for name in names)]
        for chosen, moments, scatter in self._batches([sets[s] for s in measured], keep=0):
            q = scatter.shape[-1]
            seen = moments.n > 0
            n = moments.n[seen]
            determinants = np.log(pivots(scatter[seen] / n[:, None, None, None], LINKED_FLOOR)).sum(axis=-1)
            terms = n[:, None] * (q * (math.log(2 * math.pi) + 1) + determinants)
            own = [measured[f] for f in chosen]
            logs[own] = -0.5 * terms.sum(axis=0)
            parameters[own] = seen.sum() * q * (q + 3) / 2
            scarce[own] = bool((n <= q + 1).any())
        return logs, parameters, scarce

    def partial_correlations(self, triples: Sequence[tuple[str, str, Family]]) -> Array:
        """The correlation of x and y that given numbers leave, of each (x, y, given)."""
        found = np.empty(len(triples))
        families = [(*given, x, y) for x, y, given in triples]
        for chosen, _, scatter in self._batches(families, keep=2):
            a = np.ascontiguousarray(np.moveaxis(scatter[0], (-2, -1), (0, 1)))
            _eliminate(a, len(a) - 2)
            (xx, xy), yy = a[-2, -2:], a[-1, -1]
            spread = np.sqrt(np.maximum(xx, 0.0) * np.maximum(yy, 0.0))
            least = COLLINEAR * np.sqrt(scatter[0][:, -2, -2] * scatter[0][:, -1, -1])
            found[chosen] = np.divide(xy, spread, out=np.zeros_like(xy), where=spread > least)
        return np.clip(found, -1.0, 1.0)

    def _ordered(self, family: Family, keep: int) -> list[str]:
        """The numbers of a family by name, but for the last `keep` variables of it, which stay last."""
        cut = len(family) - keep
        return [n for part in (sorted(family[:cut]), family[cut:]) for n in part if n in self._place]

    def _batches(
        self, families: Sequence[Family], keep: int = 1
    ) -> list[tuple[NDArray[np.intp], SettingMoments, NDArray[np.float64]]]:
        """Families with the same discrete parents and as many continuous ones together, with their scatter.

        Scatter is (J, B, p + 1, p + 1), the last `keep` variables of a family, the child, last.
        Families with too many settings are left out, as −∞.
        """
        split = [
            (tuple(sorted(n for n in family if n in self.discrete)), self._ordered(family, keep))
            for family in families
        ]
        wanted: dict[Family, set[str]] = {}
        for given, columns in split:
            wanted.setdefault(given, set()).update(columns)
        found = self._moments(wanted)
        groups: dict[tuple[Family, int], list[int]] = {}
        for f, (given, columns) in enumerate(split):
            groups.setdefault((given, len(columns)), []).append(f)
        batches = []
        for (given, size), members in groups.items():
            moments = found[given]
            place = {name: i for i, name in enumerate(moments.columns)}
            step = max(1, CELLS // (len(moments.n) * size * size))
            for start in range(0, len(members), step):
                chosen = np.array(members[start : start + step], dtype=np.intp)
                index = np.array([[place[name] for name in split[f][1]] for f in chosen])
                scatter = moments.scatter[:, index[:, :, None], index[:, None, :]]
                batches.append((chosen, moments, scatter))
        return batches

    def whole(self) -> SettingMoments:
        """The moments of all columns of numbers over all rows."""
        return self._moments({(): set(self.names)})[()]

    def settings(self, family: Family) -> int:
        """The number of settings of a family's discrete parents."""
        return math.prod(self.discrete[name].card for name in family if name in self.discrete)

    def _moments(self, wanted: Mapping[Family, set[str]]) -> dict[Family, SettingMoments]:
        """The moments of some columns for each set of discrete parents; those not known yet come from one pass."""
        new: dict[Family, tuple[str, ...]] = {}
        for given, columns in wanted.items():
            known = self._known.get(given)
            if known is None or not columns <= set(known.columns):
                every = columns | set(known.columns if known is not None else ())
                new[given] = tuple(name for name in self.names if name in every)
        if new:
            kept = [(given, len(m.columns)) for given, m in self._known.items() if given not in new]
            sizes = [*kept, *((given, len(columns)) for given, columns in new.items())]
            require_memory(
                8 * sum(self.settings(given) * (q + 1) ** 2 for given, q in sizes),
                f"the moments of the numbers for {len(sizes)} sets of discrete parents",
                "allow fewer parents (max_parents=) or cut the numbers into intervals",
            )
            self._known.update(self._pass(new))
        return {given: self._known[given] for given in wanted}

    def _pass(self, new: Mapping[Family, tuple[str, ...]]) -> dict[Family, SettingMoments]:
        """The moments of new sets of discrete parents."""
        task = _Products(
            [(tuple(self.discrete[name] for name in given), columns) for given, columns in new.items()],
            {name: (float(self.centre[i]), float(self.scale[i])) for name, i in self._place.items()},
        )
        if isinstance(self.source, CodedTable):
            block = self.source.merged()
            parts = task.on(block, self._in_memory(block), self._place)
        else:
            parts = self.source.reduce(task)
        found = {}
        for k, (given, columns) in enumerate(new.items()):
            n, sums, products = parts[3 * k : 3 * k + 3]
            means = np.divide(sums, n[:, None], out=np.zeros_like(sums), where=n[:, None] > 0)
            scatter = products - n[:, None, None] * means[:, :, None] * means[:, None, :]
            found[given] = SettingMoments(columns, n, scatter, np.einsum("jqq->jq", products))
        return found

    def _in_memory(self, block: Block) -> Array:
        """All numbers in standard units, (rows, columns), made once."""
        if self._standard is None:
            require_memory(
                8 * block.n_rows * len(self.names),
                "the numbers in standard units",
                "bbn.open_data reads them batch by batch",
            )
            self._standard = _standardised(block, self.names, self.centre, self.scale)
        return self._standard


class _Products:
    """Per set of discrete parents: the weight, the sums and the sums of products of columns, in each setting."""

    def __init__(
        self,
        wanted: Sequence[tuple[tuple[Variable, ...], tuple[str, ...]]],
        units: Mapping[str, tuple[float, float]],
    ) -> None:
        self.wanted, self.units = list(wanted), dict(units)
        self.columns = sorted({n for given, own in wanted for n in (*(v.name for v in given), *own)})

    def __call__(self, block: Block) -> list[Array]:
        names = [name for name in self.columns if name in self.units]
        centre, scale = (np.array([self.units[name][i] for name in names]) for i in range(2))
        return self.on(block, _standardised(block, names, centre, scale), {n: i for i, n in enumerate(names)})

    def on(self, block: Block, standard: Array, place: Mapping[str, int]) -> list[Array]:
        """The sums over a block whose numbers in standard units are known."""
        parts: list[Array] = []
        plain = bool((block.weights == 1).all())
        for given, columns in self.wanted:
            own = [place[name] for name in columns]
            z = standard if own == list(range(standard.shape[1])) else standard[:, own]
            weights, count = block.weights, math.prod(v.card for v in given)
            if not given:
                weighted = z if plain else z * weights[:, None]
                parts += [np.array([weights.sum()]), weighted.sum(axis=0)[None], (weighted.T @ z)[None]]
                continue
            setting = np.zeros(block.n_rows, dtype=np.intp)
            for variable in given:
                setting *= variable.card
                setting += block.codes[variable.name]
            parts += _by_setting(setting, count, z, None if plain else weights)
        return parts


def _by_setting(setting: NDArray[np.intp], count: int, z: Array, weights: Array | None) -> list[Array]:
    """Weight, sums and products in each setting: rows in order of setting, then one product per run."""
    q = z.shape[1]
    n, sums, products = np.zeros(count), np.zeros((count, q)), np.zeros((count, q, q))
    small = setting.astype(np.uint16) if count <= 65536 else setting  # sorted by radix
    order = np.argsort(small, kind="stable")
    z = z[order]
    ends = np.cumsum(np.bincount(setting, minlength=count))
    own = None if weights is None else weights[order]
    start = 0
    for j in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        stop = int(ends[j])
        rows = z[start:stop]
        weighted = rows if own is None else rows * own[start:stop, None]
        n[j] = stop - start if own is None else own[start:stop].sum()
        sums[j] = weighted.sum(axis=0)
        products[j] = weighted.T @ rows
        start = stop
    return [n, sums, products]


def _standardised(block: Block, names: Sequence[str], centre: Array, scale: Array) -> Array:
    """The numbers of a block in standard units, (rows, columns)."""
    z = np.empty((len(names), block.n_rows)).T  # each column in one piece
    for i, name in enumerate(names):
        np.subtract(block.numbers[name], centre[i], out=z[:, i])
        z[:, i] /= scale[i]
    return z


def log_densities(rest: Array, squares: Array, n: Array, floor: float | Array) -> Array:
    """The log-likelihood of n rows whose sum of squared residuals is `rest`, 0 where there is no row.

    `squares` are the sums of squares about the mean, a share of which is rounding; no variance is below `floor`.
    """
    rest = np.where(rest < ROUNDING * squares, 0.0, rest)
    seen = np.broadcast_to(n > 0, rest.shape)
    variances = np.maximum(np.divide(rest, n, out=np.ones_like(rest), where=seen), floor)
    return np.where(seen, -0.5 * (n * np.log(2 * np.pi * variances) + rest / variances), 0.0)


def residuals(scatter: Array) -> Array:
    """What the other columns leave of the last one's sum of squares, for scatter matrices (..., p + 1, p + 1).

    Gaussian elimination column by column, all matrices at once; a column that those before it determine is skipped.

    >>> residuals(np.array([[4.0, 2.0], [2.0, 3.0]]))
    array(2.)
    """
    a = np.ascontiguousarray(np.moveaxis(scatter, (-2, -1), (0, 1)))
    _eliminate(a, len(a) - 1)
    return np.asarray(np.maximum(a[-1, -1], 0.0))


def _eliminate(a: Array, count: int) -> None:
    """Eliminate the first `count` columns of matrices a[row, column, ...], in their upper triangles and in place."""
    whole = [a[p, p].copy() for p in range(count)]
    for p in range(count):
        usable = a[p, p] > COLLINEAR * whole[p]
        inverse = np.divide(1.0, a[p, p], out=np.zeros_like(a[p, p]), where=usable)
        for i in range(p + 1, len(a)):
            a[i, i:] -= a[p, i] * inverse * a[p, i:]


def pivots(matrices: Array, least: float) -> Array:
    """The pivots of elimination, (..., size), of positive definite matrices whose eigenvalues are at least `least`."""
    a = np.ascontiguousarray(np.moveaxis(matrices, (-2, -1), (0, 1)))
    for p in range(len(a)):
        np.maximum(a[p, p], least, out=a[p, p])
        for i in range(p + 1, len(a)):
            a[i, i:] -= a[p, i] / a[p, p] * a[p, i:]
    return np.stack([a[p, p] for p in range(len(a))], axis=-1)


def _bge_constants(n_nodes: int, total: float, mean_size: float, precision_size: float, t: float) -> Array:
    """The part of ln p(data of l columns) that depends on l alone, for l = 0 … n (Kuipers et al. 2014)."""
    from scipy.special import multigammaln

    constants = np.zeros(n_nodes + 1)
    for size in range(1, n_nodes + 1):
        prior = precision_size - n_nodes + size
        constants[size] = (
            0.5 * size * math.log(mean_size / (total + mean_size))
            - 0.5 * size * total * math.log(math.pi)
            + float(multigammaln(0.5 * (total + prior), size))
            - float(multigammaln(0.5 * prior, size))
            + 0.5 * prior * size * math.log(t)
        )
    return constants


def refuse_discrete(source: DataSource, score: str) -> None:
    """DataError if a score of numbers alone is asked for where there are discrete columns."""
    if source.variables:
        raise DataError(
            f"score={score!r} takes numbers only, but {source.variables[0].name!r} is discrete; 'bic-cg', 'aic-cg' "
            "and 'loglik-cg' take both, continuous= names the columns of numbers"
        )
