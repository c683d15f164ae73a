# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Plain arrays at little cost: memory that lives as long as a piece of work, words to and from numpy, and checks.

The checks stand at the entry of the kernels, which index without bounds; `checks` has their twins. A first query on a small network spends more on making arrays than on arithmetic, so the compiler of plans takes its
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
    if array is None:
        raise TypeError("expected int64 in C order, found None")
    if cnp.PyArray_TYPE(array) != cnp.NPY_INT64 or not cnp.PyArray_ISCARRAY_RO(array):
        raise TypeError(f"expected int64 in C order, found {array.dtype}")
    return <Words> cnp.PyArray_DATA(array)


cdef int check_length(int64_t found, int64_t expected, str what) except -1:
    """Raise ValueError unless an array is as long as another one asks for."""
    if found != expected:
        raise ValueError(f"{what}: expected length {expected}, found {found}")
    return 0


cdef int check_range(Words words, int64_t n, int64_t first, int64_t stop, str what) except -1:
    """Raise ValueError unless each word is at least `first` and less than `stop`."""
    cdef int64_t i
    for i in range(n):
        if words[i] < first or words[i] >= stop:
            raise ValueError(f"{what}: expected numbers from {first} to {stop - 1}, found {words[i]} at {i}")
    return 0


cdef int check_offsets(cnp.ndarray array, int64_t size, str what) except -1:
    """Raise ValueError unless the words go from 0 to `size` and never fall; there is at least one."""
    cdef Words words = words_of(array)
    cdef int64_t n = cnp.PyArray_SIZE(array), i
    if n == 0 or words[0] != 0 or words[n - 1] != size:
        raise ValueError(f"{what}: expected offsets from 0 to {size}")
    for i in range(1, n):
        if words[i] < words[i - 1]:
            raise ValueError(f"{what}: offsets fall from {words[i - 1]} to {words[i]} at {i}")
    return 0


cdef cnp.ndarray ints_array(const int64_t* source, int64_t n):
    """A new array of these words."""
    cdef cnp.npy_intp size = n
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT64, 0)
    if n:
        memcpy(cnp.PyArray_DATA(out), source, n * sizeof(int64_t))
    return out
