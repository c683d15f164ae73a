# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Eliminating variables from probabilities and utilities: the compiled twin of `pure.decide`, which has the tape."""

from bbn.kernels.compiled.watch cimport POLL_CELLS, poll
from bbn.kernels.pure.decide import run_in_logs  # logarithms are taken where doubles fail: the twin will do

from libc.math cimport NAN, log
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

cdef enum:
    SUM = 0
    MAX = 1
    MIN = 2
    MOST = 3
    HEAD = 10
    MOST_AXES = 32

cdef double TINY = 1e-150, HUGE = 1e150, FAINT = 1e-290


def run(const int64_t[::1] tape, double[::1] cells, int64_t[::1] choices):
    """See `pure.decide.run`."""
    cdef int64_t n = tape.shape[0], at = 0, most = check_tape(tape, cells.shape[0], choices.shape[0])
    cdef double log_scale = 0.0
    if n == 0:
        return 0.0
    cdef int64_t* offsets = <int64_t*> malloc((most + 1) * sizeof(int64_t))
    if offsets == NULL:
        raise MemoryError
    try:
        with nogil:
            while at < n:
                log_scale += step(&tape[at], &cells[0], &choices[0] if choices.shape[0] else NULL, offsets)
                at += tape[at + 1]
    finally:
        free(offsets)
    return log_scale


cdef double step(const int64_t* words, double* cells, int64_t* choices, int64_t* offsets) except? -1.0 nogil:
    """One step; the logarithm of the scale."""
    cdef int64_t kind = words[0], n_axes = words[2], card = words[3]
    cdef int64_t n_p = words[4], n_u = words[5], n_allowed = words[6], n_tables = n_p + n_u + n_allowed
    cdef int64_t p_at = words[7], u_at = words[8], choice_at = words[9], width = n_axes + 2
    cdef const int64_t* cards = words + HEAD
    cdef const int64_t* tables = cards + n_axes
    cdef const int64_t* table
    cdef int64_t index[MOST_AXES]
    cdef int64_t size = 1, cell, axis, x, i, best_x, since = 0
    cdef double p, u, total, worth, best, goal, most = 0.0
    cdef bint allowed, any_allowed, lost = False
    for axis in range(n_axes):
        size *= cards[axis]
        index[axis] = 0
    for i in range(n_tables):
        offsets[i] = tables[i * width]
    for cell in range(size):
        total = worth = best = 0.0
        best_x = 0
        any_allowed = False
        for x in range(card):
            p = 1.0
            u = 0.0
            for i in range(n_p):
                p *= cells[offsets[i] + x * tables[i * width + n_axes + 1]]
            if not FAINT <= p <= 1.0 / FAINT and not lost:
                lost = True
                for i in range(n_p):
                    lost = lost and cells[offsets[i] + x * tables[i * width + n_axes + 1]] > 0
            for i in range(n_p, n_p + n_u):
                u += cells[offsets[i] + x * tables[i * width + n_axes + 1]]
            if kind == SUM:
                total += p
                worth += p * u
            else:
                allowed = True
                for i in range(n_p + n_u, n_tables):
                    allowed = allowed and cells[offsets[i] + x * tables[i * width + n_axes + 1]] > 0
                goal = u if kind == MAX else p if kind == MOST else -p
                if allowed and (not any_allowed or goal > best) or x == 0:
                    any_allowed = any_allowed or allowed
                    best = goal
                    best_x = x
                    total = p
                    worth = u
        if kind == SUM:
            if p_at >= 0:
                worth = worth / total if total > 0 else 0.0
        else:
            choices[choice_at + cell] = best_x
        if u_at >= 0:
            cells[u_at + cell] = worth
        if p_at >= 0:
            cells[p_at + cell] = total
            if total > most:
                most = total
        since += card * (n_tables + 1)
        if since > POLL_CELLS:
            since = 0
            poll()
        axis = n_axes - 1
        while axis >= 0:
            index[axis] += 1
            table = tables + axis + 1
            if index[axis] < cards[axis]:
                for i in range(n_tables):
                    offsets[i] += table[i * width]
                break
            for i in range(n_tables):
                offsets[i] -= table[i * width] * (cards[axis] - 1)
            index[axis] = 0
            axis -= 1
    if p_at >= 0 and most > 0 and not TINY < most < HUGE:
        for cell in range(size):
            lost = lost or 0.0 < cells[p_at + cell] < FAINT * most
            cells[p_at + cell] /= most
        return NAN if lost else log(most)
    return NAN if lost else 0.0


cdef int64_t check_tape(const int64_t[::1] tape, int64_t n_cells, int64_t n_choices) except -1:
    """The most tables of a step; ValueError unless every step stays within the cells and the choices."""
    cdef int64_t n = tape.shape[0], at = 0, place, axis, i, size, start, last, room, stride, span, most = 0
    cdef int64_t kind, length, n_axes, card, n_tables
    while at < n:
        if at + HEAD > n:
            raise ValueError(f"tape: expected {HEAD} words at {at}, found {n - at}")
        kind, length, n_axes, card = tape[at], tape[at + 1], tape[at + 2], tape[at + 3]
        if not SUM <= kind <= MOST or not 0 <= n_axes <= MOST_AXES or card < 1:
            raise ValueError(f"tape: the step at {at} is not one")
        for i in range(4, 7):
            if not 0 <= tape[at + i] <= n:
                raise ValueError(f"tape: the step at {at} has a wrong number of tables")
        n_tables = tape[at + 4] + tape[at + 5] + tape[at + 6]
        if length != HEAD + n_axes + n_tables * (n_axes + 2) or length > n - at:
            raise ValueError(f"tape: the step at {at} has a wrong length, {length}")
        most = max(most, n_tables)
        size = 1
        room = max(n_cells, n_choices)
        for axis in range(n_axes):
            span = tape[at + HEAD + axis]
            if span < 1:
                raise ValueError(f"tape: the step at {at} has an axis without states")
            size = size * span if size <= room // span else room + 1
        for i in range(7, 10 if kind != SUM else 9):
            start = tape[at + i]
            room = n_cells if i < 9 else n_choices
            if start < (-1 if i < 9 else 0) or start > room or (start >= 0 and size > room - start):
                raise ValueError(f"tape: the results of the step at {at} do not fit")
        place = at + HEAD + n_axes
        for i in range(n_tables):
            last = tape[place]
            if last < 0 or last >= n_cells:
                raise ValueError(f"tape: a table of the step at {at} is outside the cells")
            for axis in range(n_axes + 1):
                stride = tape[place + 1 + axis]
                span = (tape[at + HEAD + axis] if axis < n_axes else card) - 1
                if stride < 0 or (span and stride > (n_cells - 1 - last) // span):
                    raise ValueError(f"tape: a table of the step at {at} is outside the cells")
                last += stride * span
            place += n_axes + 2
        at += length
    return most
