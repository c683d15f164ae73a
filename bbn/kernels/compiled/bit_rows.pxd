"""Sets of small numbers as rows of bits."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #define bbn_ctz(x) __builtin_ctzll(x)
    #define bbn_popcount(x) __builtin_popcountll(x)
    """
    int bbn_ctz(uint64_t x) nogil
    int bbn_popcount(uint64_t x) nogil


cdef inline int64_t list_bits(uint64_t* row, int64_t words, int64_t* out) noexcept nogil:
    """List the members of a row, ascending; how many there are."""
    cdef int64_t k, count = 0
    cdef uint64_t word
    for k in range(words):
        word = row[k]
        while word:
            out[count] = 64 * k + bbn_ctz(word)
            count += 1
            word &= word - 1
    return count


cdef inline bint has(uint64_t* row, int64_t v) noexcept nogil:
    return (row[v >> 6] >> (v & 63)) & 1


cdef inline void put(uint64_t* row, int64_t v) noexcept nogil:
    row[v >> 6] |= <uint64_t> 1 << (v & 63)


cdef inline void drop(uint64_t* row, int64_t v) noexcept nogil:
    row[v >> 6] &= ~(<uint64_t> 1 << (v & 63))
