// Run a tape on wide numbers, one evidence at a time; see `tape`. Plain loops: this is the way of last resort.
//
// Numbers never leave their range here, so the instructions that scale (RESCALE, NORM) do nothing.

#ifndef BBN_WIDE_TAPE_H
#define BBN_WIDE_TAPE_H

#include <limits>

#include "tape.h"
#include "wide.h"

const int64_t WIDE_POLL = 1000000;

typedef int (*WidePoll)();

struct WideState {
    const double *tables;
    Wide *base;
    Wide *work;
    Wide *scratch;
    Wide *out;
    double *answer;
    int64_t *codes;
    const double **likelihoods;
    bool maximise;
    int64_t cells;
};

/* The cells of an operand, one by one, while a slab is walked in C order. */
struct WideWalk {
    const int64_t *dims, *steps;
    int64_t depth, at, counter[DEEPEST];

    WideWalk(int64_t depth_, const int64_t *dims_, const int64_t *steps_)
        : dims(dims_), steps(steps_), depth(depth_), at(0) {
        for (int64_t k = 0; k < depth; k++) counter[k] = 0;
    }
    void next() {
        for (int64_t k = depth - 1; k >= 0; k--) {
            at += steps[k];
            if (++counter[k] < dims[k]) return;
            at -= dims[k] * steps[k];
            counter[k] = 0;
        }
    }
};

static inline int64_t wide_shift(const int64_t *moves, int64_t count, const int64_t *codes) {
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) at += codes[moves[2 * k]] * moves[2 * k + 1];
    return at;
}

/* f: region, cells, left, keep, slabs, n_o, n_ops, outer dims, steps. */
static int wide_sweep(WideState &state, const int64_t *f, WidePoll poll) {
    const int64_t slabs = f[4], slab = f[1] / f[4], n_outer = f[5], n_ops = f[6];
    int64_t counter[DEEPEST] = {0};
    for (int64_t s = 0; s < slabs; s++) {
        Wide *target = f[3] ? state.work + f[0] + s * slab : state.scratch;
        const Wide *left = f[2] ? (f[2] == BASE ? state.base : state.work) + f[0] + s * slab : nullptr;
        for (int64_t i = 0; i < slab; i++) target[i] = left ? left[i] : Wide(1.0);
        const int64_t *step = f + 7 + n_outer;
        for (int64_t k = 0; k < n_ops; k++, step += step[1]) {
            // step: kind, length, buffer, offset, n_e, n_d, moves, outer strides, dims, strides
            const int64_t n_e = step[4], depth = step[5], *walk = step + 6 + 2 * n_e;
            int64_t offset = wide_shift(step + 6, n_e, state.codes);
            for (int64_t j = 0; j < n_outer; j++) offset += counter[j] * walk[j];
            walk += n_outer;
            WideWalk cell(depth, walk, walk + depth);
            if (step[0] == ADD) {
                Wide *sink = (step[2] == WORK ? state.work : state.out) + step[3] + offset;
                for (int64_t i = 0; i < slab; i++, cell.next()) {
                    Wide &sum = sink[cell.at];
                    if (!state.maximise) sum += target[i];
                    else if (sum < target[i]) sum = target[i];
                }
            } else if (step[0] == LIKELY || step[2] == TABLES) {
                const double *source = step[0] == LIKELY ? state.likelihoods[step[3]] : state.tables + step[3];
                if (source)
                    for (int64_t i = 0; i < slab; i++, cell.next()) target[i] *= Wide(source[offset + cell.at]);
            } else {
                const Wide *source = (step[2] == BASE ? state.base : state.work) + step[3] + offset;
                for (int64_t i = 0; i < slab; i++, cell.next()) target[i] *= source[cell.at];
            }
        }
        for (int64_t k = n_outer - 1; k >= 0; k--) {
            if (++counter[k] < f[7 + k]) break;
            counter[k] = 0;
        }
        state.cells += slab * (n_ops + 1);
        if (state.cells > WIDE_POLL) {
            state.cells = 0;
            if (poll() < 0) return -1;
        }
    }
    return 0;
}

/* The log of the total; -inf: it is zero; NaN: an answer is not a distribution; -2 also with a Python error set. */
static double wide_execute(WideState &state, const int64_t *tape, int64_t length, WidePoll poll) {
    const int64_t *end = tape + length;
    double logs = 0.0;
    for (; tape < end; tape += tape[1]) {
        const int64_t op = tape[0], *f = tape + 2;
        if (op == CLEAR) {
            for (int64_t i = 0; i < f[1]; i++) state.work[f[0] + i] = Wide();
        } else if (op == SWEEP) {
            if (wide_sweep(state, f, poll) < 0) return -2.0;
        } else if (op == SCALAR || op == TOTAL) {
            const Wide scale = op == TOTAL ? state.work[f[0]]
                                            : Wide(state.tables[f[0] + wide_shift(f + 2, f[1], state.codes)]);
            if (!positive(scale)) return -std::numeric_limits<double>::infinity();
            logs += log_of(scale);
        } else if (op == RATIO) {
            Wide *fresh = state.work + f[0], *message = state.work + f[1];
            const Wide *old = (f[3] == BASE ? state.base : state.work) + f[1];
            for (int64_t i = 0; i < f[2]; i++) {
                const Wide now = fresh[i], before = old[i];
                message[i] = now;
                fresh[i] = positive(before) ? now / before : Wide();
            }
        } else if (op == FINISH) {
            Wide total;
            for (int64_t i = 0; i < f[1]; i++) total += state.out[f[0] + i];
            if (!positive(total)) return std::numeric_limits<double>::quiet_NaN();
            for (int64_t i = 0; i < f[1]; i++) state.answer[f[0] + i] = narrow(state.out[f[0] + i] / total);
        }
    }
    return logs;
}

#endif
