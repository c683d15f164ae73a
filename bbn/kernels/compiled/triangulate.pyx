# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Greedy elimination on an interaction graph: the compiled twin of `pure.triangulate`.

The graph is a bit map where that is small, or no larger than lists of neighbours would be; else `_triangulate_lists`
takes over, whose memory grows with the number of edges.
"""

cimport numpy as cnp
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

from bbn.kernels.compiled.arrays cimport Arena, Words, check_length, check_offsets, check_range, ints_array, words_of
from bbn.kernels.compiled.bit_rows cimport bbn_popcount, has, list_bits
from bbn.kernels.compiled.heap cimport MIN_NEIGHBOURS, MIN_WEIGHT, WEIGHTED_MIN_FILL, Entry, Heap, clique_cells, pop, push
from bbn.kernels.compiled.triangulate_lists cimport eliminate_lists
from bbn.kernels.compiled.watch cimport POLL_CELLS, poll

cnp.import_array()

cdef enum:
    BIT_MAP = 1 << 18  # words of a bit map that is small (4096 variables)
    WORDS_PER_LINK = 1  # of a bit map that takes no more memory than lists


cdef int64_t links(Words scope_ptr, int64_t factors) noexcept:
    """The pairs of variables in the scopes, each counted both ways and as often as it occurs."""
    cdef int64_t f, size, total = 0
    for f in range(factors):
        size = scope_ptr[f + 1] - scope_ptr[f]
        total += size * (size - 1)
    return total


cdef void price(int rule, int64_t v, uint64_t* adjacent, int64_t words, const int64_t* cards, int64_t* around,
                Entry* entry) noexcept nogil:
    """The cost of eliminating v next; `around` is scratch."""
    cdef int64_t degree = list_bits(adjacent + v * words, words, around)
    cdef int64_t i, j, k, missing = 0
    cdef double weight = cards[v], fill = 0.0
    cdef uint64_t* row
    cdef uint64_t* own = adjacent + v * words
    for i in range(degree):
        weight *= cards[around[i]]
    entry.v = v
    if rule == MIN_NEIGHBOURS:
        entry.first = degree
        entry.second = weight
        return
    if rule == WEIGHTED_MIN_FILL:
        for i in range(degree):
            row = adjacent + around[i] * words
            for j in range(i + 1, degree):
                if not has(row, around[j]):
                    fill += <double> cards[around[i]] * <double> cards[around[j]]
        entry.first = fill
        entry.second = weight
        return
    if degree < 2 * words:
        for i in range(degree):
            row = adjacent + around[i] * words
            for j in range(i + 1, degree):
                missing += not has(row, around[j])
    else:
        for i in range(degree):
            row = adjacent + around[i] * words
            for k in range(words):
                missing += bbn_popcount(own[k] & ~row[k])
            missing -= 1
        missing //= 2
    if rule == MIN_WEIGHT:
        entry.first = weight
        entry.second = missing
    else:
        entry.first = missing
        entry.second = weight

cdef const double* biases(bias, int64_t n) except? NULL:
    """The numbers that costs are multiplied by, NULL where there are none."""
    if bias is None:
        return NULL
    cdef cnp.ndarray array = bias
    if cnp.PyArray_TYPE(array) != cnp.NPY_DOUBLE or not cnp.PyArray_ISCARRAY_RO(array):
        raise TypeError(f"expected doubles in C order, found {array.dtype}")
    check_length(cnp.PyArray_SIZE(array), n, "bias")
    return <const double*> cnp.PyArray_DATA(array)


def eliminate(cards_array, scope_ptr_array, scope_array, int rule, kept=None, double most=INFINITY, bias=None):
    """Order the variables of some scopes greedily; see `pure.triangulate.eliminate`."""
    cdef Words cards = words_of(cards_array)
    cdef Words scope_ptr = words_of(scope_ptr_array)
    cdef Words scope = words_of(scope_array)
    cdef Words held = NULL
    cdef int64_t n = cnp.PyArray_SIZE(cards_array), words = (n + 63) >> 6
    cdef int64_t factors = cnp.PyArray_SIZE(scope_ptr_array) - 1
    check_offsets(scope_ptr_array, cnp.PyArray_SIZE(scope_array), "scope_ptr")
    check_range(scope, cnp.PyArray_SIZE(scope_array), 0, n, "scope")
    if not 0 <= rule <= MIN_NEIGHBOURS:
        raise ValueError(f"rule: expected a number from 0 to 3, found {rule}")
    if kept is not None:
        held = words_of(kept)
        check_length(cnp.PyArray_SIZE(kept), n, "kept")
    cdef const double* biased = biases(bias, n)
    if n * words > max(BIT_MAP, WORDS_PER_LINK * links(scope_ptr, factors)):
        return eliminate_lists(cards, n, scope_ptr, scope, factors, rule, held, most, biased)
    cdef int64_t f, i, j, k, u, x, v, degree, many, count = 0, total = 0, room = 8 * n + 64, n_twigs = 0
    cdef Arena arena = Arena()
    cdef uint64_t* adjacent = <uint64_t*> arena.ints(n * words)
    cdef uint64_t* present = <uint64_t*> arena.ints(words)
    cdef uint64_t* touched = <uint64_t*> arena.ints(words)
    cdef int64_t* around = arena.ints(n)
    cdef int64_t* scratch = arena.ints(n)
    cdef int64_t* degrees = arena.ints(n)
    cdef int64_t* twigs = arena.ints(n)
    cdef int64_t* order = arena.ints(n)
    cdef int64_t* ptr = arena.ints(n + 1)
    cdef Entry* cost = <Entry*> arena.ints(3 * n)
    cdef int64_t* out = <int64_t*> malloc(room * sizeof(int64_t))
    cdef int64_t* grown
    cdef Heap heap
    cdef Entry entry
    cdef uint64_t *row
    cdef uint64_t *other
    cdef bint ok = True
    cdef int64_t work = 0  # words gone through since the last poll
    heap.room = 2 * n + 16
    heap.size = 0
    heap.items = <Entry*> malloc(heap.room * sizeof(Entry))
    try:
        if out == NULL or heap.items == NULL:
            raise MemoryError
        with nogil:
            for f in range(factors):
                for i in range(scope_ptr[f], scope_ptr[f + 1]):
                    u = scope[i]
                    present[u >> 6] |= <uint64_t> 1 << (u & 63)
                    for j in range(scope_ptr[f], scope_ptr[f + 1]):
                        if scope[j] != u:
                            adjacent[u * words + (scope[j] >> 6)] |= <uint64_t> 1 << (scope[j] & 63)
            for v in range(n):
                if held != NULL and held[v]:
                    present[v >> 6] &= ~(<uint64_t> 1 << (v & 63))
            # eliminating a twig is always right; the list grows as branches become twigs
            for v in range(n):
                if has(present, v):
                    degrees[v] = list_bits(adjacent + v * words, words, scratch)
                    if degrees[v] <= 1:
                        twigs[n_twigs] = v
                        n_twigs += 1
            i = 0
            while i < n_twigs:
                v = twigs[i]
                i += 1
                present[v >> 6] &= ~(<uint64_t> 1 << (v & 63))
                if list_bits(adjacent + v * words, words, scratch):
                    u = scratch[0]
                    out[total] = u
                    total += 1
                    adjacent[u * words + (v >> 6)] &= ~(<uint64_t> 1 << (v & 63))
                    degrees[u] -= 1
                    if has(present, u) and degrees[u] == 1:
                        twigs[n_twigs] = u
                        n_twigs += 1
                order[count] = v
                count += 1
                ptr[count] = total
            for v in range(n):
                if has(present, v):
                    work += degrees[v] * words
                    if work > POLL_CELLS:
                        work = 0
                        poll()
                    price(rule, v, adjacent, words, cards, scratch, &cost[v])
                    if biased != NULL:
                        cost[v].first *= biased[v]
                    ok = ok and push(&heap, cost[v])
            while heap.size and ok:
                entry = pop(&heap)
                v = entry.v
                if not has(present, v) or entry.first != cost[v].first or entry.second != cost[v].second:
                    continue
                present[v >> 6] &= ~(<uint64_t> 1 << (v & 63))
                degree = list_bits(adjacent + v * words, words, around)
                for k in range(words):
                    touched[k] = adjacent[v * words + k]
                for i in range(degree):
                    row = adjacent + around[i] * words
                    row[v >> 6] &= ~(<uint64_t> 1 << (v & 63))
                for i in range(degree):
                    row = adjacent + around[i] * words
                    for j in range(i + 1, degree):
                        x = around[j]
                        if not has(row, x):
                            other = adjacent + x * words
                            row[x >> 6] |= <uint64_t> 1 << (x & 63)
                            other[around[i] >> 6] |= <uint64_t> 1 << (around[i] & 63)
                            for k in range(words):
                                touched[k] |= row[k] & other[k]
                if total + degree > room:
                    room = 2 * (total + degree)
                    grown = <int64_t*> realloc(out, room * sizeof(int64_t))
                    if grown == NULL:
                        ok = False
                        break
                    out = grown
                for i in range(degree):
                    out[total + i] = around[i]
                total += degree
                order[count] = v
                count += 1
                ptr[count] = total
                if clique_cells(cards, v, out + total - degree, degree) > most:
                    break
                for k in range(words):
                    touched[k] &= present[k]
                many = list_bits(touched, words, around)
                work += (many + degree) * degree * words
                if work > POLL_CELLS:
                    work = 0
                    poll()
                for i in range(many):
                    u = around[i]
                    price(rule, u, adjacent, words, cards, scratch, &entry)
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


def cells(cards, order, ptr, neighbours):
    """The number of cells of each maximal elimination clique; see `pure.triangulate.cells`."""
    cdef cnp.npy_intp m = cnp.PyArray_SIZE(order)
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &m, cnp.NPY_DOUBLE, 0)
    count_cells(cards, order, ptr, neighbours, <double*> cnp.PyArray_DATA(out))
    return out


def total_cells(cards, order, ptr, neighbours):
    """The sum of those numbers."""
    return count_cells(cards, order, ptr, neighbours, NULL)


cdef double count_cells(cards_array, order_array, ptr_array, neighbours_array, double* out) except -1.0:
    cdef Words cards = words_of(cards_array)
    cdef Words order = words_of(order_array)
    cdef Words ptr = words_of(ptr_array)
    cdef Words neighbours = words_of(neighbours_array)
    check_length(cnp.PyArray_SIZE(ptr_array), cnp.PyArray_SIZE(order_array) + 1, "ptr")
    check_offsets(ptr_array, cnp.PyArray_SIZE(neighbours_array), "ptr")
    check_range(order, cnp.PyArray_SIZE(order_array), 0, cnp.PyArray_SIZE(cards_array), "order")
    check_range(neighbours, cnp.PyArray_SIZE(neighbours_array), 0, cnp.PyArray_SIZE(cards_array), "neighbours")
    cdef int64_t m = cnp.PyArray_SIZE(order_array), k, i, parent
    cdef Arena arena = Arena()
    cdef int64_t* position = arena.ints(cnp.PyArray_SIZE(cards_array))
    cdef int64_t* absorbed = arena.ints(m)
    cdef double product, total = 0.0
    for k in range(m):
        position[order[k]] = k
    for k in range(m):
        product = cards[order[k]]
        parent = m
        for i in range(ptr[k], ptr[k + 1]):
            product *= cards[neighbours[i]]
            if position[neighbours[i]] < parent:
                parent = position[neighbours[i]]
        if absorbed[k]:
            product = 0.0
        total += product
        if out != NULL:
            out[k] = product
        if parent < m and ptr[parent + 1] - ptr[parent] == ptr[k + 1] - ptr[k] - 1:
            absorbed[parent] = 1
    return total


def induced(cards_array, stay, order_array, ptr_array, neighbours_array):
    """An elimination without the variables of one state; see `pure.triangulate.induced`."""
    cdef Words cards = words_of(cards_array)
    cdef Words order = words_of(order_array)
    cdef Words ptr = words_of(ptr_array)
    cdef Words neighbours = words_of(neighbours_array)
    cdef int64_t n = cnp.PyArray_SIZE(cards_array), m = cnp.PyArray_SIZE(order_array), k, i, v, count = 0, total = 0
    check_length(cnp.PyArray_SIZE(ptr_array), m + 1, "ptr")
    check_offsets(ptr_array, cnp.PyArray_SIZE(neighbours_array), "ptr")
    check_range(order, m, 0, n, "order")
    check_range(neighbours, cnp.PyArray_SIZE(neighbours_array), 0, n, "neighbours")
    cdef Arena arena = Arena()
    cdef int64_t* alive = arena.ints(n)
    cdef int64_t* new_order = arena.ints(m)
    cdef int64_t* new_ptr = arena.ints(m + 1)
    cdef int64_t* near = arena.ints(cnp.PyArray_SIZE(neighbours_array))
    for v in range(n):
        alive[v] = cards[v] > 1
    for v in stay:
        if not 0 <= v < n:
            raise ValueError(f"expected variables from 0 to {n - 1}, found {v}")
        alive[v] = 1
    for k in range(m):
        if not alive[order[k]]:
            continue
        for i in range(ptr[k], ptr[k + 1]):
            if alive[neighbours[i]]:
                near[total] = neighbours[i]
                total += 1
        new_order[count] = order[k]
        count += 1
        new_ptr[count] = total
    return ints_array(new_order, count), ints_array(new_ptr, count + 1), ints_array(near, total)
