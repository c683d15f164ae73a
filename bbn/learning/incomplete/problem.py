"""The problem that EM and gradient ascent share: the likelihood of incomplete data, as a function of flat arrays.

A problem is data, a structure and a prior; `bbn.learning.incomplete.climbing` climbs it. All tables lie end to end in
one array, so that a step is a few operations on flat arrays whatever the network. The parameters of Gaussians, if there
are any, follow the tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import require_memory
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.data import DataSource
from bbn.data.reading import Reading
from bbn.inference.rows.expected_counts import INSTEAD, Expectation, Expected, by_name, flat_tables, tabled
from bbn.learning.gaussian.e_step import MixedExpectation
from bbn.learning.gaussian.estimates import read_gaussians
from bbn.learning.gaussian.m_step import GaussianFamilies
from bbn.learning.gaussian.seeding import MixtureSeeds
from bbn.learning.structure.structure import blank, observe, read_structure
from bbn.learning.tables.priors import (
    BackOff,
    Prior,
    checked_gaussian_prior,
    checked_prior,
    pseudocounts_of,
)
from bbn.model.cpt import CPT, Conditional
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State, Variable

BYTES_PER_ENTRY = 96
"""What a climb keeps for each entry of the tables, beside a pass over the data: a dozen numbers."""


class Point(NamedTuple):
    """Tables, and what a pass over the data says of them."""

    tables: Array
    """All tables, then the parameters of the Gaussians."""
    statistics: Array
    """∂ ln P(data) / ∂ entry of all tables, then the moments of the Gaussians."""
    log_likelihood: float
    objective: float
    """The log-likelihood plus Σ α ln θ, and the log prior of the Gaussians."""


def _pseudocounts(prior: Prior, families: Sequence[tuple[Variable, ...]], source: DataSource) -> list[Array]:
    """The pseudo-counts of each family; a prior that leans on counts gets those of the rows that have all of it."""
    if not isinstance(prior, BackOff):
        return [prior.pseudocounts(family) for family in families]
    there = {v.name for v in source.variables}
    names = [tuple(v.name for v in family if v.name in there) for family in families]
    whole = [own for own, family in zip(names, families, strict=True) if len(own) == len(family)]
    counted = dict(zip(whole, source.counts(whole), strict=True)) if whole else {}
    return [
        pseudocounts_of(prior, family, counted.get(own)) for own, family in zip(names, families, strict=True)
    ]


class Problem:
    """Data, structure and prior, ready to be climbed.

    Attributes
    ----------
    start
        A network of the structure: the one that was given, or one with uniform tables.
    given
        Whether `start` was given.
    alpha
        The prior's pseudo-counts, for all tables end to end.
    gaussians
        The continuous families, or None.
    """

    def __init__(
        self,
        structure: Any,
        data: Any,
        hidden: Mapping[str, Sequence[State]] | Iterable[str] | None,
        prior: Prior | None,
        reading: Reading | None,
        fixed: Iterable[str],
        tied: Iterable[Iterable[str]],
        n_jobs: int | None,
        gaussian_options: Mapping[str, Any] | None = None,
    ) -> None:
        shape = read_structure(structure)
        variables, source = observe(shape, data, reading or Reading(), hidden)
        numeric = tuple(name for name in shape.names if isinstance(variables[name], Continuous))
        prior = checked_prior(prior, tuple(name for name in shape.names if name not in numeric))
        parents = {name: tuple(variables[p] for p in shape.parents[name]) for name in shape.names}
        fixed = [fixed] if isinstance(fixed, str) else list(fixed)
        ties = [list(group) for group in tied]
        self.source: DataSource = source
        self.given = shape.network is not None
        self.start = shape.network or BayesianNetwork([blank(variables[n], parents[n]) for n in shape.names])
        for name in fixed:
            self._check_name(name, "fixed")
        self.gaussians = (
            self._gaussian_families(parents, variables, fixed, ties, **(gaussian_options or {}))
            if numeric
            else None
        )
        self.names = tabled(self.start)
        entries = sum(self.start[n].table.size for n in self.names)
        kept = BYTES_PER_ENTRY * entries
        require_memory(kept, "the tables, pseudo-counts and steps of a climb", INSTEAD)
        self.alpha = np.zeros(entries)
        if prior is not None and self.names:
            families = [(*parents[n], variables[n]) for n in self.names]
            self.alpha = np.concatenate([alpha.ravel() for alpha in _pseudocounts(prior, families, source)])
        self.expectation = (
            Expectation(self.start, n_jobs)
            if self.gaussians is None
            else MixedExpectation(self.start, self.gaussians, n_jobs)
        )
        self.expectation.beside = kept
        self._rows()
        self.free = self._free_entries(fixed)
        if not self.free.all():
            self.expectation.held = ~self.free
        self.groups = self._tied_entries(ties)
        self.n_passes = 0
        self._seeds: MixtureSeeds | None = None

    def _gaussian_families(
        self,
        parents: Mapping[str, tuple[Variable, ...]],
        variables: Mapping[str, Variable],
        fixed: list[str],
        tied: list[list[str]],
        prior: Any = None,
        tied_variance: Any = False,
        fixed_variance: Any = None,
    ) -> GaussianFamilies:
        """The continuous families, parents before children."""
        names = self.start.continuous
        prior = checked_gaussian_prior(prior, names)
        given = {name: self.start[name] for name in names} if self.given else {}
        own = {name: variables[name] for name in names}
        families = read_gaussians(parents, own, given, tied_variance, fixed_variance)
        groups = [group for group in tied if any(name in own for name in group)]
        for group in groups:
            shapes = {f.shape for f in families if f.name in group}
            if len(shapes) > 1 or any(name not in own for name in group):
                raise DataError(
                    f"tied= wants Gaussians with the same settings of their parents, found {group}"
                )
        return GaussianFamilies(families, self.source, prior, [n for n in fixed if n in own], groups)

    def _rows(self) -> None:
        """Where each row of each table begins, and the row of each entry."""
        cards = np.array([self.start[n].variable.card for n in self.names], dtype=np.intp)
        rows = np.array([self.start[n].table.size for n in self.names], dtype=np.intp) // cards
        lengths = np.repeat(cards, rows)
        self.row_starts: NDArray[np.intp] = np.cumsum(lengths) - lengths
        self.row_of: NDArray[np.intp] = np.repeat(np.arange(len(lengths)), lengths)
        self.lengths = lengths

    def _slice(self, name: str) -> slice:
        at = self.names.index(name)
        return slice(int(self.expectation.table_ptr[at]), int(self.expectation.table_ptr[at + 1]))

    def _free_entries(self, fixed: Sequence[str]) -> NDArray[np.bool_]:
        free = np.ones(len(self.alpha), dtype=bool)
        if fixed and not self.given:
            raise DataError(
                "fixed= keeps tables of a network as they are; the structure is a graph, without tables"
            )
        for name in fixed:
            if name in self.names:
                free[self._slice(name)] = False
        return free

    def _tied_entries(self, tied: Iterable[Iterable[str]]) -> list[list[slice]]:
        groups = []
        for group in tied:
            names = list(group)
            for name in names:
                self._check_name(name, "tied")
            if any(name not in self.names for name in names):
                continue  # Gaussians
            shapes = {name: self.start[name].table.shape for name in names}
            if len(set(shapes.values())) > 1:
                raise DataError(f"tied= wants tables of one shape, found {shapes}")
            groups.append([self._slice(name) for name in names])
        return groups

    def _check_name(self, name: str, what: str) -> None:
        if name not in self.start:
            raise DataError(
                f"{what}= names {name!r}, which is not a variable{nearest(name, self.start.names)}"
            )

    def tie(self, entries: Array) -> Array:
        """Entries of tied tables added up, and the sum given to each of them."""
        for group in self.groups:
            total = np.sum([entries[part] for part in group], axis=0)
            for part in group:
                entries[part] = total
        return entries

    def row_sums(self, entries: Array) -> Array:
        """The sum of each row, one per entry of it."""
        if not len(entries):
            return entries
        return np.asarray(np.add.reduceat(entries, self.row_starts)[self.row_of])

    def normalise(self, entries: Array, old: Array) -> Array:
        """Each row divided by its sum; rows without any mass uniform, as in `fit`, and fixed tables as they were."""
        sums = self.row_sums(entries)
        seen = sums > 0
        rows = np.where(seen, entries / np.where(seen, sums, 1.0), 1.0 / self.lengths[self.row_of])
        return np.where(self.free, rows, old)

    def evaluate(self, tables: Array) -> Point:
        """A pass over the data."""
        expected: Expected = self.expectation(tables, self.source)
        self.n_passes += 1
        counted = np.flatnonzero(self.alpha > 0)
        log_likelihood = expected.log_likelihood
        with np.errstate(divide="ignore"):
            log_prior = float(np.dot(self.alpha[counted], np.log(tables[counted]))) if len(counted) else 0.0
        if self.gaussians is not None:
            log_likelihood += self.gaussians.constant
            log_prior += self.gaussians.log_prior(tables[len(self.alpha) :])
        return Point(tables, expected.statistics, log_likelihood, log_likelihood + log_prior)

    def split(self, flat: Array) -> tuple[Array, Array]:
        """What belongs to the tables, and what to the Gaussians."""
        return flat[: len(self.alpha)], flat[len(self.alpha) :]

    def joined(self, tables: Array, gaussians: Array) -> Array:
        """Tables and the parameters of Gaussians in one array."""
        return tables if self.gaussians is None else np.concatenate([tables, gaussians])

    def start_tables(self) -> Array:
        """The tables of the start, tied ones at their mean."""
        tables = flat_tables(self.start)
        mean = self.normalise(self.tie(tables.copy()), tables)
        for part in (part for group in self.groups for part in group):
            tables[part] = mean[part]
        return (
            tables
            if self.gaussians is None
            else np.concatenate([tables, self.gaussians.read(self._gaussians_given())])
        )

    def _gaussians_given(self) -> dict[str, Any]:
        return {name: self.start[name] for name in self.start.continuous}

    def random_tables(self, generator: np.random.Generator) -> Array:
        """Each row drawn uniformly from the simplex, tied tables alike; fixed tables as given."""
        drawn = generator.standard_exponential(len(self.alpha))
        numbers = np.empty(0)
        if self.gaussians is not None:
            self._seeds = self._seeds or MixtureSeeds(self.start, self.gaussians, self.source)
            numbers, shares = self._seeds.draw(generator)
            for name, own in shares.items():
                drawn[self._slice(name)] = own
            if self.given:
                numbers = self.gaussians.keep_fixed(numbers, self.gaussians.read(self._gaussians_given()))
        for group in self.groups:
            for part in group[1:]:
                drawn[part] = drawn[group[0]]
        return self.joined(self.normalise(drawn, flat_tables(self.start)), numbers)

    def network(self, tables: Array) -> BayesianNetwork:
        """The network with these tables."""
        made: list[Conditional] = []
        for name, table in by_name(self.start, tables).items():
            cpt = self.start[name]
            made.append(CPT.trusted(cpt.variable, cpt.parents, table.copy()))
        if self.gaussians is not None:
            made += self.gaussians.conditionals(self.split(tables)[1], self._gaussians_given())
        return BayesianNetwork(made, self.start.name, self.start.metadata)

    def collapsed(self, tables: Array) -> bool:
        """Whether a variance is held at its floor."""
        return self.gaussians is not None and any(
            low.any() for low in self.gaussians.collapsed(self.split(tables)[1])
        )

    def fingerprint(self, method: str, seed: Any) -> str:
        """A digest of what a checkpoint belongs to."""
        families = [(n, self.start[n].variable.states, self.start.parents(n)) for n in self.names]
        start = flat_tables(self.start).tobytes() if self.given else b""
        text = repr((method, families, repr(seed), start, self.free.tobytes(), self.alpha.tobytes()))
        text += repr([[(part.start, part.stop) for part in group] for group in self.groups])
        if self.gaussians is not None:
            text += self.gaussians.described()
            given = self._gaussians_given().values() if self.given else ()
            text += repr([[part.tolist() for part in (g.means, g.variances, g.weights)] for g in given])
        return hashlib.sha256(text.encode()).hexdigest()
