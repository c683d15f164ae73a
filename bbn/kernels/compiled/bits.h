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

#endif
