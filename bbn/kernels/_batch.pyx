# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Run a tape for many rows of evidence at once, no interpreter lock held: the compiled twin of `batch_np`.

Rows go in blocks of 32, and the row is the innermost axis of every buffer, so each loop below ends in a fixed
number of neighbouring cells that the compiler turns into vector instructions.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

ctypedef const double* Source
ctypedef const int64_t* Words

cdef enum:
    SCALAR = 0
    ONES = 1
    MUL = 2
    LIKELY = 3
    RESCALE = 4
    UP = 5
    TOTAL = 6
    DOWN = 7
    READ = 8
    TABLES = 0
    BASE = 1
    WORK = 2
    DEEPEST = 64
    B = 32

BLOCK = B

cdef struct State:
    Source tables
    Source base
    double* work
    double* scratch
    double* out
    int64_t* codes
    double product[B]
    double logs[B]


cdef struct Walk:
    int64_t depth
    Words dims
    Words steps
    int64_t counter[DEEPEST]
    int64_t at


cdef inline void begin(Walk* walk, int64_t depth, Words dims, Words steps) noexcept nogil:
    cdef int64_t k
    walk.depth, walk.dims, walk.steps, walk.at = depth, dims, steps, 0
    for k in range(depth):
        walk.counter[k] = 0


cdef inline void advance(Walk* walk) noexcept nogil:
    """To the next setting of all axes but the last."""
    cdef int64_t k = walk.depth - 2
    while k >= 0:
        walk.counter[k] += 1
        walk.at += walk.steps[k]
        if walk.counter[k] < walk.dims[k]:
            return
        walk.at -= walk.dims[k] * walk.steps[k]
        walk.counter[k] = 0
        k -= 1


cdef inline int64_t runs(int64_t depth, Words dims) noexcept nogil:
    cdef int64_t k, count = 1
    for k in range(depth - 1):
        count *= dims[k]
    return count


cdef void count_scale(State* state, const double* scale) noexcept nogil:
    """Multiply scales into the rows' products, which become logs before they leave the range of a double."""
    cdef int64_t b
    cdef bint fold = False
    for b in range(B):
        state.product[b] *= scale[b]
        if state.product[b] < 1e-150 or state.product[b] > 1e150:
            fold = True
    if fold:
        for b in range(B):
            state.logs[b] += log(state.product[b])
            state.product[b] = 1.0


cdef void shifts(State* state, Words moves, int64_t count, int64_t* out) noexcept nogil:
    cdef int64_t b, k
    cdef int64_t* codes
    for b in range(B):
        out[b] = 0
    for k in range(count):
        codes = state.codes + moves[2 * k] * B
        for b in range(B):
            out[b] += codes[b] * moves[2 * k + 1]


cdef void multiply(State* state, Words f) noexcept nogil:
    """f: clique, left, buffer, offset, n_e, n_d, moves, dims, strides."""
    cdef double* target = state.work + f[0] * B
    cdef Source constant = state.base + f[0]
    cdef Source single
    cdef Source many
    cdef int64_t left = f[1], buffer = f[2], depth = f[5], step, n, count, i, j, b
    cdef int64_t where[B]
    cdef double factor
    cdef Walk walk
    begin(&walk, depth, f + 6 + 2 * f[4], f + 6 + 2 * f[4] + depth)
    n, step = walk.dims[depth - 1], walk.steps[depth - 1]
    count = runs(depth, walk.dims)
    if buffer == TABLES and f[4]:
        shifts(state, f + 6, f[4], where)
        for i in range(count):
            single = state.tables + f[3] + walk.at
            for j in range(n):
                if left == WORK:
                    for b in range(B):
                        target[b] *= single[where[b]]
                else:
                    factor = constant[0] if left == BASE else 1.0
                    for b in range(B):
                        target[b] = factor * single[where[b]]
                target += B
                constant += 1
                single += step
            advance(&walk)
    elif buffer == WORK:
        for i in range(count):
            many = state.work + (f[3] + walk.at) * B
            for j in range(n):
                if left == WORK:
                    for b in range(B):
                        target[b] *= many[b]
                else:
                    factor = constant[0] if left == BASE else 1.0
                    for b in range(B):
                        target[b] = factor * many[b]
                target += B
                constant += 1
                many += step * B
            advance(&walk)
    else:
        for i in range(count):
            single = (state.tables if buffer == TABLES else state.base) + f[3] + walk.at
            for j in range(n):
                factor = single[j * step]
                if left == WORK:
                    for b in range(B):
                        target[b] *= factor
                else:
                    if left == BASE:
                        factor *= constant[0]
                    for b in range(B):
                        target[b] = factor
                target += B
                constant += 1
            advance(&walk)


cdef void likely(State* state, Words f) noexcept nogil:
    """f: v, clique, outer, card, inner; the code `card` means that the row says nothing."""
    cdef int64_t* codes = state.codes + f[0] * B
    cdef double* cells = state.work + f[1] * B
    cdef double keep[B]
    cdef int64_t i, k, j, b
    for i in range(f[2]):
        for k in range(f[3]):
            for b in range(B):
                keep[b] = 1.0 if codes[b] == k or codes[b] == f[3] else 0.0
            for j in range(f[4]):
                for b in range(B):
                    cells[b] *= keep[b]
                cells += B


cdef void send_up(State* state, double* message, Source cells, int64_t rows, int64_t columns) noexcept nogil:
    cdef double total[B]
    cdef double inverse[B]
    cdef double* row
    cdef int64_t i, j, b
    for b in range(B):
        total[b] = 0.0
    for i in range(rows):
        row = message + i * B
        for b in range(B):
            row[b] = cells[b]
        cells += B
        for j in range(1, columns):
            for b in range(B):
                row[b] += cells[b]
            cells += B
        for b in range(B):
            total[b] += row[b]
    for b in range(B):
        inverse[b] = 1.0 / total[b] if total[b] > 0.0 else 0.0
    for i in range(rows):
        row = message + i * B
        for b in range(B):
            row[b] *= inverse[b]
    count_scale(state, total)


cdef void count_total(State* state, Source cells, int64_t n) noexcept nogil:
    cdef double total[B]
    cdef int64_t i, b
    for b in range(B):
        total[b] = 0.0
    for i in range(n):
        for b in range(B):
            total[b] += cells[i * B + b]
    count_scale(state, total)


cdef void rescale(State* state, double* cells, int64_t n) noexcept nogil:
    cdef double largest[B]
    cdef double inverse[B]
    cdef int64_t i, b
    for b in range(B):
        largest[b] = 0.0
    for i in range(n):
        for b in range(B):
            largest[b] = cells[i * B + b] if cells[i * B + b] > largest[b] else largest[b]
    for b in range(B):
        inverse[b] = 1.0 / largest[b] if largest[b] > 0.0 else 0.0
    for i in range(n):
        for b in range(B):
            cells[i * B + b] *= inverse[b]
    count_scale(state, largest)


cdef void send_down(State* state, Words f) noexcept nogil:
    """f: separator, clique, rows, columns, old, parent, scale, n_d, dims, strides."""
    cdef int64_t rows = f[2], columns = f[3], depth = f[7], step, n, count, i, j, b
    cdef double* message = state.work + f[0] * B
    cdef double* cells = state.work + f[1] * B
    cdef double* fresh = state.scratch
    cdef double* row
    cdef Source above = state.work + f[5] * B
    cdef Source fixed = state.base + f[1]
    cdef Source before = state.base + f[0]
    cdef Walk walk
    cdef double ratio
    cdef double ratios[B]
    memset(fresh, 0, rows * B * sizeof(double))
    begin(&walk, depth, f + 8, f + 8 + depth)
    n, step = walk.dims[depth - 1], walk.steps[depth - 1]
    count = runs(depth, walk.dims)
    for i in range(count):
        row = fresh + walk.at * B
        for j in range(n):
            for b in range(B):
                row[b] += above[b]
            row += step * B
            above += B
        advance(&walk)
    for i in range(rows):
        row = message + i * B
        if f[6]:
            if f[4] == BASE:
                ratio = 1.0 / before[i] if before[i] > 0.0 else 0.0
                for b in range(B):
                    ratios[b] = fresh[i * B + b] * ratio
                for j in range(columns):
                    for b in range(B):
                        cells[b] = fixed[0] * ratios[b]
                    cells += B
                    fixed += 1
            else:
                for b in range(B):
                    ratios[b] = fresh[i * B + b] / row[b] if row[b] > 0.0 else 0.0
                for j in range(columns):
                    for b in range(B):
                        cells[b] *= ratios[b]
                    cells += B
        for b in range(B):
            row[b] = fresh[i * B + b]


cdef void read_marginal(State* state, Words f) noexcept nogil:
    """f: out, region, outer, card, inner."""
    cdef double* out = state.out + f[0] * B
    cdef Source cells = state.work + f[1] * B
    cdef double total[B]
    cdef int64_t i, k, j, b
    memset(out, 0, f[3] * B * sizeof(double))
    for i in range(f[2]):
        for k in range(f[3]):
            for j in range(f[4]):
                for b in range(B):
                    out[k * B + b] += cells[b]
                cells += B
    for b in range(B):
        total[b] = 0.0
    for k in range(f[3]):
        for b in range(B):
            total[b] += out[k * B + b]
    for b in range(B):
        total[b] = 1.0 / total[b] if total[b] > 0.0 else NAN
    for k in range(f[3]):
        for b in range(B):
            out[k * B + b] *= total[b]


cdef void execute(State* state, Words tape, int64_t length) noexcept nogil:
    cdef Words end = tape + length
    cdef Words f
    cdef double* cells
    cdef double scale[B]
    cdef int64_t where[B]
    cdef int64_t op, i, b
    for b in range(B):
        state.product[b] = 1.0
        state.logs[b] = 0.0
    while tape < end:
        op = tape[0]
        f = tape + 2
        tape += tape[1]
        if op == MUL:
            multiply(state, f)
        elif op == UP:
            send_up(state, state.work + f[0] * B, state.work + f[1] * B, f[2], f[3])
        elif op == DOWN:
            send_down(state, f)
        elif op == READ:
            read_marginal(state, f)
        elif op == LIKELY:
            likely(state, f)
        elif op == TOTAL:
            count_total(state, state.work + f[0] * B, f[1])
        elif op == ONES:
            cells = state.work + f[0] * B
            for i in range(f[1] * B):
                cells[i] = 1.0
        elif op == SCALAR:
            shifts(state, f + 2, f[1], where)
            for b in range(B):
                scale[b] = state.tables[f[0] + where[b]]
            count_scale(state, scale)
        elif op == RESCALE:
            rescale(state, state.work + f[0] * B, f[1])
    for b in range(B):
        state.logs[b] += log(state.product[b])


def run_rows(const double[::1] tables, layout, const double[::1] base, const double[::1] once_out,
             double once_log, const int64_t[::1] columns, const int32_t[:, ::1] codes, double[:, ::1] out,
             double[::1] logs):
    """Answer each row of codes; see `batch_np.run_rows`."""
    cdef int64_t n_rows = codes.shape[0], n_columns = columns.shape[0], out_size = layout.out_size
    cdef int64_t start, b, k, row, n = layout.out.shape[0], length = layout.run.shape[0], many
    cdef const int64_t[::1] words = np.append(layout.run, 0)
    cdef double[::1] work = np.empty(layout.work_size * B + 1)
    cdef double[::1] scratch = np.empty(layout.widest * B + 1)
    cdef double[::1] block_out = np.empty((out_size + 1) * B)
    cdef int64_t[::1] block_codes = np.zeros((n + 1) * B, np.int64)
    cdef State state
    state.tables = &tables[0] if tables.shape[0] else NULL
    state.base = &base[0]
    state.work = &work[0]
    state.scratch = &scratch[0]
    state.out = &block_out[0]
    state.codes = &block_codes[0]
    with nogil:
        for k in range(out_size):
            for b in range(B):
                block_out[k * B + b] = once_out[k]
        start = 0
        while start < n_rows:
            many = n_rows - start if n_rows - start < B else B
            for k in range(n_columns):
                for b in range(B):
                    row = start + (b if b < many else 0)
                    block_codes[columns[k] * B + b] = codes[row, k]
            execute(&state, &words[0], length)
            for b in range(many):
                logs[start + b] = once_log + state.logs[b]
                for k in range(out_size):
                    out[start + b, k] = block_out[k * B + b]
            start += B
