# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The best assignments, read from cliques that were maximised.

Each clique's axes start with those it shares with its parent. Going from the roots down these are already decided;
they pick one row of the clique, and the largest cell of that row decides the others (Dawid 1992). Any other cell of
the row costs its ratio to the largest, and nothing else changes, as the cliques below then do their best with it. So
the next best assignments come from one collection (Nilsson 1998): each takes one clique's next cell, in the row that
the cliques before it decide, and the best below.

Cells that differ by less than the share TIE of the larger tie, and the first of them counts as the best; so the answer
does not depend on the order in which a run multiplied its numbers.

A row is not sorted; the next cell is looked for: the next of those that tie with the one before it, or else the
first of those that tie with the largest that is left.
"""

import numpy as np

cimport numpy as cnp
from libc.math cimport INFINITY, floor, isfinite, log
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from bbn.kernels.compiled.arrays cimport Words, check_length, words_of
from bbn.kernels.compiled.tape cimport BASE, DEEPEST, LIKELY, TABLES
from bbn.kernels.compiled.watch cimport POLL_CELLS, bbn_mode, bbn_range_begin, bbn_range_end, bbn_range_left, poll

from bbn.kernels.contracts.remade import check_remade
from bbn.kernels.watch import check

cnp.import_array()

ctypedef const double* Source

cdef double TIE = 1e-12
cdef double STEPS = 1e12  # losses are compared by so small a step


cdef extern from "walk.h":
    void bbn_multiply(double* target, Source left, Source source, double scale, int64_t depth, Words dims,
                      Words steps) noexcept nogil
    double bbn_largest(Source cells, int64_t n) noexcept nogil


cdef extern from *:
    """
    #include <queue>

    /* An assignment that takes one clique's next cell. */
    struct Departure {
        double key; /* the loss, rounded */
        int64_t number, answer, clique, cell;
        double loss, before, top, head; /* of the row: its best cell, and the largest of those that tie with this one */
        bool operator<(const Departure &other) const {
            return key != other.key ? key > other.key : number > other.number;
        }
    };
    typedef std::priority_queue<Departure> Departures;
    """
    cppclass Departure:
        double key
        int64_t number
        int64_t answer
        int64_t clique
        int64_t cell
        double loss
        double before
        double top
        double head
    cppclass Departures:
        bint empty() nogil
        void push(Departure) nogil
        const Departure& top() nogil
        void pop() nogil


cdef class Explainer:
    """Reads the best assignments from runs of one program that maximises.

    Parameters
    ----------
    cards : int64 array (n,)
        The number of states of each variable.
    tables : float64 array
        The model's tables.
    layout : Layout
        That of the program, its cliques parents first.
    remade : int64 array, optional
        How the rows of cliques that are not stored are made; see `contracts.remade`.
    """

    cdef object kept
    cdef int64_t n, cliques, tables_size, work_size, base_size
    cdef Words cards, starts, axes, shared, offset, dynamic
    cdef Source tables
    cdef vector[int64_t] columns
    cdef vector[const int64_t*] remade

    def __init__(self, cards, cnp.ndarray tables, layout, remade=None):
        cdef int64_t c, k, columns, at = 0
        cdef Words words
        if cnp.PyArray_TYPE(tables) != cnp.NPY_DOUBLE or not cnp.PyArray_IS_C_CONTIGUOUS(tables):
            raise TypeError(f"expected doubles in C order, found {tables.dtype}")
        check_length(cnp.PyArray_SIZE(tables), layout.tables_size, "tables")
        self.kept = cards, tables, layout, remade
        self.cards, self.n, self.cliques = words_of(cards), len(cards), len(layout.parent)
        self.starts, self.axes, self.shared = words_of(layout.axes_ptr), words_of(layout.axes), words_of(layout.separator)
        self.offset, self.dynamic = words_of(layout.clique), words_of(layout.dynamic)
        self.work_size, self.base_size = layout.work_size, layout.base_size
        self.tables = <Source> cnp.PyArray_DATA(tables)
        for c in range(self.cliques):
            columns = 1
            for k in range(self.starts[c] + self.shared[c], self.starts[c + 1]):
                columns *= self.cards[self.axes[k]]
            self.columns.push_back(columns)
            self.remade.push_back(NULL)
        if remade is not None:
            check_remade(cards, layout, remade)
            words = words_of(remade)
            while at < len(remade):
                self.remade[words[at]] = words + at
                at += words[at + 1]

    def ranked(self, cnp.ndarray work, cnp.ndarray base, hard=(), likelihoods=(), bint logs=False):
        """The possible assignments, best first.

        Parameters
        ----------
        work, base : float64 arrays
            The collected potentials of dynamic and of static cliques. The run's own are written to.
        hard, likelihoods
            Those of the run.
        logs : bool
            Whether the potentials are logarithms; then all are stored.
        """
        return Ranked(self, work, base, hard, likelihoods, logs)


cdef class Ranked:
    """All possible assignments, best first: the codes of the variables, and ln of the ratio to the best."""

    cdef Explainer plan
    cdef object kept
    cdef double* work
    cdef double* base
    cdef bint logs
    cdef int64_t first, made, count, cells, row_of
    cdef bint row_logs
    cdef double loss
    cdef vector[int64_t] hard
    cdef vector[int64_t] codes
    cdef vector[const double*] likelihoods
    cdef vector[int64_t] answers
    cdef Departures heap

    def __init__(self, Explainer plan not None, cnp.ndarray work, cnp.ndarray base, hard, likelihoods, bint logs):
        cdef int64_t v, code
        cdef double[::1] vector
        self.plan, self.logs = plan, logs
        self.kept = [work, base]
        if cnp.PyArray_SIZE(work) < plan.work_size or cnp.PyArray_SIZE(base) < plan.base_size:
            raise ValueError("these are not the potentials of a run")
        self.work, self.base = <double*> cnp.PyArray_DATA(work), <double*> cnp.PyArray_DATA(base)
        self.codes.assign(plan.n, -1)
        self.hard.assign(plan.n, 0)
        self.likelihoods.assign(plan.n, NULL)
        for v, code in hard:
            if not 0 <= v < plan.n or not 0 <= code < plan.cards[v]:
                raise ValueError(f"variable {v} has no code {code}")
            self.codes[v] = self.hard[v] = code
        for v, values in likelihoods:
            vector = np.array(values, np.float64)
            if not 0 <= v < plan.n or vector.shape[0] != plan.cards[v]:
                raise ValueError(f"variable {v}: {vector.shape[0]} numbers are not a likelihood of its states")
            self.kept.append(vector)
            self.likelihoods[v] = &vector[0]
        self.row_of = -1

    def __iter__(self):
        return self

    def __next__(self):
        """Codes, and ln of the ratio to the best."""
        cdef bbn_mode mode
        cdef bint found
        check()
        mode = bbn_range_begin()
        try:
            with nogil:
                found = self.advance()
        finally:
            bbn_range_end(mode)
        if not found:
            raise StopIteration
        cdef cnp.npy_intp size = self.plan.n
        cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT64, 0)
        cdef int64_t* codes = <int64_t*> cnp.PyArray_DATA(out)
        cdef int64_t v
        for v in range(size):
            codes[v] = self.codes[v]
        return out, -self.loss

    cdef bint advance(self) except -1 nogil:
        """Go to the next assignment, if there is one."""
        cdef int64_t c, n = self.plan.n
        cdef Departure next
        if self.count:
            self.answers.insert(self.answers.end(), self.codes.begin(), self.codes.end())
            for c in range(self.first, self.plan.cliques):
                next.answer, next.clique, next.before = self.count - 1, c, self.loss
                next.top = next.head = INFINITY
                next.cell = self.plan.columns[c]
                self.offer(next)
            if self.heap.empty():
                return False
            next = self.heap.top()
            self.heap.pop()
            self.loss = max(self.loss, next.loss)
            self.codes.assign(self.answers.begin() + next.answer * n, self.answers.begin() + (next.answer + 1) * n)
            self.offer(next)
            self.decide(next.clique, next.cell)
            self.first = next.clique + 1
        for c in range(self.first, self.plan.cliques):
            next.cell, next.head = self.plan.columns[c], INFINITY
            self.find(self.row(c), c, &next)
            self.decide(c, next.cell)
        self.count += 1
        return True

    cdef int offer(self, Departure last) except -1 nogil:
        """Offer the cell after this one of its row, if it is possible; after the best where none is given."""
        cdef Source row = self.row(last.clique)
        if last.head == INFINITY:
            self.find(row, last.clique, &last)
            last.top = row[last.cell]
        if not self.find(row, last.clique, &last):
            return 0
        self.made += 1
        last.number = self.made
        last.loss = last.before + loss_of(last.top, row[last.cell], self.row_logs)
        last.key = floor(last.loss * STEPS + 0.5)
        self.heap.push(last)
        return 0

    cdef bint find(self, Source row, int64_t c, Departure* last) except -1 nogil:
        """The cell of clique c that comes after the last one in its row; False if there is none."""
        cdef int64_t i, n = self.plan.columns[c]
        cdef double below = lowest(last.head, self.row_logs), head = -INFINITY
        for i in range(last.cell + 1, n):
            if below < row[i] <= last.head:
                last.cell = i
                return True
        if last.head == INFINITY:
            head = bbn_largest(row, n)
        else:
            for i in range(n):
                if row[i] <= below and row[i] > head:
                    head = row[i]
        self.step(n)
        if head == -INFINITY or (head == 0.0 and not self.row_logs):
            return False
        last.head, below = head, lowest(head, self.row_logs)
        i = 0
        while not below < row[i] <= head:
            i += 1
        last.cell = i
        return True

    cdef int decide(self, int64_t c, int64_t cell) except -1 nogil:
        """Set the variables that clique c decides as in this cell of its row."""
        cdef int64_t k = self.plan.starts[c + 1] - 1, v
        while k >= self.plan.starts[c] + self.plan.shared[c]:
            v = self.plan.axes[k]
            self.codes[v] = cell % self.plan.cards[v]
            cell //= self.plan.cards[v]
            k -= 1
        return 0

    cdef int step(self, int64_t cells) except -1 nogil:
        """Let signals in after some work."""
        self.cells += cells
        if self.cells > POLL_CELLS:
            self.cells = 0
            poll()
        return 0

    cdef Source row(self, int64_t c) except NULL nogil:
        """The cells of clique c that agree with what is decided of its separator; `row_logs`: they are logarithms."""
        cdef int64_t k, row = 0
        self.row_logs = self.logs
        if self.plan.remade[c] != NULL and not self.logs:
            return self.remake(c, self.plan.remade[c])
        for k in range(self.plan.starts[c], self.plan.starts[c] + self.plan.shared[c]):
            row = row * self.plan.cards[self.plan.axes[k]] + self.codes[self.plan.axes[k]]
        return (self.work if self.plan.dynamic[c] else self.base) + self.plan.offset[c] + row * self.plan.columns[c]

    cdef Source remake(self, int64_t c, Words words) except NULL nogil:
        """Make that row again: as the product of its factors, or, if that leaves the range of a double, in logarithms."""
        cdef int64_t k, n = self.plan.columns[c], shared = self.plan.shared[c]
        cdef double* target = self.work + words[2]
        cdef Words factor = words + 4
        cdef Words walk
        cdef Source source
        cdef Source left = NULL
        bbn_range_begin()
        for k in range(words[3]):
            source = self.source(c, factor)
            if source != NULL:
                walk = factor + 6 + 2 * factor[4] + shared
                bbn_multiply(target, left, source, 1.0, factor[5], walk, walk + factor[5])
                left = target
            factor += factor[1]
        if left == NULL:
            for k in range(n):
                target[k] = 1.0
        self.step(n * words[3])
        if bbn_range_left():
            self.row_logs = True
            for k in range(n):
                target[k] = 0.0
            factor = words + 4
            for k in range(words[3]):
                source = self.source(c, factor)
                if source != NULL:
                    walk = factor + 6 + 2 * factor[4] + shared
                    add_logs(target, source, n, factor[5], walk, walk + factor[5])
                factor += factor[1]
        return target

    cdef Source source(self, int64_t c, Words f) noexcept nogil:
        """Where the row's part of a factor begins; NULL for a likelihood that the run does not have."""
        cdef int64_t k
        cdef Source source
        cdef Words strides = f + 6 + 2 * f[4]
        if f[0] == LIKELY:
            source = self.likelihoods[f[3]]
            if source == NULL:
                return NULL
        else:
            source = (self.plan.tables if f[2] == TABLES else (self.base if f[2] == BASE else self.work)) + f[3]
        for k in range(f[4]):
            source += self.hard[f[6 + 2 * k]] * f[7 + 2 * k]
        for k in range(self.plan.shared[c]):
            source += self.codes[self.plan.axes[self.plan.starts[c] + k]] * strides[k]
        return source


cdef inline double lowest(double head, bint logs) noexcept nogil:
    """What ties with the head of its kind is larger than this."""
    return head - TIE if logs else head * (1.0 - TIE)


cdef inline double loss_of(double top, double cell, bint logs) noexcept nogil:
    cdef double ratio
    if logs:
        return top - cell
    ratio = top / cell
    return log(ratio) if isfinite(ratio) else log(top) - log(cell)


cdef void add_logs(double* target, Source source, int64_t n, int64_t depth, Words dims, Words steps) noexcept nogil:
    """Add the logarithms of an operand to a row."""
    cdef int64_t counter[DEEPEST]
    cdef int64_t i, k, at = 0
    for k in range(depth):
        counter[k] = 0
    for i in range(n):
        target[i] += log(source[at]) if source[at] > 0.0 else -INFINITY
        k = depth - 1
        while k >= 0:
            at += steps[k]
            counter[k] += 1
            if counter[k] < dims[k]:
                break
            at -= dims[k] * steps[k]
            counter[k] = 0
            k -= 1
