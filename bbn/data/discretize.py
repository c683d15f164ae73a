"""Discretising: columns of numbers become intervals, whose cut points are kept and applied to new data.

Equal width cuts the range evenly, quantiles put as many rows in each interval, k-means puts the cuts midway between
the centres of clusters (Lloyd 1982, started at quantiles), MDLP cuts where a target's entropy falls by more than a cut
costs to describe (Fayyad and Irani 1993). Cuts that follow a structure do the same towards each column's neighbours in
it (in the spirit of Friedman and Goldszmidt 1996). A value equal to a cut point lies to its right.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array, Frozen, read_only
from bbn.core.keywords import keywords_checked
from bbn.data.columns import NO_ROWS, RawTable, read_table
from bbn.data.describe import describe
from bbn.data.kinds import Pandas
from bbn.data.number_columns import read_numbers
from bbn.model.binned import Binned, interval_labels

METHODS = ("quantiles", "equal-width", "k-means", "mdlp", "structure")


@keywords_checked
def discretize(
    data: Any,
    columns: str | Iterable[str] | None = None,
    method: str = "quantiles",
    bins: int = 5,
    target: str | None = None,
    structure: Any = None,
) -> Discretizer:
    """Cut columns of numbers into intervals.

    Parameters
    ----------
    data
        Any table.
    columns
        The columns to cut; unless given, all that `bbn.describe` says are modelled as numbers: those with fractions, or
        with more than a dozen different whole numbers.
    method
        "quantiles" (as many rows in each interval), "equal-width", "k-means", "mdlp", which predicts `target` and
        chooses the number of intervals by itself, or "structure", which does the same towards the neighbours of each
        column in `structure`.
    bins
        How many intervals; there are fewer where values repeat. "structure" takes it for columns whose neighbours tell
        nothing.
    target
        The column that "mdlp" is to predict.
    structure
        A DiGraph, a list of arcs or a network, for "structure".

    Returns
    -------
    Discretizer
        `.variables` are the `Binned` variables, `.data` is the table with those columns cut, `.cuts` the cut points,
        `.apply(new)` cuts new data alike.

    Raises
    ------
    DataError
        If a column is not there, or holds something that is not a number.

    See Also
    --------
    Binned : a variable that keeps its cuts, and takes raw numbers.
    bbn.learn : cuts columns by itself where that is better than Gaussians.

    >>> found = discretize({"Age": [1.5, 2.0, 30.0, 31.0, 70.0, 75.0]}, bins=3, method="k-means")
    >>> found.variables["Age"]
    Binned('Age', [16.125, 51.5])
    >>> found.data["Age"].tolist()
    ['<16.125', '<16.125', '16.125..51.5', '16.125..51.5', '>=51.5', '>=51.5']
    >>> found.apply({"Age": [20.0]})["Age"].tolist()
    ['16.125..51.5']
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}{nearest(method, METHODS)}")
    if bins < 1:
        raise ValueError(f"bins is {bins}; expected at least 1")
    table = read_table(data)
    if (target is None) == (method == "mdlp"):
        raise ValueError(
            'target= names the column that method="mdlp" predicts; it goes with that method alone'
        )
    if (structure is None) == (method == "structure"):
        raise ValueError('structure= goes with method="structure", and with that method alone')
    if not table.n_rows:
        raise DataError(NO_ROWS)
    names = [columns] if isinstance(columns, str) else list(columns) if columns is not None else None
    if names is None:
        names = [name for name in describe(table).numbers if name != target]
    numbers = {name: column_numbers(table, name) for name in names}
    found = Discretizer(find_cuts(table, numbers, method, bins, target, structure))
    found._set(data=found.apply(data))
    return found


def column_numbers(table: RawTable, name: str) -> Array:
    """A column as numbers, NaN where missing; DataError if it holds something else."""
    try:
        return read_numbers(name, table.column(_known(table, name)), set(), "raise", table.decimal_of(name))
    except DataError as error:
        if "is not a finite number" not in str(error):
            raise
        raise DataError(
            f"{str(error).partition(' is not a finite')[0]} is not a finite number; only numbers can be cut"
        ) from None


def find_cuts(
    table: RawTable,
    numbers: Mapping[str, Array],
    method: str,
    bins: int,
    target: str | None = None,
    structure: Any = None,
) -> dict[str, Array]:
    """The cut points of columns by one of the methods."""
    cuts = {}
    for name, values in numbers.items():
        there = ~np.isnan(values)
        if not there.any():
            raise DataError(f"column {name!r} holds no value at all, so there is nothing to cut")
        if target is not None:
            classes = table.levels(_known(table, target)).codes
            known = there & (classes >= 0)
            cuts[name] = mdlp_cuts(values[known], classes[known])
        else:
            cutter = CUTTERS.get(method, quantile_cuts)
            cuts[name] = cutter(values[there], bins)
    if structure is not None:
        cuts = _structure_cuts(table, numbers, cuts, structure)
    return cuts


def _structure_cuts(
    table: RawTable, numbers: Mapping[str, Array], cuts: Mapping[str, Array], structure: Any
) -> dict[str, Array]:
    """Cuts towards what each column's neighbours are together; those that there are where that gives none."""
    arcs = list(getattr(structure, "arcs", None) or getattr(structure, "edges", structure))
    codes = {name: np.searchsorted(cuts[name], values, side="right") for name, values in numbers.items()}
    found = {}
    for name, values in numbers.items():
        near = [a if b == name else b for a, b in arcs if name in (a, b)]
        near = [one for one in dict.fromkeys(near) if one in table.names]
        own = np.zeros(table.n_rows, dtype=np.int64)
        there = ~np.isnan(values)
        for one in near:
            classes = codes[one] if one in codes else table.levels(one).codes.astype(np.int64)
            there &= (classes >= 0) & (~np.isnan(numbers[one]) if one in numbers else True)
            own = np.unique(own * (int(classes.max(initial=0)) + 2) + classes, return_inverse=True)[1]
        better = mdlp_cuts(values[there], own[there]) if near and there.any() else np.empty(0)
        found[name] = better if len(better) else cuts[name]
    return found


class Discretizer(Frozen, cached=("data",)):
    """Cut points by column.

    Attributes
    ----------
    cuts
        Column to its ascending cut points; n of them make n + 1 intervals.
    data
        The table that the cuts were found in, with its columns cut; None if they were given.
    """

    __slots__ = ("cuts", "data")

    cuts: dict[str, Array]
    data: Any

    def __init__(self, cuts: Mapping[str, Any]) -> None:
        checked = {}
        for name, points in cuts.items():
            array = np.array(points, dtype=np.float64)
            if array.ndim != 1 or not np.isfinite(array).all() or (np.diff(array) <= 0).any():
                raise DataError(f"the cut points of {name!r} must be finite and ascending, found {points!r}")
            checked[name] = read_only(array)
        self._set(cuts=checked, data=None)

    @property
    def variables(self) -> dict[str, Binned]:
        """Column to the variable whose states are its intervals, which takes raw numbers too."""
        return {name: Binned(name, points.tolist()) for name, points in self.cuts.items()}

    def states(self, name: str) -> tuple[str, ...]:
        """The labels of a column's intervals, in order.

        Parameters
        ----------
        name : str
            A column that it cuts.

        Returns
        -------
        tuple of str
            One label per interval.
        """
        return interval_labels(self.cuts[name].tolist())

    def apply(self, data: Any) -> Any:
        """The table, in kind, with each known column that it has cut; missing values stay missing.

        Parameters
        ----------
        data : table
            Any table; columns that it does not know stay as they are.

        Returns
        -------
        table
            Of the same kind.

        Raises
        ------
        DataError
            A column that is to be cut does not hold numbers.

        See Also
        --------
        discretize : Find the cuts and apply them at once.
        """
        table = read_table(data)
        coded = {}
        for name, points in self.cuts.items():
            if name in table.names:
                values = column_numbers(table, name)
                codes = np.searchsorted(points, values, side="right")
                coded[name] = np.where(np.isnan(values), -1, codes)
        return _replaced(data, table, coded, self.states)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {len(points) + 1} intervals" for name, points in self.cuts.items())
        return f"<Discretizer {shown}>"


def quantile_cuts(values: Array, bins: int, weights: Array | None = None) -> Array:
    """Cuts that leave about as much weight in each interval, each midway between two values that occur."""
    distinct, place = np.unique(values, return_inverse=True)
    below = np.cumsum(np.bincount(place, weights, minlength=len(distinct)))
    if len(distinct) < 2:
        return np.empty(0)
    wanted = below[-1] * np.arange(1, bins) / bins
    below = below[:-1]
    places = (
        np.unique([int(np.argmin(np.abs(below - w))) for w in wanted]) if bins > 1 else np.empty(0, np.int64)
    )
    return np.array([short_between(distinct[i], distinct[i + 1]) for i in places])


def short_between(low: float, high: float) -> float:
    """The number of fewest digits that is above `low` and at most `high`; of several, the nearest to their middle.

    >>> short_between(3549.0, 3561.0), short_between(0.12, 0.1234)
    (3560.0, 0.122)
    """
    low, high = float(low), float(high)
    middle = low + (high - low) / 2
    for digits in range(1, 17):
        near = float(f"{middle:.{digits}g}")
        if low < near <= high:
            return near
    return middle if low < middle else high


def equal_width_cuts(values: Array, bins: int) -> Array:
    """Cuts that divide the range evenly."""
    low, high = float(values.min()), float(values.max())
    return np.linspace(low, high, bins + 1)[1:-1] if high > low else np.empty(0)


def k_means_cuts(values: Array, bins: int) -> Array:
    """Cuts midway between the centres of clusters, by Lloyd's algorithm on the line, started at quantiles."""
    distinct, counts = np.unique(values, return_counts=True)
    k = min(bins, len(distinct))
    centres = np.unique(np.quantile(values, (np.arange(k) + 0.5) / k))
    while True:
        cuts = (centres[1:] + centres[:-1]) / 2
        nearest_centre = np.searchsorted(cuts, distinct, side="right")
        weight = np.bincount(nearest_centre, counts, minlength=len(centres))
        sums = np.bincount(nearest_centre, counts * distinct, minlength=len(centres))
        new = sums[weight > 0] / weight[weight > 0]
        if len(new) == len(centres) and np.array_equal(new, centres):
            return np.asarray(cuts)
        centres = new


def mdlp_cuts(values: Array, classes: NDArray[Any], weights: Array | None = None) -> Array:
    """Cuts accepted by the minimum description length principle, found from the top down (Fayyad and Irani 1993).

    A row of weight w counts as w rows.
    """
    if weights is not None:
        values, classes, weights = values[weights > 0], classes[weights > 0], weights[weights > 0]
    order = np.argsort(values, kind="stable")
    x, c = values[order], np.unique(classes[order], return_inverse=True)[1]
    counts = np.zeros((len(x) + 1, int(c.max(initial=-1)) + 1))
    counts[1:][np.arange(len(x)), c] = 1 if weights is None else weights[order]
    counts = counts.cumsum(axis=0)  # row i: how often each class occurs among the i smallest values
    cuts: list[float] = []
    stack = [(0, len(x))]
    while stack:
        start, stop = stack.pop()
        at = _best_cut(x, counts, start, stop)
        if at is not None:
            cuts.append(short_between(x[at - 1], x[at]))
            stack += [(start, at), (at, stop)]
    return np.array(sorted(cuts))


def _best_cut(x: Array, counts: Array, start: int, stop: int) -> int | None:
    """The cut of rows start to stop with the least entropy, if it pays for itself."""
    places = start + 1 + np.flatnonzero(x[start + 1 : stop] > x[start : stop - 1])
    if not len(places):
        return None
    left, right = counts[places] - counts[start], counts[stop] - counts[places]
    total = counts[stop] - counts[start]
    n = total.sum()
    mixed = (left.sum(axis=1) * _entropy(left) + right.sum(axis=1) * _entropy(right)) / n
    best = int(np.argmin(mixed))
    whole, parts = (
        _entropy(total[None])[0],
        (_entropy(left[best : best + 1])[0], _entropy(right[best : best + 1])[0]),
    )
    k, k1, k2 = ((row > 0).sum() for row in (total, left[best], right[best]))
    delta = np.log2(3.0**k - 2) - (k * whole - k1 * parts[0] - k2 * parts[1])
    return int(places[best]) if whole - mixed[best] > (np.log2(max(n - 1, 1)) + delta) / n else None


def _entropy(counts: Array) -> Array:
    """The entropy, in bits, of each row of counts."""
    p = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(-(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1))


CUTTERS: dict[str, Callable[[Array, int], Array]] = {
    "quantiles": quantile_cuts,
    "equal-width": equal_width_cuts,
    "k-means": k_means_cuts,
}


def _known(table: RawTable, name: str) -> str:
    if name not in table.names:
        raise DataError(f"the data have no column {name!r}{nearest(name, table.names)}")
    return name


def _replaced(
    data: Any, table: RawTable, coded: Mapping[str, NDArray[Any]], states: Callable[[str], tuple[str, ...]]
) -> Any:
    """The data, in kind, with some columns replaced by labels; −1 is missing."""
    labels = {}
    for name, codes in coded.items():
        names = np.array([*states(name), None], dtype=object)
        labels[name] = names[codes]
    if isinstance(data, str | os.PathLike) or isinstance(table.kind, Pandas):
        import pandas as pd

        frame = data.copy(deep=False) if isinstance(data, pd.DataFrame) else _frame(table)
        for name, codes in coded.items():
            frame[name] = pd.Categorical.from_codes(codes, pd.Index(states(name)), ordered=True)
        return frame
    if isinstance(data, Mapping):
        return {**data, **labels}
    if isinstance(data, list):
        return [{**row, **{name: labels[name][i] for name in labels}} for i, row in enumerate(data)]
    if isinstance(data, tuple):
        matrix = np.array(data[0], dtype=object)
        for name, column in labels.items():
            matrix[:, table.names.index(name)] = column
        return matrix, data[1]
    import narwhals as nw

    native: Any = nw.from_native(data)
    frame = native.collect() if isinstance(native, nw.LazyFrame) else native
    columns = [
        nw.new_series(n, v.tolist(), nw.String(), backend=frame.implementation) for n, v in labels.items()
    ]
    return frame.with_columns(*columns).to_native()


def _frame(table: RawTable) -> Any:
    """A pandas frame of a table that came from a file."""
    columns = {}
    for name in table.names:
        levels = table.levels(name)
        columns[name] = np.array([*levels.values, None], dtype=object)[levels.codes]
    return table.kind.frame(columns)
