# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What regressions leave of a column's sum of squares: the compiled twin of `pure.regress`."""

import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from bbn.kernels.contracts.checks import check_ints, check_numbers, check_offsets
from bbn.kernels.pure.regress import check_regressions


def residuals(const double[:, ::1] scatter, const int64_t[::1] columns, const int64_t[::1] ptr, double collinear):
    """See `pure.regress.residuals`."""
    cdef int64_t n_families = ptr.shape[0] - 1, f, n, most = 0
    cdef double* work
    check_regressions(scatter.base, columns.base)
    check_ints(ptr.base)
    check_numbers("i", 1, ptr.base)
    check_offsets(ptr.base, columns.shape[0], "ptr")
    for f in range(n_families):
        n = ptr[f + 1] - ptr[f] - 1
        if n < 0:
            raise ValueError("ptr: expected families of at least one column")
        most = max(most, n)
    rest = np.empty(n_families)
    cdef double[::1] out = rest
    work = <double*> malloc((most * (most + 2) + 1) * sizeof(double))
    if work == NULL:
        raise MemoryError
    with nogil:
        for f in range(n_families):
            n = ptr[f + 1] - ptr[f] - 1
            out[f] = eliminate(scatter, &columns[ptr[f]], n, columns[ptr[f] + n], collinear, work)
    free(work)
    return rest


def residuals_around(
    const double[:, ::1] scatter, int64_t child, tuple own, list add, list delete, double collinear
):
    """See `pure.regress.residuals_around`."""
    cdef int64_t n = scatter.shape[0], n_own = len(own), n_add = len(add), n_delete = len(delete), i, k, m, v
    if scatter.shape[1] != n:
        raise ValueError(f"scatter: expected shape {(n, n)}, found {(n, scatter.shape[1])}")
    if not 0 <= child < n:
        raise ValueError(f"expected variables from 0 to {n - 1}, found {child}")
    result = np.empty(n_add + n_delete + 1)
    cdef double[::1] out = result
    cdef int64_t* parents = <int64_t*> malloc((2 * n_own + n_add + n_delete + 1) * sizeof(int64_t))
    cdef int64_t* kept = parents + n_own
    cdef int64_t* more = kept + n_own
    cdef int64_t* gone = more + n_add
    cdef double* work = <double*> malloc((n_own * (n_own + 3) + 1) * sizeof(double))
    try:
        if parents == NULL or work == NULL:
            raise MemoryError
        for i in range(n_own):
            parents[i] = own[i]
        for i in range(n_add):
            more[i] = add[i]
        for i in range(n_own + n_add):
            v = parents[i] if i < n_own else more[i - n_own]
            if not 0 <= v < n:
                raise ValueError(f"expected variables from 0 to {n - 1}, found {v}")
        for i in range(n_delete):
            if delete[i] not in own:
                raise ValueError(f"delete: {delete[i]} is not a parent of {child}")
            gone[i] = delete[i]
        with nogil:
            for i in range(n_delete):
                m = 0
                for k in range(n_own):
                    if parents[k] != gone[i]:
                        kept[m] = parents[k]
                        m += 1
                out[n_add + i] = eliminate(scatter, kept, m, child, collinear, work)
            out[n_add + n_delete] = eliminate(scatter, parents, n_own, child, collinear, work)
            for i in range(n_add):
                out[i] = one_more(scatter, parents, n_own, child, more[i], collinear, work)
    finally:
        free(parents)
        free(work)
    return result


cdef double eliminate(
    const double[:, ::1] scatter, const int64_t* parents, int64_t n, int64_t child, double collinear, double* work
) noexcept nogil:
    """What n parents leave of a child's sum of squares.

    `work` keeps the rows of the elimination, n × n, then 1 / pivot, 0 where a parent is left out, then the child's part.
    """
    cdef double* inverse = work + n * n
    cdef double* own = inverse + n
    cdef double rest = scatter[child, child]
    cdef int64_t i, j, k
    for i in range(n):
        for j in range(i, n):
            work[i * n + j] = scatter[parents[i], parents[j]]
        own[i] = scatter[parents[i], child]
    for k in range(n):
        inverse[k] = 0.0
        if not work[k * n + k] > collinear * scatter[parents[k], parents[k]]:
            continue
        inverse[k] = 1.0 / work[k * n + k]
        for i in range(k + 1, n):
            for j in range(i, n):
                work[i * n + j] -= work[k * n + i] * inverse[k] * work[k * n + j]
            own[i] -= work[k * n + i] * inverse[k] * own[k]
        rest -= own[k] * inverse[k] * own[k]
    return max(rest, 0.0)


cdef double one_more(
    const double[:, ::1] scatter, const int64_t* parents, int64_t n, int64_t child, int64_t z, double collinear,
    double* work,
) noexcept nogil:
    """The same with one parent more, from what `eliminate` has kept of the others."""
    cdef const double* inverse = work + n * n
    cdef const double* own = inverse + n
    cdef double* part = work + n * (n + 2)
    cdef double rest = scatter[child, child], left = scatter[z, z], shared = scatter[z, child]
    cdef int64_t i, k
    for k in range(n):
        part[k] = scatter[parents[k], z]
    for k in range(n):
        if inverse[k] == 0.0:
            continue
        for i in range(k + 1, n):
            part[i] -= work[k * n + i] * inverse[k] * part[k]
        left -= part[k] * inverse[k] * part[k]
        shared -= part[k] * inverse[k] * own[k]
        rest -= own[k] * inverse[k] * own[k]
    if left > collinear * scatter[z, z]:
        rest -= shared / left * shared
    return max(rest, 0.0)
