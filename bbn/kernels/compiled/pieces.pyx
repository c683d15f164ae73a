# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Pieces of an elimination, ordered anew one at a time.

A variable's parent in an elimination is the first of its neighbours to be eliminated after it. Take variables that hang
together in that tree. Once all of them are eliminated, in whatever order, the variables around them are linked to one
another, so nothing beyond changes: a piece may be ordered anew by itself, given what the pieces below it left behind,
and the new order is kept if its cliques have no more cells. That costs a fraction of a new order of the whole, and
finds what a rule that looks at the whole passes by (large neighbourhood search: Shaw 1998).
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport pow, sqrt
from libc.stdint cimport int64_t, uint64_t
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from bbn.kernels.compiled.arrays cimport Words, check_length, check_offsets, check_range, words_of
from bbn.kernels.compiled.bit_rows cimport drop, has, list_bits, put
from bbn.kernels.compiled.heap cimport MIN_WEIGHT, Entry, before
from bbn.kernels.compiled.triangulate cimport price
from bbn.kernels.compiled.watch cimport poll

cnp.import_array()

ctypedef vector[int64_t] Numbers

cdef enum:
    FEWEST = 3
    SIZES = 13
    POLLED = 256  # steps after which it is asked whether to go on
    OUTSIDE = -1


cdef class Pieces:
    """An elimination that is made better step by step, the same way on every machine.

    Parameters
    ----------
    samples : float64 array (s, n)
        The numbers of states of each variable, as they may be; what counts is the mean number of cells.
    scope_ptr, scope : int64 arrays
        Scope f is ``scope[scope_ptr[f]:scope_ptr[f + 1]]``.
    order, ptr, neighbours : int64 arrays
        Where to begin: an elimination of these scopes; see `triangulate.eliminate`.
    """

    cdef int64_t n, n_samples
    cdef uint64_t state
    cdef double heat, all
    cdef vector[double] samples, weights, whole
    cdef Numbers cards, order, parent, number, position
    cdef vector[Numbers] linked, near, children
    # of the piece that is worked on
    cdef Numbers chosen, below, members, piece, parents, widest, scratch, local_cards
    cdef vector[Numbers] own
    cdef vector[double] cliques, counted, biases, priorities
    cdef Numbers waiting
    cdef vector[uint64_t] adjacent, row

    def __init__(self, samples, scope_ptr_array, scope_array, order_array, ptr_array, neighbours_array):
        if not isinstance(samples, np.ndarray):
            raise TypeError(f"expected doubles in C order, found {type(samples).__name__}")
        if samples.dtype != np.float64 or not samples.flags.c_contiguous:
            raise TypeError(f"expected doubles in C order, found {samples.dtype}")
        if samples.ndim != 2 or not len(samples):
            raise ValueError("samples: expected one row or more")
        cdef int64_t n = samples.shape[1], s, f, i, j, k, v, m = cnp.PyArray_SIZE(order_array)
        cdef Words scope_ptr = words_of(scope_ptr_array)
        cdef Words scope = words_of(scope_array)
        cdef Words order = words_of(order_array)
        cdef Words ptr = words_of(ptr_array)
        cdef Words neighbours = words_of(neighbours_array)
        check_offsets(scope_ptr_array, cnp.PyArray_SIZE(scope_array), "scope_ptr")
        check_range(scope, cnp.PyArray_SIZE(scope_array), 0, n, "scope")
        check_length(cnp.PyArray_SIZE(ptr_array), m + 1, "ptr")
        check_offsets(ptr_array, cnp.PyArray_SIZE(neighbours_array), "ptr")
        check_range(order, m, 0, n, "order")
        check_range(neighbours, cnp.PyArray_SIZE(neighbours_array), 0, n, "neighbours")
        cdef const double* given = <const double*> cnp.PyArray_DATA(samples)
        cdef double sum
        self.n = n
        self.n_samples = len(samples)
        self.samples.assign(given, given + n * self.n_samples)
        self.cards.resize(n)
        for v in range(n):
            sum = 0.0
            for s in range(self.n_samples):
                sum += given[s * n + v]
            self.cards[v] = max(1, <int64_t> (sum / self.n_samples + 0.5))
        self.linked.resize(n)
        self.near.resize(n)
        self.children.resize(n)
        self.parent.assign(n, -1)
        self.number.assign(n, OUTSIDE)
        self.position.assign(n, OUTSIDE)
        self.weights.assign(n, 0.0)
        self.whole.assign(n, 0.0)
        self.widest.assign(n, 0)
        self.state = 0x9E3779B97F4A7C15u
        for f in range(cnp.PyArray_SIZE(scope_ptr_array) - 1):
            for i in range(scope_ptr[f], scope_ptr[f + 1]):
                for j in range(scope_ptr[f], scope_ptr[f + 1]):
                    self.linked[scope[i]].push_back(scope[j])
        for k in range(m):
            if self.position[order[k]] != OUTSIDE:
                raise ValueError("order: expected each variable once, and its neighbours after it")
            self.position[order[k]] = k
        for k in range(m):
            for i in range(ptr[k], ptr[k + 1]):
                j = self.position[neighbours[i]]
                if j != OUTSIDE and j <= k:
                    raise ValueError("order: expected each variable once, and its neighbours after it")
        for k in range(m):
            self.order.push_back(order[k])
        self.piece = self.order
        self.own.resize(m)
        for k in range(m):
            for i in range(ptr[k], ptr[k + 1]):
                self.own[k].push_back(neighbours[i])
            self.cliques.push_back(self.clique(order[k], &self.own[k]))
        self.find_parents(-1)
        self.take()

    def improve(self, int64_t steps, double heat=0.0):
        """Order so many pieces anew; how many of them have fewer cells then. With heat, some may have more."""
        cdef int64_t k, fewer = 0
        if self.order.empty():
            return 0
        self.heat, self.all = heat, self.cells()
        with nogil:
            for k in range(steps):
                if k % POLLED == POLLED - 1:
                    poll()
                fewer += self.step()
        return fewer

    def cells(self):
        """The mean number of cells of all cliques."""
        cdef double total = 0.0
        cdef int64_t v
        for v in range(self.n):
            total += self.whole[v]
        return total

    def elimination(self):
        """The elimination as it is by now."""
        cdef Numbers order, stack, own
        cdef int64_t k, v
        for k in range(<int64_t> self.order.size()):
            v = self.order[k]
            if self.parent[v] < 0:
                stack.push_back(v)
        while not stack.empty():
            v = stack.back()
            stack.pop_back()
            order.push_back(v)
            for k in range(<int64_t> self.children[v].size()):
                stack.push_back(self.children[v][k])
        ends = [0]
        members = []
        for k in range(<int64_t> order.size() - 1, -1, -1):
            own = self.near[order[k]]
            sort(own.begin(), own.end())
            members += own
            ends.append(len(members))
        return np.array(order[::-1], np.int64), np.array(ends, np.int64), np.array(members, np.int64)

    cdef uint64_t random(self) noexcept nogil:
        self.state ^= self.state >> 12
        self.state ^= self.state << 25
        self.state ^= self.state >> 27
        return self.state * 2685821657736338717u

    cdef double uniform(self) noexcept nogil:
        return <double> (self.random() >> 11) * 2.0**-53

    cdef double clique(self, int64_t v, Numbers* own) noexcept nogil:
        """The mean number of cells of the clique of a variable and its neighbours."""
        cdef double product, total = 0.0
        cdef const double* row
        cdef int64_t s, i
        for s in range(self.n_samples):
            row = self.samples.data() + s * self.n
            product = row[v]
            for i in range(<int64_t> own.size()):
                product *= row[own[0][i]]
            total += product
        return total / self.n_samples

    cdef int step(self) except -1 nogil:
        """Order one piece anew; whether it has fewer cells then."""
        cdef int64_t i, k, v, c, above, top = -1, size
        cdef double known = 0.0, most, total = 0.0
        cdef int fewer = -1
        self.choose()
        size = self.chosen.size()
        for i in range(size):
            self.number[self.chosen[i]] = i
        for i in range(size):
            v = self.chosen[i]
            known += self.whole[v]
            if top < 0 and (self.parent[v] < 0 or self.number[self.parent[v]] == OUTSIDE):
                top = v
        above = self.parent[top]
        self.below.clear()
        for i in range(size):
            v = self.chosen[i]
            for k in range(<int64_t> self.children[v].size()):
                c = self.children[v][k]
                if self.number[c] == OUTSIDE:
                    self.below.push_back(c)
        self.members = self.chosen
        for i in range(<int64_t> self.near[top].size()):
            self.number[self.near[top][i]] = self.members.size()
            self.members.push_back(self.near[top][i])
        most = known
        if self.heat > 0.0:
            most += self.all * (pow(1.0 - self.uniform(), -self.heat) - 1.0)
        if self.ordered(size, most):
            for k in range(size):
                self.position[self.piece[k]] = k
            self.find_parents(above)
            for k in range(size):
                total += self.counted[k]
            if total <= most:
                self.all += total - known
                if above >= 0:
                    forget(&self.children[above], top)
                for i in range(size):
                    self.children[self.chosen[i]].clear()
                self.take()
                fewer = total < known
        for i in range(<int64_t> self.members.size()):
            self.number[self.members[i]] = OUTSIDE
        return fewer == 1

    cdef int choose(self) except -1 nogil:
        """Choose variables that hang together, around a large clique."""
        cdef int64_t k, i, v, u, size, largest, m = self.order.size(), first = 0
        cdef double target = 0.0
        for k in range(m):
            target += self.weights[self.order[k]]
        target *= self.uniform()
        for k in range(m):
            first = k
            target -= self.weights[self.order[k]]
            if target < 0:
                break
        size = FEWEST + <int64_t> (self.random() % SIZES)
        self.chosen.clear()
        self.waiting.assign(1, self.order[first])
        self.priorities.assign(1, 1.0)
        while not self.waiting.empty() and <int64_t> self.chosen.size() < size:
            largest = 0
            for i in range(1, <int64_t> self.waiting.size()):
                if self.priorities[i] > self.priorities[largest]:
                    largest = i
            v = self.waiting[largest]
            self.waiting.erase(self.waiting.begin() + largest)
            self.priorities.erase(self.priorities.begin() + largest)
            self.chosen.push_back(v)
            for i in range(<int64_t> self.children[v].size() + 1):
                u = self.children[v][i] if i < <int64_t> self.children[v].size() else self.parent[v]
                if u >= 0 and not among(&self.chosen, u):
                    self.waiting.push_back(u)
                    self.priorities.push_back(self.weights[u] * self.uniform())
        return 0

    cdef int link(self, Numbers* scope, int64_t words) except -1 nogil:
        """Link the members of a scope to one another."""
        cdef int64_t i, k, u
        self.row.assign(words, 0)
        for i in range(<int64_t> scope.size()):
            u = self.number[scope[0][i]]
            if u != OUTSIDE:
                put(self.row.data(), u)
        for i in range(<int64_t> scope.size()):
            u = self.number[scope[0][i]]
            if u != OUTSIDE:
                for k in range(words):
                    self.adjacent[u * words + k] |= self.row[k]
                drop(self.adjacent.data() + u * words, u)
        return 0

    cdef int ordered(self, int64_t size, double most) except -1 nogil:
        """Order the first members by one of the rules, with biased costs; whether no clique has over `most` cells."""
        cdef int64_t m = self.members.size(), words = (m + 63) >> 6, i, j, k, u, v, degree, best
        cdef int rule
        cdef double cells
        cdef Entry entry, least
        cdef uint64_t* own
        cdef Numbers pair
        self.adjacent.assign(m * words, 0)
        self.scratch.resize(m)
        pair.assign(self.members.begin() + size, self.members.end())
        self.link(&pair, words)
        for i in range(<int64_t> self.below.size()):
            self.link(&self.near[self.below[i]], words)
        for i in range(size):
            v = self.members[i]
            for k in range(<int64_t> self.linked[v].size()):
                j = self.number[self.linked[v][k]]
                if j != OUTSIDE and j != i:
                    put(self.adjacent.data() + i * words, j)
                    put(self.adjacent.data() + j * words, i)
        rule = self.random() % (MIN_WEIGHT + 1)
        self.biases.resize(size)
        for i in range(size):
            self.biases[i] = 0.5 + self.uniform()
        self.local_cards.resize(m)
        for i in range(m):
            self.local_cards[i] = self.cards[self.members[i]]
        self.piece.clear()
        self.cliques.clear()
        if <int64_t> self.own.size() < size:
            self.own.resize(size)
        self.row.assign(1, 0)
        for i in range(size):  # at most FEWEST + SIZES, so one word
            put(self.row.data(), i)
        for k in range(size):
            best = -1
            for i in range(size):
                if not has(self.row.data(), i):
                    continue
                price(rule, i, self.adjacent.data(), words, self.local_cards.data(), self.scratch.data(), &entry)
                entry.first *= self.biases[i]
                if best < 0 or before(&entry, &least):
                    best, least = i, entry
            drop(self.row.data(), best)
            own = self.adjacent.data() + best * words
            degree = list_bits(own, words, self.scratch.data())
            self.own[k].resize(degree)
            for i in range(degree):
                self.own[k][i] = self.members[self.scratch[i]]
            cells = self.clique(self.members[best], &self.own[k])
            if cells > most:
                return 0
            for i in range(degree):
                u = self.scratch[i]
                for j in range(words):
                    self.adjacent[u * words + j] |= own[j]
                drop(self.adjacent.data() + u * words, u)
                drop(self.adjacent.data() + u * words, best)
            self.piece.push_back(self.members[best])
            self.cliques.push_back(cells)
        return 1

    cdef int find_parents(self, int64_t above) except -1 nogil:
        """Find the parents of the variables of the piece and of those right below it, and count the piece's cells.

        `position` is that of each variable of the piece, and is cleared.
        """
        cdef int64_t size = self.piece.size(), k, i, v, at, first
        cdef Numbers* own
        self.parents.clear()
        for k in range(size):
            self.widest[self.piece[k]] = 0
        for k in range(size + <int64_t> self.below.size()):
            own = &self.own[k] if k < size else &self.near[self.below[k - size]]
            first = size
            for i in range(<int64_t> own.size()):
                at = self.position[own[0][i]]
                if at != OUTSIDE and at < first:
                    first = at
            if first < size:
                v = self.piece[first]
                self.widest[v] = max(self.widest[v], <int64_t> own.size())
                self.parents.push_back(v)
            else:
                self.parents.push_back(above)
        self.counted.resize(size)
        for k in range(size):
            v = self.piece[k]
            self.counted[k] = 0.0 if self.widest[v] > <int64_t> self.own[k].size() else self.cliques[k]
            self.position[v] = OUTSIDE
        return 0

    cdef int take(self) except -1 nogil:
        """Take the piece as it is."""
        cdef int64_t size = self.piece.size(), k, v
        for k in range(size):
            v = self.piece[k]
            self.near[v] = self.own[k]
            self.weights[v] = sqrt(self.cliques[k])
            self.whole[v] = self.counted[k]
        for k in range(<int64_t> self.parents.size()):
            v = self.piece[k] if k < size else self.below[k - size]
            self.parent[v] = self.parents[k]
            if self.parents[k] >= 0:
                self.children[self.parents[k]].push_back(v)
        return 0


cdef bint among(Numbers* numbers, int64_t v) noexcept nogil:
    cdef int64_t i
    for i in range(<int64_t> numbers.size()):
        if numbers[0][i] == v:
            return True
    return False


cdef void forget(Numbers* numbers, int64_t v) noexcept nogil:
    """Take a number out of a list that has it, and keep the order of the others."""
    cdef int64_t i
    for i in range(<int64_t> numbers.size()):
        if numbers[0][i] == v:
            numbers.erase(numbers.begin() + i)
            return
