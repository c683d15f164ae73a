"""Embeddings: old variables as functions of new ones, so that one lift undoes any number of passes.

A pass leaves states out, or takes variables together. Either way the state of each old variable follows from the state
of one new variable. An embedding says which, and how; two of them compose to one, and the same index arrays bring
joints, marginals and assignments back, whatever the passes were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bbn.inference.exact.problem import Answer, Question, Values, offsets
from bbn.kernels.contracts.types import Floats, Ints, Vectors


class Embedding(NamedTuple):
    """Old variable v is in state ``codes[ptr[v] + c]`` where new variable ``source[v]`` is in state c.

    The states of different c differ, and those that no c has cannot occur.
    """

    source: Ints
    ptr: Ints
    codes: Ints
    old: Ints
    """The number of states of each old variable."""
    new: Ints
    """That of each new one."""

    def of(self, v: int) -> Ints:
        """The state of an old variable in each state of its source."""
        return self.codes[self.ptr[v] : self.ptr[v + 1]]

    def then(self, other: Embedding) -> Embedding:
        """The embedding that first does this, then another of its new variables."""
        source = other.source[self.source]
        sizes = other.new[source]
        ptr = offsets(sizes)
        within = np.arange(ptr[-1]) - np.repeat(ptr[:-1], sizes)
        middle = other.codes[np.repeat(other.ptr[self.source], sizes) + within]
        codes = self.codes[np.repeat(self.ptr[:-1], sizes) + middle]
        return Embedding(source, ptr, codes, self.old, other.new)

    def question(self, asked: Question) -> Question:
        """The question about the new variables; those observed or with a likelihood stay themselves."""
        targets = tuple(dict.fromkeys(self.source[list(asked.targets)].tolist()))
        return asked._replace(targets=targets)

    def values(self, given: Values) -> Values:
        """Findings in the states that are left: of what was observed there is one."""
        likelihoods: Vectors = [
            (v, np.ascontiguousarray(values[self.of(v)])) for v, values in given.likelihoods
        ]
        return Values([(v, 0) for v, _ in given.hard], likelihoods, given.log_scale)

    def lift(self, answer: Answer, asked: Question) -> Answer:
        """An answer in the old variables, from one in the new."""
        if answer.starts is not None:
            return Answer(self.marginals(answer.values, answer.starts), answer.log, offsets(self.old)[:-1])
        if asked.maximise:
            ranking = [(self.assignment(codes), ratio) for codes, ratio in answer.ranking]
            return answer._replace(ranking=ranking)
        return answer._replace(values=self.joint(answer.values, asked.targets))

    def marginals(self, values: Floats, starts: Ints) -> Floats:
        """The marginals of all old variables, one after another; what is not read has one state left, a certain one."""
        sizes, begin = np.diff(self.ptr), starts[self.source]
        begin = np.where(begin < 0, len(values), begin)
        read = np.arange(self.ptr[-1]) + np.repeat(begin - self.ptr[:-1], sizes)
        ends = np.cumsum(self.old)
        whole = np.zeros(ends[-1] if len(ends) else 0)
        whole[np.repeat(ends - self.old, sizes) + self.codes] = np.append(values, 1.0)[read]
        return whole

    def assignment(self, codes: Ints) -> Ints:
        """The codes of the old variables, for codes of the new ones; -1: the only one."""
        return self.codes[self.ptr[:-1] + np.maximum(codes[self.source], 0)]

    def joint(self, values: Floats, targets: Sequence[int]) -> Floats:
        """The joint of old variables over all their states, flat, from that of their sources."""
        if not targets:
            return values
        sources = list(dict.fromkeys(self.source[list(targets)].tolist()))
        shape = self.new[sources].tolist()
        whole = np.zeros(self.old[list(targets)])
        places = []
        for v in targets:
            along = [1] * len(shape)
            k = sources.index(int(self.source[v]))
            along[k] = shape[k]
            places.append(self.of(v).reshape(along))
        whole[tuple(places)] = values.reshape(shape)
        return whole.ravel()


def leaving_out(cards: Ints, domain: Floats | Ints | np.ndarray) -> Embedding:
    """The embedding of the variables whose states are those with 1 in `domain`, all states end to end."""
    alive = np.flatnonzero(domain)
    starts = offsets(cards)
    left = np.add.reduceat(domain.astype(np.int64), starts[:-1]) if len(cards) else np.empty(0, np.int64)
    codes = alive - np.repeat(starts[:-1], left)
    return Embedding(np.arange(len(cards)), offsets(left), codes, cards, left)
