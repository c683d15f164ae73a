# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Loopy belief propagation: the compiled twin of `pure.messages`.

All messages of a factor cost about two walks through its table: its axes are summed out from the last on, S_k = Σ S_{k+1} ν_k,
while the outer products P_k of the messages along the first axes grow; μ_k = Σ P_k S_{k+1}.
"""

import numpy as np

from bbn.kernels.compiled.watch cimport POLL_CELLS, poll
from bbn.kernels.contracts.messages import laid_out

from libc.math cimport INFINITY, fabs, log
from libc.stdint cimport int64_t

cdef enum:
    DEEPEST = 64


cdef class Passing:
    """The arrays of a graph, where things lie, and room to work in."""

    cdef const int64_t[::1] cards, scope_ptr, scope, table, message, state, around_ptr, around
    cdef const double[::1] tables, local
    cdef double[::1] messages, old, partial, outer, ahead, fresh
    cdef int64_t n_factors, n_variables, cells

    def __init__(self, graph, messages):
        at = laid_out(graph, messages)
        self.cards, self.scope_ptr, self.scope, self.tables, self.local = graph
        self.table, self.message, self.state, self.around_ptr, self.around = at
        self.messages = self.old = messages
        self.n_factors, self.n_variables = len(graph.scope_ptr) - 1, len(graph.cards)
        most = int(np.diff(at.table).max(initial=1))
        self.partial, self.outer = np.empty(most), np.empty(most)  # sizes halve with each axis, at least
        widest = int(np.add.reduceat(graph.cards[graph.scope], graph.scope_ptr[:-1]).max(initial=1)) if len(
            graph.scope
        ) else 1
        self.ahead, self.fresh = np.empty(widest), np.empty(max(widest, int(graph.cards.max(initial=1))))
        self.cells = 0

    cdef double product(self, int64_t v, int64_t without, double* out) noexcept nogil:
        """The product of the messages to a variable and its own weights, without an edge's; the ln of its scale."""
        cdef int64_t card = self.cards[v], i, k, edge
        cdef const double* m
        cdef double top, log_scale = 0.0
        for i in range(card):
            out[i] = self.local[self.state[v] + i]
        for k in range(self.around_ptr[v], self.around_ptr[v + 1]):
            edge = self.around[k]
            if edge == without:
                continue
            m = &self.old[self.message[edge]]
            top = 0.0
            for i in range(card):
                out[i] *= m[i]
                if out[i] > top:
                    top = out[i]
            if not top > 0.0:
                for i in range(card):
                    out[i] = 0.0
                return 0.0
            if top < 1e-100:
                log_scale += log(top)
                for i in range(card):
                    out[i] /= top
        return log_scale

    cdef void listen(self, int64_t f) noexcept nogil:
        """The messages of a factor's variables to it, in `ahead`."""
        cdef int64_t e, card
        cdef double* nu = &self.ahead[0]
        for e in range(self.scope_ptr[f], self.scope_ptr[f + 1]):
            card = self.cards[self.scope[e]]
            self.product(self.scope[e], e, nu)
            normalise(nu, card)
            nu += card

    cdef double send(self, int64_t f, double damping) noexcept nogil:
        """Replace the messages of a factor; the largest change."""
        cdef int64_t first = self.scope_ptr[f], n = self.scope_ptr[f + 1] - first, k, i, j, card, rows
        cdef int64_t size[DEEPEST + 1]
        cdef const double* sums[DEEPEST + 1]
        cdef const double* nu[DEEPEST]
        cdef const double* s
        cdef double* partial = &self.partial[0]
        cdef double* outer = &self.outer[0]
        cdef double* grown
        cdef double* fresh = &self.fresh[0]
        cdef double* m
        cdef const double* was
        cdef double w, change = 0.0
        self.listen(f)
        size[0] = 1
        nu[0] = &self.ahead[0]
        for k in range(n):
            card = self.cards[self.scope[first + k]]
            size[k + 1] = size[k] * card
            if k + 1 < n:
                nu[k + 1] = nu[k] + card
        self.cells += 2 * size[n]
        sums[n] = &self.tables[self.table[f]]
        for k in range(n - 1, 0, -1):
            card = size[k + 1] // size[k]
            s = sums[k + 1]
            for i in range(size[k]):
                w = 0.0
                for j in range(card):
                    w += s[i * card + j] * nu[k][j]
                partial[i] = w
            sums[k] = partial
            partial += size[k]
        outer[0] = 1.0
        for k in range(n):
            rows = size[k]
            card = size[k + 1] // rows
            s = sums[k + 1]
            for j in range(card):
                fresh[j] = 0.0
            for i in range(rows):
                w = outer[i]
                if w != 0.0:
                    for j in range(card):
                        fresh[j] += w * s[i * card + j]
            normalise(fresh, card)
            m = &self.messages[self.message[first + k]]
            was = &self.old[self.message[first + k]]
            for j in range(card):
                w = (1.0 - damping) * fresh[j] + damping * was[j]
                change = max(change, fabs(w - was[j]))
                m[j] = w
            if k + 1 < n:
                grown = outer + rows
                for i in range(rows):
                    for j in range(card):
                        grown[i * card + j] = outer[i] * nu[k][j]
                outer = grown
        return change


cdef inline void normalise(double* values, int64_t n) noexcept nogil:
    cdef double total = 0.0
    cdef int64_t i
    for i in range(n):
        total += values[i]
    if total > 0.0:
        for i in range(n):
            values[i] /= total


def settle(graph, messages, int64_t max_iter, double tol, double damping, bint flooding):
    """See `pure.messages.settle`."""
    cdef Passing p = Passing(graph, messages)
    cdef int64_t f, n_iter = 0, turn, n = p.n_factors
    cdef double change = 0.0
    if n == 0:
        return min(1, max_iter), max_iter > 0
    if flooding:
        p.old = messages.copy()
    with nogil:
        while n_iter < max_iter:
            n_iter += 1
            change = 0.0
            if flooding:
                p.old[:] = p.messages
            for turn in range(n if flooding else 2 * n):
                f = turn if turn < n else 2 * n - 1 - turn
                change = max(change, p.send(f, damping))
                if p.cells > POLL_CELLS:
                    p.cells = 0
                    poll()
            p.cells += 1000
            if change <= tol:
                break
    return n_iter, n_iter > 0 and change <= tol


def beliefs(graph, messages, double[::1] found):
    """See `pure.messages.beliefs`."""
    cdef Passing p = Passing(graph, messages)
    cdef int64_t v, f, i, j, k, n, card, e, inner, rows
    cdef double total = 0.0, z, w
    cdef bint zero = False
    cdef double* out
    cdef double* nu
    cdef const double* s
    if found.shape[0] != p.local.shape[0]:
        raise ValueError(f"found: expected {p.local.shape[0]} entries, found {found.shape[0]}")
    with nogil:
        for v in range(p.n_variables):
            out = &found[p.state[v]]
            total += p.product(v, -1, out)
            z = 0.0
            for i in range(p.cards[v]):
                z += out[i]
            if z > 0.0:
                total += log(z)
                for i in range(p.cards[v]):
                    out[i] /= z
            else:
                zero = True
        for f in range(p.n_factors):
            p.listen(f)
            nu = &p.ahead[0]
            for e in range(p.scope_ptr[f], p.scope_ptr[f + 1]):
                card = p.cards[p.scope[e]]
                z = 0.0
                for i in range(card):
                    z += nu[i] * p.messages[p.message[e] + i]
                if z > 0.0:
                    total -= log(z)
                else:
                    zero = True
                nu += card
            s = &p.tables[p.table[f]]
            rows = p.table[f + 1] - p.table[f]
            for e in range(p.scope_ptr[f + 1] - 1, p.scope_ptr[f] - 1, -1):
                card = p.cards[p.scope[e]]
                nu -= card
                rows //= card
                for i in range(rows):
                    w = 0.0
                    for j in range(card):
                        w += s[i * card + j] * nu[j]
                    p.partial[i] = w
                s = &p.partial[0]
            if s[0] > 0.0:
                total += log(s[0])
            else:
                zero = True
            p.cells += p.table[f + 1] - p.table[f]
            if p.cells > POLL_CELLS:
                p.cells = 0
                poll()
    return -INFINITY if zero else total


def incoming(graph, messages, double[::1] found):
    """See `pure.messages.incoming`."""
    cdef Passing p = Passing(graph, messages)
    cdef int64_t f, i, at, n
    if found.shape[0] != p.messages.shape[0]:
        raise ValueError(f"found: expected {p.messages.shape[0]} entries, found {found.shape[0]}")
    with nogil:
        for f in range(p.n_factors):
            p.listen(f)
            at = p.message[p.scope_ptr[f]]
            n = p.message[p.scope_ptr[f + 1]] - at
            for i in range(n):
                found[at + i] = p.ahead[i]
