"""From an elimination order to a junction forest laid out in memory, and the tapes that run it: plain Python.

The elimination cliques that lie in no other, joined as they were eliminated, are a junction forest (Blair and Peyton
1993). Each clique's axes start with its separator, in the order of the parent's axes, so that the message to the
parent is a sum over contiguous rows; neighbouring axes that move alike are fused. A clique is static when neither
its factors nor anything below it touch evidence; static work goes to the `once` tape and is never repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from bbn.kernels import tape as t
from bbn.kernels.tape import Layout
from bbn.kernels.types import Ints

Source = tuple[int, int, list[int], list[int], list[int]]
"""Buffer, offset, moves, dims, strides of a factor or message."""


def reduce_scopes(
    scope_ptr: Ints, scope: Ints, heads: Ints, role: Ints, wanted: Ints
) -> tuple[Ints, Ints, Ints]:
    """Drop barren factors and observed variables.

    Parameters
    ----------
    scope_ptr, scope : int64 arrays
        Scope f is ``scope[scope_ptr[f]:scope_ptr[f + 1]]``.
    heads : int64 array (factors,)
        The variable that factor f is a conditional distribution of, or -1. A factor whose head, and whatever hangs
        on it, is neither wanted nor observed sums to one and is dropped.
    role : int64 array (n,)
        FREE, SLICED, LIKELIHOOD or MASKED.
    wanted : int64 array (n,)
        Nonzero for the variables whose posterior is asked.

    Returns
    -------
    factors, ptr, reduced : int64 arrays
        The factors kept, and what is left of each scope without the sliced variables.
    """
    starts, members = scope_ptr.tolist(), scope.tolist()
    roles, head = role.tolist(), heads.tolist()
    relevant = [bool(w) or r != t.FREE for w, r in zip(wanted.tolist(), roles, strict=True)]
    of_head = {h: f for f, h in enumerate(head) if h >= 0}
    stack = [v for v, keep in enumerate(relevant) if keep]
    for f, h in enumerate(head):
        if h < 0:
            stack += _mark(relevant, members[starts[f] : starts[f + 1]])
    while stack:
        v = stack.pop()
        if v in of_head:
            f = of_head[v]
            stack += _mark(relevant, members[starts[f] : starts[f + 1]])
    factors = [f for f, h in enumerate(head) if h < 0 or relevant[h]]
    ptr, reduced = [0], []
    for f in factors:
        reduced += [v for v in members[starts[f] : starts[f + 1]] if roles[v] != t.SLICED]
        ptr.append(len(reduced))
    return np.array(factors, np.int64), np.array(ptr, np.int64), np.array(reduced, np.int64)


def _mark(relevant: list[bool], members: list[int]) -> list[int]:
    fresh = [v for v in members if not relevant[v]]
    for v in fresh:
        relevant[v] = True
    return fresh


def lay_out(
    cards: Ints,
    scope_ptr: Ints,
    scope: Ints,
    table_ptr: Ints,
    factors: Ints,
    role: Ints,
    elimination: tuple[Ints, Ints, Ints],
    targets: Ints,
    everything: bool,
) -> Layout:
    """Lay a junction forest out and write its tapes.

    Parameters
    ----------
    cards, scope_ptr, scope, table_ptr : int64 arrays
        The model: factor f has the table that starts at ``table_ptr[f]``, in C order of its scope.
    factors : int64 array
        The factors that matter.
    role : int64 array (n,)
        FREE, SLICED (its code picks a slice of each table), LIKELIHOOD (each run brings one), or MASKED (a run may
        bring one); if any variable is MASKED nothing but the products of the tables is done once.
    elimination : tuple of int64 arrays
        What `eliminate` gave for the reduced scopes (and the targets as one more scope).
    targets : int64 array
        The variables of the joint to read, in this order; all in one clique, which becomes the root.
    everything : bool
        Read the marginal of each variable instead.
    """
    return _Writer(
        cards, scope_ptr, scope, table_ptr, factors, role, elimination, targets, everything
    ).layout()


class _Writer:
    def __init__(
        self,
        cards: Ints,
        scope_ptr: Ints,
        scope: Ints,
        table_ptr: Ints,
        factors: Ints,
        role: Ints,
        elimination: tuple[Ints, Ints, Ints],
        targets: Ints,
        everything: bool,
    ) -> None:
        self.cards: list[int] = cards.tolist()
        self.role: list[int] = role.tolist()
        self.targets: list[int] = targets.tolist()
        self.everything = everything
        starts, members = scope_ptr.tolist(), scope.tolist()
        self.scopes: list[list[int]] = [members[starts[f] : starts[f + 1]] for f in factors.tolist()]
        self.tables: list[int] = table_ptr[factors].tolist()
        self.order: list[int] = elimination[0].tolist()
        self.position = {v: k for k, v in enumerate(self.order)}
        self.masked = t.MASKED in self.role
        ptr, around = elimination[1].tolist(), elimination[2].tolist()
        self.join_cliques([around[ptr[k] : ptr[k + 1]] for k in range(len(self.order))])
        self.order_axes()
        self.place()
        self.seat()

    def join_cliques(self, around: list[list[int]]) -> None:
        """The maximal elimination cliques and their tree, rooted where the targets are, numbered parents first."""
        home: dict[int, int] = {}
        members: list[list[int]] = []
        top: list[int] = []
        first = [min((self.position[u] for u in near), default=-1) for near in around]
        for k, v in enumerate(self.order):
            if v not in home:
                home[v] = len(members)
                members.append([v, *around[k]])
                top.append(k)
            top[home[v]] = k
            if around[k]:
                u = self.order[first[k]]
                if u not in home and len(around[k]) == 1 + len(around[first[k]]):
                    home[u] = home[v]
        parent = [home[self.order[first[k]]] if around[k] else -1 for k in top]
        size = [math.prod(self.cards[v] for v in clique) for clique in members]
        roots: list[int] = []
        if self.targets:
            wanted = set(self.targets)
            holders = [c for c, clique in enumerate(members) if wanted <= set(clique)]
            roots = [min(holders, key=lambda c: (size[c], c))]
            _reroot(parent, roots[0])
        numbers = _parents_first(parent, roots)
        rank = {c: k for k, c in enumerate(numbers)}
        self.members = [members[c] for c in numbers]
        self.parent = [rank[parent[c]] if parent[c] >= 0 else -1 for c in numbers]
        self.size = [size[c] for c in numbers]
        self.home = {v: rank[c] for v, c in home.items()}
        self.children: list[list[int]] = [[] for _ in numbers]
        for c, p in enumerate(self.parent):
            if p >= 0:
                self.children[p].append(c)

    def order_axes(self) -> None:
        """Separator first, as in the parent; what was eliminated last comes first among the rest."""
        self.axes: list[list[int]] = []
        self.separator: list[int] = []
        for c, clique in enumerate(self.members):
            if self.parent[c] >= 0:
                inside = set(clique)
                front = [v for v in self.axes[self.parent[c]] if v in inside]
                self.separator.append(len(front))
            else:
                front = self.targets if c == 0 else []
                self.separator.append(0)
            fixed = set(front)
            rest = sorted((v for v in clique if v not in fixed), key=lambda v: -self.position[v])
            self.axes.append([*front, *rest])

    def place(self) -> None:
        """Offsets of the cliques and of the separators to their parents."""
        self.rows = [
            math.prod(self.cards[v] for v in axes[:k])
            for axes, k in zip(self.axes, self.separator, strict=True)
        ]
        self.clique: list[int] = []
        self.message: list[int] = []
        offset = 0
        for c, size in enumerate(self.size):
            self.clique.append(offset)
            self.message.append(offset + size)
            offset += size + (self.rows[c] if self.parent[c] >= 0 else 0)
        self.work_size = offset

    def seat(self) -> None:
        """Give factors and likelihoods to cliques, and see which cliques evidence can change."""
        self.factors: list[list[int]] = [[] for _ in self.members]
        self.likelihoods: list[list[int]] = [[] for _ in self.members]
        self.scalars: list[int] = []
        changing = [False] * len(self.members)
        for f, scope in enumerate(self.scopes):
            free = [v for v in scope if self.role[v] != t.SLICED]
            if not free:
                self.scalars.append(f)
                continue
            c = self.home[min(free, key=self.position.__getitem__)]
            self.factors[c].append(f)
            changing[c] |= len(free) < len(scope)
        self.smallest: dict[int, int] = {}
        for c, axes in enumerate(self.axes):
            for v in axes:
                if v not in self.smallest or self.size[c] < self.size[self.smallest[v]]:
                    self.smallest[v] = c
        for v in self.order:
            if self.role[v] in (t.LIKELIHOOD, t.MASKED):
                self.likelihoods[self.smallest[v]].append(v)
                changing[self.smallest[v]] = True
        self.dynamic = [self.masked or change for change in changing]
        for c in reversed(range(len(self.members))):
            if self.dynamic[c] and self.parent[c] >= 0:
                self.dynamic[self.parent[c]] = True

    def layout(self) -> Layout:
        """Write the tapes."""
        self.plan_reads()
        once: list[int] = []
        run: list[int] = []
        for f in self.scalars:
            moves = self.moves(f)
            tape = run if moves else once
            _emit(tape, t.SCALAR, [self.tables[f], len(moves) // 2, *moves])
        for c in reversed(range(len(self.members))):
            self.gather(c, once, run)
        for c in range(len(self.members)):
            self.scatter(c, run if self.in_run[c] else once)
        out = [-1] * len(self.cards)
        out_size = self.read(once, run, out)
        return Layout(
            _array(once),
            _array(run),
            _array(np.cumsum([0, *map(len, self.axes)])),
            _array([v for axes in self.axes for v in axes]),
            _array(self.parent),
            _array(self.separator),
            _array(self.clique),
            _array(self.dynamic),
            _array(out),
            out_size,
            self.work_size,
            max((r for r, p in zip(self.rows, self.parent, strict=True) if p >= 0), default=1),
        )

    def gather(self, c: int, once: list[int], run: list[int]) -> None:
        """Collect: clique c is the product of its factors and its children's messages; then its own message."""
        still = [self.table_source(f) for f in self.factors[c] if not self.moves(f)]
        moving = [self.table_source(f) for f in self.factors[c] if self.moves(f)]
        for child in self.children[c]:
            source: Source = (t.WORK, self.message[child], [], *self.separator_strides(c, child))
            (moving if self.dynamic[child] else still).append(source)
        self.multiply(c, once, t.NOTHING, still)
        if not self.dynamic[c]:
            if not still:
                _emit(once, t.ONES, [self.clique[c], self.size[c]])
            self.send(c, once)
            return
        self.multiply(c, run, t.BASE if still else t.NOTHING, moving)
        if not moving:
            if still:
                _emit(run, t.MUL, [self.clique[c], t.NOTHING, t.BASE, self.clique[c], 0, 1, self.size[c], 1])
            else:
                _emit(run, t.ONES, [self.clique[c], self.size[c]])
        for v in self.likelihoods[c]:
            _emit(run, t.LIKELY, [v, self.clique[c], *self.split(self.axes[c], v)])
        self.send(c, run)

    def multiply(
        self,
        c: int,
        tape: list[int],
        left: int,
        sources: Iterable[Source],
    ) -> None:
        for k, (buffer, offset, moves, dims, strides) in enumerate(sources, start=1):
            head = [self.clique[c], left, buffer, offset, len(moves) // 2, len(dims)]
            _emit(tape, t.MUL, [*head, *moves, *dims, *strides])
            left = t.WORK
            if k % t.RESCALE_EVERY == 0:
                _emit(tape, t.RESCALE, [self.clique[c], self.size[c]])

    def send(self, c: int, tape: list[int]) -> None:
        if self.parent[c] < 0:
            _emit(tape, t.TOTAL, [self.clique[c], self.size[c]])
        else:
            rows = self.rows[c]
            _emit(tape, t.UP, [self.message[c], self.clique[c], rows, self.size[c] // rows])

    def plan_reads(self) -> None:
        """Where each posterior is read, and so which cliques the distribution must reach."""
        m = len(self.members)
        self.in_run = [False] * m
        for c in range(m):
            self.in_run[c] = self.dynamic[c] if self.parent[c] < 0 else self.in_run[self.parent[c]]
        self.source: dict[int, tuple[int, bool]] = {}
        self.scaled = [False] * m
        self.marginal = [False] * m
        if not self.everything:
            return
        best: dict[int, int] = {}
        for c, axes in enumerate(self.axes):
            for k, v in enumerate(axes):
                if k < self.separator[c] and self.rows[c] < best.get(v, self.size[c] + 1):
                    best[v], self.source[v] = self.rows[c], (c, True)
                elif self.size[c] < best.get(v, self.size[c] + 1):
                    best[v], self.source[v] = self.size[c], (c, False)
        for c, is_separator in self.source.values():
            (self.marginal if is_separator else self.scaled)[c] = True
        for c in reversed(range(m)):
            if self.parent[c] >= 0 and (self.scaled[c] or self.marginal[c]):
                self.scaled[self.parent[c]] = True

    def scatter(self, c: int, tape: list[int]) -> None:
        """Distribute: the parent's marginal over the separator, and the clique scaled by new over old."""
        if self.parent[c] < 0 or not (self.scaled[c] or self.marginal[c]):
            return
        p, rows = self.parent[c], self.rows[c]
        old = t.BASE if self.in_run[c] and not self.dynamic[c] else t.WORK
        dims, strides = self.separator_strides(p, c)
        head = [self.message[c], self.clique[c], rows, self.size[c] // rows, old, self.clique[p]]
        _emit(tape, t.DOWN, [*head, int(self.scaled[c]), len(dims), *dims, *strides])

    def read(self, once: list[int], run: list[int], out: list[int]) -> int:
        if self.targets:
            cells = math.prod(self.cards[v] for v in self.targets)
            rest = self.size[0] // cells
            _emit(run if self.in_run[0] else once, t.READ, [0, self.clique[0], 1, cells, rest])
            return cells
        offset = 0
        for v in sorted(self.source):
            c, is_separator = self.source[v]
            axes = self.axes[c][: self.separator[c]] if is_separator else self.axes[c]
            region = self.message[c] if is_separator else self.clique[c]
            _emit(run if self.in_run[c] else once, t.READ, [offset, region, *self.split(axes, v)])
            out[v] = offset
            offset += self.cards[v]
        return offset

    def moves(self, f: int) -> list[int]:
        """Pairs (v, stride) of the sliced variables of a factor."""
        pairs: list[int] = []
        for v, stride in zip(self.scopes[f], self.table_strides(f), strict=True):
            if self.role[v] == t.SLICED:
                pairs += [v, stride]
        return pairs

    def table_strides(self, f: int) -> list[int]:
        strides = [1]
        for v in self.scopes[f][:0:-1]:
            strides.append(strides[-1] * self.cards[v])
        return strides[::-1] if self.scopes[f] else []

    def table_source(self, f: int) -> Source:
        c = self.home[
            min((v for v in self.scopes[f] if self.role[v] != t.SLICED), key=self.position.__getitem__)
        ]
        stride = dict(zip(self.scopes[f], self.table_strides(f), strict=True))
        dims, strides = _fuse([self.cards[v] for v in self.axes[c]], [stride.get(v, 0) for v in self.axes[c]])
        return t.TABLES, self.tables[f], self.moves(f), dims, strides

    def separator_strides(self, p: int, child: int) -> tuple[list[int], list[int]]:
        """How the child's separator moves as the parent's cells are walked."""
        stride: dict[int, int] = {}
        step = 1
        for v in reversed(self.axes[child][: self.separator[child]]):
            stride[v] = step
            step *= self.cards[v]
        return _fuse([self.cards[v] for v in self.axes[p]], [stride.get(v, 0) for v in self.axes[p]])

    def split(self, axes: Sequence[int], v: int) -> list[int]:
        k = axes.index(v)
        before, after = (math.prod(self.cards[u] for u in part) for part in (axes[:k], axes[k + 1 :]))
        return [before, self.cards[v], after]


def _reroot(parent: list[int], root: int) -> None:
    below, c = -1, root
    while c >= 0:
        above = parent[c]
        parent[c] = below
        below, c = c, above


def _parents_first(parent: list[int], roots: list[int]) -> list[int]:
    children: list[list[int]] = [[] for _ in parent]
    for c, p in enumerate(parent):
        if p >= 0:
            children[p].append(c)
    numbers: list[int] = []
    stack = [c for c, p in enumerate(parent) if p < 0 and c not in roots][::-1] + roots
    while stack:
        c = stack.pop()
        numbers.append(c)
        stack += reversed(children[c])
    return numbers


def _fuse(dims: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    """Drop axes of one state and join neighbours that one stride can walk."""
    kept: list[list[int]] = []
    for dim, stride in zip(dims, strides, strict=True):
        if dim == 1:
            continue
        if kept and kept[-1][1] == stride * dim:
            kept[-1] = [kept[-1][0] * dim, stride]
        else:
            kept.append([dim, stride])
    if not kept:
        return [1], [0]
    return [dim for dim, _ in kept], [stride for _, stride in kept]


def _emit(tape: list[int], op: int, fields: list[int]) -> None:
    tape += [op, 2 + len(fields), *fields]


def _array(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)
