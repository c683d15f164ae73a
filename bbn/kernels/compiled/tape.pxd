"""The words of a tape, as constants for the compiled kernels; see `tape`."""

cdef extern from "tape.h":
    enum:
        CLEAR
        SCALAR
        SWEEP
        RESCALE
        NORM
        TOTAL
        RATIO
        FINISH
        BANDS
    enum:
        MUL
        LIKELY
        ADD
    enum:
        NOTHING
        TABLES
        BASE
        WORK
        OUT
    enum:
        DEEPEST
    enum:
        BAND_LANES

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
    STREAM_AGAIN = 4096
    STREAM_TREE = 500000
    MOST_SOURCES = 32
    FEW = 8
    LARGE = 1000000
