# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Looking the rows of a column up: the compiled twin of `recode_py`."""

import numpy as np

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint64_t

ctypedef fused index_t:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t

ctypedef fused code_t:
    uint8_t
    uint16_t


def recode(const code_t[::1] look_up, const index_t[::1] index):
    """See `recode_py.recode`. Negative numbers are large ones where they are read without a sign."""
    cdef int64_t n = index.shape[0], last = look_up.shape[0] - 1, i
    cdef uint64_t at, most = <uint64_t> last
    if last < 0:
        raise ValueError("look_up: expected at least one entry")
    if code_t is uint8_t:
        codes = np.empty(n, dtype=np.uint8)
    else:
        codes = np.empty(n, dtype=np.uint16)
    cdef code_t[::1] out = codes
    cdef const code_t* entry = &look_up[0]
    with nogil:
        for i in range(n):
            at = <uint64_t> <int64_t> index[i]
            out[i] = entry[at if at < most else most]
    return codes


def present(const index_t[::1] index, int64_t n_values):
    """See `recode_py.present`."""
    if n_values < 0:
        raise ValueError(f"n_values: expected 0 or more, found {n_values}")
    seen = np.zeros(n_values + 1, dtype=np.uint8)
    cdef uint8_t[::1] out = seen
    cdef int64_t n = index.shape[0], i
    cdef uint64_t at, most = <uint64_t> n_values
    with nogil:
        for i in range(n):
            at = <uint64_t> <int64_t> index[i]
            out[at if at < most else most] = 1
    return seen.view(np.bool_)
