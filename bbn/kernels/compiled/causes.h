/* Families of many causes, for Gibbs sampling: see `contracts/causes.py` for the arrays.
 *
 * The effects of the leaves of a family are joined in a binary tree, node k of nodes 2k and 2k + 1, the leaves last: to
 * take a leaf out or put it in costs the way to the root. Nothing is ever divided or subtracted, so nothing drifts, and
 * what is impossible stays exactly zero. Sums are whole numbers, kept as they are.
 */
#ifndef BBN_CAUSES_H
#define BBN_CAUSES_H
#include <stdint.h>

typedef struct {
    const int64_t *term_ptr, *family, *member_ptr, *member, *effect, *shown;
    const int64_t *kind, *size, *child, *seen, *level, *leaf_ptr, *column, *row;
    const double *effects;
    const int64_t *numbers, *levels;
    int64_t n_families;
    int64_t *tree;    /* where the nodes of each family begin, in the nodes of one chain */
    double *nodes;    /* of all chains */
    int64_t *sums;    /* of each family, of all chains */
    int64_t n_nodes;  /* doubles of one chain */
} bbn_causes;

/* The stronger of two effects: P(=y) = a(y) b(<=y) + a(<y) b(y), P(<=y) = a(<=y) b(<=y). */
static inline void bbn_join(double *restrict out, const double *a, const double *b, int64_t size) {
    double below = 0.0;
    for (int64_t y = 0; y < size; y++) {
        out[y] = a[y] * b[size + y] + below * b[y];
        below = a[size + y];
        out[size + y] = below * b[size + y];
    }
}

static inline double *bbn_tree(const bbn_causes *c, int64_t f, int64_t chain) {
    return c->nodes + chain * c->n_nodes + c->tree[f];
}

/* Put an effect in the place of a leaf, and join anew what is above it. */
static inline void bbn_put(const bbn_causes *c, int64_t f, int64_t chain, int64_t leaf, const double *effect) {
    int64_t size = c->size[f], n = c->leaf_ptr[f + 1] - c->leaf_ptr[f], width = 2 * size;
    double *tree = bbn_tree(c, f, chain);
    int64_t k = n + leaf - c->leaf_ptr[f];
    for (int64_t y = 0; y < width; y++) tree[k * width + y] = effect[y];
    for (k >>= 1; k >= 1; k >>= 1) bbn_join(tree + k * width, tree + 2 * k * width, tree + (2 * k + 1) * width, size);
}

static inline int64_t bbn_number(const bbn_causes *c, int64_t leaf, int64_t code) {
    return c->numbers[c->row[leaf] + code];
}

static inline const double *bbn_effect(const bbn_causes *c, int64_t f, int64_t leaf, int64_t code) {
    return c->effects + c->row[leaf] + code * 2 * c->size[f];
}

/* All that a family has from the codes of one chain; `code` gives a column's. */
static inline void bbn_fill_leaf(const bbn_causes *c, int64_t f, int64_t chain, int64_t leaf, int64_t code) {
    if (c->kind[f]) {
        c->sums[chain * c->n_families + f] += bbn_number(c, leaf, code);
        return;
    }
    int64_t size = c->size[f], n = c->leaf_ptr[f + 1] - c->leaf_ptr[f], width = 2 * size;
    double *to = bbn_tree(c, f, chain) + (n + leaf - c->leaf_ptr[f]) * width;
    const double *from = bbn_effect(c, f, leaf, code);
    for (int64_t y = 0; y < width; y++) to[y] = from[y];
}

static inline void bbn_fill_rest(const bbn_causes *c, int64_t f, int64_t chain) {
    if (c->kind[f]) return;
    int64_t size = c->size[f], n = c->leaf_ptr[f + 1] - c->leaf_ptr[f], width = 2 * size;
    double *tree = bbn_tree(c, f, chain);
    for (int64_t k = n - 1; k >= 1; k--)
        bbn_join(tree + k * width, tree + 2 * k * width, tree + (2 * k + 1) * width, size);
}

/* Take a leaf of a term out. */
static inline void bbn_take_out(const bbn_causes *c, int64_t f, int64_t chain, int64_t leaf, int64_t code,
                                const double *none) {
    if (c->kind[f]) c->sums[chain * c->n_families + f] -= bbn_number(c, leaf, code);
    else bbn_put(c, f, chain, leaf, none);
}

static inline void bbn_put_back(const bbn_causes *c, int64_t f, int64_t chain, int64_t leaf, int64_t code) {
    if (c->kind[f]) c->sums[chain * c->n_families + f] += bbn_number(c, leaf, code);
    else bbn_put(c, f, chain, leaf, bbn_effect(c, f, leaf, code));
}

/* Multiply the weights of a move's joint states by what a term says of them, its leaves taken out; `code` is the
 * child's. Small weights are scaled by a power of two, so that many terms do not vanish. */
static inline void bbn_weigh(const bbn_causes *c, int64_t t, int64_t chain, int64_t code, double *weights,
                             int64_t n_states) {
    int64_t f = c->family[t], size = c->size[f], shown = c->shown[t];
    double top = 0.0;
    if (c->kind[f]) {
        int64_t rest = c->sums[chain * c->n_families + f];
        for (int64_t j = 0; j < n_states; j++) {
            int64_t value = rest + c->numbers[c->effect[t] + j];
            int64_t wanted = shown >= 0 ? c->levels[shown + j] : c->child[f] >= 0 ? code : c->seen[f];
            if (value < 0 || value >= size || c->levels[c->level[f] + value] != wanted) weights[j] = 0.0;
            if (weights[j] > top) top = weights[j];
        }
    } else {
        const double *rest = bbn_tree(c, f, chain) + 2 * size;
        int64_t level = c->child[f] < 0 ? c->seen[f] : shown >= 0 ? 0 : c->levels[c->level[f] + code];
        for (int64_t j = 0; j < n_states; j++) {
            const double *effect = c->effects + c->effect[t] + j * 2 * size;
            int64_t y = shown >= 0 ? c->levels[shown + j] : level;
            double below = y ? rest[size + y - 1] : 0.0;
            weights[j] *= rest[y] * effect[size + y] + below * effect[y];
            if (weights[j] > top) top = weights[j];
        }
    }
    if (top > 0.0 && top < 0x1p-500)
        for (int64_t j = 0; j < n_states; j++) weights[j] *= 0x1p500;
}
#endif
