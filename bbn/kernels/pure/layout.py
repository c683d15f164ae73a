"""A junction forest laid out in memory, and the tapes that run it: plain Python.

A clique is static when neither its factors nor anything below it touch evidence; static work goes to the `once` tape
and is never repeated. Neighbouring axes that move alike are fused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import check_factors
from bbn.kernels.contracts.tape import Layout, fused
from bbn.kernels.contracts.types import Ints
from bbn.kernels.pure.forest import Forest, pack_factors, reduce_scopes, smaller_neighbour

__all__ = ["lay_out", "pack_factors", "reduce_scopes"]

FEW = 8
"""Regions that are looked through for the marginal of a child; and of a clique gone through once, how many times
smaller what evidence cannot change must be to be multiplied beforehand."""

Step = tuple[int, int, int, list[int], dict[int, int]]
"""Kind, buffer, offset, moves, and variable to stride: how the other operand moves along the region's axes."""


def lay_out(
    cards: Ints,
    scope_ptr: Ints,
    scope: Ints,
    table_ptr: Ints,
    factors: Ints,
    role: Ints,
    elimination: tuple[Ints, Ints, Ints],
    targets: Sequence[int],
    goal: int,
    store: bool = False,
    slab: int = t.SLAB,
    limits: tuple[int, int, int] = (t.STREAM, t.STREAM_AGAIN, t.STREAM_TREE),
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
    targets : sequence of variables
        The variables of the joint to read, in this order; all in one clique, which becomes the root.
    goal : int
        QUERY, MARGINALS or COLLECTED.
    store : bool
        Whether MARGINALS stores large cliques that evidence cannot change, which is faster and takes more memory.
    slab : int
        The most cells of a slab, if an axis can be cut for that.
    limits : three ints
        In place of STREAM, STREAM_AGAIN and STREAM_TREE.
    """
    return _Writer(
        cards, scope_ptr, scope, table_ptr, factors, role, elimination, targets, goal, store, slab, limits
    ).layout()


class _Writer(Forest):
    def __init__(
        self,
        cards: Ints,
        scope_ptr: Ints,
        scope: Ints,
        table_ptr: Ints,
        factors: Ints,
        role: Ints,
        elimination: tuple[Ints, Ints, Ints],
        targets: Sequence[int],
        goal: int,
        store: bool,
        slab: int,
        limits: tuple[int, int, int],
    ) -> None:
        super().__init__(cards, elimination, targets, goal)
        self.store, self.slab = store, slab
        self.stream, self.again, self.tree = limits
        check_factors(cards, scope_ptr, scope, table_ptr, factors, role)
        self.role: list[int] = role.tolist()
        starts, members = scope_ptr.tolist(), scope.tolist()
        self.numbers: list[int] = factors.tolist()
        self.scopes: list[list[int]] = [members[starts[f] : starts[f + 1]] for f in self.numbers]
        self.tables: list[int] = table_ptr[factors].tolist()
        self.tables_size = int(table_ptr[-1])
        self.masked = t.MASKED in self.role
        self.seat()
        self.place()

    def place(self) -> None:
        """Offsets: the messages, the fresh marginals, the cliques that a run stores, those that BASE alone holds."""
        self.rows = [
            math.prod(self.cards[v] for v in axes[:k])
            for axes, k in zip(self.axes, self.separator, strict=True)
        ]
        self.message: list[int] = []
        self.fresh: list[int] = []
        self.clique = [0] * len(self.members)
        offset = 0
        for rows in self.rows:
            self.message.append(offset)
            offset += rows
        for rows, parent in zip(self.rows, self.parent, strict=True):
            self.fresh.append(offset)
            offset += rows if self.goal == t.MARGINALS and parent >= 0 else 0
        self.clear = offset
        for c, size in enumerate(self.size):
            if self.in_work(c):
                self.clique[c] = offset
                offset += size
        self.work_size = offset
        for c, size in enumerate(self.size):
            if self.in_base(c) and not self.in_work(c):
                self.clique[c] = offset
                offset += size
            elif self.compact(c):
                self.clique[c] = offset
                offset += math.prod(self.cards[v] for v in self.constant(c))
        self.base_size = offset
        self.whole_size = self.clear + sum(
            size for c, size in enumerate(self.size) if self.in_run[c] or not self.streamed[c]
        )

    def compact(self, c: int) -> bool:
        """Whether BASE holds, for a clique that a run does not store, the product of what evidence cannot change."""
        if not (self.streamed[c] and self.dynamic[c] and self.sources(c, False)):
            return False
        cells = math.prod(self.cards[v] for v in self.constant(c))
        return self.goal == t.MARGINALS or FEW * cells <= self.size[c]

    def constant(self, c: int) -> list[int]:
        """The axes of clique c that a source moves along that evidence cannot change."""
        held = {v for *_, stride in self.sources(c, False) for v in stride}
        return [v for v in self.axes[c] if v in held]

    def in_work(self, c: int) -> bool:
        """Whether a run stores the cells of clique c."""
        many = len(self.sources(c, True)) > t.RESCALE_EVERY
        return self.dynamic[c] and not self.streamed[c] and (self.kept(c) or many)

    def in_base(self, c: int) -> bool:
        """Whether they are stored once, or what evidence cannot change of them."""
        still = len(self.sources(c, False))
        if self.dynamic[c]:
            return still > 0 and not self.streamed[c]
        return not self.streamed[c] and (self.kept(c) or still > t.RESCALE_EVERY)

    def kept(self, c: int) -> bool:
        """Whether the cells of clique c are looked at again; a root gets no message, so one sweep is all."""
        return self.goal == t.COLLECTED or (self.goal == t.MARGINALS and self.parent[c] >= 0)

    def seat(self) -> None:
        """Give factors and likelihoods to cliques, and see which cliques evidence can change."""
        self.held = [set(clique) for clique in self.members]
        self.factors: list[list[int]] = [[] for _ in self.members]
        self.likelihoods: list[list[int]] = [[] for _ in self.members]
        self.scalars: list[int] = []
        changing = [False] * len(self.members)
        for f, scope in enumerate(self.scopes):
            free = [v for v in scope if self.role[v] != t.SLICED]
            for v in free:
                if v not in self.home:
                    raise ValueError(f"variable {v} of factor {self.numbers[f]} is not eliminated")
            if not free:
                self.scalars.append(f)
                continue
            c = self.lowest(self.home[min(free, key=self.position.__getitem__)], set(free))
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
        self.in_run: list[bool] = []
        self.streamed: list[bool] = []
        for c, p in enumerate(self.parent):
            self.in_run.append(self.dynamic[c] if p < 0 else self.in_run[p])
            sources = len(self.factors[c]) + len(self.children[c]) + len(self.likelihoods[c])
            few = sources <= (t.RESCALE_EVERY if self.in_run[c] else t.MOST_SOURCES)
            self.streamed.append(few and self.streams(c))

    def streams(self, c: int) -> bool:
        """Whether clique c is too large to be stored."""
        if self.goal == t.MARGINALS and self.in_run[c]:
            return self.dynamic[c] and self.size[c] > self.again and sum(self.size) > self.tree
        if self.goal == t.MARGINALS:
            return self.size[c] > self.stream and not self.store
        return self.goal == t.QUERY and self.size[c] > self.stream

    def lowest(self, c: int, scope: set[int]) -> int:
        """From a large clique on, always to the smallest neighbour that holds the scope."""
        lower: int | None = c
        while lower is not None:
            c = lower
            lower = smaller_neighbour(c, scope, self.held, self.children, self.parent, self.size)
        return c

    def layout(self) -> Layout:
        """Write the tapes."""
        self.scratch_size = 1
        self.plan_reads()
        once: list[int] = []
        run: list[int] = []
        for tape in (once, run):
            _emit(tape, t.CLEAR, [0, self.clear])
        for f in self.scalars:
            moves = self.moves(f)
            _emit(run if moves else once, t.SCALAR, [self.tables[f], len(moves) // 2, *moves])
        for c in reversed(range(len(self.members))):
            self.gather(c, once, run)
        if self.goal == t.MARGINALS:
            for c in range(len(self.members)):
                self.scatter(c, run if self.in_run[c] else once)
        self.finish(once, run)
        return Layout(
            _array(once),
            _array(run if len(run) > 4 else []),
            _array(np.cumsum([0, *map(len, self.axes)])),
            _array([v for axes in self.axes for v in axes]),
            _array(self.parent),
            _array(self.separator),
            _array(self.clique),
            _array(self.dynamic),
            _array(self.out),
            self.out_size,
            self.work_size,
            self.base_size,
            self.whole_size,
            self.scratch_size,
            self.tables_size,
        )

    def gather(self, c: int, once: list[int], run: list[int]) -> None:
        """Collect: clique c is the product of its factors and its children's messages; then its own message."""
        still, moving = self.sources(c, False), self.sources(c, True)
        sends: list[Step] = [(t.ADD, t.WORK, self.message[c], [], self.separator_strides(c))]
        if c == 0 and self.targets:
            sends.append((t.ADD, t.OUT, 0, [], self.strides(self.targets)))
        keep = self.kept(c) and not self.streamed[c]
        later: list[tuple[int, list[int], Step]] = []
        if self.parent[c] < 0 and self.goal == t.MARGINALS:
            shares, later = self.shares(c)
            sends += shares
        tape = run if self.dynamic[c] else once
        if self.dynamic[c] and self.streamed[c]:
            if self.compact(c):
                self.sweep(once, self.clique[c], self.constant(c), t.NOTHING, True, still)
            self.product(c, run, t.NOTHING, [*self.base(c), *moving], sends, False)
        elif self.dynamic[c] and still:
            self.product(c, once, t.NOTHING, still, [], True)
            self.product(c, run, t.BASE, moving, sends, keep)
        else:
            self.product(c, tape, t.NOTHING, moving if self.dynamic[c] else still, sends, keep)
        self.close(c, tape)
        for region, axes, step in later:
            self.sweep(tape, region, axes, t.WORK, False, [step])

    def base(self, c: int) -> list[Step]:
        """What evidence cannot change of a clique that a run does not store: its product, or its sources."""
        if self.compact(c):
            return [(t.MUL, t.BASE, self.clique[c], [], self.strides(self.constant(c)))]
        return self.sources(c, False, t.BASE)

    def sources(self, c: int, changing: bool, buffer: int = t.WORK) -> list[Step]:
        """What clique c is the product of: the constant, or the changing, factors, messages and likelihoods.

        The messages are in `buffer`.
        """
        steps = [self.table_step(f) for f in self.factors[c] if bool(self.moves(f)) == changing]
        steps += [
            (t.MUL, buffer, self.message[child], [], self.separator_strides(child))
            for child in self.children[c]
            if self.dynamic[child] == changing
        ]
        if changing:
            steps += [(t.LIKELY, t.TABLES, v, [], {v: 1}) for v in self.likelihoods[c]]
        return steps

    def product(
        self, c: int, tape: list[int], left: int, sources: list[Step], sends: list[Step], keep: bool
    ) -> None:
        """Sweep over clique c; after each few factors its largest cell is made 1 again."""
        while len(sources) > t.RESCALE_EVERY and not self.streamed[c]:
            self.sweep(tape, self.clique[c], self.axes[c], left, True, sources[: t.RESCALE_EVERY])
            _emit(tape, t.RESCALE, [self.clique[c], self.size[c]])
            left, sources = t.WORK, sources[t.RESCALE_EVERY :]
        self.sweep(tape, self.clique[c], self.axes[c], left, keep, [*sources, *sends])

    def close(self, c: int, tape: list[int]) -> None:
        if self.parent[c] < 0:
            _emit(tape, t.TOTAL, [self.message[c]])
        else:
            _emit(tape, t.NORM, [self.message[c], self.rows[c]])

    def plan_reads(self) -> None:
        """Where each posterior is read, and so which cliques the distribution must reach."""
        m = len(self.members)
        self.in_clique: list[list[int]] = [[] for _ in range(m)]
        self.in_message: list[list[int]] = [[] for _ in range(m)]
        self.out = [-1] * len(self.cards)
        self.out_size = math.prod(self.cards[v] for v in self.targets) if self.targets else 0
        if self.goal == t.MARGINALS:
            best: dict[int, tuple[int, int, bool]] = {}
            for c, axes in enumerate(self.axes):
                for k, v in enumerate(axes):
                    size = self.rows[c] if k < self.separator[c] else self.size[c]
                    if v not in best or size < best[v][0]:
                        best[v] = (size, c, k < self.separator[c])
            for v in sorted(best):
                _, c, is_message = best[v]
                (self.in_message if is_message else self.in_clique)[c].append(v)
                self.out[v] = self.out_size
                self.out_size += self.cards[v]
        self.swept = [bool(self.in_clique[c]) for c in range(m)]
        self.reached = [bool(self.in_message[c]) for c in range(m)]
        for c in reversed(range(m)):
            self.reached[c] |= self.swept[c]
            if self.reached[c] and self.parent[c] >= 0:
                self.swept[self.parent[c]] = True

    def scatter(self, c: int, tape: list[int]) -> None:
        """Distribute: new over old from the parent, the clique scaled by it, its marginals added up where needed."""
        if not self.reached[c] or self.parent[c] < 0:
            return
        left = t.BASE if self.in_run[c] and not self.dynamic[c] else t.WORK
        _emit(tape, t.RATIO, [self.fresh[c], self.message[c], self.rows[c], left])
        reads = [self.read_step(v) for v in self.in_message[c]]
        if reads:
            self.sweep(tape, self.message[c], self.axes[c][: self.separator[c]], t.WORK, False, reads)
        if not self.swept[c]:
            return
        steps: list[Step] = [(t.MUL, t.WORK, self.fresh[c], [], self.separator_strides(c))]
        if self.streamed[c]:
            left = t.NOTHING
            made = [*self.base(c), *self.sources(c, True)] if self.dynamic[c] else self.sources(c, False)
            steps = [*made, *steps]
        shares, later = self.shares(c)
        self.sweep(tape, self.clique[c], self.axes[c], left, False, [*steps, *shares])
        for region, axes, step in later:
            self.sweep(tape, region, axes, t.WORK, False, [step])

    def shares(self, c: int) -> tuple[list[Step], list[tuple[int, list[int], Step]]]:
        """What clique c gives: its children's marginals (some from a smaller region, later), and posteriors."""
        steps: list[Step] = []
        later: list[tuple[int, list[int], Step]] = []
        for child, source in self.sources_of_children(c):
            step: Step = (t.ADD, t.WORK, self.fresh[child], [], self.separator_strides(child))
            if source is None:
                steps.append(step)
            else:
                later.append((*source, step))
        steps += [self.read_step(v) for v in self.in_clique[c]]
        return steps, later

    def sources_of_children(self, c: int) -> list[tuple[int, tuple[int, list[int]] | None]]:
        """For each child that is reached, widest first: a smaller region than c that holds its marginal, or None."""
        known: list[tuple[int, int, list[int]]] = []
        if self.parent[c] >= 0:
            known.append((self.rows[c], self.message[c], self.axes[c][: self.separator[c]]))
        out: list[tuple[int, tuple[int, list[int]] | None]] = []
        for child in sorted(
            (x for x in self.children[c] if self.reached[x]), key=lambda x: (-self.rows[x], x)
        ):
            axes = self.axes[child][: self.separator[child]]
            chosen = None
            for rows, region, held in known:
                if (chosen is None or rows < chosen[0]) and set(axes) <= set(held):
                    chosen = (rows, region, held)
            if chosen is not None and 2 * chosen[0] <= self.size[c]:
                out.append((child, (chosen[1], chosen[2])))
            else:
                out.append((child, None))
            if len(known) < FEW:
                known.append((self.rows[child], self.fresh[child], axes))
        return out

    def finish(self, once: list[int], run: list[int]) -> None:
        if self.targets:
            _emit(run if self.in_run[0] else once, t.FINISH, [0, self.out_size])
        for c in range(len(self.members)):
            for v in (*self.in_message[c], *self.in_clique[c]):
                _emit(run if self.in_run[c] else once, t.FINISH, [self.out[v], self.cards[v]])

    def sweep(
        self, tape: list[int], region: int, axes: list[int], left: int, keep: bool, steps: list[Step]
    ) -> None:
        cards = [self.cards[v] for v in axes]
        size = slab = math.prod(cards)
        outer = 0
        while slab > self.slab and outer < len(axes) - 1:
            slab //= cards[outer]
            outer += 1
        self.scratch_size = max(self.scratch_size, slab)
        words = [region, size, left, int(keep), size // slab, outer, len(steps), *cards[:outer]]
        for kind, buffer, offset, moves, stride in steps:
            along = [stride.get(v, 0) for v in axes]
            dims, strides = fused(cards[outer:], along[outer:])
            head = [buffer, offset, len(moves) // 2, len(dims)]
            _emit(words, kind, [*head, *moves, *along[:outer], *dims, *strides])
        _emit(tape, t.SWEEP, words)

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

    def table_step(self, f: int) -> Step:
        stride = dict(zip(self.scopes[f], self.table_strides(f), strict=True))
        return t.MUL, t.TABLES, self.tables[f], self.moves(f), stride

    def read_step(self, v: int) -> Step:
        return t.ADD, t.OUT, self.out[v], [], {v: 1}

    def separator_strides(self, c: int) -> dict[int, int]:
        """How the message of clique c moves along its variables."""
        return self.strides(self.axes[c][: self.separator[c]])

    def strides(self, axes: Sequence[int]) -> dict[int, int]:
        stride: dict[int, int] = {}
        step = 1
        for v in reversed(axes):
            stride[v] = step
            step *= self.cards[v]
        return stride


def _emit(tape: list[int], op: int, fields: list[int]) -> None:
    tape += [op, 2 + len(fields), *fields]


def _array(values: Iterable[int]) -> Ints:
    return np.array(list(values), np.int64)
