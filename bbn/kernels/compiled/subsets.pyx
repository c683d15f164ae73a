# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Best and total weight over all orders and all DAGs: the compiled twin of `pure.subsets`."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from bbn.kernels.compiled.watch cimport poll

from bbn.kernels.contracts.checks import check_families, check_uniforms

cdef extern from "long_number.h":
    ctypedef struct bbn_long:
        double hi
        double lo
        int64_t e
    bbn_long bbn_of_log(double logarithm) nogil
    double bbn_log_of(bbn_long x) nogil
    bbn_long bbn_sum(bbn_long a, bbn_long b) nogil
    bbn_long bbn_negative(bbn_long x) nogil
    bbn_long bbn_product(bbn_long a, bbn_long b) nogil
    bbn_long bbn_quotient(bbn_long a, bbn_long b) nogil
    double bbn_ratio(bbn_long a, bbn_long b) nogil

ctypedef fused rank_t:
    uint16_t
    uint32_t

cdef enum:
    BLOCK = 1 << 15  # subsets whose ranks fit the nearest cache
    POLL_SUBSETS = 1 << 16
    POLL_PAIRS = 1 << 18


cdef inline int64_t squeezed(int64_t subset, int64_t i) noexcept nogil:
    """A subset without variable i, with i's bit taken out."""
    return (subset & ((<int64_t> 1 << i) - 1)) | (subset >> (i + 1) << i)


def best_network(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores):
    """See `pure.subsets.best_network`."""
    check_families(ptr.base, masks.base, scores.base)
    most = int(np.diff(ptr).max())
    half = 1 << (len(ptr) - 2)
    if most < 2**16 - 1:
        return _best_network(ptr, masks, scores, np.full((len(ptr) - 1) * half, 2**16 - 1, dtype=np.uint16))
    return _best_network(ptr, masks, scores, np.full((len(ptr) - 1) * half, 2**32 - 1, dtype=np.uint32))


def _best_network(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, rank_t[::1] ranks):
    cdef int64_t n = ptr.shape[0] - 1, half = <int64_t> 1 << (n - 1), full = (<int64_t> 1 << n) - 1
    cdef int64_t i, k, s, t, bits, sink
    cdef rank_t none = <rank_t> -1, r
    cdef double value, top
    best_array = np.empty(full + 1)
    sinks_array = np.empty(full + 1, dtype=np.uint8)
    cdef double[::1] best = best_array
    cdef uint8_t[::1] sinks = sinks_array
    with nogil:
        for i in range(n):
            # from the worst to the best, so that of equal sets the first stays
            for k in range(ptr[i + 1] - 1, ptr[i] - 1, -1):
                ranks[i * half + squeezed(masks[k], i)] = <rank_t> (k - ptr[i])
            least_of_subsets(&ranks[i * half], n - 1)
            poll()
        best[0] = 0.0
        for s in range(1, full + 1):
            top = -INFINITY
            sink = -1
            bits = s
            i = 0
            while bits:
                if bits & 1:
                    t = s ^ (<int64_t> 1 << i)
                    r = ranks[i * half + squeezed(t, i)]
                    if r != none:
                        value = best[t] + scores[ptr[i] + r]
                        if value > top:
                            top = value
                            sink = i
                bits >>= 1
                i += 1
            best[s] = top
            sinks[s] = <uint8_t> (255 if sink < 0 else sink)
            if s % POLL_SUBSETS == 0:
                poll()
    chosen = np.full(n, -1, dtype=np.int64)
    s = full
    while s and sinks[s] != 255:
        i = sinks[s]
        s ^= <int64_t> 1 << i
        chosen[i] = ranks[i * half + squeezed(s, i)]
    return float(best[full]), chosen


cdef void least_of_subsets(rank_t* ranks, int64_t n) noexcept nogil:
    """Give each subset of n variables the least rank of all its subsets; block by block where steps are short."""
    cdef int64_t size = <int64_t> 1 << n, block = BLOCK if size > BLOCK else size
    cdef int64_t first = 0, step = 1
    while first < size:
        step = 1
        while step < block:
            least_of_step(ranks + first, block, step)
            step *= 2
        first += block
    while step < size:
        least_of_step(ranks, size, step)
        step *= 2


cdef inline void least_of_step(rank_t* ranks, int64_t size, int64_t step) noexcept nogil:
    cdef int64_t base = 0, k
    cdef rank_t* low
    cdef rank_t* high
    while base < size:
        low = ranks + base
        high = low + step
        for k in range(step):
            high[k] = low[k] if low[k] < high[k] else high[k]
        base += 2 * step


def order_sums(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores):
    """See `pure.subsets.order_sums`."""
    check_families(ptr.base, masks.base, scores.base)
    return _sums(ptr, masks, scores, False)


def dag_sums(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores):
    """See `pure.subsets.dag_sums`."""
    check_families(ptr.base, masks.base, scores.base)
    return _sums(ptr, masks, scores, True)


def _sums(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, bint dags):
    cdef int64_t n = ptr.shape[0] - 1, half = <int64_t> 1 << (n - 1), size = <int64_t> 1 << n
    cdef bbn_long* sums = <bbn_long*> calloc(n * half, sizeof(bbn_long))
    cdef bbn_long* through = <bbn_long*> calloc(n * half, sizeof(bbn_long))
    cdef bbn_long* below = <bbn_long*> calloc(size, sizeof(bbn_long))
    cdef bbn_long* above = <bbn_long*> calloc(size, sizeof(bbn_long))
    cdef bbn_long* scratch = <bbn_long*> malloc(2 * size * sizeof(bbn_long))
    cdef double total = 0.0
    arcs = np.zeros((n, n))
    cdef double[:, ::1] out = arcs
    try:
        if sums == NULL or through == NULL or below == NULL or above == NULL or scratch == NULL:
            raise MemoryError
        with nogil:
            parent_sums(ptr, masks, scores, n, sums)
            if dags:
                dags_below(n, sums, below, scratch)
                dags_above(n, sums, below, above, through, scratch)
            else:
                orders(n, sums, below, above, through)
            total = bbn_log_of(below[size - 1])
            arc_sums(n, sums, through, below[size - 1], out)
    finally:
        free(sums)
        free(through)
        free(below)
        free(above)
        free(scratch)
    return total, arcs


def sample_networks(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, bint dags,
                    const double[:, ::1] uniforms):
    """See `pure.subsets.sample_networks`."""
    check_families(ptr.base, masks.base, scores.base)
    check_uniforms(ptr.base, uniforms.base)
    cdef int64_t n = ptr.shape[0] - 1, half = <int64_t> 1 << (n - 1), size = <int64_t> 1 << n, k
    cdef bbn_long* sums = <bbn_long*> calloc(n * half, sizeof(bbn_long))
    cdef bbn_long* through = <bbn_long*> calloc(n * half, sizeof(bbn_long))
    cdef bbn_long* below = <bbn_long*> calloc(size, sizeof(bbn_long))
    cdef bbn_long* above = <bbn_long*> calloc(size, sizeof(bbn_long))
    cdef bbn_long* scratch = <bbn_long*> malloc(2 * size * sizeof(bbn_long))
    drawn = np.zeros((uniforms.shape[0], n), dtype=np.int64)
    cdef int64_t[:, ::1] out = drawn
    try:
        if sums == NULL or through == NULL or below == NULL or above == NULL or scratch == NULL:
            raise MemoryError
        with nogil:
            parent_sums(ptr, masks, scores, n, sums)
            if dags:
                dags_below(n, sums, below, scratch)
                dags_above(n, sums, below, above, through, scratch)
            else:
                orders(n, sums, below, above, through)
            for k in range(uniforms.shape[0]):
                if dags:
                    draw_layers(ptr, masks, scores, n, sums, above, scratch, &uniforms[k, 0], &out[k, 0])
                else:
                    draw_order(ptr, masks, scores, n, sums, below, &uniforms[k, 0], &out[k, 0])
                poll()
    finally:
        free(sums)
        free(through)
        free(below)
        free(above)
        free(scratch)
    return drawn


cdef int draw_layers(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, int64_t n,
                     bbn_long* sums, bbn_long* above, bbn_long* scratch, const double* uniform,
                     int64_t* out) noexcept nogil:
    """Draw a DAG layer by layer: a variable is in the next one if it has parents in the last and all among those so far.

    Whether a variable is in is decided one after the other. The weight of what was decided is a sum over those that
    must not have all their parents within some set, by inclusion and exclusion.
    """
    cdef int64_t full = (<int64_t> 1 << n) - 1, u = 0, last = 0, layer, i, used = 0, decided
    cdef bbn_long total, inside, own
    while u != full:
        layer = 0
        decided = 0
        total = weight_of_layer(n, sums, above, scratch, u, last, 0, 0)
        for i in range(n):
            if u >> i & 1:
                continue
            own = sums[(i << (n - 1)) + squeezed(u, i)]
            if last:
                own = bbn_sum(own, bbn_negative(sums[(i << (n - 1)) + squeezed(u ^ last, i)]))
            inside = weight_of_layer(n, sums, above, scratch, u, last, layer | <int64_t> 1 << i, decided)
            inside = bbn_product(inside, own)
            if uniform[used] < bbn_ratio(inside, total):
                layer |= <int64_t> 1 << i
                total = weight_of_layer(n, sums, above, scratch, u, last, layer, decided)
            else:
                decided |= <int64_t> 1 << i
                total = bbn_sum(total, bbn_negative(inside))
            used += 1
        if layer == 0:  # rounding alone leads here; any variable that may go on does
            for i in range(n):
                if not u >> i & 1:
                    layer = <int64_t> 1 << i
                    break
        for i in range(n):
            if layer >> i & 1:
                out[i] = draw_set(ptr, masks, scores, i, u, last, uniform[used])
                used += 1
        u |= layer
        last = layer
    return 0


cdef bbn_long weight_of_layer(int64_t n, bbn_long* sums, bbn_long* above, bbn_long* scratch, int64_t u, int64_t last,
                              int64_t layer, int64_t decided) noexcept nogil:
    """The weight of what may follow u, the variables of `layer` being next and those of `decided` not.

    The factors of the layer's own parents are left out. Variables not decided must not have all parents within u but
    outside the last layer.
    """
    cdef int64_t rest = ((<int64_t> 1 << n) - 1) ^ u ^ layer, t = 0, index = 0, i, bits
    cdef bbn_long total = above[u | layer], minus
    scratch[0] = bbn_of_log(0.0)
    while t != rest:
        t = (t - rest) & rest
        index += 1
        bits = t
        i = 0
        while not bits & 1:
            bits >>= 1
            i += 1
        if decided >> i & 1:
            minus = sums[(i << (n - 1)) + squeezed(u, i)]
        elif last:
            minus = sums[(i << (n - 1)) + squeezed(u ^ last, i)]
        else:
            minus = bbn_of_log(-INFINITY)
        scratch[index] = bbn_product(scratch[index & (index - 1)], bbn_negative(minus))
        total = bbn_sum(total, bbn_product(scratch[index], above[u | layer | t]))
    return total


cdef int draw_order(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, int64_t n,
                    bbn_long* sums, bbn_long* below, const double* uniform, int64_t* out) noexcept nogil:
    """Draw an order from its end, and each variable's parents among those before it."""
    cdef int64_t s = (<int64_t> 1 << n) - 1, i, chosen, used = 0
    cdef double left
    while s:
        left = uniform[used]
        chosen = -1
        for i in range(n):
            if s >> i & 1:
                chosen = i
                left -= bbn_ratio(
                    bbn_product(sums[(i << (n - 1)) + squeezed(s ^ (<int64_t> 1 << i), i)],
                                below[s ^ (<int64_t> 1 << i)]), below[s])
                if left < 0.0:
                    break
        s ^= <int64_t> 1 << chosen
        out[chosen] = draw_set(ptr, masks, scores, chosen, s, 0, uniform[used + 1])
        used += 2
    return 0


cdef int64_t draw_set(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, int64_t i,
                      int64_t within, int64_t last, double uniform) noexcept nogil:
    """Draw a parent set of i within some variables, with one of the last layer unless that is empty."""
    cdef int64_t k, chosen = 0
    cdef bbn_long total = bbn_of_log(-INFINITY)
    cdef double left = uniform
    for k in range(ptr[i], ptr[i + 1]):
        if not masks[k] & ~within and (last == 0 or masks[k] & last):
            total = bbn_sum(total, bbn_of_log(scores[k]))
    for k in range(ptr[i], ptr[i + 1]):
        if not masks[k] & ~within and (last == 0 or masks[k] & last):
            chosen = masks[k]
            left -= bbn_ratio(bbn_of_log(scores[k]), total)
            if left < 0.0:
                break
    return chosen


cdef int parent_sums(const int64_t[::1] ptr, const int64_t[::1] masks, const double[::1] scores, int64_t n,
                     bbn_long* sums) except -1 nogil:
    """A_i(U): the weights of i's parent sets within U, added up, for every U without i."""
    cdef int64_t half = <int64_t> 1 << (n - 1), i, k, step, base
    cdef bbn_long* own
    for i in range(n):
        own = sums + i * half
        for k in range(ptr[i], ptr[i + 1]):
            own[squeezed(masks[k], i)] = bbn_of_log(scores[k])
        step = 1
        while step < half:
            base = 0
            while base < half:
                for k in range(base, base + step):
                    own[k + step] = bbn_sum(own[k + step], own[k])
                base += 2 * step
            step *= 2
        poll()
    return 0


cdef int dags_below(int64_t n, bbn_long* sums, bbn_long* below, bbn_long* scratch) except -1 nogil:
    """Z(S), the weight of all DAGs over S: Z(S) = Σ_{∅≠T⊆S} (−1)^{|T|+1} Z(S∖T) ∏_{i∈T} A_i(S∖T)."""
    cdef int64_t size = <int64_t> 1 << n, u, rest, t, index, done = 0
    below[0] = bbn_of_log(0.0)
    for u in range(size - 1):
        rest = (size - 1) ^ u
        scratch[0] = below[u]
        t = 0
        index = 0
        while t != rest:
            t = (t - rest) & rest
            index += 1
            scratch[index] = bbn_product(
                scratch[index & (index - 1)], bbn_negative(factor(sums, n, t, u))
            )
            below[u | t] = bbn_sum(below[u | t], bbn_negative(scratch[index]))
        done += index
        if done > POLL_PAIRS:
            poll()
            done = 0
    return 0


cdef inline bbn_long factor(bbn_long* sums, int64_t n, int64_t t, int64_t u) noexcept nogil:
    """A_i(u) of the lowest variable i in t."""
    cdef int64_t i = 0
    while not t & 1:
        t >>= 1
        i += 1
    return sums[(i << (n - 1)) + squeezed(u, i)]


cdef int dags_above(int64_t n, bbn_long* sums, bbn_long* below, bbn_long* above, bbn_long* through,
                    bbn_long* scratch) except -1 nogil:
    """B(U), the weight of all ways to go on from U, and h_i(U), that of those in which i is among the next sinks.

    B(U) = Σ_{∅≠T⊆V∖U} (−1)^{|T|+1} B(U∪T) ∏_{i∈T} A_i(U);  h_i(U) = Z(U) times the part of this sum with i in T.
    """
    cdef int64_t size = <int64_t> 1 << n, u, rest, t, index, i, half, k, done = 0
    cdef bbn_long* terms = scratch + size
    cdef bbn_long part
    above[size - 1] = bbn_of_log(0.0)
    for u in range(size - 2, -1, -1):
        rest = (size - 1) ^ u
        scratch[0] = bbn_of_log(0.0)
        terms[0] = bbn_of_log(-INFINITY)
        t = 0
        index = 0
        while t != rest:
            t = (t - rest) & rest
            index += 1
            scratch[index] = bbn_product(
                scratch[index & (index - 1)], bbn_negative(factor(sums, n, t, u))
            )
            terms[index] = bbn_negative(bbn_product(scratch[index], above[u | t]))
        done += index
        # each variable's part is the upper half; then the halves are added up and the next variable is the top one
        half = (index + 1) >> 1
        i = n
        while half:
            i -= 1
            while not rest >> i & 1:
                i -= 1
            part = terms[half]
            terms[0] = bbn_sum(terms[0], terms[half])
            for k in range(1, half):
                part = bbn_sum(part, terms[half + k])
                terms[k] = bbn_sum(terms[k], terms[half + k])
            through[(i << (n - 1)) + squeezed(u, i)] = bbn_product(part, below[u])
            half >>= 1
        above[u] = terms[0]
        if done > POLL_PAIRS:
            poll()
            done = 0
    return 0


cdef int orders(int64_t n, bbn_long* sums, bbn_long* below, bbn_long* above,
                bbn_long* through) except -1 nogil:
    """F(S) = Σ_{i∈S} A_i(S∖i) F(S∖i) over orders, from below and from above; h_i(U) = F(U) A_i(U) B(U∪i)."""
    cdef int64_t size = <int64_t> 1 << n, s, i, at
    cdef bbn_long term
    below[0] = bbn_of_log(0.0)
    for s in range(size):
        for i in range(n):
            if not s >> i & 1:
                term = bbn_product(sums[(i << (n - 1)) + squeezed(s, i)], below[s])
                below[s | <int64_t> 1 << i] = bbn_sum(below[s | <int64_t> 1 << i], term)
        if s % POLL_SUBSETS == 0:
            poll()
    above[size - 1] = bbn_of_log(0.0)
    for s in range(size - 2, -1, -1):
        for i in range(n):
            if not s >> i & 1:
                at = (i << (n - 1)) + squeezed(s, i)
                term = bbn_product(sums[at], above[s | <int64_t> 1 << i])
                above[s] = bbn_sum(above[s], term)
                through[at] = bbn_product(term, below[s])
        if s % POLL_SUBSETS == 0:
            poll()
    return 0


cdef int arc_sums(int64_t n, bbn_long* sums, bbn_long* through, bbn_long total,
                  double[:, ::1] out) except -1 nogil:
    """P(j → i) = Σ_{U∋j} h_i(U) (A_i(U) − A_i(U∖j)) / A_i(U) / Z."""
    cdef int64_t half = <int64_t> 1 << (n - 1), i, j, u, bit, at
    cdef bbn_long part, weight
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            bit = <int64_t> 1 << (j if j < i else j - 1)
            part = bbn_of_log(-INFINITY)
            for u in range(half):
                if u & bit:
                    at = i * half + u
                    if sums[at].hi != 0.0:
                        weight = bbn_sum(sums[at], bbn_negative(sums[at ^ bit]))
                        part = bbn_sum(part, bbn_product(through[at], bbn_quotient(weight, sums[at])))
            out[j, i] = bbn_ratio(part, total)
            poll()
    return 0
