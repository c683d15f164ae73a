# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""From an elimination order to a junction forest laid out in memory: the compiled twin of `layout_py`.

The steps and their order are those of `layout_py`, and so is each word of the tapes.
"""

import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from bbn.kernels.tape import Layout

ctypedef const int64_t* Words

cdef enum:
    SCALAR = 0
    ONES = 1
    MUL = 2
    LIKELY = 3
    RESCALE = 4
    UP = 5
    TOTAL = 6
    DOWN = 7
    READ = 8
    NOTHING = 0
    TABLES = 0
    BASE = 1
    WORK = 2
    FREE = 0
    SLICED = 1
    LIKELIHOOD = 2
    MASKED = 3
    RESCALE_EVERY = 8


cdef class Arena:
    """Zeroed arrays that live as long as this object."""

    cdef void* blocks[64]
    cdef int count

    def __dealloc__(self):
        cdef int k
        for k in range(self.count):
            free(self.blocks[k])

    cdef int64_t* ints(self, int64_t n) except NULL:
        cdef void* block = calloc(n + 1, sizeof(int64_t))
        if block == NULL:
            raise MemoryError
        self.blocks[self.count] = block
        self.count += 1
        return <int64_t*> block


cdef class Tape:
    """A growing array of words."""

    cdef int64_t* words
    cdef int64_t size, room, start

    def __cinit__(self):
        self.room = 1024
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

    cdef int begin(self, int64_t op, int64_t room) except -1:
        self.reserve(room + 2)
        self.start = self.size
        self.words[self.size] = op
        self.size += 2
        return 0

    cdef inline void put(self, int64_t word) noexcept:
        self.words[self.size] = word
        self.size += 1

    cdef inline void end(self) noexcept:
        self.words[self.start + 1] = self.size - self.start

    cdef object array(self):
        return ints_array(self.words, self.size)


cdef object ints_array(const int64_t* source, int64_t n):
    out = np.empty(n, np.int64)
    cdef int64_t[::1] view = out
    if n:
        memcpy(&view[0], source, n * sizeof(int64_t))
    return out


cdef inline Words pointer(const int64_t[::1] view):
    return &view[0] if view.shape[0] else NULL


def reduce_scopes(const int64_t[::1] scope_ptr, const int64_t[::1] scope, const int64_t[::1] heads,
                  const int64_t[::1] role, const int64_t[::1] wanted):
    """Drop barren factors and observed variables; see `layout_py.reduce_scopes`."""
    cdef int64_t n = role.shape[0], total = heads.shape[0]
    cdef int64_t f, v, i, u, top = 0, kept = 0, size = 0
    cdef Arena arena = Arena()
    cdef int64_t* relevant = arena.ints(n)
    cdef int64_t* of_head = arena.ints(n)
    cdef int64_t* stack = arena.ints(n)
    cdef int64_t* factors = arena.ints(total)
    cdef int64_t* ptr = arena.ints(total + 1)
    cdef int64_t* reduced = arena.ints(scope.shape[0])
    for f in range(total):
        if heads[f] >= 0:
            of_head[heads[f]] = f + 1
    for v in range(n):
        if wanted[v] or role[v] != FREE:
            relevant[v] = 1
            stack[top] = v
            top += 1
    for f in range(total):
        if heads[f] < 0:
            for i in range(scope_ptr[f], scope_ptr[f + 1]):
                if not relevant[scope[i]]:
                    relevant[scope[i]] = 1
                    stack[top] = scope[i]
                    top += 1
    while top:
        top -= 1
        v = stack[top]
        if of_head[v]:
            f = of_head[v] - 1
            for i in range(scope_ptr[f], scope_ptr[f + 1]):
                u = scope[i]
                if not relevant[u]:
                    relevant[u] = 1
                    stack[top] = u
                    top += 1
    for f in range(total):
        if heads[f] >= 0 and not relevant[heads[f]]:
            continue
        factors[kept] = f
        for i in range(scope_ptr[f], scope_ptr[f + 1]):
            if role[scope[i]] != SLICED:
                reduced[size] = scope[i]
                size += 1
        kept += 1
        ptr[kept] = size
    return ints_array(factors, kept), ints_array(ptr, kept + 1), ints_array(reduced, size)


def cells(const int64_t[::1] cards, const int64_t[::1] order, const int64_t[::1] ptr,
          const int64_t[::1] neighbours):
    """The number of cells of each maximal elimination clique; see `triangulate_py.cells`."""
    cdef int64_t m = order.shape[0], k, i, parent
    cdef Arena arena = Arena()
    cdef int64_t* position = arena.ints(cards.shape[0])
    cdef int64_t* absorbed = arena.ints(m)
    out_array = np.empty(m)
    cdef double[::1] out = out_array
    cdef double product
    for k in range(m):
        position[order[k]] = k
    for k in range(m):
        product = cards[order[k]]
        parent = m
        for i in range(ptr[k], ptr[k + 1]):
            product *= cards[neighbours[i]]
            if position[neighbours[i]] < parent:
                parent = position[neighbours[i]]
        out[k] = 0.0 if absorbed[k] else product
        if parent < m and ptr[parent + 1] - ptr[parent] == ptr[k + 1] - ptr[k] - 1:
            absorbed[parent] = 1
    return out_array


def lay_out(cards, scope_ptr, scope, table_ptr, factors, role, elimination, targets, bint everything):
    """Lay a junction forest out and write its tapes; see `layout_py.lay_out`."""
    cdef Writer writer = Writer()
    writer.take(cards, scope_ptr, scope, table_ptr, factors, role, elimination, targets, everything)
    writer.join_cliques()
    writer.order_axes()
    writer.place()
    writer.seat()
    return writer.layout()


cdef class Writer:
    cdef Arena arena
    cdef object keep
    cdef Tape once, run
    cdef Words cards, scope_ptr, scope, table_ptr, factors, role, order, ptr, near, targets
    cdef int64_t n, n_factors, m, n_targets, n_cliques, total_axes, work_size
    cdef bint everything, masked
    cdef int64_t *position
    cdef int64_t *home
    cdef int64_t *maker
    cdef int64_t *parent
    cdef int64_t *size
    cdef int64_t *axes_ptr
    cdef int64_t *axes
    cdef int64_t *separator
    cdef int64_t *rows
    cdef int64_t *clique
    cdef int64_t *message
    cdef int64_t *dynamic
    cdef int64_t *in_run
    cdef int64_t *child_head
    cdef int64_t *child_next
    cdef int64_t *factor_head
    cdef int64_t *factor_next
    cdef int64_t *likely_head
    cdef int64_t *likely_next
    cdef int64_t *moving
    cdef int64_t *mark
    cdef int64_t *stride
    cdef int64_t *dims
    cdef int64_t *steps
    cdef int64_t *best
    cdef int64_t *source
    cdef int64_t *scaled
    cdef int64_t *marginal
    cdef int64_t *out

    cdef int take(self, const int64_t[::1] cards, const int64_t[::1] scope_ptr, const int64_t[::1] scope,
                  const int64_t[::1] table_ptr, const int64_t[::1] factors, const int64_t[::1] role, elimination,
                  const int64_t[::1] targets, bint everything) except -1:
        cdef const int64_t[::1] order = elimination[0]
        cdef const int64_t[::1] ptr = elimination[1]
        cdef const int64_t[::1] near = elimination[2]
        cdef int64_t v
        self.keep = elimination
        self.arena = Arena()
        self.cards, self.role = pointer(cards), pointer(role)
        self.scope_ptr, self.scope, self.table_ptr = pointer(scope_ptr), pointer(scope), pointer(table_ptr)
        self.factors, self.targets = pointer(factors), pointer(targets)
        self.order, self.ptr, self.near = pointer(order), pointer(ptr), pointer(near)
        self.n, self.m, self.n_factors, self.n_targets = (
            cards.shape[0], order.shape[0], factors.shape[0], targets.shape[0])
        self.everything = everything
        self.masked = False
        for v in range(self.n):
            if self.role[v] == MASKED:
                self.masked = True
        self.once, self.run = Tape(), Tape()
        return 0

    cdef int join_cliques(self) except -1:
        """The maximal elimination cliques and their tree, rooted where the targets are, numbered parents first."""
        cdef Arena arena = self.arena
        cdef int64_t m = self.m, c = 0, k, v, i, u, p, below, above, root = -1, count, top_of_stack
        cdef int64_t* position = arena.ints(self.n)
        cdef int64_t* first = arena.ints(m)
        cdef int64_t* home = arena.ints(self.n)
        cdef int64_t* maker = arena.ints(m)
        cdef int64_t* top = arena.ints(m)
        cdef int64_t* parent = arena.ints(m)
        cdef int64_t* size = arena.ints(m)
        cdef int64_t* rank = arena.ints(m)
        cdef int64_t* numbers = arena.ints(m)
        cdef int64_t* head = arena.ints(m)
        cdef int64_t* follow = arena.ints(m)
        cdef int64_t* stack = arena.ints(m)
        self.mark = arena.ints(self.n)
        for k in range(m):
            position[self.order[k]] = k
        for v in range(self.n):
            home[v] = -1
        for k in range(m):
            first[k] = -1
            for i in range(self.ptr[k], self.ptr[k + 1]):
                p = position[self.near[i]]
                if first[k] < 0 or p < first[k]:
                    first[k] = p
        for k in range(m):
            v = self.order[k]
            if home[v] < 0:
                home[v] = c
                maker[c] = k
                c += 1
            top[home[v]] = k
            if first[k] >= 0:
                u = self.order[first[k]]
                if home[u] < 0 and self.degree(k) == 1 + self.degree(first[k]):
                    home[u] = home[v]
        self.n_cliques = c
        for c in range(self.n_cliques):
            k = top[c]
            parent[c] = home[self.order[first[k]]] if first[k] >= 0 else -1
            size[c] = self.cards[self.order[maker[c]]]
            for i in range(self.ptr[maker[c]], self.ptr[maker[c] + 1]):
                size[c] *= self.cards[self.near[i]]
        if self.n_targets:
            for i in range(self.n_targets):
                self.mark[self.targets[i]] = 1
            for c in range(self.n_cliques):
                count = self.mark[self.order[maker[c]]]
                for i in range(self.ptr[maker[c]], self.ptr[maker[c] + 1]):
                    count += self.mark[self.near[i]]
                if count == self.n_targets and (root < 0 or size[c] < size[root]):
                    root = c
            for i in range(self.n_targets):
                self.mark[self.targets[i]] = 0
            below, c = -1, root
            while c >= 0:
                above = parent[c]
                parent[c] = below
                below, c = c, above
        for c in range(self.n_cliques):
            head[c] = -1
        top_of_stack = 0
        for c in range(self.n_cliques - 1, -1, -1):
            if parent[c] < 0 and c != root:
                stack[top_of_stack] = c
                top_of_stack += 1
        if root >= 0:
            stack[top_of_stack] = root
            top_of_stack += 1
        for c in range(self.n_cliques):
            if parent[c] >= 0:
                follow[c] = head[parent[c]]
                head[parent[c]] = c
        count = 0
        while top_of_stack:
            top_of_stack -= 1
            c = stack[top_of_stack]
            rank[c] = count
            numbers[count] = c
            count += 1
            i = head[c]
            while i >= 0:
                stack[top_of_stack] = i
                top_of_stack += 1
                i = follow[i]
        self.position, self.home = position, home
        self.maker, self.parent, self.size = arena.ints(m), arena.ints(m), arena.ints(m)
        self.child_head, self.child_next = arena.ints(m), arena.ints(m)
        self.total_axes = 0
        for k in range(self.n_cliques):
            c = numbers[k]
            self.maker[k], self.size[k] = maker[c], size[c]
            self.parent[k] = rank[parent[c]] if parent[c] >= 0 else -1
            self.child_head[k] = -1
            self.total_axes += 1 + self.degree(maker[c])
        for k in range(self.n_cliques - 1, -1, -1):
            p = self.parent[k]
            if p >= 0:
                self.child_next[k] = self.child_head[p]
                self.child_head[p] = k
        for v in range(self.n):
            if home[v] >= 0:
                home[v] = rank[home[v]]
        return 0

    cdef inline int64_t degree(self, int64_t k) noexcept:
        return self.ptr[k + 1] - self.ptr[k]

    cdef int order_axes(self) except -1:
        """Separator first, as in the parent; what was eliminated last comes first among the rest."""
        cdef Arena arena = self.arena
        cdef int64_t c, p, i, j, v, at = 0, front, length
        self.axes_ptr, self.axes = arena.ints(self.m + 1), arena.ints(self.total_axes)
        self.separator = arena.ints(self.m)
        for c in range(self.n_cliques):
            self.axes_ptr[c] = at
            length = 1 + self.degree(self.maker[c])
            for j in range(length):
                self.mark[self.member(c, j)] = 1
            p = self.parent[c]
            front = at
            if p >= 0:
                for i in range(self.axes_ptr[p], self.axes_ptr[p + 1]):
                    if self.mark[self.axes[i]]:
                        self.axes[front] = self.axes[i]
                        self.mark[self.axes[i]] = 0
                        front += 1
                self.separator[c] = front - at
            elif c == 0:
                for i in range(self.n_targets):
                    self.axes[front] = self.targets[i]
                    self.mark[self.targets[i]] = 0
                    front += 1
            i = front
            for j in range(length):
                v = self.member(c, j)
                if self.mark[v]:
                    self.mark[v] = 0
                    p = i
                    while p > front and self.position[self.axes[p - 1]] < self.position[v]:
                        self.axes[p] = self.axes[p - 1]
                        p -= 1
                    self.axes[p] = v
                    i += 1
            at += length
            self.axes_ptr[c + 1] = at
        return 0

    cdef inline int64_t member(self, int64_t c, int64_t j) noexcept:
        cdef int64_t k = self.maker[c]
        return self.order[k] if j == 0 else self.near[self.ptr[k] + j - 1]

    cdef int place(self) except -1:
        """Offsets of the cliques and of the separators to their parents."""
        cdef Arena arena = self.arena
        cdef int64_t c, i, offset = 0
        self.rows, self.clique, self.message = arena.ints(self.m), arena.ints(self.m), arena.ints(self.m)
        for c in range(self.n_cliques):
            self.rows[c] = 1
            for i in range(self.axes_ptr[c], self.axes_ptr[c] + self.separator[c]):
                self.rows[c] *= self.cards[self.axes[i]]
            self.clique[c] = offset
            self.message[c] = offset + self.size[c]
            offset += self.size[c] + (self.rows[c] if self.parent[c] >= 0 else 0)
        self.work_size = offset
        return 0

    cdef int seat(self) except -1:
        """Give factors and likelihoods to cliques, and see which cliques evidence can change."""
        cdef Arena arena = self.arena
        cdef int64_t c, f, i, k, v, earliest, observed
        cdef int64_t* smallest = arena.ints(self.n)
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
                elif earliest < 0 or self.position[v] < self.position[earliest]:
                    earliest = v
            self.moving[k] = observed
            if earliest < 0:
                self.factor_next[k] = -2
                continue
            c = self.home[earliest]
            self.factor_next[k] = self.factor_head[c]
            self.factor_head[c] = k
            if observed:
                self.dynamic[c] = 1
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
        for c in range(self.n_cliques - 1, -1, -1):
            if self.dynamic[c] and self.parent[c] >= 0:
                self.dynamic[self.parent[c]] = 1
        return 0

    cdef object layout(self):
        """Write the tapes."""
        cdef Arena arena = self.arena
        cdef int64_t c, k, out_size, widest = -1
        cdef Tape tape
        self.stride = arena.ints(self.n)
        self.dims, self.steps = arena.ints(self.n), arena.ints(self.n)
        self.plan_reads()
        for k in range(self.n_factors):
            if self.factor_next[k] == -2:
                tape = self.run if self.moving[k] else self.once
                tape.begin(SCALAR, 2 + 2 * self.moving[k])
                tape.put(self.table_ptr[self.factors[k]])
                tape.put(self.moving[k])
                self.put_moves(tape, k)
                tape.end()
        for c in range(self.n_cliques - 1, -1, -1):
            self.gather(c)
        for c in range(self.n_cliques):
            self.scatter(c, self.run if self.in_run[c] else self.once)
            if self.parent[c] >= 0 and self.rows[c] > widest:
                widest = self.rows[c]
        out_size = self.read()
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
            out_size,
            self.work_size,
            widest if widest > 0 else 1,
        )

    cdef int gather(self, int64_t c) except -1:
        """Collect: clique c is the product of its factors and its children's messages; then its own message."""
        cdef int64_t still, moving, left
        still = self.multiply(c, self.once, NOTHING, False)
        if not self.dynamic[c]:
            if not still:
                self.ones(c, self.once)
            return self.send(c, self.once)
        left = BASE if still else NOTHING
        moving = self.multiply(c, self.run, left, True)
        if not moving:
            if still:
                self.run.begin(MUL, 8)
                self.run.put(self.clique[c])
                self.run.put(NOTHING)
                self.run.put(BASE)
                self.run.put(self.clique[c])
                self.run.put(0)
                self.run.put(1)
                self.run.put(self.size[c])
                self.run.put(1)
                self.run.end()
            else:
                self.ones(c, self.run)
        cdef int64_t v = self.likely_head[c]
        while v >= 0:
            self.run.begin(LIKELY, 5)
            self.run.put(v)
            self.run.put(self.clique[c])
            self.put_split(self.run, self.axes_ptr[c], self.axes_ptr[c + 1], v)
            self.run.end()
            v = self.likely_next[v]
        return self.send(c, self.run)

    cdef int ones(self, int64_t c, Tape tape) except -1:
        tape.begin(ONES, 2)
        tape.put(self.clique[c])
        tape.put(self.size[c])
        tape.end()
        return 0

    cdef int64_t multiply(self, int64_t c, Tape tape, int64_t left, bint changing) except -1:
        """Write the products of clique c with its changing (or its constant) sources; how many there are."""
        cdef int64_t count = 0, k = self.factor_head[c], child, depth, f, i, step, v
        while k >= 0:
            if (self.moving[k] > 0) == changing:
                f = self.factors[k]
                step = 1
                for i in range(self.scope_ptr[f + 1] - 1, self.scope_ptr[f] - 1, -1):
                    v = self.scope[i]
                    self.stride[v] = step
                    step *= self.cards[v]
                depth = self.fuse(c)
                for i in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
                    self.stride[self.scope[i]] = 0
                tape.begin(MUL, 6 + 2 * self.moving[k] + 2 * depth)
                tape.put(self.clique[c])
                tape.put(left)
                tape.put(TABLES)
                tape.put(self.table_ptr[f])
                tape.put(self.moving[k])
                tape.put(depth)
                self.put_moves(tape, k)
                self.put_walk(tape, depth)
                tape.end()
                count += 1
                left = WORK
                self.rescale(c, tape, count)
            k = self.factor_next[k]
        child = self.child_head[c]
        while child >= 0:
            if self.dynamic[child] == changing:
                depth = self.separator_walk(c, child)
                tape.begin(MUL, 6 + 2 * depth)
                tape.put(self.clique[c])
                tape.put(left)
                tape.put(WORK)
                tape.put(self.message[child])
                tape.put(0)
                tape.put(depth)
                self.put_walk(tape, depth)
                tape.end()
                count += 1
                left = WORK
                self.rescale(c, tape, count)
            child = self.child_next[child]
        return count

    cdef int rescale(self, int64_t c, Tape tape, int64_t count) except -1:
        if count % RESCALE_EVERY == 0:
            tape.begin(RESCALE, 2)
            tape.put(self.clique[c])
            tape.put(self.size[c])
            tape.end()
        return 0

    cdef int send(self, int64_t c, Tape tape) except -1:
        if self.parent[c] < 0:
            tape.begin(TOTAL, 2)
            tape.put(self.clique[c])
            tape.put(self.size[c])
        else:
            tape.begin(UP, 4)
            tape.put(self.message[c])
            tape.put(self.clique[c])
            tape.put(self.rows[c])
            tape.put(self.size[c] // self.rows[c])
        tape.end()
        return 0

    cdef int plan_reads(self) except -1:
        """Where each posterior is read, and so which cliques the distribution must reach."""
        cdef Arena arena = self.arena
        cdef int64_t c, k, v, p, limit
        self.in_run, self.scaled, self.marginal = arena.ints(self.m), arena.ints(self.m), arena.ints(self.m)
        self.best, self.source, self.out = arena.ints(self.n), arena.ints(self.n), arena.ints(self.n)
        for c in range(self.n_cliques):
            p = self.parent[c]
            self.in_run[c] = self.dynamic[c] if p < 0 else self.in_run[p]
        if not self.everything:
            return 0
        for c in range(self.n_cliques):
            for k in range(self.axes_ptr[c], self.axes_ptr[c + 1]):
                v = self.axes[k]
                limit = self.best[v] if self.source[v] else self.size[c] + 1
                if k - self.axes_ptr[c] < self.separator[c] and self.rows[c] < limit:
                    self.best[v], self.source[v] = self.rows[c], -(c + 1)
                elif self.size[c] < limit:
                    self.best[v], self.source[v] = self.size[c], c + 1
        for v in range(self.n):
            if self.source[v] > 0:
                self.scaled[self.source[v] - 1] = 1
            elif self.source[v] < 0:
                self.marginal[-self.source[v] - 1] = 1
        for c in range(self.n_cliques - 1, -1, -1):
            if self.parent[c] >= 0 and (self.scaled[c] or self.marginal[c]):
                self.scaled[self.parent[c]] = 1
        return 0

    cdef int scatter(self, int64_t c, Tape tape) except -1:
        """Distribute: the parent's marginal over the separator, and the clique scaled by new over old."""
        cdef int64_t p = self.parent[c], depth
        if p < 0 or not (self.scaled[c] or self.marginal[c]):
            return 0
        depth = self.separator_walk(p, c)
        tape.begin(DOWN, 8 + 2 * depth)
        tape.put(self.message[c])
        tape.put(self.clique[c])
        tape.put(self.rows[c])
        tape.put(self.size[c] // self.rows[c])
        tape.put(BASE if self.in_run[c] and not self.dynamic[c] else WORK)
        tape.put(self.clique[p])
        tape.put(self.scaled[c])
        tape.put(depth)
        self.put_walk(tape, depth)
        tape.end()
        return 0

    cdef int64_t read(self) except -1:
        cdef int64_t v, c, total = 1, i, offset = 0, stop
        cdef Tape tape
        for v in range(self.n):
            self.out[v] = -1
        if self.n_targets:
            for i in range(self.n_targets):
                total *= self.cards[self.targets[i]]
            tape = self.run if self.in_run[0] else self.once
            tape.begin(READ, 5)
            tape.put(0)
            tape.put(self.clique[0])
            tape.put(1)
            tape.put(total)
            tape.put(self.size[0] // total)
            tape.end()
            return total
        for v in range(self.n):
            if self.source[v] == 0:
                continue
            c = (self.source[v] if self.source[v] > 0 else -self.source[v]) - 1
            tape = self.run if self.in_run[c] else self.once
            tape.begin(READ, 5)
            tape.put(offset)
            stop = self.axes_ptr[c + 1]
            if self.source[v] > 0:
                tape.put(self.clique[c])
            else:
                tape.put(self.message[c])
                stop = self.axes_ptr[c] + self.separator[c]
            self.put_split(tape, self.axes_ptr[c], stop, v)
            tape.end()
            self.out[v] = offset
            offset += self.cards[v]
        return offset

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

    cdef int64_t separator_walk(self, int64_t p, int64_t child) noexcept:
        """How the child's separator moves as the parent's cells are walked."""
        cdef int64_t start = self.axes_ptr[child], stop = start + self.separator[child], i, step = 1, depth
        for i in range(stop - 1, start - 1, -1):
            self.stride[self.axes[i]] = step
            step *= self.cards[self.axes[i]]
        depth = self.fuse(p)
        for i in range(start, stop):
            self.stride[self.axes[i]] = 0
        return depth

    cdef int64_t fuse(self, int64_t c) noexcept:
        """Drop axes of one state and join neighbours that one stride can walk."""
        cdef int64_t i, depth = 0, dim, step
        for i in range(self.axes_ptr[c], self.axes_ptr[c + 1]):
            dim = self.cards[self.axes[i]]
            step = self.stride[self.axes[i]]
            if dim == 1:
                continue
            if depth and self.steps[depth - 1] == step * dim:
                self.dims[depth - 1] *= dim
                self.steps[depth - 1] = step
            else:
                self.dims[depth] = dim
                self.steps[depth] = step
                depth += 1
        if depth == 0:
            self.dims[0] = 1
            self.steps[0] = 0
            depth = 1
        return depth

    cdef void put_walk(self, Tape tape, int64_t depth) noexcept:
        cdef int64_t i
        for i in range(depth):
            tape.put(self.dims[i])
        for i in range(depth):
            tape.put(self.steps[i])

    cdef void put_split(self, Tape tape, int64_t start, int64_t stop, int64_t v) noexcept:
        cdef int64_t i, before = 1, after = 1
        cdef bint passed = False
        for i in range(start, stop):
            if self.axes[i] == v:
                passed = True
            elif passed:
                after *= self.cards[self.axes[i]]
            else:
                before *= self.cards[self.axes[i]]
        tape.put(before)
        tape.put(self.cards[v])
        tape.put(after)
