# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A junction forest laid out in memory, and the tapes that run it.

A clique is static when neither its factors nor anything below it touch evidence; static work goes to the `once` tape
and is never repeated. Neighbouring axes that move alike are fused.
"""

cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from bbn.kernels.compiled.arrays cimport Arena, Words, check_length, check_offsets, check_range, ints_array, words_of
from bbn.kernels.compiled.forest cimport Forest
from bbn.kernels.compiled.tape cimport (
    ADD, BASE, CLEAR, COLLECTED, DEEPEST, FEW, FINISH, FREE, LIKELIHOOD, LIKELY, MARGINALS, MASKED, MOST_SOURCES, MUL, NORM,
    NOTHING, ORDERED, OUT, QUERY, RATIO, RESCALE, RESCALE_EVERY, RUN, SCALAR, SLAB, SLICED, STREAM, STREAM_AGAIN,
    STREAM_TREE, SWEEP, TABLES, TOTAL, WORK,
)

from bbn.kernels.compiled.forest import pack_factors, reduce_scopes
from bbn.kernels.contracts.tape import Layout

cnp.import_array()

__all__ = ["lay_out", "pack_factors", "reduce_scopes"]

LIMITS = STREAM, STREAM_AGAIN, STREAM_TREE

cdef enum:
    LONG_TAPE = 4096  # words that are worth not copying
    WORDS = 96  # of a tape, for each variable: room for these is made at once


def lay_out(cards, scope_ptr, scope, table_ptr, factors, role, elimination, targets, int goal, bint store=False,
            int64_t slab=SLAB, limits=LIMITS):
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
    cdef Writer writer = Writer()
    writer.store, writer.slab = store, slab
    writer.stream, writer.again, writer.tree = limits
    writer.grow(cards, elimination, targets, goal)
    writer.take(scope_ptr, scope, table_ptr, factors, role)
    writer.seat()
    writer.place()
    return writer.layout()


@cython.final
cdef class Tape:
    """A growing array of words."""

    cdef int64_t* words
    cdef int64_t size, room

    def __cinit__(self, int64_t room):
        self.room = room
        self.words = <int64_t*> malloc(self.room * sizeof(int64_t))
        if self.words == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.words)

    cdef int reserve(self, int64_t more) except -1:
        cdef int64_t* grown
        if self.size + more > self.room:
            self.room = 2 * (self.size + more)
            grown = <int64_t*> realloc(self.words, self.room * sizeof(int64_t))
            if grown == NULL:
                raise MemoryError
            self.words = grown
        return 0

    cdef int64_t begin(self, int64_t op, int64_t room) except -1:
        """Start an instruction of at most `room` fields; where it starts."""
        self.reserve(room + 2)
        self.words[self.size] = op
        self.size += 2
        return self.size - 2

    cdef inline void put(self, int64_t word) noexcept:
        self.words[self.size] = word
        self.size += 1

    cdef inline void end(self, int64_t start) noexcept:
        self.words[start + 1] = self.size - start

    cdef int write(self, int64_t op, int64_t a, int64_t b=-1, int64_t c=-1, int64_t d=-1) except -1:
        """A whole instruction of up to four fields."""
        cdef int64_t start = self.begin(op, 4)
        self.put(a)
        if b >= 0:
            self.put(b)
        if c >= 0:
            self.put(c)
        if d >= 0:
            self.put(d)
        self.end(start)
        return 0

    cdef object array(self):
        """Its words; a long tape is handed over, not copied, so nothing may be written after that."""
        cdef cnp.npy_intp size = self.size
        cdef cnp.ndarray out
        cdef void* fitted
        if self.size <= LONG_TAPE:
            return ints_array(self.words, self.size)
        fitted = realloc(self.words, self.size * sizeof(int64_t))
        if fitted != NULL:
            self.words, self.room = <int64_t*> fitted, self.size
        out = cnp.PyArray_SimpleNewFromData(1, &size, cnp.NPY_INT64, self.words)
        Py_INCREF(self)
        cnp.PyArray_SetBaseObject(out, self)
        return out


@cython.final
cdef class Writer(Forest):
    """A junction forest laid out in memory, and the tapes that run it: plain Python.

    A clique is static when neither its factors nor anything below it touch evidence; static work goes to the `once` tape
    and is never repeated. Neighbouring axes that move alike are fused.
    """

    cdef object model
    cdef Tape once, run
    cdef Words scope_ptr, scope, table_ptr, factors, role
    cdef int64_t n_factors, work_size, base_size, whole_size, clear, out_size, scratch_size
    cdef int64_t n_ordered, sweep_start, sweep_depth, sweep_outer
    cdef Words sweep_axes
    cdef Tape sweeping
    cdef bint masked, store
    cdef int64_t slab, stream, again, tree
    cdef int64_t n_constant
    cdef int64_t *constant
    cdef int64_t *rows
    cdef int64_t *clique
    cdef int64_t *message
    cdef int64_t *fresh
    cdef int64_t *dynamic
    cdef int64_t *streamed
    cdef int64_t *in_run
    cdef int64_t *factor_head
    cdef int64_t *factor_next
    cdef int64_t *likely_head
    cdef int64_t *likely_next
    cdef int64_t *moving
    cdef int64_t *stride
    cdef int64_t *dims
    cdef int64_t *from_parent  # the steps that walk the parent's cells and the clique's own; see `separator_step`
    cdef int64_t *from_own
    cdef int64_t *best
    cdef int64_t *source
    cdef int64_t *read_head
    cdef int64_t *read_next
    cdef int64_t *swept
    cdef int64_t *reached
    cdef int64_t *ordered
    cdef int64_t *out

    cdef int take(self, scope_ptr, scope, table_ptr, factors, role) except -1:
        cdef int64_t v
        self.model = (scope_ptr, scope, table_ptr, factors, role)
        self.scope_ptr, self.scope, self.table_ptr = words_of(scope_ptr), words_of(scope), words_of(table_ptr)
        self.factors, self.n_factors = words_of(factors), cnp.PyArray_SIZE(factors)
        self.role = words_of(role)
        self.check_factors()
        self.masked = False
        for v in range(self.n):
            if self.role[v] == MASKED:
                self.masked = True
        self.once, self.run = Tape(1024 + WORDS * self.m), Tape(1024 + WORDS * self.m)
        return 0

    cdef int check_factors(self) except -1:
        """Refuse factors whose arrays do not fit one another; see `checks.check_factors`."""
        cdef int64_t total = cnp.PyArray_SIZE(self.model[0]) - 1, members = cnp.PyArray_SIZE(self.model[1]), f, i
        cdef double cells
        check_length(cnp.PyArray_SIZE(self.model[2]), total + 1, "table_ptr")
        check_length(cnp.PyArray_SIZE(self.model[4]), self.n, "role")
        check_offsets(self.model[0], members, "scope_ptr")
        check_range(self.scope, members, 0, self.n, "scope")
        check_range(self.factors, self.n_factors, 0, total, "factors")
        check_range(self.role, self.n, FREE, MASKED + 1, "role")
        for f in range(total):
            cells = 1.0
            for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
                cells *= self.cards[self.scope[i]]
            if self.table_ptr[f] < 0 or cells != self.table_ptr[f + 1] - self.table_ptr[f]:
                raise ValueError(
                    f"table {f}: expected {cells:.15g} cells, found {self.table_ptr[f + 1] - self.table_ptr[f]}")
        return 0

    cdef int place(self) except -1:
        """Offsets: the messages, the fresh marginals, the cliques that a run stores, those that BASE alone holds."""
        cdef Arena arena = self.arena
        cdef int64_t c, i, offset = 0
        self.stride, self.constant = arena.ints(self.n), arena.ints(self.n)
        self.rows, self.clique = arena.ints(self.m), arena.ints(self.m)
        self.message, self.fresh = arena.ints(self.m), arena.ints(self.m)
        for c in range(self.n_cliques):
            self.rows[c] = 1
            for i in range(self.axes_ptr[c], self.axes_ptr[c] + self.separator[c]):
                self.rows[c] *= self.cards[self.axes[i]]
            self.message[c] = offset
            offset += self.rows[c]
        for c in range(self.n_cliques):
            self.fresh[c] = offset
            if self.goal == MARGINALS and self.parent[c] >= 0:
                offset += self.rows[c]
        self.clear = offset
        for c in range(self.n_cliques):
            if self.in_work(c):
                self.clique[c] = offset
                offset += self.size[c]
        self.work_size = offset
        for c in range(self.n_cliques):
            if self.in_base(c) and not self.in_work(c):
                self.clique[c] = offset
                offset += self.size[c]
            elif self.compact(c):
                self.clique[c] = offset
                offset += self.find_constant(c)
        self.base_size = offset
        self.whole_size = self.clear
        for c in range(self.n_cliques):
            if self.in_run[c] or not self.streamed[c]:
                self.whole_size += self.size[c]
        return 0

    cdef bint compact(self, int64_t c) noexcept:
        """Whether BASE holds, for a clique that a run does not store, the product of what evidence cannot change."""
        return (
            self.streamed[c] and self.dynamic[c] and self.count_sources(c, False) > 0
            and (self.goal == MARGINALS or FEW * self.find_constant(c) <= self.size[c])
        )

    cdef int64_t find_constant(self, int64_t c) noexcept:
        """The axes of clique c that a source moves along that evidence cannot change; how many cells they have."""
        cdef int64_t i, k, v, f, cells = 1
        for i in range(self.axes_ptr[c], self.axes_ptr[c + 1]):
            self.stride[self.axes[i]] = 0
        k = self.factor_head[c]
        while k >= 0:
            if not self.moving[k]:
                f = self.factors[k]
                for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
                    self.stride[self.scope[i]] = 1
            k = self.factor_next[k]
        k = self.child_head[c]
        while k >= 0:
            if not self.dynamic[k]:
                for i in range(self.axes_ptr[k], self.axes_ptr[k] + self.separator[k]):
                    self.stride[self.axes[i]] = 1
            k = self.child_next[k]
        self.n_constant = 0
        for i in range(self.axes_ptr[c], self.axes_ptr[c + 1]):
            v = self.axes[i]
            if self.stride[v]:
                self.constant[self.n_constant] = v
                self.n_constant += 1
                cells *= self.cards[v]
                self.stride[v] = 0
        return cells

    cdef bint in_work(self, int64_t c) noexcept:
        """Whether a run stores the cells of clique c."""
        if self.streamed[c] or not self.dynamic[c]:
            return False
        return self.kept(c) or self.count_sources(c, True) > RESCALE_EVERY

    cdef bint in_base(self, int64_t c) noexcept:
        """Whether they are stored once, or what evidence cannot change of them."""
        if self.streamed[c]:
            return False
        if self.dynamic[c]:
            return self.count_sources(c, False) > 0
        return self.kept(c) or self.count_sources(c, False) > RESCALE_EVERY

    cdef bint kept(self, int64_t c) noexcept:
        """Whether the cells of clique c are looked at again; a root hears from nobody, so one sweep is all."""
        return self.goal == COLLECTED or (self.goal == MARGINALS and self.parent[c] >= 0)

    cdef int seat(self) except -1:
        """Give factors and likelihoods to cliques, and see which cliques evidence can change."""
        cdef Arena arena = self.arena
        cdef int64_t c, f, i, k, v, earliest, observed, cells = 0
        self.factor_head, self.factor_next = arena.ints(self.m), arena.ints(self.n_factors)
        self.likely_head, self.likely_next = arena.ints(self.m), arena.ints(self.n)
        self.moving, self.dynamic = arena.ints(self.n_factors), arena.ints(self.m)
        for c in range(self.n_cliques):
            self.factor_head[c] = self.likely_head[c] = -1
            self.dynamic[c] = self.masked
        for k in range(self.n_factors - 1, -1, -1):
            f = self.factors[k]
            earliest, observed = -1, 0
            for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
                v = self.scope[i]
                if self.role[v] == SLICED:
                    observed += 1
                elif self.home[v] < 0:
                    raise ValueError(f"variable {v} of factor {f} is not eliminated")
                elif earliest < 0 or self.position[v] < self.position[earliest]:
                    earliest = v
            self.moving[k] = observed
            if earliest < 0:
                self.factor_next[k] = -2
                continue
            c = self.lowest(self.home[earliest], f)
            self.factor_next[k] = self.factor_head[c]
            self.factor_head[c] = k
            if observed:
                self.dynamic[c] = 1
        self.seat_likelihoods()
        for c in range(self.n_cliques - 1, -1, -1):
            if self.dynamic[c] and self.parent[c] >= 0:
                self.dynamic[self.parent[c]] = 1
        self.in_run, self.streamed = arena.ints(self.m), arena.ints(self.m)
        for c in range(self.n_cliques):
            cells += self.size[c]
        for c in range(self.n_cliques):
            self.in_run[c] = self.dynamic[c] if self.parent[c] < 0 else self.in_run[self.parent[c]]
            self.streamed[c] = (
                self.streams(c, cells)
                and self.all_sources(c) <= (RESCALE_EVERY if self.in_run[c] else MOST_SOURCES)
            )
        return 0

    cdef bint streams(self, int64_t c, int64_t cells) noexcept:
        """Whether clique c of a tree of so many cells is too large to be stored."""
        if self.goal == MARGINALS and self.in_run[c]:
            return self.dynamic[c] and self.size[c] > self.again and cells > self.tree
        if self.goal == MARGINALS:
            return self.size[c] > self.stream and not self.store
        return self.goal == QUERY and self.size[c] > self.stream

    cdef int seat_likelihoods(self) except -1:
        """Give the likelihood of each variable that may have one to the smallest clique that holds it."""
        cdef int64_t c, i, k, v
        cdef int64_t* smallest
        for v in range(self.n):
            if self.role[v] == LIKELIHOOD or self.role[v] == MASKED:
                break
        else:
            return 0
        smallest = self.arena.ints(self.n)
        for v in range(self.n):
            smallest[v] = -1
        for c in range(self.n_cliques):
            for i in range(self.axes_ptr[c], self.axes_ptr[c + 1]):
                v = self.axes[i]
                if smallest[v] < 0 or self.size[c] < self.size[smallest[v]]:
                    smallest[v] = c
        for k in range(self.m - 1, -1, -1):
            v = self.order[k]
            if self.role[v] == LIKELIHOOD or self.role[v] == MASKED:
                c = smallest[v]
                self.likely_next[v] = self.likely_head[c]
                self.likely_head[c] = v
                self.dynamic[c] = 1
        return 0

    cdef int64_t lowest(self, int64_t c, int64_t f) noexcept:
        """From a large clique on, always to the smallest neighbour that holds what is left of factor f."""
        cdef int64_t i, d, best, seen, free = 0
        if self.size[c] <= ORDERED:
            return c
        for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
            if self.role[self.scope[i]] != SLICED:
                self.mark[self.scope[i]] = 1
                free += 1
        while self.size[c] > ORDERED:
            best, seen, d = -1, 0, self.child_head[c]
            while True:
                if d < 0 or seen == RUN:
                    d = self.parent[c]
                    seen = RUN + 1
                if (d >= 0 and 2 * self.size[d] <= self.size[c]
                        and (best < 0 or self.size[d] < self.size[best] or (self.size[d] == self.size[best] and d < best))
                        and self.count_marked(self.maker[d], 1) == free):
                    best = d
                if seen > RUN:
                    break
                seen += 1
                d = self.child_next[d]
            if best < 0:
                break
            c = best
        for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
            self.mark[self.scope[i]] = 0
        return c

    cdef int64_t all_sources(self, int64_t c) noexcept:
        cdef int64_t count = 0, k = self.factor_head[c]
        while k >= 0:
            count += 1
            k = self.factor_next[k]
        k = self.child_head[c]
        while k >= 0:
            count += 1
            k = self.child_next[k]
        k = self.likely_head[c]
        while k >= 0:
            count += 1
            k = self.likely_next[k]
        return count

    cdef object layout(self):
        """Write the tapes."""
        cdef Arena arena = self.arena
        cdef int64_t c, k, start
        cdef Tape tape
        self.dims = arena.ints(self.n)
        self.from_parent, self.from_own = arena.ints(self.m), arena.ints(self.m)
        self.ordered = arena.ints(self.m)
        self.scratch_size = 1
        self.plan_reads()
        self.once.write(CLEAR, 0, self.clear)
        self.run.write(CLEAR, 0, self.clear)
        for k in range(self.n_factors):
            if self.factor_next[k] == -2:
                tape = self.run if self.moving[k] else self.once
                start = tape.begin(SCALAR, 2 + 2 * self.moving[k])
                tape.put(self.table_ptr[self.factors[k]])
                tape.put(self.moving[k])
                self.put_moves(tape, k)
                tape.end(start)
        for c in range(self.n_cliques - 1, -1, -1):
            self.gather(c)
        if self.goal == MARGINALS:
            for c in range(self.n_cliques):
                self.scatter(c, self.run if self.in_run[c] else self.once)
        self.finish()
        if self.run.size <= 4:
            self.run.size = 0
        return Layout(
            self.once.array(),
            self.run.array(),
            ints_array(self.axes_ptr, self.n_cliques + 1),
            ints_array(self.axes, self.total_axes),
            ints_array(self.parent, self.n_cliques),
            ints_array(self.separator, self.n_cliques),
            ints_array(self.clique, self.n_cliques),
            ints_array(self.dynamic, self.n_cliques),
            ints_array(self.out, self.n),
            self.out_size,
            self.work_size,
            self.base_size,
            self.whole_size,
            self.scratch_size,
            self.table_ptr[cnp.PyArray_SIZE(self.model[2]) - 1],
        )

    cdef int gather(self, int64_t c) except -1:
        """Collect: clique c is the product of its factors and its children's messages; then its own message."""
        cdef int64_t still = self.count_sources(c, False)
        cdef bint alone = self.parent[c] < 0 and self.goal == MARGINALS
        cdef bint keep = self.kept(c) and not self.streamed[c]
        cdef Tape tape = self.run if self.dynamic[c] else self.once
        if not self.dynamic[c]:
            self.product(c, tape, NOTHING, False, still, True, keep)
        elif self.streamed[c]:
            if self.compact(c):
                self.find_constant(c)
                self.begin_sweep_over(self.once, self.clique[c], self.constant, self.n_constant, NOTHING, True)
                self.put_constants(c, WORK, False)
                self.end_sweep()
            self.begin_clique(tape, c, NOTHING, False)
            self.put_base(c)
            self.put_changes(c)
            self.put_sends(c)
            self.end_sweep()
        elif still:
            self.product(c, self.once, NOTHING, False, still, False, True)
            self.product(c, tape, BASE, True, self.count_sources(c, True), True, keep)
        else:
            self.product(c, tape, NOTHING, True, self.count_sources(c, True), True, keep)
        self.close(c, tape)
        return self.put_derived(c, tape) if alone else 0

    cdef int put_base(self, int64_t c) except -1:
        """What evidence cannot change of a clique that a run does not store: its product, or its sources."""
        if self.compact(c):
            self.find_constant(c)
            self.set_strides(self.constant, 0, self.n_constant)
            self.step(MUL, BASE, self.clique[c], -1)
            self.unset_strides(self.constant, 0, self.n_constant)
        else:
            self.put_constants(c, BASE, True)
        return 0

    cdef int put_constants(self, int64_t c, int64_t buffer, bint whole) except -1:
        """The sources of a clique that no evidence can reach; the messages are in this buffer.

        `whole` says that all its axes are swept.
        """
        cdef int64_t k = self.factor_head[c]
        while k >= 0:
            if not self.moving[k]:
                self.table_step(k)
            k = self.factor_next[k]
        k = self.child_head[c]
        while k >= 0:
            if not self.dynamic[k]:
                self.separator_step(MUL, buffer, k, self.message[k], &self.from_parent[k] if whole else NULL)
            k = self.child_next[k]
        return 0

    cdef int put_changes(self, int64_t c) except -1:
        """The other sources."""
        cdef int64_t k = self.factor_head[c]
        while k >= 0:
            if self.moving[k]:
                self.table_step(k)
            k = self.factor_next[k]
        k = self.child_head[c]
        while k >= 0:
            if self.dynamic[k]:
                self.separator_step(MUL, WORK, k, self.message[k], &self.from_parent[k])
            k = self.child_next[k]
        k = self.likely_head[c]
        while k >= 0:
            self.likely_step(k)
            k = self.likely_next[k]
        return 0

    cdef int likely_step(self, int64_t v) except -1:
        self.stride[v] = 1
        self.step(LIKELY, TABLES, v, -1)
        self.stride[v] = 0
        return 0

    cdef int put_sends(self, int64_t c) except -1:
        self.separator_step(ADD, WORK, c, self.message[c], &self.from_own[c])
        if c == 0 and self.n_targets:
            self.set_strides(self.targets, 0, self.n_targets)
            self.step(ADD, OUT, 0, -1)
            self.unset_strides(self.targets, 0, self.n_targets)
        if self.parent[c] < 0 and self.goal == MARGINALS:
            self.put_shares(c)
        return 0

    cdef int64_t count_sources(self, int64_t c, bint changing) noexcept:
        cdef int64_t count = 0, k = self.factor_head[c]
        while k >= 0:
            count += (self.moving[k] > 0) == changing
            k = self.factor_next[k]
        k = self.child_head[c]
        while k >= 0:
            count += self.dynamic[k] == changing
            k = self.child_next[k]
        if changing:
            k = self.likely_head[c]
            while k >= 0:
                count += 1
                k = self.likely_next[k]
        return count

    cdef int product(self, int64_t c, Tape tape, int64_t left, bint changing, int64_t count, bint sends,
                     bint keep) except -1:
        """Sweep over clique c; after each few factors its largest cell is made 1 again."""
        cdef int64_t k, v, done = 0
        self.begin_clique(tape, c, left, keep or (count > RESCALE_EVERY and not self.streamed[c]))
        k = self.factor_head[c]
        while k >= 0:
            if (self.moving[k] > 0) == changing:
                done = self.pause(c, tape, done, count, keep)
                self.table_step(k)
            k = self.factor_next[k]
        k = self.child_head[c]
        while k >= 0:
            if self.dynamic[k] == changing:
                done = self.pause(c, tape, done, count, keep)
                self.separator_step(MUL, WORK, k, self.message[k], &self.from_parent[k])
            k = self.child_next[k]
        if changing:
            v = self.likely_head[c]
            while v >= 0:
                done = self.pause(c, tape, done, count, keep)
                self.likely_step(v)
                v = self.likely_next[v]
        if sends:
            self.put_sends(c)
        return self.end_sweep()

    cdef int64_t pause(self, int64_t c, Tape tape, int64_t done, int64_t count, bint keep) except -1:
        if done and done % RESCALE_EVERY == 0 and not self.streamed[c]:
            self.end_sweep()
            tape.write(RESCALE, self.clique[c], self.size[c])
            self.begin_clique(tape, c, WORK, keep or count - done > RESCALE_EVERY)
        return done + 1

    cdef int close(self, int64_t c, Tape tape) except -1:
        if self.parent[c] < 0:
            return tape.write(TOTAL, self.message[c])
        return tape.write(NORM, self.message[c], self.rows[c])

    cdef int plan_reads(self) except -1:
        """Where each posterior is read, and so which cliques the distribution must reach."""
        cdef Arena arena = self.arena
        cdef int64_t c, k, v, size
        cdef bint is_message
        self.swept, self.reached = arena.ints(self.m), arena.ints(self.m)
        self.best, self.source, self.out = arena.ints(self.n), arena.ints(self.n), arena.ints(self.n)
        self.read_head, self.read_next = arena.ints(self.m), arena.ints(self.n)
        self.out_size = 1 if self.n_targets else 0
        for k in range(self.n_targets):
            self.out_size *= self.cards[self.targets[k]]
        for v in range(self.n):
            self.out[v] = -1
        for c in range(self.n_cliques):
            self.read_head[c] = -1
        if self.goal == MARGINALS:
            for c in range(self.n_cliques):
                for k in range(self.axes_ptr[c], self.axes_ptr[c + 1]):
                    v = self.axes[k]
                    is_message = k - self.axes_ptr[c] < self.separator[c]
                    size = self.rows[c] if is_message else self.size[c]
                    if self.source[v] == 0 or size < self.best[v]:
                        self.best[v] = size
                        self.source[v] = -(c + 1) if is_message else c + 1
            for v in range(self.n):
                if self.source[v]:
                    self.out[v] = self.out_size
                    self.out_size += self.cards[v]
            for v in range(self.n - 1, -1, -1):
                if self.source[v]:
                    c = (self.source[v] if self.source[v] > 0 else -self.source[v]) - 1
                    self.read_next[v] = self.read_head[c]
                    self.read_head[c] = v
                    if self.source[v] > 0:
                        self.swept[c] = 1
                    else:
                        self.reached[c] = 1
        for c in range(self.n_cliques - 1, -1, -1):
            if self.swept[c]:
                self.reached[c] = 1
            if self.reached[c] and self.parent[c] >= 0:
                self.swept[self.parent[c]] = 1
        return 0

    cdef int scatter(self, int64_t c, Tape tape) except -1:
        """Distribute: new over old from the parent, the clique scaled by it, its marginals added up where needed."""
        cdef int64_t start = self.axes_ptr[c], stop = start + self.separator[c]
        cdef int64_t left = BASE if self.in_run[c] and not self.dynamic[c] else WORK
        if not self.reached[c] or self.parent[c] < 0:
            return 0
        tape.write(RATIO, self.fresh[c], self.message[c], self.rows[c], left)
        if self.add_reads(c, True, False):
            self.begin_sweep(tape, self.message[c], start, stop, WORK, False)
            self.add_reads(c, True, True)
            self.end_sweep()
        if not self.swept[c]:
            return 0
        self.begin_clique(tape, c, NOTHING if self.streamed[c] else left, False)
        if self.streamed[c] and self.dynamic[c]:
            self.put_base(c)
            self.put_changes(c)
        elif self.streamed[c]:
            self.put_constants(c, WORK, True)
        self.separator_step(MUL, WORK, c, self.fresh[c], &self.from_own[c])
        self.put_shares(c)
        self.end_sweep()
        return self.put_derived(c, tape)

    cdef int put_shares(self, int64_t c) except -1:
        """What clique c gives: its children's marginals (some from a smaller region, later), and posteriors."""
        cdef int64_t count = 0, known = 0, i, j, k, chosen
        cdef int64_t regions[FEW]
        k = self.child_head[c]
        while k >= 0:
            if self.reached[k]:
                i = count
                while i > 0 and self.rows[self.ordered[i - 1]] < self.rows[k]:
                    self.ordered[i] = self.ordered[i - 1]
                    i -= 1
                self.ordered[i] = k
                count += 1
            k = self.child_next[k]
        self.n_ordered = count
        if self.parent[c] >= 0:
            regions[0] = c
            known = 1
        for i in range(count):
            k = self.ordered[i]
            chosen = -1
            for j in range(known):
                if (chosen < 0 or self.rows[regions[j]] < self.rows[chosen]) and self.holds(regions[j], k):
                    chosen = regions[j]
            self.mark[i] = -1
            if chosen >= 0 and 2 * self.rows[chosen] <= self.size[c]:
                self.mark[i] = chosen
            else:
                self.separator_step(ADD, WORK, k, self.fresh[k], &self.from_parent[k])
            if known < FEW:
                regions[known] = k
                known += 1
        self.add_reads(c, False, True)
        return 0

    cdef int put_derived(self, int64_t c, Tape tape) except -1:
        """The children's marginals that `put_shares` left to smaller regions."""
        cdef int64_t i, k, chosen, start
        for i in range(self.n_ordered):
            chosen = self.mark[i]
            self.mark[i] = 0
            if chosen >= 0:
                k = self.ordered[i]
                start = self.axes_ptr[chosen]
                self.begin_sweep(tape, self.message[c] if chosen == c else self.fresh[chosen], start,
                                 start + self.separator[chosen], WORK, False)
                self.separator_step(ADD, WORK, k, self.fresh[k])
                self.end_sweep()
        return 0

    cdef bint holds(self, int64_t wide, int64_t narrow) noexcept:
        """Whether the separator of one clique holds that of another."""
        cdef int64_t i = self.axes_ptr[wide], stop = i + self.separator[wide]
        cdef int64_t j = self.axes_ptr[narrow], end = j + self.separator[narrow], k
        while j < end:
            k = i
            while k < stop and self.axes[k] != self.axes[j]:
                k += 1
            if k == stop:
                return False
            j += 1
        return True

    cdef int add_reads(self, int64_t c, bint from_message, bint write) except -1:
        """Write a step for each marginal read from the message of c, or from c; whether there is one."""
        cdef int64_t v = self.read_head[c]
        cdef int some = 0
        while v >= 0:
            if (self.source[v] < 0) == from_message:
                some = 1
                if write:
                    self.read_step(v)
            v = self.read_next[v]
        return some

    cdef int read_step(self, int64_t v) except -1:
        """A step that adds up the marginal of one variable: what is before its axis and what is after it are joined."""
        cdef Tape tape = self.sweeping
        cdef int64_t i, at = 0, before = 1, after = 1, depth = 0, n = self.sweep_depth
        cdef Words axes = self.sweep_axes
        cdef int64_t* word
        if self.sweep_outer or self.cards[v] == 1:
            self.stride[v] = 1
            self.step(ADD, OUT, self.out[v], -1)
            self.stride[v] = 0
            return 0
        while axes[at] != v:
            before *= self.dims[at]
            at += 1
        for i in range(at + 1, n):
            after *= self.dims[i]
        depth = 1 + (before > 1) + (after > 1)
        tape.reserve(12)
        word = tape.words + tape.size
        word[0], word[1], word[2], word[3], word[4], word[5] = ADD, 6 + 2 * depth, OUT, self.out[v], 0, depth
        word += 6
        if before > 1:
            word[0], word[depth] = before, 0
            word += 1
        word[0], word[depth] = self.cards[v], 1
        if after > 1:
            word[1], word[depth + 1] = after, 0
        tape.size += 6 + 2 * depth
        tape.words[self.sweep_start + 8] += 1
        return 0

    cdef int finish(self) except -1:
        cdef int64_t c, v
        cdef bint from_message
        cdef Tape tape
        if self.n_targets:
            (self.run if self.in_run[0] else self.once).write(FINISH, 0, self.out_size)
        for c in range(self.n_cliques):
            tape = self.run if self.in_run[c] else self.once
            for from_message in (True, False):
                v = self.read_head[c]
                while v >= 0:
                    if (self.source[v] < 0) == from_message:
                        tape.write(FINISH, self.out[v], self.cards[v])
                    v = self.read_next[v]
        return 0

    cdef int begin_clique(self, Tape tape, int64_t c, int64_t left, bint keep) except -1:
        return self.begin_sweep(tape, self.clique[c], self.axes_ptr[c], self.axes_ptr[c + 1], left, keep)

    cdef int begin_sweep(self, Tape tape, int64_t region, int64_t start, int64_t stop, int64_t left,
                         bint keep) except -1:
        return self.begin_sweep_over(tape, region, self.axes + start, stop - start, left, keep)

    cdef int begin_sweep_over(self, Tape tape, int64_t region, Words axes, int64_t n, int64_t left,
                              bint keep) except -1:
        cdef int64_t i, size = 1, slab, outer = 0
        cdef int64_t* dims = self.dims
        cdef int64_t* word
        for i in range(n):
            dims[i] = self.cards[axes[i]]
            size *= dims[i]
        slab = size
        while slab > self.slab and outer < n - 1:
            slab //= dims[outer]
            outer += 1
        if slab > self.scratch_size:
            self.scratch_size = slab
        self.sweep_start = tape.begin(SWEEP, 7 + outer)
        self.sweeping, self.sweep_axes, self.sweep_depth, self.sweep_outer = tape, axes, n, outer
        word = tape.words + tape.size
        word[0], word[1], word[2], word[3], word[5], word[6] = region, size, left, keep, outer, 0
        word[4] = size // slab if outer else 1
        for i in range(outer):
            word[7 + i] = dims[i]
        tape.size += 7 + outer
        return 0

    cdef int step(self, int64_t kind, int64_t buffer, int64_t offset, int64_t k) except -1:
        """A step whose operand moves by `stride`; if k is a factor, also by its observed variables."""
        cdef Tape tape = self.sweeping
        cdef int64_t n = self.sweep_depth, outer = self.sweep_outer, i, depth
        cdef int64_t moves = self.moving[k] if k >= 0 else 0
        cdef int64_t steps[DEEPEST]
        cdef Words axes = self.sweep_axes
        cdef int64_t* word
        tape.reserve(7 + 2 * moves + outer + 2 * n)
        if moves:
            tape.size += 6
            self.put_moves(tape, k)
            tape.size -= 6 + 2 * moves
        word = tape.words + tape.size
        word[0], word[2], word[3], word[4] = kind, buffer, offset, moves
        word += 6 + 2 * moves
        for i in range(outer):
            word[i] = self.stride[axes[i]]
        word += outer
        depth = fuse(n - outer, axes + outer, self.dims + outer, self.stride, word, steps)
        for i in range(depth):
            word[depth + i] = steps[i]
        word = tape.words + tape.size
        word[1], word[5] = 6 + 2 * moves + outer + 2 * depth, depth
        tape.size += word[1]
        tape.words[self.sweep_start + 8] += 1
        return 0

    cdef int end_sweep(self) except -1:
        self.sweeping.end(self.sweep_start)
        return 0

    cdef int table_step(self, int64_t k) except -1:
        cdef int64_t f = self.factors[k]
        self.set_strides(self.scope, self.scope_ptr[f], self.scope_ptr[f + 1])
        self.step(MUL, TABLES, self.table_ptr[f], k)
        self.unset_strides(self.scope, self.scope_ptr[f], self.scope_ptr[f + 1])
        return 0

    cdef int separator_step(self, int64_t kind, int64_t buffer, int64_t c, int64_t offset,
                            int64_t* known=NULL) except -1:
        """A step whose operand is a table over the separator of clique c.

        The second time that one clique is swept with the same separator, the walk is that of the first. `known` is the
        place of that step plus one (0 while there is none), negative on the tape of a run.
        """
        cdef int64_t start = self.axes_ptr[c], stop = start + self.separator[c], at = self.sweeping.size
        if known != NULL and known[0] != 0:
            return self.copy_step(kind, buffer, offset, known[0])
        self.set_strides(self.axes, start, stop)
        self.step(kind, buffer, offset, -1)
        self.unset_strides(self.axes, start, stop)
        if known != NULL:
            known[0] = -(at + 1) if self.sweeping is self.run else at + 1
        return 0

    cdef int copy_step(self, int64_t kind, int64_t buffer, int64_t offset, int64_t known) except -1:
        """A step that walks as another does, which has no moves; see `separator_step`."""
        cdef Tape tape = self.sweeping, other = self.once if known > 0 else self.run
        cdef int64_t at = (known if known > 0 else -known) - 1, n = other.words[at + 1]
        tape.reserve(n)
        memcpy(tape.words + tape.size, other.words + at, n * sizeof(int64_t))
        tape.words[tape.size] = kind
        tape.words[tape.size + 2] = buffer
        tape.words[tape.size + 3] = offset
        tape.size += n
        tape.words[self.sweep_start + 8] += 1
        return 0

    cdef void set_strides(self, Words axes, int64_t start, int64_t stop) noexcept:
        cdef int64_t i, step = 1
        for i in range(stop - 1, start - 1, -1):
            self.stride[axes[i]] = step
            step *= self.cards[axes[i]]

    cdef void unset_strides(self, Words axes, int64_t start, int64_t stop) noexcept:
        cdef int64_t i
        for i in range(start, stop):
            self.stride[axes[i]] = 0

    cdef void put_moves(self, Tape tape, int64_t k) noexcept:
        """Pairs (v, stride) of the sliced variables of a factor."""
        cdef int64_t f = self.factors[k], i, step = 1
        for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
            step *= self.cards[self.scope[i]]
        for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
            step //= self.cards[self.scope[i]]
            if self.role[self.scope[i]] == SLICED:
                tape.put(self.scope[i])
                tape.put(step)


cdef inline int64_t fuse(int64_t n, Words axes, const int64_t* sizes, const int64_t* stride, int64_t* dims,
                         int64_t* steps) noexcept:
    """Drop axes of one state and join neighbours that one stride can walk; how many are left, at least one."""
    cdef int64_t i, dim, step, joined, depth = 0, before = -1
    for i in range(n):
        dim, step = sizes[i], stride[axes[i]]
        if dim == 1:
            continue
        # no branch: whether axes join is hard to foresee
        joined = before == step * dim
        depth += 1 - joined
        dims[depth - 1] = dim * (dims[depth - 1] if joined else 1)
        steps[depth - 1] = before = step
    if depth == 0:
        dims[0], steps[0], depth = 1, 0, 1
    return depth
