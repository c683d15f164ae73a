/* One step of a sweep: a slab of cells in C order against an operand that moves by strides.

   Four neighbouring cells go together wherever the innermost stride is 0 or 1. On x86 Linux each function is compiled
   for AVX2 as well, and the loader takes the one that the processor has; both add in the same order, so answers do not
   depend on it. */

#ifndef BBN_WALK_H
#define BBN_WALK_H

#include <math.h>
#include <stdint.h>

#include "range.h"
#include "tape.h"

#if defined(__GNUC__)
typedef double bbn_four __attribute__((vector_size(32), aligned(8), may_alias));
#define BBN_FOUR(p) (*(bbn_four *)(p))
#define BBN_READ_FOUR(p) (*(const bbn_four *)(p))
#define BBN_FILL_FOUR(x) ((bbn_four){(x), (x), (x), (x)})
#define BBN_INLINE static inline __attribute__((always_inline))
#define BBN_VECTORS 1
#else
#define BBN_INLINE static inline
#define BBN_VECTORS 0
#endif

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__)
#define BBN_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define BBN_CLONES
#endif

/* Old is the message itself or apart from it, never shifted against it, so lanes do not mix. */
#if defined(__clang__)
#define BBN_LANES _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define BBN_LANES _Pragma("GCC ivdep")
#else
#define BBN_LANES
#endif

/* Rows of `inner` cells, one per cell of the operand's outer axis: target = left * (scale * source). Without left it
   is ones. */
BBN_INLINE void bbn_mul_plane(double *target, const double *left, const double *source, double scale, int64_t outer,
                              int64_t inner, int64_t step_out, int64_t step_in) {
    if (inner == 2 && left) { /* short runs are spelled out */
        for (int64_t i = 0; i < outer; i++) {
            const double *other = source + i * step_out;
            target[2 * i] = left[2 * i] * (scale * other[0]);
            target[2 * i + 1] = left[2 * i + 1] * (scale * other[step_in]);
        }
        return;
    }
    if (inner == 3 && left) {
        for (int64_t i = 0; i < outer; i++) {
            const double *other = source + i * step_out;
            target[3 * i] = left[3 * i] * (scale * other[0]);
            target[3 * i + 1] = left[3 * i + 1] * (scale * other[step_in]);
            target[3 * i + 2] = left[3 * i + 2] * (scale * other[2 * step_in]);
        }
        return;
    }
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

/* The sum of a row, four running sums at a time. */
BBN_INLINE double bbn_sum_row(const double *cells, int64_t n) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int64_t j = 0;
#if BBN_VECTORS
    bbn_four sums = BBN_FILL_FOUR(0.0);
    for (; j + 4 <= n; j += 4) sums += BBN_READ_FOUR(cells + j);
    a = sums[0], b = sums[1], c = sums[2], d = sums[3];
#else
    for (; j + 4 <= n; j += 4) a += cells[j], b += cells[j + 1], c += cells[j + 2], d += cells[j + 3];
#endif
    for (; j < n; j++) a += cells[j];
    return (a + b) + (c + d);
}

/* target += cells, rows of `inner` cells. */
BBN_INLINE void bbn_add_plane(double *target, const double *cells, int64_t outer, int64_t inner, int64_t step_out,
                              int64_t step_in) {
    int64_t i, j = 0;
    if (step_in == 0) {
        if (inner == 2) {
            for (i = 0; i < outer; i++) target[i * step_out] += cells[2 * i] + cells[2 * i + 1];
        } else if (inner == 3) {
            for (i = 0; i < outer; i++) target[i * step_out] += cells[3 * i] + cells[3 * i + 1] + cells[3 * i + 2];
        } else {
            for (i = 0; i < outer; i++) target[i * step_out] += bbn_sum_row(cells + i * inner, inner);
        }
    } else if (step_in == 1 && step_out == 0) { /* column sums, kept in registers */
#if BBN_VECTORS
        for (; j + 8 <= inner; j += 8) {
            bbn_four one = BBN_READ_FOUR(target + j), two = BBN_READ_FOUR(target + j + 4);
            for (i = 0; i < outer; i++) {
                one += BBN_READ_FOUR(cells + i * inner + j);
                two += BBN_READ_FOUR(cells + i * inner + j + 4);
            }
            BBN_FOUR(target + j) = one;
            BBN_FOUR(target + j + 4) = two;
        }
#endif
        for (; j < inner; j++) {
            double sum = target[j];
            for (i = 0; i < outer; i++) sum += cells[i * inner + j];
            target[j] = sum;
        }
    } else if (step_in == 1) {
        for (i = 0; i < outer; i++) {
            double *row = target + i * step_out;
            j = 0;
#if BBN_VECTORS
            for (; j + 4 <= inner; j += 4) BBN_FOUR(row + j) = BBN_READ_FOUR(row + j) + BBN_READ_FOUR(cells + j);
#endif
            for (; j < inner; j++) row[j] += cells[j];
            cells += inner;
        }
    } else {
        for (i = 0; i < outer; i++) {
            for (j = 0; j < inner; j++) target[i * step_out + j * step_in] += cells[j];
            cells += inner;
        }
    }
}

BBN_INLINE void bbn_max_plane(double *target, const double *cells, int64_t outer, int64_t inner, int64_t step_out,
                              int64_t step_in) {
    for (int64_t i = 0; i < outer; i++) {
        double *row = target + i * step_out;
        for (int64_t j = 0; j < inner; j++)
            if (cells[j] > row[j * step_in]) row[j * step_in] = cells[j];
        cells += inner;
    }
}

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
    const int64_t plane = dims[outer] * dims[outer + 1];
    BBN_WALK(bbn_mul_plane(target, left, source + at, scale, dims[outer], dims[outer + 1], steps[outer], steps[outer + 1]),
             (target += plane, left = left ? left + plane : left));
}

BBN_CLONES static void bbn_accumulate(double *target, const double *cells, int64_t depth, const int64_t *dims,
                                      const int64_t *steps) {
    const int64_t outer = depth - 2;
    if (depth == 1) {
        bbn_add_plane(target, cells, 1, dims[0], 0, steps[0]);
        return;
    }
    const int64_t plane = dims[outer] * dims[outer + 1];
    BBN_WALK(bbn_add_plane(target + at, cells, dims[outer], dims[outer + 1], steps[outer], steps[outer + 1]),
             cells += plane);
}

static void bbn_maximise(double *target, const double *cells, int64_t depth, const int64_t *dims,
                         const int64_t *steps) {
    const int64_t outer = depth - 2;
    if (depth == 1) {
        bbn_max_plane(target, cells, 1, dims[0], 0, steps[0]);
        return;
    }
    const int64_t plane = dims[outer] * dims[outer + 1];
    BBN_WALK(bbn_max_plane(target + at, cells, dims[outer], dims[outer + 1], steps[outer], steps[outer + 1]),
             cells += plane);
}

/* target = left * factor. */
BBN_CLONES static void bbn_scale(double *target, const double *left, double factor, int64_t n) {
    bbn_mul_plane(target, left, &factor, 1.0, 1, n, 0, 0);
}

/* Divide by the sum, or by the largest cell, unless that is zero; give it back. */
BBN_CLONES static double bbn_normalise(double *cells, int64_t n, int maximise) {
    double total;
    if (maximise) {
        total = cells[0];
        for (int64_t i = 1; i < n; i++)
            if (cells[i] > total) total = cells[i];
    } else {
        total = bbn_sum_row(cells, n);
    }
    if (total > 0.0)
        for (int64_t i = 0; i < n; i++) cells[i] = cells[i] / total;
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
