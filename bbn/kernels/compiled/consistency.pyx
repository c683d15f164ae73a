# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""States that cannot occur, and models without them: the compiled twin of `pure.consistency`."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t

from bbn.kernels.compiled.arrays cimport Arena, Words, check_length, check_offsets, check_range, ints_array, words_of
from bbn.kernels.compiled.tape cimport DEEPEST
from bbn.kernels.compiled.watch cimport POLL_CELLS, poll

cnp.import_array()


cdef struct Model:
    int64_t n
    int64_t n_factors
    Words state_ptr
    Words scope_ptr
    Words scope
    Words table_ptr


cdef int check_model(Model* model, state_ptr, scope_ptr, scope, table_ptr, int64_t entries, int64_t states) except -1:
    """Refuse arrays that do not fit one another; see `pure.consistency.check_model`."""
    cdef int64_t f, i, v, deepest = 0
    cdef double cells
    model.state_ptr, model.scope_ptr, model.scope = words_of(state_ptr), words_of(scope_ptr), words_of(scope)
    model.table_ptr = words_of(table_ptr)
    model.n, model.n_factors = cnp.PyArray_SIZE(state_ptr) - 1, cnp.PyArray_SIZE(scope_ptr) - 1
    check_offsets(state_ptr, states, "state_ptr")
    check_offsets(scope_ptr, cnp.PyArray_SIZE(scope), "scope_ptr")
    check_length(cnp.PyArray_SIZE(table_ptr), model.n_factors + 1, "table_ptr")
    check_offsets(table_ptr, entries, "table_ptr")
    check_range(model.scope, cnp.PyArray_SIZE(scope), 0, model.n, "scope")
    for f in range(model.n_factors):
        cells = 1.0
        for i in range(model.scope_ptr[f], model.scope_ptr[f + 1]):
            v = model.scope[i]
            cells *= model.state_ptr[v + 1] - model.state_ptr[v]
        deepest = max(deepest, model.scope_ptr[f + 1] - model.scope_ptr[f])
        if cells != model.table_ptr[f + 1] - model.table_ptr[f]:
            raise ValueError(f"table {f}: expected {cells:.15g} cells, found {model.table_ptr[f + 1] - model.table_ptr[f]}")
    if deepest > DEEPEST:
        raise ValueError(f"a factor has {deepest} axes, expected at most {DEEPEST}")
    return 0


cdef struct Walk:
    int64_t depth
    int64_t alive[DEEPEST]  # how many states of each axis are left
    int64_t first[DEEPEST]  # where their codes begin among `codes`
    int64_t stride[DEEPEST]
    int64_t at[DEEPEST]


cdef int64_t begin(Walk* walk, const Model* model, int64_t f, const uint8_t* domain, int64_t* codes) noexcept nogil:
    """The states that are left of each axis of a factor; how many cells they make, 0 if an axis has none."""
    cdef int64_t start = model.scope_ptr[f], j, v, s, step = 1, count = 0, cells = 1
    walk.depth = model.scope_ptr[f + 1] - start
    for j in range(walk.depth):
        v = model.scope[start + j]
        walk.first[j], walk.at[j] = count, 0
        for s in range(model.state_ptr[v], model.state_ptr[v + 1]):
            if domain[s]:
                codes[count] = s - model.state_ptr[v]
                count += 1
        walk.alive[j] = count - walk.first[j]
        cells *= walk.alive[j]
    for j in range(walk.depth - 1, -1, -1):
        v = model.scope[start + j]
        walk.stride[j] = step
        step *= model.state_ptr[v + 1] - model.state_ptr[v]
    return cells


cdef inline bint advance(Walk* walk) noexcept nogil:
    """Go to the next setting of all axes but the last; whether there is one."""
    cdef int64_t j = walk.depth - 2
    while j >= 0:
        walk.at[j] += 1
        if walk.at[j] < walk.alive[j]:
            return True
        walk.at[j] = 0
        j -= 1
    return False


cdef int64_t supported(Walk* walk, int64_t cells, const uint8_t* support, const int64_t* codes,
                       int64_t* seen) noexcept nogil:
    """Mark the states of a factor that it supports; how many it does not, or −1 if it supports nothing."""
    cdef int64_t j, k, wanted = 0, found = 0, last = walk.depth - 1, offset
    cdef bint some
    if cells == 0 or (walk.depth == 0 and not support[0]):
        return -1
    if walk.depth == 0:
        return 0
    for j in range(walk.depth):
        wanted += walk.alive[j]
        for k in range(walk.first[j], walk.first[j] + walk.alive[j]):
            seen[k] = 0
    while True:
        offset = 0
        for j in range(last):
            offset += codes[walk.first[j] + walk.at[j]] * walk.stride[j]
        some = False
        for k in range(walk.first[last], walk.first[last] + walk.alive[last]):
            if support[offset + codes[k]]:
                some = True
                found += not seen[k]
                seen[k] = 1
        if some:
            for j in range(last):
                k = walk.first[j] + walk.at[j]
                found += not seen[k]
                seen[k] = 1
        if found == wanted or not advance(walk):
            return wanted - found if found else -1


def prune(state_ptr, scope_ptr, scope, table_ptr, const uint8_t[::1] support, uint8_t[::1] domain, changed=None):
    """Take away the states that no table supports; see `pure.consistency.prune`."""
    cdef Model model
    cdef Walk walk
    check_model(&model, state_ptr, scope_ptr, scope, table_ptr, support.shape[0], domain.shape[0])
    cdef Arena arena = Arena()
    cdef int64_t size = cnp.PyArray_SIZE(scope), f, i, j, k, v, head = 0, tail = 0, cells, wanted, done = 0
    cdef bint possible = True
    cdef int64_t* uses = arena.ints(model.n + 2)
    cdef int64_t* users = arena.ints(size)
    cdef int64_t* queue = arena.ints(model.n_factors + 1)
    cdef int64_t* waiting = arena.ints(model.n_factors)
    cdef int64_t* codes = arena.ints(domain.shape[0] + 1)
    cdef int64_t* seen = arena.ints(domain.shape[0] + 1)
    cdef Words given = NULL
    cdef bint lost
    for i in range(size):
        uses[model.scope[i] + 2] += 1
    for v in range(model.n):
        uses[v + 2] += uses[v + 1]
    for f in range(model.n_factors):
        for i in range(model.scope_ptr[f], model.scope_ptr[f + 1]):
            users[uses[model.scope[i] + 1]] = f
            uses[model.scope[i] + 1] += 1
    for v in range(model.n):
        for k in range(model.state_ptr[v], model.state_ptr[v + 1]):
            if domain[k]:
                break
        else:
            return False
    if changed is None:
        for f in range(model.n_factors):
            queue[f], waiting[f] = f, 1
        tail = model.n_factors
    else:
        given = words_of(changed)
        check_range(given, cnp.PyArray_SIZE(changed), 0, model.n, "changed")
        for i in range(cnp.PyArray_SIZE(changed)):
            for k in range(uses[given[i]], uses[given[i] + 1]):
                if not waiting[users[k]]:
                    queue[tail], waiting[users[k]] = users[k], 1
                    tail += 1
    with nogil:
        while head != tail and possible:
            f = queue[head]
            head = 0 if head == model.n_factors else head + 1
            waiting[f] = 0
            cells = begin(&walk, &model, f, &domain[0], codes)
            wanted = supported(&walk, cells, &support[model.table_ptr[f]], codes, seen)
            done += cells
            if done > POLL_CELLS:
                done = 0
                poll()
            if wanted < 0:
                possible = False
            elif wanted:
                for j in range(walk.depth):
                    v = model.scope[model.scope_ptr[f] + j]
                    lost = False
                    for k in range(walk.first[j], walk.first[j] + walk.alive[j]):
                        if not seen[k]:
                            domain[model.state_ptr[v] + codes[k]] = 0
                            lost = True
                    if lost:
                        for k in range(uses[v], uses[v + 1]):
                            i = users[k]
                            if i != f and not waiting[i]:
                                queue[tail], waiting[i] = i, 1
                                tail = 0 if tail == model.n_factors else tail + 1
    return bool(possible)


def restrict(state_ptr, scope_ptr, scope, table_ptr, const double[::1] tables, const uint8_t[::1] domain):
    """The model of the states that are left; see `pure.consistency.restrict`."""
    cdef Model model
    cdef Walk walk
    check_model(&model, state_ptr, scope_ptr, scope, table_ptr, tables.shape[0], domain.shape[0])
    cdef Arena arena = Arena()
    cdef int64_t f, i, j, k, v, kept = 0, total = 0, last, offset, done = 0
    cdef int64_t* cards = arena.ints(model.n)
    cdef int64_t* codes = arena.ints(domain.shape[0] + 1)
    cdef int64_t* new_ptr = arena.ints(model.n_factors + 1)
    cdef int64_t* new_scope = arena.ints(cnp.PyArray_SIZE(scope))
    cdef int64_t* new_tables = arena.ints(model.n_factors + 1)
    cdef cnp.npy_intp size
    cdef double* out
    for v in range(model.n):
        for k in range(model.state_ptr[v], model.state_ptr[v + 1]):
            cards[v] += domain[k] != 0
        if cards[v] == 0:
            raise ValueError(f"variable {v} has no state left")
    for f in range(model.n_factors):
        k = 1
        for i in range(model.scope_ptr[f], model.scope_ptr[f + 1]):
            v = model.scope[i]
            k *= cards[v]
            if cards[v] > 1:
                new_scope[kept] = v
                kept += 1
        total += k
        new_ptr[f + 1], new_tables[f + 1] = kept, total
    size = total
    cdef cnp.ndarray result = cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)
    out = <double*> cnp.PyArray_DATA(result)
    with nogil:
        for f in range(model.n_factors):
            begin(&walk, &model, f, &domain[0], codes)
            last = walk.depth - 1
            while True:
                offset = model.table_ptr[f]
                for j in range(last):
                    offset += codes[walk.first[j] + walk.at[j]] * walk.stride[j]
                if walk.depth == 0:
                    out[0] = tables[offset]
                    out += 1
                    break
                for k in range(walk.first[last], walk.first[last] + walk.alive[last]):
                    out[0] = tables[offset + codes[k]]
                    out += 1
                if not advance(&walk):
                    break
            done += new_tables[f + 1] - new_tables[f]
            if done > POLL_CELLS:
                done = 0
                poll()
    return (ints_array(cards, model.n), ints_array(new_ptr, model.n_factors + 1), ints_array(new_scope, kept),
            ints_array(new_tables, model.n_factors + 1), result)
