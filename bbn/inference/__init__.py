"""Inference: one protocol (`Engine`), one registry, and the engine that each model keeps.

A method's engine is made once per model and kept with it, so that what it compiles is compiled once.
"auto" is exact: the junction tree, which refuses work past the memory budget rather than approximate.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from bbn.core.errors import EvidenceError, nearest
from bbn.inference.engine import Engine
from bbn.model.evidence import Model

if TYPE_CHECKING:
    from bbn.model.options import Method
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


__all__ = ["ENGINES", "Engine", "Model", "engine", "engine_class"]
