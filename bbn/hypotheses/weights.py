"""The weights of hypotheses: priors as given, checked, and posteriors from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bbn.core.errors import ModelError
from bbn.core.frozen import Array


def normalised(priors: Array, log_likelihoods: Array) -> Array:
    """P(h | D) from P(h) and ln P(D | h); the priors themselves, bit for bit, where nothing was seen."""
    if not log_likelihoods.any():
        return priors
    with np.errstate(divide="ignore"):
        joint = np.log(priors) + log_likelihoods
    weights = np.exp(joint - joint.max())
    return np.asarray(weights / weights.sum())


def checked_priors(priors: Mapping[Any, float]) -> tuple[tuple[Any, ...], Array]:
    """The hypotheses and their priors, which must be probabilities that sum to 1."""
    if not isinstance(priors, Mapping) or not priors:
        raise ModelError(f"priors must map each hypothesis to its probability, found {priors!r}")
    try:
        values = np.array([float(p) for p in priors.values()])
    except (TypeError, ValueError):
        raise ModelError(f"priors must be numbers, found {list(priors.values())!r}") from None
    for h, p in zip(priors, values.tolist(), strict=True):
        if not (math.isfinite(p) and p >= 0):
            raise ModelError(f"the prior of {h!r} is {p}; expected a probability")
    total = float(values.sum())
    if abs(total - 1) > 1e-6:
        raise ModelError(f"the priors sum to {total:.9g}; expected 1")
    return tuple(priors), values if abs(total - 1) <= 1e-9 else values / total


def named(given: Mapping[Any, Any] | Iterable[Any], what: str) -> dict[Any, Any]:
    """Hypothesis to what it is: the mapping itself, or each thing standing for itself."""
    named = dict(given) if isinstance(given, Mapping) else {thing: thing for thing in given}
    if not named:
        raise ModelError(f"no {what} were given; at least one is needed")
    return named
