# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Classifying coded rows: the compiled twin of `classify_py`."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t

cdef enum:
    BLOCK = 1024

ctypedef fused number:
    const int64_t
    const double


def present(number[:, ::1] matrix, const int64_t[::1] low, const int64_t[::1] ptr):
    """See `classify_py.present`."""
    cdef int64_t n = matrix.shape[0], d = matrix.shape[1], i, j
    flags = np.zeros(ptr[d], dtype=np.uint8)
    cdef uint8_t[::1] seen = flags
    cdef bint whole = True
    cdef int64_t value
    with nogil:
        for i in range(n):
            for j in range(d):
                value = <int64_t> matrix[i, j]
                if number is const_double:
                    if value != matrix[i, j]:
                        whole = False
                        break
                seen[ptr[j] + value - low[j]] = 1
            if not whole:
                break
    return flags if whole else None


def code_matrix(number[:, ::1] matrix, const int64_t[::1] low, const int64_t[::1] ptr, const uint8_t[::1] look_up,
                const uint8_t[::1] otherwise):
    """See `classify_py.code_matrix`. Rows go by in blocks, so that each is read from memory once."""
    cdef int64_t n = matrix.shape[0], d = matrix.shape[1], i, j, start, stop, span, value
    codes = np.empty((d, n), dtype=np.uint8)
    cdef uint8_t[:, ::1] out = codes
    cdef const uint8_t* table
    cdef uint8_t missing
    cdef double x
    with nogil:
        start = 0
        while start < n:
            stop = min(n, start + BLOCK)
            for j in range(d):
                table = &look_up[0] + ptr[j]
                span = ptr[j + 1] - ptr[j]
                missing = otherwise[j]
                for i in range(start, stop):
                    if number is const_double:
                        x = matrix[i, j] - low[j]
                        value = <int64_t> x if 0 <= x < span else span
                        if value != x:
                            value = span
                    else:
                        value = matrix[i, j] - low[j]
                    out[j, i] = table[value] if 0 <= value < span else missing
            start = stop
    return codes


def add_scores(list columns, const int64_t[::1] ptr, const double[:, ::1] tables, double[:, ::1] scores):
    """See `classify_py.add_scores`. Rows go by in blocks whose scores stay in cache."""
    cdef int64_t n = scores.shape[0], k = scores.shape[1], d = len(columns), i, j, c, start, stop
    cdef const uint8_t[::1] narrow
    cdef const uint16_t[::1] wide
    cdef const double* table
    cdef const double* row
    if n == 0 or d == 0:
        return
    narrows = np.zeros(d, dtype=np.uintp)
    wides = np.zeros(d, dtype=np.uintp)
    cdef size_t[::1] narrow_at = narrows, wide_at = wides
    for j in range(d):
        if columns[j].dtype == np.uint8:
            narrow = columns[j]
            narrow_at[j] = <size_t> &narrow[0]
        else:
            wide = columns[j]
            wide_at[j] = <size_t> &wide[0]
    cdef const uint8_t* codes8
    cdef const uint16_t* codes16
    cdef double* out
    with nogil:
        start = 0
        while start < n:
            stop = min(n, start + BLOCK)
            for j in range(d):
                table = &tables[ptr[j], 0]
                codes8 = <const uint8_t*> narrow_at[j]
                codes16 = <const uint16_t*> wide_at[j]
                out = &scores[start, 0]
                if codes8 != NULL and k == 2:
                    for i in range(start, stop):
                        row = table + 2 * codes8[i]
                        out[0] += row[0]
                        out[1] += row[1]
                        out += 2
                elif codes8 != NULL:
                    for i in range(start, stop):
                        row = table + k * codes8[i]
                        for c in range(k):
                            out[c] += row[c]
                        out += k
                else:
                    for i in range(start, stop):
                        row = table + k * codes16[i]
                        for c in range(k):
                            out[c] += row[c]
                        out += k
            start = stop
