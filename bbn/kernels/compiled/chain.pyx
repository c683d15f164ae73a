# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Forward, backward and best paths along chains of states: the compiled twin of `pure.chain`."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from bbn.kernels.compiled.watch cimport POLL_CELLS, poll
from bbn.kernels.pure.chain import _check_codes, check_chain

cdef double LOST = 1e-250
cdef double FAINT = 1e-200
cdef double FAINTEST = 1e-300
cdef double MOST = 1e300


def forward(const int64_t[::1] ptr, const double[:, ::1] start, const int32_t[::1] start_of,
            const double[:, :, ::1] matrices, const int32_t[::1] which, const double[:, ::1] likelihood,
            double[:, ::1] alpha, double[::1] scale):
    """See `pure.chain.forward`."""
    cdef int64_t n = start_of.shape[0], states = likelihood.shape[1], s, t, begin, end, i, j, done = 0
    cdef int64_t faint
    cdef double total, a, least, floor = 1.0
    cdef const double* row
    cdef const double* here
    cdef double* now
    cdef double* before
    cdef double[::1] moved_row = np.empty(max(states, 1))
    cdef double* moved = &moved_row[0]
    check_chain(*map(np.asarray, (ptr, start, start_of, matrices, which, likelihood)))
    check_shape("alpha", alpha.shape[0], likelihood.shape[0], alpha.shape[1], states)
    check_shape("scale", scale.shape[0], likelihood.shape[0], 1, 1)
    if n == 0 or states == 0:
        return
    with nogil:
        for i in range(matrices.shape[0]):
            row = &matrices[i, 0, 0]
            for j in range(states * states):
                floor = row[j] if 0.0 < row[j] < floor else floor
        floor = max(FAINT, FAINTEST / floor)
        for s in range(n):
            begin, end = ptr[s], ptr[s + 1]
            for t in range(begin, end):
                now, here = &alpha[t, 0], &likelihood[t, 0]
                if t == begin:
                    row = &start[start_of[s], 0]
                    for j in range(states):
                        moved[j] = row[j]
                else:
                    before = &alpha[t - 1, 0]
                    row = &matrices[which[t], 0, 0]
                    propagate(before, row, moved, states)
                total = 0.0
                for j in range(states):
                    now[j] = moved[j] * here[j]
                    total += now[j]
                least = floor * total
                faint = 0
                for j in range(states):
                    faint += now[j] < least
                if faint:  # seldom: which of them are impossible, and which too improbable?
                    faint = 0
                    for j in range(states):
                        faint += now[j] < least and moved[j] > 0.0 and here[j] > 0.0
                if not total >= LOST or faint:
                    for i in range(t, end):
                        scale[i] = 0.0
                        for j in range(states):
                            alpha[i, j] = 0.0
                    break
                scale[t] = total
                a = 1.0 / total
                for j in range(states):
                    now[j] *= a
                done += states * states
                if done > POLL_CELLS:
                    done = 0
                    poll()


cdef inline void propagate(const double* before, const double* matrix, double* now, int64_t states) noexcept nogil:
    """The row vector times the matrix."""
    cdef int64_t i, j
    cdef double a
    cdef const double* row = matrix
    a = before[0]
    for j in range(states):
        now[j] = a * row[j]
    for i in range(1, states):
        a = before[i]
        row = matrix + i * states
        for j in range(states):
            now[j] += a * row[j]


cdef inline double dot(const double* x, const double* y, int64_t n) noexcept nogil:
    """The inner product in four lanes."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef int64_t k, whole = n - n % 4
    for k in range(0, whole, 4):
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
    for k in range(whole, n):
        a += x[k] * y[k]
    return (a + b) + (c + d)


def backward(const int64_t[::1] ptr, const double[::1] weights, const int32_t[::1] start_of,
             const double[:, :, ::1] matrices, const int32_t[::1] which, const double[:, ::1] likelihood,
             const double[:, ::1] alpha, const double[::1] scale, double[:, ::1] gamma, right_rows,
             double[:, ::1] start_sum, double[:, :, ::1] pair_sum):
    """See `pure.chain.backward`."""
    cdef int64_t n = start_of.shape[0], states = likelihood.shape[1], steps = likelihood.shape[0]
    cdef int64_t s, t, begin, end, i, j, done = 0
    cdef double total, a, weight
    cdef bint keep = right_rows is not None
    cdef double[:, ::1] right = right_rows if keep else np.empty((1, max(states, 1)))
    cdef double[::1] beta_row = np.empty(max(states, 1)), onward_row = np.empty(max(states, 1))
    cdef double* beta = &beta_row[0]
    cdef double* onward = &onward_row[0]
    cdef const double* row
    cdef const double* here
    cdef const double* before
    cdef double* sums
    check_chain(*map(np.asarray, (ptr, start_sum, start_of, matrices, which, likelihood)))
    check_shape("alpha", alpha.shape[0], steps, alpha.shape[1], states)
    check_shape("gamma", gamma.shape[0], steps, gamma.shape[1], states)
    check_shape("scale and weights", scale.shape[0], steps, weights.shape[0], n)
    check_shape("pair_sum", pair_sum.shape[0], matrices.shape[0], pair_sum.shape[1] * pair_sum.shape[2],
                states * states)
    if keep:
        check_shape("right", right.shape[0], steps, right.shape[1], states)
    if n == 0 or states == 0:
        return
    with nogil:
        for s in range(n):
            begin, end, weight = ptr[s], ptr[s + 1], weights[s]
            if scale[end - 1] == 0.0:
                for t in range(begin, end):
                    for j in range(states):
                        gamma[t, j] = 0.0
                        if keep:
                            right[t, j] = 0.0
                continue
            for j in range(states):
                beta[j] = 1.0
            for t in range(end - 1, begin - 1, -1):
                here = &likelihood[t, 0]
                a = 1.0 / scale[t]
                for j in range(states):
                    gamma[t, j] = alpha[t, j] * beta[j]
                    onward[j] = min(here[j] * beta[j] * a, MOST)
                if keep:
                    for j in range(states):
                        right[t, j] = onward[j]
                if t == begin:
                    for j in range(states):
                        start_sum[start_of[s], j] += weight * onward[j]
                    continue
                row, sums, before = &matrices[which[t], 0, 0], &pair_sum[which[t], 0, 0], &alpha[t - 1, 0]
                for i in range(states):
                    beta[i] = dot(row + i * states, onward, states)
                    a = weight * before[i]
                    for j in range(states):
                        sums[i * states + j] += a * onward[j]
                done += 2 * states * states
                if done > POLL_CELLS:
                    done = 0
                    poll()


def best_paths(const int64_t[::1] ptr, const double[:, ::1] log_start, const int32_t[::1] start_of,
               const double[:, :, ::1] log_matrices, const int32_t[::1] which, const double[:, ::1] log_likelihood,
               int32_t[::1] path, double[::1] logs):
    """See `pure.chain.best_paths`."""
    cdef int64_t n = start_of.shape[0], states = log_likelihood.shape[1], s, t, begin, end, i, j, longest = 0, done = 0
    cdef int32_t at
    cdef double value
    cdef const double* row
    check_chain(*map(np.asarray, (ptr, log_start, start_of, log_matrices, which, log_likelihood)))
    check_shape("path and logs", path.shape[0], log_likelihood.shape[0], logs.shape[0], n)
    if n == 0 or states == 0:
        return
    for s in range(n):
        longest = max(longest, ptr[s + 1] - ptr[s])
    cdef int32_t[:, ::1] came = np.empty((longest, states), np.int32)
    cdef double[::1] best = np.empty(states), following = np.empty(states)
    with nogil:
        for s in range(n):
            begin, end = ptr[s], ptr[s + 1]
            for j in range(states):
                best[j] = log_start[start_of[s], j] + log_likelihood[begin, j]
            for t in range(begin + 1, end):
                row = &log_matrices[which[t], 0, 0]
                for j in range(states):
                    following[j] = best[0] + row[j]
                    came[t - begin, j] = 0
                for i in range(1, states):
                    for j in range(states):
                        value = best[i] + row[i * states + j]
                        if value > following[j]:
                            following[j] = value
                            came[t - begin, j] = <int32_t> i
                for j in range(states):
                    best[j] = following[j] + log_likelihood[t, j]
                done += states * states
                if done > POLL_CELLS:
                    done = 0
                    poll()
            at = 0
            for j in range(states):
                if best[j] > best[at]:
                    at = <int32_t> j
            logs[s] = best[at]
            for t in range(end - 1, begin - 1, -1):
                path[t] = at
                if t > begin:
                    at = came[t - begin, at]


def multiply_rows(const double[:, ::1] table, const int32_t[::1] codes, double[:, ::1] out):
    """See `pure.chain.multiply_rows`."""
    cdef int64_t n = out.shape[0], states = out.shape[1], t, j
    cdef const double* row
    _check_codes(*map(np.asarray, (table, codes, out)))
    if n == 0 or states == 0:
        return
    with nogil:
        for t in range(n):
            row = &table[codes[t], 0]
            for j in range(states):
                out[t, j] *= row[j]


def add_rows(const int32_t[::1] codes, const double[:, ::1] values, double[:, ::1] table):
    """See `pure.chain.add_rows`."""
    cdef int64_t n = values.shape[0], states = values.shape[1], t, j
    cdef double* row
    _check_codes(*map(np.asarray, (table, codes, values)))
    if n == 0 or states == 0:
        return
    with nogil:
        for t in range(n):
            row = &table[codes[t], 0]
            for j in range(states):
                row[j] += values[t, j]


cdef int check_shape(str what, int64_t rows, int64_t wanted_rows, int64_t columns, int64_t wanted_columns) except -1:
    if rows != wanted_rows or columns != wanted_columns:
        raise ValueError(f"{what}: expected {(wanted_rows, wanted_columns)}, found {(rows, columns)}")
    return 0
