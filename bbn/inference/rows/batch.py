"""Many rows of evidence at once.

Equal rows are answered once. A column without gaps is sliced out, as in a single query. A column with gaps whose
variable is in one factor alone (a leaf of the part that matters) is sliced too: its table gets one more slice, the sum
of the others, for the gaps to pick. For the other columns with gaps, rows are grouped by which of them are there,
each group with its own plan; or, where groups would be small, the columns become likelihoods on one plan. Blocks of
rows then run through the plan together, on several threads if wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import Ledger, jobs
from bbn.core.threads import worker_map
from bbn.inference.exact.executor import Executor
from bbn.inference.exact.prepared_queries import TreeQuery
from bbn.inference.exact.problem import Factors, Question, cells_of
from bbn.inference.exact.runtime_prediction import predicted_rows
from bbn.inference.exact.tree_plan import run_bytes
from bbn.kernels.contracts.tape import MARGINALS, QUERY
from bbn.kernels.contracts.types import Floats, Int32s, Ints
from bbn.kernels.watch import check

GROUP = 32
"""Rows per group of gaps, on average, from which a plan for each group pays."""
BLOCK_CELLS = 100_000
"""Plans with more cells run row by row: a block of rows would leave the processor's caches."""
ALONE, ROW_CELLS = 0.5, 10_000
"""Plans that leave out all but this share of their cells, as they are zero whatever is observed, run row by row; what
that takes beside the cells is as much as ROW_CELLS of them."""
AT_LEAST = 256
"""Rows that are worth a thread of their own."""
INSTEAD = "answer fewer rows at a time; rows that are opened by bbn.open_data are answered batch by batch"


class CodedRows(NamedTuple):
    """Coded rows: the variables observed, and their codes, the code ``card`` where a value is missing."""

    columns: Ints
    codes: Int32s


class RowAnswers(NamedTuple):
    """The answers to many rows."""

    values: Floats
    """(rows, cells): the normalised joint of the targets, or all marginals; NaN where a row is impossible."""
    log_evidence: Floats
    """(rows,): ln P(row's evidence), -inf where it is impossible."""
    out: Ints
    """Per variable the start of its marginal among the cells, or -1."""


Planner = Callable[[Question, frozenset[int]], TreeQuery]
"""Gives the one plan of a question about a model in which these variables' tables have one more slice."""


def answer_rows(
    model: Factors,
    planner: Planner,
    codes: Mapping[str, NDArray[Any]],
    n_rows: int,
    targets: Sequence[int] = (),
    everything: bool = False,
    n_jobs: int | None = None,
    ledger: Ledger | None = None,
) -> RowAnswers:
    """The joint of the targets (or all marginals) for each row, and the log of its evidence.

    Parameters
    ----------
    model
        The factors.
    planner
        Compiles, or finds, plans.
    codes
        Variable name to a column of codes; the code equal to the variable's card means missing.
    n_rows
        The number of rows.
    targets, everything
        What to read; neither asks for the evidence alone. Targets are not among the columns.
    n_jobs
        Threads; None is OMP_NUM_THREADS if set, otherwise the number of cores. Fewer run where each one's workspace
        would not fit.
    ledger
        What the call has taken of the memory limit already.
    """
    ledger = ledger or Ledger()
    ledger.reserve(coding_bytes(codes, n_rows), f"the codes of {n_rows:,} rows", INSTEAD)
    rows, index = distinct_rows(model, codes, n_rows)
    wanted = np.zeros(len(model.cards), np.int64)
    wanted[list(targets)] = 1
    wanted[:] |= everything
    lonely, crowded = columns_with_gaps(model, rows, wanted)
    parts = groups(model, rows, crowded)
    cells = int(model.cards.sum()) if everything else cells_of(model, targets)
    repeats = len(rows.codes) < n_rows
    copies = len(rows.codes) * (2 if everything or len(parts) > 1 else 1) + (n_rows if repeats else 0)
    ledger.reserve(8 * copies * cells, f"the answers to {n_rows:,} rows", INSTEAD)
    values: Floats | None = None
    logs = np.empty(len(rows.codes))
    out = np.empty(0, np.int64)
    for chosen, group, likelihood in parts:
        sliced = frozenset(group.columns.tolist()) - likelihood
        padded = frozenset(lonely) & sliced
        question = Question(
            sliced, likelihood, targets=tuple(targets), goal=MARGINALS if everything else QUERY
        )
        query = planner(question, padded)
        answers = run_query(model, query, group, n_jobs, ledger.copy())
        if everything:
            answers = answers._replace(values=spread(model, answers.out, group, answers.values))
            out = _starts(model.cards)
        logs[chosen] = answers.log_evidence
        if len(parts) == 1:
            values = answers.values
            break
        if values is None:
            values = np.empty((len(logs), answers.values.shape[1]))
        values[chosen] = answers.values
    if values is None:
        values = np.empty((0, 0))
    return RowAnswers(values[index], logs[index], out) if repeats else RowAnswers(values, logs, out)


def coding_bytes(codes: Mapping[str, NDArray[Any]], n_rows: int) -> int:
    """What finding the distinct rows takes: the rows side by side, a table of hashes, and the codes of each."""
    return n_rows * (28 + sum(4 + column.dtype.itemsize for column in codes.values()))


def distinct_rows(model: Factors, codes: Mapping[str, NDArray[Any]], n_rows: int) -> tuple[CodedRows, Ints]:
    """The rows without repeats, columns in the model's order, and for each given row its place among them.

    A column of a variable of one state says nothing, and is left out.
    """
    order = sorted((n for n in codes if model.cards[model.number[n]] > 1), key=model.number.__getitem__)
    columns = np.array([model.number[name] for name in order], np.int64)
    if not order:
        return CodedRows(columns, np.empty((min(n_rows, 1), 0), np.int32)), np.zeros(n_rows, np.int64)
    first, index = kernels.coding.merge_rows([np.asarray(codes[name]) for name in order])
    table = np.empty((len(first), len(order)), np.int32)
    for k, name in enumerate(order):
        table[:, k] = codes[name][first]
    return CodedRows(columns, table), index


def columns_with_gaps(model: Factors, rows: CodedRows, wanted: Ints) -> tuple[list[int], list[int]]:
    """The variables with gaps: those in one relevant factor alone, and the others."""
    gaps = (rows.codes == model.cards[rows.columns]).any(axis=0)
    if not gaps.any():
        return [], []
    columns, targets = rows.columns.tolist(), np.flatnonzero(wanted).tolist()
    factors = kernels.layout.reduce_scopes(
        model.scope_ptr, model.scope, model.heads, len(model.cards), columns, (), False, targets, False
    )[1]
    uses = np.zeros(len(model.cards), np.int64)
    for f in factors.tolist():
        uses[model.scope[model.scope_ptr[f] : model.scope_ptr[f + 1]]] += 1
    incomplete = rows.columns[gaps]
    alone = (uses[incomplete] == 1) & (wanted[incomplete] == 0)
    return incomplete[alone].tolist(), incomplete[~alone].tolist()


def groups(
    model: Factors, rows: CodedRows, crowded: list[int]
) -> list[tuple[Any, CodedRows, frozenset[int]]]:
    """Parts of the rows, each with its columns, and which of those are likelihoods."""
    everyone = slice(None)
    if not crowded:
        return [(everyone, rows, frozenset())] if len(rows.codes) else []
    places = np.flatnonzero(np.isin(rows.columns, crowded))
    there = rows.codes[:, places] != model.cards[rows.columns[places]]
    first, index = kernels.coding.merge_rows([column.astype(np.uint8) for column in there.T])
    if len(rows.codes) < GROUP * len(first):
        return [(everyone, rows, frozenset(crowded))]
    parts: list[tuple[Any, CodedRows, frozenset[int]]] = []
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=len(first))).tolist()
    for pattern, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        chosen = order[start:stop]
        kept = np.ones(len(rows.columns), bool)
        kept[places] = there[first[pattern]]
        part = CodedRows(rows.columns[kept], np.ascontiguousarray(rows.codes[np.ix_(chosen, kept)]))
        parts.append((chosen, part, frozenset()))
    return parts


def run_query(
    model: Factors, query: TreeQuery, rows: CodedRows, n_jobs: int | None = None, ledger: Ledger | None = None
) -> RowAnswers:
    """The answers to rows whose columns a plan knows; it and its threads take what the ledger has left."""
    ledger = ledger or Ledger()
    n = len(rows.codes)
    executor = query.runs_to_come(n)
    layout = executor.layout
    ledger.reserve(executor.bytes, "the junction tree for these rows", INSTEAD)
    block = block_bytes(model, executor) if kernels.COMPILED else 0
    sparse = executor.plan.sparse
    in_blocks = kernels.COMPILED and layout.whole_size <= BLOCK_CELLS and block <= ledger.left
    if sparse is not None and sparse[0].whole_size + ROW_CELLS < ALONE * layout.whole_size:
        in_blocks = False
    if in_blocks:
        executor = query.whole()
    each = block if in_blocks else run_bytes(layout) + executor.plan.more
    threads = min(jobs(n_jobs), -(-n // AT_LEAST))
    if threads > 1 or in_blocks:
        threads = min(threads, ledger.workers(threads, each))
    bounds = np.linspace(0, n, max(threads, 1) + 1).astype(int).tolist()
    with executor.turn(ledger.reserved):
        out, logs = np.empty((n, layout.out_size)), np.empty(n)

        def work(start: int, stop: int) -> None:
            part = CodedRows(rows.columns, rows.codes[start:stop])
            _run(model, executor, part, out[start:stop], logs[start:stop], in_blocks)

        with (
            predicted_rows(layout, n, threads),
            worker_map(threads, threads) as spread,
        ):
            list(spread(work, bounds[:-1], bounds[1:]))
    out[logs == -np.inf] = np.nan
    return RowAnswers(out, logs, layout.out)


def block_bytes(model: Factors, executor: Executor) -> int:
    """The workspace of a thread that runs blocks of rows."""
    layout = executor.layout
    cells = layout.work_size + layout.scratch_size + layout.out_size + len(model.cards)
    return 8 * int(kernels.batch.BLOCK) * cells + 8 * layout.run.size


def _run(
    model: Factors, executor: Executor, rows: CodedRows, out: Floats, logs: Floats, in_blocks: bool
) -> None:
    alone = np.arange(len(logs))
    program = executor.program if in_blocks else None
    if program is not None and program.once_log == -np.inf:
        logs[:] = -np.inf
        return
    if program is not None and program.once_log > -np.inf:
        kernels.batch.run_rows(
            executor.tables,
            executor.layout,
            program.base,
            program.once_out,
            program.once_log,
            model.cards,
            rows.columns,
            rows.codes,
            out,
            logs,
        )
        alone = np.flatnonzero(np.isnan(logs))  # blocks in which a number left the range of a double
    likelihood = executor.plan.question.likelihood
    cards = model.cards.tolist()
    columns = rows.columns.tolist()
    for i in alone.tolist():
        check()
        hard = [
            (v, code)
            for v, code in zip(columns, rows.codes[i].tolist(), strict=True)
            if code < cards[v] or v not in likelihood
        ]
        out[i], logs[i] = executor.run(hard, held=True)


def spread(model: Factors, out: Ints, rows: CodedRows, values: Floats) -> Floats:
    """All marginals of a group in the model's own layout, observed variables certain of their state."""
    starts = _starts(model.cards).tolist()
    cards = model.cards.tolist()
    whole = np.zeros((len(values), sum(cards)))
    at = out.tolist()
    for v, card in enumerate(cards):
        if at[v] >= 0:
            whole[:, starts[v] : starts[v] + card] = values[:, at[v] : at[v] + card]
    for k, v in enumerate(rows.columns.tolist()):
        if at[v] < 0:
            whole[np.arange(len(values)), starts[v] + rows.codes[:, k]] = 1.0
    return whole


def _starts(cards: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(cards[:-1])]).astype(np.int64)
