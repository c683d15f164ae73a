// Wide numbers: a double with an exponent of its own, for potentials that leave the range of a double.
//
// A wide number is m · 2^(512 e). It is zero (m = e = 0), or m lies in [2^-256, 2^256). Then a product or quotient of
// two of them is a double again and needs one correction at most, a larger e means a larger number, and a sum of two
// whose e differ by two or more is the larger one. Precision is that of a double; the range has no end in practice.

#ifndef BBN_WIDE_H
#define BBN_WIDE_H

#include <cmath>
#include <cstdint>

struct Wide {
    double m;
    int64_t e;

    static constexpr double UP = 0x1p512, DOWN = 0x1p-512, LEAST = 0x1p-256, MOST = 0x1p256;

    Wide() : m(0.0), e(0) {}
    Wide(double value) : m(value), e(0) {
        if (m == 0.0) return;
        while (m < LEAST) m *= UP, e--;
        while (m >= MOST) m *= DOWN, e++;
    }
    Wide(double mantissa, int64_t exponent) : m(mantissa), e(exponent) {
        if (m == 0.0) e = 0;
        else if (m < LEAST) m *= UP, e--;
        else if (m >= MOST) m *= DOWN, e++;
    }

    Wide operator*(const Wide &other) const { return Wide(m * other.m, e + other.e); }
    Wide operator/(const Wide &other) const { return Wide(m / other.m, e - other.e); }
    Wide operator+(const Wide &other) const {
        if (m == 0.0) return other;
        if (other.m == 0.0) return *this;
        const int64_t above = e - other.e;
        if (above == 0) return Wide(m + other.m, e);
        if (above == 1) return Wide(m + other.m * DOWN, e);
        if (above == -1) return Wide(m * DOWN + other.m, other.e);
        return above > 0 ? *this : other;
    }
    Wide &operator*=(const Wide &other) { return *this = *this * other; }
    Wide &operator+=(const Wide &other) { return *this = *this + other; }
    bool operator<(const Wide &other) const {
        if (m == 0.0 || other.m == 0.0) return m < other.m;
        return e != other.e ? e < other.e : m < other.m;
    }
};

static inline bool positive(double value) { return value > 0.0; }
static inline bool positive(const Wide &value) { return value.m > 0.0; }

/* The natural logarithm. */
static inline double log_of(double value) { return std::log(value); }
static inline double log_of(const Wide &value) {
    return std::log(value.m) + 512.0 * 0.693147180559945309417232121458 * (double) value.e;
}

/* The nearest double: 0 below the range of one, the largest above it. */
static inline double narrow(double value) { return value; }
static inline double narrow(const Wide &value) {
    if (value.m == 0.0 || value.e < -3) return 0.0;
    if (value.e > 2) return 1.7976931348623157e308;
    double out = value.m;
    for (int64_t e = value.e; e < 0; e++) out *= Wide::DOWN;
    for (int64_t e = value.e; e > 0; e--) out *= Wide::UP;
    return out < 1.7976931348623157e308 ? out : 1.7976931348623157e308;
}

#endif
