"""Weighted sampling: draw from one distribution, weigh by the ratio to another, average.

With rows x drawn from q and weights w = P(x, evidence)/q(x), P(target | evidence) ≈ Σ w 1[target] / Σ w and
P(evidence) ≈ Σ w / n (Koller and Friedman 2009, section 12.2). A subclass chooses q. The variables that are neither
targets, nor observed, nor ancestors of these are never drawn: they cannot matter.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import Ledger, jobs
from bbn.core.errors import AccuracyWarning, ModelError, warn_user
from bbn.core.frozen import Array
from bbn.core.progress import progress_bar
from bbn.core.threads import in_order
from bbn.inference.exact.problem import factored
from bbn.inference.sampling.accuracy import LOW_ESS, weighted_error
from bbn.inference.sampling.approximate import Estimate
from bbn.inference.sampling.draws import (
    TABLE_COPIES,
    Draw,
    Hope,
    code_type,
    compile_draws,
    compile_seen,
    require_copies,
)
from bbn.inference.sampling.monte_carlo import HOPELESS, MonteCarlo, Run, cells_of
from bbn.inference.sampling.seeded_blocks import BLOCK, Seeds
from bbn.inference.sampling.tail import is_heavy, largest, pareto_k
from bbn.kernels.contracts.moves import Codes
from bbn.model.evidence import Findings, Model
from bbn.model.expansion import TABLE_CELLS
from bbn.model.network import BayesianNetwork
from bbn.results.sampling_report import SamplingReport

TALLY_BYTES = 16
"""What a tally takes of each cell."""
SUM_BYTES = 5 * TALLY_BYTES
"""What adding tallies up and judging the sum takes of each cell: the sum, a block's, and temporaries."""
WEIGHT_BYTES = 40
"""What weighing takes of each row of a block."""
UNEVEN = 0.1
"""Below this effective share of the samples, the tail of the weights is examined."""


class Proposal(NamedTuple):
    """What to draw from: draws with their log weights, and what every row's log weight has in common."""

    columns: dict[str, int]
    draws: list[Draw]
    log_scale: float
    accept: Callable[[np.random.SFC64, Codes, Array], None] | None = None
    """Further changes to a block's log weights, given its codes."""
    hope: Hope | None = None
    """The observed effects that draws look at."""


class Tally:
    """Sums of weights, each scaled by the largest weight met, so that weights of any size can be added."""

    def __init__(self, n_cells: int) -> None:
        self.top = -math.inf
        self.n = self.accepted = 0
        self.total = self.squares = 0.0
        self.cells = np.zeros((n_cells, 2))
        self.tail = np.empty(0)

    @classmethod
    def of(cls, log_weight: Array, n_cells: int) -> tuple[Tally, Array]:
        """The tally of one block without its cells, and the block's scaled weights."""
        tally = cls(n_cells)
        tally.n = len(log_weight)
        tally.top = float(log_weight.max())
        weights = np.exp(log_weight - tally.top) if tally.top > -math.inf else np.zeros(tally.n)
        tally.accepted = int(np.count_nonzero(weights))
        tally.total = float(weights.sum())
        tally.squares = float((weights * weights).sum())
        if tally.squares < tally.total:  # not all of them are 0 or the same
            tally.tail = largest(log_weight)
        return tally, weights

    def add(self, other: Tally) -> None:
        """Add another block's sums to these."""
        self.n += other.n
        self.accepted += other.accepted
        if len(other.tail):
            self.tail = largest(np.concatenate([self.tail, other.tail]))
        if other.top == -math.inf:
            return
        top = max(self.top, other.top)
        mine, theirs = math.exp(self.top - top), math.exp(other.top - top)
        self.total = self.total * mine + other.total * theirs
        self.squares = self.squares * mine**2 + other.squares * theirs**2
        scale = np.array([[mine, mine**2], [theirs, theirs**2]])
        self.cells = self.cells * scale[0] + other.cells * scale[1]
        self.top = top

    @property
    def ess(self) -> float:
        """(Σ w)² / Σ w²."""
        return self.total**2 / self.squares if self.squares > 0 else 0.0

    def shares(self) -> tuple[Array, Array]:
        """The estimates, and their standard errors, with room for one more effective sample in each entry.

        An entry that hardly any sample showed is known to the order of 1/n only, whatever the spread of those that did.
        """
        values = self.cells[:, 0] / self.total
        error = weighted_error(values, self.cells[:, 1], self.total, self.squares)
        return values, np.hypot(error, 1 / (self.ess + 2))

    def worst_error(self) -> float:
        """The largest standard error; inf while too few samples carry weight to know."""
        return float(self.shares()[1].max(initial=0.0)) if self.ess >= LOW_ESS else math.inf


class WeightedSampling(MonteCarlo):
    """An engine that draws along the arcs of a network and weighs."""

    table_copies = TABLE_COPIES

    def __init__(self, model: Model, **options: Any) -> None:
        if not isinstance(model, BayesianNetwork):
            raise ModelError(
                f"method {self.name!r} draws along the arcs of a network, and {model!r} has none; "
                'method="gibbs" and method="loopy" work on any model'
            )
        super().__init__(model, **options)

    def _prepare(self) -> None:
        self.net: BayesianNetwork = factored(self.model, TABLE_CELLS)  # type: ignore[arg-type]  # checked above

    def _proposal(
        self, names: list[str], findings: Findings, options: Mapping[str, Any], seeds: Seeds
    ) -> Proposal:
        """How to draw the variables in `names`, the relevant ones in topological order, given the findings."""
        raise NotImplementedError

    def _estimate(
        self, groups: Sequence[tuple[str, ...]], findings: Findings, options: Mapping[str, Any]
    ) -> Estimate:
        run, seeds = Run(options), Seeds(options["seed"])
        wanted = {name for group in groups for name in group}
        relevant = self.net.ancestral_set(wanted | {*findings.hard, *findings.likelihood})
        names = [name for name in self.net.names if name in relevant]
        require_copies(self.net, names, self.table_copies, options["memory_limit"])
        proposal = self._proposal(names, findings, options, seeds)
        if proposal.log_scale == -math.inf:
            return nothing(groups, self.model, 0)
        moves, seen = compile_draws(proposal.draws), compile_seen(proposal.draws, proposal.hope)
        cells = cells_of(groups, self.model, proposal.columns)
        kind = code_type(self.net.variable(name).card for name in names)
        n_jobs = _threads(cells.n_cells, len(names) * np.dtype(kind).itemsize, options)

        own = threading.local()  # each thread uses its columns again, so that their pages are fetched once

        def block(b: int) -> Tally:
            n = BLOCK if run.n_samples is None else min(BLOCK, run.n_samples - b * BLOCK)
            bits = seeds.bits(0, b)
            codes: Codes | None = getattr(own, "codes", None)
            if codes is None or codes.shape[1] != n:
                codes = own.codes = np.empty((len(proposal.columns) or 1, n), kind)
            log_weight = np.zeros(n)
            kernels.sample.forward(bits, moves, codes, log_weight, seen)
            if proposal.accept is not None:
                proposal.accept(bits, codes, log_weight)
            tally, weights = Tally.of(log_weight, cells.n_cells)
            kernels.sample.accumulate(codes, cells, weights, tally.cells)
            return tally

        tally = self._run(run, block, cells.n_cells, {**options, "n_jobs": n_jobs})
        if tally.total == 0:
            return nothing(groups, self.model, tally.n)
        values, std_error = tally.shares()
        for g, group in enumerate(groups):
            if not group:  # nothing was asked: certain
                values[cells.offset[g]], std_error[cells.offset[g]] = 1.0, 0.0
        enough = run.target is None or float(std_error.max(initial=0.0)) <= run.target
        k = pareto_k(tally.tail, tally.accepted) if tally.ess < UNEVEN * tally.accepted else None
        heavy = is_heavy(k, tally.ess / tally.n)
        report = SamplingReport(
            std_error,
            tally.ess,
            tally.n,
            acceptance_rate=tally.accepted / tally.n,
            interrupted=run.interrupted,
            converged=tally.ess >= LOW_ESS and not heavy and enough and not run.interrupted,
            pareto_k=k,
        )
        return Estimate(values, proposal.log_scale + tally.top + math.log(tally.total / tally.n), report)

    def _warn(self, report: SamplingReport, options: Mapping[str, Any]) -> None:
        super()._warn(report, options)
        if is_heavy(report.pareto_k, (report.ess or 0.0) / report.n_samples):
            warn_user(
                f"{self.name}: a few weights are so much larger than the others (Pareto k {report.pareto_k:.2f}; "
                f"{report.n_samples:,} samples are worth {report.ess:,.0f}) that the standard errors are too small; "
                + ("draw more samples" if self.name == "importance" else 'use method="importance"')
                + " or an exact method",
                AccuracyWarning,
            )

    def _run(
        self, run: Run, block: Callable[[int], Tally], n_cells: int, options: Mapping[str, Any]
    ) -> Tally:
        """Add up blocks until the run is over."""
        tally = Tally(n_cells)
        blocks = count() if run.n_samples is None else range(-(-run.n_samples // BLOCK))
        parts = in_order(block, blocks, options["n_jobs"])
        with progress_bar(options["progress"], run.n_samples, self.name, "samples") as advance:
            try:
                for blocks_done, part in enumerate(parts, start=1):
                    tally.add(part)
                    advance(part.n)
                    if run.over(blocks_done, tally.worst_error):
                        break
                    if tally.total == 0 and tally.n >= HOPELESS and run.n_samples is None:
                        break
            except KeyboardInterrupt:
                if tally.total == 0:
                    raise
                run.interrupted = True
            finally:
                parts.close()
        return tally


def _threads(n_cells: int, row: int, options: Mapping[str, Any]) -> int:
    """As many threads as asked for, or those that fit: each has a block of rows and two tallies under way."""
    ledger = Ledger(options["memory_limit"])
    ledger.reserve(SUM_BYTES * n_cells, f"the sums of {n_cells:,} cells", "ask for fewer targets at a time")
    return ledger.workers(jobs(options["n_jobs"]), 2 * TALLY_BYTES * n_cells + BLOCK * (row + WEIGHT_BYTES))


def nothing(groups: Sequence[tuple[str, ...]], model: Model, n: int) -> Estimate:
    """The estimate of a run in which nothing agreed with the evidence."""
    size = sum(math.prod(model.variable(name).card for name in group) for group in groups)
    return Estimate(
        np.zeros(size), -math.inf, SamplingReport(np.zeros(size), 0.0, n, 0.0, None, False, False)
    )
