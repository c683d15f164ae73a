/* A sweep in one pass: each row of a clique is multiplied and added up while it is in registers.

   The axes of a sweep are those that no operand can join. Along the last of them, each operand is one number or as many
   as the row has cells. A row whose scale is zero is left out. Rows along one more axis make a plane, so chosen that sums
   rarely wait for the ones before them. */

#ifndef BBN_ROWS_H
#define BBN_ROWS_H

#include "bands.h"

/* Sweeps of ROW_CELLS cells or more go so where their rows have ROW_SHORTEST and their planes ROW_PLANE; in shorter ones
   slabs lose less. */
enum { ROW_STEPS = 12, ROW_OPERANDS = ROW_STEPS + 2, ROW_AXES = 24, ROW_SHORTEST = 12, ROW_PLANE = 128, ROW_CELLS = 1024 };

/* An operand that moves by a stride along each axis; the last two are those of a row and of a plane. */
typedef struct {
    double *at;
    int64_t strides[ROW_AXES];
} bbn_row_operand;

/* Operands in this order: scales, factors, sums, totals (one number for each row), wholes (one for each plane), cells. */
typedef struct {
    int64_t n_axes, width, rows, planes, n;
    int64_t scales, factors, sums, totals, wholes;
    int keeps;
    int64_t sizes[ROW_AXES], counter[ROW_AXES];
    bbn_row_operand operands[ROW_OPERANDS];
} bbn_rows;

#if BBN_VECTORS
/* The sum of vectors, or the larger of each pair. */
BBN_INLINE bbn_four bbn_join(bbn_four a, bbn_four b, const int maximise) {
    if (maximise) return bbn_larger(a, b);
    return b + a;
}

/* One plane; what is constant where it is called is left out of the loop. */
BBN_INLINE void bbn_plane(const bbn_rows *s, const int64_t n_factors, const int64_t n_sums, const int keeps,
                          const int maximise) {
    const int64_t width = s->width, rows = s->rows, n_scales = s->scales, n_totals = s->totals, n_wholes = s->wholes;
    const int64_t axis = s->n_axes - 2;
    const bbn_row_operand *operand = s->operands;
    const double *scaling[ROW_OPERANDS], *factors[ROW_OPERANDS];
    double *sums[ROW_OPERANDS], *totals[ROW_OPERANDS], *cells = 0;
    int64_t by_scale[ROW_OPERANDS], by_factor[ROW_OPERANDS], by_sum[ROW_OPERANDS], by_total[ROW_OPERANDS], by_cells = 0;
    double same = 1.0; /* of the whole plane */
    int64_t n_scaling = 0;
    for (int64_t k = 0; k < n_scales; k++, operand++)
        if (operand->strides[axis])
            scaling[n_scaling] = operand->at, by_scale[n_scaling++] = operand->strides[axis];
        else
            same *= *operand->at;
    if (same == 0.0 && !keeps) return;
    for (int64_t k = 0; k < n_factors; k++, operand++) factors[k] = operand->at, by_factor[k] = operand->strides[axis];
    for (int64_t k = 0; k < n_sums; k++, operand++) sums[k] = operand->at, by_sum[k] = operand->strides[axis];
    for (int64_t k = 0; k < n_totals; k++, operand++) totals[k] = operand->at, by_total[k] = operand->strides[axis];
    const bbn_row_operand *const wholes = operand;
    if (keeps) cells = wholes[n_wholes].at, by_cells = wholes[n_wholes].strides[axis];
    const bbn_four zeros = BBN_FILL_FOUR(0.0);
    bbn_four whole = zeros;
    for (int64_t r = 0; r < rows; r++) {
        double scale = same;
        for (int64_t k = 0; k < n_scaling; k++) scale *= scaling[k][r * by_scale[k]];
        if (scale != 0.0) {
            const bbn_four scales = BBN_FILL_FOUR(scale);
            bbn_four all = zeros;
            int64_t j = 0;
            for (; j + 4 <= width; j += 4) {
                bbn_four x = scales;
                for (int64_t k = 0; k < n_factors; k++) x *= BBN_READ_FOUR(factors[k] + j);
                if (keeps) BBN_FOUR(cells + j) = x;
                for (int64_t k = 0; k < n_sums; k++)
                    BBN_FOUR(sums[k] + j) = bbn_join(x, BBN_READ_FOUR(sums[k] + j), maximise);
                all = bbn_join(x, all, maximise);
            }
            if (width & 2) {
                bbn_two x = {scale, scale};
                for (int64_t k = 0; k < n_factors; k++) x *= BBN_READ_TWO(factors[k] + j);
                if (keeps) BBN_TWO(cells + j) = x;
                for (int64_t k = 0; k < n_sums; k++) {
                    const bbn_two sum = BBN_READ_TWO(sums[k] + j);
                    if (maximise)
                        BBN_TWO(sums[k] + j) = (bbn_two){bbn_larger_of(x[0], sum[0]), bbn_larger_of(x[1], sum[1])};
                    else
                        BBN_TWO(sums[k] + j) = sum + x;
                }
                all = bbn_join((bbn_four){x[0], x[1], 0.0, 0.0}, all, maximise);
                j += 2;
            }
            if (width & 1) {
                double x = scale;
                for (int64_t k = 0; k < n_factors; k++) x *= factors[k][j];
                if (keeps) cells[j] = x;
                for (int64_t k = 0; k < n_sums; k++)
                    sums[k][j] = maximise ? bbn_larger_of(x, sums[k][j]) : sums[k][j] + x;
                all = bbn_join((bbn_four){x, 0.0, 0.0, 0.0}, all, maximise);
            }
            if (n_totals) {
                if (maximise) {
                    const double most = bbn_larger_of(bbn_larger_of(all[0], all[1]), bbn_larger_of(all[2], all[3]));
                    for (int64_t k = 0; k < n_totals; k++)
                        totals[k][r * by_total[k]] = bbn_larger_of(most, totals[k][r * by_total[k]]);
                } else {
                    const double total = (all[0] + all[1]) + (all[2] + all[3]);
                    for (int64_t k = 0; k < n_totals; k++) totals[k][r * by_total[k]] += total;
                }
            }
            whole = bbn_join(all, whole, maximise);
        } else if (keeps) {
            memset(cells, 0, width * sizeof(double));
        }
        for (int64_t k = 0; k < n_factors; k++) factors[k] += by_factor[k];
        for (int64_t k = 0; k < n_sums; k++) sums[k] += by_sum[k];
        if (keeps) cells += by_cells;
    }
    if (maximise) {
        const double most = bbn_larger_of(bbn_larger_of(whole[0], whole[1]), bbn_larger_of(whole[2], whole[3]));
        for (int64_t k = 0; k < n_wholes; k++) *wholes[k].at = bbn_larger_of(most, *wholes[k].at);
    } else {
        const double total = (whole[0] + whole[1]) + (whole[2] + whole[3]);
        for (int64_t k = 0; k < n_wholes; k++) *wholes[k].at += total;
    }
}

#define BBN_PLANES(n_factors, n_sums, keeps, maximise)                             \
    do {                                                                           \
        for (;;) {                                                                 \
            bbn_plane(s, n_factors, n_sums, keeps, maximise);                      \
            int64_t a = s->n_axes - 3;                                             \
            for (; a >= 0; a--) {                                                  \
                const int64_t more = ++s->counter[a] < s->sizes[a];                \
                for (int64_t k = 0; k < s->n; k++)                                 \
                    s->operands[k].at += s->operands[k].strides[a] * (more ? 1 : 1 - s->sizes[a]); \
                if (more) break;                                                   \
                s->counter[a] = 0;                                                 \
            }                                                                      \
            if (--planes == 0) return;                                             \
        }                                                                          \
    } while (0)

/* The next planes of a sweep. */
BBN_CLONES static void bbn_rows_go(bbn_rows *s, int64_t planes, int maximise) {
    if (!maximise) {
        switch (s->factors < 4 && s->sums < 3 ? (s->factors * 3 + s->sums) * 2 + s->keeps : -1) {
#define BBN_ROWS_CASE(factors, sums)                                              \
    case ((factors)*3 + (sums)) * 2: BBN_PLANES(factors, sums, 0, 0);             \
    case ((factors)*3 + (sums)) * 2 + 1: BBN_PLANES(factors, sums, 1, 0);
            BBN_ROWS_CASE(0, 0)
            BBN_ROWS_CASE(0, 1)
            BBN_ROWS_CASE(0, 2)
            BBN_ROWS_CASE(1, 0)
            BBN_ROWS_CASE(1, 1)
            BBN_ROWS_CASE(1, 2)
            BBN_ROWS_CASE(2, 0)
            BBN_ROWS_CASE(2, 1)
            BBN_ROWS_CASE(2, 2)
            BBN_ROWS_CASE(3, 0)
            BBN_ROWS_CASE(3, 1)
            BBN_ROWS_CASE(3, 2)
            default: BBN_PLANES(s->factors, s->sums, s->keeps, 0);
        }
    }
    BBN_PLANES(s->factors, s->sums, s->keeps, 1);
}

/* Where the operand of a step of a sweep begins; NULL for a likelihood that the run does not have. */
static double *bbn_row_source(const bbn_band_state *state, const int64_t *step) {
    const double *from;
    if (step[0] == LIKELY) {
        from = state->likelihoods[step[3]];
        if (!from) return 0;
    } else if (step[0] == ADD) {
        from = (step[2] == WORK ? state->work : state->out) + step[3];
    } else {
        from = (step[2] == TABLES ? state->tables : step[2] == BASE ? state->base : state->work) + step[3];
    }
    for (int64_t k = 0; k < step[4]; k++) from += state->codes[step[6 + 2 * k]] * step[7 + 2 * k];
    return (double *)from; /* only sums are written to, and theirs is not const */
}

/* The strides of an operand along axes; it has dims of its own, each of which is some of the axes. */
static void bbn_row_strides(bbn_row_operand *operand, const bbn_rows *s, int64_t depth, const int64_t *dims,
                            const int64_t *steps) {
    int64_t left = 1, step = 0;
    for (int64_t a = s->n_axes - 1; a >= 0; a--) {
        if (left == 1 && depth > 0) depth--, left = dims[depth], step = steps[depth];
        operand->strides[a] = step;
        step *= s->sizes[a];
        left /= s->sizes[a];
    }
}

/* Read a SWEEP of two axes or more; how many planes it has, or 0 if it is better gone through slab by slab.
   f: region, cells, left, keep, slabs, n_o, n_ops, outer dims, steps. */
static int64_t bbn_rows_read(const bbn_band_state *state, const int64_t *f, bbn_rows *s) {
    const int64_t n_outer = f[5], n_ops = f[6], slab = f[1] / f[4], *outer = f + 7, *word;
    int64_t ends[ROW_AXES], n_ends = 1, n = 0, k, a;
    int kinds[ROW_OPERANDS];
    if (n_ops > ROW_STEPS || n_outer + 2 > ROW_AXES) return 0;
    /* the sizes of the joint axes of a slab, by how many cells lie from where each begins to the end */
    ends[0] = slab;
    for (k = 0, word = outer + n_outer; k < n_ops; k++, word += word[1]) {
        const int64_t depth = word[5], *dims = word + 6 + 2 * word[4] + n_outer;
        int64_t cells = 1;
        for (a = depth - 1; a > 0; a--) {
            int64_t i = 0, j;
            cells *= dims[a];
            while (i < n_ends && ends[i] > cells) i++;
            if (i < n_ends && ends[i] == cells) continue;
            if (n_outer + n_ends + 1 >= ROW_AXES) return 0;
            for (j = n_ends; j > i; j--) ends[j] = ends[j - 1];
            ends[i] = cells;
            n_ends++;
        }
    }
    if (ends[n_ends - 1] < ROW_SHORTEST) return 0;
    s->n_axes = n_outer + n_ends;
    for (a = 0; a < n_outer; a++) s->sizes[a] = outer[a];
    for (a = 0; a < n_ends; a++) s->sizes[n_outer + a] = ends[a] / (a + 1 < n_ends ? ends[a + 1] : 1);
    if (s->n_axes < 2) return 0;
    const int64_t row = s->n_axes - 1;
    s->width = s->sizes[row];
    s->keeps = f[3] != 0;
    s->scales = s->factors = s->sums = s->totals = s->wholes = 0;
    for (k = 0, word = outer + n_outer; k < n_ops; k++, word += word[1]) {
        const int64_t depth = word[5], *walk = word + 6 + 2 * word[4], *dims = walk + n_outer;
        bbn_row_operand *operand = s->operands + n;
        operand->at = bbn_row_source(state, word);
        if (!operand->at) continue;
        bbn_row_strides(operand, s, depth, dims, dims + depth);
        for (a = 0; a < n_outer; a++) operand->strides[a] = walk[a];
        if (operand->strides[row] > 1) return 0;
        kinds[n++] = word[0] == ADD ? (operand->strides[row] ? 2 : 3) : operand->strides[row] ? 1 : 0;
    }
    if (f[2] || f[3]) { /* the clique's own cells */
        bbn_row_operand own;
        int64_t step = 1;
        for (a = row; a >= 0; a--) own.strides[a] = step, step *= s->sizes[a];
        own.at = (double *)(f[2] == BASE ? state->base : state->work) + f[0];
        if (f[2]) kinds[n] = 1, s->operands[n++] = own;
        if (f[3]) own.at = state->work + f[0], kinds[n] = 5, s->operands[n++] = own;
    }
    /* the axis of planes: one along which totals stay and sums move */
    int64_t best = 0, least = INT64_MAX;
    for (a = row - 1; a >= 0; a--) {
        int64_t cost = 16;
        for (k = 0; k < n; k++) {
            const int64_t stride = s->operands[k].strides[a];
            if (kinds[k] == 2 && !stride) cost += 8;
            if (kinds[k] == 3 && stride) cost += 8;
            if (kinds[k] == 0 && !stride) cost -= 1;
        }
        cost = cost * 64 + 4096 / s->sizes[a];
        if (cost < least) least = cost, best = a;
    }
    for (k = 0; k < n; k++) {
        int64_t *strides = s->operands[k].strides;
        const int64_t along = strides[best];
        strides[best] = strides[row - 1], strides[row - 1] = along;
        if (kinds[k] == 3 && !along) kinds[k] = 4;
    }
    a = s->sizes[best], s->sizes[best] = s->sizes[row - 1], s->sizes[row - 1] = a;
    s->rows = a;
    if (s->rows * s->width < ROW_PLANE) return 0;
    s->n = n;
    for (int kind = 0, at = 0; kind < 6; kind++)
        for (k = at; k < n; k++)
            if (kinds[k] == kind) {
                const bbn_row_operand one = s->operands[k];
                s->operands[k] = s->operands[at], s->operands[at] = one;
                kinds[k] = kinds[at], kinds[at] = kind;
                at++;
                if (kind == 0) s->scales++;
                if (kind == 1) s->factors++;
                if (kind == 2) s->sums++;
                if (kind == 3) s->totals++;
                if (kind == 4) s->wholes++;
            }
    s->planes = 1;
    for (a = 0; a < row - 1; a++) s->planes *= s->sizes[a], s->counter[a] = 0;
    return s->planes;
}
#else
/* Where the compiler has no vectors, all sweeps go slab by slab. */
static int64_t bbn_rows_read(const bbn_band_state *state, const int64_t *f, bbn_rows *s) { return 0; }
static void bbn_rows_go(bbn_rows *s, int64_t planes, int maximise) {}
#endif

#endif
