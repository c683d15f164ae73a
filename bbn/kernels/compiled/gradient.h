// One row's part of the gradient of the log-likelihood, on doubles or on wide numbers; see `pure.expect`.

#ifndef BBN_GRADIENT_H
#define BBN_GRADIENT_H

#include <limits>

#include "range.h"
#include "wide.h"

#if defined(__GNUC__)
#define BBN_HOT __attribute__((always_inline)) /* calls cost a tenth where cliques have a few cells */
#else
#define BBN_HOT
#endif

struct Tree {
    int64_t n_cliques;
    const int64_t *axes_ptr, *axes, *cards, *separators, *n_factors, *n_children, *stream_ptr, *base, *stride_ptr,
        *strides;
};

typedef int (*Poll)();
struct Stopped {}; /* thrown with a Python error set */

/* Lets signals in now and then; flags that the processor has set by then are kept. */
struct Pace {
    Poll poll;
    int64_t done = 0;
    bool left_range = false;

    static const int64_t EVERY = 4000000; /* indices */

    void spend(int64_t indices) {
        done += indices;
        if (done < EVERY) return;
        done = 0;
        left_range |= bbn_range_left();
        if (poll() < 0) throw Stopped();
        bbn_range_begin();
    }
    static const int64_t STRETCH = 65536; /* cells of a clique between two looks */
};

/* The memory of one row at a time. `code` and `width` are the row itself, per variable: its code and 1 where it is
   observed, 0 and the number of its states where it is missing. */
template <class Cell> struct Scratch {
    Cell *up, *down, *values, *terms, *after;
    uint32_t *index;
    int64_t *starts, *offsets, *sizes, *runs, *code, *width, *open;
};

/* The place of the first code that is neither a state's nor that of what is missing, or -1. */
static int64_t unknown_code(const int32_t *codes, int64_t rows, int64_t columns, const int64_t *cards) {
    for (int64_t r = 0; r < rows; r++) {
        const int32_t *row = codes + r * columns;
        int wrong = 0;
        for (int64_t i = 0; i < columns; i++) wrong |= (uint32_t) row[i] > (uint64_t) cards[i];
        for (int64_t i = 0; wrong && i < columns; i++)
            if ((uint32_t) row[i] > (uint64_t) cards[i]) return r * columns + i;
    }
    return -1;
}

/* Sets `code` and `width` to those of a row. */
static void read_row(const int32_t *row, int64_t columns, const int64_t *cards, int64_t *code, int64_t *width) {
    for (int64_t v = 0; v < columns; v++) {
        const bool missing = row[v] == cards[v];
        code[v] = missing ? 0 : row[v];
        width[v] = missing ? cards[v] : 1;
    }
}

/* The indices that one row needs, over all cliques and streams; `cells` gets their cells. */
static int64_t room(const Tree &tree, const int64_t *width, int64_t *cells) {
    int64_t indices = 0;
    *cells = 0;
    for (int64_t c = 0; c < tree.n_cliques; c++) {
        int64_t own = 1;
        for (int64_t k = tree.axes_ptr[c]; k < tree.axes_ptr[c + 1]; k++) own *= width[tree.axes[k]];
        *cells += own;
        indices += own * (tree.stream_ptr[c + 1] - tree.stream_ptr[c]);
    }
    return indices;
}

/* The cells of clique c that agree with the row, last axis fastest, as one index per stream; how many they are.
   Stream s fills index[s * cells : (s + 1) * cells]. Of a single cell the children's streams are left out: see
   `collect`. `runs` gets the cells of the separator. */
template <class Cell>
BBN_HOT static inline int64_t unfold(const Tree &tree, int64_t c, const Scratch<Cell> &own, uint32_t *index,
                                     int64_t *runs, Pace &pace) {
    const int64_t first = tree.axes_ptr[c], depth = tree.axes_ptr[c + 1] - first, s0 = tree.stream_ptr[c];
    const int64_t n_streams = tree.stream_ptr[c + 1] - s0, *axes = tree.axes + first;
    int64_t cells = 1, n_open = 0, j = 0;
    for (; j < tree.separators[c]; j++) {
        own.open[n_open] = j;
        n_open += own.width[axes[j]] > 1;
        cells *= own.width[axes[j]];
    }
    *runs = cells;
    for (; j < depth; j++) {
        own.open[n_open] = j;
        n_open += own.width[axes[j]] > 1;
        cells *= own.width[axes[j]];
    }
    for (int64_t s = 0; s < n_streams; s++) {
        if (cells == 1 && s == tree.n_factors[c]) s += tree.n_children[c];
        if (s == n_streams) break;
        uint32_t *out = index + s * cells;
        const int64_t *strides = tree.strides + tree.stride_ptr[s0 + s];
        int64_t at = tree.base[s0 + s];
        for (int64_t i = 0; i < depth; i++) at += own.code[axes[i]] * strides[i];
        out[0] = (uint32_t) at;
        int64_t m = 1;
        for (int64_t i = n_open - 1; i >= 0; i--) {
            const int64_t card = own.width[axes[own.open[i]]];
            const uint32_t step = (uint32_t) strides[own.open[i]];
            for (int64_t a = 1; a < card; a++)
                for (int64_t k = 0; k < m; k++) out[a * m + k] = out[k] + (uint32_t) a * step;
            m *= card;
            if (m > Pace::STRETCH) pace.spend(m);
        }
    }
    return cells;
}

/* Collect: each clique sums its product over all but the separator, and hands that to its parent. ln P(row).
   A message is scaled to a sum of 1, so one of a single cell is 1 and need not be read. */
template <class Cell>
double collect(const Tree &tree, const double *tables, Scratch<Cell> &own, Pace &pace) {
    Cell *const up = own.up, *const values = own.values;
    double log_sum = 0.0;
    Cell product = 1.0;
    int64_t at = 0, place = 0;
    for (int64_t c = tree.n_cliques - 1; c >= 0; c--) {
        uint32_t *streams = own.index + place;
        int64_t runs;
        const int64_t cells = unfold(tree, c, own, streams, &runs, pace), nf = tree.n_factors[c];
        const int64_t n_terms = nf + tree.n_children[c];
        Cell *cell = values + at;
        own.starts[c] = at, own.offsets[c] = place, own.sizes[c] = cells, own.runs[c] = runs;
        at += cells;
        place += cells * (tree.stream_ptr[c + 1] - tree.stream_ptr[c]);
        const uint32_t *mine = tree.separators[c] < 0 ? nullptr : streams + n_terms * cells;
        Cell total = 0.0;
        if (cells == 1) {
            total = 1.0;
            for (int64_t s = 0; s < nf; s++) total *= Cell(tables[streams[s]]);
            if (mine) up[mine[0]] = 1.0;
        } else {
            for (int64_t begin = 0; begin < cells; begin += Pace::STRETCH) {
                const int64_t end = cells - begin < Pace::STRETCH ? cells : begin + Pace::STRETCH;
                for (int64_t k = begin; k < end; k++) {
                    Cell value = 1.0;
                    for (int64_t s = 0; s < nf; s++) value *= Cell(tables[streams[s * cells + k]]);
                    for (int64_t s = nf; s < n_terms; s++) value *= up[streams[s * cells + k]];
                    cell[k] = value;
                }
                if (end < cells) pace.spend(n_terms * Pace::STRETCH);
            }
            if (runs == 1) {
                for (int64_t k = 0; k < cells; k++) total += cell[k];
                if (mine) up[mine[0]] = 1.0;
            } else {
                const int64_t run = cells / runs;
                for (int64_t g = 0; g < runs; g++) {
                    Cell value = 0.0;
                    for (int64_t k = g * run; k < (g + 1) * run; k++) value += cell[k];
                    up[mine[g * run]] = value;
                    total += value;
                }
                if (positive(total)) {
                    const Cell inverse = Cell(1.0) / total;
                    for (int64_t g = 0; g < runs; g++) up[mine[g * run]] *= inverse;
                }
            }
        }
        if (!positive(total)) return -std::numeric_limits<double>::infinity();
        product *= total;
        if (product < Cell(1e-150) || Cell(1e150) < product) {
            log_sum += log_of(product);
            product = 1.0;
        }
    }
    return log_sum + log_of(product);
}

/* A clique that distributes. */
template <class Cell> struct Share {
    int64_t cells, n_factors, n_terms;
    const uint32_t *streams, *mine;
    const Cell *cell;
    const double *tables;
    Cell scale;
};

/* Adds to the slope, and to the messages to the children, what each cell gives; without those of zero if they are
   `skipped`. */
template <bool skipped, class Cell>
BBN_HOT static inline void share_cells(const Share<Cell> &given, Scratch<Cell> &own, double *slope, Pace &pace) {
    const int64_t cells = given.cells, nf = given.n_factors, n_terms = given.n_terms;
    const uint32_t *streams = given.streams, *mine = given.mine;
    const double *tables = given.tables;
    const Cell *cell = given.cell, scale = given.scale;
    Cell *const up = own.up, *const down = own.down, *const terms = own.terms, *const after = own.after;
    for (int64_t begin = 0; begin < cells; begin += Pace::STRETCH) {
        const int64_t end = cells - begin < Pace::STRETCH ? cells : begin + Pace::STRETCH;
        for (int64_t k = begin; k < end; k++) {
            if (skipped && !positive(cell[k])) continue;
            after[n_terms] = mine ? down[mine[k]] : Cell(1.0);
            for (int64_t s = n_terms - 1; s >= 0; s--) {
                terms[s] = s < nf ? Cell(tables[streams[s * cells + k]]) : up[streams[s * cells + k]];
                after[s] = after[s + 1] * terms[s];
            }
            Cell before = 1.0;
            for (int64_t s = 0; s < n_terms; s++) {
                const Cell value = before * after[s + 1];
                if (s < nf) slope[streams[s * cells + k]] += narrow(scale * value);
                else down[streams[s * cells + k]] += value;
                before *= terms[s];
            }
        }
        if (end < cells) pace.spend(2 * n_terms * Pace::STRETCH);
    }
}

/* Whether so many cells are zero that looking for them pays. */
template <class Cell> static bool mostly_zero(const Cell *cell, int64_t cells) {
    int64_t some = 0;
    for (int64_t k = 0; k < cells; k++) some += positive(cell[k]);
    return 2 * some < cells;
}

/* Distribute: each term's share is the product of all the others; add the row's, times its weight, to the slope.
   Of a single cell that is the weight over the term itself, and its children need no message. Where only counts are
   asked for, cells of zero are left out: of the slopes that they change, the entry is zero, and of the messages, what
   these are multiplied by. */
template <class Cell>
void distribute(const Tree &tree, double weight, const double *tables, bool counts, Scratch<Cell> &own, double *slope,
                Pace &pace) {
    Cell *const down = own.down;
    for (int64_t c = 0; c < tree.n_cliques; c++) {
        const int64_t cells = own.sizes[c], runs = own.runs[c], nf = tree.n_factors[c];
        const int64_t n_terms = nf + tree.n_children[c];
        const Cell *cell = own.values + own.starts[c];
        const uint32_t *streams = own.index + own.offsets[c], *mine = nullptr;
        if (cells == 1) {
            for (int64_t s = 0; s < nf; s++) slope[streams[s]] += narrow(Cell(weight) / Cell(tables[streams[s]]));
            continue;
        }
        Cell total = 0.0;
        if (runs > 1) {
            mine = streams + n_terms * cells;
            const int64_t run = cells / runs;
            Cell sum = 0.0;
            for (int64_t g = 0; g < runs; g++) sum += down[mine[g * run]];
            const Cell inverse = Cell(1.0) / sum;
            for (int64_t g = 0; g < runs; g++) {
                const Cell value = down[mine[g * run]] *= inverse;
                for (int64_t k = g * run; k < (g + 1) * run; k++) total += cell[k] * value;
            }
        } else {
            for (int64_t k = 0; k < cells; k++) total += cell[k];
        }
        const Cell scale = Cell(weight) / total;
        for (int64_t s = nf; s < n_terms; s++)
            for (int64_t k = 0; k < cells; k++) down[streams[s * cells + k]] = 0.0;
        const Share<Cell> share{cells, nf, n_terms, streams, mine, cell, tables, scale};
        if (counts && mostly_zero(cell, cells))
            share_cells<true>(share, own, slope, pace);
        else
            share_cells<false>(share, own, slope, pace);
    }
}

/* Rows, and what they give. The tables that all rows share come first, then those of the row at hand; so do slopes. */
struct Job {
    int64_t n_rows, n_columns, n_shared, n_own;
    int64_t row_indices; /* the most that a row needs */
    bool counts; /* whether the slope of an entry of zero is of no use */
    const int32_t *codes;
    const double *weights, *row_tables;
    double *tables, *slope, *logs, *row_gradient;
};

/* Each row's log, and its part of the slope. 1: numbers left the range of a double; -1: with a Python error set. */
template <class Cell> int follow(const Tree &tree, const Job &job, Scratch<Cell> &own, Poll poll) {
    Pace pace;
    pace.poll = poll;
    try {
        for (int64_t r = 0; r < job.n_rows; r++) {
            const int32_t *row = job.codes + r * job.n_columns;
            for (int64_t i = 0; i < job.n_own; i++) job.tables[job.n_shared + i] = job.row_tables[r * job.n_own + i];
            read_row(row, job.n_columns, tree.cards, own.code, own.width);
            job.logs[r] = collect(tree, job.tables, own, pace);
            if (std::isinf(job.logs[r]) || job.weights[r] == 0.0) continue;
            distribute(tree, job.weights[r], job.tables, job.counts, own, job.slope, pace);
            for (int64_t i = 0; i < job.n_own; i++) {
                job.row_gradient[r * job.n_own + i] = job.slope[job.n_shared + i];
                job.slope[job.n_shared + i] = 0.0;
            }
            pace.spend(job.row_indices);
        }
    } catch (const Stopped &) {
        return -1;
    }
    return pace.left_range || bbn_range_left();
}

#endif
