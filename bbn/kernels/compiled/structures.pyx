# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Markov chains over structures: the compiled twin of `pure.structures`."""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int64_t

from bbn.kernels.compiled.watch cimport poll

from bbn.kernels.contracts.checks import check_walk

cdef enum:
    POLL_STEPS = 1 << 10

cdef double NEGLIGIBLE = -40.0


cdef struct Sets:
    const int64_t* ptr
    const int64_t* masks
    const double* scores
    int64_t n


def walk(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, int64_t[::1] parents,
         const double[:, ::1] uniforms, double reversals, int64_t every, double[:, ::1] arcs):
    """See `pure.structures.walk`."""
    check_walk(ptr.base, masks.base, scores.base, parents.base, uniforms.base, arcs.base)
    cdef Sets sets
    cdef int64_t k, j, mask, n = ptr.shape[0] - 1
    cdef double bit
    sets.ptr, sets.masks, sets.scores, sets.n = &ptr[0], &masks[0], &scores[0], n
    with nogil:
        for k in range(uniforms.shape[0]):
            if uniforms[k, 0] < reversals:
                turn(&sets, &parents[0], &uniforms[k, 0])
            else:
                j = <int64_t> (uniforms[k, 1] * n)
                redraw(&sets, &parents[0], j, uniforms[k, 2])
            if k % every == 0:
                for j in range(n):
                    mask = parents[j]
                    while mask:
                        arcs[lowest(mask), j] += 1.0
                        mask &= mask - 1
            if k % POLL_STEPS == 0:
                poll()


cdef void redraw(Sets* sets, int64_t* parents, int64_t i, double uniform) noexcept nogil:
    """New parents of i, given those of the others."""
    cdef double total
    cdef int64_t drawn = draw(sets, i, descendants(sets.n, parents, i), 0, uniform, &total)
    if drawn >= 0:
        parents[i] = drawn


cdef void turn(Sets* sets, int64_t* parents, const double* uniform) noexcept nogil:
    """Turn an arc i → j round, with new parents for both ends (Grzegorczyk & Husmeier 2008)."""
    cdef int64_t n_arcs = 0, chosen, i = 0, j, count, old_i, old_j, new_i, new_j, after
    cdef double there_i, there_j, back_i, back_j
    for j in range(sets.n):
        n_arcs += bits(parents[j])
    if n_arcs == 0:
        return
    chosen = <int64_t> (uniform[1] * n_arcs)
    j = 0
    count = bits(parents[0])
    while chosen >= count:
        chosen -= count
        j += 1
        count = bits(parents[j])
    old_j = parents[j]
    new_j = old_j
    while chosen:
        new_j &= new_j - 1
        chosen -= 1
    i = lowest(new_j)
    old_i = parents[i]
    parents[i] = 0
    parents[j] = 0
    new_i = draw(sets, i, descendants(sets.n, parents, i), <int64_t> 1 << j, uniform[2], &there_i)
    draw(sets, j, descendants(sets.n, parents, j), <int64_t> 1 << i, 0.0, &back_j)
    parents[j] = old_j
    draw(sets, i, descendants(sets.n, parents, i), 0, 0.0, &back_i)
    parents[j] = 0
    if new_i >= 0:
        parents[i] = new_i
        new_j = draw(sets, j, descendants(sets.n, parents, j), 0, uniform[3], &there_j)
        if new_j >= 0:
            after = n_arcs - bits(old_i) - bits(old_j) + bits(new_i) + bits(new_j)
            if log(1.0 - uniform[4]) < there_i + there_j - back_i - back_j + log(<double> n_arcs / after):
                parents[j] = new_j
                return
    parents[i] = old_i
    parents[j] = old_j


cdef int64_t draw(Sets* sets, int64_t i, int64_t without, int64_t having, double uniform,
                  double* total) noexcept nogil:
    """A parent set of i without some variables and having others, −1 if there is none, and ln of all their weights."""
    cdef int64_t k, first = -1, chosen = -1
    cdef double top = -INFINITY, weights = 0.0, left, share
    total[0] = -INFINITY
    for k in range(sets.ptr[i], sets.ptr[i + 1]):
        if sets.masks[k] & without == 0 and sets.masks[k] & having == having:
            if first < 0:
                first = k
                top = sets.scores[k]
                if top == -INFINITY:
                    return -1
            elif sets.scores[k] < top + NEGLIGIBLE:
                break
            weights += exp(sets.scores[k] - top)
    if first < 0:
        return -1
    total[0] = top + log(weights)
    left = uniform * weights
    for k in range(first, sets.ptr[i + 1]):
        if sets.masks[k] & without == 0 and sets.masks[k] & having == having:
            if sets.scores[k] < top + NEGLIGIBLE:
                break
            chosen = sets.masks[k]
            left -= exp(sets.scores[k] - top)
            if left < 0.0:
                break
    return chosen


cdef int64_t descendants(int64_t n, const int64_t* parents, int64_t i) noexcept nogil:
    """A variable and all that it leads to, as a mask."""
    cdef int64_t found = <int64_t> 1 << i, before = 0, j
    while found != before:
        before = found
        for j in range(n):
            if parents[j] & found:
                found |= <int64_t> 1 << j
    return found


cdef inline int64_t lowest(int64_t mask) noexcept nogil:
    cdef int64_t i = 0
    while not mask & 1:
        mask >>= 1
        i += 1
    return i


cdef inline int64_t bits(int64_t mask) noexcept nogil:
    cdef int64_t count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
