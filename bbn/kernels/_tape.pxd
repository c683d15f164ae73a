"""The words of a tape, as constants for the compiled kernels; see `tape`."""

cdef enum:
    CLEAR = 0
    SCALAR = 1
    SWEEP = 2
    RESCALE = 3
    NORM = 4
    TOTAL = 5
    RATIO = 6
    FINISH = 7

cdef enum:
    MUL = 0
    LIKELY = 1
    ADD = 2

cdef enum:
    NOTHING = 0
    TABLES = 0
    BASE = 1
    WORK = 2
    OUT = 3

cdef enum:
    FREE = 0
    SLICED = 1
    LIKELIHOOD = 2
    MASKED = 3

cdef enum:
    QUERY = 0
    MARGINALS = 1
    COLLECTED = 2

cdef enum:
    RESCALE_EVERY = 8
    SLAB = 2048
    ORDERED = 2048
    RUN = 64
    STREAM = 8192
    MOST_SOURCES = 32
    FEW = 8
    LARGE = 1000000
    DEEPEST = 64
