# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Single changes of arcs: the compiled twin of `pure.climb`."""

import numpy as np

from libc.float cimport DBL_MAX
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


cdef inline bint is_square(const Py_ssize_t* shape, int64_t n) noexcept nogil:
    return shape[0] == n and shape[1] == n


def set_gains(
    double[:, ::1] add_gain, double[:, ::1] delete_gain, int64_t c, list add, list delete, const double[::1] values
):
    """See `pure.climb.set_gains`."""
    cdef int64_t n = add_gain.shape[0], n_add = len(add), n_delete = len(delete), i, p
    cdef double term
    if not (is_square(add_gain.shape, n) and is_square(delete_gain.shape, n)):
        check_matrices(add_gain.base, delete_gain.base)
    if values.shape[0] != n_add + n_delete + 1:
        raise ValueError(f"values: expected length {n_add + n_delete + 1}, found {values.shape[0]}")
    if not 0 <= c < n:
        raise ValueError(f"expected variables from 0 to {n - 1}, found {c}")
    for row in (add, delete):
        for i in range(<int64_t> len(row)):
            p = row[i]
            if not 0 <= p < n:
                raise ValueError(f"expected variables from 0 to {n - 1}, found {p}")
    term = max(values[n_add + n_delete], -DBL_MAX)
    for i in range(n):
        add_gain[c, i] = delete_gain[c, i] = -INFINITY
    for i in range(n_add):
        p = add[i]
        add_gain[c, p] = values[i] - term
    for i in range(n_delete):
        p = delete[i]
        delete_gain[c, p] = values[n_add + i] - term
    return term


cdef struct Search:
    int64_t n, most
    int64_t* sizes  # of the parents of each
    double least, bar
    const uint8_t* arcs
    const uint8_t* above
    const uint8_t* allowed
    const uint8_t* required
    const uint8_t* blocked
    const double* add_gain
    const double* delete_gain


def best_change(
    const uint8_t[:, ::1] arcs, const uint8_t[:, ::1] above, const double[:, ::1] add_gain,
    const double[:, ::1] delete_gain, const uint8_t[:, ::1] allowed, const uint8_t[:, ::1] required,
    const uint8_t[:, ::1] blocked, int64_t most, double tie, double least, double bar,
):
    """See `pure.climb.best_change`."""
    cdef int64_t n = arcs.shape[0], c, p, kind, found_kind = -1, found_p = -1, found_c = -1
    cdef double top = -INFINITY, gain, found = -INFINITY
    cdef Search search
    if not (is_square(arcs.shape, n) and is_square(above.shape, n) and is_square(add_gain.shape, n)
            and is_square(delete_gain.shape, n) and is_square(allowed.shape, n) and is_square(required.shape, n)
            and is_square(blocked.shape, n)):
        check_matrices(arcs.base, above.base, add_gain.base, delete_gain.base, allowed.base, required.base, blocked.base)
    if n == 0:
        return found_kind, found_p, found_c, found
    search.n, search.most, search.least, search.bar = n, most, least, max(least, bar)
    search.arcs, search.above, search.allowed = &arcs[0, 0], &above[0, 0], &allowed[0, 0]
    search.required, search.blocked = &required[0, 0], &blocked[0, 0]
    search.add_gain, search.delete_gain = &add_gain[0, 0], &delete_gain[0, 0]
    search.sizes = <int64_t*> malloc(n * sizeof(int64_t))
    cdef double* tops = <double*> malloc(n * sizeof(double))  # the best gain into each child
    if search.sizes == NULL or tops == NULL:
        free(search.sizes)
        free(tops)
        raise MemoryError
    with nogil:
        for c in range(n):
            search.sizes[c] = 0
            for p in range(n):
                search.sizes[c] += arcs[c, p] != 0
        for c in range(n):
            tops[c] = -INFINITY
            for kind in range(3):
                p = -1
                while True:
                    # what is less than the best so far by more than a tie can be neither the best nor tie with it
                    p = next_change(&search, kind, c, p + 1, top - tie, &gain)
                    if p < 0:
                        break
                    tops[c] = max(tops[c], gain)
                    top = max(top, gain)
        if top > -INFINITY:
            for c in range(n - 1, -1, -1):
                if tops[c] >= top - tie:
                    break
            for kind in range(3):
                p = next_change(&search, kind, c, 0, top - tie, &gain)
                if p >= 0:
                    found_kind, found_p, found_c, found = kind, p, c, gain
                    break
    free(search.sizes)
    free(tops)
    return found_kind, found_p, found_c, found


cdef int64_t next_change(
    const Search* search, int64_t kind, int64_t c, int64_t p, double floor, double* gain
) noexcept nogil:
    """The next parent from p on whose arc into c can be changed for a gain of `floor` at least, −1 if there is none."""
    cdef int64_t n = search.n
    cdef const uint8_t* arcs = search.arcs + c * n
    cdef const double* add_gain = search.add_gain + c * n
    cdef const double* delete_gain = search.delete_gain + c * n
    if (search.sizes[c] >= search.most) if kind == ADD else (search.sizes[c] == 0):
        return -1
    while p < n:
        if kind == ADD:
            if not add_gain[p] >= floor or arcs[p] or not search.allowed[c * n + p] or search.above[p * n + c]:
                p += 1
                continue
            gain[0] = add_gain[p]
        else:
            if not arcs[p] or search.required[c * n + p]:
                p += 1
                continue
            gain[0] = delete_gain[p]
            if kind == REVERSE:
                gain[0] += search.add_gain[p * n + c]
            if not gain[0] >= floor or (kind == REVERSE and not can_turn(search, p, c)):
                p += 1
                continue
        if gain[0] > (search.bar if search.blocked[c * n + p] else search.least):
            return p
        p += 1
    return -1


cdef bint can_turn(const Search* search, int64_t p, int64_t c) noexcept nogil:
    """Whether p → c can be turned around: it is allowed, p has room, and no other parent of c is below p."""
    cdef int64_t n = search.n, q
    if not search.allowed[p * n + c] or search.sizes[p] >= search.most:
        return False
    for q in range(n):
        if search.arcs[c * n + q] and q != p and search.above[q * n + p]:
            return False
    return True
