# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Run a tape one evidence at a time, no interpreter lock held.

Collect and distribute with division (Jensen, Lauritzen and Olesen 1990). Each message is normalised and its log
counted, so most products stay in range; 0/0 is 0. Where one does not, the same tape then goes
through a `WideProgram`.

Whether the numbers stayed in the range of a double is known from the processor's flags (`range.h`); where they did
not, the log of the total is NaN and the answer is of no use. Long runs let the main thread handle signals (`watch`).
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, NAN, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from bbn.kernels.compiled.arrays cimport Words, check_length, words_of
from bbn.kernels.compiled.tape cimport (
    ADD, BANDS, BASE, CLEAR, DEEPEST, FINISH, LARGE, LIKELY, MUL, NORM, RATIO, RESCALE, SCALAR, SWEEP, TABLES, TOTAL, WORK,
)
from bbn.kernels.compiled.watch cimport POLL_CELLS, bbn_mode, bbn_range_begin, bbn_range_end, bbn_range_left, poll

from bbn.kernels.contracts.bands import check_bands

cnp.import_array()

ctypedef const double* Source

cdef enum:
    BAND_CELLS = 64  # what a band counts, in cells of a sweep


cdef extern from "bands.h":
    ctypedef struct bbn_band_state:
        Source tables
        Source base
        double* work
        double* out
        const int64_t* codes
        double** likelihoods
        const int32_t* lists
        int32_t* ids
        int64_t* counts
        double* packed
    int64_t bbn_bands(const bbn_band_state* state, Words f, bint maximise) noexcept nogil


cdef extern from "rows.h":
    enum:
        ROW_CELLS
    ctypedef struct bbn_rows:
        int64_t rows
        int64_t width
    int64_t bbn_rows_read(const bbn_band_state* state, Words f, bbn_rows* rows) noexcept nogil
    void bbn_rows_go(bbn_rows* rows, int64_t planes, bint maximise) noexcept nogil


cdef struct Step:
    Source at  # the operand's part for the slab at hand
    Words walk  # its stride along each outer axis
    Words dims  # and, behind it, those within a slab
    int64_t depth
    bint adds


cdef struct State:
    bbn_band_state bands
    Source tables
    double* base
    double* work
    double* scratch
    double* out
    int64_t* codes
    double** likelihoods
    Step* steps
    int64_t room
    bint maximise
    bint left_range
    int64_t cells


cdef extern from "walk.h":
    void bbn_multiply(double* target, Source left, Source source, double scale, int64_t depth, Words dims,
                      Words steps) noexcept nogil
    void bbn_accumulate(double* target, Source cells, int64_t depth, Words dims, Words steps) noexcept nogil
    void bbn_maximise(double* target, Source cells, int64_t depth, Words dims, Words steps) noexcept nogil
    void bbn_scale(double* target, Source left, double factor, int64_t n) noexcept nogil
    double bbn_normalise(double* cells, int64_t n, bint maximise) noexcept nogil
    void bbn_ratio(double* fresh, double* message, Source old, int64_t n) noexcept nogil


cdef inline int64_t shift(Words moves, int64_t count, const int64_t* codes) noexcept nogil:
    cdef int64_t k, at = 0
    for k in range(count):
        at += codes[moves[2 * k]] * moves[2 * k + 1]
    return at


cdef int pause(State* state) except -1 nogil:
    """Let signals in; flags that the processor has set by now are kept."""
    state.cells = 0
    state.left_range |= bbn_range_left()
    poll()
    bbn_range_begin()
    return 0


cdef int clear(State* state, int64_t offset, int64_t n) except -1 nogil:
    """Zeros, part by part: the first touch of much memory takes long."""
    cdef int64_t part
    while n > 0:
        part = n if n < POLL_CELLS else POLL_CELLS
        memset(state.work + offset, 0, part * sizeof(double))
        offset += part
        n -= part
        state.cells += part >> 3  # a zero takes far less than a step of a sweep
        if state.cells > POLL_CELLS:
            pause(state)
    return 0


cdef inline Source operand(State* state, Words step) noexcept nogil:
    """Where the operand of a step of a sweep begins; NULL for a likelihood that the run does not have."""
    cdef Source start
    if step[0] == LIKELY:
        start = state.likelihoods[step[3]]
        if start == NULL:
            return NULL
    elif step[0] == ADD:
        start = (state.work if step[2] == WORK else state.out) + step[3]
    else:
        start = (state.tables if step[2] == TABLES else (state.base if step[2] == BASE else state.work)) + step[3]
    return start + shift(step + 6, step[4], state.codes)


cdef inline void advance(Step* steps, int64_t n, int64_t k, Words outer, int64_t n_outer) noexcept nogil:
    """Move operands to the next slab: one on along axis k, back to the start along those behind it."""
    cdef int64_t i, j
    for i in range(n):
        steps[i].at += steps[i].walk[k]
        for j in range(k + 1, n_outer):
            steps[i].at -= (outer[j] - 1) * steps[i].walk[j]


cdef int make_room(State* state, int64_t n_ops) except -1 nogil:
    """Room for the steps of a sweep, and as many scales."""
    cdef Step* steps
    if n_ops > state.room:
        steps = <Step*> realloc(state.steps, 2 * n_ops * sizeof(Step))
        if steps == NULL:
            raise MemoryError
        state.steps, state.room = steps, n_ops
    return 0


cdef inline void add_up(State* state, double* sink, Source cells, int64_t depth, Words dims) noexcept nogil:
    if state.maximise:
        bbn_maximise(sink, cells, depth, dims, dims + depth)
    else:
        bbn_accumulate(sink, cells, depth, dims, dims + depth)


cdef inline void keep_slab(double* target, Source current, double scale, int64_t n) noexcept nogil:
    """Write a slab back, with the factors that are the same all over it."""
    if current == NULL or scale != 1.0:
        bbn_scale(target, current, scale, n)
    elif current != target:
        memcpy(target, current, n * sizeof(double))


cdef int sweep_at_once(State* state, Words f) except -1 nogil:
    """A sweep of one slab; see `sweep`."""
    cdef int64_t slab = f[1], n_ops = f[6], k, depth
    cdef Words word = f + 7
    cdef Words dims
    cdef double* target = state.work + f[0] if f[3] else state.scratch
    cdef double scale = 1.0
    cdef Source source
    cdef Source current = NULL
    if f[2]:
        current = (state.base if f[2] == BASE else state.work) + f[0]
    for k in range(n_ops):
        source, depth, dims = operand(state, word), word[5], word + 6 + 2 * word[4]
        if word[0] == ADD:
            if current == NULL or scale != 1.0:
                bbn_scale(target, current, scale, slab)
                current, scale = target, 1.0
            add_up(state, <double*> source, current, depth, dims)
        elif source != NULL:
            if depth == 1 and dims[1] == 0:
                scale *= source[0]
            else:
                bbn_multiply(target, current, source, scale, depth, dims, dims + depth)
                current, scale = target, 1.0
        word += word[1]
    if f[3]:
        keep_slab(target, current, scale, slab)
    state.cells += slab * n_ops
    if state.cells > POLL_CELLS:
        pause(state)
    return 0


cdef int sweep(State* state, Words f) except -1 nogil:
    """f: region, cells, left, keep, slabs, n_o, n_ops, outer dims, steps."""
    cdef bbn_rows rows
    cdef int64_t planes, part
    if f[1] >= ROW_CELLS and not state.maximise:  # maxima are quicker slab by slab
        planes = bbn_rows_read(&state.bands, f, &rows)
        if planes:
            while planes > 0:
                part = max(1, POLL_CELLS // (rows.rows * rows.width))
                part = min(part, planes)
                bbn_rows_go(&rows, part, state.maximise)
                planes -= part
                state.cells += part * rows.rows * rows.width * f[6]
                if state.cells > POLL_CELLS:
                    pause(state)
            return 0
    if f[5] == 0:
        return sweep_at_once(state, f)
    return sweep_by_slabs(state, f)


cdef int sweep_by_slabs(State* state, Words f) except -1 nogil:
    cdef int64_t slabs = f[4], slab = f[1] // f[4], n_outer = f[5], n_ops = f[6]
    cdef int64_t counter[DEEPEST]
    cdef int64_t s, k, n_steps = 0, n_scales = 0
    cdef Words outer = f + 7
    cdef Words word = f + 7 + n_outer
    cdef Step* steps
    cdef Step* scales
    cdef Step* step
    cdef double* target = state.scratch
    cdef double scale
    cdef bint added = False
    cdef Source current
    cdef Source left = NULL
    make_room(state, n_ops)
    steps, scales = state.steps, state.steps + n_ops
    for k in range(n_ops):
        # step: kind, length, buffer, offset, n_e, n_d, moves, outer strides, dims, strides
        step = &steps[n_steps]
        step.at = operand(state, word)
        if step.at != NULL:
            step.depth = word[5]
            step.walk = word + 6 + 2 * word[4]
            step.dims = step.walk + n_outer
            step.adds = word[0] == ADD
            added |= step.adds
            if added or step.depth > 1 or step.dims[1] != 0:
                n_steps += 1
            else:  # the same all over a slab
                scales[n_scales] = step[0]
                n_scales += 1
        word += word[1]
    if f[2]:
        left = (state.base if f[2] == BASE else state.work) + f[0]
    if f[3]:
        target = state.work + f[0]
    for k in range(n_outer):
        counter[k] = 0
    for s in range(slabs):
        scale = 1.0
        for k in range(n_scales):
            scale *= scales[k].at[0]
        if scale == 0.0:
            if f[3]:
                memset(target, 0, slab * sizeof(double))
        else:
            current = left
            for k in range(n_steps):
                step = &steps[k]
                if step.adds:
                    if current == NULL or scale != 1.0:
                        bbn_scale(target, current, scale, slab)
                        current, scale = target, 1.0
                    add_up(state, <double*> step.at, current, step.depth, step.dims)
                else:
                    bbn_multiply(target, current, step.at, scale, step.depth, step.dims, step.dims + step.depth)
                    current, scale = target, 1.0
            if f[3]:
                keep_slab(target, current, scale, slab)
        state.cells += slab * n_ops
        if state.cells > POLL_CELLS:
            pause(state)
        if s + 1 == slabs:
            break
        if f[3]:
            target += slab
        if left != NULL:
            left += slab
        k = n_outer - 1
        counter[k] += 1
        while counter[k] == outer[k]:
            counter[k] = 0
            k -= 1
            counter[k] += 1
        advance(steps, n_steps, k, outer, n_outer)
        advance(scales, n_scales, k, outer, n_outer)
    return 0


cdef double execute(State* state, Words tape, int64_t length) except? -2.0 nogil:
    """The log of the total, -inf as soon as something sums to zero, or NaN if a number left the range of a double."""
    cdef bbn_mode mode = bbn_range_begin()
    cdef double total
    state.cells = state.left_range = 0
    state.bands.tables, state.bands.base, state.bands.work = state.tables, state.base, state.work
    state.bands.out, state.bands.codes, state.bands.likelihoods = state.out, state.codes, state.likelihoods
    try:
        total = follow(state, tape, length)
        return NAN if state.left_range or bbn_range_left() else total
    finally:
        bbn_range_end(mode)


cdef double follow(State* state, Words tape, int64_t length) except? -2.0 nogil:
    cdef Words end = tape + length
    cdef Words f
    cdef double product = 1.0, logs = 0.0, scale
    cdef int64_t op
    while tape < end:
        op = tape[0]
        f = tape + 2
        tape += tape[1]
        if op == SWEEP:
            sweep(state, f)
            continue
        if op == BANDS:
            state.cells += bbn_bands(&state.bands, f, state.maximise) * BAND_CELLS
            if state.cells > POLL_CELLS:
                pause(state)
            continue
        if op == RATIO:
            bbn_ratio(state.work + f[0], state.work + f[1], (state.base if f[3] == BASE else state.work) + f[1], f[2])
            continue
        if op == FINISH:
            scale = bbn_normalise(state.out + f[0], f[1], False)
            if not 0.0 < scale < INFINITY:
                return NAN
            continue
        if op == CLEAR:
            clear(state, f[0], f[1])
            continue
        if op == NORM:
            scale = bbn_normalise(state.work + f[0], f[1], state.maximise)
        elif op == TOTAL:
            scale = state.work[f[0]]
        elif op == SCALAR:
            scale = state.tables[f[0] + shift(f + 2, f[1], state.codes)]
        else:
            scale = bbn_normalise(state.work + f[0], f[1], True)
        if not scale > 0.0:
            return -INFINITY
        product *= scale
        if product < 1e-150 or product > 1e150:
            logs += log(product)
            product = 1.0
    return logs + log(product)


cdef cnp.ndarray doubles(int64_t n):
    """A new array, not set."""
    cdef cnp.npy_intp size = n
    return cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)


cdef class Workspace:
    """A run's own memory."""

    cdef State state
    cdef readonly cnp.ndarray work
    cdef list vectors

    def __cinit__(self, Program program):
        cdef int64_t k, n = program.n
        self.vectors = []
        self.state = program.state
        self.state.steps, self.state.room = NULL, 0
        self.state.scratch = <double*> malloc((program.scratch_size + 1) * sizeof(double))
        self.state.codes = <int64_t*> calloc(n + 1, sizeof(int64_t))
        self.state.likelihoods = <double**> calloc(n + 1, sizeof(double*))
        if self.state.scratch == NULL or self.state.codes == NULL or self.state.likelihoods == NULL:
            raise MemoryError
        if program.bands is not None:
            self.state.bands.ids = <int32_t*> calloc(program.bands.n_ids + 1, sizeof(int32_t))
            self.state.bands.counts = <int64_t*> calloc(program.bands.slots + 1, sizeof(int64_t))
            self.state.bands.packed = <double*> calloc(program.bands.packed + 1, sizeof(double))
            if self.state.bands.ids == NULL or self.state.bands.counts == NULL or self.state.bands.packed == NULL:
                raise MemoryError

    def __dealloc__(self):
        free(self.state.bands.ids)
        free(self.state.bands.counts)
        free(self.state.bands.packed)
        free(self.state.scratch)
        free(self.state.steps)
        free(self.state.codes)
        free(self.state.likelihoods)

    cdef int own(self, int64_t work_size) except -1:
        """Give it potentials of its own."""
        self.work = doubles(work_size + 1)
        self.state.work = <double*> cnp.PyArray_DATA(self.work)
        return 0


cdef class Program:
    """A layout with its tables, ready to run; safe to share between threads.

    Parameters
    ----------
    cards : int64 array (n,)
        The number of states of each variable.
    tables : float64 array
        The model's tables, one after another.
    layout : Layout
        The tapes and their memory.
    maximise : bool
        Take maxima instead of sums.
    bands : Bands, optional
        The lists of a layout that has BANDS.
    """

    cdef readonly object layout
    cdef readonly cnp.ndarray base
    cdef readonly cnp.ndarray once_out
    cdef readonly double once_log
    cdef readonly bint maximise
    cdef object cards, tables
    cdef readonly list pool
    cdef readonly object bands
    cdef int64_t n, out_size, run_length, work_size, scratch_size
    cdef Words run_words, sizes
    cdef double* once_values
    cdef double* certain
    cdef double* certainty
    cdef State state

    def __init__(self, cards, tables, layout, bint maximise=False, bands=None):
        cdef Workspace workspace
        cdef Words sizes = words_of(cards)
        cdef cnp.ndarray values = tables, run = layout.run, once = layout.once
        cdef int64_t v, largest = 1, once_length = cnp.PyArray_SIZE(once)
        cdef Words once_words = words_of(once)
        if cnp.PyArray_TYPE(values) != cnp.NPY_DOUBLE or not cnp.PyArray_IS_C_CONTIGUOUS(values):
            raise TypeError(f"expected doubles in C order, found {values.dtype}")
        self.layout, self.cards, self.tables = layout, cards, tables
        self.n, self.sizes = cnp.PyArray_SIZE(cards), sizes
        check_length(cnp.PyArray_SIZE(layout.out), self.n, "the layout's variables")
        check_length(cnp.PyArray_SIZE(values), layout.tables_size, "tables")
        self.maximise, self.bands = maximise, bands
        self.pool = []
        self.out_size, self.work_size, self.scratch_size = layout.out_size, layout.work_size, layout.scratch_size
        self.run_words, self.run_length = words_of(run), cnp.PyArray_SIZE(run)
        self.base, self.once_out = doubles(layout.base_size + 1), doubles(self.out_size + 1)
        self.once_values = <double*> cnp.PyArray_DATA(self.once_out)
        memset(self.once_values, 0, (self.out_size + 1) * sizeof(double))
        for v in range(self.n):
            if sizes[v] > largest:
                largest = sizes[v]
        # zeros around a one: read from `code` places before the one, it is the certainty of that code
        self.certainty = <double*> calloc(2 * largest + 1, sizeof(double))
        if self.certainty == NULL:
            raise MemoryError
        self.certain = self.certainty + largest
        self.certain[0] = 1.0
        self.state.base = <double*> cnp.PyArray_DATA(self.base)
        self.state.tables = <Source> cnp.PyArray_DATA(values)
        self.state.maximise = maximise
        if bands is not None:
            check_bands(cards, layout, bands, maximise)
            self.state.bands.lists = <const int32_t*> cnp.PyArray_DATA(bands.lists)
        workspace = Workspace(self)
        workspace.state.work = self.state.base
        workspace.state.out = self.once_values
        with nogil:
            self.once_log = execute(&workspace.state, once_words, once_length)
        if self.run_length:
            workspace.own(self.work_size)
            self.pool.append(workspace)

    def __dealloc__(self):
        free(self.certainty)

    def run(self, hard=(), likelihoods=()):
        """The normalised marginals that the layout reads, and the log of the total.

        The log is -inf if the evidence is impossible, and NaN, the marginals being of no use, if a number left the
        range of a double on the way.
        """
        cdef Workspace workspace
        cdef double total
        cdef cnp.ndarray out = doubles(self.out_size)
        memcpy(cnp.PyArray_DATA(out), self.once_values, self.out_size * sizeof(double))
        if self.run_length == 0 or not self.once_log > -INFINITY:
            return out, self.once_log
        workspace = self.take()
        total = self.execute(workspace, hard, likelihoods, <double*> cnp.PyArray_DATA(out))
        self.release(workspace)
        return out, total

    cdef Workspace take(self):
        """A workspace that no run has."""
        cdef Workspace workspace
        try:
            return self.pool.pop()
        except IndexError:
            workspace = Workspace(self)
            workspace.own(self.work_size)
            return workspace

    cpdef release(self, Workspace workspace):
        """Keep a workspace for other runs, of a large program at most one."""
        if self.work_size < LARGE or not self.pool:
            self.pool.append(workspace)

    def hold(self, hard=(), likelihoods=()):
        """A workspace with the collected potentials, until it is released, and the log of the total (or maximum)."""
        cdef Workspace workspace = self.take()
        if not self.once_log > -INFINITY:
            return workspace, self.once_log
        cdef cnp.ndarray out = doubles(self.out_size + 1)
        return workspace, self.execute(workspace, hard, likelihoods, <double*> cnp.PyArray_DATA(out))

    def collect(self, hard=(), likelihoods=()):
        """The collected potentials of dynamic and of static cliques, and the log of the total (or maximum)."""
        cdef Workspace workspace = Workspace(self)
        workspace.own(self.work_size)
        if not self.once_log > -INFINITY:
            return workspace.work, self.base, self.once_log
        cdef cnp.ndarray out = doubles(self.out_size + 1)
        cdef double total = self.execute(workspace, hard, likelihoods, <double*> cnp.PyArray_DATA(out))
        return workspace.work, self.base, total

    cdef double execute(self, Workspace workspace, hard, likelihoods, double* out) except? -2.0:
        cdef double total
        cdef int64_t v, code
        cdef double[::1] vector
        cdef tuple pair
        cdef list pairs = hard if type(hard) is list else list(hard)
        cdef State* state = &workspace.state
        state.out = out
        for pair in pairs:
            v, code = pair
            if not 0 <= v < self.n or not 0 <= code < self.sizes[v]:
                raise ValueError(f"variable {v} has no code {code}")
            state.codes[v] = code
            state.likelihoods[v] = self.certain - code
        for v, values in likelihoods:
            vector = np.array(values, np.float64)
            if not 0 <= v < self.n or vector.shape[0] != self.sizes[v]:
                raise ValueError(f"variable {v}: {vector.shape[0]} numbers are not a likelihood of its states")
            workspace.vectors.append(vector)
            state.likelihoods[v] = &vector[0]
        with nogil:
            total = self.once_log + execute(state, self.run_words, self.run_length)
        for pair in pairs:
            v = pair[0]
            state.likelihoods[v] = NULL
        if workspace.vectors:
            for v, values in likelihoods:
                state.likelihoods[v] = NULL
            workspace.vectors.clear()
        return total
