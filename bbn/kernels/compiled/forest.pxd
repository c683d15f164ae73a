"""The junction forest of an elimination order."""

from libc.stdint cimport int64_t

from bbn.kernels.compiled.arrays cimport Arena, Words


cdef class Forest:
    cdef Arena arena
    cdef object keep
    cdef Words cards, order, ptr, near, targets
    cdef int64_t n, m, n_targets, n_cliques, total_axes
    cdef int goal
    cdef int64_t *position
    cdef int64_t *home
    cdef int64_t *maker
    cdef int64_t *parent
    cdef int64_t *size
    cdef int64_t *child_head
    cdef int64_t *child_next
    cdef int64_t *axes_ptr
    cdef int64_t *axes
    cdef int64_t *separator
    cdef int64_t *mark

    cdef int grow(self, cards, elimination, targets, int goal) except -1
    cdef int check_elimination(self, elimination) except -1
    cdef int join_cliques(self) except -1
    cdef int hang_low(self, int64_t* maker, int64_t* parent, const int64_t* size) except -1
    cdef void mark_clique(self, int64_t k, int64_t value) noexcept
    cdef int64_t count_marked(self, int64_t k, int64_t value) noexcept
    cdef int order_axes(self) except -1
    cdef int order_in_long_runs(self, int64_t c, int64_t start, int64_t stop) except -1
