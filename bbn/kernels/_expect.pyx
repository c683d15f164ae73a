# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The gradient of the log-likelihood in every table entry, row by row: the compiled twin of `expect_py`."""

import numpy as np

from libc.math cimport INFINITY, log
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc

cdef struct Tree:
    int64_t n_cliques
    const int64_t* axes_ptr
    const int64_t* axes
    const int64_t* cards
    const int64_t* n_factors
    const int64_t* n_children
    const int64_t* stream_ptr
    const int64_t* base
    const int64_t* stride_ptr
    const int64_t* strides


cdef int64_t room(const Tree* tree, const int32_t* row, int64_t* most) noexcept nogil:
    """The indices that one row needs, over all cliques and streams; `most` gets the cells."""
    cdef int64_t c, k, v, cells, indices = 0, total = 0
    for c in range(tree.n_cliques):
        cells = 1
        for k in range(tree.axes_ptr[c], tree.axes_ptr[c + 1]):
            v = tree.axes[k]
            if row[v] == tree.cards[v]:
                cells *= tree.cards[v]
        total += cells
        indices += cells * (tree.stream_ptr[c + 1] - tree.stream_ptr[c])
    most[0] = total
    return indices


cdef int64_t unfold(const Tree* tree, int64_t c, const int32_t* row, uint32_t* index) noexcept nogil:
    """The cells of clique c that agree with the row, last axis fastest, as one index per stream; how many they are.

    Stream s fills ``index[s * cells : (s + 1) * cells]``.
    """
    cdef int64_t first = tree.axes_ptr[c], depth = tree.axes_ptr[c + 1] - first, s0 = tree.stream_ptr[c]
    cdef int64_t n_streams = tree.stream_ptr[c + 1] - s0, cells = 1, s, j, v, a, k, m
    cdef uint32_t at, step
    cdef const int64_t* strides
    cdef uint32_t* out
    for j in range(depth):
        v = tree.axes[first + j]
        if row[v] == tree.cards[v]:
            cells *= tree.cards[v]
    for s in range(n_streams):
        out = index + s * cells
        strides = tree.strides + tree.stride_ptr[s0 + s]
        at = <uint32_t> tree.base[s0 + s]
        for j in range(depth):
            v = tree.axes[first + j]
            if row[v] != tree.cards[v]:
                at += <uint32_t> (row[v] * strides[j])
        out[0] = at
        if cells == 1:
            continue
        m = 1
        for j in range(depth - 1, -1, -1):
            v = tree.axes[first + j]
            if row[v] != tree.cards[v]:
                continue
            step = <uint32_t> strides[j]
            for a in range(1, tree.cards[v]):
                for k in range(m):
                    out[a * m + k] = out[k] + <uint32_t> a * step
            m *= tree.cards[v]
    return cells


def gradient_rows(const double[::1] shared, const int32_t[:, ::1] codes, const double[::1] weights, tree_arrays,
                  double[::1] gradient, double[::1] logs, const double[:, ::1] row_tables=None,
                  double[:, ::1] row_gradient=None):
    """See `expect_py.gradient_rows`."""
    cdef const int64_t[::1] axes_ptr = tree_arrays.axes_ptr, axes = tree_arrays.axes, cards = tree_arrays.cards
    cdef const int64_t[::1] n_factors = tree_arrays.n_factors, n_children = tree_arrays.n_children
    cdef const int64_t[::1] stream_ptr = tree_arrays.stream_ptr, base = tree_arrays.base
    cdef const int64_t[::1] stride_ptr = tree_arrays.stride_ptr, strides = tree_arrays.strides
    cdef const int64_t[::1] separators = tree_arrays.separator
    cdef int64_t n_rows = codes.shape[0], n_cliques = n_factors.shape[0], r, c, i, k, g, s, cells, runs, run
    cdef int64_t most = 0, wide = 0, need, count, widest = 1, depth
    cdef Tree tree
    if n_rows == 0 or n_cliques == 0:
        return
    # The tables that all rows share, then those of the row at hand; and likewise their gradient.
    cdef int64_t n_shared = shared.shape[0], n_own = 0 if row_tables is None else row_tables.shape[1]
    cdef double[::1] tables = np.concatenate([shared, np.zeros(n_own + 1)])
    cdef double[::1] slope = np.zeros(n_shared + n_own + 1)
    tree.n_cliques = n_cliques
    tree.axes_ptr, tree.axes, tree.cards = &axes_ptr[0], &axes[0], &cards[0]
    tree.n_factors, tree.n_children = &n_factors[0], &n_children[0]
    tree.stream_ptr, tree.base, tree.stride_ptr, tree.strides = &stream_ptr[0], &base[0], &stride_ptr[0], &strides[0]
    with nogil:
        for r in range(n_rows):
            need = room(&tree, &codes[r, 0], &count)
            wide = max(wide, need)
            most = max(most, count)
        for c in range(n_cliques):
            widest = max(widest, stream_ptr[c + 1] - stream_ptr[c])
    cdef double[::1] up = np.zeros(tree_arrays.message_size + 1), down = np.zeros(tree_arrays.message_size + 1)
    cdef uint32_t* index = <uint32_t*> malloc(wide * sizeof(uint32_t))
    cdef double* values = <double*> malloc(most * sizeof(double))
    cdef int64_t* starts = <int64_t*> malloc((n_cliques + 1) * sizeof(int64_t))
    cdef int64_t* offsets = <int64_t*> malloc((n_cliques + 1) * sizeof(int64_t))
    cdef int64_t* sizes = <int64_t*> malloc((n_cliques + 1) * sizeof(int64_t))
    cdef double* terms = <double*> malloc((widest + 1) * sizeof(double))
    cdef double* after = <double*> malloc((widest + 2) * sizeof(double))
    cdef uint32_t* own
    cdef uint32_t* streams
    cdef double* cell
    cdef double total, product, scale, before, value, inverse, log_sum
    cdef int64_t nf, nc, n_terms, at, place
    cdef const int32_t* row
    cdef bint possible
    if index == NULL or values == NULL or starts == NULL or offsets == NULL or sizes == NULL or terms == NULL \
            or after == NULL:
        free(index); free(values); free(starts); free(offsets); free(sizes); free(terms); free(after)
        raise MemoryError
    with nogil:
        for r in range(n_rows):
            row = &codes[r, 0]
            for i in range(n_own):
                tables[n_shared + i] = row_tables[r, i]
            log_sum = 0.0
            product = 1.0
            possible = True
            at = 0
            place = 0
            # Collect: each clique sums its product over all but the separator, and hands that to its parent.
            for c in range(n_cliques - 1, -1, -1):
                streams = index + place
                cells = unfold(&tree, c, row, streams)
                cell = values + at
                starts[c], offsets[c], sizes[c] = at, place, cells
                nf, nc = n_factors[c], n_children[c]
                at += cells
                place += cells * (stream_ptr[c + 1] - stream_ptr[c])
                for k in range(cells):
                    value = 1.0
                    for s in range(nf):
                        value *= tables[streams[s * cells + k]]
                    for s in range(nf, nf + nc):
                        value *= up[streams[s * cells + k]]
                    cell[k] = value
                total = 0.0
                if separators[c] < 0:
                    for k in range(cells):
                        total += cell[k]
                else:
                    runs = 1
                    for i in range(axes_ptr[c], axes_ptr[c] + separators[c]):
                        if row[axes[i]] == cards[axes[i]]:
                            runs *= cards[axes[i]]
                    run = cells // runs
                    own = streams + (nf + nc) * cells
                    for g in range(runs):
                        value = 0.0
                        for k in range(g * run, (g + 1) * run):
                            value += cell[k]
                        up[own[g * run]] = value
                        total += value
                    inverse = 1.0 / total if total > 0.0 else 0.0
                    for g in range(runs):
                        up[own[g * run]] *= inverse
                if not total > 0.0:
                    possible = False
                    break
                product *= total
                if product < 1e-150 or product > 1e150:
                    log_sum += log(product)
                    product = 1.0
            if not possible:
                logs[r] = -INFINITY
                continue
            logs[r] = log_sum + log(product)
            if weights[r] == 0.0:
                continue
            # Distribute: each term's share is the product of all the others.
            for c in range(n_cliques):
                cells = sizes[c]
                cell = values + starts[c]
                streams = index + offsets[c]
                nf, nc = n_factors[c], n_children[c]
                n_terms = nf + nc
                total = 0.0
                if separators[c] >= 0:
                    own = streams + n_terms * cells
                    runs = 1
                    for i in range(axes_ptr[c], axes_ptr[c] + separators[c]):
                        if row[axes[i]] == cards[axes[i]]:
                            runs *= cards[axes[i]]
                    run = cells // runs
                    for g in range(runs):
                        total += down[own[g * run]]
                    inverse = 1.0 / total
                    total = 0.0
                    for g in range(runs):
                        down[own[g * run]] *= inverse
                        value = down[own[g * run]]
                        for k in range(g * run, (g + 1) * run):
                            total += cell[k] * value
                else:
                    own = NULL
                    for k in range(cells):
                        total += cell[k]
                scale = weights[r] / total
                for s in range(nf, n_terms):
                    for k in range(cells):
                        down[streams[s * cells + k]] = 0.0
                for k in range(cells):
                    after[n_terms] = down[own[k]] if own != NULL else 1.0
                    for s in range(n_terms - 1, -1, -1):
                        terms[s] = tables[streams[s * cells + k]] if s < nf else up[streams[s * cells + k]]
                        after[s] = after[s + 1] * terms[s]
                    before = 1.0
                    for s in range(n_terms):
                        value = before * after[s + 1]
                        if s < nf:
                            slope[streams[s * cells + k]] += scale * value
                        else:
                            down[streams[s * cells + k]] += value
                        before *= terms[s]
            for i in range(n_own):
                row_gradient[r, i] = slope[n_shared + i]
                slope[n_shared + i] = 0.0
        for i in range(n_shared):
            gradient[i] += slope[i]
    free(index); free(values); free(starts); free(offsets); free(sizes); free(terms); free(after)
