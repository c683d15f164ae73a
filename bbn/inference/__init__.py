"""Inference: one protocol (`Engine`), one registry, and the functions that `net.query` and its kin call.

A method's engine is made once per model and kept with it, so that what it compiles is compiled once.
"auto" is exact: the junction tree, which refuses work past the memory budget rather than approximate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from bbn.core.errors import EvidenceError, nearest
from bbn.inference.engine import Engine
from bbn.model.evidence import Evidence, Model
from bbn.results.posterior import Assignment, Posterior, Posteriors

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork
    from bbn.model.options import EngineOptions, Method, QueryOptions
    from bbn.model.questions import Askable

ENGINES: dict[str, str] = {
    "junction-tree": "bbn.inference.exact.junction_tree:JunctionTree",
    "elimination": "bbn.inference.exact.elimination:VariableElimination",
    "enumeration": "bbn.inference.exact.enumeration:Enumeration",
    "likelihood-weighting": "bbn.inference.sampling.likelihood_weighting:LikelihoodWeighting",
    "rejection": "bbn.inference.sampling.rejection:RejectionSampling",
    "importance": "bbn.inference.sampling.importance:ImportanceSampling",
    "gibbs": "bbn.inference.sampling.gibbs:GibbsSampling",
    "loopy": "bbn.inference.sampling.loopy:LoopyBeliefPropagation",
}
"""Method to where its engine is; adding one is one file and one line."""

AUTO = "junction-tree"


def engine_class(method: str) -> type[Engine]:
    """The engine of a method; EvidenceError with the legal names if there is none."""
    where = ENGINES.get(AUTO if method == "auto" else method)
    if where is None:
        raise EvidenceError(f"no inference method {method!r}{nearest(method, ['auto', *ENGINES])}")
    return _imported(where)


@cache
def _imported(where: str) -> type[Engine]:
    module, name = where.split(":")
    engine: type[Engine] = getattr(import_module(module), name)
    return engine


def engine(model: Askable, method: Method = "auto") -> Engine:
    """The model's own engine for a method, made when first asked for."""
    key = "engine " + method
    made = model.memo.get(key)
    if made is None:
        made = model.memo.setdefault(key, engine_class(method)(model))
    return made  # type: ignore[no-any-return]


def query(
    model: Askable,
    targets: str | Sequence[str],
    evidence: Evidence | None = None,
    method: Method = "auto",
    interval: float | None = None,
    **options: Unpack[QueryOptions],
) -> Posterior | Any:
    """The posterior of the targets given evidence, with a credible interval if `interval` is given."""
    if interval is not None:
        from bbn.inference.credible import credible_query

        return credible_query(model, targets, evidence, method, interval=interval, **options)
    # n_draws= without interval= is a TypeError there
    return engine(model, method).query(targets, evidence, **options)  # type: ignore[misc]


def posteriors(
    model: Askable,
    evidence: Evidence | None = None,
    method: Method = "auto",
    **options: Unpack[EngineOptions],
) -> Posteriors:
    """The posterior of every unobserved variable."""
    return engine(model, method).posteriors(evidence, **options)


def mpe(
    model: Askable,
    evidence: Evidence | None = None,
    k: int | None = None,
    method: Method = "auto",
    **options: Unpack[EngineOptions],
) -> Assignment | list[Assignment]:
    """The most probable explanation, or the list of the k best."""
    return engine(model, method).mpe(evidence, k, **options)


def marginal_map(
    model: Askable,
    targets: str | Sequence[str],
    evidence: Evidence | None = None,
    method: Method = "auto",
    **options: Unpack[EngineOptions],
) -> Assignment:
    """The most probable joint state of the targets, the others summed out."""
    return engine(model, method).map(targets, evidence, **options)


def log_evidence(
    model: Askable,
    evidence: Evidence | None = None,
    method: Method = "auto",
    **options: Unpack[EngineOptions],
) -> float:
    """ln P(evidence), or of a factor graph ln Z(evidence); −inf if it is impossible."""
    return engine(model, method).log_evidence(evidence, **options)


def probability(model: BayesianNetwork, assignment: Evidence) -> float:
    """P(assignment), everything it leaves out summed out."""
    return math.exp(log_evidence(model, assignment))


__all__ = [
    "ENGINES",
    "Engine",
    "Model",
    "engine",
    "engine_class",
    "log_evidence",
    "marginal_map",
    "mpe",
    "posteriors",
    "probability",
    "query",
]
