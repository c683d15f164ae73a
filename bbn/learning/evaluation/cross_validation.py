"""Cross-validation: how well a learner's networks explain, or predict, rows they have not seen.

Rows are dealt at random into k parts; each part is held out in turn while cuts, structure and tables are learned from
the others (Stone 1974).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.display import Table, Tabular
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array, Frozen, read_only
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import all_or_nothing, limited
from bbn.data import CodedTable
from bbn.data.reading import Reading
from bbn.data.source import is_source
from bbn.learning.evaluation.resample import LEARNERS, as_learner, in_memory, take
from bbn.learning.evaluation.target_metrics import METRICS, Calibration, calibration, target_metrics
from bbn.learning.raw.candidates import Candidate, build, choose
from bbn.learning.raw.held_out import Built, loss_of, probabilities
from bbn.learning.raw.raw_columns import cut, cut_variables, read_raw
from bbn.learning.structure.constraints import INSTEAD
from bbn.learning.tables.fit import fit
from bbn.learning.tables.priors import BDeu, Prior
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State

AUTO = "auto"
"""The learner that chooses in each part as `bbn.learn` does."""


class CrossValidation(Tabular, Frozen):
    """The result of a cross-validation.

    Attributes
    ----------
    loss
        "log-likelihood", the mean of ln P(row) over held-out rows, higher is better; or "classification", the share of
        held-out rows whose target was predicted wrong, lower is better.
    folds
        The loss of each part.
    sizes
        The number of rows of each part.
    metrics
        With a target: "log loss", "Brier", "accuracy" and "AUC", each with one value per part. Empty without.
    calibration
        With a target: predicted probabilities against what was observed, over all held-out rows; None without.
    """

    __slots__ = ("calibration", "folds", "loss", "metrics", "sizes")

    loss: str
    folds: Array
    sizes: tuple[int, ...]
    metrics: dict[str, Array]
    calibration: Calibration | None

    def __init__(
        self,
        loss: str,
        folds: Array,
        sizes: tuple[int, ...],
        metrics: Mapping[str, Any] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self._set(
            loss=loss,
            folds=read_only(np.array(folds, dtype=np.float64)),
            sizes=sizes,
            metrics={name: read_only(np.array(values)) for name, values in (metrics or {}).items()},
            calibration=calibration,
        )

    @property
    def mean(self) -> float:
        """The mean over all held-out rows."""
        return float(np.average(self.folds, weights=self.sizes))

    @property
    def std_error(self) -> float:
        """The standard error of the mean, from the spread of the parts."""
        return _spread(self.folds)

    def metric(self, name: str) -> tuple[float, float]:
        """The mean of a metric over the parts, and its standard error.

        Parameters
        ----------
        name : str
            "log loss", "Brier", "accuracy" or "AUC".

        Returns
        -------
        tuple of float
            Mean and standard error; parts in which the metric has no value are left out.
        """
        if name not in self.metrics:
            raise ValueError(f"no metric {name!r}{nearest(name, self.metrics)}; metrics need target=")
        values = self.metrics[name]
        there = values[~np.isnan(values)]
        return (float(there.mean()), _spread(there)) if len(there) else (float("nan"), float("nan"))

    def __repr__(self) -> str:
        return (
            f"<CrossValidation: {self.loss} {self.mean:.6g} ± {self.std_error:.2g}, {len(self.folds)} parts>"
        )

    def __str__(self) -> str:
        if not self.metrics:
            return repr(self)
        said = [
            f"{name} {mean:.4g} ± {error:.2g}" for name in self.metrics for mean, error in [self.metric(name)]
        ]
        return "\n".join([repr(self), *said])

    def _table(self) -> Table:
        names = list(self.metrics)
        rows = [
            [str(i + 1), str(size), f"{self.folds[i]:.6g}", *(f"{self.metrics[n][i]:.4g}" for n in names)]
            for i, size in enumerate(self.sizes)
        ]
        note = f"mean {self.mean:.6g} ± {self.std_error:.2g}"
        note += "".join(f"; {n} {self.metric(n)[0]:.4g} ± {self.metric(n)[1]:.2g}" for n in names)
        return Table(["part", "rows", self.loss, *names], rows, note=note)


def _spread(values: Array) -> float:
    """The standard error of a mean over parts."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


@keywords_checked
@limited(INSTEAD)
def cross_validate(
    data: Any,
    learner: Any = "hill-climb",
    k: int = 10,
    *,
    target: str | None = None,
    prior: Prior | None = BDeu(1.0),  # noqa: B008  # frozen
    seed: int | np.random.Generator | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    numbers: str = "auto",
    kinds: Mapping[str, str] | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] = (),
) -> CrossValidation:
    """Learn from k − 1 of k parts of the rows and judge on the remaining one, for each part in turn.

    Parameters
    ----------
    data
        Anything tabular in memory, raw or not: columns are read as `bbn.describe` says.
    learner
        A function of data that gives a structure, whose tables are then fitted to the same rows, or a network, or a
        result with a `network`; or "hill-climb", "chow-liu", "k2", "pc" or "ges"; or "auto", which chooses in each part
        as `bbn.learn` does. A CPDAG is turned into a member. Missing values go with "hill-climb" and "auto".
    k
        The number of parts.
    target
        Judge by the share of rows whose state of this variable is predicted wrong, and by `metrics`; without it, by
        the held-out log-likelihood, which is a density where there are numbers.
    prior
        The prior of the tables that are fitted to a structure; without one, rows never seen may get probability 0.
    seed
        The seed for dealing the rows; None deals them differently each time.
    time_limit
        The most seconds, TimeLimitError beyond; None is BBN_TIME_LIMIT, or else any time.
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.
    numbers
        How numbers are modelled: "cut" (cut points are found anew in each part), "gaussian", or "auto": with learner
        "auto" whichever is better on held-out rows of the part's own, otherwise "cut".
    kinds
        Column to its kind, as in `bbn.describe`.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers.

    Returns
    -------
    CrossValidation
        With `mean`, `std_error`, and for a target `metrics` and `calibration`.

    Raises
    ------
    DataError
        If the target is not a column that is used.

    See Also
    --------
    bbn.learn : learns one network from all rows.

    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9}
    >>> cross_validate(data, k=4, target="B", seed=0).mean
    0.0
    """
    table = _table_of(data, kinds, Reading(states, weights, missing, unseen, continuous), target)
    if not 2 <= k <= table.n_rows:
        raise ValueError(f"k is {k}; expected from 2 to the number of rows, {table.n_rows}")
    names = [v.name for v in table.variables]
    if target is not None and target not in names:
        why = "is a number, which has no states to predict" if target in table.numbers else ""
        raise DataError(
            f"target: {target!r} {why}"
            if why
            else f"target: the data have no column {target!r}{nearest(target, names)}"
        )
    learn = learner if learner == AUTO else as_learner(learner)
    how = "gaussian" if continuous and numbers == "auto" else numbers
    parts = np.array_split(np.random.default_rng(seed).permutation(table.n_rows), k)
    folds: list[float] = []
    metrics: dict[str, list[float]] = {name: [] for name in METRICS} if target is not None else {}
    seen: list[tuple[Array, Any, Array]] = []
    with progress_bar(progress, k, "cross-validation", "part") as advance:
        for i, held_out in enumerate(parts):
            rest = np.sort(np.concatenate([part for j, part in enumerate(parts) if j != i]))
            with all_or_nothing():
                built = _learned(learn, take(table, rest), target, prior, how)
            test = take(table, np.sort(held_out))
            if target is None:
                folds.append(-loss_of(built, test, None))
            else:
                seen.append(probabilities(built, test, target))
                found = target_metrics(*seen[-1])
                for name in metrics:
                    metrics[name].append(found[name])
                folds.append(1.0 - found["accuracy"])
            advance(1, loss=folds[-1])
    loss = "log-likelihood" if target is None else "classification"
    sizes = tuple(len(part) for part in parts)
    drawn = None
    if seen:
        p, true, mass = (np.concatenate(columns) for columns in zip(*seen, strict=True))
        drawn = calibration(p, true, mass)
    return CrossValidation(loss, np.array(folds), sizes, metrics, drawn)


def _table_of(data: Any, kinds: Mapping[str, str] | None, reading: Reading, target: str | None) -> CodedTable:
    """The rows in memory, with numbers as numbers."""
    if is_source(data):
        return in_memory(data, "cross_validate", reading)
    raw = read_raw(
        data, kinds, reading.states, reading.weights, reading.missing, reading.continuous or (), target=target
    )
    return raw.coded()


def _learned(learn: Any, table: CodedTable, target: str | None, prior: Prior | None, numbers: str) -> Built:
    """A network from a learner of structures or of networks, and the cuts that it was learned with."""
    from bbn.model.equivalence import is_cpdag, to_dag

    smooth = BDeu(1.0) if prior is None else prior
    if learn == AUTO:
        return build(table, choose(table, numbers, target, smooth), target, {}, smooth)
    gaussian = numbers == "gaussian" and bool(table.numbers)
    way = Candidate("gaussian" if gaussian else "cut", "quantiles" if target is None else "mdlp", 5)
    if learn is LEARNERS["hill-climb"] and (gaussian or table.incomplete):
        return build(table, way, target, {}, smooth)
    cuts = {} if gaussian else cut_variables(table, way.cuts, way.bins, target)
    coded = cut(table, cuts) if cuts else table
    found = learn(coded)
    found = getattr(found, "network", found)
    if isinstance(found, BayesianNetwork):
        return Built(found, found.graph, cuts)
    graph = to_dag(found) if is_cpdag(found) else found
    return Built(fit(graph, coded, prior), graph, cuts)
