"""Cross-validation: how well a learner's networks explain, or classify, rows they have not seen.

Rows are dealt at random into k parts; each part is held out in turn while structure and tables are learned from the
others (Stone 1974).
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
from bbn.data import CodedTable
from bbn.data.reading import Reading
from bbn.learning.evaluation.resample import as_learner, columns_of, in_memory, take
from bbn.learning.tables.fit import fit
from bbn.learning.tables.priors import BDeu, Prior
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State


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
    """

    __slots__ = ("folds", "loss", "sizes")

    loss: str
    folds: Array
    sizes: tuple[int, ...]

    def __init__(self, loss: str, folds: Array, sizes: tuple[int, ...]) -> None:
        self._set(loss=loss, folds=read_only(np.asarray(folds, dtype=np.float64)), sizes=sizes)

    @property
    def mean(self) -> float:
        """The mean over all held-out rows."""
        return float(np.average(self.folds, weights=self.sizes))

    @property
    def std_error(self) -> float:
        """The standard error of the mean, from the spread of the parts."""
        return float(np.std(self.folds, ddof=1) / np.sqrt(len(self.folds)))

    def __repr__(self) -> str:
        return (
            f"<CrossValidation: {self.loss} {self.mean:.6g} ± {self.std_error:.2g}, {len(self.folds)} parts>"
        )

    def __str__(self) -> str:
        return repr(self)

    def _table(self) -> Table:
        parts = zip(self.sizes, self.folds.tolist(), strict=True)
        rows = [[str(i), str(size), f"{value:.6g}"] for i, (size, value) in enumerate(parts, start=1)]
        return Table(["part", "rows", self.loss], rows, note=f"mean {self.mean:.6g} ± {self.std_error:.2g}")


@keywords_checked
def cross_validate(
    data: Any,
    learner: Any = "hill-climb",
    k: int = 10,
    *,
    target: str | None = None,
    prior: Prior | None = BDeu(1.0),  # noqa: B008  # frozen
    seed: int | np.random.Generator | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] = (),
) -> CrossValidation:
    """Learn from k − 1 of k parts of the rows and judge on the last, for each part in turn.

    Parameters
    ----------
    data
        Anything tabular in memory.
    learner
        A function of data that gives a structure, whose tables are then fitted to the same rows, or a network, or a
        result with a `network`; or "hill-climb", "chow-liu", "k2" or "pc". A CPDAG is turned into a member.
    k
        The number of parts.
    target
        Judge by the share of rows whose state of this variable is predicted wrong; without it, by the held-out
        log-likelihood.
    prior
        The prior of the tables that are fitted to a structure; without one, rows never seen may get probability 0.
    seed
        For dealing the rows; None deals them anew each time.
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers.

    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9}
    >>> cross_validate(data, k=4, target="B", seed=0).mean
    0.0
    """
    table = in_memory(data, "cross_validate", Reading(states, weights, missing, unseen, continuous))
    if not 2 <= k <= table.n_rows:
        raise ValueError(f"k is {k}; expected from 2 to the number of rows, {table.n_rows}")
    names = [v.name for v in table.variables]
    if target is not None and target not in names:
        raise DataError(f"target: the data have no column {target!r}{nearest(target, names)}")
    learn = as_learner(learner)
    parts = np.array_split(np.random.default_rng(seed).permutation(table.n_rows), k)
    folds = []
    with progress_bar(progress, k, "cross-validation", "part") as advance:
        for i, held_out in enumerate(parts):
            rest = np.sort(np.concatenate([part for j, part in enumerate(parts) if j != i]))
            net = _learned(learn, take(table, rest), prior)
            folds.append(_judged(net, take(table, np.sort(held_out)), target))
            advance(1, loss=folds[-1])
    loss = "log-likelihood" if target is None else "classification"
    return CrossValidation(loss, np.array(folds), tuple(len(part) for part in parts))


def _learned(learn: Any, table: CodedTable, prior: Prior | None) -> BayesianNetwork:
    """A network from a learner of structures or of networks."""
    from bbn.model.equivalence import is_cpdag, to_dag

    found = learn(table)
    found = getattr(found, "network", found)
    if isinstance(found, BayesianNetwork):
        return found
    return fit(to_dag(found) if is_cpdag(found) else found, table, prior)


def _judged(net: BayesianNetwork, table: CodedTable, target: str | None) -> float:
    """The loss of a network on rows it has not seen."""
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    columns = columns_of(table)
    if target is None:
        return float(np.average(np.asarray(net.log_likelihood(columns)), weights=weights))
    predicted = list(net.predict(columns, target))
    wrong = [a != b for a, b in zip(predicted, columns[target], strict=True)]
    return float(np.average(wrong, weights=weights))
