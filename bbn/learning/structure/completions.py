"""Rows with holes, completed in all ways: what structural EM counts.

A row whose states are missing becomes one row for each way to fill them, weighted by its probability given what was
observed. Numbers that are missing are then Gaussian with a mean and a covariance C, given the states and the other
numbers; m of them become 2m points, the mean plus and minus √m times each column of a root of C. These have exactly
that mean and that covariance (Uhlmann 1995), and scores of numbers depend on nothing else, so expected counts and
moments are those of plain rows with weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import memory_limit, require_memory
from bbn.core.frozen import Array
from bbn.data import Block, CodedTable
from bbn.inference.gaussian.square_root import rotated, solved
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

Codes = dict[str, NDArray[Any]]


def complete(net: BayesianNetwork, source: CodedTable, variables: Sequence[Variable]) -> CodedTable:
    """Every row in all its completions, each with the row's weight times P(completion | what was observed)."""
    block = source.merged()
    discrete = [v for v in variables if not isinstance(v, Continuous)]
    codes = {
        v.name: block.codes.get(v.name, np.full(block.n_rows, v.card, dtype=code_type(v.card)))
        for v in discrete
    }
    holes = np.array([codes[v.name] == v.card for v in discrete]).reshape(len(discrete), block.n_rows).T
    _require_room(discrete, holes, block)
    numbers = _NumberCompletions(net, block) if block.numbers else None
    patterns, which = np.unique(holes, axis=0, return_inverse=True)
    parts: list[tuple[Codes, Array, Array]] = []
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.reshape(-1) == k)
        open_variables = [v for v, hole in zip(discrete, pattern, strict=True) if hole]
        shape = [v.card for v in open_variables]
        count = math.prod(shape)
        settings = np.indices(shape).reshape(len(shape), count)
        part = {name: np.repeat(column[rows], count) for name, column in codes.items()}
        for v, states in zip(open_variables, settings, strict=True):
            part[v.name] = np.tile(states.astype(code_type(v.card)), len(rows))
        logs = log_joint(net, part, len(rows) * count)
        filled = list(numbers.given(part, np.repeat(rows, count))) if numbers is not None else []
        for group in filled:
            logs[group.rows] += group.logs
        logs = logs.reshape(len(rows), count)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        share *= (block.weights[rows] / share.sum(axis=1))[:, None]
        weights = share.reshape(-1)
        if numbers is None:
            keep = np.flatnonzero(weights > 0)
            parts.append((_rows(part, keep), weights[keep], np.empty((len(keep), 0))))
        for group in filled:
            keep = np.flatnonzero(weights[group.rows] > 0)
            points = group.points(keep)
            own = np.repeat(group.rows[keep], points.shape[1])
            parts.append(
                (_rows(part, own), weights[own] / points.shape[1], points.reshape(-1, points.shape[2]))
            )
    return CodedTable(
        tuple(discrete),
        {v.name: np.concatenate([part[v.name] for part, _, _ in parts]) for v in discrete},
        sum(len(weights) for _, weights, _ in parts),
        np.concatenate([weights for _, weights, _ in parts]),
        numbers={
            name: np.concatenate([points[:, i] for _, _, points in parts])
            for i, name in enumerate(block.numbers)
        },
    )


def _rows(part: Codes, rows: NDArray[np.intp]) -> Codes:
    return {name: column[rows] for name, column in part.items()}


def _require_room(discrete: Sequence[Variable], holes: NDArray[np.bool_], block: Block) -> None:
    """Refuse completions that memory does not hold, before any is made."""
    cards = np.array([float(v.card) for v in discrete])
    completions = np.where(holes, cards, 1.0).prod(axis=1)
    missing = holes.sum(axis=1)
    if block.numbers:
        open_numbers = np.sum([np.isnan(column) for column in block.numbers.values()], axis=0)
        completions = completions * np.maximum(2 * open_numbers, 1)
        missing = missing + open_numbers
    require_memory(
        int(completions.sum()) * (len(discrete) * 2 + len(block.numbers) * 24 + 32),
        f"all completions of {len(holes)} distinct rows with up to {int(missing.max(initial=0))} missing values",
        "leave out columns or rows with many missing values, or learn the tables of a known structure by bbn.fit_em",
        memory_limit(),
    )


def log_joint(net: BayesianNetwork, codes: Mapping[str, NDArray[Any]], n_rows: int) -> Array:
    """ln P of the states of complete rows, by the chain rule."""
    total = np.zeros(n_rows)
    with np.errstate(divide="ignore"):
        for name in codes:
            cpt = net[name]
            total += np.log(cpt.table)[tuple(codes[v.name] for v in (*cpt.parents, cpt.variable))]
    return total


class _Filled(NamedTuple):
    """Rows with the same numbers missing and the same states of what these depend on."""

    rows: NDArray[np.intp]
    logs: Array
    """The log density of the numbers that are there."""
    means: Array
    """(rows, q) The numbers, with their expectations where they are missing."""
    root: Array
    """(q, m) A root of the covariance of those that are missing."""

    def points(self, keep: NDArray[np.intp]) -> Array:
        """(rows, points, q) Numbers with the same first and second moments as what is missing."""
        m = self.root.shape[1]
        if not m:
            return self.means[keep][:, None, :]
        steps = math.sqrt(m) * self.root.T
        return np.asarray(self.means[keep][:, None, :] + np.concatenate([steps, -steps]))


class _NumberCompletions:
    """The numbers of a block under a network: jointly Gaussian in each setting of their discrete parents."""

    def __init__(self, net: BayesianNetwork, block: Block) -> None:
        import networkx as nx

        self.names = list(block.numbers)
        self.values = np.column_stack(list(block.numbers.values()))
        place = {name: i for i, name in enumerate(self.names)}
        order = [name for name in nx.topological_sort(net.graph) if name in place]
        self.gaussians: list[tuple[int, Gaussian, list[int]]] = []
        for name in order:
            own: Any = net[name]
            parents = [place[v.name] for v in own.parents if isinstance(v, Continuous)]
            self.gaussians.append((place[name], own, parents))
        self.discrete = {
            v.name: v.card
            for _, own, _ in self.gaussians
            for v in own.parents
            if not isinstance(v, Continuous)
        }

    def given(self, codes: Codes, rows: NDArray[np.intp]) -> Iterator[_Filled]:
        """The numbers of these rows of the block, whose states are `codes`, group by group."""
        values = self.values[rows]
        holes = np.isnan(values)
        keys = np.column_stack([*(codes[name] for name in self.discrete), holes])
        kinds, which = np.unique(keys, axis=0, return_inverse=True)
        for k, kind in enumerate(kinds.tolist()):
            own = np.flatnonzero(which.reshape(-1) == k)
            mean, covariance = self._joint(dict(zip(self.discrete, kind, strict=False)))
            yield _condition(own, values[own], holes[own[0]], mean, covariance)

    def _joint(self, states: Mapping[str, int]) -> tuple[Array, Array]:
        """Mean of all numbers in a setting and the root of their covariance, parents before children."""
        q = len(self.names)
        mean, root = np.zeros(q), np.zeros((q, q))
        for i, own, parents in self.gaussians:
            setting = tuple(states[v.name] for v in own.parents if v.name in states)
            w = own.weights[setting]
            mean[i] = own.means[setting] + w @ mean[parents]
            root[i] = w @ root[parents]
            root[i, i] = np.sqrt(own.variances[setting])
        return mean, root


def _condition(
    rows: NDArray[np.intp], values: Array, missing: NDArray[np.bool_], mean: Array, root: Array
) -> _Filled:
    """What is missing of Gaussian rows given what is there."""
    seen, gone = np.flatnonzero(~missing), np.flatnonzero(missing)
    turn, triangle = rotated(root[seen])
    z = solved(triangle, values[:, seen] - mean[seen])
    size = np.log(triangle.diagonal()).sum() + 0.5 * len(seen) * math.log(2 * math.pi)
    levers = root[gone] @ turn
    means = values.copy()
    means[:, gone] = mean[gone] + z @ levers[:, : len(seen)].T
    left = np.zeros((len(mean), len(mean) - len(seen)))
    left[gone] = levers[:, len(seen) :]
    return _Filled(rows, -0.5 * (z**2).sum(axis=1) - size, means, left)


def code_type(card: int) -> type[np.unsignedinteger[Any]]:
    """The integers that codes of a variable and of a missing value are kept in."""
    return np.uint8 if card <= 255 else np.uint16
