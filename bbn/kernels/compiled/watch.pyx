# cython: language_level=3
"""How a loop without the interpreter lock asks whether to go on."""

from bbn.kernels.watch import check


cdef int poll() except -1 nogil:
    """0, or -1 with an exception set. It is called every POLL_CELLS cells or so."""
    with gil:
        check()
    return 0
