# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Coding columns and merging rows: the compiled twin of `pure.count`."""

import numpy as np

from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcmp, memcpy

cdef enum:
    CACHE = 256


def _is_missing(value):
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"


cdef extern from "Python.h":
    bint PyUnicode_CheckExact(PyObject* text)
    bint PyUnicode_IS_COMPACT_ASCII(PyObject* text)
    int64_t PyUnicode_GET_LENGTH(PyObject* text)
    const uint8_t* PyUnicode_1BYTE_DATA(PyObject* text)


cdef struct Text:
    uint64_t first
    uint64_t last
    int64_t length
    const char* bytes


cdef inline uint32_t look(const char* bytes, int64_t length, Text* text) noexcept nogil:
    """Fill in a text, and give its place in a cache. Up to 16 bytes its length, first and last bytes are all of it."""
    cdef uint32_t low = 0, high = 0
    text.bytes, text.length, text.first, text.last = bytes, length, 0, 0
    if length >= 8:
        memcpy(&text.first, bytes, 8)
        memcpy(&text.last, bytes + length - 8, 8)
    elif length >= 4:
        memcpy(&low, bytes, 4)
        memcpy(&high, bytes + length - 4, 4)
        text.first, text.last = low, high
    elif length > 0:
        text.first = <uint8_t> bytes[0] + (<uint64_t> <uint8_t> bytes[length >> 1] << 8)
        text.last = <uint8_t> bytes[length - 1]
    return <uint32_t> (
        ((text.first ^ (text.last * 0xC2B2AE3D27D4EB4FULL)) * 0x9E3779B97F4A7C15ULL + <uint64_t> length) >> 56
    )


cdef inline bint alike(const Text* a, const Text* b) noexcept nogil:
    return (
        a.length == b.length and a.first == b.first and a.last == b.last
        and (a.length <= 16 or memcmp(a.bytes, b.bytes, a.length) == 0)
    )


def factorize_objects(values):
    """See `pure.count.factorize_objects`. A row that holds the very object seen before, or an equal text, is quick."""
    values = np.ascontiguousarray(values, dtype=object)
    cdef int64_t n = values.shape[0], i
    cdef PyObject** items = <PyObject**> <uintptr_t> values.ctypes.data
    codes = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] out = codes
    cdef uintptr_t seen[CACHE]
    cdef int32_t code_of[CACHE]
    cdef Text texts[CACHE]
    cdef int32_t text_code[CACHE]
    cdef Text text
    cdef bint ascii
    cdef uint32_t place = 0
    cdef uintptr_t address
    cdef uint32_t slot
    cdef int32_t code
    cdef dict known = {}
    cdef list uniques = []
    for i in range(CACHE):
        seen[i] = 0
        texts[i].length = -1
    for i in range(n):
        address = <uintptr_t> items[i]
        slot = ((address >> 4) ^ (address >> 12)) & (CACHE - 1)
        if seen[slot] == address:
            out[i] = code_of[slot]
            continue
        ascii = PyUnicode_CheckExact(items[i]) and PyUnicode_IS_COMPACT_ASCII(items[i])
        if ascii:
            place = look(<const char*> PyUnicode_1BYTE_DATA(items[i]), PyUnicode_GET_LENGTH(items[i]), &text)
            if alike(&texts[place], &text):
                out[i] = text_code[place]
                continue
        value = <object> items[i]
        key = value if type(value) is str else (type(value), value)
        found = known.get(key)
        if found is None:
            if _is_missing(value):
                found = -1
            else:
                found = len(uniques)
                uniques.append(value)
            known[key] = found
        code = found
        out[i] = code
        seen[slot] = address
        code_of[slot] = code
        if ascii:
            texts[place] = text
            text_code[place] = code
    return codes, uniques


ctypedef fused offset_t:
    int32_t
    int64_t


def factorize_text(const offset_t[::1] offsets, const uint8_t[::1] data):
    """See `pure.count.factorize_text`. A text seen before costs one look-up by its length, first and last bytes."""
    cdef int64_t n = offsets.shape[0] - 1, i
    cdef const uint8_t* bytes_ = &data[0] if data.shape[0] else NULL
    codes = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] out = codes
    cdef Text texts[CACHE]
    cdef int32_t code_of[CACHE]
    cdef Text text
    cdef uint32_t slot
    cdef dict known = {}
    cdef list uniques = []
    for i in range(CACHE):
        texts[i].length = -1
    for i in range(n):
        if offsets[i] < 0 or offsets[i + 1] < offsets[i] or offsets[i + 1] > data.shape[0]:
            raise ValueError(
                f"row {i}: bytes {offsets[i]} to {offsets[i + 1]} are not among the {data.shape[0]} there are")
        slot = look(<const char*> bytes_ + offsets[i], offsets[i + 1] - offsets[i], &text)
        if alike(&texts[slot], &text):
            out[i] = code_of[slot]
            continue
        raw = text.bytes[:text.length] if text.length else b""
        found = known.get(raw)
        if found is None:
            found = len(uniques)
            uniques.append(raw.decode("utf-8"))
            known[raw] = found
        out[i] = found
        texts[slot] = text
        code_of[slot] = out[i]
    return codes, uniques


def merge_rows(list columns):
    """See `pure.count.merge_rows`. Rows are hashed into an open table and compared in full where hashes meet."""
    cdef int64_t n_columns = len(columns), n_rows = len(columns[0]) if n_columns else 0
    for c in range(n_columns):
        if len(columns[c]) != n_rows:
            raise ValueError(f"column {c}: expected {n_rows} rows, found {len(columns[c])}")
    if n_rows > INT32_MAX:
        raise ValueError(f"expected at most {INT32_MAX} rows, found {n_rows}")
    stacked = np.empty((n_rows, n_columns), dtype=np.result_type(np.uint8, *columns))
    for c in range(n_columns):
        stacked[:, c] = columns[c]
    cdef const uint8_t[:, ::1] rows = stacked.view(np.uint8)
    n_columns = rows.shape[1]
    cdef int64_t mask = 1, i, k, slot, n_sets = 0, other
    while mask < 3 * n_rows // 2 + 1:
        mask <<= 1
    first = np.empty(n_rows, dtype=np.int64)
    inverse = np.empty(n_rows, dtype=np.int64)
    slots = np.full(mask, -1, dtype=np.int32)
    cdef int64_t[::1] first_ = first, inverse_ = inverse
    cdef int32_t[::1] slots_ = slots
    cdef uint64_t h
    cdef bint same
    mask -= 1
    with nogil:
        for i in range(n_rows):
            h = 1469598103934665603ULL
            for k in range(n_columns):
                h = (h ^ rows[i, k]) * 1099511628211ULL
            h ^= h >> 29
            slot = <int64_t> (h & <uint64_t> mask)
            while True:
                other = slots_[slot]
                if other < 0:
                    slots_[slot] = n_sets
                    first_[n_sets] = i
                    inverse_[i] = n_sets
                    n_sets += 1
                    break
                same = True
                for k in range(n_columns):
                    if rows[first_[other], k] != rows[i, k]:
                        same = False
                        break
                if same:
                    inverse_[i] = other
                    break
                slot = (slot + 1) & mask
    return first[:n_sets].copy(), inverse
