"""Gibbs sampling: chains that redraw one block of variables at a time given all the others.

Geman and Geman 1984; Pearl 1987. The share of time that a chain spends in a state tends to its posterior
probability. Standard errors come from the means of batches of consecutive sweeps, R-hat from the halves of the chains.
Chains start from rows drawn by likelihood weighting and resampled by weight; their first sweeps are thrown away.
Works on factor graphs as on networks. A sweep costs one table look-up per variable and chain; a cause of a large
NoisyMax costs the logarithm of the number of causes (`bbn.inference.sampling.gibbs_causes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count, repeat
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import Ledger, require_memory
from bbn.core.errors import EvidenceError, MixingWarning, warn_user
from bbn.core.frozen import Array
from bbn.core.progress import progress_bar
from bbn.core.threads import worker_map
from bbn.inference.relevant_factors import ancestral_factors, merged_factors, observed_factors
from bbn.inference.sampling.accuracy import HIGH_R_HAT, LOW_ESS, chain_error, split_r_hat, unseen
from bbn.inference.sampling.approximate import Estimate
from bbn.inference.sampling.draws import code_type
from bbn.inference.sampling.gibbs_blocks import choose_blocks
from bbn.inference.sampling.gibbs_causes import (
    Family,
    compile_causes,
    domain_factors,
    large_families,
    reserve_causes,
)
from bbn.inference.sampling.gibbs_start import starting_states
from bbn.inference.sampling.gibbs_sweep import compile_sweep
from bbn.inference.sampling.gibbs_ties import tied_blocks
from bbn.inference.sampling.importance import LEARNED_COPIES
from bbn.inference.sampling.monte_carlo import MonteCarlo, Run, cells_of
from bbn.inference.sampling.seeded_blocks import Seeds
from bbn.inference.sampling.weighted import nothing
from bbn.kernels.contracts.causes import NO_CAUSES, Causes
from bbn.kernels.contracts.moves import Codes, Groups, Sweep
from bbn.kernels.contracts.types import Ints
from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork
from bbn.model.options import GibbsOptions
from bbn.results.sampling_report import SamplingReport

TOGETHER = 8
"""Chains that run in step, on one thread and from one stream of random numbers."""
N_SWEEPS = 200_000
"""The sweeps, of all chains together, where nothing else ends a run: they are not independent, so take more."""
BATCHES = 32
"""The least number of batches a chain is cut into."""
TRACE_COPIES = 5
"""Arrays like the counts of all batches that are there at once when they are judged."""

JOINS = 8
"""The draws that taking a cause out of its family, and putting it back, costs."""
STRETCH = 2_000_000
"""The draws after which a long batch looks whether it is to stop."""


class GibbsSampling(MonteCarlo):
    """Gibbs sampling: chains that redraw one block of variables at a time.

    Parameters
    ----------
    model : BayesianNetwork or FactorGraph
        The model to ask.
    n_samples : int, optional
        How many samples to draw; by default 200,000 sweeps of all chains together, or as many as `target_std_error`
        or `time_limit` allow.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answer, whatever `n_jobs` is.
    target_std_error : float, optional
        Draw until the standard error of every probability is at most this.
    time_limit : float, optional
        Draw for this many seconds at most, and answer with what there is.
    budget : Budget, optional
        Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
    n_jobs : int, optional
        Threads, −1 for one per core; by default OMP_NUM_THREADS, or else one per core.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook.
    memory_limit : int, float or str, optional
        The most bytes that the work may take, such as ``"2 GB"``; BudgetError beyond.
    chains : int, default 16
        The number of chains; `n_samples` counts the sweeps of them all.
    burn_in : int, default 500
        Sweeps of each chain that are thrown away at the start.

    See Also
    --------
    LikelihoodWeighting : Independent samples instead of chains.

    Examples
    --------
    >>> import bbn
    >>> p = GibbsSampling(bbn.example("burglary"), seed=1).query("Alarm", {"JohnCalls": "yes"})
    >>> bool(abs(p["yes"] - 0.043438) < 5 * p.std_error[0]), p.r_hat < 1.01
    (True, True)
    """

    name = "gibbs"
    defaults: Mapping[str, Any] = {**MonteCarlo.defaults, "chains": 16, "burn_in": 500}  # type: ignore[misc]

    def __init__(self, model: Model, **options: Unpack[GibbsOptions]) -> None:
        super().__init__(model, **options)

    def _estimate(
        self, groups: Sequence[tuple[str, ...]], findings: Findings, options: Mapping[str, Any]
    ) -> Estimate:
        run, seeds = Run(options, N_SWEEPS), Seeds(options["seed"])
        chains, burn_in = _whole(options["chains"], "chains", 1), _whole(options["burn_in"], "burn_in", 0)
        wanted = {name for group in groups for name in group}
        relevant, families = self._parts(wanted | {*findings.hard, *findings.likelihood}, findings)
        size = 8 * LEARNED_COPIES * sum(factor.values.size for factor in relevant)
        require_memory(size, "what chains start and are drawn from", "observe more", options["memory_limit"])
        factors, log_scale = merged_factors(observed_factors(self.model, findings, relevant))
        if log_scale == -math.inf:
            return nothing(groups, self.model, 0)
        cards = {v.name: v.card for factor in factors for v in factor.variables}
        caused = {n for own in families for n in (own.child, *(p.name for p in own.parents)) if n is not None}
        cards |= {name: self.model.variable(name).card for name in (*wanted, *sorted(caused))}
        self._warn_of_zeros(factors, families)
        blocks = choose_blocks(factors, cards)
        columns = {name: i for i, name in enumerate(cards)}
        start, log_evidence = starting_states(self.model, factors, columns, findings, chains, seeds, options)
        if start is None:
            return nothing(groups, self.model, 0)
        moves = tied_blocks(blocks, families, factors) if families else blocks
        moves = [block for block in moves if len(block.states) > 1]
        sweep = compile_sweep(factors, moves, columns, options["memory_limit"], caused)
        reserve_causes(families, chains, Ledger(options["memory_limit"]))
        causes = compile_causes(families, moves, columns) if families else NO_CAUSES
        cells = cells_of(groups, self.model, columns)
        states = np.ascontiguousarray(start, code_type(cards.values()))
        known = {name for block in blocks if len(block.states) == 1 for name in block.names}
        trace = Trace(chains, run.n_samples)
        require_memory(
            8 * chains * cells.n_cells * (TRACE_COPIES * (trace.n_batches or 2 * BATCHES) + 3),
            f"the batches of {chains} chains over {cells.n_cells:,} cells",
            "ask for fewer targets at a time, or for fewer chains",
            options["memory_limit"],
        )
        sizes = [math.prod(self.model.variable(name).card for name in group) for group in groups]
        trace.certain = np.repeat(np.array([known.issuperset(g) for g in groups], bool), sizes)
        self._run(run, trace, sweep, causes, states, cells, burn_in, seeds, options)
        return Estimate(trace.judged()[0], log_evidence, trace.report(run))

    def _run(
        self,
        run: Run,
        trace: Trace,
        sweep: Sweep,
        causes: Causes,
        start: Codes,
        cells: Groups,
        burn_in: int,
        seeds: Seeds,
        options: Mapping[str, Any],
    ) -> None:
        """Burn in, then sweep batch after batch until the run is over."""
        n_chains = start.shape[1]
        states = [np.ascontiguousarray(start[:, c : c + TOGETHER]) for c in range(0, n_chains, TOGETHER)]
        bits = [seeds.bits(0, i) for i in range(len(states))]

        def sweeps(i: int, n: int, counted: bool) -> Ints:
            visited = np.zeros((states[i].shape[1], cells.n_cells if counted else 0), np.int64)
            stretch = max(
                1, STRETCH // (1 + states[i].size + JOINS * len(causes.member) * states[i].shape[1])
            )
            for done in range(0, n, stretch):
                check()
                n_sweeps = min(stretch, n - done)
                kernels.sample.gibbs(bits[i], sweep, states[i], n_sweeps, cells, visited, causes)
            return visited

        with (
            worker_map(options["n_jobs"], len(states)) as spread,
            progress_bar(options["progress"], run.n_samples, self.name, "samples") as advance,
        ):

            def everyone(n: int, counted: bool) -> Ints:
                return np.concatenate(list(spread(sweeps, range(len(states)), repeat(n), repeat(counted))))

            try:
                for done in range(0, burn_in, 100):
                    everyone(min(100, burn_in - done), False)
                for rounds in count(1):
                    trace.add(everyone(trace.length, True))
                    advance(trace.length * n_chains)
                    if trace.full or (len(trace.counts) > 1 and run.over(rounds, trace.worst_error)):
                        break
            except KeyboardInterrupt:
                if len(trace.counts) < 2:
                    raise
                run.interrupted = True

    def _parts(self, names: set[str], findings: Findings) -> tuple[list[Factor], list[Family]]:
        """The factors of these variables and their ancestors, and families in place of those that would be large."""
        if not isinstance(self.model, BayesianNetwork):
            return ancestral_factors(self.model, names), []
        wanted = self.model.ancestral_set(names)
        families, factors = large_families(self.model, wanted, findings.hard)
        factors += [self.model[n].factor() for n in self.model.names if n in wanted and n not in families]
        kept = [family for family in families.values() if family is not None]
        return factors + domain_factors(kept, self.model.variable), kept

    def _warn_of_zeros(self, factors: Sequence[Factor], families: Sequence[Family]) -> None:
        names = [", ".join(factor.names) for factor in factors if (factor.values == 0).any()]
        names += [
            f"{', '.join(p.name for p in own.parents[:3])}, … ({len(own.parents)} causes)"
            for own in families
            if own.has_zeros
        ]
        if names:
            shown = "; ".join(names[:3]) + (f"; … ({len(names)} in all)" if len(names) > 3 else "")
            warn_user(
                f"gibbs: there are zeros in the tables over {shown}; chains may mix slowly or not at all, so look at "
                "R-hat, or use another method",
                MixingWarning,
            )

    def _warn(self, report: SamplingReport, options: Mapping[str, Any]) -> None:
        super()._warn(report, options)
        r_hat = report.r_hat or 1.0
        if r_hat == math.inf:
            raise EvidenceError(
                "gibbs: the chains never leave the states they started in, and these differ, so the answer would be "
                'wrong; use an exact method or method="importance"'
            )
        if r_hat > HIGH_R_HAT:
            warn_user(
                f"gibbs: the chains disagree, R-hat is {r_hat:.4g}, above {HIGH_R_HAT}; draw more samples, or use "
                "another method",
                MixingWarning,
            )


class Trace:
    """Where the chains were: counts of the cells visited, per chain and batch of sweeps.

    Parameters
    ----------
    n_chains
        The number of chains.
    n_samples
        The sweeps of all chains together, which sets the length of a batch; None: batches grow as the run does.

    Attributes
    ----------
    certain
        Per cell, whether its group can be in one state only.
    """

    certain: NDArray[np.bool_]

    def __init__(self, n_chains: int, n_samples: int | None) -> None:
        self.n_chains = n_chains
        self.length = 64 if n_samples is None else max(1, -(-n_samples // (n_chains * BATCHES)))
        self.n_batches = None if n_samples is None else max(2, -(-n_samples // (n_chains * self.length)))
        self.counts: list[Ints] = []

    def add(self, visited: Ints) -> None:
        """Add a batch of every chain; where batches grow, twice the least number become half as many."""
        self.counts.append(visited)
        if self.n_batches is None and len(self.counts) == 2 * BATCHES:
            self.counts = [a + b for a, b in zip(self.counts[::2], self.counts[1::2], strict=True)]
            self.length *= 2

    @property
    def full(self) -> bool:
        """Whether all batches are there."""
        return self.n_batches is not None and len(self.counts) >= self.n_batches

    @property
    def n_samples(self) -> int:
        """The sweeps counted."""
        return self.n_chains * len(self.counts) * self.length

    def means(self) -> Array:
        """Shares of time as ``means[chain, batch, cell]``."""
        return np.stack(self.counts, axis=1) / self.length

    def judged(self) -> tuple[Array, Array, float]:
        """The estimates, their standard errors, and the effective sample size of the worst entry.

        What never changed in any chain, though it might, says no more than where the chains started.
        """
        means = self.means()
        values = means.mean(axis=(0, 1))
        error = chain_error(means)
        spread = values * (1 - values)
        inner = (spread > 0) & (error > 0)
        ess = float((spread[inner] / error[inner] ** 2).min(initial=self.n_samples))
        if ((values >= 1) & ~self.certain).any():
            ess = min(ess, float(self.n_chains))
        return values, unseen(error, values, ess), ess

    def worst_error(self) -> float:
        """The largest standard error; inf while the chains are too short to know."""
        if len(self.counts) < BATCHES:
            return math.inf
        _, error, ess = self.judged()
        return float(error.max(initial=0.0)) if ess >= LOW_ESS else math.inf

    def report(self, run: Run) -> SamplingReport:
        """The report on what the run reached."""
        _, error, ess = self.judged()
        r_hat = float(split_r_hat(self.means(), self.length).max(initial=1.0))
        enough = run.target is None or float(error.max(initial=0.0)) <= run.target
        converged = ess >= LOW_ESS and r_hat <= HIGH_R_HAT and enough and not run.interrupted
        return SamplingReport(error, ess, self.n_samples, None, r_hat, run.interrupted, converged)


def _whole(number: Any, what: str, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
        raise ValueError(f"{what} must be a whole number, at least {least}, found {number!r}")
    return int(number)
