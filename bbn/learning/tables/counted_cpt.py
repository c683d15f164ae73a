"""Counts to a table, and the CPT that keeps the counts it came from."""

from __future__ import annotations

from typing import Any

import numpy as np

from bbn.core.frozen import Array, read_only
from bbn.model.cpt import CPT
from bbn.model.variable import Variable


def normalised(counts: Any) -> tuple[Array, int]:
    """Each row of counts divided by its sum; rows without counts uniform, and how many they are."""
    sums = np.asarray(counts.sum(axis=-1, keepdims=True), dtype=np.float64)
    if sums.all():
        return counts / sums, 0
    empty = sums == 0
    table = np.where(empty, 1.0 / counts.shape[-1], counts / np.where(empty, 1.0, sums))
    return table, int(empty.sum())


class CountedCPT(CPT, like=CPT):
    """A CPT that remembers what it was learned from.

    Attributes
    ----------
    counts
        Array like the table: the parameters of each row's Dirichlet posterior, counts plus pseudo-counts (plus one
        each where no prior was given, the posterior under a uniform prior).
    """

    __slots__ = ("counts",)

    counts: Array

    @classmethod
    def from_counts(
        cls, variable: Variable, parents: tuple[Variable, ...], table: Array, counts: Array
    ) -> CountedCPT:
        """A counted CPT from parts known to be right."""
        cpt = cls.__new__(cls)
        cpt._set(
            variable=variable, parents=parents, table=read_only(table), _hash=None, counts=read_only(counts)
        )
        return cpt

    def draw(self, generator: np.random.Generator) -> CPT:
        """A table drawn from the posterior."""
        gammas = np.maximum(generator.standard_gamma(self.counts), np.finfo(float).tiny)
        return CPT.trusted(self.variable, self.parents, gammas / gammas.sum(axis=-1, keepdims=True))
