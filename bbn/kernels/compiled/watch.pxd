"""See `watch`."""

from libc.stdint cimport int64_t

cdef enum:
    POLL_CELLS = 4000000

cdef extern from "range.h":
    ctypedef struct bbn_mode:
        pass
    bbn_mode bbn_range_begin() noexcept nogil
    bint bbn_range_left() noexcept nogil
    void bbn_range_end(bbn_mode before) noexcept nogil
    double bbn_taming(double total) noexcept nogil

cdef int poll() except -1 nogil
