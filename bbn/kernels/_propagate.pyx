# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Run a tape one evidence at a time, no interpreter lock held: the compiled twin of `propagate_np`."""

import numpy as np

from libc.math cimport INFINITY, log
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

ctypedef const double* Source
ctypedef const int64_t* Words

cdef enum:
    CLEAR = 0
    SCALAR = 1
    SWEEP = 2
    RESCALE = 3
    NORM = 4
    TOTAL = 5
    RATIO = 6
    FINISH = 7
    MUL = 0
    LIKELY = 1
    ADD = 2
    TABLES = 0
    BASE = 1
    WORK = 2
    OUT = 3
    DEEPEST = 64
    LARGE = 1000000


cdef struct State:
    Source tables
    double* base
    double* work
    double* scratch
    double* out
    int64_t* codes
    double** likelihoods
    bint maximise


cdef extern from *:
    """
    /* The target is the left operand itself or apart from it, never shifted against it, so lanes do not mix. */
    #if defined(__GNUC__) && !defined(__clang__)
    #define BBN_LANES _Pragma("GCC ivdep")
    #elif defined(__clang__)
    #define BBN_LANES _Pragma("clang loop vectorize(assume_safety)")
    #else
    #define BBN_LANES
    #endif
    static inline void bbn_scale(double *target, const double *left, double factor, int64_t n) {
        BBN_LANES
        for (int64_t i = 0; i < n; i++) target[i] = left[i] * factor;
    }
    static inline void bbn_multiply(double *target, const double *left, const double *right, double scale,
                                    int64_t n) {
        BBN_LANES
        for (int64_t i = 0; i < n; i++) target[i] = left[i] * (scale * right[i]);
    }
    static inline void bbn_gather(double *target, const double *left, const double *right, double scale,
                                  int64_t step, int64_t n) {
        for (int64_t i = 0; i < n; i++) target[i] = left[i] * (scale * right[i * step]);
    }
    static inline void bbn_add(double *target, const double *cells, int64_t n) {
        BBN_LANES
        for (int64_t i = 0; i < n; i++) target[i] += cells[i];
    }
    """
    void bbn_scale(double* target, Source left, double factor, int64_t n) noexcept nogil
    void bbn_multiply(double* target, Source left, Source right, double scale, int64_t n) noexcept nogil
    void bbn_gather(double* target, Source left, Source right, double scale, int64_t step, int64_t n) noexcept nogil
    void bbn_add(double* target, Source cells, int64_t n) noexcept nogil


# ---- clique = left * source ----

cdef inline void mul_run(double* target, Source left, Source source, double scale, int64_t n,
                         int64_t step) noexcept nogil:
    if step == 0:
        bbn_scale(target, left, scale * source[0], n)
    elif step == 1:
        bbn_multiply(target, left, source, scale, n)
    else:
        bbn_gather(target, left, source, scale, step, n)


cdef inline void set_run(double* target, Source source, double scale, int64_t n, int64_t step) noexcept nogil:
    cdef int64_t i
    cdef double value
    if step == 0:
        value = scale * source[0]
        for i in range(n):
            target[i] = value
    else:
        for i in range(n):
            target[i] = scale * source[i * step]


cdef void mul_plane(double* target, Source left, Source source, double scale, int64_t outer, int64_t inner,
                    int64_t step_out, int64_t step_in) noexcept nogil:
    """Two nested axes, with the short inner lengths spelled out."""
    cdef int64_t i
    cdef double factor
    if left == NULL:
        for i in range(outer):
            set_run(target + i * inner, source + i * step_out, scale, inner, step_in)
    elif inner == 2:
        if step_in == 0:
            for i in range(outer):
                factor = scale * source[i * step_out]
                target[2 * i] = left[2 * i] * factor
                target[2 * i + 1] = left[2 * i + 1] * factor
        else:
            for i in range(outer):
                target[2 * i] = left[2 * i] * (scale * source[i * step_out])
                target[2 * i + 1] = left[2 * i + 1] * (scale * source[i * step_out + step_in])
    elif inner == 3 and step_in == 0:
        for i in range(outer):
            factor = scale * source[i * step_out]
            target[3 * i] = left[3 * i] * factor
            target[3 * i + 1] = left[3 * i + 1] * factor
            target[3 * i + 2] = left[3 * i + 2] * factor
    else:
        for i in range(outer):
            mul_run(target + i * inner, left + i * inner, source + i * step_out, scale, inner, step_in)


cdef void multiply(double* target, Source left, Source source, double scale, int64_t depth, Words dims,
                   Words steps) noexcept nogil:
    cdef int64_t counter[DEEPEST]
    cdef int64_t k, at = 0, plane
    cdef int64_t outer = depth - 2
    if depth == 1:
        mul_plane(target, left, source, scale, 1, dims[0], 0, steps[0])
        return
    plane = dims[outer] * dims[outer + 1]
    for k in range(outer):
        counter[k] = 0
    while True:
        mul_plane(target, left, source + at, scale, dims[outer], dims[outer + 1], steps[outer], steps[outer + 1])
        target += plane
        if left != NULL:
            left += plane
        k = outer - 1
        while k >= 0:
            counter[k] += 1
            at += steps[k]
            if counter[k] < dims[k]:
                break
            at -= dims[k] * steps[k]
            counter[k] = 0
            k -= 1
        if k < 0:
            return


# ---- separator += clique ----

cdef inline double sum_run(Source source, int64_t n) noexcept nogil:
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef int64_t i = 0
    while i + 4 <= n:
        a += source[i]
        b += source[i + 1]
        c += source[i + 2]
        d += source[i + 3]
        i += 4
    while i < n:
        a += source[i]
        i += 1
    return (a + b) + (c + d)


cdef inline double max_run(Source source, int64_t n) noexcept nogil:
    cdef double largest = source[0]
    cdef int64_t i
    for i in range(1, n):
        if source[i] > largest:
            largest = source[i]
    return largest


cdef void add_plane(double* target, Source source, int64_t outer, int64_t inner, int64_t step_out,
                    int64_t step_in) noexcept nogil:
    cdef int64_t i, j
    cdef double* row
    cdef Source cells
    if step_in == 0:
        if inner == 2:
            for i in range(outer):
                target[i * step_out] += source[2 * i] + source[2 * i + 1]
        elif inner == 3:
            for i in range(outer):
                target[i * step_out] += source[3 * i] + source[3 * i + 1] + source[3 * i + 2]
        else:
            for i in range(outer):
                target[i * step_out] += sum_run(source + i * inner, inner)
    elif step_in == 1 and inner == 2:
        for i in range(outer):
            target[i * step_out] += source[2 * i]
            target[i * step_out + 1] += source[2 * i + 1]
    elif step_in == 1:
        for i in range(outer):
            bbn_add(target + i * step_out, source + i * inner, inner)
    else:
        for i in range(outer):
            row = target + i * step_out
            cells = source + i * inner
            for j in range(inner):
                row[j * step_in] += cells[j]


cdef void max_plane(double* target, Source source, int64_t outer, int64_t inner, int64_t step_out,
                    int64_t step_in) noexcept nogil:
    cdef int64_t i, j
    cdef double* row
    for i in range(outer):
        row = target + i * step_out
        for j in range(inner):
            if source[j] > row[j * step_in]:
                row[j * step_in] = source[j]
        source += inner


cdef void accumulate(double* target, Source source, int64_t depth, Words dims, Words steps,
                     bint maximise) noexcept nogil:
    cdef int64_t counter[DEEPEST]
    cdef int64_t k, at = 0, plane
    cdef int64_t outer = depth - 2
    if depth == 1:
        if maximise:
            max_plane(target, source, 1, dims[0], 0, steps[0])
        else:
            add_plane(target, source, 1, dims[0], 0, steps[0])
        return
    plane = dims[outer] * dims[outer + 1]
    for k in range(outer):
        counter[k] = 0
    while True:
        if maximise:
            max_plane(target + at, source, dims[outer], dims[outer + 1], steps[outer], steps[outer + 1])
        else:
            add_plane(target + at, source, dims[outer], dims[outer + 1], steps[outer], steps[outer + 1])
        source += plane
        k = outer - 1
        while k >= 0:
            counter[k] += 1
            at += steps[k]
            if counter[k] < dims[k]:
                break
            at -= dims[k] * steps[k]
            counter[k] = 0
            k -= 1
        if k < 0:
            return


# ---- the instructions ----

cdef inline int64_t shift(Words moves, int64_t count, const int64_t* codes) noexcept nogil:
    cdef int64_t k, at = 0
    for k in range(count):
        at += codes[moves[2 * k]] * moves[2 * k + 1]
    return at


cdef inline Source settle(double* target, Source current, double scale, int64_t n) noexcept nogil:
    """The slab with the factors so far that are the same all over it."""
    cdef int64_t i
    if current == NULL:
        for i in range(n):
            target[i] = scale
        return target
    if scale == 1.0:
        return current
    bbn_scale(target, current, scale, n)
    return target


cdef void sweep(State* state, Words f) noexcept nogil:
    """f: region, cells, left, keep, slabs, n_o, n_ops, outer dims, steps."""
    cdef int64_t slabs = f[4], slab = f[1] // f[4], n_outer = f[5], n_ops = f[6]
    cdef int64_t counter[DEEPEST]
    cdef int64_t s, k, j, n_e, depth, offset
    cdef Words outer = f + 7
    cdef Words step
    cdef Words walk
    cdef double* target
    cdef double scale
    cdef Source current
    cdef Source source
    cdef double* sink
    for k in range(n_outer):
        counter[k] = 0
    for s in range(slabs):
        target = state.work + f[0] + s * slab if f[3] else state.scratch
        current = NULL
        if f[2]:
            current = (state.base if f[2] == BASE else state.work) + f[0] + s * slab
        scale = 1.0
        step = f + 7 + n_outer
        for k in range(n_ops):
            # step: kind, length, buffer, offset, n_e, n_d, moves, outer strides, dims, strides
            n_e, depth = step[4], step[5]
            walk = step + 6 + 2 * n_e
            offset = shift(step + 6, n_e, state.codes)
            for j in range(n_outer):
                offset += counter[j] * walk[j]
            walk += n_outer
            if step[0] == ADD:
                current = settle(target, current, scale, slab)
                scale = 1.0
                sink = state.work if step[2] == WORK else state.out
                accumulate(sink + step[3] + offset, current, depth, walk, walk + depth, state.maximise)
            else:
                if step[0] == LIKELY:
                    source = state.likelihoods[step[3]]
                else:
                    source = state.tables if step[2] == TABLES else (state.base if step[2] == BASE else state.work)
                    source += step[3]
                if source != NULL:
                    if depth == 1 and walk[1] == 0:
                        scale *= source[offset]
                    else:
                        multiply(target, current, source + offset, scale, depth, walk, walk + depth)
                        current = target
                        scale = 1.0
            step += step[1]
        if f[3]:
            current = settle(target, current, scale, slab)
            if current != target:
                memcpy(target, current, slab * sizeof(double))
        k = n_outer - 1
        while k >= 0:
            counter[k] += 1
            if counter[k] < outer[k]:
                break
            counter[k] = 0
            k -= 1


cdef double normalise(double* message, int64_t n, bint maximise) noexcept nogil:
    cdef double total = max_run(message, n) if maximise else sum_run(message, n)
    cdef int64_t i
    if total > 0.0:
        for i in range(n):
            message[i] = message[i] / total
    return total


cdef void take_ratio(State* state, Words f) noexcept nogil:
    """f: fresh, message, n, old."""
    cdef double* fresh = state.work + f[0]
    cdef double* message = state.work + f[1]
    cdef Source old = (state.base if f[3] == BASE else state.work) + f[1]
    cdef double before
    cdef int64_t i
    for i in range(f[2]):
        before = old[i]
        message[i] = fresh[i]
        fresh[i] = fresh[i] / before if before > 0.0 else 0.0


cdef double execute(State* state, Words tape, int64_t length) noexcept nogil:
    """The log of the total, or -inf as soon as something sums to zero."""
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
        if op == RATIO:
            take_ratio(state, f)
            continue
        if op == FINISH:
            normalise(state.out + f[0], f[1], False)
            continue
        if op == CLEAR:
            memset(state.work + f[0], 0, f[1] * sizeof(double))
            continue
        if op == NORM:
            scale = normalise(state.work + f[0], f[1], state.maximise)
        elif op == TOTAL:
            scale = state.work[f[0]]
        elif op == SCALAR:
            scale = state.tables[f[0] + shift(f + 2, f[1], state.codes)]
        else:
            scale = normalise(state.work + f[0], f[1], True)
        if not scale > 0.0:
            return -INFINITY
        product *= scale
        if product < 1e-150 or product > 1e150:
            logs += log(product)
            product = 1.0
    return logs + log(product)


cdef class Workspace:
    """A run's own memory."""

    cdef object keep
    cdef State state
    cdef public object work
    cdef object vectors

    def __init__(self, Program program):
        cdef int64_t n = program.n
        cdef double[::1] work
        self.work = np.empty(program.layout.work_size + 1)
        scratch = np.empty(program.layout.scratch_size + 1)
        codes = np.full(n + 1, -1, np.int64)
        pointers = np.zeros(n + 1, np.uintp)
        self.keep = (scratch, codes, pointers)
        self.vectors = []
        self.state = program.state
        work = self.work
        self.state.work = &work[0]
        work = scratch
        self.state.scratch = &work[0]
        cdef int64_t[::1] code_view = codes
        self.state.codes = &code_view[0]
        cdef size_t[::1] pointer_view = pointers
        self.state.likelihoods = <double**> &pointer_view[0]


cdef class Program:
    """A layout with its tables, ready to run; safe to share between threads; see `propagate_np.Program`."""

    cdef readonly object layout
    cdef readonly object base
    cdef readonly double once_log
    cdef readonly bint maximise
    cdef readonly object once_out
    cdef object cards, tables, pool
    cdef int64_t n, out_size, run_length, work_size
    cdef Words run_words
    cdef double* once_values
    cdef double* certain
    cdef object certainty
    cdef State state

    def __init__(self, cards, const double[::1] tables, layout, bint maximise=False):
        cdef double[::1] view
        cdef const int64_t[::1] words
        cdef Workspace workspace
        self.layout = layout
        self.cards = cards
        self.tables = tables
        self.n = len(cards)
        self.maximise = maximise
        self.pool = []
        self.out_size = layout.out_size
        self.work_size = layout.work_size
        words = layout.run
        self.run_length = words.shape[0]
        self.run_words = &words[0] if self.run_length else NULL
        self.base = np.empty(layout.work_size + 1)
        self.once_out = np.zeros(self.out_size + 1)
        view = self.base
        self.state.base = &view[0]
        # zeros around a one: read from `code` places before the one, it is the certainty of that code
        self.certainty = np.zeros(2 * int(cards.max(initial=1)) + 1)
        view = self.certainty
        self.certain = &view[view.shape[0] // 2]
        self.certain[0] = 1.0
        view = self.once_out
        self.once_values = &view[0]
        self.state.tables = &tables[0] if tables.shape[0] else NULL
        self.state.maximise = maximise
        words = layout.once
        cdef int64_t once_length = words.shape[0]
        cdef Words once_words = &words[0] if once_length else NULL
        workspace = Workspace(self)
        workspace.state.work = self.state.base
        workspace.state.out = self.once_values
        with nogil:
            self.once_log = execute(&workspace.state, once_words, once_length)
        if self.run_length:
            self.pool.append(workspace)
            workspace.state.work = work_pointer(workspace)

    def run(self, hard=(), likelihoods=()):
        """The normalised marginals that the layout reads, and the log of the total; -inf: impossible evidence."""
        cdef Workspace workspace
        cdef double total
        out = np.empty(self.out_size)
        cdef double[::1] view = out
        if self.out_size:
            memcpy(&view[0], self.once_values, self.out_size * sizeof(double))
        if self.run_length == 0 or self.once_log == -INFINITY:
            return out, self.once_log
        try:
            workspace = self.pool.pop()
        except IndexError:
            workspace = Workspace(self)
        total = self.execute(workspace, hard, likelihoods, &view[0] if self.out_size else NULL)
        if self.work_size < LARGE or not self.pool:
            self.pool.append(workspace)
        return out, total

    def collect(self, hard=(), likelihoods=()):
        """The collected potentials of dynamic and of static cliques, and the log of the total (or maximum)."""
        cdef Workspace workspace = Workspace(self)
        if self.once_log == -INFINITY:
            return workspace.work, self.base, self.once_log
        cdef double[::1] view = np.empty(self.out_size + 1)
        cdef double total = self.execute(workspace, hard, likelihoods, &view[0])
        return workspace.work, self.base, total

    cdef double execute(self, Workspace workspace, hard, likelihoods, double* out) except? 1.0:
        cdef double total
        cdef int64_t v, code
        cdef double[::1] vector
        cdef State* state = &workspace.state
        state.out = out
        for v, code in hard:
            state.codes[v] = code
            state.likelihoods[v] = self.certain - code
        for v, values in likelihoods:
            vector = np.array(values, np.float64)
            workspace.vectors.append(vector)
            state.likelihoods[v] = &vector[0]
        with nogil:
            total = self.once_log + execute(state, self.run_words, self.run_length)
        for v, code in hard:
            state.likelihoods[v] = NULL
        if workspace.vectors:
            for v, values in likelihoods:
                state.likelihoods[v] = NULL
            workspace.vectors.clear()
        return total


cdef double* work_pointer(Workspace workspace):
    cdef double[::1] view = workspace.work
    return &view[0]
