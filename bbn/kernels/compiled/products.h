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

/* The same for rows of three cells, one at a time. */
BBN_INLINE void bbn_mul_threes(double *target, const double *left, const double *source, double scale, int64_t outer,
                               int64_t step_out, int64_t step_in) {
    for (int64_t i = 0; i < outer; i++) {
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
    for (; j + 4 <= inner; j += 4) {
        const bbn_four factors = scales * BBN_READ_FOUR(source + j);
        for (i = 0; i < outer; i++) BBN_PUT_FOUR(i * inner + j);
    }
    for (; j < inner; j++) {
        const double factor = scale * source[j];
        for (i = 0; i < outer; i++) target[i * inner + j] = left ? left[i * inner + j] * factor : factor;
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
    for (int64_t i = 0; i < outer; i++) {
        const double *other = source + i * step_out;
        int64_t j = 0;
        if (step_in == 0) {
            const double factor = scale * other[0];
#if BBN_VECTORS
            const bbn_four factors = BBN_FILL_FOUR(factor);
            if (left) {
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
                for (; j + 4 <= inner; j += 4)
                    BBN_FOUR(target + j) = BBN_READ_FOUR(left + j) * (scales * BBN_READ_FOUR(other + j));
            } else {
                for (; j + 4 <= inner; j += 4) BBN_FOUR(target + j) = scales * BBN_READ_FOUR(other + j);
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
