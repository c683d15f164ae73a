/* One step of a sweep: a slab of cells in C order against an operand that moves by strides.

   Four neighbouring cells go together wherever the innermost stride is 0 or 1. On x86 Linux each function is compiled
   for AVX2 as well, and the loader takes the one that the processor has; both add in the same order, so answers do not
   depend on it. */

#ifndef BBN_WALK_H
#define BBN_WALK_H

#include <math.h>
#include <stdint.h>

#include "products.h"
#include "range.h"
#include "sums.h"
#include "tape.h"

/* Go through the axes but the last two as an odometer does. */
#define BBN_WALK(plane_of_cells, advance)                                      \
    do {                                                                       \
        int64_t counter[DEEPEST], at = 0, k;                               \
        for (k = 0; k < outer; k++) counter[k] = 0;                            \
        for (;;) {                                                             \
            plane_of_cells;                                                    \
            advance;                                                           \
            for (k = outer - 1; k >= 0; k--) {                                 \
                at += steps[k];                                                \
                if (++counter[k] < dims[k]) break;                             \
                at -= dims[k] * steps[k];                                      \
                counter[k] = 0;                                                \
            }                                                                  \
            if (k < 0) return;                                                 \
        }                                                                      \
    } while (0)

BBN_CLONES static void bbn_multiply(double *target, const double *left, const double *source, double scale,
                                    int64_t depth, const int64_t *dims, const int64_t *steps) {
    const int64_t outer = depth - 2;
    if (depth == 1) {
        bbn_mul_plane(target, left, source, scale, 1, dims[0], 0, steps[0]);
        return;
    }
    const int64_t rows = dims[outer], inner = dims[outer + 1], plane = rows * inner;
    const int64_t step_out = steps[outer], step_in = steps[outer + 1];
    if (inner == 2)
        BBN_WALK(bbn_mul_twos(target, left, source + at, scale, rows, step_out, step_in),
                 (target += plane, left = left ? left + plane : left));
    if (inner == 3)
        BBN_WALK(bbn_mul_threes(target, left, source + at, scale, rows, step_out, step_in),
                 (target += plane, left = left ? left + plane : left));
#if BBN_VECTORS
    if (inner == 4)
        BBN_WALK(bbn_mul_fours(target, left, source + at, scale, rows, step_out, step_in),
                 (target += plane, left = left ? left + plane : left));
    if (inner == 8)
        BBN_WALK(bbn_mul_plane(target, left, source + at, scale, rows, 8, step_out, step_in),
                 (target += plane, left = left ? left + plane : left));
#endif
    BBN_WALK(bbn_mul_plane(target, left, source + at, scale, rows, inner, step_out, step_in),
             (target += plane, left = left ? left + plane : left));
}

BBN_CLONES static void bbn_accumulate(double *target, const double *cells, int64_t depth, const int64_t *dims,
                                      const int64_t *steps) {
    const int64_t outer = depth - 2;
    if (depth == 1) {
        bbn_add_plane(target, cells, 1, dims[0], 0, steps[0]);
        return;
    }
    const int64_t rows = dims[outer], inner = dims[outer + 1], plane = rows * inner;
    const int64_t step_out = steps[outer], step_in = steps[outer + 1];
#if BBN_VECTORS
    if (inner == 2) BBN_WALK(bbn_add_twos(target + at, cells, rows, step_out, step_in), cells += plane);
    if (inner == 3) BBN_WALK(bbn_add_threes(target + at, cells, rows, step_out, step_in), cells += plane);
    if (inner == 4) BBN_WALK(bbn_add_fours(target + at, cells, rows, step_out, step_in), cells += plane);
    if (inner == 8) BBN_WALK(bbn_add_plane(target + at, cells, rows, 8, step_out, step_in), cells += plane);
#endif
    BBN_WALK(bbn_add_plane(target + at, cells, rows, inner, step_out, step_in), cells += plane);
}

BBN_CLONES static void bbn_maximise(double *target, const double *cells, int64_t depth, const int64_t *dims,
                                    const int64_t *steps) {
    const int64_t outer = depth - 2;
    if (depth == 1) {
        bbn_max_plane(target, cells, 1, dims[0], 0, steps[0]);
        return;
    }
    const int64_t rows = dims[outer], inner = dims[outer + 1], plane = rows * inner;
    const int64_t step_out = steps[outer], step_in = steps[outer + 1];
#if BBN_VECTORS
    if (inner == 2) BBN_WALK(bbn_max_twos(target + at, cells, rows, step_out, step_in), cells += plane);
    if (inner == 4) BBN_WALK(bbn_max_fours(target + at, cells, rows, step_out, step_in), cells += plane);
#endif
    BBN_WALK(bbn_max_plane(target + at, cells, rows, inner, step_out, step_in), cells += plane);
}

BBN_CLONES static double bbn_largest(const double *cells, int64_t n) { return bbn_max_row(cells, n, cells[0]); }

/* target = left * factor. */
BBN_CLONES static void bbn_scale(double *target, const double *left, double factor, int64_t n) {
    bbn_mul_plane(target, left, &factor, 1.0, 1, n, 0, 0);
}

/* Divide by the sum, or by the largest cell, unless that is zero; give it back. */
BBN_CLONES static double bbn_normalise(double *cells, int64_t n, int maximise) {
    double total;
    if (maximise) {
        total = bbn_max_row(cells, n, cells[0]);
    } else {
        total = bbn_sum_row(cells, n);
    }
    if (total > 0.0) {
        int64_t i = 0;
#if BBN_VECTORS
        const bbn_four totals = BBN_FILL_FOUR(total);
        for (; i + 4 <= n; i += 4) BBN_FOUR(cells + i) = BBN_READ_FOUR(cells + i) / totals;
#endif
        for (; i < n; i++) cells[i] = cells[i] / total;
    }
    return total;
}

/* The message becomes the fresh marginal, and that becomes fresh over old, 0 where old is 0. Scales grow from clique to
   clique on the way down, so the marginal is tamed first. */
BBN_CLONES static void bbn_ratio(double *fresh, double *message, const double *old, int64_t n) {
    const double factor = bbn_taming(bbn_sum_row(fresh, n));
    if (factor != 1.0)
        for (int64_t i = 0; i < n; i++) fresh[i] *= factor;
    BBN_LANES
    for (int64_t i = 0; i < n; i++) {
        const double now = fresh[i], before = old[i] > 0.0 ? old[i] : INFINITY;
        message[i] = now;
        fresh[i] = now / before;
    }
}

#endif
