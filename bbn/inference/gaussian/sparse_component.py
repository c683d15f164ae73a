"""A large component: one unobserved variable eliminated after the other, by QR of the few equations that hold it.

Variable i says (x_i − Σ_p w_ip x_p − c_i) / σ_i = ε_i, where c_i holds its mean and its observed parents and ε_i is
standard normal. Together that is A x − b = ε for the unobserved x: a sparse problem of least squares. Eliminating x_v
turns the rows that hold it into R_v (one row with x_v, an upper triangle without it) by an orthogonal Q_v, which leaves
ε standard normal (George and Heath 1980; the same in a chain is the square-root information filter of Bierman 1977).
Backwards, x_v = (r_v − R_v,rest x_rest + ε_v) / R_vv gives means, draws and, with square roots of the cliques'
covariances, variances; what is left of b has the density of the observed numbers. Rows are sorted by size first, since
Householder's method is then stable row by row (Cox and Higham 1998). The cost is that of the elimination's cliques: in
proportion to its length for a chain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import require_memory
from bbn.core.frozen import Array
from bbn.inference.gaussian.jointly_gaussian import LOG_2PI, OTHERWISE, Component, Given
from bbn.kernels.contracts.types import MIN_FILL, Ints
from bbn.model.gaussian import Gaussian
from bbn.model.graphs import flat_scopes

Clique = tuple[int, ...]
"""A variable, when its turn comes, with those that it is still linked to, in the order of their turns."""

STACK = 32
"""Rows are turned into a triangle as soon as there are this many, beside as many as there are columns."""


class EquationRows(NamedTuple):
    """Equations over some unobserved variables."""

    scope: Clique
    left: Array
    """(settings, rows, scope)."""
    place: int
    """Where their right-hand sides are: a number of a step's result, or, counted from −1 down, of a variable's own."""


class Rotation(NamedTuple):
    """Rows turned by an orthogonal matrix."""

    places: list[int]
    """Where the right-hand sides come from, as in `EquationRows`."""
    order: Ints
    """(settings, rows): the rows sorted by size."""
    turn: Array
    """(settings, rows, rows): Qᵀ."""
    pivots: int
    """How many of the first rows, 0 or 1, are the variable's own;"""
    kept: int
    """those up to here go on, and the rest have no variable left."""


class SparseComponent(Component):
    """A component by elimination.

    Parameters
    ----------
    cliques
        As `eliminated` gives them.
    """

    def __init__(
        self,
        gaussians: list[Gaussian],
        observed: Collection[str],
        order: Mapping[str, int],
        fixed: Mapping[str, int],
        cliques: Sequence[Clique],
        memory_limit: int | str | None = None,
    ) -> None:
        super().__init__(gaussians, observed, order, fixed)
        self.cliques = cliques
        self._seen = set(self.observed)
        place = {name: i for i, name in enumerate(self.names)}
        turn = {clique[0]: k for k, clique in enumerate(cliques)}
        scopes = []
        for g in gaussians:
            hidden = {place[v.name] for v in (g.variable, *g.continuous_parents) if v.name not in observed}
            scopes.append(tuple(sorted(hidden, key=turn.__getitem__)))
        self._cells = self.settings * (2 * len(gaussians) + _cells(cliques, scopes))
        require_memory(8 * self._cells, self.subject, OTHERWISE, memory_limit)
        self._constants = np.empty((self.settings, len(gaussians)))
        self._scales = np.empty((self.settings, len(gaussians)))
        self._known: list[list[tuple[str, Array]]] = []
        """The observed parents of each variable, with their weights."""
        self.steps: list[Rotation] = []
        self.upper: dict[int, Array] = {}
        """Variable to its row of R, (settings, clique)."""
        held: dict[int, list[EquationRows]] = {clique[0]: [] for clique in cliques}
        for i, (g, scope) in enumerate(zip(gaussians, scopes, strict=True)):
            self._constants[:, i] = self._spread(g, g.means, fixed)
            self._scales[:, i] = np.sqrt(self._spread(g, g.variances, fixed))
            weights = {
                p.name: self._spread(g, g.weights[..., k], fixed) for k, p in enumerate(g.continuous_parents)
            }
            self._known.append([(name, weight) for name, weight in weights.items() if name in observed])
            terms = {place[name]: -weight for name, weight in weights.items() if name not in observed}
            terms[i] = np.ones(self.settings)
            if scope:
                left = np.stack([terms[j] for j in scope], axis=-1) / self._scales[:, i, None]
                held[scope[0]].append(EquationRows(scope, left[:, None, :], -1 - i))
        self._loose = [i for i, scope in enumerate(scopes) if not scope]
        for clique in cliques:
            self._eliminate(clique, held)

    def _eliminate(self, clique: Clique, held: dict[int, list[EquationRows]]) -> None:
        """Turn the rows that hold the first variable of a clique into its row of R, and rows without it."""
        column = {v: k for k, v in enumerate(clique)}
        places: list[int] = []
        stack = np.empty((self.settings, 0, len(clique)))
        rows = held.pop(clique[0])
        for n, one in enumerate(rows):
            left = np.zeros((self.settings, one.left.shape[1], len(clique)))
            left[:, :, [column[v] for v in one.scope]] = one.left
            stack, places = np.concatenate([stack, left], axis=1), [*places, one.place]
            if n + 1 == len(rows):
                break
            if stack.shape[1] >= STACK + len(clique):
                stack, places = self._turned(stack, places, 0), [len(self.steps) - 1]
        triangle = self._turned(stack, places, 1)
        self.upper[clique[0]] = triangle[:, 0]
        if triangle.shape[1] > 1:
            held[clique[1]].append(EquationRows(clique[1:], triangle[:, 1:, 1:], len(self.steps) - 1))

    def _turned(self, stack: Array, places: list[int], pivots: int) -> Array:
        """Rows in their upper triangle; the step is kept to turn the right-hand sides with."""
        order = np.argsort(-np.abs(stack).max(axis=-1), axis=-1, kind="stable")
        q, r = np.linalg.qr(np.take_along_axis(stack, order[..., None], axis=1), mode="complete")
        kept = min(stack.shape[1:])
        self.steps.append(Rotation(places, order, q.transpose(0, 2, 1), pivots, kept))
        return np.asarray(r[:, :kept])

    @property
    def cells(self) -> int:
        """How many numbers it holds."""
        return self._cells

    @cached_property
    def _log_scale(self) -> Array:
        """(settings,): ln of the constants of the density."""
        own = np.log(self._scales).sum(axis=1) + 0.5 * len(self.observed) * LOG_2PI
        pivots = np.stack([row[:, 0] for row in self.upper.values()], axis=-1)
        return np.asarray(own + np.log(np.abs(pivots)).sum(axis=1))

    def given(self, numbers: Mapping[str, Array], rows: int = 1) -> Given:
        """What the observed numbers say, one entry per row for each observed variable and shift."""
        with np.errstate(all="ignore"):  # a number too far away has the log-density −inf
            right = [self._right(i, numbers, rows) for i in range(len(self.names))]
            squares = np.zeros((rows, self.settings))
            for i in self._loose:
                squares += right[i][..., 0] ** 2
            on: list[Array] = []
            own: dict[int, Array] = {}
            eliminated_next = iter(self.cliques)
            for step in self.steps:
                sides = [right[-1 - k] if k < 0 else on[k] for k in step.places]
                side = np.take_along_axis(np.concatenate(sides, axis=-1), step.order[None], axis=-1)
                side = np.einsum("skm,rsm->rsk", step.turn, side)
                squares += np.einsum("rsk,rsk->rs", side[..., step.kept :], side[..., step.kept :])
                on.append(side[..., step.pivots : step.kept])
                if step.pivots:
                    own[next(eliminated_next)[0]] = side[..., 0]
            means = np.zeros((rows, self.settings, len(self.names)))
            for clique in reversed(self.cliques):
                v, *rest = clique
                row = self.upper[v]
                means[..., v] = own[v] - np.einsum("sk,rsk->rs", row[:, 1:], means[..., rest])
                means[..., v] /= row[:, 0]
            pivot = np.stack([own.get(i, squares) for i in range(len(self.names))], axis=-1)
            return Given(-0.5 * squares - self._log_scale, (means, pivot))

    def _right(self, i: int, numbers: Mapping[str, Array], rows: int) -> Array:
        """(rows, settings, 1): the right-hand side of a variable's own equation."""
        side = np.broadcast_to(self._constants[:, i], (rows, self.settings))
        for name, weight in self._known[i]:
            side = side + weight * numbers[name][:, None]
        if i in self._seen:
            side = side - numbers[self.names[i]][:, None]
        return np.asarray(side / self._scales[:, i])[..., None]

    def mean(self, name: str, given: Given) -> Array:
        """(rows, settings): the mean of a variable given the numbers."""
        return np.asarray(given.parts[0][..., self._place[name]])

    def variance(self, name: str) -> Array:
        """(settings,): the variance of a variable given the numbers, which does not depend on them."""
        return np.asarray(self._variances[:, self._place[name]])

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def _variances(self) -> Array:
        """(settings, variables): G Gᵀ is the covariance of a clique, and G follows from that of the next one."""
        found = np.zeros((self.settings, len(self.names)))
        roots: dict[int, tuple[Clique, Array]] = {}
        for clique in reversed(self.cliques):
            v, *rest = clique
            row = self.upper[v]
            above = np.zeros((self.settings, 0, 0))
            if rest:
                members, root = roots[rest[0]]
                above = root[:, [members.index(p) for p in rest]]
            lever = -np.einsum("sk,skm->sm", row[:, 1:], above) / row[:, :1]
            root = np.zeros((self.settings, len(clique), above.shape[-1] + 1))
            root[:, 0, :-1], root[:, 0, -1] = lever, 1 / row[:, 0]
            root[:, 1:, :-1] = above
            found[:, v] = np.einsum("sm,sm->s", root[:, 0], root[:, 0])
            if root.shape[-1] > len(clique):
                root = np.asarray(np.linalg.qr(root.transpose(0, 2, 1), mode="r")).transpose(0, 2, 1)
            roots[v] = clique, root
        return found

    def draw(self, given: Given, setting: Ints, rng: np.random.Generator) -> dict[str, Array]:
        """A draw of each unobserved variable given one row of numbers, for each of many settings."""
        right = given.parts[1][0]
        drawn: dict[int, Array] = {}
        for clique in reversed(self.cliques):
            v, *rest = clique
            row = self.upper[v][setting]
            side = right[setting, v] + rng.standard_normal(len(setting))
            for k, other in enumerate(rest):
                side -= row[:, 1 + k] * drawn[other]
            drawn[v] = side / row[:, 0]
        return {self.names[i]: drawn[i] for i in sorted(drawn)}


def _cells(cliques: Sequence[Clique], scopes: Sequence[Clique]) -> int:
    """The cells, per setting, of the matrices that turn the rows, and of the cliques' covariances."""
    rows = {clique[0]: 0 for clique in cliques}
    for scope in scopes:
        if scope:
            rows[scope[0]] += 1
    cells = 0
    for clique in cliques:
        n, size = rows[clique[0]], len(clique)
        cells += size**2 + (n**2 if n <= STACK + size else n * (STACK + size) ** 2 // STACK)
        if size > 1:
            rows[clique[1]] += min(n, size) - 1
    return cells


def eliminated(gaussians: Sequence[Gaussian], observed: Collection[str]) -> list[Clique]:
    """The cliques of an elimination of the unobserved variables, by their places among `gaussians`."""
    hidden = [i for i, g in enumerate(gaussians) if g.name not in observed]
    number = {gaussians[i].name: k for k, i in enumerate(hidden)}
    scopes = [
        [number[v.name] for v in (g.variable, *g.continuous_parents) if v.name in number] for g in gaussians
    ]
    ptr, members = flat_scopes(scopes)
    order, ends, linked = kernels.triangulate.eliminate(
        np.full(len(hidden), 2, np.int64), ptr, members, rule=MIN_FILL
    )
    turn = np.argsort(order)
    cliques = []
    for k, v in enumerate(order.tolist()):
        rest = sorted(linked[ends[k] : ends[k + 1]].tolist(), key=turn.__getitem__)
        cliques.append((hidden[v], *(hidden[p] for p in rest)))
    return cliques
