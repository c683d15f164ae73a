# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Counting batches of families: the compiled twin of `pure.count`.

Searches ask for many families that differ in their first member only: a candidate parent before the same parents and
child. Such a run shares the work on what it has in common, in one of two ways. Where that has few settings, each is a
bit map of its rows, and a count is the number of bits in the intersection with a candidate's bit map. Else candidates
are counted in bundles: one joint table of several is filled in one pass over the rows and summed down to each one's own.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from bbn.kernels.compiled.watch cimport POLL_CELLS, poll

cdef extern from "bits.h":
    int BBN_BITS_LEVEL
    int64_t bbn_meet(const uint64_t* a, const uint64_t* b, int64_t n, int level, uint64_t* out) noexcept nogil
    void bbn_common_grid(const uint64_t** a, const uint64_t** b, int64_t n, int level, int64_t* out) noexcept nogil
    int64_t bbn_positions(const uint64_t* words, int64_t n, int64_t first, int64_t* out) noexcept nogil
    int64_t bbn_largest(const uint8_t* codes, int64_t n) noexcept nogil
    int64_t bbn_largest_wide(const uint16_t* codes, int64_t n) noexcept nogil
    void bbn_bitmap(const uint8_t* codes, int64_t n, uint8_t state, uint64_t* out) noexcept nogil

cdef enum:
    BLOCK = 4096  # rows whose index is worked out at a time
    WORDS = 256  # words of bit maps that are intersected at a time
    MAX_BUNDLE = 8
    MAX_SETTINGS = 256  # of what a run has in common, for bit maps to be used
    MIN_RUN = 4  # families in a run, for bit maps to be used
    RARE = 16  # rows of a setting, up to which they are looked at one by one

cdef double MOST_CELLS = 2.0**53  # that an offset can reach

ctypedef fused index_t:
    uint16_t
    uint32_t

ctypedef fused number:
    int64_t
    double

cdef struct Column:
    const uint8_t* narrow
    const uint16_t* wide
    const uint64_t* bits
    int64_t radix


cdef int check_codes(const Column* column, int64_t n, int64_t radix, int64_t number) except -1:
    """Refuse a column that holds a code beyond its radix."""
    cdef int64_t largest = bbn_largest(column.narrow, n) if column.narrow != NULL else bbn_largest_wide(column.wide, n)
    if largest >= radix:
        raise ValueError(f"columns: column {number} holds the code {largest}, expected at most {radix - 1}")
    return 0


def bitmaps(const uint8_t[::1] codes, int64_t radix):
    """See `pure.count.bitmaps`."""
    cdef int64_t n = codes.shape[0], words = (n + 63) // 64, s
    if not 0 <= radix <= 256:
        raise ValueError(f"radix: expected a number from 0 to 256, found {radix}")
    result = np.zeros((radix, words), dtype=np.uint64)
    cdef uint64_t[:, ::1] out = result
    cdef Column column
    if n:
        column.narrow = &codes[0]
        check_codes(&column, n, radix, 0)
        with nogil:
            for s in range(radix):
                bbn_bitmap(&codes[0], n, <uint8_t> s, &out[s, 0])
    return result


cdef void push(index_t* index, const Column* column, int64_t start, int64_t length) noexcept nogil:
    """index ← index · radix + code."""
    cdef int64_t i
    cdef index_t radix = <index_t> column.radix
    cdef const uint8_t* narrow = column.narrow + start
    cdef const uint16_t* wide = column.wide + start
    if column.narrow != NULL:
        for i in range(length):
            index[i] = <index_t> (index[i] * radix + narrow[i])
    else:
        for i in range(length):
            index[i] = <index_t> (index[i] * radix + wide[i])


cdef void tally(uint32_t* table, int64_t size, int64_t copies, const index_t* index, int64_t length) noexcept nogil:
    """One more in the cell of each row. Copies, so that equal neighbours do not wait for each other's store."""
    cdef int64_t i = 0
    cdef uint32_t* a = table
    cdef uint32_t* b
    cdef uint32_t* c
    cdef uint32_t* d
    if copies == 4:
        b = a + size
        c = b + size
        d = c + size
        while i + 3 < length:
            a[index[i]] += 1
            b[index[i + 1]] += 1
            c[index[i + 2]] += 1
            d[index[i + 3]] += 1
            i += 4
    while i < length:
        a[index[i]] += 1
        i += 1


cdef void count_table(
    const Column* columns, const int64_t* firsts, int64_t k, const int64_t* rest, int64_t n_rest, int64_t start,
    int64_t stop, const double* weights, double* sums, uint32_t* table, int64_t size, int64_t copies, index_t* index,
) noexcept nogil:
    """Fill the joint table of k candidates and of what they share, the last column running fastest."""
    cdef int64_t length, i, j
    while start < stop:
        length = min(<int64_t> BLOCK, stop - start)
        memset(index, 0, length * sizeof(index_t))
        for j in range(k):
            push(index, &columns[firsts[j]], start, length)
        for j in range(n_rest):
            push(index, &columns[rest[j]], start, length)
        if weights != NULL:
            for i in range(length):
                sums[index[i]] += weights[start + i]
        else:
            tally(table, size, copies, index, length)
        start += length


cdef void sum_down(
    const Column* columns, const int64_t* firsts, int64_t k, int64_t base_size, uint32_t* table, int64_t size,
    int64_t copies, int64_t** out,
) noexcept nogil:
    """From the joint table of k candidates to each one's own: out_j[z_j, b] = Σ over the other candidates.

    The slowest candidate's table is read off, then it is summed out, and so on.
    """
    cdef int64_t i, j, z, m, b, radix, inner
    cdef int64_t* target
    cdef const uint32_t* cells
    for i in range(1, copies):
        for j in range(size):
            table[j] += table[i * size + j]
    for j in range(k):
        radix = columns[firsts[j]].radix
        inner = size // radix
        for z in range(radix):
            target = out[j] + z * base_size
            cells = table + z * inner
            m = 0
            while m < inner:
                for b in range(base_size):
                    target[b] += cells[m + b]
                m += base_size
        for z in range(1, radix):
            for i in range(inner):
                table[i] += table[z * inner + i]
        size = inner


cdef void count_bits(
    const Column* columns, const int64_t* members, const int64_t* ptr, const int64_t* offsets, int64_t f, int64_t k,
    int64_t n_rows, int64_t start, int64_t length, int64_t* cells, uint64_t* base, uint64_t* spare, int level,
) noexcept nogil:
    """Count a run of k families in some words of the bit maps; a candidate's last state is what the others leave.

    Settings of what the run has in common that no row has are dropped as soon as that is seen. The rows of those that
    few rows have are counted one by one.
    """
    cdef int64_t words = (n_rows + 63) // 64, n_rest = ptr[f + 1] - ptr[f] - 1, size = 1
    cdef int64_t i, j, c, s, b, g, n, radix, n_sets = 1, n_grown, n_rare = 0, n_states = 0
    cdef int64_t seen[MAX_SETTINGS]  # the settings that some row has
    cdef int64_t grown[MAX_SETTINGS]
    cdef int64_t totals[MAX_SETTINGS]
    cdef const uint64_t* sets[MAX_SETTINGS + 3]
    cdef int64_t rare[MAX_SETTINGS * RARE]  # rows, and the settings that they have
    cdef int64_t rare_setting[MAX_SETTINGS * RARE]
    cdef const uint64_t* states[4]
    cdef int64_t* into[4]
    cdef int64_t* lasts[4]
    cdef int64_t common[16]
    cdef uint64_t* held
    cdef int64_t* out
    for i in range(length):
        base[i] = <uint64_t> -1
    if start + length == words and n_rows % 64:
        base[length - 1] = ((<uint64_t> 1) << (n_rows % 64)) - 1
    seen[0] = 0
    for j in range(n_rest):
        c = members[ptr[f] + 1 + j]
        radix = columns[c].radix
        n_grown = 0
        for b in range(n_sets):
            for s in range(radix):
                i = bbn_meet(base + b * WORDS, columns[c].bits + s * words + start, length, level, spare + n_grown * WORDS)
                if i:
                    grown[n_grown] = seen[b] * radix + s
                    totals[n_grown] = i
                    n_grown += 1
        held = base
        base = spare
        spare = held
        size *= radix
        n_sets = n_grown
        for b in range(n_sets):
            seen[b] = grown[b]
    n = 0
    for b in range(n_sets):
        i = totals[b]
        if i <= RARE:
            bbn_positions(base + b * WORDS, length, 64 * start, rare + n_rare)
            for j in range(n_rare, n_rare + i):
                rare_setting[j] = seen[b]
            n_rare += i
        else:
            seen[n] = seen[b]
            totals[n] = i
            sets[n] = base + b * WORDS
            n += 1
    n_sets = n
    for b in range(3):  # so that four at a time never read beyond
        sets[n_sets + b] = base
    for j in range(f, f + k):
        c = members[ptr[j]]
        radix = columns[c].radix
        out = cells + offsets[j]
        if columns[c].narrow != NULL:
            for i in range(n_rare):
                out[columns[c].narrow[rare[i]] * size + rare_setting[i]] += 1
        else:
            for i in range(n_rare):
                out[columns[c].wide[rare[i]] * size + rare_setting[i]] += 1
        for b in range(n_sets):
            out[(radix - 1) * size + seen[b]] += totals[b]
        for s in range(radix):
            if s < radix - 1:
                states[n_states] = columns[c].bits + s * words + start
                into[n_states] = out + s * size
                lasts[n_states] = out + (radix - 1) * size
                n_states += 1
            # four states, of one candidate or of several, meet all settings
            if n_states == 4 or (n_states and j == f + k - 1 and s == radix - 1):
                for g in range(n_states, 4):
                    states[g] = states[0]
                b = 0
                while b < n_sets:
                    bbn_common_grid(&sets[b], states, length, level, common)
                    for g in range(n_states):
                        for i in range(min(<int64_t> 4, n_sets - b)):
                            into[g][seen[b + i]] += common[4 * g + i]
                            lasts[g][seen[b + i]] -= common[4 * g + i]
                    b += 4
                n_states = 0


cdef void sum_axis(const number* table, int64_t outer, int64_t radix, int64_t inner, number* out) noexcept nogil:
    """out[o, i] += Σ_r table[o, r, i]."""
    cdef int64_t o, r, i
    for o in range(outer):
        for r in range(radix):
            for i in range(inner):
                out[o * inner + i] += table[(o * radix + r) * inner + i]


cdef void sum_out(
    int64_t n_wanted, const int64_t* about, const int64_t* ptr, const int64_t* members, const int64_t* offsets,
    const int64_t* axes, const int64_t* radixes, number* cells,
) noexcept nogil:
    """The tables with no parent more, and with one less: sums of those that are there."""
    cdef int64_t w, f, t, k, i, n_own, inner, outer, base
    cdef const int64_t* family
    cdef const number* own
    for w in range(n_wanted):
        f, t = about[4 * w], about[4 * w + 1]
        own = cells + offsets[t + about[4 * w + 2] + about[4 * w + 3]]
        base = offsets[t + about[4 * w + 2] + about[4 * w + 3] + 1] - (own - cells)
        family = members + ptr[f]
        n_own = ptr[f + 1] - ptr[f] - 1
        if about[4 * w + 2]:
            sum_axis(cells + offsets[t], 1, radixes[family[0]], base, <number*> own)
            family += 1
            n_own -= 1
        t += about[4 * w + 2]
        for k in range(about[4 * w + 3]):
            inner = 1
            for i in range(axes[0] + 1, n_own + 1):
                inner *= radixes[family[i]]
            outer = base // (inner * radixes[family[axes[0]]])
            sum_axis(own, outer, radixes[family[axes[0]]], inner, cells + offsets[t])
            axes += 1
            t += 1


cdef bint same_rest(const int64_t* members, const int64_t* ptr, int64_t f, int64_t g) noexcept nogil:
    cdef int64_t n_rest = ptr[f + 1] - ptr[f] - 1, i
    if ptr[g + 1] - ptr[g] - 1 != n_rest:
        return False
    for i in range(n_rest):
        if members[ptr[g] + 1 + i] != members[ptr[f] + 1 + i]:
            return False
    return True


cdef int check_families(const int64_t[::1] ptr, const int64_t[::1] members, int64_t n_columns) except -1:
    """Refuse families that are not of these columns; see `pure.count.check_families`."""
    cdef int64_t f, i, n = ptr.shape[0]
    if n == 0 or ptr[0] != 0 or ptr[n - 1] != members.shape[0]:
        raise ValueError(f"ptr: expected offsets from 0 to {members.shape[0]}")
    for f in range(1, n):
        if ptr[f] < ptr[f - 1]:
            raise ValueError(f"ptr: offsets fall from {ptr[f - 1]} to {ptr[f]} at {f}")
    for i in range(members.shape[0]):
        if not 0 <= members[i] < n_columns:
            raise ValueError(f"members: expected numbers from 0 to {n_columns - 1}, found {members[i]} at {i}")
    return 0


cdef int check_tables(const int64_t[::1] ptr, const int64_t[::1] members, const int64_t[::1] radixes,
                      const int64_t[::1] offsets) except -1:
    """Refuse tables that are not as long as their families have settings."""
    cdef int64_t f, i
    cdef double cells
    if offsets.shape[0] != ptr.shape[0] or offsets[0] != 0:
        raise ValueError(f"offsets: expected {ptr.shape[0]} of them, the first 0")
    for i in range(radixes.shape[0]):
        if radixes[i] < 1:
            raise ValueError(f"radixes: expected at least 1, found {radixes[i]} at {i}")
    for f in range(ptr.shape[0] - 1):
        cells = 1.0
        for i in range(ptr[f], ptr[f + 1]):
            cells *= radixes[members[i]]
        if cells != offsets[f + 1] - offsets[f]:
            raise ValueError(f"table {f}: expected {cells:.15g} cells, found {offsets[f + 1] - offsets[f]}")
    return 0


def worth_bitmaps(const int64_t[::1] ptr, const int64_t[::1] members, const int64_t[::1] radixes):
    """See `pure.count.worth_bitmaps`: the columns of runs that are long enough and have few settings in common."""
    cdef int64_t n_families = ptr.shape[0] - 1, f = 0, g, i, settings
    check_families(ptr, members, radixes.shape[0])
    wanted = np.zeros(radixes.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] out = wanted
    with nogil:
        while f < n_families:
            g = f + 1
            if ptr[f + 1] - ptr[f] >= 2:
                while g < n_families and same_rest(&members[0], &ptr[0], f, g):
                    g += 1
                settings = 1
                for i in range(ptr[f] + 1, ptr[f + 1]):
                    settings *= radixes[members[i]]
                if g - f >= MIN_RUN and settings <= MAX_SETTINGS:
                    for i in range(ptr[f], ptr[g]):
                        out[members[i]] = 1
            f = g
    return np.flatnonzero(wanted)


cdef class Columns:
    """See `pure.count.Columns`."""

    cdef Column* column
    cdef uint8_t[::1] checked
    cdef const int64_t[::1] radixes
    cdef int64_t n_columns, n_rows
    cdef object held  # the arrays that the columns point into

    def __cinit__(self, list columns, list bits, const int64_t[::1] radixes):
        cdef int64_t c, words
        cdef const uint8_t[::1] narrow
        cdef const uint16_t[::1] wide
        cdef const uint64_t[:, ::1] bit_view
        self.n_columns = len(columns)
        self.n_rows = len(columns[0]) if self.n_columns else 0
        words = (self.n_rows + 63) // 64
        if radixes.shape[0] != self.n_columns or len(bits) != self.n_columns:
            raise ValueError(
                f"expected {self.n_columns} radixes and bit maps, found {radixes.shape[0]} and {len(bits)}"
            )
        self.radixes = radixes
        self.column = <Column*> calloc(self.n_columns + 1, sizeof(Column))
        if self.column == NULL:
            raise MemoryError
        self.checked = np.zeros(self.n_columns, np.uint8)
        self.held = [*columns, *bits]
        for c in range(self.n_columns):
            self.column[c].radix = radixes[c]
            if radixes[c] < 1:
                raise ValueError(f"radixes: expected at least 1, found {radixes[c]} at {c}")
            if len(columns[c]) != self.n_rows:
                raise ValueError(f"columns: expected {self.n_rows} rows, found {len(columns[c])} of column {c}")
            if self.n_rows == 0:
                continue
            if columns[c].dtype == np.uint8:
                narrow = columns[c]
                self.column[c].narrow = &narrow[0]
            else:
                wide = columns[c]
                self.column[c].wide = &wide[0]
            if bits[c] is not None:
                bit_view = bits[c]
                if bit_view.shape[0] != radixes[c] or bit_view.shape[1] != words:
                    raise ValueError(f"bits: expected shape {(radixes[c], words)} of column {c}")
                self.column[c].bits = &bit_view[0, 0]
                self.checked[c] = 1  # `bitmaps` has looked at its codes

    def __dealloc__(self):
        free(self.column)

    def count(
        self, const int64_t[::1] ptr, const int64_t[::1] members, const int64_t[::1] offsets, weights,
        int64_t first=0, last=None,
    ):
        """See `pure.count.Columns.count`."""
        cdef int64_t n_families = ptr.shape[0] - 1, stop = self.n_rows if last is None else last
        check_families(ptr, members, self.n_columns)
        check_tables(ptr, members, self.radixes, offsets)
        self.check_rows(first, stop)
        result = np.zeros(offsets[n_families], dtype=np.int64 if weights is None else np.float64)
        if first < stop and n_families:
            self.fill(n_families, &ptr[0], &members[0] if members.shape[0] else NULL, &offsets[0], &offsets[1], weights,
                      result, first, stop)
        return result

    def around(self, list wanted, const int64_t[::1] place, weights, int64_t first=0, last=None):
        """See `pure.count.Columns.around`."""
        cdef int64_t stop = self.n_rows if last is None else last
        cdef int64_t n_counted = 0, n_members = 0, n_tables = 0, n_axes = 0, n_wanted = len(wanted)
        cdef int64_t w, f = 0, m = 0, t = 0, k = 0, i, column, n_own, n_add, base
        cdef double size, total = 0.0
        cdef const int64_t[::1] radixes = self.radixes
        cdef object child, v
        cdef tuple own
        cdef list add, delete
        self.check_rows(first, stop)
        for child, own, add, delete in wanted:
            n_add = len(add)
            n_counted += max(n_add, 1)
            n_members += max(n_add, 1) * (<int64_t> len(own) + 1) + n_add
            n_tables += n_add + <int64_t> len(delete) + 1
            n_axes += len(delete)
        ends, lengths = np.empty(n_tables + 1, dtype=np.int64), np.empty(n_tables, dtype=np.int64)
        cdef int64_t[::1] offsets = ends, cards = lengths
        cdef int64_t* ptr = <int64_t*> malloc((3 * n_counted + 1 + n_members + n_axes + 4 * n_wanted) * sizeof(int64_t))
        cdef int64_t* members = ptr + n_counted + 1
        cdef int64_t* starts = members + n_members
        cdef int64_t* stops = starts + n_counted
        cdef int64_t* axes = stops + n_counted
        cdef int64_t* about = axes + n_axes  # of each: its first family, its first table, its candidates and its deletions
        cdef int64_t[::1] cells
        cdef double[::1] sums
        if ptr == NULL:
            raise MemoryError
        try:
            ptr[0] = 0
            offsets[0] = 0
            for w in range(n_wanted):
                child, own, add, delete = wanted[w]
                n_own, n_add = len(own), len(add)
                about[4 * w] = f
                about[4 * w + 1] = t
                about[4 * w + 2] = n_add
                about[4 * w + 3] = len(delete)
                size = 1.0
                for i in range(max(n_add, 1)):
                    if n_add:
                        members[m] = self.column_of(add[i], place)
                        m += 1
                    if i == 0:
                        for v in own:
                            members[m] = self.column_of(v, place)
                            size *= radixes[members[m]]
                            m += 1
                        members[m] = self.column_of(child, place)
                        size *= radixes[members[m]]
                        m += 1
                    else:
                        for k in range(n_own + 1):
                            members[m] = members[ptr[f] + 1 + k]
                            m += 1
                    ptr[f + i + 1] = m
                column = members[m - 1]
                for i in range(n_add):
                    total += size * radixes[members[ptr[f + i]]]
                for v in delete:
                    if v not in own:
                        raise ValueError(f"delete: {v} is not a parent of {child}")
                    i = own.index(v)
                    axes[0] = i
                    axes += 1
                    total += size / radixes[members[m - 1 - n_own + i]]
                total += size
                if total > MOST_CELLS:
                    raise ValueError(f"expected fewer cells than {MOST_CELLS:.3g}")
                base = <int64_t> size
                for i in range(n_add):
                    offsets[t + 1] = offsets[t] + base * radixes[members[ptr[f + i]]]
                    starts[f + i] = offsets[t]
                    stops[f + i] = offsets[t + 1]
                    t += 1
                for i in range(<int64_t> len(delete)):
                    k = (axes - <int64_t> len(delete) + i)[0]
                    offsets[t + 1] = offsets[t] + base // radixes[members[m - 1 - n_own + k]]
                    t += 1
                offsets[t + 1] = offsets[t] + base
                if n_add == 0:
                    starts[f] = offsets[t]
                    stops[f] = offsets[t + 1]
                t += 1
                for i in range(about[4 * w + 1], t):
                    cards[i] = radixes[column]
                f += max(n_add, 1)
            axes -= n_axes
            result = np.zeros(offsets[n_tables], dtype=np.int64 if weights is None else np.float64)
            if first < stop and n_counted:
                self.fill(n_counted, ptr, members, starts, stops, weights, result, first, stop)
                if weights is None:
                    cells = result
                    sum_out(n_wanted, about, ptr, members, &offsets[0], axes, &radixes[0], &cells[0])
                else:
                    sums = result
                    sum_out(n_wanted, about, ptr, members, &offsets[0], axes, &radixes[0], &sums[0])
        finally:
            free(ptr)
        return result, ends, lengths

    cdef int64_t column_of(self, object variable, const int64_t[::1] place) except -1:
        """The column of a variable."""
        cdef int64_t v = variable
        if not (0 <= v < place.shape[0] and 0 <= place[v] < self.n_columns):
            raise ValueError(f"wanted: variable {v} has no column")
        return place[v]

    cdef int check_rows(self, int64_t first, int64_t stop) except -1:
        if not (0 <= first <= stop <= self.n_rows) or first % 64 or (stop % 64 and stop != self.n_rows):
            raise ValueError(
                f"rows: expected a range between multiples of 64 below {self.n_rows}, found {(first, stop)}"
            )
        return 0

    cdef int fill(
        self, int64_t n_families, const int64_t* ptr, const int64_t* members, const int64_t* offsets,
        const int64_t* ends, weights, result, int64_t first, int64_t stop,
    ) except -1:
        """Count families in some rows, each into ``result[offsets[f]:ends[f]]``."""
        cdef int64_t n_rows = self.n_rows
        cdef const int64_t[::1] radixes = self.radixes
        cdef Column* column = self.column
        cdef const double[::1] weight_view
        cdef const double* weight = NULL
        cdef int64_t[::1] cells
        cdef double[::1] sums
        cdef double* own_sums = NULL
        cdef int64_t* out[MAX_BUNDLE]
        cdef int64_t firsts[MAX_BUNDLE]
        cdef const int64_t* rest
        cdef int64_t f, g, k, c, i, base_size, size, n_rest, room, copies, largest = 1
        cdef int64_t n_runs = 0, start, length, done = 0
        cdef int level = BBN_BITS_LEVEL
        cdef bint all_bits
        for i in range(ptr[n_families]):
            c = members[i]
            if not self.checked[c]:
                check_codes(&column[c], n_rows, radixes[c], c)
                self.checked[c] = 1
        cdef uint32_t* index = <uint32_t*> malloc(BLOCK * sizeof(uint32_t))
        cdef uint64_t* base = <uint64_t*> malloc(2 * MAX_SETTINGS * WORDS * sizeof(uint64_t))
        cdef int64_t* run = <int64_t*> malloc(2 * (n_families // MIN_RUN + 1) * sizeof(int64_t))
        cdef uint32_t* table = NULL
        # a joint table may have as many cells as it is still cheap to clear and to sum down
        room = max(<int64_t> 16, min(<int64_t> 4096, (stop - first) // 8))
        for f in range(n_families):
            largest = max(largest, ends[f] - offsets[f])
        try:
            if index == NULL or base == NULL or run == NULL:
                raise MemoryError
            if weights is not None:
                weight_view = np.ascontiguousarray(weights, dtype=np.float64)
                if weight_view.shape[0] != n_rows:
                    raise ValueError(f"weights: expected length {n_rows}, found {weight_view.shape[0]}")
                weight = &weight_view[0]
                sums = result
            else:
                cells = result
                table = <uint32_t*> malloc(max(largest, 4 * room) * sizeof(uint32_t))
                if table == NULL:
                    raise MemoryError
            with nogil:
                f = 0
                while f < n_families:
                    size = ends[f] - offsets[f]
                    n_rest = ptr[f + 1] - ptr[f] - 1
                    if n_rest < 0:
                        if weight != NULL:
                            for i in range(first, stop):
                                sums[offsets[f]] += weight[i]
                        else:
                            cells[offsets[f]] = stop - first
                        f += 1
                        continue
                    firsts[0] = members[ptr[f]]
                    rest = members + ptr[f] + 1
                    base_size = size // radixes[firsts[0]]
                    if weight == NULL and n_rest and base_size <= MAX_SETTINGS:
                        all_bits = True
                        for i in range(n_rest):
                            all_bits = all_bits and column[rest[i]].bits != NULL
                        g = f
                        while (all_bits and g < n_families and same_rest(members, ptr, f, g)
                               and column[members[ptr[g]]].bits != NULL):
                            g += 1
                        if g - f >= MIN_RUN:
                            run[2 * n_runs] = f
                            run[2 * n_runs + 1] = g - f
                            n_runs += 1
                            f = g
                            continue
                    k = 1
                    if weight == NULL:
                        out[0] = &cells[offsets[f]]
                        while f + k < n_families and k < MAX_BUNDLE and same_rest(members, ptr, f, f + k):
                            c = members[ptr[f + k]]
                            if size * radixes[c] > room:
                                break
                            firsts[k] = c
                            out[k] = &cells[offsets[f + k]]
                            size *= radixes[c]
                            k += 1
                        copies = 4 if size <= room and size <= 1024 else 1
                        memset(table, 0, copies * size * sizeof(uint32_t))
                    else:
                        copies = 1
                        own_sums = &sums[offsets[f]]
                    if size <= 65536:
                        count_table[uint16_t](column, firsts, k, rest, n_rest, first, stop, weight, own_sums, table, size, copies,
                                              <uint16_t*> index)
                    else:
                        count_table[uint32_t](column, firsts, k, rest, n_rest, first, stop, weight, own_sums, table, size, copies,
                                              index)
                    if weight == NULL:
                        sum_down(column, firsts, k, base_size, table, size, copies, out)
                    f += k
                    done += (n_rest + k) * (stop - first) + size
                    if done > POLL_CELLS:
                        done = 0
                        poll()
                # all runs on some words of the bit maps, then all on the next
                start = first // 64
                while n_runs and start * 64 < stop:
                    length = min(<int64_t> WORDS, (stop + 63) // 64 - start)
                    for i in range(n_runs):
                        count_bits(column, members, ptr, &offsets[0], run[2 * i], run[2 * i + 1], n_rows, start,
                                   length, &cells[0], base, base + MAX_SETTINGS * WORDS, level)
                        done += (ends[run[2 * i] + run[2 * i + 1] - 1] - offsets[run[2 * i]]) * length
                        if done > POLL_CELLS:
                            done = 0
                            poll()
                    start += length
        finally:
            free(index)
            free(base)
            free(run)
            free(table)
        return 0


def count_families(
    list columns, list bits, const int64_t[::1] radixes, const int64_t[::1] ptr, const int64_t[::1] members,
    const int64_t[::1] offsets, weights,
):
    """See `pure.count.count_families`."""
    return Columns(columns, bits, radixes).count(ptr, members, offsets, weights)
