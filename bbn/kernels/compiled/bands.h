/* A clique of which only some cells can be other than zero, gone through band by band.

   A band is the cells of a row along one axis, from the first to the last that can be other than zero; `tape` tells of
   the words. What is stored of bands lies one behind another, filled up with zeros to a multiple of BAND_LANES cells, so
   that they are read in whole vectors. A vector may reach past the end of an operand's part: it meets a zero of the band
   there, and what is read or written back is another number of the same buffer, or a zero behind it. */

#ifndef BBN_BANDS_H
#define BBN_BANDS_H

#include <stdint.h>
#include <string.h>

#include "walk.h"

typedef struct {
    const double *tables, *base;
    double *work, *out;
    const int64_t *codes;
    double **likelihoods;
    const int32_t *lists;
    int32_t *ids;    /* of each clique, the bands that are not zero in this run */
    int64_t *counts; /* and how many */
    double *packed;  /* operands laid out along the bands */
} bbn_band_state;

/* Operands of one sweep: where each begins, and where each band lies in it. */
typedef struct {
    int64_t n;
    double *from[BAND_STEPS];
    const int32_t *at[BAND_STEPS];
} bbn_band_side;

typedef struct {
    int64_t n, noted;
    const int32_t *ids, *starts, *widths;
    int32_t *left_over;
    const double *own;
    double *kept;
    bbn_band_side scales, factors, sums, totals;
} bbn_band_sweep;

static const double bbn_band_end[2 * BAND_LANES] = {1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0};

BBN_INLINE const bbn_band_side *bbn_band_copy(bbn_band_side *copy, const bbn_band_side *side, const int64_t n,
                                              const int usual) {
    if (!usual) return side;
    for (int64_t k = 0; k < n; k++) copy->from[k] = side->from[k], copy->at[k] = side->at[k];
    return copy;
}

/* Each band times its scales and factors, added to its sums and totals; how many bands are not zero. What is constant
   where it is called is left out of the loop. */
BBN_INLINE int64_t bbn_band_rows(const bbn_band_sweep *s, const int64_t n_scales, const int64_t n_factors,
                                 const int64_t n_sums, const int64_t n_totals, const int has_own, const int keeps,
                                 const int64_t noted, const int usual) {
    const int64_t n = s->n;
    const int32_t *const ids = s->ids, *const starts = s->starts, *const widths = s->widths;
    int32_t *const some = s->left_over;
    /* where their numbers are constant, operands lie in registers; otherwise what is written could be their lists, for
       all that the compiler knows */
    bbn_band_side own_scales, own_factors, own_sums, own_totals;
    const bbn_band_side *const scaled = bbn_band_copy(&own_scales, &s->scales, n_scales, usual);
    const bbn_band_side *const factored = bbn_band_copy(&own_factors, &s->factors, n_factors, usual);
    const bbn_band_side *const summed = bbn_band_copy(&own_sums, &s->sums, n_sums, usual);
    const bbn_band_side *const totalled = bbn_band_copy(&own_totals, &s->totals, n_totals, usual);
    const double *const all_own = s->own;
    double *const all_kept = s->kept;
    int64_t left_over = 0;
    for (int64_t q = 0; q < n; q++) {
        const int64_t r = noted == READ ? ids[q] : q;
        double scale = 1.0, total;
        for (int64_t k = 0; k < n_scales; k++) scale *= scaled->from[k][scaled->at[k][r]];
        if (scale == 0.0) {
            if (noted == NOTED)
                some[r] = 0;
            else if (keeps)
                memset(all_kept + starts[r], 0, (widths[r] + BAND_LANES - 1) / BAND_LANES * BAND_LANES * sizeof(double));
            continue;
        }
        const int64_t start = has_own || keeps ? starts[r] : 0, width = widths[r];
        const double *const own = has_own ? all_own + start : 0;
        double *const kept = keeps ? all_kept + start : 0;
        const double *factors[BAND_STEPS];
        double *sums[BAND_STEPS];
        for (int64_t k = 0; k < n_factors; k++) factors[k] = factored->from[k] + factored->at[k][r];
        for (int64_t k = 0; k < n_sums; k++) sums[k] = summed->from[k] + summed->at[k][r];
#if BBN_VECTORS
        const bbn_four scales = BBN_FILL_FOUR(scale);
        bbn_four all = BBN_FILL_FOUR(0.0);
        for (int64_t j = 0; j < width; j += BAND_LANES) {
            bbn_four x = scales;
            if (has_own)
                x *= BBN_READ_FOUR(own + j);
            else if (j + BAND_LANES > width)
                x *= BBN_READ_FOUR(bbn_band_end + BAND_LANES - (width - j));
            for (int64_t k = 0; k < n_factors; k++) x *= BBN_READ_FOUR(factors[k] + j);
            if (keeps) BBN_FOUR(kept + j) = x;
            for (int64_t k = 0; k < n_sums; k++) BBN_FOUR(sums[k] + j) = BBN_READ_FOUR(sums[k] + j) + x;
            all += x;
        }
        total = (all[0] + all[1]) + (all[2] + all[3]);
#else
        total = 0.0;
        for (int64_t j = 0; j < width; j++) {
            double x = has_own ? scale * own[j] : scale;
            for (int64_t k = 0; k < n_factors; k++) x *= factors[k][j];
            if (keeps) kept[j] = x;
            for (int64_t k = 0; k < n_sums; k++) sums[k][j] += x;
            total += x;
        }
#endif
        for (int64_t k = 0; k < n_totals; k++) totalled->from[k][totalled->at[k][r]] += total;
        if (noted == NOTED) some[r] = total != 0.0;
    }
    if (noted == NOTED) /* apart: where a note goes would depend on all sums so far, and loads would wait for it */
        for (int64_t r = 0; r < n; r++) {
            const int32_t more = some[r];
            some[left_over] = (int32_t)r;
            left_over += more;
        }
    return left_over;
}

/* Sweeps that are common where bands pay have a loop of their own: their scales, factors, sums and totals, own cells,
   whether they are kept, and whether bands are noted or read. Others have one by their factors and sums. */
#define BBN_USUAL_BANDS(X)                                                                                             \
    X(0, 1, 0, 1, 1, 0, 0) X(0, 1, 0, 1, 1, 0, NOTED) X(0, 1, 0, 1, 1, 0, READ) X(0, 1, 0, 1, 1, 1, NOTED)             \
    X(0, 1, 1, 0, 1, 0, 0) X(0, 1, 1, 0, 1, 0, NOTED) X(0, 1, 1, 0, 1, 0, READ) X(0, 1, 1, 0, 1, 1, NOTED)             \
    X(0, 1, 1, 1, 1, 0, 0) X(0, 1, 1, 1, 1, 0, READ) X(0, 1, 1, 2, 1, 0, READ) X(0, 2, 0, 1, 0, 0, NOTED)              \
    X(1, 0, 1, 0, 1, 0, 0) X(1, 0, 1, 0, 1, 0, NOTED) X(1, 0, 1, 0, 1, 0, READ) X(1, 0, 1, 0, 1, 1, NOTED)             \
    X(1, 0, 2, 0, 1, 0, 0) X(1, 0, 2, 0, 1, 0, READ) X(1, 0, 2, 1, 1, 0, READ) X(1, 1, 0, 1, 1, 0, NOTED)              \
    X(1, 1, 0, 1, 1, 1, NOTED) X(1, 1, 1, 0, 1, 0, READ) X(1, 1, 1, 0, 1, 1, NOTED) X(1, 1, 1, 0, 0, 0, NOTED)         \
    X(1, 1, 1, 1, 1, 0, READ) X(1, 1, 2, 0, 1, 0, READ) X(1, 2, 0, 1, 0, 0, NOTED) X(1, 2, 1, 0, 0, 0, READ)           \
    X(1, 2, 1, 1, 0, 0, READ) X(2, 0, 1, 0, 1, 0, NOTED) X(2, 1, 0, 1, 1, 1, NOTED) X(2, 1, 1, 0, 0, 0, NOTED)         \
    X(2, 1, 1, 1, 1, 0, READ) X(2, 1, 2, 1, 1, 0, READ) X(2, 2, 2, 1, 0, 0, READ)
#define BBN_BANDS_KEY(n_scales, n_factors, n_sums, n_totals, own, keeps, noted)                                        \
    ((((((n_scales) * 4 + (n_factors)) * 4 + (n_sums)) * 4 + (n_totals)) * 2 + (own)) * 2 + (keeps)) * 3 + (noted)
#define BBN_BANDS_CASE(...) \
    case BBN_BANDS_KEY(__VA_ARGS__): return bbn_band_rows(s, __VA_ARGS__, 1);

BBN_CLONES static int64_t bbn_band_go(const bbn_band_sweep *s) {
    const int64_t n_scales = s->scales.n, n_factors = s->factors.n, n_sums = s->sums.n, n_totals = s->totals.n;
    const int own = s->own != 0, keeps = s->kept != 0;
    if (n_scales < 4 && n_factors < 4 && n_sums < 4 && n_totals < 4)
        switch (BBN_BANDS_KEY(n_scales, n_factors, n_sums, n_totals, own, keeps, s->noted)) {
            BBN_USUAL_BANDS(BBN_BANDS_CASE)
            default: break;
        }
#define BBN_BANDS_OTHER(factors, sums)                                                                                 \
    if (n_factors == factors && n_sums == sums) {                                                                      \
        if (!own) return bbn_band_rows(s, n_scales, factors, sums, n_totals, 0, keeps, s->noted, 0);                   \
        if (!keeps) return bbn_band_rows(s, n_scales, factors, sums, n_totals, 1, 0, s->noted, 0);                     \
        return bbn_band_rows(s, n_scales, factors, sums, n_totals, 1, 1, s->noted, 0);                                 \
    }
    BBN_BANDS_OTHER(0, 1)
    BBN_BANDS_OTHER(0, 2)
    BBN_BANDS_OTHER(1, 0)
    BBN_BANDS_OTHER(1, 1)
    BBN_BANDS_OTHER(1, 2)
    BBN_BANDS_OTHER(2, 0)
    BBN_BANDS_OTHER(2, 1)
    return bbn_band_rows(s, n_scales, n_factors, n_sums, n_totals, own, keeps, s->noted, 0);
}

/* The same for maxima: the larger of each band times its scales and factors, and of what is there; nothing is noted. */
BBN_INLINE void bbn_band_largest(const bbn_band_sweep *s, const int64_t n_factors, const int64_t n_sums) {
    for (int64_t r = 0; r < s->n; r++) {
        const int64_t start = s->starts[r], width = s->widths[r];
        double scale = 1.0, largest;
        for (int64_t k = 0; k < s->scales.n; k++) scale *= s->scales.from[k][s->scales.at[k][r]];
        const double *own = s->own ? s->own + start : 0;
        double *kept = s->kept ? s->kept + start : 0;
        if (scale == 0.0 && !kept) continue;
        const double *factors[BAND_STEPS];
        double *sums[BAND_STEPS];
        for (int64_t k = 0; k < n_factors; k++) factors[k] = s->factors.from[k] + s->factors.at[k][r];
        for (int64_t k = 0; k < n_sums; k++) sums[k] = s->sums.from[k] + s->sums.at[k][r];
#if BBN_VECTORS
        const bbn_four scales = BBN_FILL_FOUR(scale);
        bbn_four all = BBN_FILL_FOUR(0.0);
        for (int64_t j = 0; j < width; j += BAND_LANES) {
            bbn_four x = scales;
            if (own)
                x *= BBN_READ_FOUR(own + j);
            else if (j + BAND_LANES > width)
                x *= BBN_READ_FOUR(bbn_band_end + BAND_LANES - (width - j));
            for (int64_t k = 0; k < n_factors; k++) x *= BBN_READ_FOUR(factors[k] + j);
            if (kept) BBN_FOUR(kept + j) = x;
            for (int64_t k = 0; k < n_sums; k++) BBN_FOUR(sums[k] + j) = bbn_larger(x, BBN_READ_FOUR(sums[k] + j));
            all = bbn_larger(x, all);
        }
        const double one = all[0] > all[1] ? all[0] : all[1], two = all[2] > all[3] ? all[2] : all[3];
        largest = one > two ? one : two;
#else
        largest = 0.0;
        for (int64_t j = 0; j < width; j++) {
            double x = own ? scale * own[j] : scale;
            for (int64_t k = 0; k < n_factors; k++) x *= factors[k][j];
            if (kept) kept[j] = x;
            for (int64_t k = 0; k < n_sums; k++)
                if (x > sums[k][j]) sums[k][j] = x;
            if (x > largest) largest = x;
        }
#endif
        for (int64_t k = 0; k < s->totals.n; k++) {
            double *total = s->totals.from[k] + s->totals.at[k][r];
            if (largest > *total) *total = largest;
        }
    }
}

BBN_CLONES static void bbn_band_go_largest(const bbn_band_sweep *s) {
    switch (s->factors.n < 4 && s->sums.n < 2 ? 2 * s->factors.n + s->sums.n : -1) {
        case 0: bbn_band_largest(s, 0, 0); return;
        case 1: bbn_band_largest(s, 0, 1); return;
        case 2: bbn_band_largest(s, 1, 0); return;
        case 3: bbn_band_largest(s, 1, 1); return;
        case 4: bbn_band_largest(s, 2, 0); return;
        case 5: bbn_band_largest(s, 2, 1); return;
        case 6: bbn_band_largest(s, 3, 0); return;
        case 7: bbn_band_largest(s, 3, 1); return;
        default: bbn_band_largest(s, s->factors.n, s->sums.n);
    }
}

/* Where the numbers of a step lie; NULL for a likelihood that the run does not have. */
static double *bbn_band_operand(const bbn_band_state *state, const int64_t *step) {
    const double *from;
    if (step[0] == LIKELY) return state->likelihoods[step[3]];
    from = step[2] == TABLES ? state->tables : step[2] == BASE ? state->base : step[2] == WORK ? state->work : state->out;
    from += step[3];
    for (int64_t k = 0; k < step[4]; k++) from += state->codes[step[9 + 2 * k]] * step[10 + 2 * k];
    return (double *)from; /* only sums are written to, and theirs is not const */
}

/* f: slot, ids, most, v, counts, starts, widths, region, left, keep, noted, n_ops, steps; a step: kind, length, buffer,
   offset, n_e, along, list, packed, n_d, moves, dims, strides. How many bands there were. */
static int64_t bbn_bands(const bbn_band_state *state, const int64_t *f, int maximise) {
    const int64_t slot = f[0], code = f[3] < 0 ? 0 : state->codes[f[3]];
    const int64_t left = f[8], keep = f[9], noted = f[10], n_ops = f[11];
    const int32_t *lists = state->lists + code * f[2];
    const int64_t *step;
    int64_t k;
    bbn_band_sweep s;
    s.noted = noted;
    s.n = noted == READ ? state->counts[slot] : state->lists[f[4] + code];
    s.ids = noted == READ ? state->ids + f[1] : 0;
    s.left_over = noted == NOTED ? state->ids + f[1] : 0;
    s.starts = lists + f[5];
    s.widths = lists + f[6];
    s.own = left == BASE ? state->base + f[7] : left == WORK ? state->work + f[7] : 0;
    s.kept = keep ? state->work + f[7] : 0;
    s.scales.n = s.factors.n = s.sums.n = s.totals.n = 0;
    for (k = 0, step = f + 12; k < n_ops; k++, step += step[1]) {
        const int64_t depth = step[8], *dims = step + 9 + 2 * step[4];
        double *from = bbn_band_operand(state, step);
        bbn_band_side *side =
            step[0] == ADD ? (step[5] ? &s.sums : &s.totals) : step[5] ? &s.factors : &s.scales;
        if (!from) continue;
        if (depth) {
            double *packed = state->packed + step[7];
            if (step[0] == ADD) {
                int64_t size = 1;
                for (int64_t i = 0; i < depth; i++) size *= dims[i];
                memset(packed, 0, size * sizeof(double));
            } else {
                bbn_multiply(packed, 0, from, 1.0, depth, dims, dims + depth);
            }
            from = packed;
        }
        side->from[side->n] = from;
        side->at[side->n++] = lists + step[6];
    }
    if (maximise) {
        bbn_band_go_largest(&s);
    } else {
        const int64_t some = bbn_band_go(&s);
        if (noted == NOTED) state->counts[slot] = some;
    }
    for (k = 0, step = f + 12; k < n_ops; k++, step += step[1]) {
        const int64_t depth = step[8], *dims = step + 9 + 2 * step[4];
        if (step[0] == ADD && depth)
            (maximise ? bbn_maximise : bbn_accumulate)(bbn_band_operand(state, step), state->packed + step[7], depth, dims,
                                                       dims + depth);
    }
    return s.n;
}

#endif
