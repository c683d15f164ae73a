"""Samples of a network, plain or given evidence, as a table, as codes, or in chunks that never fill the memory.

Rows are drawn in blocks of a fixed size, column by column within a block (see `draws` and `conditioning`). Where the
exact conditional does not fit in memory, rows are drawn by importance and resampled by weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.budget import require_memory
from bbn.errors import BudgetError, EvidenceError
from bbn.evidence import Evidence, Findings
from bbn.inference.approximate import say
from bbn.inference.blocks import BLOCK, Seeds, in_order
from bbn.inference.conditioning import conditioned_draws
from bbn.inference.draws import code_type, compile_draws
from bbn.kernels.moves import Codes, Moves
from bbn.kernels.sample import forward
from bbn.network import BayesianNetwork
from bbn.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd

NO_WEIGHTS = np.empty(0)
CHUNK_ROWS = 16 * BLOCK
"""The rows of a chunk where `chunks=True` leaves the choice."""


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
    progress: bool | None = None,
) -> Any:
    """Rows drawn from the network, given evidence if there is any.

    Parameters
    ----------
    n
        The number of rows.
    evidence
        Findings of any kind; rows are exact draws given them where the junction tree fits in memory.
    seed
        An int or a numpy Generator; the same seed gives the same rows, whatever `n_jobs` is.
    missing
        The share of values to hide, completely at random: one number, or a mapping from column to number.
    as_codes
        Give a dict of arrays of codes, −1 where missing, instead of a DataFrame.
    chunks
        Give an iterator over tables of so many rows (True: a good number), so that memory stays flat.

    Returns
    -------
    DataFrame
        One categorical column per variable, in topological order; the categories are the declared states.

    >>> import bbn
    >>> rows = bbn.example("burglary").sample(1000, {"JohnCalls": "yes"}, seed=1)
    >>> rows.shape, list(rows["JohnCalls"].unique())
    ((1000, 5), ['yes'])
    """
    n = _whole(n, "n")
    rates = _rates(net, missing)
    if chunks is not None and chunks is not True:
        chunks = _whole(chunks, "chunks", least=1)
    seeds = Seeds(seed)
    sampler = _Sampler(net, evidence, seeds, rates, memory_limit)
    if chunks is None:
        kind = code_type(v.card for v in net.variables)
        require_memory(
            n * len(net) * kind().itemsize, f"a table of {n:,} rows", "chunks= streams", memory_limit
        )
        table = next(sampler.tables(n, n, n_jobs, progress))
        return _as_dict(net, table) if as_codes else _as_frame(net, table)
    wrap = _as_dict if as_codes else _as_frame
    size = CHUNK_ROWS if chunks is True else chunks
    return (wrap(net, table) for table in sampler.tables(n, size, n_jobs, progress))


class _Sampler:
    """What draws blocks of rows of one network under one evidence."""

    def __init__(
        self,
        net: BayesianNetwork,
        evidence: Evidence | None,
        seeds: Seeds,
        rates: list[float],
        memory_limit: int | str | None,
    ) -> None:
        self.seeds, self.rates = seeds, rates
        self.n_columns = len(net)
        self.kind = code_type(v.card for v in net.variables)
        self.weighted = False
        columns = {name: i for i, name in enumerate(net.names)}
        findings = Findings({}, {}, {})
        if evidence:
            findings = _checked(net, evidence, memory_limit)
        self.fixed = {columns[name]: code for name, code in findings.hard.items()}
        self.moves = self._moves(net, evidence, findings, columns, memory_limit)

    def _moves(
        self,
        net: BayesianNetwork,
        evidence: Evidence | None,
        findings: Findings,
        columns: dict[str, int],
        memory_limit: int | str | None,
    ) -> Moves:
        plain = not (findings.hard or findings.likelihood)
        if plain and "moves" in net.memo:
            kept: Moves = net.memo["moves"]
            return kept
        try:
            draws, log_evidence = conditioned_draws(net, findings, columns, memory_limit)
        except BudgetError:
            from bbn.inference.importance import learned_draws

            self.weighted = True
            draws, log_evidence = learned_draws(net, net.names, columns, findings, self.seeds)
            say(
                "exact draws given this evidence do not fit in memory; rows are drawn by importance and resampled "
                "by weight, so they are approximate"
            )
        if log_evidence == -math.inf:
            from bbn.inference import engine

            raise engine(net)._impossible(findings, evidence, engine(net).options)
        moves = compile_draws(draws)
        return net.memo.setdefault("moves", moves) if plain else moves

    def tables(self, n: int, size: int, n_jobs: int | None, progress: bool | None) -> Iterator[Codes]:
        """Codes in tables of `size` rows, the last one shorter."""
        with progress_bar(progress, n, "sampling", "rows") as advance:
            if n == size:  # the common case: blocks are drawn in place
                whole = self._empty(n)
                for rows in in_order(lambda b: self._block(b, n, whole), -(-n // BLOCK), n_jobs):
                    advance(rows.shape[1])
                yield whole
                return
            table, filled, left = self._empty(min(size, n)), 0, n
            for rows in in_order(lambda b: self._block(b, n), -(-n // BLOCK), n_jobs):
                advance(rows.shape[1])
                while rows.shape[1]:
                    taken = rows[:, : table.shape[1] - filled]
                    table[:, filled : filled + taken.shape[1]] = taken
                    filled += taken.shape[1]
                    rows = rows[:, taken.shape[1] :]
                    if filled == table.shape[1]:
                        yield table
                        left -= filled
                        table, filled = self._empty(min(size, left)), 0

    def _empty(self, n: int) -> Codes:
        return np.empty((self.n_columns, n), self.kind)

    def _block(self, block: int, n: int, whole: Codes | None = None) -> Codes:
        """The rows of one block, hidden values as the largest code; written into `whole` if that is given."""
        start, stop = block * BLOCK, min(n, (block + 1) * BLOCK)
        bits = self.seeds.bits(0, block)
        rows = self._empty(stop - start) if whole is None else whole[:, start:stop]
        if self.weighted:
            rows[:] = self._weighted_block(bits, stop - start)
        else:
            forward(bits, self.moves, rows, NO_WEIGHTS)
        for column, code in self.fixed.items():
            rows[column] = code
        if any(self.rates):
            rng = np.random.Generator(bits)
            for column, rate in enumerate(self.rates):
                if rate > 0:
                    rows[column, rng.random(stop - start) < rate] = np.iinfo(self.kind).max
        return rows

    def _weighted_block(self, bits: np.random.SFC64, n: int) -> Codes:
        """Rows resampled by weight from a pool of as many candidates as a block has."""
        pool = self._empty(BLOCK)
        log_weight = np.zeros(BLOCK)
        forward(bits, self.moves, pool, log_weight)
        weight = np.exp(log_weight - log_weight.max())
        if not weight.sum() > 0:
            raise EvidenceError(f"no row of {BLOCK} agreed with the evidence; it is too rare to sample from")
        chosen = np.random.Generator(bits).choice(BLOCK, size=n, p=weight / weight.sum())
        return pool[:, chosen]


def _checked(net: BayesianNetwork, evidence: Evidence, memory_limit: int | str | None) -> Findings:
    from bbn.inference import engine

    exact = engine(net)
    options = {**exact.options, "memory_limit": memory_limit}
    return exact._findings(evidence, options)


def _as_dict(net: BayesianNetwork, table: Codes) -> dict[str, NDArray[Any]]:
    signed = table.view(np.int8 if table.dtype == np.uint8 else np.int16)
    return dict(zip(net.names, signed, strict=True))


def _as_frame(net: BayesianNetwork, table: Codes) -> pd.DataFrame:
    import pandas as pd

    columns = {
        v.name: pd.Categorical.from_codes(codes, dtype=_category(v.states))
        for v, codes in zip(net.variables, _as_dict(net, table).values(), strict=True)
    }
    return pd.DataFrame(columns, copy=False)


def _category(states: tuple[Any, ...]) -> pd.CategoricalDtype:
    import pandas as pd

    return pd.CategoricalDtype(pd.Index(list(states)), ordered=False)


def _rates(net: BayesianNetwork, missing: float | Mapping[str, float]) -> list[float]:
    """The share of values to hide, per column."""
    given = missing if isinstance(missing, Mapping) else dict.fromkeys(net.names, missing)
    for name, rate in given.items():
        net.variable(name)
        if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
            raise ValueError(f"missing: the share of values of {name!r} to hide is {rate!r}; expected 0 to 1")
    return [float(given.get(name, 0.0)) for name in net.names]


def _whole(number: Any, what: str, least: int = 0) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(f"{what} must be a whole number, found {number!r}")
    if number < least:
        raise ValueError(f"{what} must be at least {least}, found {number}")
    return int(number)
