# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""States that cannot occur, and models without them.

A state is supported by a table if some cell of it is not 0 whose other states are all still possible (generalised arc
consistency; Mackworth 1977). A state that a table does not support cannot occur: it is taken away, and the other tables
of its variable are looked at again. What is left may still be impossible together, but nothing is wrongly taken away.
The cost is that of looking at the cells of the tables that change.
"""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

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
    """Refuse arrays that do not fit one another."""
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
            codes[count] = s - model.state_ptr[v]  # overwritten unless s is left
            count += domain[s] != 0
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


cdef int index_users(const Model* model, int64_t* uses, int64_t* users) except -1:
    """The factors of variable v: users[uses[v]:uses[v + 1]]; there is room for two more words than variables."""
    cdef int64_t f, i, v
    for i in range(model.scope_ptr[model.n_factors]):
        uses[model.scope[i] + 2] += 1
    for v in range(model.n):
        uses[v + 2] += uses[v + 1]
    for f in range(model.n_factors):
        for i in range(model.scope_ptr[f], model.scope_ptr[f + 1]):
            users[uses[model.scope[i] + 1]] = f
            uses[model.scope[i] + 1] += 1
    return 0


cdef class Queue:
    """The factors that are still to be looked at, each once at a time, and the room for looking."""

    cdef Arena arena
    cdef int64_t* factors
    cdef int64_t* waiting
    cdef int64_t* codes
    cdef int64_t* seen
    cdef int64_t head, tail, most

    def __cinit__(self, int64_t n_factors, int64_t states):
        self.arena = Arena()
        self.factors, self.waiting = self.arena.ints(n_factors + 1), self.arena.ints(n_factors)
        self.codes, self.seen = self.arena.ints(states + 1), self.arena.ints(states + 1)
        self.most = n_factors

    cdef inline void put(self, int64_t f) noexcept nogil:
        if not self.waiting[f]:
            self.factors[self.tail], self.waiting[f] = f, 1
            self.tail = 0 if self.tail == self.most else self.tail + 1

    cdef inline int64_t pop(self) noexcept nogil:
        cdef int64_t f = self.factors[self.head]
        self.head = 0 if self.head == self.most else self.head + 1
        self.waiting[f] = 0
        return f

    cdef bint settle(self, const Model* model, const int64_t* uses, const int64_t* users, const uint8_t* support,
                     uint8_t* domain) except -1:
        """Take away what no factor of the queue supports, and so on; whether each variable has a state left."""
        cdef Walk walk
        cdef int64_t f, i, j, k, v, cells, wanted, done = 0
        cdef bint lost
        with nogil:
            while self.head != self.tail:
                f = self.pop()
                cells = begin(&walk, model, f, domain, self.codes)
                wanted = supported(&walk, cells, support + model.table_ptr[f], self.codes, self.seen)
                done += cells
                if done > POLL_CELLS:
                    done = 0
                    poll()
                if wanted < 0:
                    return False
                if wanted == 0:
                    continue
                for j in range(walk.depth):
                    v = model.scope[model.scope_ptr[f] + j]
                    lost = False
                    for k in range(walk.first[j], walk.first[j] + walk.alive[j]):
                        if not self.seen[k]:
                            domain[model.state_ptr[v] + self.codes[k]] = 0
                            lost = True
                    if lost:
                        for i in range(uses[v], uses[v + 1]):
                            if users[i] != f:
                                self.put(users[i])
        return True


def prune(state_ptr, scope_ptr, scope, table_ptr, const uint8_t[::1] support, uint8_t[::1] domain, changed=None):
    """Take away the states that no table supports; whether each variable has one left.

    Parameters
    ----------
    state_ptr : int64 array (n + 1,)
        The states of variable v are ``domain[state_ptr[v]:state_ptr[v + 1]]``.
    scope_ptr, scope, table_ptr : int64 arrays
        Factor f has the variables ``scope[scope_ptr[f]:scope_ptr[f + 1]]`` and the cells from ``table_ptr[f]`` on, in C
        order.
    support : uint8 array
        For each cell whether it is not 0.
    domain : uint8 array
        1 for each state that is possible; states are taken away in place.
    changed : int64 array, optional
        The variables whose states have become fewer since it was last consistent; by default all tables are looked at.
    """
    cdef Model model
    check_model(&model, state_ptr, scope_ptr, scope, table_ptr, support.shape[0], domain.shape[0])
    cdef Arena arena = Arena()
    cdef Queue queue = Queue(model.n_factors, domain.shape[0])
    cdef int64_t f, i, k, v
    cdef int64_t* uses = arena.ints(model.n + 2)
    cdef int64_t* users = arena.ints(cnp.PyArray_SIZE(scope))
    cdef Words given = NULL
    index_users(&model, uses, users)
    for v in range(model.n):
        for k in range(model.state_ptr[v], model.state_ptr[v + 1]):
            if domain[k]:
                break
        else:
            return False
    if changed is None:
        for f in range(model.n_factors):
            queue.put(f)
    else:
        given = words_of(changed)
        check_range(given, cnp.PyArray_SIZE(changed), 0, model.n, "changed")
        for i in range(cnp.PyArray_SIZE(changed)):
            for k in range(uses[given[i]], uses[given[i] + 1]):
                queue.put(users[k])
    if domain.shape[0] == 0:
        return True
    return queue.settle(&model, uses, users, &support[0] if support.shape[0] else NULL, &domain[0])


cdef class Domains:
    """The states that can occur in a model given findings, and the model without the others.

    Parameters
    ----------
    state_ptr, scope_ptr, scope, table_ptr : int64 arrays
        As in `prune`.
    tables : float array
        The tables' numbers.

    Attributes
    ----------
    possible : bool
        Whether each variable has a state that can occur without findings.
    """

    cdef Model model
    cdef Arena arena
    cdef int64_t* uses
    cdef int64_t* users
    cdef object arrays
    cdef const double[::1] tables
    cdef uint8_t[::1] support
    cdef uint8_t[::1] base
    cdef readonly bint possible

    def __init__(self, state_ptr, scope_ptr, scope, table_ptr, const double[::1] tables):
        cdef int64_t k, states = 0
        cdef Words ends = words_of(state_ptr)
        cdef Queue queue
        if cnp.PyArray_SIZE(state_ptr):
            states = ends[cnp.PyArray_SIZE(state_ptr) - 1]
        self.arrays = state_ptr, scope_ptr, scope, table_ptr
        self.tables = tables
        check_model(&self.model, state_ptr, scope_ptr, scope, table_ptr, tables.shape[0], states)
        self.arena = Arena()
        self.uses, self.users = self.arena.ints(self.model.n + 2), self.arena.ints(cnp.PyArray_SIZE(scope))
        index_users(&self.model, self.uses, self.users)
        # one more, so that there is a first
        self.support, self.base = np.empty(tables.shape[0] + 1, np.uint8), np.ones(states + 1, np.uint8)
        for k in range(tables.shape[0]):
            self.support[k] = tables[k] != 0.0
        queue = Queue(self.model.n_factors, states)
        for k in range(self.model.n_factors):
            queue.put(k)
        self.possible = queue.settle(&self.model, self.uses, self.users, &self.support[0], &self.base[0])

    def find(self, hard, likelihoods=()):
        """1 for each state that is possible given findings; None if a variable has none."""
        cdef cnp.npy_intp states = self.base.shape[0] - 1
        cdef cnp.ndarray found = cnp.PyArray_EMPTY(1, &states, cnp.NPY_UINT8, 0)
        cdef uint8_t* domain = <uint8_t*> cnp.PyArray_DATA(found)
        cdef Queue queue = Queue(self.model.n_factors, states)
        cdef int64_t v, code, k, start, stop, left
        cdef double[::1] vector
        cdef bint changed
        if not self.possible:
            return None
        memcpy(domain, &self.base[0], states)
        for v, code in hard:
            start, stop = self.span(v)
            if not 0 <= code < stop - start:
                raise ValueError(f"variable {v} has no code {code}")
            if not domain[start + code]:
                return None
            changed = False
            for k in range(start, stop):
                if domain[k] and k != start + code:
                    domain[k] = 0
                    changed = True
            if changed:
                self.queue_users(queue, v)
        for v, values in likelihoods:
            start, stop = self.span(v)
            vector = np.array(values, np.float64)
            if vector.shape[0] != stop - start:
                raise ValueError(f"variable {v}: {vector.shape[0]} numbers are not a likelihood of its states")
            left = 0
            for k in range(start, stop):
                domain[k] = domain[k] and vector[k - start] > 0.0
                left += domain[k]
            if not left:
                return None
            self.queue_users(queue, v)
        return found if queue.settle(&self.model, self.uses, self.users, &self.support[0], domain) else None

    cdef (int64_t, int64_t) span(self, int64_t v):
        if not 0 <= v < self.model.n:
            raise ValueError(f"expected variables from 0 to {self.model.n - 1}, found {v}")
        return self.model.state_ptr[v], self.model.state_ptr[v + 1]

    cdef void queue_users(self, Queue queue, int64_t v) noexcept:
        cdef int64_t k
        for k in range(self.uses[v], self.uses[v + 1]):
            queue.put(self.users[k])

    def restrict(self, const uint8_t[::1] domain, factors):
        """The model of the states that are left and of some factors."""
        check_length(domain.shape[0], self.base.shape[0] - 1, "domain")
        return restricted(&self.model, &self.tables[0] if self.tables.shape[0] else NULL,
                          &domain[0] if domain.shape[0] else NULL, factors)

    def spread(self, const uint8_t[::1] domain, starts, const double[::1] values):
        """Values of the states that are left, laid out over all states; 1 for a variable that has no values."""
        cdef Words start = words_of(starts)
        cdef cnp.npy_intp states = self.base.shape[0] - 1
        cdef int64_t v, k, at, total = values.shape[0]
        check_length(domain.shape[0], states, "domain")
        check_length(cnp.PyArray_SIZE(starts), self.model.n, "starts")
        cdef cnp.ndarray whole = cnp.PyArray_EMPTY(1, &states, cnp.NPY_DOUBLE, 0)
        cdef double* out = <double*> cnp.PyArray_DATA(whole)
        for v in range(self.model.n):
            at = start[v]
            for k in range(self.model.state_ptr[v], self.model.state_ptr[v + 1]):
                if not domain[k]:
                    out[k] = 0.0
                elif start[v] < 0:
                    out[k] = 1.0
                elif at >= total:
                    raise ValueError(f"starts: {total} values are too few for variable {v}")
                else:
                    out[k] = values[at]
                    at += 1
        return whole


cdef double* copy_left(double* out, const Model* model, int64_t f, const double* tables, const int64_t* cards,
                       const int64_t* codes) noexcept nogil:
    """Write the cells of a factor that are left; where they end. `codes` has those left of v from state_ptr[v] on."""
    cdef Walk walk
    cdef int64_t start = model.scope_ptr[f], j, k, v, step = 1, inner, inner_step, offset
    cdef Words inner_codes
    tables += model.table_ptr[f]
    walk.depth = 0  # axes of more than one state that is left, the last first
    for j in range(model.scope_ptr[f + 1] - 1, start - 1, -1):
        v = model.scope[j]
        if cards[v] > 1:
            walk.alive[walk.depth], walk.first[walk.depth] = cards[v], model.state_ptr[v]
            walk.stride[walk.depth], walk.at[walk.depth] = step, 0
            walk.depth += 1
        else:
            tables += step * codes[model.state_ptr[v]]
        step *= model.state_ptr[v + 1] - model.state_ptr[v]
    if walk.depth == 0:
        out[0] = tables[0]
        return out + 1
    inner, inner_step, inner_codes = walk.alive[0], walk.stride[0], codes + walk.first[0]
    while True:
        offset = 0
        for j in range(1, walk.depth):
            offset += codes[walk.first[j] + walk.at[j]] * walk.stride[j]
        for k in range(inner):
            out[k] = tables[offset + inner_codes[k] * inner_step]
        out += inner
        j = 1
        while j < walk.depth:
            walk.at[j] += 1
            if walk.at[j] < walk.alive[j]:
                break
            walk.at[j] = 0
            j += 1
        if j >= walk.depth:
            return out


cdef object restricted(const Model* model, const double* tables, const uint8_t* domain, factors):
    """Cards, scopes and tables of some factors over the states that are left, without axes of one state."""
    cdef Arena arena = Arena()
    cdef Words chosen = words_of(factors)
    cdef int64_t n_chosen = cnp.PyArray_SIZE(factors), c, f, i, k, v, kept = 0, total = 0, members = 0
    cdef int64_t done = 0
    check_range(chosen, n_chosen, 0, model.n_factors, "factors")
    for c in range(n_chosen):
        members += model.scope_ptr[chosen[c] + 1] - model.scope_ptr[chosen[c]]
    cdef int64_t* cards = arena.ints(model.n)
    cdef int64_t* codes = arena.ints(model.state_ptr[model.n] + 1)
    cdef int64_t* new_ptr = arena.ints(n_chosen + 1)
    cdef int64_t* new_scope = arena.ints(members)
    cdef int64_t* new_tables = arena.ints(n_chosen + 1)
    cdef cnp.npy_intp size
    cdef double* out
    for v in range(model.n):
        for k in range(model.state_ptr[v], model.state_ptr[v + 1]):
            codes[model.state_ptr[v] + cards[v]] = k - model.state_ptr[v]
            cards[v] += domain[k] != 0
        if cards[v] == 0:
            raise ValueError(f"variable {v} has no state left")
    for c in range(n_chosen):
        f, k = chosen[c], 1
        for i in range(model.scope_ptr[f], model.scope_ptr[f + 1]):
            v = model.scope[i]
            k *= cards[v]
            if cards[v] > 1:
                new_scope[kept] = v
                kept += 1
        total += k
        new_ptr[c + 1], new_tables[c + 1] = kept, total
    size = total
    cdef cnp.ndarray result = cnp.PyArray_EMPTY(1, &size, cnp.NPY_DOUBLE, 0)
    out = <double*> cnp.PyArray_DATA(result)
    with nogil:
        for c in range(n_chosen):
            out = copy_left(out, model, chosen[c], tables, cards, codes)
            done += new_tables[c + 1] - new_tables[c]
            if done > POLL_CELLS:
                done = 0
                poll()
    return (ints_array(cards, model.n), ints_array(new_ptr, n_chosen + 1), ints_array(new_scope, kept),
            ints_array(new_tables, n_chosen + 1), result)
