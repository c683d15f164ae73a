# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Classifying coded rows: the compiled twin of `pure.classify`."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t

cdef enum:
    BLOCK = 1024

cdef double LARGE = 2.0**62  # a larger double is not an index

ctypedef fused number:
    const int64_t
    const double


cdef int check_columns(int64_t d, const int64_t[::1] low, const int64_t[::1] ptr) except -1:
    """Raise ValueError unless there is a least number, and a range of flags, for each column."""
    cdef int64_t j
    if low.shape[0] != d or ptr.shape[0] != d + 1:
        raise ValueError(f"expected {d} least numbers and {d + 1} offsets, found {low.shape[0]} and {ptr.shape[0]}")
    if ptr[0] != 0:
        raise ValueError(f"offsets: expected 0 first, found {ptr[0]}")
    for j in range(d):
        if ptr[j + 1] < ptr[j]:
            raise ValueError(f"offsets fall from {ptr[j]} to {ptr[j + 1]}")
    return 0


def present(number[:, ::1] matrix, const int64_t[::1] low, const int64_t[::1] ptr):
    """See `pure.classify.present`."""
    cdef int64_t n = matrix.shape[0], d = matrix.shape[1], i, j
    check_columns(d, low, ptr)
    flags = np.zeros(ptr[d], dtype=np.uint8)
    cdef uint8_t[::1] seen = flags
    cdef bint whole = True, inside = True
    cdef int64_t value
    cdef uint64_t at
    with nogil:
        for i in range(n):
            for j in range(d):
                if number is const_double:
                    if not -LARGE < matrix[i, j] < LARGE:
                        whole = False
                        break
                value = <int64_t> matrix[i, j]
                if number is const_double:
                    if value != matrix[i, j]:
                        whole = False
                        break
                at = <uint64_t> value - <uint64_t> low[j]
                if at >= <uint64_t> (ptr[j + 1] - ptr[j]):
                    inside = False
                    break
                seen[ptr[j] + <int64_t> at] = 1
            if not (whole and inside):
                break
    if not inside:
        raise ValueError("matrix: expected numbers between the least and the largest of each column")
    return flags if whole else None


def code_matrix(number[:, ::1] matrix, const int64_t[::1] low, const int64_t[::1] ptr, const uint8_t[::1] look_up,
                const uint8_t[::1] otherwise):
    """See `pure.classify.code_matrix`. Rows go by in blocks, so that each is read from memory once."""
    cdef int64_t n = matrix.shape[0], d = matrix.shape[1], i, j, start, stop, span, value
    check_columns(d, low, ptr)
    if look_up.shape[0] < ptr[d] or otherwise.shape[0] != d:
        raise ValueError(f"expected {ptr[d]} entries to look up and {d} otherwise")
    codes = np.empty((d, n), dtype=np.uint8)
    cdef uint8_t[:, ::1] out = codes
    cdef const uint8_t* table
    cdef uint8_t missing
    cdef double x
    cdef uint64_t at
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
                        at = <uint64_t> (value if value == x else span)
                    else:
                        at = <uint64_t> matrix[i, j] - <uint64_t> low[j]
                    out[j, i] = table[at] if at < <uint64_t> span else missing
            start = stop
    return codes


def add_scores(list columns, const int64_t[::1] ptr, const double[:, ::1] tables, double[:, ::1] scores):
    """See `pure.classify.add_scores`. Rows go by in blocks whose scores stay in cache."""
    cdef int64_t n = scores.shape[0], k = scores.shape[1], d = len(columns), i, j, c, start, stop
    cdef int64_t n_tables = tables.shape[0], wrong = -1
    cdef uint16_t code, highest
    cdef const uint8_t[::1] narrow
    cdef const uint16_t[::1] wide
    cdef const double* table
    cdef const double* row
    if tables.shape[1] != k:
        raise ValueError(f"tables: expected {k} classes, found {tables.shape[1]}")
    if ptr.shape[0] < d:
        raise ValueError(f"ptr: expected at least {d} offsets, found {ptr.shape[0]}")
    if n == 0 or d == 0:
        return
    narrows = np.zeros(d, dtype=np.uintp)
    wides = np.zeros(d, dtype=np.uintp)
    cdef size_t[::1] narrow_at = narrows, wide_at = wides
    for j in range(d):
        if len(columns[j]) != n:
            raise ValueError(f"column {j}: expected {n} rows, found {len(columns[j])}")
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
                codes8 = <const uint8_t*> narrow_at[j]
                codes16 = <const uint16_t*> wide_at[j]
                highest = 0
                for i in range(start, stop):
                    code = codes8[i] if codes8 != NULL else codes16[i]
                    highest = code if code > highest else highest
                if not 0 <= ptr[j] < n_tables - highest:
                    wrong = j
                    break
                table = &tables[ptr[j], 0]
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
            start = n if wrong >= 0 else stop
    if wrong >= 0:
        raise ValueError(f"column {wrong}: a code has no row among the {n_tables} of the tables")
