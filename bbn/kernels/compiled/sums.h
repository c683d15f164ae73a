/* Rows and planes of a sum, and of a maximum, over what an operand does not tell apart. */

#ifndef BBN_SUMS_H
#define BBN_SUMS_H

#include "vectors.h"

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

#if BBN_VECTORS
/* Those of four that are among the last `rest`; the others become zero. */
BBN_INLINE bbn_four bbn_last_of(bbn_four cells, int64_t rest) {
    const bbn_four_flags far = {rest > 3, rest > 2, rest > 1, rest > 0};
    return (bbn_four)((bbn_four_flags)cells & -far);
}

/* The sums of vectors. */
BBN_INLINE bbn_four bbn_sum_each(bbn_four a, bbn_four b, bbn_four c, bbn_four d) {
    const bbn_four ab = (bbn_four){a[0], b[0], a[2], b[2]} + (bbn_four){a[1], b[1], a[3], b[3]};
    const bbn_four cd = (bbn_four){c[0], d[0], c[2], d[2]} + (bbn_four){c[1], d[1], c[3], d[3]};
    return (bbn_four){ab[0], ab[1], cd[0], cd[1]} + (bbn_four){ab[2], ab[3], cd[2], cd[3]};
}

/* The sums of four rows of at least four cells. */
BBN_INLINE bbn_four bbn_sum_rows(const double *one, int64_t inner) {
    const double *two = one + inner, *three = two + inner, *four = three + inner;
    bbn_four a = BBN_READ_FOUR(one), b = BBN_READ_FOUR(two), c = BBN_READ_FOUR(three), d = BBN_READ_FOUR(four);
    int64_t j = 4;
    for (; j + 4 <= inner; j += 4) {
        a += BBN_READ_FOUR(one + j);
        b += BBN_READ_FOUR(two + j);
        c += BBN_READ_FOUR(three + j);
        d += BBN_READ_FOUR(four + j);
    }
    if (j < inner) {
        const int64_t last = inner - 4, rest = inner - j;
        a += bbn_last_of(BBN_READ_FOUR(one + last), rest);
        b += bbn_last_of(BBN_READ_FOUR(two + last), rest);
        c += bbn_last_of(BBN_READ_FOUR(three + last), rest);
        d += bbn_last_of(BBN_READ_FOUR(four + last), rest);
    }
    return bbn_sum_each(a, b, c, d);
}

/* target += cells, rows of three cells. */
BBN_INLINE void bbn_add_threes(double *target, const double *cells, int64_t outer, int64_t step_out, int64_t step_in) {
    int64_t i = 0;
    if (step_in == 0 && step_out == 1) { /* the sums of four rows go together */
        for (; i + 4 <= outer; i += 4) {
            const bbn_four a = BBN_READ_FOUR(cells + 3 * i), b = BBN_READ_FOUR(cells + 3 * i + 4);
            const bbn_four c = BBN_READ_FOUR(cells + 3 * i + 8);
            BBN_FOUR(target + i) =
                BBN_READ_FOUR(target + i) +
                (((bbn_four){a[0], a[3], b[2], c[1]} + (bbn_four){a[1], b[0], b[3], c[2]}) +
                 (bbn_four){a[2], b[1], c[0], c[3]});
        }
    } else if (step_in == 1 && step_out == 0) { /* four rows are three vectors */
        bbn_four a = BBN_FILL_FOUR(0.0), b = BBN_FILL_FOUR(0.0), c = BBN_FILL_FOUR(0.0);
        for (; i + 4 <= outer; i += 4) {
            a += BBN_READ_FOUR(cells + 3 * i);
            b += BBN_READ_FOUR(cells + 3 * i + 4);
            c += BBN_READ_FOUR(cells + 3 * i + 8);
        }
        target[0] += (a[0] + a[3]) + (b[2] + c[1]);
        target[1] += (a[1] + b[0]) + (b[3] + c[2]);
        target[2] += (a[2] + b[1]) + (c[0] + c[3]);
    }
    for (; i < outer; i++) {
        double *q = target + i * step_out;
        if (step_in == 0) {
            q[0] += cells[3 * i] + cells[3 * i + 1] + cells[3 * i + 2];
        } else {
            q[0] += cells[3 * i];
            q[step_in] += cells[3 * i + 1];
            q[2 * step_in] += cells[3 * i + 2];
        }
    }
}

/* target += the sums of columns `at` to `at` + 3 of which `rest` are wanted, the last. */
BBN_INLINE void bbn_add_columns(double *target, const double *cells, int64_t outer, int64_t inner, int64_t at,
                                int64_t rest) {
    bbn_four even = BBN_FILL_FOUR(0.0), odd = even;
    int64_t i = 0;
    for (; i + 2 <= outer; i += 2) {
        even += BBN_READ_FOUR(cells + i * inner + at);
        odd += BBN_READ_FOUR(cells + (i + 1) * inner + at);
    }
    if (i < outer) even += BBN_READ_FOUR(cells + i * inner + at);
    even += odd;
    BBN_FOUR(target + at) = BBN_READ_FOUR(target + at) + (rest == 4 ? even : bbn_last_of(even, rest));
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
            i = 0;
#if BBN_VECTORS
            if (inner >= 4 && step_out)
                for (; i + 4 <= outer; i += 4) { /* four rows go together */
                    const bbn_four sums = bbn_sum_rows(cells + i * inner, inner);
                    double *q = target + i * step_out;
                    if (step_out == 1)
                        BBN_FOUR(q) = BBN_READ_FOUR(q) + sums;
                    else
                        for (j = 0; j < 4; j++) q[j * step_out] += sums[j];
                }
#endif
            for (; i < outer; i++) target[i * step_out] += bbn_sum_row(cells + i * inner, inner);
        }
    } else if (step_in == 1 && step_out == 0) { /* column sums, kept in registers */
#if BBN_VECTORS
        for (; j + 8 <= inner; j += 8) { /* even and odd rows apart, so that no sum waits for the one before it */
            bbn_four one = BBN_FILL_FOUR(0.0), two = one, three = one, four = one;
            for (i = 0; i + 2 <= outer; i += 2) {
                const double *p = cells + i * inner + j;
                one += BBN_READ_FOUR(p);
                two += BBN_READ_FOUR(p + 4);
                three += BBN_READ_FOUR(p + inner);
                four += BBN_READ_FOUR(p + inner + 4);
            }
            if (i < outer) {
                one += BBN_READ_FOUR(cells + i * inner + j);
                two += BBN_READ_FOUR(cells + i * inner + j + 4);
            }
            BBN_FOUR(target + j) = BBN_READ_FOUR(target + j) + (one + three);
            BBN_FOUR(target + j + 4) = BBN_READ_FOUR(target + j + 4) + (two + four);
        }
        for (; j + 4 <= inner; j += 4) bbn_add_columns(target, cells, outer, inner, j, 4);
        if (j < inner && inner > 4) {
            bbn_add_columns(target, cells, outer, inner, inner - 4, inner - j);
            j = inner;
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
            bbn_four rest = BBN_FILL_FOUR(0.0); /* the last vector overlaps the one before it */
            const int64_t last = inner > 4 && inner % 4 ? inner - 4 : -1;
            if (last >= 0) rest = BBN_READ_FOUR(row + last) + BBN_READ_FOUR(cells + last);
            for (; j + 4 <= inner; j += 4) BBN_FOUR(row + j) = BBN_READ_FOUR(row + j) + BBN_READ_FOUR(cells + j);
            if (last >= 0) BBN_FOUR(row + last) = rest, j = inner;
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

#endif
