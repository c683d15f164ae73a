"""MonteCarlo: what the sampling engines share: when a run ends, and what a poor one says.

A run ends after `n_samples`, when every standard error is at most `target_std_error`,
or after `time_limit` seconds, whichever comes first; an interrupt from the keyboard gives back what was reached.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.errors import AccuracyWarning, BudgetError, NoSampleError, warn_user
from bbn.inference.sampling.accuracy import LOW_ESS
from bbn.inference.sampling.approximate import Approximate
from bbn.inference.sampling.draws import offsets, starts
from bbn.kernels.contracts.moves import Groups
from bbn.model.evidence import Evidence, Findings, Model
from bbn.results.sampling_report import SamplingReport

N_SAMPLES = 100_000
"""The samples drawn where nothing else ends a run."""
HOPELESS = 1 << 26
"""A run gives up after HOPELESS samples if none of them agrees with the evidence."""


class MonteCarlo(Approximate):
    """An engine that samples.

    Parameters
    ----------
    n_samples
        How many samples to draw; 100,000 (Gibbs: 200,000) unless a target or a time limit ends the run.
    seed
        An int or a numpy Generator; the same seed gives the same answer, whatever `n_jobs` is.
    target_std_error
        Draw until the standard error of every entry is at most this.
    time_limit
        Draw for at most this many seconds.
    n_jobs
        Threads to use; all cores if None.
    """

    exact = False
    defaults: Mapping[str, Any] = {  # type: ignore[misc]
        "n_samples": None,
        "seed": None,
        "target_std_error": None,
        "time_limit": None,
        "budget": None,
        "n_jobs": None,
        "progress": None,
        "memory_limit": None,
    }

    def _warn(self, report: SamplingReport, options: Mapping[str, Any]) -> None:
        """Warn if an answer is poor."""
        if report.interrupted:
            warn_user(
                f"{self.name}: interrupted after {report.n_samples:,} samples; the answer is from these",
                AccuracyWarning,
            )
        if report.ess is not None and report.ess < LOW_ESS:
            warn_user(
                f"{self.name}: the {report.n_samples:,} samples are worth only {report.ess:.3g} independent ones, too "
                "few to trust the answer or its standard errors; draw more samples or use another method",
                AccuracyWarning,
            )
        target = options["target_std_error"]
        worst = 0.0 if report.std_error is None else float(report.std_error.max(initial=0.0))
        if target is not None and worst > target and not report.interrupted:
            warn_user(
                f"{self.name}: the largest standard error is {worst:.3g} after {report.n_samples:,} samples, "
                f"more than the target of {target:g}",
                AccuracyWarning,
            )

    def _fit_soft(
        self, findings: Findings, evidence: Evidence | None, options: Mapping[str, Any]
    ) -> Findings:
        """Soft findings are fitted by the exact engine: fitting needs marginals without noise."""
        from bbn.inference import engine

        exact = engine(self.model)  # type: ignore[arg-type]  # engines are made for networks and factor graphs
        return exact._fit_soft(findings, evidence, {**exact.options, "memory_limit": options["memory_limit"]})

    def _no_answer(
        self,
        findings: Findings,
        evidence: Evidence | None,
        report: SamplingReport,
        options: Mapping[str, Any],
    ) -> Exception:
        """The error for a run in which no sample agreed with the evidence: how rare that is, if possible at all."""
        from bbn.inference import engine

        n = report.n_samples
        exact = engine(self.model)  # type: ignore[arg-type]
        settings = {**exact.options, "memory_limit": options["memory_limit"]}
        try:
            log_evidence = exact._joint((), findings, settings)[1]
            if log_evidence == -math.inf:
                return exact._impossible(findings, evidence, settings)
            rare = f"its probability is about 1e{log_evidence / math.log(10):.1f}"
            if log_evidence > -math.log(1e15):
                rare = f"its probability is {math.exp(log_evidence):.3g}, 1 in {math.exp(-log_evidence):,.0f}"
        except BudgetError:
            rare = f"its probability is below about {3 / max(n, 1):.1g}, or zero"
        return NoSampleError(
            f"{self.name}: none of {n:,} samples agrees with the evidence; {rare}; "
            'draw more, or use method="importance" or an exact method'
        )


class Run:
    """When a run ends: by number, target or clock. Iterating its checks keeps answers free of the threads' timing."""

    def __init__(self, options: Mapping[str, Any], default: int = N_SAMPLES) -> None:
        self.n_samples = _n_samples(options, default)
        self.target = _positive(options["target_std_error"], "target_std_error")
        limit = _positive(options["time_limit"], "time_limit")
        self.deadline = math.inf if limit is None else time.monotonic() + limit
        self.interrupted = False
        self._next_check = 1

    def over(self, blocks_done: int, worst_error: Callable[[], float]) -> bool:
        """Whether to stop; `worst_error()` gives the largest standard error so far, inf if there is none yet."""
        if time.monotonic() >= self.deadline:
            return True
        if self.target is None or blocks_done < self._next_check:
            return False
        self._next_check = blocks_done + 1 + blocks_done // 4
        return bool(worst_error() <= self.target)


def cells_of(groups: Sequence[tuple[str, ...]], model: Model, columns: Mapping[str, int]) -> Groups:
    """The cells to count for groups of variables, each group's in C order of its variables."""
    cards = [[model.variable(name).card for name in group] for group in groups]
    sizes = [math.prod(group) for group in cards]
    return Groups(
        ptr=offsets([len(group) for group in groups]),
        members=np.array([columns[name] for group in groups for name in group], np.int64),
        strides=np.array([math.prod(c[k + 1 :]) for c in cards for k in range(len(c))], np.int64),
        offset=starts(sizes),
        n_cells=sum(sizes),
    )


def _n_samples(options: Mapping[str, Any], default: int) -> int | None:
    n = options["n_samples"]
    if n is None:
        unlimited = options["target_std_error"] is not None or options["time_limit"] is not None
        return None if unlimited else default
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"n_samples must be a whole number, found {n!r}")
    if n < 1:
        raise ValueError(f"n_samples must be at least 1, found {n}")
    return int(n)


def _positive(number: Any, what: str) -> float | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float | np.number):
        raise TypeError(f"{what} must be a number, found {number!r}")
    if not number > 0:
        raise ValueError(f"{what} must be positive, found {number}")
    return float(number)
