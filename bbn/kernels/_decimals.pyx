# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Numbers as text that reads back bit for bit: the compiled twin of `decimals_py`."""

from libc.math cimport floor
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, strlen

cdef extern from "Python.h":
    char* PyOS_double_to_string(double value, char format, int precision, int flags, int* kind) except NULL
    void PyMem_Free(void* memory)
    int Py_DTSF_ADD_DOT_0
    object PyUnicode_DecodeASCII(const char* text, Py_ssize_t size, const char* errors)

cdef enum:
    MAX_LENGTH = 40  # of one number

cdef double[16] POWERS
cdef int _i
for _i in range(16):
    POWERS[_i] = float(10**_i)


def row_texts(const double[::1] values, Py_ssize_t card, str separator):
    """See `decimals_py.row_texts`."""
    cdef bytes between = separator.encode("ascii")
    cdef const char* gap = between
    cdef Py_ssize_t gap_length = len(between), n = values.shape[0], i, j, at
    cdef char* buffer = <char*> malloc(card * (MAX_LENGTH + gap_length) + 1)
    if buffer == NULL:
        raise MemoryError
    rows = []
    try:
        for i in range(0, n, card):
            at = 0
            for j in range(card):
                if j:
                    memcpy(buffer + at, gap, gap_length)
                    at += gap_length
                at += number(values[i + j], buffer + at)
            rows.append(PyUnicode_DecodeASCII(buffer, at, NULL))
    finally:
        free(buffer)
    return rows


cdef Py_ssize_t number(double value, char* out) except -1:
    """Write the shortest text that reads back as this value; give its length.

    A quotient m / 10^k of exact doubles is rounded right (Clinger 1990), so the first k that gives the value back
    gives its fewest digits. Other values, with 16 digits or more or very small, are left to Python's `repr`.
    """
    cdef int k, digits = 0, place
    cdef uint64_t whole
    cdef double scaled
    cdef char* text
    cdef char[20] reversed_digits
    if 1e-4 <= value < 10.0 or value == 0.0 and 1.0 / value > 0:
        for k in range(1, 15):
            scaled = floor(value * POWERS[k] + 0.5)
            if scaled / POWERS[k] == value:
                whole = <uint64_t> scaled
                while digits <= k:
                    reversed_digits[digits] = <char> (c"0" + whole % 10)
                    whole //= 10
                    digits += 1
                out[0] = reversed_digits[k]
                out[1] = c"."
                for place in range(k):
                    out[2 + place] = reversed_digits[k - 1 - place]
                return k + 2
    text = PyOS_double_to_string(value, c"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    cdef Py_ssize_t length = strlen(text)
    memcpy(out, text, length)
    PyMem_Free(text)
    return length
