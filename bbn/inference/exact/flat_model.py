"""Flat models: a model's factors as flat arrays, which plans are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import require_memory
from bbn.kernels.contracts.types import Floats, Ints
from bbn.model.cpt import CPT
from bbn.model.evidence import Model
from bbn.model.network import BayesianNetwork

SMALL_BYTES = 131_072
"""Tables and plans of no more bytes are not worth asking for the limit, unless one is given."""


class FlatModel(NamedTuple):
    """A model's factors as arrays; variables are numbered in the model's order.

    Factor f has the variables ``scope[scope_ptr[f]:scope_ptr[f + 1]]``, but for those of one state, and the table that
    starts at ``tables[table_ptr[f]]``, in C order. ``heads[f]`` is the variable it is the conditional table of, or -1.
    """

    names: tuple[str, ...]
    number: dict[str, int]
    cards: Ints
    scope_ptr: Ints
    scope: Ints
    table_ptr: Ints
    tables: Floats
    heads: Ints
    most_states: int = 1
    padded: frozenset[int] = frozenset()
    """Variables whose tables have one more slice; the tables are then a plan's own, not the engine's."""


def flatten(model: Model, limit: int | float | str | None = None, whole: bool = False) -> FlatModel:
    """The arrays of a model; BudgetError if its tables take more than the limit.

    A NoisyMax or Deterministic is a chain of small tables, with variables in between that the model does not have; with
    `whole` a NoisyMax is its full table.
    """
    directed = isinstance(model, BayesianNetwork)
    if directed:
        cpts: Any = model.conditionals  # type: ignore[attr-defined]
        if set(map(type, cpts)) != {CPT}:
            model = factored(model, certain=whole)  # type: ignore[arg-type]
            cpts = model.conditionals
            directed = all(isinstance(c, CPT) for c in cpts)
    variables = model.variables
    number = {v.name: i for i, v in enumerate(variables)}
    if directed:  # a conditional stands where its variable does
        members = [number[v.name] for cpt in cpts for v in cpt.parents]
        tables = [cpt.table for cpt in cpts]
    else:
        factors = model.factors()
        members = [number[v.name] for factor in factors for v in factor.variables]
        tables = [factor.values for factor in factors]
    size = 8 * sum([table.size for table in tables])
    if size > SMALL_BYTES or limit is not None:
        require_memory(size, "an engine's copy of the model's tables", "use smaller tables", limit)
    cards = [len(v.states) for v in variables]
    packed = kernels.layout.pack_factors(cards, members, tables, directed)
    return FlatModel(tuple(number), number, *packed, max(cards) if cards else 1)


def factored(model: BayesianNetwork, beyond: float = 0.0, certain: bool = False) -> BayesianNetwork:
    """The network with chains of small tables in place of full ones, see `chained`; itself if there are none."""
    if set(map(type, model.conditionals)) == {CPT}:
        return model
    from bbn.model.expansion import chained

    return chained(model, beyond, certain)


def cells_of(model: FlatModel, variables: Sequence[int]) -> int:
    """The cells of the joint of some variables."""
    return int(np.prod(model.cards[list(variables)], dtype=object)) if variables else 1
