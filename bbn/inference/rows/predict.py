"""Predictions over tables of data: coded once, answered in batches by the junction tree, given back in kind.

A column that is absent, and a missing value, is unobserved; the target's own column is ignored, and so are columns
that are not variables of the network. A row that the network says cannot happen is an error that names it, or with
impossible="nan" an answer of NaN (`predict`: a missing value).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import Ledger
from bbn.core.errors import DataError, EvidenceError, ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.core.threads import within
from bbn.data import CodedTable, code
from bbn.data.kinds import ColumnDict, RowList
from bbn.inference import engine
from bbn.inference.exact.junction_tree import JunctionTree
from bbn.inference.gaussian.hybrid import hybrid
from bbn.inference.rows.batch import INSTEAD
from bbn.inference.rows.mixed_rows import MixedRows, row_evidence
from bbn.model.variable import Continuous

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork

Impossible = Literal["raise", "nan"]

DICT_CELL = 120
"""Bytes of a number in a list of dicts."""


def predict_proba(
    net: BayesianNetwork,
    data: Any,
    target: str,
    impossible: Impossible = "raise",
    n_jobs: int | None = None,
    **options: Any,
) -> Any:
    """P(target | row) for each row: a table with one column per state, of the kind that came in.

    >>> import bbn
    >>> net = bbn.example("burglary")
    >>> table = {"JohnCalls": ["yes", None], "MaryCalls": ["yes", "no"]}
    >>> {state: p.round(4).tolist() for state, p in predict_proba(net, table, "Burglary").items()}
    {'yes': [0.2842, 0.0003], 'no': [0.7158, 0.9997]}
    """
    if isinstance(net.variable(target), Continuous):
        raise EvidenceError(
            f"{target!r} is continuous: it has no states to give probabilities of; predict gives its mean"
        )
    table, values = _posteriors(net, data, target, impossible, n_jobs, options, framed=True)
    return table.kind.frame(dict(zip(net.states(target), values.T, strict=True)))


def predict(
    net: BayesianNetwork,
    data: Any,
    target: str,
    impossible: Impossible = "raise",
    n_jobs: int | None = None,
    **options: Any,
) -> Any:
    """The most probable state of the target for each row, the first in a tie; a column of the kind that came in.

    Of a continuous target it is the posterior mean.
    """
    table, values = _posteriors(net, data, target, impossible, n_jobs, options)
    if isinstance(net.variable(target), Continuous):
        return table.kind.column(values[:, 0], target)
    states = np.array(net.states(target))
    gone: NDArray[np.bool_] = np.isnan(values[:, 0])
    best = states[values.argmax(axis=1)]  # of a row of NaN the first, replaced below
    if gone.any():
        best = best.astype(object)
        best[gone] = None
    return table.kind.column(best, target)


def log_likelihood(net: BayesianNetwork, data: Any, n_jobs: int | None = None, **options: Any) -> Any:
    """ln P(row) for each row, missing values summed out; −inf for a row that cannot happen. With numbers a density."""
    table = _coded(net, data, ())
    log_evidence = _answers(net, table, None, n_jobs, options)[1]
    return table.kind.column(log_evidence, "log_likelihood")


def _posteriors(
    net: BayesianNetwork,
    data: Any,
    target: str,
    impossible: Impossible,
    n_jobs: int | None,
    options: dict[str, Any],
    framed: bool = False,
) -> tuple[CodedTable, Array]:
    """The coded table, and the posterior of the target by row; a table of them is to be made if `framed`."""
    if impossible not in ("raise", "nan"):
        raise ValueError(f'impossible must be "raise" or "nan", found {impossible!r}')
    net.variable(target)
    table = _coded(net, data, (target,))
    cell = (
        0
        if not framed or isinstance(table.kind, ColumnDict)
        else DICT_CELL
        if isinstance(table.kind, RowList)
        else 8
    )
    size = cell * table.n_rows * max(1, net.variable(target).card)
    values, log_evidence = _answers(net, table, target, n_jobs, options, size)
    if impossible == "raise" and (log_evidence == -np.inf).any():
        raise _impossible_row(net, table, int(np.argmax(log_evidence == -np.inf)))
    return table, values.reshape(table.n_rows, max(1, net.variable(target).card))


def _answers(
    net: BayesianNetwork,
    table: CodedTable,
    target: str | None,
    n_jobs: int | None,
    options: dict[str, Any],
    framed: int = 0,
) -> tuple[Array, Array]:
    """The posterior of the target by row (the mean of a continuous one), and ln P(row).

    A table of `framed` bytes is to be made of them.
    """
    ledger = Ledger(options.get("memory_limit"))
    ledger.reserve(framed, f"a table of the answers to {table.n_rows:,} rows", INSTEAD)
    with within(options.get("time_limit")):
        if net.continuous:
            numbers = hybrid(net, "junction-tree")
            return MixedRows(
                numbers, table.codes, table.numbers, table.n_rows, target, n_jobs, options
            ).answer()
        tree = engine(net, "junction-tree")
        assert isinstance(tree, JunctionTree)
        targets = () if target is None else (target,)
        return tree.rows(table.codes, table.n_rows, targets, n_jobs=n_jobs, ledger=ledger, **options)[:2]


def _impossible_row(net: BayesianNetwork, table: CodedTable, row: int) -> ImpossibleEvidenceError:
    """The error for a row that cannot happen, with the findings that conflict."""
    findings = row_evidence(net, table.codes, table.numbers, row)
    try:
        net.posteriors(findings)
    except EvidenceError as error:
        findings = getattr(error, "findings", findings)
        return ImpossibleEvidenceError(
            f'row {row}: {error}; impossible="nan" answers such rows with NaN', findings
        )
    return ImpossibleEvidenceError(f"row {row}: impossible evidence", findings)


def _coded(net: BayesianNetwork, data: Any, ignored: tuple[str, ...]) -> CodedTable:
    if isinstance(data, CodedTable):
        for variable in data.variables:
            if variable.name in net and net.variable(variable.name) != variable:
                raise DataError(f"the table gives {variable.name!r} other states than the network")
        return data
    wanted = [v for v in net.variables if v.name not in ignored]
    return code(data, wanted, absent="allow", extra="ignore", unseen="warn")
