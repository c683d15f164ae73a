/* Rows and planes of a product: target = left * (scale * source), or without left. */

#ifndef BBN_PRODUCTS_H
#define BBN_PRODUCTS_H

#include "vectors.h"

#if BBN_VECTORS
/* target = left * factors, or factors without left, from cell `at` on. */
#define BBN_PUT_FOUR(at)                                                       \
    do {                                                                       \
        if (left)                                                              \
            BBN_FOUR(target + (at)) = BBN_READ_FOUR(left + (at)) * factors;    \
        else                                                                   \
            BBN_FOUR(target + (at)) = factors;                                 \
    } while (0)
#endif

/* Rows of two cells, one per cell of the operand's outer axis: target = left * (scale * source). Without left it is
   ones. Two rows go together. */
BBN_INLINE void bbn_mul_twos(double *target, const double *left, const double *source, double scale, int64_t outer,
                             int64_t step_out, int64_t step_in) {
    int64_t i = 0;
#if BBN_VECTORS
    const bbn_four scales = BBN_FILL_FOUR(scale);
    if (step_out == 0) {
        const double one = source[0], two = source[step_in];
        const bbn_four factors = scales * (bbn_four){one, two, one, two};
        for (; i + 2 <= outer; i += 2)
            BBN_PUT_FOUR(2 * i);
    } else {
        for (; i + 2 <= outer; i += 2) {
            const double *one = source + i * step_out, *two = one + step_out;
            const bbn_four factors = scales * (bbn_four){one[0], one[step_in], two[0], two[step_in]};
            BBN_PUT_FOUR(2 * i);
        }
    }
#endif
    for (; i < outer; i++) {
        const double one = scale * source[i * step_out], two = scale * source[i * step_out + step_in];
        target[2 * i] = left ? left[2 * i] * one : one;
        target[2 * i + 1] = left ? left[2 * i + 1] * two : two;
    }
}

/* The same for rows of three cells; four rows go together. */
BBN_INLINE void bbn_mul_threes(double *target, const double *left, const double *source, double scale, int64_t outer,
                               int64_t step_out, int64_t step_in) {
    int64_t i = 0;
#if BBN_VECTORS
    const bbn_four scales = BBN_FILL_FOUR(scale);
    if (step_out == 0) { /* always the same twelve factors */
        const double a = source[0], b = source[step_in], c = source[2 * step_in];
        const bbn_four first = scales * (bbn_four){a, b, c, a}, second = scales * (bbn_four){b, c, a, b};
        const bbn_four third = scales * (bbn_four){c, a, b, c};
        for (; i + 4 <= outer; i += 4) {
            bbn_four factors = first;
            BBN_PUT_FOUR(3 * i);
            factors = second;
            BBN_PUT_FOUR(3 * i + 4);
            factors = third;
            BBN_PUT_FOUR(3 * i + 8);
        }
    } else if (step_in == 0) {
        for (; i + 4 <= outer; i += 4) {
            const double *p = source + i * step_out;
            const double a = p[0], b = p[step_out], c = p[2 * step_out], d = p[3 * step_out];
            bbn_four factors = scales * (bbn_four){a, a, a, b};
            BBN_PUT_FOUR(3 * i);
            factors = scales * (bbn_four){b, b, c, c};
            BBN_PUT_FOUR(3 * i + 4);
            factors = scales * (bbn_four){c, d, d, d};
            BBN_PUT_FOUR(3 * i + 8);
        }
    }
#endif
    for (; i < outer; i++) {
        const double *p = source + i * step_out;
        const double one = scale * p[0], two = scale * p[step_in], three = scale * p[2 * step_in];
        target[3 * i] = left ? left[3 * i] * one : one;
        target[3 * i + 1] = left ? left[3 * i + 1] * two : two;
        target[3 * i + 2] = left ? left[3 * i + 2] * three : three;
    }
}

#if BBN_VECTORS
/* The same for rows of four cells. */
BBN_INLINE void bbn_mul_fours(double *target, const double *left, const double *source, double scale, int64_t outer,
                              int64_t step_out, int64_t step_in) {
    const bbn_four scales = BBN_FILL_FOUR(scale);
    if (step_in == 1 && step_out == 0) {
        const bbn_four factors = scales * BBN_READ_FOUR(source);
        for (int64_t i = 0; i < outer; i++)
            BBN_PUT_FOUR(4 * i);
        return;
    }
    for (int64_t i = 0; i < outer; i++) {
        const double *p = source + i * step_out;
        const bbn_four factors = scales * (bbn_four){p[0], p[step_in], p[2 * step_in], p[3 * step_in]};
        BBN_PUT_FOUR(4 * i);
    }
}
#endif

#if BBN_VECTORS
/* The same for rows of `inner` cells, all times the same `inner` numbers: some columns at a time, so that what they are
   multiplied by stays in registers. */
BBN_INLINE void bbn_mul_columns(double *target, const double *left, const double *source, double scale, int64_t outer,
                                int64_t inner) {
    const bbn_four scales = BBN_FILL_FOUR(scale);
    int64_t i, j = 0;
    for (; j + 8 <= inner; j += 8) {
        const bbn_four one = scales * BBN_READ_FOUR(source + j), two = scales * BBN_READ_FOUR(source + j + 4);
        for (i = 0; i < outer; i++) {
            const int64_t at = i * inner + j;
            if (left) {
                const bbn_four next = BBN_READ_FOUR(left + at + 4) * two;
                BBN_FOUR(target + at) = BBN_READ_FOUR(left + at) * one;
                BBN_FOUR(target + at + 4) = next;
            } else {
                BBN_FOUR(target + at) = one;
                BBN_FOUR(target + at + 4) = two;
            }
        }
    }
    if (j + 4 < inner) { /* five to seven cells: two vectors that overlap, both read before either is written */
        const int64_t last = inner - 4;
        const bbn_four one = scales * BBN_READ_FOUR(source + j), two = scales * BBN_READ_FOUR(source + last);
        for (i = 0; i < outer; i++) {
            const int64_t at = i * inner;
            if (left) {
                const bbn_four next = BBN_READ_FOUR(left + at + last) * two;
                BBN_FOUR(target + at + j) = BBN_READ_FOUR(left + at + j) * one;
                BBN_FOUR(target + at + last) = next;
            } else {
                BBN_FOUR(target + at + j) = one;
                BBN_FOUR(target + at + last) = two;
            }
        }
    } else if (j + 4 == inner) {
        const bbn_four factors = scales * BBN_READ_FOUR(source + j);
        for (i = 0; i < outer; i++) BBN_PUT_FOUR(i * inner + j);
    } else if (j < inner && inner >= 4) { /* up to three: a vector over what is done already, of that times one */
        const int64_t last = inner - 4;
        bbn_four factors = scales * BBN_READ_FOUR(source + last);
        if (left == target)
            for (i = 0; i < j - last; i++) factors[i] = 1.0;
        for (i = 0; i < outer; i++) BBN_PUT_FOUR(i * inner + last);
    } else {
        for (; j < inner; j++) {
            const double factor = scale * source[j];
            for (i = 0; i < outer; i++) target[i * inner + j] = left ? left[i * inner + j] * factor : factor;
        }
    }
}
#endif

/* The same for rows of `inner` cells. */
BBN_INLINE void bbn_mul_plane(double *target, const double *left, const double *source, double scale, int64_t outer,
                              int64_t inner, int64_t step_out, int64_t step_in) {
#if BBN_VECTORS
    if (step_in == 1 && step_out == 0 && outer > 1) {
        if (left)
            bbn_mul_columns(target, left, source, scale, outer, inner);
        else
            bbn_mul_columns(target, 0, source, scale, outer, inner);
        return;
    }
#endif
#if BBN_VECTORS
    /* The last vector of a row overlaps the one before it: it is read before that is written. */
    const int64_t last = inner > 4 && inner % 4 ? inner - 4 : -1;
#endif
    for (int64_t i = 0; i < outer; i++) {
        const double *other = source + i * step_out;
        int64_t j = 0;
        if (step_in == 0) {
            const double factor = scale * other[0];
#if BBN_VECTORS
            const bbn_four factors = BBN_FILL_FOUR(factor);
            if (last >= 0) {
                bbn_four rest = factors;
                if (left) rest *= BBN_READ_FOUR(left + last);
                for (; j + 4 <= inner; j += 4) BBN_PUT_FOUR(j);
                BBN_FOUR(target + last) = rest;
                j = inner;
            } else if (left) {
                for (; j + 4 <= inner; j += 4) BBN_FOUR(target + j) = BBN_READ_FOUR(left + j) * factors;
            } else {
                for (; j + 4 <= inner; j += 4) BBN_FOUR(target + j) = factors;
            }
#endif
            for (; j < inner; j++) target[j] = left ? left[j] * factor : factor;
        } else if (step_in == 1) {
#if BBN_VECTORS
            const bbn_four scales = BBN_FILL_FOUR(scale);
            if (left) {
                bbn_four rest = scales;
                if (last >= 0) rest = BBN_READ_FOUR(left + last) * (scales * BBN_READ_FOUR(other + last));
                for (; j + 4 <= inner; j += 4)
                    BBN_FOUR(target + j) = BBN_READ_FOUR(left + j) * (scales * BBN_READ_FOUR(other + j));
                if (last >= 0) BBN_FOUR(target + last) = rest, j = inner;
            } else {
                for (; j + 4 <= inner; j += 4) BBN_FOUR(target + j) = scales * BBN_READ_FOUR(other + j);
                if (last >= 0) BBN_FOUR(target + last) = scales * BBN_READ_FOUR(other + last), j = inner;
            }
#endif
            for (; j < inner; j++) target[j] = left ? left[j] * (scale * other[j]) : scale * other[j];
        } else {
            for (; j < inner; j++) target[j] = left ? left[j] * (scale * other[j * step_in]) : scale * other[j * step_in];
        }
        target += inner;
        if (left) left += inner;
    }
}

#endif
