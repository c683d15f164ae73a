"""Samples of a network, plain or given evidence, as a table, as codes, or in chunks that never fill the memory.

Rows are drawn in blocks of a fixed size, column by column within a block (see `draws` and `conditioning`). Where the
exact conditional does not fit in memory, rows are drawn by importance and resampled by weight.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import Ledger, jobs, require_memory
from bbn.core.errors import AccuracyWarning, BudgetError, EvidenceError, TimeLimitError, warn_user
from bbn.core.frozen import Array
from bbn.core.progress import progress_bar
from bbn.core.threads import in_order, within
from bbn.inference.exact.problem import factored
from bbn.inference.exact.runtime_prediction import refuse_far
from bbn.inference.sampling.conditioning import conditioned_draws
from bbn.inference.sampling.draws import TABLE_COPIES, code_type, compile_draws, require_copies
from bbn.inference.sampling.number_draws import NumberDraws
from bbn.inference.sampling.seeded_blocks import BLOCK, Seeds
from bbn.kernels.contracts.moves import Codes, Moves
from bbn.model.evidence import Evidence, Findings, as_mapping
from bbn.model.network import BayesianNetwork

if TYPE_CHECKING:
    import pandas as pd

NO_WEIGHTS = np.empty(0)
CHUNK_ROWS = 16 * BLOCK
"""The rows of a chunk where `chunks=True` leaves the choice."""
FEWER = "or draw fewer rows"
"""What a caller may do where time is too short."""


def sample(
    net: BayesianNetwork,
    n: int,
    evidence: Evidence | None = None,
    seed: Any = None,
    missing: float | Mapping[str, float] = 0.0,
    *,
    as_codes: bool = False,
    chunks: int | bool | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> Any:
    """See `BayesianNetwork.sample`."""
    n = _whole(n, "n")
    rates = _rates(net, missing)
    wrap = _as_dict if as_codes else _as_frame
    if chunks is None:
        with within(time_limit, FEWER):
            sampler = _Sampler(_factored(net), evidence, Seeds(seed), rates, memory_limit)
            require_memory(n * sampler.row_bytes, f"a table of {n:,} rows", "chunks= streams", memory_limit)
            return wrap(net, next(sampler.tables(n, n, n_jobs, progress)))
    if time_limit is not None:
        raise ValueError("time_limit= is for one table; with chunks= take as many as there is time for")
    if chunks is not True:
        chunks = _whole(chunks, "chunks", least=1)
    sampler = _Sampler(_factored(net), evidence, Seeds(seed), rates, memory_limit)
    size = CHUNK_ROWS if chunks is True else chunks
    ledger = Ledger(memory_limit)
    table = min(n, size) * sampler.row_bytes
    ledger.reserve(
        2 * table, f"two chunks of {size:,} rows, one given and one made", "ask for smaller chunks"
    )
    n_jobs = ledger.workers(jobs(n_jobs), 2 * BLOCK * sampler.row_bytes)  # one at work, one waiting
    return (wrap(net, table) for table in sampler.tables(n, size, n_jobs, progress))


def _factored(net: BayesianNetwork) -> BayesianNetwork:
    """The network without full tables of NoisyMax conditionals, where that leaves the order of its numbers."""
    other = factored(net)
    return other if other.continuous == net.continuous else net


class _RowsToDraw(NamedTuple):
    """Some rows, column by column."""

    codes: Codes
    """Of the discrete variables, in the sampler's order."""
    numbers: Array
    """Of the continuous variables, in topological order."""

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.codes.shape[1])

    def part(self, start: int, stop: int) -> _RowsToDraw:
        """A view of some of the rows."""
        return _RowsToDraw(self.codes[:, start:stop], self.numbers[:, start:stop])


class _Sampler:
    """What draws blocks of rows of one network under one evidence."""

    def __init__(
        self,
        net: BayesianNetwork,
        evidence: Evidence | None,
        seeds: Seeds,
        rates: Mapping[str, float],
        memory_limit: int | str | None,
    ) -> None:
        self.seeds, self.rates = seeds, rates
        self.weighted = False
        self.numbers: NumberDraws | None = None
        discrete = net
        if net.continuous:
            self.numbers = NumberDraws(net, evidence, memory_limit)
            discrete, evidence = self.numbers.discrete, self.numbers.evidence
        self.kind = code_type(v.card for v in discrete.variables)
        self.columns = {name: i for i, name in enumerate(discrete.names)}
        self.row_bytes = len(self.columns) * self.kind().itemsize + 8 * len(net.continuous)
        findings = Findings({}, {}, {})
        evidence = as_mapping(evidence)
        if evidence:
            findings = _checked(discrete, evidence, memory_limit)
        self.fixed = {self.columns[name]: code for name, code in findings.hard.items()}
        self.moves = self._moves(discrete, evidence, findings, memory_limit)

    def _moves(
        self,
        net: BayesianNetwork,
        evidence: Evidence | None,
        findings: Findings,
        memory_limit: int | str | None,
    ) -> Moves:
        plain = not (findings.hard or findings.likelihood)
        if plain and "moves" in net.memo:
            kept: Moves = net.memo["moves"]
            return kept
        require_copies(net, net.names, TABLE_COPIES, memory_limit)
        try:
            draws, log_evidence = conditioned_draws(net, findings, self.columns, memory_limit)
        except TimeLimitError:
            raise
        except BudgetError:
            from bbn.inference.sampling.importance import LEARNED_COPIES, learned_draws

            require_copies(net, net.names, LEARNED_COPIES, memory_limit)

            self.weighted = True
            draws, _, log_evidence = learned_draws(net, net.names, self.columns, findings, self.seeds)
            warn_user(
                "exact draws given this evidence do not fit in memory; rows are drawn by importance and resampled "
                "by weight, so they are approximate",
                AccuracyWarning,
            )
        if log_evidence == -math.inf:
            if self.numbers is not None:
                self.numbers.refuse_impossible()
            from bbn.inference import engine

            raise engine(net)._impossible(findings, evidence, engine(net).options)
        moves = compile_draws(draws)
        return net.memo.setdefault("moves", moves) if plain else moves

    def tables(self, n: int, size: int, n_jobs: int | None, progress: bool | None) -> Iterator[_Table]:
        """Tables of `size` rows, the last one shorter."""
        with progress_bar(progress, n, "sampling", "rows") as advance:
            if n == size:  # the common case: blocks are drawn in place
                whole = self._empty(n)
                for rows in self._blocks(n, n_jobs, whole):
                    advance(rows.n)
                yield _Table(self.columns, whole)
                return
            table, filled, left = self._empty(min(size, n)), 0, n
            for rows in self._blocks(n, n_jobs):
                advance(rows.n)
                while rows.n:
                    taken = rows.part(0, table.n - filled)
                    for to, values in zip(table.part(filled, filled + taken.n), taken, strict=True):
                        to[:] = values
                    filled += taken.n
                    rows = rows.part(taken.n, rows.n)
                    if filled == table.n:
                        yield _Table(self.columns, table)
                        left -= filled
                        table, filled = self._empty(min(size, left)), 0

    def _blocks(self, n: int, n_jobs: int | None, whole: _RowsToDraw | None = None) -> Iterator[_RowsToDraw]:
        """The blocks of n rows, in order; how long the first took tells how long all of them take."""
        blocks = range(-(-n // BLOCK))
        began = time.monotonic()
        for b, rows in enumerate(in_order(lambda b: self._block(b, n, whole), blocks, n_jobs)):
            if b == 0:
                seconds = (time.monotonic() - began) * len(blocks) / min(jobs(n_jobs), len(blocks))
                refuse_far(seconds, f"drawing {n:,} rows", FEWER, f"{BLOCK:,} were drawn to find out")
            yield rows

    def _empty(self, n: int) -> _RowsToDraw:
        names = () if self.numbers is None else self.numbers.names
        return _RowsToDraw(np.empty((len(self.columns), n), self.kind), np.empty((len(names), n)))

    def _block(self, block: int, n: int, whole: _RowsToDraw | None = None) -> _RowsToDraw:
        """The rows of one block, hidden values as the largest code or NaN; in `whole` if that is given."""
        start, stop = block * BLOCK, min(n, (block + 1) * BLOCK)
        bits = self.seeds.bits(0, block)
        rows = self._empty(stop - start) if whole is None else whole.part(start, stop)
        if self.weighted:
            rows.codes[:] = self._weighted_block(bits, stop - start)
        else:
            kernels.sample.forward(bits, self.moves, rows.codes, NO_WEIGHTS)
        for column, code in self.fixed.items():
            rows.codes[column] = code
        rng = np.random.Generator(bits)
        if self.numbers is not None:
            states = {name: rows.codes[column] for name, column in self.columns.items()}
            self.numbers.draw(states, rng, rows.numbers)
        for name, rate in self.rates.items():
            if rate > 0:
                hidden = rng.random(stop - start) < rate
                if self.numbers is not None and name in self.numbers.names:
                    rows.numbers[self.numbers.names.index(name), hidden] = np.nan
                else:
                    rows.codes[self.columns[name], hidden] = np.iinfo(self.kind).max
        return rows

    def _weighted_block(self, bits: np.random.SFC64, n: int) -> Codes:
        """Rows resampled by weight from a pool of as many candidates as a block has."""
        pool = self._empty(BLOCK).codes
        log_weight = np.zeros(BLOCK)
        kernels.sample.forward(bits, self.moves, pool, log_weight)
        if log_weight.max() == -math.inf:
            raise EvidenceError(f"no row of {BLOCK} agreed with the evidence; it is too rare to sample from")
        weight = np.exp(log_weight - log_weight.max())
        chosen = np.random.Generator(bits).choice(BLOCK, size=n, p=weight / weight.sum())
        return pool[:, chosen]


def _checked(net: BayesianNetwork, evidence: Evidence, memory_limit: int | str | None) -> Findings:
    from bbn.inference import engine

    exact = engine(net)
    options = {**exact.options, "memory_limit": memory_limit}
    return exact._findings(evidence, options)


class _Table(NamedTuple):
    """Rows with the places of their discrete columns."""

    columns: Mapping[str, int]
    rows: _RowsToDraw


def _as_dict(net: BayesianNetwork, table: _Table) -> dict[str, NDArray[Any]]:
    codes = table.rows.codes
    signed = codes.view(np.int8 if codes.dtype == np.uint8 else np.int16)
    numbers = dict(zip(net.continuous, table.rows.numbers, strict=True))
    return {name: numbers[name] if name in numbers else signed[table.columns[name]] for name in net.names}


def _as_frame(net: BayesianNetwork, table: _Table) -> pd.DataFrame:
    import pandas as pd

    columns = {
        name: pd.Categorical.from_codes(values, dtype=_category(type(states[0]).__name__, states))
        if (states := net.states(name))
        else values
        for name, values in _as_dict(net, table).items()
    }
    return pd.DataFrame(columns, copy=False)


@lru_cache(maxsize=1024)
def _category(kind: str, states: tuple[Any, ...]) -> Any:
    """The categories of a column, made once, since pandas takes long for them (`kind` keeps True apart from 1)."""
    import pandas as pd

    return pd.CategoricalDtype(pd.Index(list(states)), ordered=False)


def _rates(net: BayesianNetwork, missing: float | Mapping[str, float]) -> dict[str, float]:
    """The share of values to hide, per column."""
    given = missing if isinstance(missing, Mapping) else dict.fromkeys(net.names, missing)
    for name, rate in given.items():
        net.variable(name)
        if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
            raise ValueError(f"missing: the share of values of {name!r} to hide is {rate!r}; expected 0 to 1")
    return {name: float(given.get(name, 0.0)) for name in net.names}


def _whole(number: Any, what: str, least: int = 0) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(f"{what} must be a whole number, found {number!r}")
    if number < least:
        raise ValueError(f"{what} must be at least {least}, found {number}")
    return int(number)
