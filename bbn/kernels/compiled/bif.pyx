# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""BIF as most programs write it, in one pass over the bytes; see `pure.bif.scan`.

The ordinary way: ASCII, comments only at the head, no quotes, no properties, variables before tables, and each
table either one `table` without parents or an entry for every row, its states separated by commas.
"""

import numpy as np

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memset

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0

cdef enum:
    MAX_PARENTS = 30
    MAX_NUMBER = 300

cdef double NEARLY = 9e-10  # a little less than what a reader keeps, since sums may differ in their last digits
cdef double[23] POWERS
cdef unsigned char[256] IS_SPACE, IS_NAME, IS_NUMBER
cdef int _i
for _i in range(23):
    POWERS[_i] = float(10**_i)
for _i in range(256):
    IS_SPACE[_i] = chr(_i) in " \t\r\n"
    IS_NAME[_i] = _i < 128 and (chr(_i).isalnum() or chr(_i) in "_.+-<>=/")
    IS_NUMBER[_i] = _i < 128 and (chr(_i).isdigit() or chr(_i) in ".eE+-")


class Unusual(Exception):
    """The file is not written in the ordinary way."""


def scan(bytes data):
    """See `pure.bif.scan`."""
    try:
        return _Scanner(data).scan()
    except (Unusual, OverflowError):
        return None


cdef class _Scanner:
    """The bytes, the place reached in them, and the variables declared so far."""

    cdef bytes data
    cdef const unsigned char* text  # ends in a NUL, which is neither space nor name
    cdef Py_ssize_t at, size, n_states, room
    cdef Py_ssize_t* starts  # of every state of every variable
    cdef Py_ssize_t* lengths
    cdef dict index  # name to number
    cdef dict tuples  # states as written to states, since many variables share them
    cdef list states, firsts
    cdef bint exact  # whether every row sums to 1, so nearly that it is kept as it is

    def __cinit__(self, bytes data):
        self.data = data
        self.text = data
        self.size = len(data)
        self.index = {}
        self.tuples = {}
        self.states = []
        self.firsts = []
        self.exact = True

    def __dealloc__(self):
        free(self.starts)
        free(self.lengths)

    cdef object scan(self):
        cdef Py_ssize_t head
        while True:
            self.skip()
            if self.text[self.at] != c"/" or self.text[self.at + 1] != c"/":
                break
            while self.text[self.at] != c"\n":
                if self.text[self.at] == 0:
                    raise Unusual
                self.at += 1
        head = self.at
        name = ""
        nodes = {}
        while True:
            self.skip()
            if self.text[self.at] == c";":
                self.at += 1
            elif self.text[self.at] == c"v":
                self.expect_word(b"variable")
                self.declare()
            elif self.text[self.at] == c"p":
                self.table(nodes)
            elif self.text[self.at] == c"n":
                self.expect_word(b"network")
                name = self.name()
                self.expect(c"{")
                self.expect(c"}")
            elif self.at == self.size and len(nodes) == len(self.index):
                return name, head, self.exact, list(nodes.values())
            else:
                raise Unusual

    cdef inline void skip(self) noexcept:
        while IS_SPACE[self.text[self.at]]:
            self.at += 1

    cdef int expect(self, unsigned char mark) except -1:
        self.skip()
        if self.text[self.at] != mark:
            raise Unusual
        self.at += 1
        return 0

    cdef int expect_word(self, bytes word) except -1:
        self.skip()
        if memcmp(self.text + self.at, <const char*> word, min(len(word), self.size - self.at + 1)) != 0:
            raise Unusual
        self.at += len(word)
        if IS_NAME[self.text[self.at]]:
            raise Unusual
        return 0

    cdef Py_ssize_t word(self) except -1:
        """Pass over a name and give its length."""
        cdef Py_ssize_t start
        cdef unsigned char next
        self.skip()
        start = self.at
        while IS_NAME[self.text[self.at]]:
            if self.text[self.at] == c"/":
                next = self.text[self.at + 1]
                if next == c"/" or next == c"*":
                    raise Unusual
            self.at += 1
        if self.at == start:
            raise Unusual
        return self.at - start

    cdef str name(self):
        cdef Py_ssize_t length = self.word()
        return self.data[self.at - length:self.at].decode("ascii")

    cdef int declare(self) except -1:
        """`x { type discrete [ 2 ] { yes, no }; }`, after `variable`."""
        cdef Py_ssize_t length, first = self.n_states, start
        name = self.name()
        self.expect(c"{")
        self.expect_word(b"type")
        self.expect_word(b"discrete")
        self.expect(c"[")
        count = self.name()
        self.expect(c"]")
        self.expect(c"{")
        self.skip()
        start = self.at
        while True:
            length = self.word()
            if self.n_states == self.room:
                self.grow()
            self.starts[self.n_states] = self.at - length
            self.lengths[self.n_states] = length
            self.n_states += 1
            self.skip()
            if self.text[self.at] != c",":
                break
            self.at += 1
        written = self.data[start:self.at]
        self.expect(c"}")
        self.expect(c";")
        self.expect(c"}")
        if name in self.index or count != str(self.n_states - first):
            raise Unusual
        states = self.tuples.get(written)
        if states is None:
            states = tuple([state.strip() for state in written.decode("ascii").split(",")])
            self.tuples[written] = states
        self.index[name] = len(self.states)
        self.states.append(states)
        self.firsts.append(first)
        return 0

    cdef int grow(self) except -1:
        cdef Py_ssize_t room = max(256, 2 * self.room)
        cdef Py_ssize_t* more = <Py_ssize_t*> realloc(self.starts, room * sizeof(Py_ssize_t))
        if more == NULL:
            raise MemoryError
        self.starts = more
        more = <Py_ssize_t*> realloc(self.lengths, room * sizeof(Py_ssize_t))
        if more == NULL:
            raise MemoryError
        self.lengths = more
        self.room = room
        return 0

    cdef int table(self, dict nodes) except -1:
        """`probability ( x | y, z ) { (yes, no) 0.1, 0.9; … }`."""
        cdef Py_ssize_t start = self.at, card, n_rows = 1, row, done = 0, n_parents = 0, i, code
        cdef Py_ssize_t[MAX_PARENTS] firsts, cards, last
        cdef double[::1] values
        self.expect_word(b"probability")
        self.expect(c"(")
        name = self.name()
        parents = []
        self.skip()
        if self.text[self.at] == c"|":
            while not parents or self.text[self.at] == c",":
                self.at += 1
                parents.append(self.name())
                self.skip()
        self.expect(c")")
        self.expect(c"{")
        number = self.index.get(name)
        if number is None or name in nodes or len(parents) > MAX_PARENTS or len({name, *parents}) <= len(parents):
            raise Unusual
        card = len(self.states[number])
        for parent in parents:
            other = self.index.get(parent)
            if other is None:
                raise Unusual
            firsts[n_parents] = self.firsts[other]
            cards[n_parents] = len(self.states[other])
            last[n_parents] = 0
            n_rows *= cards[n_parents]
            n_parents += 1
            if n_rows > self.size:
                raise Unusual
        if n_rows * card > self.size:  # an entry takes at least two bytes
            raise Unusual
        array = np.empty(n_rows * card)
        values = array
        cdef char* seen = <char*> malloc(n_rows)
        if seen == NULL:
            raise MemoryError
        memset(seen, 0, n_rows)
        try:
            while done < n_rows:
                row = 0
                if n_parents == 0:
                    self.expect_word(b"table")
                else:
                    self.expect(c"(")
                    for i in range(n_parents):
                        if i:
                            self.expect(c",")
                        code = self.state(firsts[i], cards[i], last[i])
                        last[i] = code
                        row = row * cards[i] + code
                    self.expect(c")")
                if seen[row]:
                    raise Unusual
                seen[row] = 1
                done += 1
                self.row(&values[row * card], card)
        finally:
            free(seen)
        self.expect(c"}")
        nodes[name] = (name, self.states[number], tuple(parents), array, start)
        return 0

    cdef Py_ssize_t state(self, Py_ssize_t first, Py_ssize_t card, Py_ssize_t guess) except -1:
        """The code of the state that follows; the last one and its successor are tried first."""
        cdef Py_ssize_t length = self.word(), tried, code
        cdef const unsigned char* found = self.text + self.at - length
        for tried in range(card):
            code = (guess + tried) % card
            if self.lengths[first + code] == length and memcmp(self.text + self.starts[first + code], found, length) == 0:
                return code
        raise Unusual

    cdef int row(self, double* out, Py_ssize_t card) except -1:
        """The numbers of one entry, up to its semicolon."""
        cdef Py_ssize_t i
        cdef double sum = 0.0
        for i in range(card):
            self.skip()
            if i and self.text[self.at] == c",":
                self.at += 1
                self.skip()
            out[i] = self.number()
            sum += out[i]
        if not 1.0 - NEARLY <= sum <= 1.0 + NEARLY:
            self.exact = False
        self.expect(c";")
        return 0

    cdef double number(self) except -1.0:
        """A number; up to 15 digits it is a quotient of exact doubles, and so rounded right (Clinger 1990)."""
        cdef Py_ssize_t start = self.at
        cdef uint64_t digits = 0
        cdef int count = 0, scale = 0
        cdef bint point = False
        cdef unsigned char c
        cdef char* end
        cdef double value
        while True:
            c = self.text[self.at]
            if c >= c"0" and c <= c"9":
                if digits or c != c"0":
                    count += 1
                if count < 19:
                    digits = 10 * digits + (c - c"0")
                scale += point
            elif c == c"." and not point:
                point = True
            else:
                break
            self.at += 1
        if self.at - start <= point:  # no digit
            raise Unusual
        if not IS_NUMBER[c] and count <= 15 and scale <= 22:
            return digits / POWERS[scale]
        while IS_NUMBER[self.text[self.at]]:
            self.at += 1
        if self.at - start > MAX_NUMBER:
            raise Unusual
        try:
            value = PyOS_string_to_double(<const char*> self.text + start, &end, OverflowError)
        except ValueError:
            raise Unusual from None
        if <const unsigned char*> end != self.text + self.at:
            raise Unusual
        return value
