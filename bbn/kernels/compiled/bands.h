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
    int64_t n;
    const int32_t *ids, *starts, *widths;
    int32_t *left_over;
    const double *own;
    double *kept;
    bbn_band_side scales, factors, sums, totals;
} bbn_band_sweep;

static const double bbn_band_end[2 * BAND_LANES] = {1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0};

/* Each band times its scales and factors, added to its sums and totals; how many bands are not zero. */
BBN_INLINE int64_t bbn_band_rows(const bbn_band_sweep *s, const int64_t n_factors, const int64_t n_sums) {
    int64_t left_over = 0;
    for (int64_t q = 0; q < s->n; q++) {
        const int64_t r = s->ids ? s->ids[q] : q;
        double scale = 1.0, total;
        for (int64_t k = 0; k < s->scales.n; k++) scale *= s->scales.from[k][s->scales.at[k][r]];
        if (scale == 0.0) {
            if (s->kept && !s->left_over) memset(s->kept + s->starts[r], 0, (s->widths[r] + BAND_LANES - 1) / BAND_LANES * BAND_LANES * sizeof(double));
            continue;
        }
        const int64_t start = s->starts[r], width = s->widths[r];
        const double *own = s->own ? s->own + start : 0;
        double *kept = s->kept ? s->kept + start : 0;
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
            for (int64_t k = 0; k < n_sums; k++) BBN_FOUR(sums[k] + j) = BBN_READ_FOUR(sums[k] + j) + x;
            all += x;
        }
        total = (all[0] + all[1]) + (all[2] + all[3]);
#else
        total = 0.0;
        for (int64_t j = 0; j < width; j++) {
            double x = own ? scale * own[j] : scale;
            for (int64_t k = 0; k < n_factors; k++) x *= factors[k][j];
            if (kept) kept[j] = x;
            for (int64_t k = 0; k < n_sums; k++) sums[k][j] += x;
            total += x;
        }
#endif
        for (int64_t k = 0; k < s->totals.n; k++) s->totals.from[k][s->totals.at[k][r]] += total;
        if (s->left_over) {
            s->left_over[left_over] = (int32_t)r;
            left_over += total != 0.0;
        }
    }
    return left_over;
}

/* The usual numbers of operands have a loop of their own. */
BBN_CLONES static int64_t bbn_band_go(const bbn_band_sweep *s) {
    switch (s->factors.n < 4 && s->sums.n < 4 ? 4 * s->factors.n + s->sums.n : -1) {
        case 0: return bbn_band_rows(s, 0, 0);
        case 1: return bbn_band_rows(s, 0, 1);
        case 2: return bbn_band_rows(s, 0, 2);
        case 3: return bbn_band_rows(s, 0, 3);
        case 4: return bbn_band_rows(s, 1, 0);
        case 5: return bbn_band_rows(s, 1, 1);
        case 6: return bbn_band_rows(s, 1, 2);
        case 7: return bbn_band_rows(s, 1, 3);
        case 8: return bbn_band_rows(s, 2, 0);
        case 9: return bbn_band_rows(s, 2, 1);
        case 12: return bbn_band_rows(s, 3, 0);
        case 13: return bbn_band_rows(s, 3, 1);
        default: return bbn_band_rows(s, s->factors.n, s->sums.n);
    }
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
