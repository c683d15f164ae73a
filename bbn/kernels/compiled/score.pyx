# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Family scores: the compiled twin of `pure.score`."""

import numpy as np

from libc.math cimport lgamma, log, log1p
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

cdef enum:
    SMALL = 1024
    SHORT = 16

cdef double LOG_FACTORIAL[SMALL]
cdef double N_LOG_N[SMALL]


cdef void fill_tables() noexcept:
    cdef int64_t n
    LOG_FACTORIAL[0] = N_LOG_N[0] = 0.0
    for n in range(1, SMALL):
        LOG_FACTORIAL[n] = lgamma(n + 1.0)
        N_LOG_N[n] = n * log(<double> n)


fill_tables()

ctypedef fused number:
    int64_t
    double

cdef enum:
    KEPT = 512
    RECENT = 16  # of the kept values those found last in a batch, whose tables have few sizes

KNOWN = {}
"""Prior weight α to ln Γ(α + n) / Γ(α) for small n, NaN where not asked for yet: a search scores few table sizes."""


cdef list fill_known(const double[::1] alphas, const int64_t[::1] cards, double** own, double** rows):
    """Point at the kept values for a cell and for a row of each table; the list keeps them while they are used."""
    cdef int64_t f, i, k, n_recent = 0
    cdef double a
    cdef double recent[RECENT]
    cdef double* kept[RECENT]
    cdef double* place
    cdef double[::1] values
    held = []
    for f in range(cards.shape[0]):
        if f and alphas[f] == alphas[f - 1] and cards[f] == cards[f - 1]:
            own[f], rows[f] = own[f - 1], rows[f - 1]
            continue
        for i in range(2):
            a = alphas[f] if i == 0 else cards[f] * alphas[f]
            place = NULL
            for k in range(min(n_recent, <int64_t> RECENT)):
                if recent[k] == a:
                    place = kept[k]
                    break
            if place == NULL:
                found = KNOWN.get(a)
                if found is None:
                    if len(KNOWN) >= KEPT:
                        KNOWN.clear()
                    found = KNOWN[a] = np.full(SMALL, np.nan)
                held.append(found)
                values = found
                place = &values[0]
                recent[n_recent % RECENT], kept[n_recent % RECENT] = a, place
                n_recent += 1
            if i == 0:
                own[f] = place
            else:
                rows[f] = place
    return held


cdef inline double n_log_n(number n) noexcept nogil:
    if number is int64_t:
        if n < SMALL:
            return N_LOG_N[n]
    return n * log(<double> n)


cdef inline double stirling(double x) noexcept nogil:
    """ln Γ(x) − (x − ½) ln x + x − ½ ln 2π, exact to the last bits for x ≥ 16."""
    cdef double y = 1.0 / (x * x)
    return (1.0 / 12 - y * (1.0 / 360 - y * (1.0 / 1260 - y * (1.0 / 1680 - y * (1.0 / 1188))))) / x


cdef inline double log_gamma(double x) noexcept nogil:
    """ln Γ(x); of large x by Stirling's series, which is then faster than the library's."""
    if x < 16.0:
        return lgamma(x)
    return (x - 0.5) * log(x) - x + 0.91893853320467274178 + stirling(x)


cdef inline double log_rising(number n, double a, double log_gamma_a, int64_t whole) noexcept nogil:
    """ln Γ(a + n) / Γ(a); `whole` is a where it is a small whole number, else 0."""
    cdef double product
    cdef int64_t i
    if number is int64_t:
        if whole and n + whole <= SMALL:
            return LOG_FACTORIAL[n + whole - 1] - LOG_FACTORIAL[whole - 1]
        if n <= SHORT and a < 1e6:
            product = a
            for i in range(1, n):
                product *= a + i
            return log(product)
    if a >= 16.0:  # the difference of two large numbers written so that what they share is not in it
        return (a - 0.5) * log1p(n / a) + n * log(a + n) - n + (stirling(a + n) - stirling(a))
    return log_gamma(a + n) - log_gamma_a


cdef inline double kept_rising(number n, double a, double log_gamma_a, int64_t whole, double* known) noexcept nogil:
    """The same, looked up where n is a small count that has come up before."""
    if number is int64_t:
        if n < SMALL:
            if known[n] != known[n]:
                known[n] = log_rising(n, a, log_gamma_a, whole)
            return known[n]
    return log_rising(n, a, log_gamma_a, whole)


cdef int check_tables(const number[::1] cells, const int64_t[::1] ptr, const int64_t[::1] cards) except -1:
    """Refuse tables that are not rows of counts; see `pure.score.check_tables`."""
    cdef int64_t n = cards.shape[0], f, i
    if ptr.shape[0] != n + 1 or ptr[0] != 0 or ptr[n] != cells.shape[0]:
        raise ValueError(f"ptr: expected {n + 1} offsets from 0 to {cells.shape[0]}")
    for f in range(n):
        if cards[f] < 1 or ptr[f + 1] < ptr[f] or (ptr[f + 1] - ptr[f]) % cards[f]:
            raise ValueError(f"table {f}: {ptr[f + 1] - ptr[f]} cells are not rows of {cards[f]}")
    for i in range(cells.shape[0]):
        if not cells[i] >= 0:
            raise ValueError(f"cells: expected counts, found {cells[i]} at {i}")
    return 0


def log_likelihoods(const number[::1] cells, const int64_t[::1] ptr, const int64_t[::1] cards):
    """See `pure.score.log_likelihoods`."""
    cdef int64_t n_tables = cards.shape[0], f, i, end, r
    cdef number n, row
    cdef double total
    check_tables(cells, ptr, cards)
    result = np.empty(n_tables)
    cdef double[::1] out = result
    with nogil:
        for f in range(n_tables):
            r = cards[f]
            total = 0.0
            i = ptr[f]
            while i < ptr[f + 1]:
                row = 0
                end = i + r
                while i < end:
                    n = cells[i]
                    if n > 0:
                        row += n
                        total += n_log_n(n)
                    i += 1
                if row > 0:
                    total -= n_log_n(row)
            out[f] = total
    return result


def log_dirichlets(
    const number[::1] cells, const int64_t[::1] ptr, const int64_t[::1] cards, const double[::1] alphas
):
    """See `pure.score.log_dirichlets`."""
    cdef int64_t n_tables = cards.shape[0], f, i, end, r, whole, whole_row
    cdef number n, row
    cdef double total, a, b, log_gamma_a, log_gamma_b
    cdef double* own
    cdef double* rows
    check_tables(cells, ptr, cards)
    if alphas.shape[0] != n_tables:
        raise ValueError(f"alphas: expected length {n_tables}, found {alphas.shape[0]}")
    result = np.empty(n_tables)
    cdef double[::1] out = result
    cdef double** known = <double**> malloc((2 * n_tables + 1) * sizeof(double*))
    if known == NULL:
        raise MemoryError
    try:
        held = fill_known(alphas, cards, known, known + n_tables)
        with nogil:
            for f in range(n_tables):
                r = cards[f]
                a = alphas[f]
                b = r * a
                log_gamma_a = log_gamma(a)
                log_gamma_b = log_gamma(b)
                whole = 1 if a == 1.0 else 0
                whole_row = r if a == 1.0 and r < SMALL else 0
                own = known[f]
                rows = known[n_tables + f]
                total = 0.0
                i = ptr[f]
                while i < ptr[f + 1]:
                    row = 0
                    end = i + r
                    while i < end:
                        n = cells[i]
                        if n > 0:
                            row += n
                            total += kept_rising(n, a, log_gamma_a, whole, own)
                        i += 1
                    if row > 0:
                        total -= kept_rising(row, b, log_gamma_b, whole_row, rows)
                out[f] = total
    finally:
        free(known)
    return result


def observed_rows(const number[::1] cells, const int64_t[::1] ptr, const int64_t[::1] cards):
    """See `pure.score.observed_rows`."""
    cdef int64_t n_tables = cards.shape[0], f, i, end, r, seen
    cdef number row
    check_tables(cells, ptr, cards)
    result = np.empty(n_tables, dtype=np.int64)
    cdef int64_t[::1] out = result
    with nogil:
        for f in range(n_tables):
            r = cards[f]
            seen = 0
            i = ptr[f]
            while i < ptr[f + 1]:
                row = 0
                end = i + r
                while i < end:
                    row += cells[i]
                    i += 1
                if row > 0:
                    seen += 1
            out[f] = seen
    return result


def independence(
    const number[::1] cells, const int64_t[::1] ptr, const int64_t[::1] firsts, const int64_t[::1] cards, bint pearson
):
    """See `pure.score.independence`."""
    cdef int64_t n_tables = cards.shape[0], f, x, y, s, rows, columns, slices, stride, seen_rows, seen_columns, most = 1
    cdef const number* table
    cdef number n, total
    cdef double statistic, e
    check_tables(cells, ptr, cards)
    if firsts.shape[0] != n_tables:
        raise ValueError(f"firsts: expected length {n_tables}, found {firsts.shape[0]}")
    for f in range(n_tables):
        x = ptr[f + 1] - ptr[f]
        if not 1 <= firsts[f] <= x or x % (firsts[f] * cards[f]):
            raise ValueError(f"table {f}: {x} cells are not slices of {firsts[f]} × {cards[f]}")
    statistics = np.empty(n_tables)
    freedom = np.zeros(n_tables, dtype=np.int64)
    cdef double[::1] out = statistics
    cdef int64_t[::1] df = freedom
    for f in range(n_tables):
        most = max(most, firsts[f] + cards[f])
    cdef number* row = <number*> malloc(most * sizeof(number))
    cdef number* column
    if row == NULL:
        raise MemoryError
    with nogil:
        for f in range(n_tables):
            rows = firsts[f]
            columns = cards[f]
            slices = (ptr[f + 1] - ptr[f]) // (rows * columns)
            stride = slices * columns
            column = row + rows
            statistic = 0.0
            for s in range(slices):
                table = &cells[ptr[f]] + s * columns
                total = 0
                for y in range(columns):
                    column[y] = 0
                for x in range(rows):
                    row[x] = 0
                    for y in range(columns):
                        n = table[x * stride + y]
                        row[x] += n
                        column[y] += n
                    total += row[x]
                if not total > 0:
                    continue
                seen_rows = seen_columns = 0
                for x in range(rows):
                    seen_rows += row[x] > 0
                for y in range(columns):
                    seen_columns += column[y] > 0
                df[f] += (seen_rows - 1) * (seen_columns - 1)
                if pearson:
                    for x in range(rows):
                        for y in range(columns):
                            if row[x] > 0 and column[y] > 0:
                                e = <double> row[x] * <double> column[y] / <double> total
                                statistic += (table[x * stride + y] - e) * (table[x * stride + y] - e) / e
                else:
                    # Σ n ln n − Σ row ln row − Σ column ln column + total ln total
                    for x in range(rows):
                        for y in range(columns):
                            n = table[x * stride + y]
                            if n > 0:
                                statistic += 2 * n_log_n(n)
                        if row[x] > 0:
                            statistic -= 2 * n_log_n(row[x])
                    for y in range(columns):
                        if column[y] > 0:
                            statistic -= 2 * n_log_n(column[y])
                    statistic += 2 * n_log_n(total)
            out[f] = max(statistic, 0.0)
    free(row)
    return statistics, freedom


def residuals_around(
    const double[:, ::1] scatter, int64_t child, tuple own, list add, list delete, double collinear
):
    """See `pure.score.residuals_around`."""
    cdef int64_t n = scatter.shape[0], n_own = len(own), n_add = len(add), n_delete = len(delete), i, k, m, v
    if scatter.shape[1] != n:
        raise ValueError(f"scatter: expected shape {(n, n)}, found {(n, scatter.shape[1])}")
    if not 0 <= child < n:
        raise ValueError(f"expected variables from 0 to {n - 1}, found {child}")
    result = np.empty(n_add + n_delete + 1)
    cdef double[::1] out = result
    cdef int64_t* parents = <int64_t*> malloc((2 * n_own + n_add + n_delete + 1) * sizeof(int64_t))
    cdef int64_t* kept = parents + n_own
    cdef int64_t* more = kept + n_own
    cdef int64_t* gone = more + n_add
    cdef double* work = <double*> malloc((n_own * (n_own + 3) + 1) * sizeof(double))
    try:
        if parents == NULL or work == NULL:
            raise MemoryError
        for i in range(n_own):
            parents[i] = own[i]
        for i in range(n_add):
            more[i] = add[i]
        for i in range(n_own + n_add):
            v = parents[i] if i < n_own else more[i - n_own]
            if not 0 <= v < n:
                raise ValueError(f"expected variables from 0 to {n - 1}, found {v}")
        for i in range(n_delete):
            if delete[i] not in own:
                raise ValueError(f"delete: {delete[i]} is not a parent of {child}")
            gone[i] = delete[i]
        with nogil:
            for i in range(n_delete):
                m = 0
                for k in range(n_own):
                    if parents[k] != gone[i]:
                        kept[m] = parents[k]
                        m += 1
                out[n_add + i] = eliminate(scatter, kept, m, child, collinear, work)
            out[n_add + n_delete] = eliminate(scatter, parents, n_own, child, collinear, work)
            for i in range(n_add):
                out[i] = one_more(scatter, parents, n_own, child, more[i], collinear, work)
    finally:
        free(parents)
        free(work)
    return result


cdef double eliminate(
    const double[:, ::1] scatter, const int64_t* parents, int64_t n, int64_t child, double collinear, double* work
) noexcept nogil:
    """What n parents leave of a child's sum of squares.

    `work` keeps the rows of the elimination, n × n, then 1 / pivot, 0 where a parent is left out, then the child's part.
    """
    cdef double* inverse = work + n * n
    cdef double* own = inverse + n
    cdef double rest = scatter[child, child]
    cdef int64_t i, j, k
    for i in range(n):
        for j in range(i, n):
            work[i * n + j] = scatter[parents[i], parents[j]]
        own[i] = scatter[parents[i], child]
    for k in range(n):
        inverse[k] = 0.0
        if not work[k * n + k] > collinear * scatter[parents[k], parents[k]]:
            continue
        inverse[k] = 1.0 / work[k * n + k]
        for i in range(k + 1, n):
            for j in range(i, n):
                work[i * n + j] -= work[k * n + i] * inverse[k] * work[k * n + j]
            own[i] -= work[k * n + i] * inverse[k] * own[k]
        rest -= own[k] * inverse[k] * own[k]
    return max(rest, 0.0)


cdef double one_more(
    const double[:, ::1] scatter, const int64_t* parents, int64_t n, int64_t child, int64_t z, double collinear,
    double* work,
) noexcept nogil:
    """The same with one parent more, from what `eliminate` has kept of the others."""
    cdef const double* inverse = work + n * n
    cdef const double* own = inverse + n
    cdef double* part = work + n * (n + 2)
    cdef double rest = scatter[child, child], left = scatter[z, z], shared = scatter[z, child]
    cdef int64_t i, k
    for k in range(n):
        part[k] = scatter[parents[k], z]
    for k in range(n):
        if inverse[k] == 0.0:
            continue
        for i in range(k + 1, n):
            part[i] -= work[k * n + i] * inverse[k] * part[k]
        left -= part[k] * inverse[k] * part[k]
        shared -= part[k] * inverse[k] * own[k]
        rest -= own[k] * inverse[k] * own[k]
    if left > collinear * scatter[z, z]:
        rest -= shared / left * shared
    return max(rest, 0.0)
