"""Greedy elimination; see `triangulate.pyx`."""

from libc.stdint cimport int64_t, uint64_t

from bbn.kernels.compiled.heap cimport Entry


cdef void price(int rule, int64_t v, uint64_t* adjacent, int64_t words, const int64_t* cards, int64_t* around,
                Entry* entry) noexcept nogil
