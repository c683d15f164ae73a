/* A thin clique: only the fibres that can hold something are gone through.

   A fibre is the cells of a clique that agree on all axes but a few, which lie together. The lists say, for each fibre
   that the model's zeros allow, where it lies in each operand. A fibre that an operand makes zero is dropped on the way,
   and those that are left are stored one behind another, with their numbers. */

#ifndef BBN_FIBRES_H
#define BBN_FIBRES_H

#include <stdint.h>
#include <string.h>

#include "walk.h"

enum { BLOCK = 2048 }; /* cells that go together: they stay in the nearest cache */

typedef struct {
    const double *tables, *base;
    double *work, *out;
    const int64_t *codes;
    double **likelihoods;
    const int32_t *lists;
    const uint8_t *possible; /* by state, or NULL */
    int32_t *base_ids, *work_ids; /* the numbers of the fibres that are stored */
    int64_t *base_counts, *work_counts;
    double *cells, *scale, *packed; /* a block of them; operands laid out for the fibres */
    int32_t *ids, *from;
} bbn_fibre_state;

/* Multiply each fibre's scale by its number in an operand; those that are not zero move up. How many are left. */
static int64_t bbn_fibre_scale(const bbn_fibre_state *s, int64_t n, const double *source, const int32_t *offsets) {
    int64_t left = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t id = s->ids[k], at = s->from[k];
        const double product = s->scale[k] * source[offsets[id]];
        s->scale[left] = product;
        s->ids[left] = id;
        s->from[left] = at;
        left += product != 0.0;
    }
    return left;
}

/* The fibres of a state that is possible move up. How many are left. */
static int64_t bbn_fibre_mask(const bbn_fibre_state *s, int64_t n, const int32_t *states) {
    int64_t left = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t id = s->ids[k], at = s->from[k];
        s->ids[left] = id;
        s->from[left] = at;
        left += s->possible[states[id]];
    }
    return left;
}

/* Whether a cell is not zero. */
BBN_INLINE int bbn_fibre_some(const double *cells, int64_t length) {
    for (int64_t j = 0; j < length; j++)
        if (cells[j] != 0.0) return 1;
    return 0;
}

/* target = left * scale * source, fibre by fibre; those that are not zero move up. `settled`: left is the target, and
   scales have been multiplied in. Without left it is ones. How many are left. */
BBN_CLONES static int64_t bbn_fibre_multiply(const bbn_fibre_state *s, double *target, const double *left, int settled,
                                             const double *source, const int32_t *offsets, int64_t n, int64_t length,
                                             int64_t depth, const int64_t *dims, const int64_t *steps) {
    const int plain = depth == 1 && steps[0] == 1;
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t id = s->ids[k], at = s->from[k];
        const double *own = settled ? target + k * length : left ? left + at * length : 0;
        const double scale = settled ? 1.0 : s->scale[k];
        double *cells = target + kept * length;
        if (plain)
            bbn_mul_plane(cells, own, source + offsets[id], scale, 1, length, 0, 1);
        else
            bbn_multiply(cells, own, source + offsets[id], scale, depth, dims, steps);
        s->ids[kept] = id;
        kept += bbn_fibre_some(cells, length);
    }
    return kept;
}

/* target = left * scale. */
BBN_CLONES static void bbn_fibre_settle(const bbn_fibre_state *s, double *target, const double *left, int64_t n,
                                        int64_t length) {
    if (length == 1)
        for (int64_t k = 0; k < n; k++) target[k] = left ? left[s->from[k]] * s->scale[k] : s->scale[k];
    else
        for (int64_t k = 0; k < n; k++, target += length)
            bbn_mul_plane(target, left ? left + s->from[k] * length : 0, &s->scale[k], 1.0, 1, length, 0, 0);
}

/* sink += cells, fibre by fibre. */
BBN_CLONES static void bbn_fibre_add(const bbn_fibre_state *s, double *sink, const double *cells,
                                     const int32_t *offsets, int64_t n, int64_t length, int64_t depth,
                                     const int64_t *dims, const int64_t *steps) {
    if (length == 1) {
        for (int64_t k = 0; k < n; k++) sink[offsets[s->ids[k]]] += cells[k];
    } else if (depth == 1 && steps[0] == 0) {
        for (int64_t k = 0; k < n; k++, cells += length) sink[offsets[s->ids[k]]] += bbn_sum_row(cells, length);
    } else if (depth == 1) {
        for (int64_t k = 0; k < n; k++, cells += length)
            bbn_add_plane(sink + offsets[s->ids[k]], cells, 1, length, 0, steps[0]);
    } else {
        for (int64_t k = 0; k < n; k++, cells += length)
            bbn_accumulate(sink + offsets[s->ids[k]], cells, depth, dims, steps);
    }
}

/* Where the numbers of a step lie; NULL for a likelihood that the run does not have. */
static double *bbn_fibre_operand(const bbn_fibre_state *s, const int64_t *step) {
    const double *source;
    if (step[0] == LIKELY) return s->likelihoods[step[3]];
    source = step[2] == TABLES ? s->tables : step[2] == BASE ? s->base : step[2] == WORK ? s->work : s->out;
    source += step[3];
    for (int64_t k = 0; k < step[4]; k++) source += s->codes[step[9 + 2 * k]] * step[10 + 2 * k];
    return (double *)source;
}

/* Lay the operands of products out as the fibres are, and clear those of sums; or add such sums up (`after`). */
static void bbn_fibre_pack(const bbn_fibre_state *s, const int64_t *step, int64_t n_ops, int after) {
    for (int64_t j = 0; j < n_ops; j++, step += step[1]) {
        const int64_t depth = step[8], *dims = step + 9 + 2 * step[4] + 2 * step[5];
        double *operand, *packed = s->packed + step[7];
        if (!depth || (after && step[0] != ADD) || !(operand = bbn_fibre_operand(s, step))) continue;
        if (after) {
            bbn_accumulate(operand, packed, depth, dims, dims + depth);
        } else if (step[0] != ADD) {
            bbn_multiply(packed, 0, operand, 1.0, depth, dims, dims + depth);
        } else {
            int64_t size = 1;
            for (int64_t k = 0; k < depth; k++) size *= dims[k];
            memset(packed, 0, size * sizeof(double));
        }
    }
}

/* f: slot, where its numbers lie, fibres, length, region, left, keep, n_ops, steps; a step: kind, words, buffer, offset,
   n_e, depth, list, packed, depth of packing, moves, dims, strides, dims and strides of packing. How many cells were gone
   through. */
static int64_t bbn_fibres(const bbn_fibre_state *s, const int64_t *f) {
    const int64_t slot = f[0], length = f[3], left = f[5], keep = f[6], n_ops = f[7];
    const int64_t block = BLOCK / length;
    const int32_t *numbers = left == BASE ? s->base_ids + f[1] : left == WORK ? s->work_ids + f[1] : 0;
    const double *stored = left == BASE ? s->base + f[4] : left == WORK ? s->work + f[4] : 0;
    const int64_t count = left == BASE ? s->base_counts[slot] : left == WORK ? s->work_counts[slot] : f[2];
    int64_t written = 0;
    bbn_fibre_pack(s, f + 8, n_ops, 0);
    for (int64_t start = 0; start < count; start += block) {
        int64_t n = count - start < block ? count - start : block;
        const double *own = stored ? stored + start * length : 0;
        double *target = keep ? s->work + f[4] + written * length : s->cells;
        const int64_t *step = f + 8;
        int settled = 0;
        for (int64_t k = 0; k < n; k++) {
            s->ids[k] = numbers ? numbers[start + k] : (int32_t)(start + k);
            s->from[k] = (int32_t)k;
            s->scale[k] = 1.0;
        }
        for (int64_t j = 0; j < n_ops && n; j++, step += step[1]) {
            const int64_t depth = step[5];
            const int64_t *dims = step + 9 + 2 * step[4], *steps = dims + depth;
            const int32_t *offsets = s->lists + step[6];
            double *operand;
            if (step[0] == MASK) {
                if (s->possible) n = bbn_fibre_mask(s, n, offsets);
                continue;
            }
            operand = bbn_fibre_operand(s, step);
            if (!operand) continue;
            if (step[8]) operand = s->packed + step[7];
            if (step[0] != ADD && depth == 1 && steps[0] == 0) { /* the same all over a fibre; these come first */
                n = bbn_fibre_scale(s, n, operand, offsets);
                continue;
            }
            if (step[0] != ADD) {
                n = bbn_fibre_multiply(s, target, own, settled, operand, offsets, n, length, depth, dims, steps);
            } else {
                if (!settled) bbn_fibre_settle(s, target, own, n, length);
                bbn_fibre_add(s, operand, target, offsets, n, length, depth, dims, steps);
            }
            settled = 1;
        }
        if (keep) {
            if (!settled) bbn_fibre_settle(s, target, own, n, length);
            memcpy(s->work_ids + f[1] + written, s->ids, n * sizeof(int32_t));
        }
        written += n;
    }
    if (keep) s->work_counts[slot] = written;
    bbn_fibre_pack(s, f + 8, n_ops, 1);
    return count * length * n_ops;
}

#endif
