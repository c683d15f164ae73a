"""The candidates of an elimination, cheapest first: a binary heap of entries that may be out of date."""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc

cdef enum:
    MIN_FILL = 0
    WEIGHTED_MIN_FILL = 1
    MIN_WEIGHT = 2
    MIN_NEIGHBOURS = 3

cdef struct Entry:
    double first
    double second
    int64_t v

cdef struct Heap:
    Entry* items
    int64_t size
    int64_t room

cdef inline double clique_cells(const int64_t* cards, int64_t v, const int64_t* around, int64_t degree) noexcept nogil:
    """The cells of the clique of v and its neighbours."""
    cdef int64_t i
    cdef double product = cards[v]
    for i in range(degree):
        product *= cards[around[i]]
    return product

cdef inline bint before(Entry* a, Entry* b) noexcept nogil:
    if a.first != b.first:
        return a.first < b.first
    if a.second != b.second:
        return a.second < b.second
    return a.v < b.v

cdef inline bint push(Heap* heap, Entry entry) noexcept nogil:
    """Whether there was memory for it."""
    cdef int64_t child = heap.size, parent
    cdef Entry* grown
    if heap.size == heap.room:
        grown = <Entry*> realloc(heap.items, 2 * heap.room * sizeof(Entry))
        if grown == NULL:
            return False
        heap.items = grown
        heap.room *= 2
    heap.size += 1
    while child > 0:
        parent = (child - 1) >> 1
        if not before(&entry, &heap.items[parent]):
            break
        heap.items[child] = heap.items[parent]
        child = parent
    heap.items[child] = entry
    return True

cdef inline Entry pop(Heap* heap) noexcept nogil:
    cdef Entry top = heap.items[0], last
    cdef int64_t hole = 0, child
    heap.size -= 1
    last = heap.items[heap.size]
    while True:
        child = 2 * hole + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and before(&heap.items[child + 1], &heap.items[child]):
            child += 1
        if not before(&heap.items[child], &last):
            break
        heap.items[hole] = heap.items[child]
        hole = child
    heap.items[hole] = last
    return top
