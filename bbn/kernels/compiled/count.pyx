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

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif
    #if defined(__GNUC__) && defined(__x86_64__)
    #include <immintrin.h>
    /* Which way of counting bits the processor has. */
    #define BBN_BITS_LEVEL (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vpopcntdq") ? 2 \
                            : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") ? 1 : 0)
    #else
    #define BBN_BITS_LEVEL 0
    #endif

    static int bbn_bits(uint64_t x) {
    #if defined(__GNUC__)
        return __builtin_popcountll(x);
    #else
        x = x - ((x >> 1) & 0x5555555555555555ULL);
        x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
        return (int)((((x + (x >> 4)) & 0x0F0F0F0F0F0F0F0FULL) * 0x0101010101010101ULL) >> 56);
    #endif
    }

    #if defined(__GNUC__) && defined(__x86_64__)
    /* Bits of nibbles by look-up, 32 bytes at a time (Mula, Kurz & Lemire 2018). */
    __attribute__((target("avx2,popcnt")))
    static int64_t bbn_common_avx2(const uint64_t *a, const uint64_t *b, int64_t n) {
        const __m256i bits = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                                              0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
        const __m256i nibble = _mm256_set1_epi8(15), zero = _mm256_setzero_si256();
        __m256i total = zero;
        int64_t i = 0, rest = 0;
        while (i + 4 <= n) {
            __m256i bytes = zero;
            int64_t end = i + 4 * 31 <= n ? i + 4 * 31 : n;
            for (; i + 4 <= end; i += 4) {
                __m256i both = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(a + i)),
                                                _mm256_loadu_si256((const __m256i *)(b + i)));
                __m256i low = _mm256_shuffle_epi8(bits, _mm256_and_si256(both, nibble));
                __m256i high = _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble));
                bytes = _mm256_add_epi8(bytes, _mm256_add_epi8(low, high));
            }
            total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, zero));
        }
        for (; i < n; i++) rest += __builtin_popcountll(a[i] & b[i]);
        return rest + _mm256_extract_epi64(total, 0) + _mm256_extract_epi64(total, 1)
             + _mm256_extract_epi64(total, 2) + _mm256_extract_epi64(total, 3);
    }

    /* The processor's own count, eight words at a time. */
    __attribute__((target("avx512f,avx512vpopcntdq")))
    static int64_t bbn_common_avx512(const uint64_t *a, const uint64_t *b, int64_t n) {
        __m512i total = _mm512_setzero_si512();
        int64_t i = 0;
        for (; i + 8 <= n; i += 8)
            total = _mm512_add_epi64(total, _mm512_popcnt_epi64(_mm512_and_si512(
                _mm512_loadu_si512((const void *)(a + i)), _mm512_loadu_si512((const void *)(b + i)))));
        if (i < n) {
            __mmask8 rest = (__mmask8)((1u << (n - i)) - 1);
            total = _mm512_add_epi64(total, _mm512_popcnt_epi64(_mm512_and_si512(
                _mm512_maskz_loadu_epi64(rest, (const void *)(a + i)),
                _mm512_maskz_loadu_epi64(rest, (const void *)(b + i)))));
        }
        return _mm512_reduce_add_epi64(total);
    }

    /* The same of four at a time, so that b is loaded once for all. */
    __attribute__((target("avx512f,avx512vpopcntdq")))
    static void bbn_common_four_avx512(const uint64_t *const *a, const uint64_t *b, int64_t n, int64_t *out) {
        __m512i t0 = _mm512_setzero_si512(), t1 = t0, t2 = t0, t3 = t0;
        const uint64_t *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
        for (int64_t i = 0; i < n; i += 8) {
            __mmask8 k = i + 8 <= n ? (__mmask8)255 : (__mmask8)((1u << (n - i)) - 1);
            __m512i own = _mm512_maskz_loadu_epi64(k, b + i);
            t0 = _mm512_add_epi64(t0, _mm512_popcnt_epi64(_mm512_and_si512(own, _mm512_maskz_loadu_epi64(k, a0 + i))));
            t1 = _mm512_add_epi64(t1, _mm512_popcnt_epi64(_mm512_and_si512(own, _mm512_maskz_loadu_epi64(k, a1 + i))));
            t2 = _mm512_add_epi64(t2, _mm512_popcnt_epi64(_mm512_and_si512(own, _mm512_maskz_loadu_epi64(k, a2 + i))));
            t3 = _mm512_add_epi64(t3, _mm512_popcnt_epi64(_mm512_and_si512(own, _mm512_maskz_loadu_epi64(k, a3 + i))));
        }
        out[0] = _mm512_reduce_add_epi64(t0);
        out[1] = _mm512_reduce_add_epi64(t1);
        out[2] = _mm512_reduce_add_epi64(t2);
        out[3] = _mm512_reduce_add_epi64(t3);
    }
    #else
    static int64_t bbn_common_avx2(const uint64_t *a, const uint64_t *b, int64_t n) { return 0; }
    static int64_t bbn_common_avx512(const uint64_t *a, const uint64_t *b, int64_t n) { return 0; }
    static void bbn_common_four_avx512(const uint64_t *const *a, const uint64_t *b, int64_t n, int64_t *out) {}
    #endif

    /* The largest code of a column. */
    static int64_t bbn_largest(const uint8_t *codes, int64_t n) {
        uint8_t largest = 0;
        for (int64_t i = 0; i < n; i++) largest = codes[i] > largest ? codes[i] : largest;
        return largest;
    }
    static int64_t bbn_largest_wide(const uint16_t *codes, int64_t n) {
        uint16_t largest = 0;
        for (int64_t i = 0; i < n; i++) largest = codes[i] > largest ? codes[i] : largest;
        return largest;
    }

    /* The number of bits that are set in both. */
    static int64_t bbn_common(const uint64_t *a, const uint64_t *b, int64_t n, int level) {
        int64_t total = 0, i;
        if (level == 2) return bbn_common_avx512(a, b, n);
        if (level == 1) return bbn_common_avx2(a, b, n);
        for (i = 0; i < n; i++) total += bbn_bits(a[i] & b[i]);
        return total;
    }

    /* The number of bits that are set in b and in each of four others. */
    static void bbn_common_four(const uint64_t *const *a, const uint64_t *b, int64_t n, int level, int64_t *out) {
        if (level == 2) bbn_common_four_avx512(a, b, n, out);
        else for (int k = 0; k < 4; k++) out[k] = bbn_common(a[k], b, n, level);
    }

    /* Bit i of out is set where codes[i] == state; out was cleared. */
    static void bbn_bitmap(const uint8_t *codes, int64_t n, uint8_t state, uint64_t *out) {
        int64_t i = 0;
    #if defined(__SSE2__)
        const __m128i wanted = _mm_set1_epi8((char)state);
        for (; i + 63 < n; i += 64) {
            uint64_t word = 0;
            for (int part = 0; part < 4; part++) {
                __m128i sixteen = _mm_loadu_si128((const __m128i *)(codes + i + 16 * part));
                word |= (uint64_t)(uint16_t)_mm_movemask_epi8(_mm_cmpeq_epi8(sixteen, wanted)) << (16 * part);
            }
            out[i >> 6] = word;
        }
    #endif
        for (; i < n; i++) out[i >> 6] |= (uint64_t)(codes[i] == state) << (i & 63);
    }
    """
    int BBN_BITS_LEVEL
    int64_t bbn_common(const uint64_t* a, const uint64_t* b, int64_t n, int level) noexcept nogil
    void bbn_common_four(const uint64_t** a, const uint64_t* b, int64_t n, int level, int64_t* out) noexcept nogil
    int64_t bbn_largest(const uint8_t* codes, int64_t n) noexcept nogil
    int64_t bbn_largest_wide(const uint16_t* codes, int64_t n) noexcept nogil
    void bbn_bitmap(const uint8_t* codes, int64_t n, uint8_t state, uint64_t* out) noexcept nogil

cdef enum:
    BLOCK = 4096  # rows whose index is worked out at a time
    WORDS = 256  # words of bit maps that are intersected at a time
    MAX_BUNDLE = 8
    MAX_SETTINGS = 256  # of what a run has in common, for bit maps to be used
    MIN_RUN = 4  # families in a run, for bit maps to be used

ctypedef fused index_t:
    uint16_t
    uint32_t

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
    """Count a run of k families in some words of the bit maps; a candidate's last state is what the others leave."""
    cdef int64_t words = (n_rows + 63) // 64, n_rest = ptr[f + 1] - ptr[f] - 1, size = 1
    cdef int64_t i, j, c, s, b, k4, radix, n_seen = 0
    cdef int64_t totals[MAX_SETTINGS]
    cdef int64_t seen[MAX_SETTINGS]  # the settings that some row has
    cdef const uint64_t* sets[MAX_SETTINGS + 3]
    cdef int64_t common[4]
    cdef int64_t left[MAX_SETTINGS]
    cdef const uint64_t* bits
    cdef uint64_t* held
    cdef int64_t* out
    for i in range(length):
        base[i] = <uint64_t> -1
    if start + length == words and n_rows % 64:
        base[length - 1] = ((<uint64_t> 1) << (n_rows % 64)) - 1
    for j in range(n_rest):
        c = members[ptr[f] + 1 + j]
        radix = columns[c].radix
        for b in range(size):
            for s in range(radix):
                bits = columns[c].bits + s * words + start
                for i in range(length):
                    spare[(b * radix + s) * WORDS + i] = base[b * WORDS + i] & bits[i]
        held = base
        base = spare
        spare = held
        size *= radix
    for b in range(size):
        i = bbn_common(base + b * WORDS, base + b * WORDS, length, level)
        if i:
            seen[n_seen] = b
            totals[n_seen] = i
            sets[n_seen] = base + b * WORDS
            n_seen += 1
    for b in range(3):  # so that four at a time never read beyond
        sets[n_seen + b] = base
    for j in range(f, f + k):
        c = members[ptr[j]]
        radix = columns[c].radix
        out = cells + offsets[j]
        for b in range(n_seen):
            left[b] = totals[b]
        for s in range(radix - 1):
            bits = columns[c].bits + s * words + start
            b = 0
            while b < n_seen:
                bbn_common_four(&sets[b], bits, length, level, common)
                for k4 in range(min(<int64_t> 4, n_seen - b)):
                    out[s * size + seen[b + k4]] += common[k4]
                    left[b + k4] -= common[k4]
                b += 4
        for b in range(n_seen):
            out[(radix - 1) * size + seen[b]] += left[b]


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
        cdef int64_t n_families = ptr.shape[0] - 1, n_rows = self.n_rows
        cdef int64_t stop = n_rows if last is None else last
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
        check_families(ptr, members, self.n_columns)
        check_tables(ptr, members, radixes, offsets)
        if not (0 <= first <= stop <= n_rows) or first % 64 or (stop % 64 and stop != n_rows):
            raise ValueError(f"rows: expected a range between multiples of 64 below {n_rows}, found {(first, stop)}")
        result = np.zeros(offsets[n_families], dtype=np.int64 if weights is None else np.float64)
        if first == stop or n_families == 0:
            return result
        for i in range(members.shape[0]):
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
            largest = max(largest, offsets[f + 1] - offsets[f])
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
                    size = offsets[f + 1] - offsets[f]
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
                    rest = &members[ptr[f]] + 1
                    base_size = size // radixes[firsts[0]]
                    if weight == NULL and n_rest and base_size <= MAX_SETTINGS:
                        all_bits = True
                        for i in range(n_rest):
                            all_bits = all_bits and column[rest[i]].bits != NULL
                        g = f
                        while (all_bits and g < n_families and same_rest(&members[0], &ptr[0], f, g)
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
                        while f + k < n_families and k < MAX_BUNDLE and same_rest(&members[0], &ptr[0], f, f + k):
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
                        count_bits(column, &members[0], &ptr[0], &offsets[0], run[2 * i], run[2 * i + 1], n_rows, start,
                                   length, &cells[0], base, base + MAX_SETTINGS * WORDS, level)
                        done += (offsets[run[2 * i] + run[2 * i + 1]] - offsets[run[2 * i]]) * length
                        if done > POLL_CELLS:
                            done = 0
                            poll()
                    start += length
        finally:
            free(index)
            free(base)
            free(run)
            free(table)
        return result


def count_families(
    list columns, list bits, const int64_t[::1] radixes, const int64_t[::1] ptr, const int64_t[::1] members,
    const int64_t[::1] offsets, weights,
):
    """See `pure.count.count_families`."""
    return Columns(columns, bits, radixes).count(ptr, members, offsets, weights)
