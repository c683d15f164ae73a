// Long numbers: two doubles that add up to 106 bits, with an exponent of their own.
//
// Sums over DAGs alternate in sign, and what is left may be 1e-18 of what was added; the weights of structures span
// thousands of orders of magnitude. A long number is (hi + lo) · 2^e with hi the nearest double to hi + lo. Sums and
// products follow Dekker (1971); hi is brought back to about 1 where it has drifted.

#ifndef BBN_LONG_NUMBER_H
#define BBN_LONG_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    double hi, lo;
    int64_t e;
} bbn_long;

static inline double bbn_power(int64_t e) { /* 2^e for -1022 <= e <= 1023 */
    uint64_t bits = (uint64_t) (e + 1023) << 52;
    double result;
    memcpy(&result, &bits, sizeof(result));
    return result;
}

static inline bbn_long bbn_tamed(bbn_long x) {
    const double size = fabs(x.hi);
    if (size == 0.0) {
        x.lo = 0.0;
        x.e = 0;
    } else if (size > 0x1p100 || size < 0x1p-100) {
        int shift;
        frexp(size, &shift);
        x.hi = ldexp(x.hi, -shift);
        x.lo = ldexp(x.lo, -shift);
        x.e += shift;
    }
    return x;
}

static inline bbn_long bbn_of_log(double logarithm) { /* e^logarithm, 0 for -inf */
    bbn_long x = {0.0, 0.0, 0};
    if (logarithm > -INFINITY) {
        x.e = (int64_t) floor(logarithm / 0.693147180559945309417232121458);
        x.hi = exp(fma((double) -x.e, 0.693147180559945309417232121458, logarithm));
    }
    return x;
}

static inline double bbn_log_of(bbn_long x) {
    return x.hi > 0.0 ? log(x.hi) + 0.693147180559945309417232121458 * (double) x.e : -INFINITY;
}

static inline bbn_long bbn_sum(bbn_long a, bbn_long b) {
    if (b.hi == 0.0) return a;
    if (a.hi == 0.0) return b;
    if (a.e < b.e) {
        const bbn_long other = a;
        a = b;
        b = other;
    }
    const int64_t above = a.e - b.e;
    if (above > 400) return a; /* hi lies in [2^-100, 2^100]: nothing of b is left in 106 bits */
    const double scale = bbn_power(-above);
    const double x = b.hi * scale, y = b.lo * scale;
    const double s = a.hi + x, t = s - a.hi;
    const double rest = (a.hi - (s - t)) + (x - t) + (a.lo + y);
    a.hi = s + rest;
    a.lo = rest - (a.hi - s);
    return bbn_tamed(a);
}

static inline bbn_long bbn_negative(bbn_long x) {
    x.hi = -x.hi;
    x.lo = -x.lo;
    return x;
}

static inline bbn_long bbn_product(bbn_long a, bbn_long b) {
    const double split = 134217729.0; /* 2^27 + 1 */
    const double p = a.hi * b.hi;
    const double ta = split * a.hi, ah = ta - (ta - a.hi), al = a.hi - ah;
    const double tb = split * b.hi, bh = tb - (tb - b.hi), bl = b.hi - bh;
    const double rest = ((ah * bh - p) + ah * bl + al * bh) + al * bl + (a.hi * b.lo + a.lo * b.hi);
    bbn_long result;
    result.hi = p + rest;
    result.lo = rest - (result.hi - p);
    result.e = a.e + b.e;
    return bbn_tamed(result);
}

static inline bbn_long bbn_quotient(bbn_long a, bbn_long b) {
    bbn_long result = {a.hi / b.hi, 0.0, a.e - b.e};
    const bbn_long rest = bbn_sum(a, bbn_negative(bbn_product(result, b)));
    if (rest.hi == 0.0) return bbn_tamed(result);
    const bbn_long correction = {rest.hi / b.hi, 0.0, rest.e - b.e};
    return bbn_sum(result, correction);
}

static inline double bbn_ratio(bbn_long a, bbn_long b) { /* a / b as a double, for a and b of like size or a the smaller */
    if (a.hi == 0.0) return 0.0;
    const int64_t above = a.e - b.e;
    if (above < -1000) return 0.0;
    return a.hi / b.hi * ldexp(1.0, above > 1000 ? 1000 : (int) above);
}

#endif
