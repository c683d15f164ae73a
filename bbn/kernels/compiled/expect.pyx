# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The gradient of the log-likelihood in every table entry, row by row: the compiled twin of `pure.expect`.

Rows are worked on in doubles; if the processor's flags tell that a number left their range, all of them again in wide
numbers.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t

from bbn.kernels.compiled.arrays cimport check_offsets
from bbn.kernels.compiled.watch cimport bbn_mode, bbn_range_begin, bbn_range_end, bbn_range_left, poll

ctypedef int (*Poll)() except -1 nogil


cdef extern from "wide.h":
    cdef cppclass Wide:
        Wide()


cdef extern from "gradient.h":
    cdef cppclass Tree:
        int64_t n_cliques
        const int64_t* axes_ptr
        const int64_t* axes
        const int64_t* cards
        const int64_t* separators
        const int64_t* n_factors
        const int64_t* n_children
        const int64_t* stream_ptr
        const int64_t* base
        const int64_t* stride_ptr
        const int64_t* strides
    cdef cppclass Scratch[Cell]:
        Cell* up
        Cell* down
        Cell* values
        Cell* terms
        Cell* after
        uint32_t* index
        int64_t* starts
        int64_t* offsets
        int64_t* sizes
        int64_t* runs
        int64_t* code
        int64_t* width
        int64_t* open
    cdef cppclass Job:
        int64_t n_rows
        int64_t n_columns
        int64_t n_shared
        int64_t n_own
        int64_t row_indices
        bint counts
        const int32_t* codes
        const double* weights
        const double* row_tables
        double* tables
        double* slope
        double* logs
        double* row_gradient
    int64_t unknown_code(const int32_t* codes, int64_t rows, int64_t columns, const int64_t* cards) noexcept nogil
    void read_row(const int32_t* row, int64_t columns, const int64_t* cards, int64_t* code,
                  int64_t* width) noexcept nogil
    int64_t room(const Tree& tree, const int64_t* width, int64_t* cells) noexcept nogil
    int follow_plain "follow<double>"(const Tree& tree, const Job& job, Scratch[double]& own,
                                      Poll poll) except -1 nogil
    int follow_wide "follow<Wide>"(const Tree& tree, const Job& job, Scratch[Wide]& own, Poll poll) except -1 nogil


cdef int check_tree(tree, int64_t n_entries) except -1:
    """Raise ValueError unless the tree's arrays fit one another, its tables and its messages."""
    cdef const int64_t[::1] axes_ptr = tree.axes_ptr, axes = tree.axes, cards = tree.cards
    cdef const int64_t[::1] n_factors = tree.n_factors, n_children = tree.n_children
    cdef const int64_t[::1] stream_ptr = tree.stream_ptr, base = tree.base, separators = tree.separator
    cdef const int64_t[::1] stride_ptr = tree.stride_ptr, strides = tree.strides
    cdef int64_t n = n_factors.shape[0], c, s, k, depth, room, last, streams
    if axes_ptr.shape[0] != n + 1 or stream_ptr.shape[0] != n + 1 or n_children.shape[0] != n \
            or separators.shape[0] != n or stride_ptr.shape[0] != base.shape[0] + 1:
        raise ValueError(f"tree: expected arrays for {n} cliques and {base.shape[0]} streams")
    check_offsets(tree.axes_ptr, axes.shape[0], "axes_ptr")
    check_offsets(tree.stream_ptr, base.shape[0], "stream_ptr")
    check_offsets(tree.stride_ptr, strides.shape[0], "stride_ptr")
    for k in range(cards.shape[0]):
        if cards[k] < 1:
            raise ValueError(f"variable {k} has {cards[k]} states, expected at least 1")
    for k in range(axes.shape[0]):
        if not 0 <= axes[k] < cards.shape[0]:
            raise ValueError(f"axes: expected variables from 0 to {cards.shape[0] - 1}, found {axes[k]}")
    for c in range(n):
        depth, streams = axes_ptr[c + 1] - axes_ptr[c], n_factors[c] + n_children[c] + (separators[c] >= 0)
        if n_factors[c] < 0 or n_children[c] < 0 or not -1 <= separators[c] <= depth \
                or stream_ptr[c + 1] - stream_ptr[c] != streams:
            raise ValueError(f"clique {c}: {stream_ptr[c + 1] - stream_ptr[c]} streams, {separators[c]} axes shared")
        for s in range(stream_ptr[c], stream_ptr[c + 1]):
            if stride_ptr[s + 1] - stride_ptr[s] != depth:
                raise ValueError(f"stream {s}: expected {depth} strides, found {stride_ptr[s + 1] - stride_ptr[s]}")
            room = n_entries if s < stream_ptr[c] + n_factors[c] else tree.message_size
            last = base[s]
            for k in range(depth):
                if not 0 <= strides[stride_ptr[s] + k] <= room:
                    raise ValueError(f"stream {s}: a stride of {strides[stride_ptr[s] + k]}")
                last += (cards[axes[axes_ptr[c] + k]] - 1) * strides[stride_ptr[s] + k]
            if base[s] < 0 or last >= room:
                raise ValueError(f"stream {s}: expected entries from 0 to {room - 1}, found {base[s]} to {last}")
    return 0


def gradient_rows(const double[::1] shared, const int32_t[:, ::1] codes, const double[::1] weights, tree_arrays,
                  double[::1] gradient, double[::1] logs, const double[:, ::1] row_tables=None,
                  double[:, ::1] row_gradient=None, bint counts=False):
    """See `pure.expect.gradient_rows`."""
    cdef const int64_t[::1] axes_ptr = tree_arrays.axes_ptr, axes = tree_arrays.axes, cards = tree_arrays.cards
    cdef const int64_t[::1] n_factors = tree_arrays.n_factors, n_children = tree_arrays.n_children
    cdef const int64_t[::1] stream_ptr = tree_arrays.stream_ptr, base = tree_arrays.base
    cdef const int64_t[::1] stride_ptr = tree_arrays.stride_ptr, strides = tree_arrays.strides
    cdef const int64_t[::1] separators = tree_arrays.separator
    cdef int64_t n_cliques = n_factors.shape[0], r, c, i, most = 1, indices = 1, need, count, widest = 1, deepest = 0
    cdef int64_t message_size = tree_arrays.message_size
    cdef int64_t wrong
    cdef int left_range
    cdef Job job
    cdef Tree tree
    cdef bbn_mode mode
    job.n_rows, job.n_columns = codes.shape[0], codes.shape[1]
    check_tree(tree_arrays, shared.shape[0] + (0 if row_tables is None else row_tables.shape[1]))
    if job.n_columns != cards.shape[0] or weights.shape[0] != job.n_rows or logs.shape[0] != job.n_rows:
        raise ValueError(f"expected {job.n_rows} weights and logs, and {cards.shape[0]} columns of codes")
    if gradient.shape[0] != shared.shape[0]:
        raise ValueError(f"gradient: expected length {shared.shape[0]}, found {gradient.shape[0]}")
    if row_tables is not None:
        if row_gradient is None or row_tables.shape[0] != job.n_rows:
            raise ValueError(f"row_tables: expected {job.n_rows} rows, and a gradient of each")
        if row_gradient.shape[0] != job.n_rows or row_gradient.shape[1] != row_tables.shape[1]:
            raise ValueError("row_gradient: expected the shape of row_tables")
    if job.n_rows == 0 or n_cliques == 0:
        return
    job.codes = &codes[0, 0]
    with nogil:
        wrong = unknown_code(job.codes, job.n_rows, job.n_columns, &cards[0])
    if wrong >= 0:
        r, i = wrong // job.n_columns, wrong % job.n_columns
        raise ValueError(f"row {r}: variable {i} has no code {codes[r, i]}")
    # The tables that all rows share, then those of the row at hand; and likewise their gradient.
    job.n_shared, job.n_own = shared.shape[0], 0 if row_tables is None else row_tables.shape[1]
    cdef double[::1] tables = np.concatenate([shared, np.zeros(job.n_own + 1)])
    cdef double[::1] slope = np.zeros(job.n_shared + job.n_own + 1)
    job.weights, job.tables, job.slope, job.logs = &weights[0], &tables[0], &slope[0], &logs[0]
    if job.n_own:
        job.row_tables, job.row_gradient = &row_tables[0, 0], &row_gradient[0, 0]
    tree.n_cliques = n_cliques
    tree.axes_ptr, tree.axes, tree.cards, tree.separators = &axes_ptr[0], &axes[0], &cards[0], &separators[0]
    tree.n_factors, tree.n_children = &n_factors[0], &n_children[0]
    tree.stream_ptr, tree.base, tree.stride_ptr, tree.strides = &stream_ptr[0], &base[0], &stride_ptr[0], &strides[0]
    for c in range(n_cliques):
        widest = max(widest, stream_ptr[c + 1] - stream_ptr[c])
        deepest = max(deepest, axes_ptr[c + 1] - axes_ptr[c])
    cdef int64_t[::1] places = np.empty(4 * n_cliques + 2 * job.n_columns + deepest + 1, np.int64)
    cdef int64_t* code = &places[4 * n_cliques]
    cdef int64_t* width = code + job.n_columns
    with nogil:
        for r in range(job.n_rows):
            read_row(&codes[r, 0], job.n_columns, tree.cards, code, width)
            need = room(tree, width, &count)
            indices = max(indices, need)
            most = max(most, count)
    job.row_indices, job.counts = indices, counts
    cdef uint32_t[::1] index = np.empty(indices, np.uint32)
    cdef double[::1] cells = np.empty(2 * message_size + most + 2 * widest + 2)
    cdef double[::1] wide_cells
    cdef Scratch[double] plain
    cdef Scratch[Wide] wide
    plain.index = wide.index = &index[0]
    plain.starts = wide.starts = &places[0]
    plain.offsets = wide.offsets = plain.starts + n_cliques
    plain.sizes = wide.sizes = plain.offsets + n_cliques
    plain.runs = wide.runs = plain.sizes + n_cliques
    plain.code, plain.width, plain.open = code, width, width + job.n_columns
    wide.code, wide.width, wide.open = code, width, width + job.n_columns
    plain.up = &cells[0]
    plain.down = plain.up + message_size
    plain.values = plain.down + message_size
    plain.terms = plain.values + most
    plain.after = plain.terms + widest
    mode = bbn_range_begin()
    try:
        with nogil:
            left_range = follow_plain(tree, job, plain, poll)
    finally:
        bbn_range_end(mode)
    if left_range:
        need = 2 * cells.shape[0]  # a wide number is a double and its exponent
        cells = np.empty(0)  # the plain numbers go first
        wide_cells = np.empty(need)
        wide.up = <Wide*> &wide_cells[0]
        wide.down = wide.up + message_size
        wide.values = wide.down + message_size
        wide.terms = wide.values + most
        wide.after = wide.terms + widest
        slope[:] = 0.0
        mode = bbn_range_begin()
        try:
            with nogil:
                follow_wide(tree, job, wide, poll)
        finally:
            bbn_range_end(mode)
    for i in range(job.n_shared):
        gradient[i] += slope[i]
