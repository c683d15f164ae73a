# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Run a tape on numbers of any size, where doubles did not do."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from bbn.kernels.compiled.watch cimport poll

ctypedef int (*Poll)() except -1 nogil


cdef extern from "wide.h":
    cdef cppclass Wide:
        Wide()
        double m
        int64_t e
    double log_of(const Wide& value) noexcept nogil


cdef extern from "wide_tape.h":
    cdef cppclass WideState:
        const double* tables
        Wide* base
        Wide* work
        Wide* scratch
        Wide* out
        double* answer
        int64_t* codes
        const double** likelihoods
        cbool maximise
        int64_t cells
    double wide_execute(WideState& state, const int64_t* tape, int64_t length, Poll poll) except? -2.0 nogil


cdef logs_of(vector[Wide]& cells):
    """The logarithms of wide numbers, -inf of 0."""
    cdef double[::1] out = np.empty(cells.size())
    cdef size_t i
    for i in range(cells.size()):
        out[i] = log_of(cells[i]) if cells[i].m > 0.0 else -INFINITY
    return np.asarray(out)


cdef class WideProgram:
    """A layout with its tables, ready to run on wide numbers; safe to share between threads."""

    cdef readonly object layout, once_out
    cdef readonly double once_log
    cdef readonly cbool maximise
    cdef object cards
    cdef const double[::1] tables
    cdef const int64_t[::1] tape
    cdef vector[Wide] base
    cdef vector[Wide] once_wide
    cdef object base_logs

    def __init__(self, const int64_t[::1] cards, tables, layout, cbool maximise=False):
        if len(layout.out) != cards.shape[0] or len(tables) != layout.tables_size:
            raise ValueError(f"expected {len(layout.out)} cards and {layout.tables_size} numbers of tables, found "
                             f"{cards.shape[0]} and {len(tables)}")
        self.layout, self.cards, self.maximise = layout, cards, maximise
        self.tables = np.append(tables, 0.0)
        self.tape = np.append(layout.run, 0)
        self.base.resize(<size_t> layout.base_size + 1)
        self.once_wide.resize(<size_t> layout.out_size + 1)
        self.once_out = np.zeros(layout.out_size + 1)
        self.base_logs = None
        self.once_log = self.execute(np.append(layout.once, 0), self.base, self.once_wide, self.once_out, (), ())

    def run(self, hard=(), likelihoods=()):
        """The normalised marginals that the layout reads, and the log of the total; -inf: impossible evidence."""
        out = self.once_out.copy()
        if self.once_log == -INFINITY:
            return out[: self.layout.out_size], self.once_log
        cdef vector[Wide] work
        cdef vector[Wide] sums = self.once_wide
        work.resize(<size_t> self.layout.work_size + 1)
        return out[: self.layout.out_size], self.once_log + self.execute(self.tape, work, sums, out, hard, likelihoods)

    def collect(self, hard=(), likelihoods=()):
        """The logs of the collected potentials of dynamic and of static cliques, and of the total (or maximum)."""
        cdef vector[Wide] work
        cdef vector[Wide] sums = self.once_wide
        total = self.once_log
        work.resize(<size_t> self.layout.work_size + 1)
        if total > -INFINITY:
            total += self.execute(self.tape, work, sums, self.once_out.copy(), hard, likelihoods)
        if self.base_logs is None:
            self.base_logs = logs_of(self.base)
        return logs_of(work), self.base_logs, total

    cdef double execute(self, const int64_t[::1] tape, vector[Wide]& work, vector[Wide]& sums, double[::1] answer,
                        hard, likelihoods) except? -2.0:
        cdef WideState state
        cdef vector[Wide] scratch
        cdef vector[int64_t] codes
        cdef vector[const double*] vectors
        cdef double[::1] values
        cdef int64_t v, code, length = tape.shape[0] - 1
        cdef double total
        kept = []
        scratch.resize(<size_t> self.layout.scratch_size + 1)
        codes.resize(len(self.cards) + 1)
        vectors.resize(len(self.cards) + 1)
        for v, code in hard:
            if not 0 <= v < len(self.cards) or not 0 <= code < self.cards[v]:
                raise ValueError(f"variable {v} has no code {code}")
        for v, given in likelihoods:
            if not 0 <= v < len(self.cards) or len(given) != self.cards[v]:
                raise ValueError(f"variable {v}: {len(given)} numbers are not a likelihood of its states")
        certain = [(v, np.arange(self.cards[v]) == code) for v, code in hard]
        for v, code in hard:
            codes[v] = code
        for v, given in (*certain, *likelihoods):
            values = np.array(given, np.float64)
            kept.append(values)
            vectors[v] = &values[0]
        state.tables, state.base, state.work = &self.tables[0], self.base.data(), work.data()
        state.scratch, state.out, state.answer = scratch.data(), sums.data(), &answer[0]
        state.codes, state.likelihoods, state.maximise, state.cells = codes.data(), vectors.data(), self.maximise, 0
        with nogil:
            total = wide_execute(state, &tape[0], length, poll)
        return total
