"""The words for rows that are made again, of cliques in bands: a run that collects stores none of their cells."""

from __future__ import annotations

import math
from collections.abc import Container

import numpy as np

from bbn.inference.exact.clique_supports import Cliques, Step
from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.tape import fused
from bbn.kernels.contracts.types import Ints


def remade_words(tree: Cliques, cut: Container[int], at: int) -> tuple[int, Ints]:
    """Where the rows end that are made from `at` on, and how they are made; see `bbn.kernels.contracts.remade`.

    The rows of roots are made once in a run, so that each has a place of its own; the others share one.
    """
    once = {c: steps for c, _, steps in tree.sweeps(tree.layout.once)}
    made: list[tuple[int, int, list[Step]]] = []
    for c, (sweep, *_) in tree.run.items():
        if c in cut:
            # what was filled once is in BASE
            still = [
                step._replace(buffer=t.BASE if step.buffer == t.WORK else step.buffer) for step in once.get(c, [])
            ]
            cells = math.prod(tree.dims[c][tree.separator[c] :])
            made.append((c, cells, [step for step in (*still, *sweep.steps) if step.kind != t.ADD]))
    shared = at
    at += max((cells for c, cells, _ in made if tree.parent[c] >= 0), default=0)
    words: list[int] = []
    for c, cells, factors in made:
        own = [word for step in factors for word in _factor(tree, c, step)]
        words += [c, 4 + len(own), shared if tree.parent[c] >= 0 else at, len(factors), *own]
        at += cells if tree.parent[c] < 0 else 0
    return at, np.array(words, np.int64)


def _factor(tree: Cliques, c: int, step: Step) -> list[int]:
    k = tree.separator[c]
    dims, strides = fused(tree.dims[c][k:], step.strides[k:])
    words = [step.buffer, step.offset, len(step.moves) // 2, len(dims)]
    words += [*step.moves, *step.strides[:k], *dims, *strides]
    return [step.kind, len(words) + 2, *words]
