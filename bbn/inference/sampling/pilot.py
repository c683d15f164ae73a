"""Pilot runs: which sampling method answers a question that exact inference refuses, and how well.

Each method draws a few samples in a fraction of a second. Those whose own report calls them reliable are compared by
their largest standard error; the same question gets the same advice, unless a method is too slow to have a say. Where
none is left, the advice says of each why.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from bbn.core.budget import show_bytes
from bbn.core.errors import BBNError, BudgetError, ImpossibleEvidenceError, NoSampleError, TimeLimitError
from bbn.core.threads import time_limit
from bbn.model.evidence import Evidence, Model

CONTENDERS = ("importance", "gibbs", "likelihood-weighting")
N_SAMPLES = 2_000
SECONDS = 0.2
"""The most time that each method gets."""
MEMORY = 200_000_000
"""The most bytes that each method gets."""


def advised(
    refusal: BudgetError, model: Model, targets: str | Sequence[str] | None, evidence: Evidence | None
) -> BudgetError:
    """The refusal with the method that a pilot run recommends; `targets` None asks for all posteriors."""
    from bbn.inference import engine_class

    errors: dict[str, float] = {}
    faults: list[str] = []
    limit = MEMORY if refusal.limit is None else min(MEMORY, refusal.limit)
    for method in CONTENDERS:
        kind = engine_class(method)
        options: dict[str, Any] = {"burn_in": 50} if method == "gibbs" else {}
        try:
            with warnings.catch_warnings(), time_limit(SECONDS):
                warnings.simplefilter("ignore")
                engine = kind(
                    model,
                    n_samples=N_SAMPLES,
                    seed=0,
                    n_jobs=1,
                    progress=False,
                    memory_limit=limit,
                    **options,
                )
                answer = engine.posteriors(evidence) if targets is None else engine.query(targets, evidence)
        except (BBNError, TypeError) as fault:
            faults.append(f"{method} {_in_words(fault)}")
            continue
        report = answer.sampling
        if report is not None and report.reliable and report.std_error is not None:
            errors[method] = float(report.std_error.max(initial=0.0))
        else:
            faults.append(f"{method} was not reliable")
    if errors:
        best = min(errors, key=errors.__getitem__)
        advice = (
            f'method="{best}" answers with standard errors of at most {errors[best]:.2g} '
            f"in a pilot run of {N_SAMPLES:,} samples"
        )
    else:
        advice = (
            f"no sampling method answered it in a pilot run of {N_SAMPLES:,} samples: {', '.join(faults[:-1])} and "
            f"{faults[-1]}"
        )
    return BudgetError(f"{refusal}; {advice}", refusal.needed, refusal.limit)


def _in_words(fault: Exception) -> str:
    """Why a pilot run gave no answer, after the method's name."""
    if isinstance(fault, TimeLimitError):
        return f"took longer than {SECONDS:g} s"
    if isinstance(fault, BudgetError):
        return "needs more memory" if fault.needed is None else f"needs {show_bytes(fault.needed)}"
    if isinstance(fault, NoSampleError | ImpossibleEvidenceError):
        return "met no sample that agrees with the evidence"
    return "does not apply to such models"


def is_advisable(refusal: BudgetError) -> bool:
    """Whether it is the work that is too much, not the answer or the time."""
    from bbn.inference.exact.problem import INSTEAD

    return INSTEAD in str(refusal) and not isinstance(refusal, TimeLimitError)
