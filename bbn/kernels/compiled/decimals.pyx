# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Numbers as text that reads back bit for bit: the compiled twin of `pure.decimals`."""

from libc.math cimport floor, frexp
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, strlen

cdef extern from *:
    ctypedef unsigned long long u128 "unsigned __int128"

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


def row_texts(const double[::1] values, Py_ssize_t card, str separator, str end):
    """See `pure.decimals.row_texts`."""
    cdef bytes between = separator.encode("ascii")
    cdef const char* gap = between
    cdef bytes after = end.encode("ascii")
    cdef const char* last = after
    cdef Py_ssize_t gap_length = len(between), end_length = len(after), n = values.shape[0], i, j, at
    if card < 1 or n % card:
        raise ValueError(f"{n} values are not rows of {card}")
    if n == 0:
        return []
    cdef char* buffer = <char*> malloc(card * (MAX_LENGTH + gap_length) + end_length + 1)
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
            memcpy(buffer + at, last, end_length)
            rows.append(PyUnicode_DecodeASCII(buffer, at + end_length, NULL))
    finally:
        free(buffer)
    return rows


cdef Py_ssize_t number(double value, char* out) except -1:
    """Write the shortest text that reads back as this value; give its length.

    The shortest is the first k for which the nearest multiple of 10^-k reads back as the value. Up to 14 places the
    quotient m / 10^k of exact doubles decides (Clinger 1990), past that whole numbers of 128 bits: with
    value = m / 2^e, the multiple d / 10^k is nearer to it than to any other double if
    |d 2^e - m 10^k| < 10^k / 2. Values for which that does not do (very small, powers of two) are left to `repr`.
    """
    cdef int k, e
    cdef double scaled, m
    cdef u128 product, power, gap
    cdef uint64_t d
    cdef char* text
    if 1e-6 <= value < 10.0 or value == 0.0 and 1.0 / value > 0:
        for k in range(1, 15):
            scaled = floor(value * POWERS[k] + 0.5)
            if scaled / POWERS[k] == value:
                return decimal(<uint64_t> scaled, k, value, out)
        m = frexp(value, &e) * 9007199254740992.0  # 2^53
        e = 53 - e
        if m != 4503599627370496.0:  # 2^52, below which the doubles are twice as dense
            power = 100000000000000
            for k in range(15, 23):
                power *= 10
                product = <u128> (<uint64_t> m) * power
                if (product >> e) >= 10000000000000000000ULL:
                    break
                d = <uint64_t> ((product + ((<u128> 1) << (e - 1))) >> e)
                gap = (<u128> d) << e
                gap = gap - product if gap > product else product - gap
                if 2 * gap < power:
                    return decimal(d, k, value, out)
    text = PyOS_double_to_string(value, c"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    cdef Py_ssize_t length = strlen(text)
    memcpy(out, text, length)
    PyMem_Free(text)
    return length


cdef Py_ssize_t decimal(uint64_t d, int k, double value, char* out) noexcept:
    """Write d / 10^k, which is less than 10, as `repr` does: below 1e-4 with an exponent."""
    cdef int place, digits = 0
    cdef uint64_t rest = d
    if 0.0 < value < 1e-4:
        while rest:
            digits += 1
            rest //= 10
        for place in range(digits, 1, -1):
            out[place] = <char> (c"0" + d % 10)
            d //= 10
        out[0] = <char> (c"0" + d)
        out[1] = c"."
        place = 1 if digits == 1 else digits + 1
        out[place] = c"e"
        out[place + 1] = c"-"
        out[place + 2] = c"0"
        out[place + 3] = <char> (c"0" + k - digits + 1)
        return place + 4
    for place in range(k + 1, 1, -1):
        out[place] = <char> (c"0" + d % 10)
        d //= 10
    out[1] = c"."
    out[0] = <char> (c"0" + d)
    return k + 2
