"""Sequences drawn from a dynamic network, all of them side by side, slice by slice, parents before children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array
from bbn.model.cpt import CPT, Conditional
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.previous import split_name

Slice = Mapping[str, Any]
"""Variable to its values, one per sequence: codes, or numbers."""


def sample(dyn: DynamicNetwork, length: int, n: int | None = None, seed: Any = None) -> Any:
    """See `DynamicNetwork.sample`."""
    import pandas as pd

    for what, given in (("length", length), ("n", 1 if n is None else n)):
        if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
            raise EvidenceError(f"{what} is {given!r}; expected a whole number, at least 1")
    count = 1 if n is None else int(n)
    require_memory(
        20 * length * count * len(dyn), f"{count:,} sequences of {length:,} steps", "draw fewer at a time"
    )
    generator = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {name: [] for name in dyn.names}
    past: list[Slice] = []
    for t in range(length):
        now: dict[str, Any] = {}
        for name, conditional in in_slice_order(dyn, t):
            now[name] = (
                past[0][name] if name in dyn.static and t else draw(conditional, now, past, count, generator)
            )
        past = [now, *past[: max(dyn.order - 1, 0)]]
        for name, values in now.items():
            columns[name].append(values)
    table: dict[str, Any] = {}
    if n is not None:
        table["sequence"] = np.repeat(np.arange(count), length)
    for v in dyn.variables:
        values = np.array(columns[v.name]).T.ravel()
        table[v.name] = pd.Categorical.from_codes(values, pd.Index(list(v.states))) if v.states else values
    return pd.DataFrame(table, index=pd.Index(np.tile(np.arange(length), count), name="step"))


def in_slice_order(dyn: DynamicNetwork, step: int) -> list[tuple[str, Conditional]]:
    """The conditionals of a slice, parents in it before children."""
    kind = min(step, dyn.n_first)
    key = f"order of slice {kind}"
    if key not in dyn.memo:
        given = {name: dyn.conditional(name, kind) for name in dyn.names}
        inside = {name: [p.name for p in c.parents if p.name in given] for name, c in given.items()}
        dyn.memo[key] = [(name, given[name]) for name in TopologicalSorter(inside).static_order()]
    found: list[tuple[str, Conditional]] = dyn.memo[key]
    return found


def draw(
    conditional: Conditional, now: Slice, past: Sequence[Slice], n: int, generator: np.random.Generator
) -> Any:
    """Values of a variable given those of its parents."""
    if isinstance(conditional, Gaussian):
        mean, variance = mean_and_variance(conditional, now, past, n)
        return mean + np.sqrt(variance) * generator.standard_normal(n)
    rows = table_rows(conditional, now, past, n)
    return (rows.cumsum(axis=1)[:, :-1] <= generator.random(n)[:, None]).sum(axis=1)


def table_rows(conditional: Conditional, now: Slice, past: Sequence[Slice], n: int) -> Array:
    """The distribution of a discrete variable for each setting of its parents, (n, states)."""
    assert isinstance(conditional, CPT)
    index = tuple(parent_values(p.name, now, past) for p in conditional.parents)
    return np.broadcast_to(conditional.table[index], (n, conditional.variable.card))


def mean_and_variance(gaussian: Gaussian, now: Slice, past: Sequence[Slice], n: int) -> tuple[Array, Array]:
    """Those of a continuous variable for each setting of its parents, (n,) each."""
    index = tuple(parent_values(p.name, now, past) for p in gaussian.discrete_parents)
    mean = np.broadcast_to(gaussian.means[index], (n,)).copy()
    weights = np.broadcast_to(gaussian.weights[index], (n, len(gaussian.continuous_parents)))
    for k, parent in enumerate(gaussian.continuous_parents):
        mean += weights[:, k] * parent_values(parent.name, now, past)
    return mean, np.broadcast_to(gaussian.variances[index], (n,))


def parent_values(name: str, now: Slice, past: Sequence[Slice]) -> Any:
    """The values of a parent, in this slice or an earlier one."""
    own, at = split_name(name)
    return now[own] if at is None else past[-at - 1][own]
