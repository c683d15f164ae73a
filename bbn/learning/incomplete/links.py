"""EM and gradient ascent on networks with NoisyMax conditionals: their effects are hidden variables like any other.

Deterministic conditionals are chains of tables that stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bbn.learning.incomplete.fit_result import FitResult
from bbn.model.expansion import factored_parts, linked, unlinked
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State

Hidden = Mapping[str, Sequence[State]] | Iterable[str] | None


def with_links(
    structure: Any, hidden: Hidden, fixed: Iterable[str]
) -> tuple[Any, Hidden, Iterable[str], Callable[[FitResult], FitResult]]:
    """What to learn in place of a structure with NoisyMax conditionals, and how to read the result back.

    The structure itself, and the result as it is, where there are none.
    """
    if not isinstance(structure, BayesianNetwork) or not factored_parts(structure):
        return structure, hidden, fixed, lambda result: result
    net, effects, known = linked(structure)
    fixed = [fixed] if isinstance(fixed, str) else list(fixed)
    kept = [effect for name in fixed for effect in effects.get(name, ())]
    unseen = [name for name in net.names if name not in structure]
    if isinstance(hidden, Mapping):
        hidden = {**hidden, **{name: net.states(name) for name in unseen}}
    else:
        hidden = [*([hidden] if isinstance(hidden, str) else hidden or ()), *unseen]
    locked = dict.fromkeys([*fixed, *kept, *known])

    def read(result: FitResult) -> FitResult:
        told = (part.tolist() for part in (result.log_likelihoods, result.objectives, result.restarts))
        log_likelihoods, objectives, restarts = told
        learned = unlinked(result.network, structure, effects)
        return FitResult(learned, log_likelihoods, objectives, result.reason, restarts)

    return net, hidden, locked, read
