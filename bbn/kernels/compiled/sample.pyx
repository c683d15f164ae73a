# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sampling, compiled: see `moves` for the arrays and `pure.sample` for the same in numpy."""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport ldexp, log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from bbn.kernels.contracts.causes import NO_CAUSES, STRONGEST, check_causes
from bbn.kernels.contracts.seen import NO_SEEN, check_seen

from bbn.kernels.compiled.watch cimport POLL_CELLS, poll

cdef extern from "numpy/random/bitgen.h":
    ctypedef struct bitgen_t:
        void* state
        uint64_t (*next_uint64)(void*) noexcept nogil

cdef extern from "causes.h":
    ctypedef struct bbn_causes:
        const int64_t* term_ptr
        const int64_t* family
        const int64_t* member_ptr
        const int64_t* member
        const int64_t* effect
        const int64_t* shown
        const int64_t* kind
        const int64_t* size
        const int64_t* child
        const int64_t* seen
        const int64_t* level
        const int64_t* leaf_ptr
        const int64_t* column
        const int64_t* row
        const double* effects
        const int64_t* numbers
        const int64_t* levels
        int64_t n_families
        int64_t* tree
        double* nodes
        int64_t* sums
        int64_t n_nodes
    void bbn_fill_leaf(bbn_causes* c, int64_t f, int64_t chain, int64_t leaf, int64_t code) noexcept nogil
    void bbn_fill_rest(bbn_causes* c, int64_t f, int64_t chain) noexcept nogil
    void bbn_take_out(bbn_causes* c, int64_t f, int64_t chain, int64_t leaf, int64_t code, double* none) noexcept nogil
    void bbn_put_back(bbn_causes* c, int64_t f, int64_t chain, int64_t leaf, int64_t code) noexcept nogil
    void bbn_weigh(bbn_causes* c, int64_t t, int64_t chain, int64_t code, double* weights, int64_t n) noexcept nogil

cdef enum:
    CHUNK = 1024  # as in `moves`
    MOST_STATES = 1 << 30

cdef double BLIND = 0.1  # as in `seen`

ctypedef fused code_t:
    uint8_t
    uint16_t

ctypedef fused bits_t:
    int32_t
    int64_t


cdef bitgen_t* generator(bit_generator) except NULL:
    return <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


cdef inline void fill(bitgen_t* g, bits_t* bits, int64_t n) noexcept nogil:
    """n numbers of 31 bits, the low half of a word first, or of 53; room for one more is needed."""
    cdef int64_t i
    cdef uint64_t word
    if bits_t is int32_t:
        for i in range(0, n, 2):
            word = g.next_uint64(g.state)
            bits[i] = <int32_t> (<uint32_t> word >> 1)
            bits[i + 1] = <int32_t> (word >> 33)
    else:
        for i in range(n):
            bits[i] = <int64_t> (g.next_uint64(g.state) >> 11)


cdef inline void locate(uint32_t* row, const code_t* codes, int64_t ld, const int64_t* columns,
                        const int64_t* strides, int64_t n_columns, int64_t n) noexcept nogil:
    """The sum of codes times strides, of at least one column."""
    cdef int64_t i, k
    cdef const code_t* a = codes + columns[0] * ld
    cdef const code_t* b
    cdef const code_t* c
    cdef uint32_t s = <uint32_t> strides[0], t, w
    if n_columns == 1:
        for i in range(n):
            row[i] = a[i] * s
        return
    b = codes + columns[1] * ld
    t = <uint32_t> strides[1]
    if n_columns == 2:
        for i in range(n):
            row[i] = a[i] * s + b[i] * t
        return
    c = codes + columns[2] * ld
    w = <uint32_t> strides[2]
    for i in range(n):
        row[i] = a[i] * s + b[i] * t + c[i] * w
    for k in range(3, n_columns):
        a = codes + columns[k] * ld
        s = <uint32_t> strides[k]
        for i in range(n):
            row[i] += a[i] * s


cdef inline uint32_t bisect(bits_t u, const bits_t* t, uint32_t n) noexcept nogil:
    """The number of the n ascending thresholds that u exceeds."""
    cdef uint32_t low = 0, half
    while n > 0:
        half = n >> 1
        if u > t[low + half]:
            low += half + 1
            n -= half + 1
        else:
            n = half
    return low


cdef inline void draw(const bits_t* u, const uint32_t* row, bint rooted, const bits_t* t, uint32_t size,
                      uint32_t* state, int64_t n) noexcept nogil:
    """The number of thresholds of its row that each u exceeds; `rooted` means that there is one row only."""
    cdef int64_t i
    cdef uint32_t j, width = size - 1
    cdef const bits_t* r
    cdef bits_t t0 = t[0], t1, t2
    if rooted:
        if width == 1:
            for i in range(n):
                state[i] = u[i] > t0
        elif width == 2:
            t1 = t[1]
            for i in range(n):
                state[i] = <uint32_t> (u[i] > t0) + <uint32_t> (u[i] > t1)
        else:
            for i in range(n):
                state[i] = bisect(u[i], t, width)
    elif width == 1:
        for i in range(n):
            state[i] = u[i] > t[row[i]]
    elif width == 2:
        for i in range(n):
            r = t + 2 * <uint64_t> row[i]
            state[i] = <uint32_t> (u[i] > r[0]) + <uint32_t> (u[i] > r[1])
    elif width == 3:
        for i in range(n):
            r = t + 3 * <uint64_t> row[i]
            state[i] = <uint32_t> (u[i] > r[0]) + <uint32_t> (u[i] > r[1]) + <uint32_t> (u[i] > r[2])
    elif width <= 8:
        for i in range(n):
            r = t + <uint64_t> width * row[i]
            state[i] = 0
            for j in range(width):
                state[i] += u[i] > r[j]
    else:
        for i in range(n):
            state[i] = bisect(u[i], t + <uint64_t> width * row[i], width)


cdef enum:
    ABSENT = -1  # the highest code of a column that was not looked at yet


cdef int64_t highest(code_t[:, :] codes, int64_t column, int64_t[::1] known) except -1:
    """The highest code of a column; looked for once."""
    cdef int64_t i
    cdef code_t top = 0
    if not 0 <= column < codes.shape[0]:
        raise ValueError(f"expected columns from 0 to {codes.shape[0] - 1}, found {column}")
    if known[column] == ABSENT:
        for i in range(codes.shape[1]):
            top = codes[column, i] if codes[column, i] > top else top
        known[column] = top
    return known[column]


cdef int64_t furthest(code_t[:, :] codes, int64_t[::1] known, const int64_t[::1] ptr, const int64_t[::1] columns,
                      const int64_t[::1] strides, int64_t i) except -1:
    """The largest sum of codes times strides of entry i of a ragged list; it must fit 32 bits."""
    cdef int64_t k
    cdef double total = 0.0
    for k in range(ptr[i], ptr[i + 1]):
        if strides[k] < 0:
            raise ValueError(f"strides: expected 0 or more, found {strides[k]}")
        total += <double> highest(codes, columns[k], known) * <double> strides[k]
    if total >= 4294967296.0:
        raise ValueError(f"an index of {total:.3g} is past 32 bits")
    return <int64_t> total


cdef int check_ragged(const int64_t[::1] ptr, int64_t n, int64_t size, int64_t others, str what) except -1:
    """Raise ValueError unless n + 1 offsets go from 0 to the size that two arrays have."""
    cdef int64_t i
    if ptr.shape[0] != n + 1 or ptr[0] != 0 or ptr[n] != size or size != others:
        raise ValueError(f"{what}: expected {n + 1} offsets from 0 to {size}, and as many entries, found {others}")
    for i in range(n):
        if ptr[i + 1] < ptr[i]:
            raise ValueError(f"{what}: offsets fall from {ptr[i]} to {ptr[i + 1]}")
    return 0


cdef int check_groups(code_t[:, :] codes, int64_t[::1] known, groups, int64_t n_cells) except -1:
    """Raise ValueError unless each cell that a row can fall in is there."""
    cdef const int64_t[::1] ptr = groups.ptr, members = groups.members, strides = groups.strides
    cdef const int64_t[::1] offset = groups.offset
    cdef int64_t g, last
    check_ragged(ptr, offset.shape[0], members.shape[0], strides.shape[0], "groups")
    for g in range(offset.shape[0]):
        last = offset[g] + furthest(codes, known, ptr, members, strides, g)
        if offset[g] < 0 or last >= n_cells:
            raise ValueError(f"group {g}: expected cells from 0 to {n_cells - 1}, found {offset[g]} to {last}")
    return 0


cdef int check_table(int64_t start, int64_t rows, int64_t width, int64_t size, int64_t i) except -1:
    """Raise ValueError unless the table holds all the rows asked for, from `start` on."""
    if start < 0 or start + rows * width > size:
        raise ValueError(f"move {i}: expected {rows} rows of {width} from {start} on, found {size} entries")
    return 0


cdef int check_moves(code_t[:, :] codes, moves, int64_t n_thresholds, int64_t n_weights, int64_t[::1] n_rows) except -1:
    """Raise ValueError unless every move stays inside its arrays whatever it draws; see `move_checks.check_moves`."""
    cdef const int64_t[::1] member = moves.member, size = moves.size, table = moves.table, weight = moves.weight
    cdef const int64_t[::1] ptr = moves.parent_ptr, parents = moves.parents, strides = moves.strides
    cdef int64_t n = member.shape[0], i, rows
    cdef int64_t[::1] known = np.full(codes.shape[0], ABSENT, np.int64)
    if size.shape[0] != n or table.shape[0] != n or weight.shape[0] != n:
        raise ValueError(f"moves: expected {n} sizes, tables and weights")
    check_ragged(ptr, n, parents.shape[0], strides.shape[0], "parents")
    for i in range(n):
        if not 1 <= size[i] <= MOST_STATES or not -1 <= member[i] < codes.shape[0]:
            raise ValueError(f"move {i}: {size[i]} states of column {member[i]}")
        n_rows[i] = rows = 1 + furthest(codes, known, ptr, parents, strides, i)
        if size[i] > 1:
            check_table(table[i], rows, size[i] - 1, n_thresholds, i)
        if weight[i] >= 0:
            check_table(weight[i], rows, size[i], n_weights, i)
        if member[i] >= 0:
            known[member[i]] = size[i] - 1
    return 0


cdef class Looking:
    """The observed effects that a run looks at, with room for what is left of them in a chunk of rows."""

    cdef const int64_t[::1] term_ptr, effect, bring, share, turn
    cdef const double[::1] start, brings, shares, chance
    cdef const double[:, ::1] reach
    cdef double[::1] left, hopes, ratios, guess, before
    cdef int64_t n_effects, n_leaders

    def __init__(self, moves, seen, rows):
        check_seen(moves, seen, rows)
        self.term_ptr, self.effect, self.bring, self.share, self.turn = seen[:5]
        self.start, self.brings, self.shares, self.chance, self.reach = seen[5:]
        self.n_effects, self.n_leaders = len(seen.start) // 2, len(seen.turn)
        widest = int(moves.size.max(initial=1))
        self.left = np.empty(max(1, 2 * self.n_effects * CHUNK))
        self.hopes = np.empty(max(1, self.n_leaders * CHUNK))
        self.ratios = np.empty(max(1, self.n_leaders * widest * CHUNK))
        self.guess, self.before = np.empty(widest * CHUNK), np.empty(max(CHUNK, widest))

    cdef void begin(self, int64_t n) noexcept nogil:
        """What is left of each effect, and what each leader leaves to hope for, before the first draw."""
        cdef int64_t f, k, j
        cdef double hope
        for f in range(2 * self.n_effects):
            for k in range(n):
                self.left[f * CHUNK + k] = self.start[f]
        for j in range(self.n_leaders):
            hope = 1.0
            for f in range(self.n_effects):
                hope *= self.start[2 * f + 1] + self.start[2 * f] * self.reach[j, f]
            for k in range(n):
                self.hopes[j * CHUNK + k] = hope

    cdef int64_t look(self, int64_t i, int64_t size, int64_t n) noexcept nogil:
        """Guess what each state of move i leaves to hope for; the first leader that comes later."""
        cdef int64_t first = 0, j, k, s, t
        cdef double reach, effect, weight, none_yet = 1.0
        cdef double* guess = &self.guess[0]
        cdef double* before = &self.before[0]
        cdef double* ratio
        cdef const double* below
        cdef const double* at
        cdef const double* hopes
        cdef const double* bring
        while first < self.n_leaders and self.turn[first] <= i:
            first += 1
        for k in range(size * CHUNK):
            guess[k] = 0.0 if first < self.n_leaders else 1.0
        for j in range(first, self.n_leaders):
            ratio = &self.ratios[j * size * CHUNK]
            for k in range(n):
                before[k] = 1.0
            for s in range(size):
                for k in range(n):
                    ratio[s * CHUNK + k] = 1.0
            for t in range(self.term_ptr[i], self.term_ptr[i + 1]):
                below = &self.left[2 * self.effect[t] * CHUNK]
                at = below + CHUNK
                reach = self.reach[j, self.effect[t]]
                bring = &self.brings[self.bring[t]]
                for k in range(n):
                    before[k] *= at[k] + below[k] * reach
                for s in range(size):
                    effect = bring[2 * s + 1] + bring[2 * s] * reach
                    for k in range(n):
                        ratio[s * CHUNK + k] *= at[k] + below[k] * effect
            weight = none_yet * self.chance[j]
            none_yet *= 1.0 - self.chance[j]
            hopes = &self.hopes[j * CHUNK]
            for k in range(n):
                before[k] = 1.0 / before[k]
            for s in range(size):
                for k in range(n):
                    ratio[s * CHUNK + k] *= before[k]
                    guess[s * CHUNK + k] += weight * hopes[k] * ratio[s * CHUNK + k]
        return first

    cdef void draw(self, int64_t i, const int64_t* bits, const uint32_t* row, int64_t size, uint32_t* state,
                   double* log_weight, int64_t n) noexcept nogil:
        """The states drawn: as `pure.sample._draw_looking`. `row` is NULL where there is one row of shares."""
        cdef int64_t first = self.look(i, size, n), k, s, t, j
        cdef const double* shares
        cdef const double* bring
        cdef double* guess = &self.guess[0]
        cdef double* sums = &self.before[0]
        cdef double* left
        cdef double total, whole, level, factor
        for k in range(n):
            shares = &self.shares[self.share[i] + (<int64_t> row[k] * size if row != NULL else 0)]
            total = 0.0
            whole = 0.0
            for s in range(size):
                total += shares[s]
                whole += shares[s] * guess[s * CHUNK + k]
            factor = (1.0 - BLIND) * total / whole if whole > 0.0 else 0.0
            level = 0.0
            for s in range(size):
                guess[s * CHUNK + k] = guess[s * CHUNK + k] * factor + BLIND if whole > 0.0 else 1.0
                level += shares[s] * guess[s * CHUNK + k]
                sums[s] = level
            level = ldexp(<double> bits[k], -53) * sums[size - 1]
            s = 0
            while s < size - 1 and sums[s] <= level:
                s += 1
            state[k] = <uint32_t> s
            log_weight[k] -= log(guess[s * CHUNK + k])
        for j in range(first, self.n_leaders):
            for k in range(n):
                self.hopes[j * CHUNK + k] *= self.ratios[(j * size + state[k]) * CHUNK + k]
        for t in range(self.term_ptr[i], self.term_ptr[i + 1]):
            bring = &self.brings[self.bring[t]]
            left = &self.left[2 * self.effect[t] * CHUNK]
            for k in range(n):
                left[CHUNK + k] += left[k] * bring[2 * state[k] + 1]
                left[k] *= bring[2 * state[k]]

    cdef void end(self, int64_t n, double* weight) noexcept nogil:
        """Weigh by the probability of each effect."""
        cdef int64_t f, k
        for f in range(self.n_effects):
            for k in range(n):
                weight[k] += log(self.left[(2 * f + 1) * CHUNK + k])


def forward(bit_generator, moves, code_t[:, :] codes, double[::1] log_weight, seen=NO_SEEN):
    """See `pure.sample.forward`."""
    if moves.thresholds.dtype.itemsize == 4:
        _forward[code_t, int32_t](bit_generator, moves, codes, log_weight, moves.thresholds, seen)
    else:
        _forward[code_t, int64_t](bit_generator, moves, codes, log_weight, moves.thresholds, seen)


cdef _forward(bit_generator, moves, code_t[:, :] codes, double[::1] log_weight, const bits_t[::1] thresholds, seen):
    cdef bitgen_t* g = generator(bit_generator)
    cdef const int64_t[::1] member = moves.member, size = moves.size, table = moves.table, weight = moves.weight
    cdef const int64_t[::1] ptr = moves.parent_ptr, parents = moves.parents, strides = moves.strides
    cdef const double[::1] log_weights = moves.log_weights
    cdef int64_t n_moves = member.shape[0], n_rows = codes.shape[1], ld = codes.strides[0] // sizeof(code_t)
    cdef int64_t start = 0, n, i, k, n_parents, done = 0
    cdef bits_t bits[CHUNK + 2]
    cdef uint32_t row[CHUNK]
    cdef uint32_t state[CHUNK]
    cdef const double* w
    cdef double* total
    cdef code_t* block
    cdef code_t* column
    cdef uint32_t s
    cdef int64_t wide[CHUNK]
    cdef int64_t[::1] rows = np.empty(n_moves, np.int64)
    cdef bint looks = len(seen.term_ptr) > 0, own
    cdef Looking looking
    if n_rows == 0 or n_moves == 0:
        return
    if n_rows > 1 and codes.strides[1] != sizeof(code_t):
        raise ValueError("each column of codes must be contiguous")
    check_moves(codes, moves, thresholds.shape[0], log_weights.shape[0], rows)
    if looks:
        looking = Looking(moves, seen, np.asarray(rows))
    for i in range(n_moves):
        if (looks or weight[i] >= 0) and log_weight.shape[0] != n_rows:
            raise ValueError(f"log_weight: expected length {n_rows}, found {log_weight.shape[0]}")
    with nogil:
        while start < n_rows:
            n = min(<int64_t> CHUNK, n_rows - start)
            block = &codes[0, 0] + start
            if looks:
                looking.begin(n)
            for i in range(n_moves):
                n_parents = ptr[i + 1] - ptr[i]
                if n_parents:
                    locate(row, block, ld, &parents[ptr[i]], &strides[ptr[i]], n_parents, n)
                own = looks and looking.term_ptr[i] < looking.term_ptr[i + 1]
                if own:
                    fill(g, wide, n)
                    looking.draw(i, wide, row if n_parents else NULL, size[i], state, &log_weight[start], n)
                elif size[i] > 1:
                    fill(g, bits, n)
                    draw(bits, row, n_parents == 0, &thresholds[table[i]], <uint32_t> size[i], state, n)
                if member[i] >= 0:
                    column = block + member[i] * ld
                    if size[i] > 1:
                        for k in range(n):
                            column[k] = <code_t> state[k]
                    else:
                        for k in range(n):
                            column[k] = 0
                if weight[i] >= 0:
                    w = &log_weights[weight[i]]
                    total = &log_weight[start]
                    s = <uint32_t> size[i]
                    if n_parents == 0:
                        for k in range(n):
                            row[k] = 0
                    if s == 1:
                        for k in range(n):
                            total[k] += w[row[k]]
                    else:
                        for k in range(n):
                            total[k] += w[<uint64_t> row[k] * s + state[k]]
            if looks:
                looking.end(n, &log_weight[start])
                done += n * looking.effect.shape[0] * (1 + looking.n_leaders)
            start += n
            done += n * n_moves
            if done > POLL_CELLS:
                done = 0
                poll()


cdef inline void add(double* cell, double w, double square) noexcept nogil:
    cell[0] += w
    cell[1] += square


def accumulate(code_t[:, ::1] codes, groups, const double[::1] weights, double[:, ::1] sums):
    """See `pure.sample.accumulate`. Four groups at a time: neighbouring additions meet different cells."""
    cdef const int64_t[::1] ptr = groups.ptr, members = groups.members, strides = groups.strides
    cdef const int64_t[::1] offset = groups.offset
    cdef int64_t n_groups = offset.shape[0], n_rows = weights.shape[0], ld = codes.shape[1]
    cdef int64_t start = 0, n, i, g, k
    cdef double square
    cdef const double* w
    cdef double* s
    cdef const code_t* a
    cdef const code_t* b
    cdef const code_t* c
    cdef const code_t* d
    cdef const code_t* block
    cdef double* sa
    cdef double* sb
    cdef double* sc
    cdef double* sd
    cdef uint32_t cell[CHUNK]
    if codes.shape[1] != n_rows or sums.shape[1] != 2:
        raise ValueError(f"expected {codes.shape[1]} weights and 2 sums, found {n_rows} and {sums.shape[1]}")
    if n_rows == 0 or n_groups == 0:
        return
    check_groups[code_t](codes, np.full(codes.shape[0], ABSENT, np.int64), groups, sums.shape[0])
    s = &sums[0, 0]
    with nogil:
        while start < n_rows:
            n = min(<int64_t> CHUNK, n_rows - start)
            w = &weights[start]
            block = &codes[0, 0] + start
            g = 0
            while g < n_groups:
                if g + 4 <= n_groups and ptr[g + 4] - ptr[g] == 4:  # one column each
                    k = ptr[g]
                    a = block + members[k] * ld
                    b = block + members[k + 1] * ld
                    c = block + members[k + 2] * ld
                    d = block + members[k + 3] * ld
                    sa = s + 2 * offset[g]
                    sb = s + 2 * offset[g + 1]
                    sc = s + 2 * offset[g + 2]
                    sd = s + 2 * offset[g + 3]
                    for i in range(n):
                        square = w[i] * w[i]
                        add(sa + 2 * a[i], w[i], square)
                        add(sb + 2 * b[i], w[i], square)
                        add(sc + 2 * c[i], w[i], square)
                        add(sd + 2 * d[i], w[i], square)
                    g += 4
                    continue
                sa = s + 2 * offset[g]
                if ptr[g] == ptr[g + 1]:
                    for i in range(n):
                        cell[i] = 0
                else:
                    locate(cell, block, ld, &members[ptr[g]], &strides[ptr[g]], ptr[g + 1] - ptr[g], n)
                for i in range(n):
                    add(sa + 2 * <int64_t> cell[i], w[i], w[i] * w[i])
                g += 1
            start += n


cdef int check_sweep(code_t[:, :] codes, sweep, groups, int64_t n_thresholds, int64_t n_cells) except -1:
    """Raise ValueError unless every move of a sweep stays inside its arrays; see `move_checks.check_sweep`."""
    cdef const int64_t[::1] member_ptr = sweep.member_ptr, members = sweep.members
    cdef const int64_t[::1] decode_ptr = sweep.decode_ptr, decode = sweep.decode
    cdef const int64_t[::1] size = sweep.size, table = sweep.table
    cdef const int64_t[::1] ptr = sweep.parent_ptr, parents = sweep.parents, strides = sweep.strides
    cdef const int64_t[::1] factor_ptr = sweep.factor_ptr, offset = sweep.offset, shift = sweep.shift
    cdef const int64_t[::1] scope_ptr = sweep.scope_ptr, scope = sweep.scope, scope_strides = sweep.scope_strides
    cdef const int64_t[::1] shifts = sweep.shifts
    cdef int64_t n = size.shape[0], n_values = len(sweep.values), i, k, j, f, top, last
    cdef int64_t[::1] known = np.full(codes.shape[0], ABSENT, np.int64)
    check_ragged(member_ptr, n, members.shape[0], decode_ptr.shape[0], "members")
    check_ragged(ptr, n, parents.shape[0], strides.shape[0], "parents")
    check_ragged(factor_ptr, n, offset.shape[0], shift.shape[0], "factors")
    check_ragged(scope_ptr, offset.shape[0], scope.shape[0], scope_strides.shape[0], "scopes")
    if table.shape[0] != n:
        raise ValueError(f"table: expected length {n}, found {table.shape[0]}")
    for i in range(n):  # whatever is drawn is at most the highest code that a block can give
        if not 1 <= size[i] <= MOST_STATES:
            raise ValueError(f"move {i}: {size[i]} states")
        for k in range(member_ptr[i], member_ptr[i + 1]):
            top = highest(codes, members[k], known)
            if decode_ptr[k] < 0 or decode_ptr[k] + size[i] > decode.shape[0]:
                raise ValueError(f"move {i}: expected {size[i]} codes from {decode_ptr[k]} on")
            for j in range(decode_ptr[k], decode_ptr[k] + size[i]):
                if not 0 <= decode[j] <= <code_t> -1:
                    raise ValueError(f"move {i}: {decode[j]} is not a code")
                top = max(top, decode[j])
            known[members[k]] = top
    for i in range(n):
        if table[i] >= 0:
            last = furthest(codes, known, ptr, parents, strides, i)
            check_table(table[i], 1 + last, size[i] - 1, n_thresholds, i)
            continue
        for f in range(factor_ptr[i], factor_ptr[i + 1]):
            if shift[f] < 0 or shift[f] + size[i] > shifts.shape[0]:
                raise ValueError(f"factor {f}: expected {size[i]} shifts from {shift[f]} on")
            last = 0
            for j in range(shift[f], shift[f] + size[i]):
                if shifts[j] < 0:
                    raise ValueError(f"factor {f}: a shift of {shifts[j]}")
                last = max(last, shifts[j])
            last += furthest(codes, known, scope_ptr, scope, scope_strides, f)
            check_table(offset[f], 1 + last, 1, n_values, i)
    if n_cells >= 0:
        check_groups(codes, known, groups, n_cells)
    return 0


def gibbs(bit_generator, sweep, code_t[:, ::1] codes, int64_t n_sweeps, groups, int64_t[:, ::1] counts,
          causes=NO_CAUSES):
    """See `pure.sample.gibbs`."""
    if sweep.thresholds.dtype.itemsize == 4:
        _gibbs[code_t, int32_t](bit_generator, sweep, codes, n_sweeps, groups, counts, causes, sweep.thresholds)
    else:
        _gibbs[code_t, int64_t](bit_generator, sweep, codes, n_sweeps, groups, counts, causes, sweep.thresholds)


cdef inline const int64_t* address(const int64_t[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


cdef class Families:
    """The causes that a run knows, with room for what it keeps of each chain."""

    cdef bbn_causes c
    cdef object causes, room, numbers
    cdef double[::1] none

    def __init__(self, codes, causes):
        cdef bbn_causes* c = &self.c
        cdef const double[::1] effects = causes.effects
        cdef int64_t[::1] tree
        cdef double[::1] nodes
        cdef int64_t[::1] sums
        self.causes = causes
        c.term_ptr, c.family = address(causes.term_ptr), address(causes.family)
        c.member_ptr, c.member = address(causes.member_ptr), address(causes.member)
        c.effect, c.shown = address(causes.effect), address(causes.shown)
        c.kind, c.size, c.child = address(causes.kind), address(causes.size), address(causes.child)
        c.seen, c.level, c.leaf_ptr = address(causes.seen), address(causes.level), address(causes.leaf_ptr)
        c.column, c.row = address(causes.column), address(causes.row)
        c.numbers, c.levels = address(causes.numbers), address(causes.levels)
        c.effects = &effects[0] if effects.shape[0] else NULL
        c.n_families = len(causes.kind)
        widths = np.where(causes.kind == STRONGEST, 4 * causes.size * np.diff(causes.leaf_ptr), 0)
        starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        c.n_nodes = int(widths.sum())
        self.room = (starts, np.zeros(max(1, codes.shape[1] * c.n_nodes)))
        self.numbers = np.zeros(max(1, codes.shape[1] * c.n_families), np.int64)
        none = np.zeros(2 * int(causes.size[causes.kind == STRONGEST].max(initial=1)))
        self.none = none
        tree, nodes, sums = starts, self.room[1], self.numbers
        c.tree, c.nodes, c.sums = &tree[0], &nodes[0], &sums[0]


cdef void start(bbn_causes* c, code_t* block, int64_t n_chains) noexcept nogil:
    """What all families have from the codes."""
    cdef int64_t f, leaf, chain, code
    for f in range(c.n_families):
        for chain in range(n_chains):
            for leaf in range(c.leaf_ptr[f], c.leaf_ptr[f + 1]):
                code = block[c.column[leaf] * n_chains + chain] if c.column[leaf] >= 0 else 0
                bbn_fill_leaf(c, f, chain, leaf, code)
            bbn_fill_rest(c, f, chain)


cdef inline void weigh(bbn_causes* c, int64_t i, code_t* block, int64_t n_chains, int64_t chain, double* none,
                       double* weights, int64_t n_states) noexcept nogil:
    """Multiply the weights of move i by what its terms say; its leaves are taken out."""
    cdef int64_t t, k, f, y, leaf, code
    for t in range(c.term_ptr[i], c.term_ptr[i + 1]):
        f = c.family[t]
        if not c.kind[f]:
            for y in range(c.size[f]):
                none[y] = 0.0
                none[c.size[f] + y] = 1.0
            none[0] = 1.0
        for k in range(c.member_ptr[t], c.member_ptr[t + 1]):
            leaf = c.member[k]
            bbn_take_out(c, f, chain, leaf, block[c.column[leaf] * n_chains + chain], none)
        code = block[c.child[f] * n_chains + chain] if c.child[f] >= 0 else 0
        bbn_weigh(c, t, chain, code, weights, n_states)


cdef inline void put_back(bbn_causes* c, int64_t i, code_t* block, int64_t n_chains, int64_t chain) noexcept nogil:
    """Put the leaves of move i back, as the codes are now."""
    cdef int64_t t, k, leaf
    for t in range(c.term_ptr[i], c.term_ptr[i + 1]):
        for k in range(c.member_ptr[t], c.member_ptr[t + 1]):
            leaf = c.member[k]
            bbn_put_back(c, c.family[t], chain, leaf, block[c.column[leaf] * n_chains + chain])


cdef _gibbs(bit_generator, sweep, code_t[:, ::1] codes, int64_t n_sweeps, groups, int64_t[:, ::1] counts,
            causes, const bits_t[::1] thresholds):
    cdef bitgen_t* g = generator(bit_generator)
    cdef const int64_t[::1] member_ptr = sweep.member_ptr, members = sweep.members
    cdef const int64_t[::1] decode_ptr = sweep.decode_ptr, decode = sweep.decode
    cdef const int64_t[::1] size = sweep.size, table = sweep.table
    cdef const int64_t[::1] ptr = sweep.parent_ptr, parents = sweep.parents, strides = sweep.strides
    cdef const int64_t[::1] factor_ptr = sweep.factor_ptr, offset = sweep.offset, shift = sweep.shift
    cdef const int64_t[::1] scope_ptr = sweep.scope_ptr, scope = sweep.scope, scope_strides = sweep.scope_strides
    cdef const int64_t[::1] shifts = sweep.shifts
    cdef const double[::1] values = sweep.values
    cdef const int64_t[::1] group_ptr = groups.ptr, grouped = groups.members, group_strides = groups.strides
    cdef const int64_t[::1] group_offset = groups.offset
    cdef int64_t n_moves = size.shape[0], n_chains = codes.shape[1], n_groups = group_offset.shape[0]
    cdef int64_t i, k, c, j, f, base, cell, repeat, room = 1
    cdef int64_t wide[2]
    cdef double* weights = NULL
    cdef double level, running
    cdef bits_t bits[CHUNK + 2]
    cdef uint32_t row[CHUNK]
    cdef uint32_t state[CHUNK]
    cdef code_t* block
    cdef code_t* column
    cdef int64_t n_cells = counts.shape[1]
    cdef bint counting = n_cells > 0, single = True, caused = len(causes.term_ptr) > 0
    cdef int64_t* tally = NULL
    cdef Families families
    cdef bbn_causes* c_causes = NULL
    cdef double* none = NULL
    check_sweep[code_t](codes, sweep, groups, thresholds.shape[0], n_cells if counting else -1)
    check_causes(np.asarray(codes), sweep, causes)
    if caused:
        families = Families(codes, causes)
        c_causes, none = &families.c, &families.none[0]
    if counting and counts.shape[0] != n_chains:
        raise ValueError(f"counts: expected {n_chains} chains, found {counts.shape[0]}")
    if counting and n_chains:
        tally = &counts[0, 0]
    for f in range(n_groups):
        single = single and group_ptr[f + 1] - group_ptr[f] == 1
    if n_chains > CHUNK:
        raise ValueError(f"at most {CHUNK} chains run together")
    if n_chains == 0:
        return
    for i in range(n_moves):
        room = max(room, size[i])
    weights = <double*> malloc(room * sizeof(double))
    if weights == NULL:
        raise MemoryError
    block = &codes[0, 0] if codes.shape[0] else NULL
    with nogil:
        if caused:
            start(c_causes, block, n_chains)
        for repeat in range(n_sweeps):
            for i in range(n_moves):
                if table[i] >= 0:
                    k = ptr[i + 1] - ptr[i]
                    if k:
                        locate(row, block, n_chains, &parents[ptr[i]], &strides[ptr[i]], k, n_chains)
                    fill(g, bits, n_chains)
                    draw(bits, row, k == 0, &thresholds[table[i]], <uint32_t> size[i], state, n_chains)
                    for k in range(member_ptr[i], member_ptr[i + 1]):
                        column = block + members[k] * n_chains
                        for c in range(n_chains):
                            column[c] = <code_t> decode[decode_ptr[k] + state[c]]
                    continue
                for c in range(n_chains):
                    fill(g, wide, 1)
                    for j in range(size[i]):
                        weights[j] = 1.0
                    for f in range(factor_ptr[i], factor_ptr[i + 1]):
                        base = offset[f]
                        for k in range(scope_ptr[f], scope_ptr[f + 1]):
                            base += codes[scope[k], c] * scope_strides[k]
                        for j in range(size[i]):
                            weights[j] *= values[base + shifts[shift[f] + j]]
                    if caused:
                        weigh(c_causes, i, block, n_chains, c, none, weights, size[i])
                    for j in range(1, size[i]):
                        weights[j] += weights[j - 1]
                    running = weights[size[i] - 1]
                    if running > 0:
                        level = ldexp(<double> wide[0], -53) * running
                        j = 0
                        while j < size[i] - 1 and weights[j] <= level:
                            j += 1
                        for k in range(member_ptr[i], member_ptr[i + 1]):
                            codes[members[k], c] = <code_t> decode[decode_ptr[k] + j]
                    if caused:
                        put_back(c_causes, i, block, n_chains, c)
            if counting:
                if single:
                    for f in range(n_groups):
                        column = block + grouped[f] * n_chains
                        for c in range(n_chains):
                            tally[c * n_cells + group_offset[f] + column[c]] += 1
                    continue
                for c in range(n_chains):
                    for f in range(n_groups):
                        cell = group_offset[f]
                        for k in range(group_ptr[f], group_ptr[f + 1]):
                            cell += codes[grouped[k], c] * group_strides[k]
                        counts[c, cell] += 1
    free(weights)
