// Rows as bits: making bit maps of columns, and counting the bits that two of them share; see `count.pyx`.

#ifndef BBN_BITS_H
#define BBN_BITS_H

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

/* The bits that are set in both, and their number. */
__attribute__((target("avx512f,avx512vpopcntdq")))
static int64_t bbn_meet_avx512(const uint64_t *a, const uint64_t *b, int64_t n, uint64_t *out) {
    __m512i total = _mm512_setzero_si512();
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 k = i + 8 <= n ? (__mmask8)255 : (__mmask8)((1u << (n - i)) - 1);
        __m512i both = _mm512_and_si512(_mm512_maskz_loadu_epi64(k, a + i), _mm512_maskz_loadu_epi64(k, b + i));
        _mm512_mask_storeu_epi64(out + i, k, both);
        total = _mm512_add_epi64(total, _mm512_popcnt_epi64(both));
    }
    return _mm512_reduce_add_epi64(total);
}

/* The numbers of bits that four and four others share, each loaded once for all that it meets. */
#define BBN_MEET(j) \
    other = _mm512_maskz_loadu_epi64(k, b[j] + i); \
    t##j##0 = _mm512_add_epi64(t##j##0, _mm512_popcnt_epi64(_mm512_and_si512(a0, other))); \
    t##j##1 = _mm512_add_epi64(t##j##1, _mm512_popcnt_epi64(_mm512_and_si512(a1, other))); \
    t##j##2 = _mm512_add_epi64(t##j##2, _mm512_popcnt_epi64(_mm512_and_si512(a2, other))); \
    t##j##3 = _mm512_add_epi64(t##j##3, _mm512_popcnt_epi64(_mm512_and_si512(a3, other)));
#define BBN_MET(j) \
    out[4 * j] = _mm512_reduce_add_epi64(t##j##0); \
    out[4 * j + 1] = _mm512_reduce_add_epi64(t##j##1); \
    out[4 * j + 2] = _mm512_reduce_add_epi64(t##j##2); \
    out[4 * j + 3] = _mm512_reduce_add_epi64(t##j##3);
__attribute__((target("avx512f,avx512vpopcntdq")))
static void bbn_common_grid_avx512(const uint64_t *const *a, const uint64_t *const *b, int64_t n, int64_t *out) {
    const __m512i zero = _mm512_setzero_si512();
    __m512i t00 = zero, t01 = zero, t02 = zero, t03 = zero, t10 = zero, t11 = zero, t12 = zero, t13 = zero;
    __m512i t20 = zero, t21 = zero, t22 = zero, t23 = zero, t30 = zero, t31 = zero, t32 = zero, t33 = zero;
    for (int64_t i = 0; i < n; i += 8) {
        __mmask8 k = i + 8 <= n ? (__mmask8)255 : (__mmask8)((1u << (n - i)) - 1);
        __m512i a0 = _mm512_maskz_loadu_epi64(k, a[0] + i), a1 = _mm512_maskz_loadu_epi64(k, a[1] + i);
        __m512i a2 = _mm512_maskz_loadu_epi64(k, a[2] + i), a3 = _mm512_maskz_loadu_epi64(k, a[3] + i), other;
        BBN_MEET(0)
        BBN_MEET(1)
        BBN_MEET(2)
        BBN_MEET(3)
    }
    BBN_MET(0)
    BBN_MET(1)
    BBN_MET(2)
    BBN_MET(3)
}
#else
static int64_t bbn_meet_avx512(const uint64_t *a, const uint64_t *b, int64_t n, uint64_t *out) { return 0; }
static int64_t bbn_common_avx2(const uint64_t *a, const uint64_t *b, int64_t n) { return 0; }
static int64_t bbn_common_avx512(const uint64_t *a, const uint64_t *b, int64_t n) { return 0; }
static void bbn_common_grid_avx512(const uint64_t *const *a, const uint64_t *const *b, int64_t n, int64_t *out) {}
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

/* The bits that are set in both, and their number. */
static int64_t bbn_meet(const uint64_t *a, const uint64_t *b, int64_t n, int level, uint64_t *out) {
    if (level == 2) return bbn_meet_avx512(a, b, n, out);
    for (int64_t i = 0; i < n; i++) out[i] = a[i] & b[i];
    return bbn_common(out, out, n, level);
}

/* out[4 j + i] is the number of bits that are set in both a[i] and b[j], of four each. */
static void bbn_common_grid(const uint64_t *const *a, const uint64_t *const *b, int64_t n, int level, int64_t *out) {
    if (level == 2) bbn_common_grid_avx512(a, b, n, out);
    else for (int j = 0; j < 16; j++) out[j] = bbn_common(a[j & 3], b[j >> 2], n, level);
}

/* The bits that are set in one of n words: their numbers, from `first` on; how many there are. */
static int64_t bbn_positions(const uint64_t *words, int64_t n, int64_t first, int64_t *out) {
    int64_t count = 0, i;
    for (i = 0; i < n; i++)
        for (uint64_t word = words[i]; word; word &= word - 1) out[count++] = first + 64 * i + bbn_bits((word & -word) - 1);
    return count;
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

#endif
