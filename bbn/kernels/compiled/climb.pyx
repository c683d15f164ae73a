# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Single changes of arcs: the compiled twin of `pure.climb`."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from bbn.kernels.pure.climb import check_matrices

cdef enum:
    ADD = 0
    DELETE = 1
    REVERSE = 2


cdef int fill_paths(const uint8_t* arcs, uint8_t* above, int64_t n) noexcept nogil:
    """Parents before children, each above what those above its parents are; 1 if there is a cycle, 2 without memory."""
    cdef int64_t* left = <int64_t*> malloc(2 * n * sizeof(int64_t) + 1)
    cdef int64_t* ready = left + n
    cdef int64_t c, p, i, done = 0, count = 0
    if left == NULL:
        return 2
    memset(above, 0, n * n)
    for c in range(n):
        above[c * n + c] = 1
        left[c] = 0
        for p in range(n):
            left[c] += arcs[c * n + p] != 0
        if left[c] == 0:
            ready[count] = c
            count += 1
    while done < count:
        p = ready[done]
        done += 1
        for c in range(n):
            if arcs[c * n + p]:
                for i in range(n):
                    above[c * n + i] |= above[p * n + i]
                left[c] -= 1
                if left[c] == 0:
                    ready[count] = c
                    count += 1
    free(left)
    return count < n


def paths(const uint8_t[:, ::1] arcs):
    """See `pure.climb.paths`."""
    cdef int64_t n = arcs.shape[0]
    cdef int failed = 0
    check_matrices(arcs.base)
    result = np.zeros((n, n), dtype=np.uint8)
    cdef uint8_t[:, ::1] above = result
    if n:
        with nogil:
            failed = fill_paths(&arcs[0, 0], &above[0, 0], n)
    if failed == 2:
        raise MemoryError
    if failed:
        raise ValueError("arcs: expected no cycle")
    return result


def make_change(uint8_t[:, ::1] arcs, uint8_t[:, ::1] above, int64_t kind, int64_t p, int64_t c):
    """See `pure.climb.make_change`."""
    cdef int64_t n = arcs.shape[0], i, j
    cdef int failed = 0
    check_matrices(arcs.base, above.base)
    if not (0 <= p < n and 0 <= c < n and p != c and ADD <= kind <= REVERSE):
        raise ValueError(f"change: expected a kind and two variables, found {(kind, p, c)}")
    if (arcs[c, p] != 0) == (kind == ADD) or (kind == ADD and above[p, c]):
        raise ValueError(f"change: {(kind, p, c)} is not possible")
    with nogil:
        if kind == ADD:
            arcs[c, p] = 1
            for i in range(n):
                if above[i, c]:
                    for j in range(n):
                        above[i, j] |= above[p, j]
        else:
            arcs[c, p] = 0
            if kind == REVERSE:
                arcs[p, c] = 1
            failed = fill_paths(&arcs[0, 0], &above[0, 0], n)
    if failed == 2:
        raise MemoryError
    if failed:
        raise ValueError("arcs: expected no cycle")


cdef inline bint only_way(const uint8_t[:, ::1] arcs, const uint8_t[:, ::1] above, int64_t p, int64_t c) noexcept nogil:
    """Whether no other parent of c is below p, so that p → c can be turned around."""
    cdef int64_t q
    for q in range(arcs.shape[0]):
        if arcs[c, q] and q != p and above[q, p]:
            return False
    return True


def best_change(
    const uint8_t[:, ::1] arcs, const uint8_t[:, ::1] above, const double[:, ::1] add_gain,
    const double[:, ::1] delete_gain, const uint8_t[:, ::1] allowed, const uint8_t[:, ::1] required,
    const uint8_t[:, ::1] blocked, int64_t most, double tie, double least, double bar,
):
    """See `pure.climb.best_change`."""
    cdef int64_t n = arcs.shape[0], c, p, kind, found_kind = -1, found_p = -1, found_c = -1
    cdef double top = -INFINITY, gain, found = -INFINITY, floor, limit
    cdef bint second
    check_matrices(arcs.base, above.base, add_gain.base, delete_gain.base, allowed.base, required.base, blocked.base)
    cdef int64_t* sizes = <int64_t*> malloc((n + 1) * sizeof(int64_t))
    if sizes == NULL:
        raise MemoryError
    with nogil:
        for c in range(n):
            sizes[c] = 0
            for p in range(n):
                sizes[c] += arcs[c, p] != 0
        # first the best gain, then the change of about that gain that the rule prefers
        for second in range(2):
            floor = top - tie
            if second and top == -INFINITY:
                break
            for c in range(n - 1, -1, -1):
                for kind in range(3):
                    if kind == ADD and sizes[c] >= most:
                        continue
                    if kind != ADD and sizes[c] == 0:
                        continue
                    for p in range(n):
                        if kind == ADD:
                            gain = add_gain[c, p]
                            if not (gain > top if not second else gain >= floor):
                                continue
                            if arcs[c, p] or not allowed[c, p] or above[p, c]:
                                continue
                        else:
                            if not arcs[c, p] or required[c, p]:
                                continue
                            gain = delete_gain[c, p]
                            if kind == REVERSE:
                                if not allowed[p, c] or sizes[p] >= most:
                                    continue
                                gain = gain + add_gain[p, c]
                            if not (gain > top if not second else gain >= floor):
                                continue
                            if kind == REVERSE and not only_way(arcs, above, p, c):
                                continue
                        limit = max(least, bar) if blocked[c, p] else least
                        if not gain > limit:
                            continue
                        if not second:
                            top = gain
                        elif found_kind < 0:
                            found_kind, found_p, found_c, found = kind, p, c, gain
                    if second and found_kind >= 0:
                        break
                if second and found_kind >= 0:
                    break
    free(sizes)
    return found_kind, found_p, found_c, found
