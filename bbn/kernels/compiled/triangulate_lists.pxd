"""Greedy elimination of large sparse graphs; see `_triangulate_lists.pyx`."""

from libc.stdint cimport int64_t

from bbn.kernels.compiled.arrays cimport Words


cdef object eliminate_lists(Words cards, int64_t n, Words scope_ptr, Words scope, int64_t factors, int rule,
                            Words held, double most, const double* biased)
