"""Plain arrays at little cost: memory that lives as long as a piece of work, and words to and from numpy."""

cimport numpy as cnp
from libc.stdint cimport int64_t

ctypedef const int64_t* Words


cdef class Arena:
    cdef void** blocks
    cdef int64_t count, room
    cdef int64_t* free_words
    cdef int64_t left

    cdef int64_t* ints(self, int64_t n) except NULL


cdef Words words_of(cnp.ndarray array) except? NULL
cdef int check_length(int64_t found, int64_t expected, str what) except -1
cdef int check_range(Words words, int64_t n, int64_t first, int64_t stop, str what) except -1
cdef int check_offsets(cnp.ndarray array, int64_t size, str what) except -1
cdef cnp.ndarray ints_array(const int64_t* source, int64_t n)
