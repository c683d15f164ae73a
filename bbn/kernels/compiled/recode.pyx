# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Looking the rows of a column up: the compiled twin of `pure.recode`."""

import numpy as np

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #define BBN_FEW 8

    /* One of up to BBN_FEW entries for each row by comparisons alone, which the compiler does for sixteen rows at once. */
    static void bbn_recode_few(const uint8_t *restrict entry, int64_t n_entries,
                               const uint8_t *restrict index, uint8_t *restrict out, int64_t n) {
        uint8_t flip[BBN_FEW];  /* what turns the first entry into the k-th */
        for (int k = 0; k < BBN_FEW; k++) flip[k] = k < n_entries ? entry[0] ^ entry[k] : 0;
        const uint8_t first = entry[0];
        const uint8_t f1 = flip[1], f2 = flip[2], f3 = flip[3], f4 = flip[4], f5 = flip[5], f6 = flip[6], f7 = flip[7];
        for (int64_t i = 0; i < n; i++) {
            const uint8_t at = index[i];
            out[i] = first ^ (f1 & (uint8_t) -(at == 1)) ^ (f2 & (uint8_t) -(at == 2)) ^ (f3 & (uint8_t) -(at == 3))
                ^ (f4 & (uint8_t) -(at == 4)) ^ (f5 & (uint8_t) -(at == 5)) ^ (f6 & (uint8_t) -(at == 6))
                ^ (f7 & (uint8_t) -(at == 7));
        }
    }
    """
    int64_t FEW "BBN_FEW"
    void recode_few "bbn_recode_few"(
        const uint8_t* entry, int64_t n_entries, const uint8_t* index, uint8_t* out, int64_t n
    ) noexcept nogil

ctypedef fused index_t:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t

ctypedef fused code_t:
    uint8_t
    uint16_t


def recode(const code_t[::1] look_up, const index_t[::1] index, bint inside=False):
    """See `pure.recode.recode`. Negative numbers are large ones where they are read without a sign."""
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
    if inside and n and code_t is uint8_t and index_t is uint8_t and last < FEW:
        with nogil:
            recode_few(<const uint8_t*> entry, last + 1, <const uint8_t*> &index[0], <uint8_t*> &out[0], n)
        return codes
    with nogil:
        if inside:
            for i in range(n):
                out[i] = entry[index[i]]
        else:
            for i in range(n):
                at = <uint64_t> <int64_t> index[i]
                out[i] = entry[at if at < most else most]
    return codes


def present(const index_t[::1] index, int64_t n_values):
    """See `pure.recode.present`."""
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
