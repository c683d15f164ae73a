# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What regressions leave of a column's sum of squares: the compiled twin of `pure.regress`."""

import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from bbn.kernels.contracts.checks import check_ints, check_numbers, check_offsets
from bbn.kernels.pure.regress import check_regressions


cdef void eliminate(double* a, double* whole, int64_t size, int64_t count, double collinear) noexcept nogil:
    """Eliminate the first `count` columns of a symmetric matrix, in its upper triangle."""
    cdef int64_t k, i, j
    cdef double inverse, factor
    for k in range(size):
        whole[k] = a[k * size + k]
    for k in range(count):
        if a[k * size + k] > collinear * whole[k]:
            inverse = 1.0 / a[k * size + k]
            for i in range(k + 1, size):
                factor = a[k * size + i] * inverse
                for j in range(i, size):
                    a[i * size + j] -= factor * a[k * size + j]


def residuals(const double[:, ::1] scatter, const int64_t[::1] columns, const int64_t[::1] ptr, double collinear):
    """See `pure.regress.residuals`."""
    cdef int64_t n_families = ptr.shape[0] - 1, f, i, j, size, most = 1
    cdef const int64_t* index
    cdef double* a
    check_regressions(scatter.base, columns.base)
    check_ints(ptr.base)
    check_numbers("i", 1, ptr.base)
    check_offsets(ptr.base, columns.shape[0], "ptr")
    for f in range(n_families):
        size = ptr[f + 1] - ptr[f]
        if size < 1:
            raise ValueError("ptr: expected families of at least one column")
        most = max(most, size)
    rest = np.empty(n_families)
    cdef double[::1] out = rest
    a = <double*> malloc((most * most + most) * sizeof(double))
    if a == NULL:
        raise MemoryError
    with nogil:
        for f in range(n_families):
            size = ptr[f + 1] - ptr[f]
            index = &columns[ptr[f]]
            for i in range(size):
                for j in range(i, size):
                    a[i * size + j] = scatter[index[i], index[j]]
            eliminate(a, a + most * most, size, size - 1, collinear)
            out[f] = a[size * size - 1] if a[size * size - 1] > 0 else 0.0
    free(a)
    return rest


def with_one_more(const double[:, ::1] scatter, const int64_t[::1] own, int64_t child, const int64_t[::1] add,
                  double collinear):
    """See `pure.regress.with_one_more`."""
    cdef int64_t p = own.shape[0], n_add = add.shape[0], size = p + 1, k, i, c
    cdef double left, gone, rest, shared, factor
    cdef double* a
    cdef double* row
    check_regressions(scatter.base, own.base, add.base, np.array([child], dtype=np.int64))
    result = np.empty(n_add + 1)
    cdef double[::1] out = result
    # the own columns and the child as a matrix, its diagonal, and one further row
    a = <double*> malloc((size * size + 2 * size) * sizeof(double))
    if a == NULL:
        raise MemoryError
    row = a + size * size + size
    with nogil:
        for k in range(size):
            for i in range(k, size):
                a[k * size + i] = scatter[child if k == p else own[k], child if i == p else own[i]]
        eliminate(a, a + size * size, size, p, collinear)
        left = a[size * size - 1]
        for c in range(n_add):
            for k in range(p):
                row[k] = scatter[own[k], add[c]]
            shared, rest = scatter[add[c], child], scatter[add[c], add[c]]
            for k in range(p):
                if a[k * size + k] > collinear * a[size * size + k]:
                    factor = row[k] * (1.0 / a[k * size + k])
                    for i in range(k + 1, p):
                        row[i] -= factor * a[k * size + i]
                    shared -= factor * a[k * size + p]
                    rest -= factor * row[k]
            gone = shared * shared / rest if rest > collinear * scatter[add[c], add[c]] else 0.0
            out[c] = left - gone if left - gone > 0 else 0.0
        out[n_add] = left if left > 0 else 0.0
    free(a)
    return result
