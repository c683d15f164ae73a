# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The junction forest of an elimination order, and the factors that matter to it.

The elimination cliques that lie in no other, joined as they were eliminated, are a junction forest (Blair and Peyton
1993). Each clique's axes start with its separator, in the order of the parent's axes, so that the message to the
parent is a sum over contiguous rows.
"""

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from bbn.kernels.compiled.arrays cimport Arena, Words, check_length, check_offsets, check_range, ints_array, words_of
from bbn.kernels.compiled.tape cimport DEEPEST, FREE, LIKELIHOOD, MARGINALS, MASKED, ORDERED, RUN, SLICED

cnp.import_array()

cdef double MOST_CELLS = 2.0**53  # as in `checks`


def pack_factors(list cards, list members, list tables, bint directed):
    """Factors as flat arrays; see `pure.layout.pack_factors`."""
    cdef int64_t n = len(cards), total = len(tables), size = len(members), f, k, axes, listed, v = -1, at = 0, kept = 0
    cdef cnp.npy_intp cells = 0
    cdef Arena arena = Arena()
    cdef int64_t* card = arena.ints(n)
    cdef int64_t* scope = arena.ints(size + (total if directed else 0))
    cdef int64_t* heads = arena.ints(total)
    cdef int64_t* scope_ptr = arena.ints(total + 1)
    cdef int64_t* table_ptr = arena.ints(total + 1)
    cdef cnp.ndarray table, out
    for k in range(n):
        card[k] = cards[k]
        if card[k] < 1:
            raise ValueError(f"variable {k} has {card[k]} states, expected at least 1")
    for f in range(total):
        table = <cnp.ndarray?> tables[f]
        # it may lie anywhere in a message from another process: it is copied, so need not be aligned
        if cnp.PyArray_TYPE(table) != cnp.NPY_DOUBLE or not cnp.PyArray_IS_C_CONTIGUOUS(table) \
                or not cnp.PyArray_ISNOTSWAPPED(table):
            raise TypeError(f"expected doubles in C order, found {table.dtype}")
        cells += cnp.PyArray_SIZE(table)
        axes = cnp.PyArray_NDIM(table)
        listed = axes - 1 if directed else axes
        if listed < 0 or at + listed > size:
            raise ValueError(f"factor {f}: {size - at} variables are left for {axes} axes")
        for k in range(axes):
            v = members[at + k] if k < listed else f
            if not 0 <= v < n or cnp.PyArray_DIM(table, <int> k) != card[v]:
                raise ValueError(f"factor {f}: axis {k} has {cnp.PyArray_DIM(table, <int> k)} cells for variable {v}")
            if card[v] > 1:
                scope[kept] = v
                kept += 1
        at += listed
        heads[f] = f if directed else -1
        scope_ptr[f + 1], table_ptr[f + 1] = kept, cells
    if at != size:
        raise ValueError(f"{size} variables for {at} axes")
    out = cnp.PyArray_EMPTY(1, &cells, cnp.NPY_DOUBLE, 0)
    for f in range(total):
        table = <cnp.ndarray> tables[f]
        memcpy(<double*> cnp.PyArray_DATA(out) + table_ptr[f], cnp.PyArray_DATA(table),
               (table_ptr[f + 1] - table_ptr[f]) * sizeof(double))
    return (ints_array(card, n), ints_array(scope_ptr, total + 1), ints_array(scope, kept),
            ints_array(table_ptr, total + 1), out, ints_array(heads, total))


def reduce_scopes(scope_ptr_array, scope_array, heads_array, int64_t n, sliced, likelihood, bint masked, targets,
                  bint everything):
    """Drop barren factors and observed variables; see `pure.layout.reduce_scopes`."""
    cdef Words scope_ptr = words_of(scope_ptr_array)
    cdef Words scope = words_of(scope_array)
    cdef Words heads = words_of(heads_array)
    cdef int64_t total = cnp.PyArray_SIZE(heads_array)
    cdef int64_t f, v, i, u, top = 0, kept = 0, size = 0, last
    cdef Arena arena = Arena()
    check_length(cnp.PyArray_SIZE(scope_ptr_array), total + 1, "scope_ptr")
    check_offsets(scope_ptr_array, cnp.PyArray_SIZE(scope_array), "scope_ptr")
    check_range(scope, cnp.PyArray_SIZE(scope_array), 0, n, "scope")
    check_range(heads, total, -1, n, "heads")
    for observed in (likelihood, sliced, targets):
        for v in observed:
            if not 0 <= v < n:
                raise ValueError(f"expected variables from 0 to {n - 1}, found {v}")
    cdef int64_t* role = arena.ints(n)
    cdef int64_t* lonely = arena.ints(n)
    cdef int64_t* relevant = arena.ints(n)
    cdef int64_t* of_head = arena.ints(n)
    cdef int64_t* stack = arena.ints(n)
    cdef int64_t* factors = arena.ints(total)
    cdef int64_t* ptr = arena.ints(total + n + 2)
    cdef int64_t* reduced = arena.ints(cnp.PyArray_SIZE(scope_array) + n + len(targets))
    if masked:
        for v in range(n):
            role[v] = MASKED
    for v in likelihood:
        role[v] = LIKELIHOOD
    for v in sliced:
        role[v] = SLICED
    for v in targets:
        relevant[v] = 1
    for f in range(total):
        if heads[f] >= 0:
            of_head[heads[f]] = f + 1
    for v in range(n):
        if everything or relevant[v] or role[v] != FREE:
            relevant[v] = 1
            lonely[v] = role[v] != SLICED
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
                lonely[scope[i]] = 0
                size += 1
        kept += 1
        ptr[kept] = size
    last = kept
    for v in targets:
        lonely[v] = 0
        reduced[size] = v
        size += 1
    if targets:
        last += 1
        ptr[last] = size
    for v in range(n):
        if lonely[v]:
            reduced[size] = v
            size += 1
            last += 1
            ptr[last] = size
    return ints_array(role, n), ints_array(factors, kept), ints_array(ptr, last + 1), ints_array(reduced, size)


cdef class Forest:
    """Cliques, their tree and their axes; the attributes are lists by clique, parents first.

    Parameters
    ----------
    cards : int64 array (n,)
        The number of states of each variable.
    elimination : tuple of int64 arrays
        What `eliminate` gave.
    targets : sequence of variables
        Those of one clique, which becomes the first root and has them as its first axes.
    goal : int
        QUERY, MARGINALS or COLLECTED.
    """

    cdef int grow(self, cards, elimination, targets, int goal) except -1:
        cdef int64_t k = 0, v
        cdef int64_t* asked
        self.keep = (cards, elimination)
        self.arena = Arena()
        self.cards, self.n = words_of(cards), cnp.PyArray_SIZE(cards)
        self.order, self.m = words_of(elimination[0]), cnp.PyArray_SIZE(elimination[0])
        self.ptr, self.near = words_of(elimination[1]), words_of(elimination[2])
        self.n_targets = len(targets)
        asked = self.arena.ints(self.n_targets)
        for v in targets:
            asked[k] = v
            k += 1
        self.targets, self.goal = asked, goal
        self.check_elimination(elimination)
        self.join_cliques()
        return self.order_axes()

    cdef int check_elimination(self, elimination) except -1:
        """Refuse what `eliminate` would not give; see `checks.check_elimination`."""
        cdef int64_t k, i, axes
        cdef double cells, total = 0.0
        cdef int64_t* position = self.arena.ints(self.n)
        cdef int64_t* seen = self.arena.ints(self.n)
        check_range(self.cards, self.n, 1, 2**62, "cards")
        check_length(cnp.PyArray_SIZE(elimination[1]), self.m + 1, "the elimination's offsets")
        check_offsets(elimination[1], cnp.PyArray_SIZE(elimination[2]), "the elimination's offsets")
        check_range(self.order, self.m, 0, self.n, "the elimination order")
        check_range(self.near, cnp.PyArray_SIZE(elimination[2]), 0, self.n, "the elimination's neighbours")
        check_range(self.targets, self.n_targets, 0, self.n, "targets")
        for k in range(self.m):
            if position[self.order[k]]:
                raise ValueError(f"variable {self.order[k]} is eliminated twice")
            position[self.order[k]] = k + 1
        for k in range(self.m):
            cells, axes = self.cards[self.order[k]], 1 + degree(self, k)
            for i in range(self.ptr[k], self.ptr[k + 1]):
                if position[self.near[i]] <= k + 1:
                    raise ValueError(f"neighbour {self.near[i]} of variable {self.order[k]} is not eliminated later")
                if seen[self.near[i]] == k + 1:
                    raise ValueError(f"neighbour {self.near[i]} of variable {self.order[k]} is there twice")
                seen[self.near[i]] = k + 1
                cells *= self.cards[self.near[i]]
            if axes > DEEPEST:
                raise ValueError(f"a clique has {axes} axes, expected at most {DEEPEST}")
            total += cells
        if not total <= MOST_CELLS:
            raise ValueError(f"the cliques have {total:.3g} cells, expected at most {MOST_CELLS:.3g}")
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
                if home[u] < 0 and degree(self, k) == 1 + degree(self, first[k]):
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
            if root < 0:
                raise ValueError("no clique holds all targets")
            below, c = -1, root
            while c >= 0:
                above = parent[c]
                parent[c] = below
                below, c = c, above
        elif self.goal == MARGINALS:
            for c in range(self.n_cliques):
                head[c] = -1
                rank[c] = -1
            for c in range(self.n_cliques):
                k = c
                while rank[k] < 0 and parent[k] >= 0:
                    k = parent[k]
                root = rank[k] if rank[k] >= 0 else k
                k = c
                while rank[k] < 0:
                    rank[k] = root
                    if parent[k] >= 0:
                        k = parent[k]
                if head[root] < 0 or size[c] > size[head[root]]:
                    head[root] = c
            root = -1
            for k in range(self.n_cliques):
                below, c = -1, head[k]
                while c >= 0:
                    above = parent[c]
                    parent[c] = below
                    below, c = c, above
        self.hang_low(maker, parent, size)
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
            self.total_axes += 1 + degree(self, maker[c])
        for k in range(self.n_cliques - 1, -1, -1):
            p = self.parent[k]
            if p >= 0:
                self.child_next[k] = self.child_head[p]
                self.child_head[p] = k
        for v in range(self.n):
            if home[v] >= 0:
                home[v] = rank[home[v]]
        return 0

    cdef int hang_low(self, int64_t* maker, int64_t* parent, const int64_t* size) except -1:
        """Move each child of a large clique to the smallest neighbour of that clique that holds its separator."""
        cdef Arena arena
        cdef int64_t *head
        cdef int64_t *tail
        cdef int64_t *follow
        cdef int64_t c, d, i, host, best, last, seen, shared
        cdef bint large = False
        for c in range(self.n_cliques):
            large = large or (parent[c] >= 0 and size[parent[c]] > ORDERED)
        if not large:
            return 0
        arena = Arena()
        head, tail, follow = arena.ints(self.m), arena.ints(self.m), arena.ints(self.m)
        for c in range(self.n_cliques):
            head[c] = tail[c] = -1
        for c in range(self.n_cliques):
            if parent[c] >= 0:
                append(head, tail, follow, parent[c], c)
        for c in range(self.n_cliques):
            host = parent[c]
            while host >= 0 and size[host] > ORDERED:
                self.mark_clique(maker[c], 1)
                shared = self.count_marked(maker[host], 1)
                best, seen, d = -1, 0, head[host]
                while True:
                    if d < 0 or seen == RUN:
                        d = parent[host]
                        seen = RUN + 1
                    if (d >= 0 and d != c and 2 * size[d] <= size[host]
                            and (best < 0 or size[d] < size[best] or (size[d] == size[best] and d < best))
                            and self.count_marked(maker[d], 1) == shared):
                        best = d
                    if seen > RUN:
                        break
                    seen += 1
                    d = follow[d]
                self.mark_clique(maker[c], 0)
                if best < 0:
                    break
                last, d = -1, head[host]
                while d != c:
                    last, d = d, follow[d]
                if last < 0:
                    head[host] = follow[c]
                else:
                    follow[last] = follow[c]
                if tail[host] == c:
                    tail[host] = last
                append(head, tail, follow, best, c)
                parent[c] = host = best
        return 0

    cdef void mark_clique(self, int64_t k, int64_t value) noexcept:
        cdef int64_t i
        self.mark[self.order[k]] = value
        for i in range(self.ptr[k], self.ptr[k + 1]):
            self.mark[self.near[i]] = value

    cdef int64_t count_marked(self, int64_t k, int64_t value) noexcept:
        cdef int64_t i, count = self.mark[self.order[k]] == value
        for i in range(self.ptr[k], self.ptr[k + 1]):
            count += self.mark[self.near[i]] == value
        return count

    cdef int order_axes(self) except -1:
        """Separator first, as in the parent; what was eliminated last comes first among the rest."""
        cdef Arena arena = self.arena
        cdef int64_t c, p, i, j, v, at = 0, front, length
        self.axes_ptr, self.axes = arena.ints(self.m + 1), arena.ints(self.total_axes)
        self.separator = arena.ints(self.m)
        for c in range(self.n_cliques):
            self.axes_ptr[c] = at
            length = 1 + degree(self, self.maker[c])
            for j in range(length):
                self.mark[member(self, c, j)] = 1
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
                v = member(self, c, j)
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
            if self.size[c] > ORDERED:
                self.order_in_long_runs(c, front, at)
        return 0

    cdef int order_in_long_runs(self, int64_t c, int64_t start, int64_t stop) except -1:
        """Reorder free axes so that the last ones are, for most children, all in the separator or all out of it."""
        cdef int64_t n = stop - start, n_held = 0, child = self.child_head[c], i, j, k, following, most, agree, left
        cdef int64_t run, n_chosen, n_alike, kept
        cdef double cost, least = -1.0
        cdef Arena arena = Arena()
        cdef int64_t* inside = arena.ints(RUN * n)
        cdef int64_t* alike = arena.ints(RUN)
        cdef int64_t* used = arena.ints(n)
        cdef int64_t* chosen = arena.ints(n)
        cdef int64_t* best = arena.ints(n)
        while child >= 0 and n_held < RUN:
            for j in range(1 + degree(self, self.maker[child])):
                self.mark[member(self, child, j)] = 1
            for i in range(n):
                inside[n_held * n + i] = self.mark[self.axes[start + i]]
            for j in range(1 + degree(self, self.maker[child])):
                self.mark[member(self, child, j)] = 0
            n_held += 1
            child = self.child_next[child]
        for k in range(n):
            for i in range(n):
                used[i] = 0
            used[k] = 1
            chosen[0], n_chosen, left = k, 1, n - 1
            run, cost = self.cards[self.axes[start + k]], 0.0
            n_alike = n_held
            for j in range(n_held):
                alike[j] = j
            while left and run < RUN and n_alike:
                most, following = -1, -1
                for i in range(n):
                    if not used[i]:
                        agree = 0
                        for j in range(n_alike):
                            agree += inside[alike[j] * n + i] == inside[alike[j] * n + k]
                        if agree > most:
                            most, following = agree, i
                kept = 0
                for j in range(n_alike):
                    if inside[alike[j] * n + following] == inside[alike[j] * n + k]:
                        alike[kept] = alike[j]
                        kept += 1
                cost += <double> (n_alike - kept) / <double> run
                n_alike = kept
                run *= self.cards[self.axes[start + following]]
                used[following] = 1
                chosen[n_chosen] = following
                n_chosen += 1
                left -= 1
            cost += <double> n_alike / <double> run
            if least < 0.0 or cost < least:
                least = cost
                j = 0
                for i in range(n):
                    if not used[i]:
                        best[j] = self.axes[start + i]
                        j += 1
                for i in range(n_chosen - 1, -1, -1):
                    best[j] = self.axes[start + chosen[i]]
                    j += 1
        for i in range(n if least >= 0.0 else 0):
            self.axes[start + i] = best[i]
        return 0



cdef inline int64_t degree(Forest forest, int64_t k) noexcept:
    """How many neighbours the variable that is eliminated as number k has then."""
    return forest.ptr[k + 1] - forest.ptr[k]


cdef inline int64_t member(Forest forest, int64_t c, int64_t j) noexcept:
    """Variable j of clique c."""
    cdef int64_t k = forest.maker[c]
    return forest.order[k] if j == 0 else forest.near[forest.ptr[k] + j - 1]


cdef void append(int64_t* head, int64_t* tail, int64_t* follow, int64_t parent, int64_t child) noexcept:
    """Put a child at the end of its parent's list."""
    follow[child] = -1
    if tail[parent] < 0:
        head[parent] = child
    else:
        follow[tail[parent]] = child
    tail[parent] = child
