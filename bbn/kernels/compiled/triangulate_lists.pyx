# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Greedy elimination of large sparse graphs: each variable has a sorted list of its neighbours.

The orders are those of `_triangulate`, whose bit map would take n²/8 bytes; here memory grows with the edges, those
that are filled in included. Lists keep variables that are gone until they are next looked at, so that eliminating the
leaves of a hub takes no time each.
"""

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memcpy

from bbn.kernels.compiled.arrays cimport Arena, Words, ints_array
from bbn.kernels.compiled.heap cimport MIN_NEIGHBOURS, MIN_WEIGHT, WEIGHTED_MIN_FILL, Entry, Heap, clique_cells, pop, push
from bbn.kernels.compiled.watch cimport POLL_CELLS, poll

cnp.import_array()


cdef enum:
    SEARCHED = 8  # times as long, a list is searched for each of a few variables and not walked

cdef double EXACT = 2.0**52  # whole numbers below are summed exactly in any order


cdef int ascending(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*> a)[0], y = (<const int32_t*> b)[0]
    return (x > y) - (x < y)


cdef class Graph:
    """The neighbours of each variable, ascending; `gone` marks the variables that have been eliminated."""

    cdef int64_t n
    cdef int32_t** lists
    cdef int64_t* sizes
    cdef int64_t* rooms  # of lists of their own; 0: the list is a part of `first`
    cdef int32_t* first
    cdef char* gone
    cdef char* inside  # zeros but while pairs are counted
    cdef int64_t work  # neighbours looked at since the last poll
    cdef Arena arena

    def __cinit__(self, int64_t n):
        self.n = n
        self.arena = Arena()
        self.lists = <int32_t**> self.arena.ints(n)
        self.sizes = self.arena.ints(n)
        self.rooms = self.arena.ints(n)
        self.gone = <char*> self.arena.ints(n // 8 + 1)
        self.inside = <char*> self.arena.ints(n // 8 + 1)

    def __dealloc__(self):
        cdef int64_t v
        if self.rooms != NULL:
            for v in range(self.n):
                if self.rooms[v]:
                    free(self.lists[v])
        free(self.first)

    cdef int link(self, Words scope_ptr, Words scope, int64_t factors) except -1:
        """Join the variables of each scope."""
        cdef int64_t f, i, j, v, total = 0, kept
        cdef int32_t* own
        for f in range(factors):
            for i in range(scope_ptr[f], scope_ptr[f + 1]):
                self.sizes[scope[i]] += scope_ptr[f + 1] - scope_ptr[f] - 1
                total += scope_ptr[f + 1] - scope_ptr[f] - 1
        self.first = <int32_t*> malloc((total + 1) * sizeof(int32_t))
        if self.first == NULL:
            raise MemoryError
        total = 0
        for v in range(self.n):
            self.lists[v] = self.first + total
            total += self.sizes[v]
            self.sizes[v] = 0
        for f in range(factors):
            for i in range(scope_ptr[f], scope_ptr[f + 1]):
                v = scope[i]
                for j in range(scope_ptr[f], scope_ptr[f + 1]):
                    if scope[j] != v:
                        self.lists[v][self.sizes[v]] = <int32_t> scope[j]
                        self.sizes[v] += 1
        for v in range(self.n):
            own = self.lists[v]
            qsort(own, self.sizes[v], sizeof(int32_t), ascending)
            kept = 0
            for i in range(self.sizes[v]):
                if kept == 0 or own[kept - 1] != own[i]:
                    own[kept] = own[i]
                    kept += 1
            self.sizes[v] = kept
        return 0

    cdef int64_t clean(self, int64_t v) noexcept nogil:
        """Drop the neighbours that are gone; how many are left."""
        cdef int64_t i, kept = 0
        cdef int32_t* own = self.lists[v]
        for i in range(self.sizes[v]):
            own[kept] = own[i]
            kept += not self.gone[own[i]]
        self.sizes[v] = kept
        return kept

    cdef bint join(self, int64_t v, const int32_t* others, int64_t count, int32_t* merged) noexcept nogil:
        """Make others, ascending, neighbours of v, but for v itself; whether there was memory."""
        cdef int64_t i = 0, j = 0, size = 0, n = self.sizes[v]
        cdef int32_t* own = self.lists[v]
        cdef int32_t* grown
        while j < count and (others[j] == v or self.linked(v, others[j])):
            j += 1
        if j == count:
            return True
        j = 0
        while i < n or j < count:
            if j < count and others[j] == v:
                j += 1
            elif j == count or (i < n and own[i] < others[j]):
                merged[size] = own[i]
                size += 1
                i += 1
            else:
                j += 1
                if i < n and own[i] == others[j - 1]:
                    i += 1
                merged[size] = others[j - 1]
                size += 1
        if size > n:
            if size > self.rooms[v]:
                grown = <int32_t*> realloc(own if self.rooms[v] else NULL, 2 * size * sizeof(int32_t))
                if grown == NULL:
                    return False
                self.lists[v] = grown
                self.rooms[v] = 2 * size
            memcpy(self.lists[v], merged, size * sizeof(int32_t))
            self.sizes[v] = size
        return True

    cdef bint linked(self, int64_t v, int32_t other) noexcept nogil:
        cdef int64_t low = 0, high = self.sizes[v], middle
        cdef const int32_t* own = self.lists[v]
        while low < high:
            middle = (low + high) >> 1
            if own[middle] < other:
                low = middle + 1
            else:
                high = middle
        return low < self.sizes[v] and own[low] == other

    cdef void count_links(self, const int32_t* around, int64_t degree, Words cards, int64_t* links, double* linked,
                          double* whole) noexcept nogil:
        """The pairs among some variables that are linked, their cards' products, and those of all pairs."""
        cdef int64_t i, j, u
        cdef double sum = 0.0
        for i in range(degree):
            self.inside[around[i]] = 1
            whole[0] += sum * <double> cards[around[i]]
            sum += <double> cards[around[i]]
        for i in range(degree):
            u = around[i]
            self.inside[u] = 0
            self.work += min(self.sizes[u], SEARCHED * degree)
            if self.sizes[u] > SEARCHED * degree:
                for j in range(i + 1, degree):
                    if self.linked(u, around[j]):
                        links[0] += 1
                        linked[0] += <double> cards[u] * <double> cards[around[j]]
            else:
                for j in range(self.sizes[u]):
                    if self.inside[self.lists[u][j]]:
                        links[0] += 1
                        linked[0] += <double> cards[u] * <double> cards[self.lists[u][j]]

    cdef void price(self, int rule, int64_t v, Words cards, Entry* entry) noexcept nogil:
        """The cost of eliminating v next; see `_triangulate`."""
        cdef int64_t degree = self.clean(v), i, j, missing, links = 0
        cdef const int32_t* around = self.lists[v]
        cdef double weight = cards[v], fill, linked = 0.0, whole = 0.0
        for i in range(degree):
            weight *= cards[around[i]]
        entry.v = v
        if rule == MIN_NEIGHBOURS:
            entry.first, entry.second = degree, weight
            return
        self.count_links(around, degree, cards, &links, &linked, &whole)
        missing = degree * (degree - 1) // 2 - links
        if rule == WEIGHTED_MIN_FILL:
            fill = whole - linked
            if whole >= EXACT:  # sums must be made in the order of the twins
                fill = 0.0
                for i in range(degree):
                    for j in range(i + 1, degree):
                        if not self.linked(around[i], around[j]):
                            fill += <double> cards[around[i]] * <double> cards[around[j]]
            entry.first, entry.second = fill, weight
        elif rule == MIN_WEIGHT:
            entry.first, entry.second = weight, missing
        else:
            entry.first, entry.second = missing, weight


cdef object eliminate_lists(Words cards, int64_t n, Words scope_ptr, Words scope, int64_t factors, int rule,
                            Words held, double most, const double* biased):
    """Order the variables of some scopes greedily; see `pure.triangulate.eliminate`."""
    cdef Graph graph = Graph(n)
    cdef Arena arena = Arena()
    cdef char* present = <char*> arena.ints(n // 8 + 1)
    cdef char* touched = <char*> arena.ints(n // 8 + 1)
    cdef int64_t* degrees = arena.ints(n)
    cdef int64_t* order = arena.ints(n)
    cdef int64_t* ptr = arena.ints(n + 1)
    cdef int32_t* around = <int32_t*> arena.ints((n + 1) // 2)
    cdef int32_t* merged = <int32_t*> arena.ints((n + 1) // 2)
    cdef int32_t* changed = <int32_t*> arena.ints((n + 1) // 2)
    cdef Entry* cost = <Entry*> arena.ints(3 * n)
    cdef int64_t* out = NULL
    cdef int64_t* grown
    cdef int64_t room = 2 * n + 64, total = 0, count = 0, degree, many, i, j, k, u, v, x, n_twigs = 0
    cdef Heap heap
    cdef Entry entry
    cdef bint ok = True
    heap.room, heap.size, heap.items = n // 4 + 16, 0, NULL
    graph.link(scope_ptr, scope, factors)
    try:
        out = <int64_t*> malloc(room * sizeof(int64_t))
        heap.items = <Entry*> malloc(heap.room * sizeof(Entry))
        if out == NULL or heap.items == NULL:
            raise MemoryError
        with nogil:
            for i in range(scope_ptr[factors]):
                present[scope[i]] = 1
            for v in range(n):
                if held != NULL and held[v]:
                    present[v] = 0
            for v in range(n):
                degrees[v] = graph.sizes[v]
                if present[v] and degrees[v] <= 1:
                    merged[n_twigs] = <int32_t> v
                    n_twigs += 1
            i = 0
            while i < n_twigs:  # the list grows as branches become twigs
                v = merged[i]
                i += 1
                present[v] = 0
                if graph.clean(v):
                    u = graph.lists[v][0]
                    out[total] = u
                    total += 1
                    degrees[u] -= 1
                    if present[u] and degrees[u] == 1:
                        merged[n_twigs] = <int32_t> u
                        n_twigs += 1
                graph.gone[v] = 1
                order[count] = v
                count += 1
                ptr[count] = total
            for v in range(n):
                if present[v]:
                    graph.price(rule, v, cards, &cost[v])
                    if graph.work > POLL_CELLS:
                        graph.work = 0
                        poll()
                    if biased != NULL:
                        cost[v].first *= biased[v]
                    ok = ok and push(&heap, cost[v])
            while heap.size and ok:
                entry = pop(&heap)
                v = entry.v
                if not present[v] or entry.first != cost[v].first or entry.second != cost[v].second:
                    continue
                present[v] = 0
                degree = graph.clean(v)
                graph.gone[v] = 1
                memcpy(around, graph.lists[v], degree * sizeof(int32_t))
                if total + degree > room:
                    room = 2 * (total + degree)
                    grown = <int64_t*> realloc(out, room * sizeof(int64_t))
                    if grown == NULL:
                        ok = False
                        break
                    out = grown
                many = 0
                for i in range(degree):
                    u = around[i]
                    graph.clean(u)
                    out[total + i] = u
                    changed[many] = <int32_t> u
                    touched[u] = 1
                    many += 1
                total += degree
                order[count] = v
                count += 1
                ptr[count] = total
                if clique_cells(cards, v, out + total - degree, degree) > most:
                    break
                # a new edge changes the cost of whoever is linked to both ends
                for i in range(degree):
                    u = around[i]
                    for j in range(i + 1, degree):
                        x = around[j]
                        if not graph.linked(u, <int32_t> x):
                            many = common(graph, u, x, touched, changed, many)
                for i in range(degree):
                    ok = ok and graph.join(around[i], around, degree, merged)
                for i in range(many):
                    u = changed[i]
                    touched[u] = 0
                    if present[u]:
                        graph.price(rule, u, cards, &entry)
                        if graph.work > POLL_CELLS:
                            graph.work = 0
                            poll()
                        if biased != NULL:
                            entry.first *= biased[u]
                        if entry.first != cost[u].first or entry.second != cost[u].second:
                            cost[u] = entry
                            ok = ok and push(&heap, entry)
        if not ok:
            raise MemoryError
        return ints_array(order, count), ints_array(ptr, count + 1), ints_array(out, total)
    finally:
        free(out)
        free(heap.items)


cdef int64_t common(Graph graph, int64_t u, int64_t x, char* touched, int32_t* changed, int64_t many) noexcept nogil:
    """Touch the neighbours that u and x share; how many are touched now."""
    cdef int64_t i = 0, n, w
    cdef const int32_t* own
    if graph.sizes[u] > graph.sizes[x]:
        u, x = x, u
    n = graph.sizes[u]
    own = graph.lists[u]
    graph.work += n
    for i in range(n):
        w = own[i]
        if not touched[w] and graph.linked(x, <int32_t> w):
            touched[w] = 1
            changed[many] = <int32_t> w
            many += 1
    return many
