# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Plain arrays at little cost: memory that lives as long as a piece of work, and words to and from numpy.

A first query on a small network spends more on making arrays than on arithmetic, so the compiler of plans takes its
memory from one block and speaks to numpy through its C interface.
"""

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

cnp.import_array()

cdef enum:
    BLOCK = 2048


cdef class Arena:
    """Zeroed arrays of words that live as long as this object."""

    def __dealloc__(self):
        cdef int64_t k
        for k in range(self.count):
            free(self.blocks[k])
        free(self.blocks)

    cdef int64_t* ints(self, int64_t n) except NULL:
        cdef int64_t size
        cdef void* block
        cdef void** grown
        if n >= self.left:
            size = n + 1 if n >= BLOCK else BLOCK
            if self.count == self.room:
                grown = <void**> realloc(self.blocks, (2 * self.room + 8) * sizeof(void*))
                if grown == NULL:
                    raise MemoryError
                self.blocks = grown
                self.room = 2 * self.room + 8
            block = calloc(size, sizeof(int64_t))
            if block == NULL:
                raise MemoryError
            self.blocks[self.count] = block
            self.count += 1
            if n >= BLOCK:
                return <int64_t*> block
            self.free_words, self.left = <int64_t*> block, size
        self.free_words += n + 1
        self.left -= n + 1
        return self.free_words - (n + 1)


cdef Words words_of(cnp.ndarray array) except? NULL:
    """The words of an array of int64 in C order."""
    if cnp.PyArray_TYPE(array) != cnp.NPY_INT64 or not cnp.PyArray_IS_C_CONTIGUOUS(array):
        raise TypeError(f"expected int64 in C order, found {array.dtype}")
    return <Words> cnp.PyArray_DATA(array)


cdef cnp.ndarray ints_array(const int64_t* source, int64_t n):
    """A new array of these words."""
    cdef cnp.npy_intp size = n
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT64, 0)
    if n:
        memcpy(cnp.PyArray_DATA(out), source, n * sizeof(int64_t))
    return out
