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
#define BBN_CLONED 1
#else
#define BBN_CLONES
#define BBN_CLONED 0
#endif

/* Old is the message itself or apart from it, never shifted against it, so lanes do not mix. */
#if defined(__clang__)
#define BBN_LANES _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define BBN_LANES _Pragma("GCC ivdep")
#else
#define BBN_LANES
#endif

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

#if BBN_VECTORS
/* target += cells, rows of two cells. */
BBN_INLINE void bbn_add_twos(double *target, const double *cells, int64_t outer, int64_t step_out, int64_t step_in) {
    int64_t i = 0;
    if (step_in == 0 && step_out == 1) { /* the sums of four rows go together */
        for (; i + 4 <= outer; i += 4) {
            const bbn_four a = BBN_READ_FOUR(cells + 2 * i), b = BBN_READ_FOUR(cells + 2 * i + 4);
            BBN_FOUR(target + i) =
                BBN_READ_FOUR(target + i) + ((bbn_four){a[0], a[2], b[0], b[2]} + (bbn_four){a[1], a[3], b[1], b[3]});
        }
    } else if (step_in == 1 && step_out == 0) { /* even and odd rows apart */
        bbn_four sums = BBN_FILL_FOUR(0.0);
        for (; i + 2 <= outer; i += 2) sums += BBN_READ_FOUR(cells + 2 * i);
        target[0] += sums[0] + sums[2];
        target[1] += sums[1] + sums[3];
    }
    for (; i < outer; i++) {
        if (step_in == 0) {
            target[i * step_out] += cells[2 * i] + cells[2 * i + 1];
        } else {
            target[i * step_out] += cells[2 * i];
            target[i * step_out + step_in] += cells[2 * i + 1];
        }
    }
}

/* The same for rows of four cells. */
BBN_INLINE void bbn_add_fours(double *target, const double *cells, int64_t outer, int64_t step_out, int64_t step_in) {
    int64_t i = 0;
    if (step_in == 1 && step_out == 0) {
        bbn_four sums = BBN_READ_FOUR(target);
        for (; i < outer; i++) sums += BBN_READ_FOUR(cells + 4 * i);
        BBN_FOUR(target) = sums;
    } else if (step_in == 0 && step_out == 1) { /* the sums of four rows go together */
        for (; i + 4 <= outer; i += 4) {
            const bbn_four a = BBN_READ_FOUR(cells + 4 * i), b = BBN_READ_FOUR(cells + 4 * i + 4);
            const bbn_four c = BBN_READ_FOUR(cells + 4 * i + 8), d = BBN_READ_FOUR(cells + 4 * i + 12);
            const bbn_four ab = (bbn_four){a[0], b[0], a[2], b[2]} + (bbn_four){a[1], b[1], a[3], b[3]};
            const bbn_four cd = (bbn_four){c[0], d[0], c[2], d[2]} + (bbn_four){c[1], d[1], c[3], d[3]};
            BBN_FOUR(target + i) = BBN_READ_FOUR(target + i) + ((bbn_four){ab[0], ab[1], cd[0], cd[1]} +
                                                                (bbn_four){ab[2], ab[3], cd[2], cd[3]});
        }
    }
    for (; i < outer; i++) {
        const double *p = cells + 4 * i;
        double *q = target + i * step_out;
        if (step_in == 0) {
            q[0] += (p[0] + p[1]) + (p[2] + p[3]);
        } else if (step_in == 1) {
            BBN_FOUR(q) = BBN_READ_FOUR(q) + BBN_READ_FOUR(p);
        } else {
            for (int64_t j = 0; j < 4; j++) q[j * step_in] += p[j];
        }
    }
}
#endif

/* The same for rows of `inner` cells. */
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
#if BBN_VECTORS
        for (; j + 4 <= inner; j += 4) {
            bbn_four sums = BBN_READ_FOUR(target + j);
            for (i = 0; i < outer; i++) sums += BBN_READ_FOUR(cells + i * inner + j);
            BBN_FOUR(target + j) = sums;
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

BBN_INLINE double bbn_larger_of(double a, double b) { return a > b ? a : b; }

#if BBN_VECTORS
typedef int64_t bbn_four_flags __attribute__((vector_size(32)));

/* The larger of each pair: by a mask where the processor's own vectors are as wide, otherwise one by one. */
BBN_INLINE bbn_four bbn_larger(bbn_four a, bbn_four b) {
#if BBN_CLONED || defined(__clang__)
    const bbn_four_flags first = a > b;
    return (bbn_four)(((bbn_four_flags)a & first) | ((bbn_four_flags)b & ~first));
#else
    return (bbn_four){bbn_larger_of(a[0], b[0]), bbn_larger_of(a[1], b[1]), bbn_larger_of(a[2], b[2]),
                      bbn_larger_of(a[3], b[3])};
#endif
}

/* The larger of target and cells, rows of two cells. */
BBN_INLINE void bbn_max_twos(double *target, const double *cells, int64_t outer, int64_t step_out, int64_t step_in) {
    int64_t i = 0;
    if (step_in == 0 && step_out == 1) { /* four rows go together */
        for (; i + 4 <= outer; i += 4) {
            const bbn_four a = BBN_READ_FOUR(cells + 2 * i), b = BBN_READ_FOUR(cells + 2 * i + 4);
            const bbn_four all = bbn_larger((bbn_four){a[0], a[2], b[0], b[2]}, (bbn_four){a[1], a[3], b[1], b[3]});
            BBN_FOUR(target + i) = bbn_larger(all, BBN_READ_FOUR(target + i));
        }
    } else if (step_in == 1 && step_out == 0) { /* even and odd rows apart */
        bbn_four all = {target[0], target[1], target[0], target[1]};
        for (; i + 2 <= outer; i += 2) all = bbn_larger(BBN_READ_FOUR(cells + 2 * i), all);
        target[0] = bbn_larger_of(all[0], all[2]);
        target[1] = bbn_larger_of(all[1], all[3]);
    }
    for (; i < outer; i++) {
        double *q = target + i * step_out;
        q[0] = bbn_larger_of(cells[2 * i], q[0]);
        q[step_in] = bbn_larger_of(cells[2 * i + 1], q[step_in]);
    }
}

/* The same for rows of four cells. */
BBN_INLINE void bbn_max_fours(double *target, const double *cells, int64_t outer, int64_t step_out, int64_t step_in) {
    int64_t i = 0;
    if (step_in == 1 && step_out == 0) {
        bbn_four all = BBN_READ_FOUR(target);
        for (; i < outer; i++) all = bbn_larger(BBN_READ_FOUR(cells + 4 * i), all);
        BBN_FOUR(target) = all;
    } else if (step_in == 0 && step_out == 1) { /* four rows go together */
        for (; i + 4 <= outer; i += 4) {
            const bbn_four a = BBN_READ_FOUR(cells + 4 * i), b = BBN_READ_FOUR(cells + 4 * i + 4);
            const bbn_four c = BBN_READ_FOUR(cells + 4 * i + 8), d = BBN_READ_FOUR(cells + 4 * i + 12);
            const bbn_four ab = bbn_larger((bbn_four){a[0], b[0], a[2], b[2]}, (bbn_four){a[1], b[1], a[3], b[3]});
            const bbn_four cd = bbn_larger((bbn_four){c[0], d[0], c[2], d[2]}, (bbn_four){c[1], d[1], c[3], d[3]});
            const bbn_four all =
                bbn_larger((bbn_four){ab[0], ab[1], cd[0], cd[1]}, (bbn_four){ab[2], ab[3], cd[2], cd[3]});
            BBN_FOUR(target + i) = bbn_larger(all, BBN_READ_FOUR(target + i));
        }
    }
    for (; i < outer; i++) {
        const double *p = cells + 4 * i;
        double *q = target + i * step_out;
        if (step_in == 1)
            BBN_FOUR(q) = bbn_larger(BBN_READ_FOUR(p), BBN_READ_FOUR(q));
        else
            for (int64_t j = 0; j < 4; j++) q[j * step_in] = bbn_larger_of(p[j], q[j * step_in]);
    }
}
#endif

/* The largest of a row and `all`, four at a time. */
BBN_INLINE double bbn_max_row(const double *cells, int64_t n, double all) {
    int64_t j = 0;
#if BBN_VECTORS
    if (n >= 8) {
        bbn_four fours = BBN_READ_FOUR(cells);
        for (j = 4; j + 4 <= n; j += 4) fours = bbn_larger(BBN_READ_FOUR(cells + j), fours);
        all = bbn_larger_of(bbn_larger_of(bbn_larger_of(fours[0], fours[1]), bbn_larger_of(fours[2], fours[3])), all);
    }
#endif
    for (; j < n; j++) all = bbn_larger_of(cells[j], all);
    return all;
}

/* The same for rows of `inner` cells. */
BBN_INLINE void bbn_max_plane(double *target, const double *cells, int64_t outer, int64_t inner, int64_t step_out,
                              int64_t step_in) {
    int64_t i, j = 0;
    if (step_in == 0) {
        for (i = 0; i < outer; i++) target[i * step_out] = bbn_max_row(cells + i * inner, inner, target[i * step_out]);
    } else if (step_in == 1 && step_out == 0) { /* the largest of each column, kept in registers */
#if BBN_VECTORS
        for (; j + 8 <= inner; j += 8) {
            bbn_four one = BBN_READ_FOUR(target + j), two = BBN_READ_FOUR(target + j + 4);
            for (i = 0; i < outer; i++) {
                one = bbn_larger(BBN_READ_FOUR(cells + i * inner + j), one);
                two = bbn_larger(BBN_READ_FOUR(cells + i * inner + j + 4), two);
            }
            BBN_FOUR(target + j) = one;
            BBN_FOUR(target + j + 4) = two;
        }
        for (; j + 4 <= inner; j += 4) {
            bbn_four all = BBN_READ_FOUR(target + j);
            for (i = 0; i < outer; i++) all = bbn_larger(BBN_READ_FOUR(cells + i * inner + j), all);
            BBN_FOUR(target + j) = all;
        }
#endif
        for (; j < inner; j++) {
            double all = target[j];
            for (i = 0; i < outer; i++) all = bbn_larger_of(cells[i * inner + j], all);
            target[j] = all;
        }
    } else {
        for (i = 0; i < outer; i++) {
            double *row = target + i * step_out;
            j = 0;
#if BBN_VECTORS
            for (; step_in == 1 && j + 4 <= inner; j += 4)
                BBN_FOUR(row + j) = bbn_larger(BBN_READ_FOUR(cells + j), BBN_READ_FOUR(row + j));
#endif
            for (; j < inner; j++) row[j * step_in] = bbn_larger_of(cells[j], row[j * step_in]);
            cells += inner;
        }
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
