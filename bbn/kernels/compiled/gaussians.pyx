# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The E step of Gaussian families on a chunk of rows; see `pure.gaussians`, its twin.

Sums over rows run in four lanes that are added at the end, in a fixed order.
"""

from libc.math cimport INFINITY, M_PI, exp, log


def add_log_densities(const double[:, ::1] numbers, const double[:, ::1] means, const double[:, ::1] variances,
                      double[:, ::1] logs):
    """See `pure.gaussians.add_log_densities`."""
    cdef Py_ssize_t d = numbers.shape[0], n = numbers.shape[1], settings = means.shape[1], f, j, r
    cdef const double* x
    cdef double* out
    cdef double mean, half, constant, apart, term
    cdef bint holes
    check_shape("means", means.shape[0], d, means.shape[1], settings)
    check_shape("variances", variances.shape[0], d, variances.shape[1], settings)
    check_shape("logs", logs.shape[0], settings, logs.shape[1], n)
    if n == 0:
        return
    with nogil:
        for f in range(d):
            x = &numbers[f, 0]
            holes = any_missing(x, n)
            for j in range(settings):
                out = &logs[j, 0]
                mean = means[f, j]
                half = 0.5 / variances[f, j]
                constant = -0.5 * log(2.0 * M_PI * variances[f, j])
                if holes:
                    for r in range(n):
                        apart = x[r] - mean
                        term = constant - half * (apart * apart)
                        out[r] += term if x[r] == x[r] else 0.0
                else:
                    for r in range(n):
                        apart = x[r] - mean
                        out[r] += constant - half * (apart * apart)


def normalise(double[:, ::1] logs, const double[::1] weights, double[::1] totals):
    """See `pure.gaussians.normalise`."""
    cdef Py_ssize_t settings = logs.shape[0], n = logs.shape[1], j, r
    cdef double peak, total, value, scale
    check_shape("weights and totals", weights.shape[0], n, totals.shape[0], n)
    if n == 0:
        return
    if settings == 0:
        raise ValueError("logs: expected at least one setting")
    with nogil:
        for r in range(n):
            peak = logs[0, r]
            for j in range(1, settings):
                if logs[j, r] > peak:
                    peak = logs[j, r]
            if peak == -INFINITY:
                totals[r] = -INFINITY
                for j in range(settings):
                    logs[j, r] = 0.0
                continue
            total = 0.0
            for j in range(settings):
                value = logs[j, r] - peak
                # Below this e to the value is nothing beside the 1 of the peak, and slow to compute.
                value = exp(value) if value > -700.0 else 0.0
                logs[j, r] = value
                total += value
            totals[r] = peak + log(total)
            scale = weights[r] / total
            for j in range(settings):
                logs[j, r] *= scale


def add_moments(const double[:, ::1] numbers, const double[:, ::1] shares, const double[:, ::1] means,
                double[:, :, ::1] moments):
    """See `pure.gaussians.add_moments`."""
    cdef Py_ssize_t d = numbers.shape[0], n = numbers.shape[1], settings = shares.shape[0], f, j
    cdef double n_sum, sums, squares
    cdef bint holes
    check_shape("shares", shares.shape[0], settings, shares.shape[1], n)
    check_shape("means", means.shape[0], d, means.shape[1], settings)
    check_shape("moments", moments.shape[1], d, moments.shape[2], settings)
    if moments.shape[0] != 3:
        raise ValueError(f"moments: expected 3 of them, found {moments.shape[0]}")
    if n == 0:
        return
    with nogil:
        for f in range(d):
            holes = any_missing(&numbers[f, 0], n)
            for j in range(settings):
                n_sum, sums, squares = 0.0, 0.0, 0.0
                add_column(&numbers[f, 0], &shares[j, 0], means[f, j], n, holes, &n_sum, &sums, &squares)
                moments[0, f, j] += n_sum
                moments[1, f, j] += sums
                moments[2, f, j] += squares


cdef int check_shape(str what, Py_ssize_t rows, Py_ssize_t wanted_rows, Py_ssize_t columns,
                     Py_ssize_t wanted_columns) except -1:
    if rows != wanted_rows or columns != wanted_columns:
        raise ValueError(f"{what}: expected shape {(wanted_rows, wanted_columns)}, found {(rows, columns)}")
    return 0


cdef inline bint any_missing(const double* x, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t r
    cdef int found = 0
    for r in range(n):
        found |= x[r] != x[r]
    return found


cdef inline void add_column(const double* x, const double* share, double mean, Py_ssize_t n, bint holes,
                            double* n_sum, double* sums, double* squares) noexcept nogil:
    cdef double[4] zero, one, two
    cdef double apart, own
    cdef Py_ssize_t r, lane, whole = n - n % 4
    for lane in range(4):
        zero[lane] = one[lane] = two[lane] = 0.0
    if holes:
        for r in range(n):
            if x[r] == x[r]:
                lane = r & 3
                apart = x[r] - mean
                zero[lane] += share[r]
                one[lane] += share[r] * apart
                two[lane] += share[r] * apart * apart
    else:
        for r in range(0, whole, 4):
            for lane in range(4):
                apart = x[r + lane] - mean
                own = share[r + lane] * apart
                zero[lane] += share[r + lane]
                one[lane] += own
                two[lane] += own * apart
        for r in range(whole, n):
            apart = x[r] - mean
            zero[r - whole] += share[r]
            one[r - whole] += share[r] * apart
            two[r - whole] += share[r] * apart * apart
    n_sum[0] = (zero[0] + zero[1]) + (zero[2] + zero[3])
    sums[0] = (one[0] + one[1]) + (one[2] + one[3])
    squares[0] = (two[0] + two[1]) + (two[2] + two[3])
