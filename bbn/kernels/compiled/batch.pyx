# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Run a tape for many rows of evidence at once, no interpreter lock held.

Rows go in blocks of 32, and the row is the innermost axis of every buffer, so each loop below ends in a fixed
number of neighbouring cells that the compiler turns into vector instructions.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from bbn.kernels.compiled.arrays cimport Words
from bbn.kernels.compiled.tape cimport (
    ADD, BASE, CLEAR, DEEPEST, FINISH, LIKELY, MUL, NORM, RATIO, RESCALE, SCALAR, SWEEP, TABLES, TOTAL, WORK,
)
from bbn.kernels.compiled.watch cimport POLL_CELLS, bbn_mode, bbn_range_begin, bbn_range_end, bbn_range_left, bbn_taming, poll

ctypedef const double* Source

cdef enum:
    B = 32

BLOCK = B

cdef struct State:
    Source tables
    Source base
    double* work
    double* scratch
    double* out
    int64_t* codes
    const int64_t* cards
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


cdef inline Source first_left(double* target, Source many, Source single, int64_t n) noexcept nogil:
    """The slab to start from, where there is no factor to multiply it with at once: ones, constants or rows."""
    cdef int64_t i, b
    if many != NULL:
        return many
    for i in range(n):
        for b in range(B):
            target[i * B + b] = 1.0 if single == NULL else single[i]
    return target


cdef void multiply(double* target, Source many, Source single, Source operand, bint rows, int64_t depth, Words dims,
                   Words steps) noexcept nogil:
    """target = left * operand, left being rows (`many`), constants (`single`) or ones; operand rows or constants."""
    cdef int64_t n = dims[depth - 1], step = steps[depth - 1], count = runs(depth, dims), i, j, b
    cdef double factor
    cdef Source right
    cdef Walk walk
    begin(&walk, depth, dims, steps)
    for i in range(count):
        right = operand + (walk.at * B if rows else walk.at)
        for j in range(n):
            if rows:
                if many != NULL:
                    for b in range(B):
                        target[b] = many[b] * right[b]
                    many += B
                else:
                    factor = 1.0
                    if single != NULL:
                        factor = single[0]
                        single += 1
                    for b in range(B):
                        target[b] = factor * right[b]
                right += step * B
            else:
                factor = right[0]
                if many != NULL:
                    for b in range(B):
                        target[b] = many[b] * factor
                    many += B
                else:
                    if single != NULL:
                        factor *= single[0]
                        single += 1
                    for b in range(B):
                        target[b] = factor
                right += step
            target += B
        advance(&walk)


cdef void multiply_sliced(double* target, Source many, Source single, Source tables, const int64_t* where,
                          int64_t depth, Words dims, Words steps) noexcept nogil:
    """The same with an operand that each row picks at its own place."""
    cdef int64_t n = dims[depth - 1], step = steps[depth - 1], count = runs(depth, dims), i, j, b
    cdef double factor
    cdef Source right
    cdef Walk walk
    begin(&walk, depth, dims, steps)
    for i in range(count):
        right = tables + walk.at
        for j in range(n):
            if many != NULL:
                for b in range(B):
                    target[b] = many[b] * right[where[b]]
                many += B
            else:
                factor = 1.0
                if single != NULL:
                    factor = single[0]
                    single += 1
                for b in range(B):
                    target[b] = factor * right[where[b]]
            right += step
            target += B
        advance(&walk)


cdef void likely(double* target, Source many, const int64_t* codes, int64_t first, int64_t card, int64_t depth,
                 Words dims, Words steps) noexcept nogil:
    """Zero where a row's code is another; the code `card` says nothing."""
    cdef int64_t n = dims[depth - 1], step = steps[depth - 1], count = runs(depth, dims), i, j, b, k
    cdef Walk walk
    begin(&walk, depth, dims, steps)
    for i in range(count):
        k = first + walk.at
        for j in range(n):
            for b in range(B):
                target[b] = many[b] if codes[b] == k or codes[b] == card else 0.0
            many += B
            target += B
            k += step
        advance(&walk)


cdef void accumulate(double* sink, Source cells, int64_t depth, Words dims, Words steps) noexcept nogil:
    cdef int64_t n = dims[depth - 1], step = steps[depth - 1], count = runs(depth, dims), i, j, b
    cdef double total[B]
    cdef double* row
    cdef Walk walk
    begin(&walk, depth, dims, steps)
    for i in range(count):
        row = sink + walk.at * B
        if step == 0:
            for b in range(B):
                total[b] = cells[b]
            for j in range(1, n):
                for b in range(B):
                    total[b] += cells[j * B + b]
            for b in range(B):
                row[b] += total[b]
        else:
            for j in range(n):
                for b in range(B):
                    row[j * step * B + b] += cells[j * B + b]
        cells += n * B
        advance(&walk)


cdef void sweep(State* state, Words f) noexcept nogil:
    """f: region, cells, left, keep, slabs, n_o, n_ops, outer dims, steps."""
    cdef int64_t slabs = f[4], slab = f[1] // f[4], n_outer = f[5], n_ops = f[6]
    cdef int64_t counter[DEEPEST]
    cdef int64_t where[B]
    cdef int64_t s, k, j, n_e, depth, offset
    cdef Words outer = f + 7
    cdef Words step
    cdef Words walk
    cdef double* target
    cdef Source many
    cdef Source single
    cdef double* sink
    for k in range(n_outer):
        counter[k] = 0
    for s in range(slabs):
        target = state.work + (f[0] + s * slab) * B if f[3] else state.scratch
        many = state.work + (f[0] + s * slab) * B if f[2] == WORK else NULL
        single = state.base + f[0] + s * slab if f[2] == BASE else NULL
        step = f + 7 + n_outer
        for k in range(n_ops):
            # step: kind, length, buffer, offset, n_e, n_d, moves, outer strides, dims, strides
            n_e, depth = step[4], step[5]
            walk = step + 6 + 2 * n_e
            offset = 0
            for j in range(n_outer):
                offset += counter[j] * walk[j]
            walk += n_outer
            if step[0] == MUL:
                if n_e:
                    shifts(state, step + 6, n_e, where)
                    multiply_sliced(target, many, single, state.tables + step[3] + offset, where, depth, walk,
                                    walk + depth)
                elif step[2] == WORK:
                    multiply(target, many, single, state.work + (step[3] + offset) * B, True, depth, walk,
                             walk + depth)
                else:
                    multiply(target, many, single, (state.tables if step[2] == TABLES else state.base)
                             + step[3] + offset, False, depth, walk, walk + depth)
                many = target
            else:
                many = first_left(target, many, single, slab)
                if step[0] == LIKELY:
                    likely(target, many, state.codes + step[3] * B, offset, state.cards[step[3]], depth, walk,
                           walk + depth)
                    many = target
                else:
                    sink = state.work if step[2] == WORK else state.out
                    accumulate(sink + (step[3] + offset) * B, many, depth, walk, walk + depth)
            step += step[1]
        if f[3] and many != target:
            many = first_left(target, many, single, slab)
            if many != target:
                memcpy(target, many, slab * B * sizeof(double))
        k = n_outer - 1
        while k >= 0:
            counter[k] += 1
            if counter[k] < outer[k]:
                break
            counter[k] = 0
            k -= 1


cdef void scaled(State* state, double* cells, int64_t n, const double* total) noexcept nogil:
    """Divide cells by each row's total, and count its log; a row of total zero is impossible.

    The reciprocal of a denormal is infinite, which sets the flag that sends the row to wide numbers.
    """
    cdef double inverse[B]
    cdef int64_t i, b
    for b in range(B):
        inverse[b] = 1.0 / total[b] if total[b] > 0.0 else 0.0
    for i in range(n):
        for b in range(B):
            cells[i * B + b] *= inverse[b]
    count_scale(state, total)


cdef void totals(Source cells, int64_t n, double* total) noexcept nogil:
    cdef int64_t i, b
    for b in range(B):
        total[b] = 0.0
    for i in range(n):
        for b in range(B):
            total[b] += cells[i * B + b]


cdef void largest(Source cells, int64_t n, double* total) noexcept nogil:
    cdef int64_t i, b
    for b in range(B):
        total[b] = 0.0
    for i in range(n):
        for b in range(B):
            total[b] = cells[i * B + b] if cells[i * B + b] > total[b] else total[b]


cdef void take_ratio(State* state, Words f) noexcept nogil:
    """f: fresh, message, n, old."""
    cdef double* fresh = state.work + f[0] * B
    cdef double* message = state.work + f[1] * B
    cdef Source fixed = state.base + f[1]
    cdef double before
    cdef double factor[B]
    cdef bint tame = True
    cdef int64_t i, b
    totals(fresh, f[2], factor)
    for b in range(B):
        factor[b] = bbn_taming(factor[b])
        tame &= factor[b] == 1.0
    if not tame:
        for i in range(f[2]):
            for b in range(B):
                fresh[i * B + b] *= factor[b]
    for i in range(f[2]):
        for b in range(B):
            before = fixed[i] if f[3] == BASE else message[b]
            message[b] = fresh[b]
            fresh[b] = fresh[b] / (before if before > 0.0 else INFINITY)
        fresh += B
        message += B


cdef void finish(double* out, int64_t n) noexcept nogil:
    cdef double total[B]
    cdef int64_t i, b
    totals(out, n, total)
    for b in range(B):
        total[b] = 1.0 / total[b] if total[b] > 0.0 else NAN
    for i in range(n):
        for b in range(B):
            out[i * B + b] *= total[b]


cdef void execute(State* state, Words tape, int64_t length) noexcept nogil:
    cdef Words end = tape + length
    cdef Words f
    cdef double scale[B]
    cdef int64_t where[B]
    cdef int64_t op, b
    for b in range(B):
        state.product[b] = 1.0
        state.logs[b] = 0.0
    while tape < end:
        op = tape[0]
        f = tape + 2
        tape += tape[1]
        if op == SWEEP:
            sweep(state, f)
        elif op == NORM:
            totals(state.work + f[0] * B, f[1], scale)
            scaled(state, state.work + f[0] * B, f[1], scale)
        elif op == RATIO:
            take_ratio(state, f)
        elif op == FINISH:
            finish(state.out + f[0] * B, f[1])
        elif op == TOTAL:
            count_scale(state, state.work + f[0] * B)
        elif op == SCALAR:
            shifts(state, f + 2, f[1], where)
            for b in range(B):
                scale[b] = state.tables[f[0] + where[b]]
            count_scale(state, scale)
        elif op == RESCALE:
            largest(state.work + f[0] * B, f[1], scale)
            scaled(state, state.work + f[0] * B, f[1], scale)
        else:
            memset(state.work + f[0] * B, 0, f[1] * B * sizeof(double))
    for b in range(B):
        state.logs[b] += log(state.product[b])


def run_rows(const double[::1] tables, layout, const double[::1] base, const double[::1] once_out,
             double once_log, const int64_t[::1] cards, const int64_t[::1] columns, const int32_t[:, ::1] codes,
             double[:, ::1] out, double[::1] logs):
    """Answer each row of codes.

    Parameters
    ----------
    tables, layout, base, once_out, once_log
        A sum program's tables and layout, and what it worked out once.
    cards : int64 array (n,)
        The number of states of each variable.
    columns : int64 array (k,)
        The variables observed, each sliced or a likelihood in the layout.
    codes : int32 array (rows, k)
        Their codes. Where the variable is a likelihood, the code ``card`` says nothing; a sliced one always has a
        slice to pick.
    out : float64 array (rows, out_size)
        Filled with the normalised marginals; NaN where the row is impossible.
    logs : float64 array (rows,)
        Filled with the logs of the totals; -inf where the row is impossible; NaN where the row, or another of its
        block, left the range of a double, and has no answer yet.
    """
    cdef int64_t n_rows = codes.shape[0], n_columns = columns.shape[0], out_size = layout.out_size
    cdef int64_t start = 0, b, k, row, n = layout.out.shape[0], length = layout.run.shape[0], many
    cdef const int64_t[::1] words = np.append(layout.run, 0)
    cdef double[::1] work = np.empty(layout.work_size * B + 1)
    cdef double[::1] scratch = np.empty(layout.scratch_size * B + 1)
    cdef double[::1] block_out = np.empty((out_size + 1) * B)
    cdef int64_t[::1] block_codes = np.zeros((n + 1) * B, np.int64)
    cdef State state
    cdef bbn_mode mode
    cdef bint left_range
    cdef int64_t cells = 0, most = layout.whole_size * B
    if cards.shape[0] != n or codes.shape[1] != n_columns or once_out.shape[0] < out_size:
        raise ValueError(f"{cards.shape[0]} variables and {n_columns} columns do not fit the layout and the codes")
    if out.shape[0] != n_rows or out.shape[1] != out_size or logs.shape[0] != n_rows:
        raise ValueError(f"out and logs: expected {n_rows} rows of {out_size} numbers")
    if base.shape[0] < layout.base_size:
        raise ValueError(f"base: expected {layout.base_size} numbers, found {base.shape[0]}")
    if tables.shape[0] != layout.tables_size:
        raise ValueError(f"tables: expected length {layout.tables_size}, found {tables.shape[0]}")
    for k in range(n_columns):
        if not 0 <= columns[k] < n:
            raise ValueError(f"columns: expected variables from 0 to {n - 1}, found {columns[k]}")
    for row in range(n_rows):
        for k in range(n_columns):
            if not 0 <= codes[row, k] <= cards[columns[k]]:
                raise ValueError(f"row {row}: variable {columns[k]} has no code {codes[row, k]}")
    state.tables = &tables[0] if tables.shape[0] else NULL
    state.base = &base[0]
    state.work = &work[0]
    state.scratch = &scratch[0]
    state.out = &block_out[0]
    state.codes = &block_codes[0]
    state.cards = &cards[0]
    with nogil:
        while start < n_rows:
            many = n_rows - start if n_rows - start < B else B
            for k in range(n_columns):
                for b in range(B):
                    row = start + (b if b < many else 0)
                    block_codes[columns[k] * B + b] = codes[row, k]
            for k in range(out_size):
                for b in range(B):
                    block_out[k * B + b] = once_out[k]
            mode = bbn_range_begin()
            execute(&state, &words[0], length)
            left_range = bbn_range_left()
            bbn_range_end(mode)
            for b in range(many):
                logs[start + b] = NAN if left_range else once_log + state.logs[b]
                for k in range(out_size):
                    out[start + b, k] = block_out[k * B + b]
            start += B
            cells += most
            if cells > POLL_CELLS:
                cells = 0
                poll()
