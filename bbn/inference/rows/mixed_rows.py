"""Rows of states and numbers: the answers to many at once.

For each row the engine of the discrete network gives the joint of the regime (the discrete variables that the numbers
depend on; see `components`) and the target given the row's states; the numbers multiply it, in logarithms. Numbers
below observed discrete variables pick their entry; a missing number of a variable without continuous neighbours counts
for nothing. Rows are grouped by what is observed of the regime and of the continuous variables that are linked by
arcs, so that each group has one set of components, and go through in blocks. Where the joint of the regime is too
large, rows go one by one: with the numbers as likelihoods where each depends on one variable, otherwise as queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array
from bbn.inference.exact.junction_tree import JunctionTree
from bbn.inference.gaussian.components import Component, components
from bbn.inference.gaussian.hybrid import Hybrid
from bbn.inference.gaussian.jointly_gaussian import NEAR
from bbn.inference.gaussian.observed_numbers import MARGIN, RANGE, set_numbers
from bbn.kernels.contracts.types import Ints
from bbn.model.evidence import Findings
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

JOINT_CELLS = 1 << 12
"""A joint of the regime and the target with more cells is not written out; such rows are asked one by one."""
BLOCK_CELLS = 1 << 21
"""Blocks are cut so that no array has many more than BLOCK_CELLS cells."""

Columns = Mapping[str, NDArray[Any]]


class MixedAnswers(NamedTuple):
    """The answers to many rows."""

    values: Array
    """(rows, cells): the posterior of a discrete target, or the mean of a continuous one; NaN where impossible."""
    log_evidence: Array
    """(rows,): ln p(row), −inf where it is impossible."""


class MixedRows:
    """Rows to answer, and how they fall into groups."""

    def __init__(
        self,
        hybrid: Hybrid,
        codes: Columns,
        numbers: Columns,
        n_rows: int,
        target: str | None,
        n_jobs: int | None,
        options: dict[str, Any],
    ) -> None:
        assert isinstance(hybrid.engine, JunctionTree)
        self.hybrid, self.tree, self.net = hybrid, hybrid.engine, hybrid.net
        self.n_rows, self.n_jobs, self.options = n_rows, n_jobs, options
        self.target = None if target is None else self.net.variable(target)
        self.codes = {n: column for n, column in codes.items() if n != target}
        self.fixed = {n: x for n, x in set_numbers(self.net).items() if n != target}
        self.given = {n: column for n, column in numbers.items() if n != target}
        self.numbers = {**self.given, **{n: np.full(n_rows, x) for n, x in self.fixed.items()}}
        below = {n: set(self.net.parents(n)) for n in self.net.continuous}
        self.parents = set().union(*below.values())
        self.linked = {n for n, parents in below.items() if n in self.parents or parents & below.keys()}
        """The continuous variables with continuous parents or children."""
        self.limit = options.get("memory_limit", self.tree.options["memory_limit"])

    def answer(self) -> MixedAnswers:
        """The answers, row by row in the order given."""
        target = self.target
        width = 0 if target is None else 1 if isinstance(target, Continuous) else target.card
        answers = MixedAnswers(np.empty((self.n_rows, width)), np.empty(self.n_rows))
        for rows in self._groups():
            parts = self._components(rows[0])
            regime = self._free(parts, rows[0])
            cells = math.prod(v.card for v in regime)
            small = cells <= JOINT_CELLS
            sizes = [p.settings * (len(p.names) + len(p.shifts) + 1) for p in parts]
            largest = max([cells if small else 1, *sizes])
            n_blocks = -(-len(rows) * largest // BLOCK_CELLS)
            for block in np.array_split(rows, max(1, min(n_blocks, len(rows)))):
                if small:
                    found = self._block(block, parts, regime)
                elif self._is_simple(parts, block[0]):
                    found = self._by_likelihoods(block, parts)
                else:
                    found = self._one_by_one(block)
                answers.values[block], answers.log_evidence[block] = found
        for name in self.fixed.keys() & self.given.keys():
            other = ~np.isnan(self.given[name]) & (self.given[name] != self.fixed[name])
            answers.log_evidence[other] = -np.inf
        answers.values[answers.log_evidence == -np.inf] = np.nan
        return answers

    def _groups(self) -> Iterator[Ints]:
        """The rows in parts in each of which the same regime and the same linked numbers are observed."""
        if self.n_rows == 0:
            return
        masks = [column == self.net.variable(n).card for n, column in self.codes.items() if n in self.parents]
        masks += [np.isnan(column) for n, column in self.numbers.items() if n in self.linked]
        masks = [mask for mask in masks if mask.any()]
        if not masks:
            yield np.arange(self.n_rows)
            return
        index = kernels.coding.merge_rows([mask.astype(np.uint8) for mask in masks])[1]
        order = np.argsort(index, kind="stable")
        ends = np.cumsum(np.bincount(index)).tolist()
        yield from (order[a:b] for a, b in pairwise([0, *ends]))

    def _components(self, row: int) -> list[Component]:
        """The components of a group, of which this is a row; a lone variable counts as observed if it is in any row."""
        observed = {
            n for n, column in self.numbers.items() if n not in self.linked or not np.isnan(column[row])
        }
        wanted = [self.target.name] if isinstance(self.target, Continuous) else []
        return components(self.net, observed, wanted, {}, self.limit)

    def _free(self, parts: list[Component], row: int) -> tuple[Variable, ...]:
        """The variables of the joint: the unobserved ones of all regimes in the network's order, then the target."""
        wanted = {v.name for part in parts for v in part.regime}
        free = [v for v in self.net.variables if v.name in wanted and not self._is_observed(v, row)]
        if self.target is not None and self.target.card and self.target not in free:
            free.append(self.target)
        return tuple(free)

    def _is_observed(self, variable: Variable, row: int) -> bool:
        column = self.codes.get(variable.name)
        return column is not None and column[row] != variable.card

    def _block(self, rows: Ints, parts: list[Component], regime: tuple[Variable, ...]) -> tuple[Array, Array]:
        """The answers to some rows of a group, by the joint of the regime."""
        names = [v.name for v in regime]
        codes = {n: column[rows] for n, column in self.codes.items() if n not in names}
        prior = self.tree.rows(codes, len(rows), names, n_jobs=self.n_jobs, **self.options)
        shape = (len(rows), *(v.card for v in regime))
        values = prior.values if regime else np.ones(len(rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(values).reshape(shape) + prior.log_evidence.reshape(-1, *[1] * len(regime))
        numbers = {n: column[rows] for n, column in self.numbers.items()}
        mean = np.zeros(shape)
        offset = np.zeros(len(rows))
        for part in parts:
            given = part.given(numbers, len(rows))
            if not given.log_density.min() > NEAR:
                given = part.refined(given, numbers)
                offset += given.offset
            if part.observed:
                density = given.log_density
                if len(part.names) == 1:
                    density = np.where(np.isnan(numbers[part.names[0]])[:, None], 0.0, density)
                logs = logs + self._aligned(density, part, rows, regime)
            if isinstance(self.target, Continuous) and self.target.name in part.names:
                mean = self._aligned(part.mean(self.target.name, given), part, rows, regime)
        flat = np.nan_to_num(logs.reshape(len(rows), -1), nan=-np.inf, neginf=-np.inf)
        highest = flat.max(axis=1)
        possible = highest > -np.inf
        weights = np.exp(flat - np.where(possible, highest, 0.0)[:, None])
        totals = weights.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_evidence = np.where(possible, highest + np.log(totals) + offset, -np.inf)
            weights = (weights / totals[:, None]).reshape(shape)
        if self.target is None:
            return np.empty((len(rows), 0)), log_evidence
        if isinstance(self.target, Continuous):
            return (weights * mean).reshape(len(rows), -1).sum(axis=1)[:, None], log_evidence
        others = tuple(1 + i for i, v in enumerate(regime) if v != self.target)
        return np.asarray(weights.sum(axis=others)), log_evidence

    def _aligned(self, values: Array, part: Component, rows: Ints, regime: tuple[Variable, ...]) -> Array:
        """(rows, settings) of a component as (rows, \\*regime), observed variables at their state."""
        index: list[Any] = [np.arange(len(rows))]
        kept = set()
        for v in part.regime:
            if v in regime:
                kept.add(v.name)
                index.append(slice(None))
            else:
                index.append(self.codes[v.name][rows])
        picked = values.reshape(len(rows), *part.shape)[tuple(index)]
        shape = (len(rows), *(v.card if v.name in kept else 1 for v in regime))
        return np.asarray(picked.reshape(shape))

    def _is_simple(self, parts: list[Component], row: int) -> bool:
        """Whether the numbers depend on one unobserved discrete variable at a time, and the target is not a number."""
        crowded = any(sum(not self._is_observed(v, row) for v in part.regime) > 1 for part in parts)
        return not crowded and not isinstance(self.target, Continuous)

    def _by_likelihoods(self, rows: Ints, parts: list[Component]) -> tuple[Array, Array]:
        """The answers to some rows of a group: numbers as likelihoods, worked out together, then row by row."""
        logs: dict[tuple[Variable, ...], Array] = {}
        numbers = {n: column[rows] for n, column in self.numbers.items()}
        offset = np.zeros(len(rows))
        for part in parts:
            given = part.given(numbers, len(rows))
            if not given.log_density.min() > NEAR:
                given = part.refined(given, numbers)
                offset += given.offset
            density = given.log_density
            if len(part.names) == 1:
                density = np.where(np.isnan(numbers[part.names[0]])[:, None], 0.0, density)
            free = tuple(v for v in part.regime if not self._is_observed(v, rows[0]))
            logs[free] = logs.get(free, 0.0) + self._aligned(density, part, rows, free)
        constant = logs.pop((), np.zeros(len(rows)))
        tops = {free: values.max(axis=1) for free, values in logs.items()}
        scale = constant + sum(tops.values(), offset)
        weights: dict[str, Array] = {}
        cut = np.zeros(len(rows), bool)
        with np.errstate(invalid="ignore"):
            for free, values in logs.items():
                apart = values - tops[free][:, None]
                weights[free[0].name] = np.exp(apart)
                cut |= ~(apart.min(axis=1) > -RANGE)
        targets = () if self.target is None else (self.target.name,)
        codes = {n: (column[rows], self.net.variable(n).card) for n, column in self.codes.items()}
        options = self.tree._with(self.options)
        values = np.empty((len(rows), self.target.card if self.target is not None else 0))
        log_rest = np.full(len(rows), -np.inf)
        for i in np.flatnonzero(np.isfinite(scale)).tolist():
            hard = {n: int(column[i]) for n, (column, card) in codes.items() if column[i] < card}
            findings = Findings(hard, {n: own[i] for n, own in weights.items()}, {})
            found, log_rest[i] = self.tree._joint(targets, findings, options)
            values[i] = found if targets else ()
        log_evidence = log_rest + scale
        unsure = np.flatnonzero(~(log_rest > MARGIN - RANGE) & cut)  # what was cut off could count
        if unsure.size:
            values[unsure], log_evidence[unsure] = self._one_by_one(rows[unsure])
        return values, log_evidence

    def _one_by_one(self, rows: Ints) -> tuple[Array, Array]:
        values, logs = [], np.empty(len(rows))
        for i, row in enumerate(rows.tolist()):
            evidence = self.evidence(row)
            found: Any = np.empty(0)
            try:
                if self.target is None:
                    logs[i] = self.hybrid.log_evidence(evidence, self.options)
                else:
                    answer: Any = self.hybrid.query(self.target.name, evidence, self.options)
                    logs[i] = answer.log_evidence
                    found = [answer.mean] if isinstance(self.target, Continuous) else answer.values
            except EvidenceError:  # impossible, or too far away
                logs[i] = -np.inf
                found = np.full(max(1, self.target.card) if self.target is not None else 0, np.nan)
            values.append(found)
        return np.array(values).reshape(len(rows), -1), logs

    def evidence(self, row: int) -> dict[str, Any]:
        """The findings of one row."""
        return row_evidence(self.net, self.codes, self.given, row)


def row_evidence(net: BayesianNetwork, codes: Columns, numbers: Columns, row: int) -> dict[str, Any]:
    """The findings of one row, by name."""
    found: dict[str, Any] = {}
    for name, column in codes.items():
        states = net.states(name)
        if column[row] < len(states):
            found[name] = states[column[row]]
    return found | {name: float(x[row]) for name, x in numbers.items() if not math.isnan(x[row])}
