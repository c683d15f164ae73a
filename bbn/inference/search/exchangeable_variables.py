"""Interchangeable variables: those whose exchange leaves P as it is, so that explanations need not tell them apart.

Variables are interchangeable if they have the same table given the same parents, the same likelihood, and the same
links into the same NoisyMax conditionals. Some best explanation then has their states in order, so a search over a
class of m variables with two states has m + 1 cases in place of 2^m.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from bbn.inference.search.variational_bounds import Codes
from bbn.model.cpt import CPT
from bbn.model.evidence import Findings
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax


class Class(NamedTuple):
    """Interchangeable variables, by number."""

    members: list[int]
    falls: bool
    """Whether codes fall from each to the next, not rise: what is usual comes last."""

    def sort(self, whole: dict[int, int]) -> None:
        """Put the states of an explanation in order."""
        codes = sorted((whole[v] for v in self.members), reverse=self.falls)
        whole.update(zip(self.members, codes, strict=True))

    def limit(self, v: int, code: int, low: Codes, high: Codes) -> None:
        """Lower and raise the bounds of the others' codes where v has this one."""
        place = self.members.index(v)
        before, after = self.members[:place], self.members[place + 1 :]
        if self.falls:
            before, after = after, before
        high[before] = np.minimum(high[before], code)
        low[after] = np.maximum(low[after], code)

    def arrangements(self, codes: Mapping[int, int]) -> int:
        """How many explanations differ from this one in the order of these states alone."""
        counts = Counter(codes[v] for v in self.members).values()
        return math.factorial(len(self.members)) // math.prod(map(math.factorial, counts))


def classes(net: BayesianNetwork, findings: Findings, number: Mapping[str, int]) -> list[Class]:
    """The classes of at least two interchangeable variables that are not observed."""
    found: dict[object, list[str]] = {}
    for name in net.names:
        if name in number and name not in findings.hard:
            mark = _mark(net, findings, name)
            if mark is not None:
                found.setdefault(mark, []).append(name)
    return [
        Class([number[name] for name in names], _usual(net[names[0]]) == 0)
        for names in found.values()
        if len(names) > 1
    ]


def _mark(net: BayesianNetwork, findings: Findings, name: str) -> object:
    """What interchangeable variables have in common; None for a variable that is like no other."""
    own = net[name]
    if type(own) is not CPT:
        return None
    children: list[object] = []
    for child in net.children(name):
        conditional: Any = net[child]
        if isinstance(conditional, NoisyMax):
            place = [p.name for p in conditional.parents].index(name)
            children.append((child, conditional.links[place].tobytes()))
        elif type(conditional) is CPT and len(conditional.parents) == 1 and child in findings.hard:
            children.append(("", conditional.table[:, findings.hard[child]].tobytes()))
        else:
            return None
    likelihood = findings.likelihood.get(name)
    told = b"" if likelihood is None else np.asarray(likelihood, float).tobytes()
    above = tuple(p.name for p in own.parents)
    return own.variable.card, above, own.table.tobytes(), told, tuple(sorted(children))  # type: ignore[type-var]


def _usual(own: Any) -> int:
    """The code that is most probable, of the first and the last."""
    table = own.table.reshape(-1, own.variable.card).sum(axis=0)
    return 0 if table[0] >= table[-1] else own.variable.card - 1


def rearranged(codes: Mapping[int, int], groups: Sequence[Class], most: int) -> Iterator[dict[int, int]]:
    """An explanation and the others that differ in the order of a class's states alone, at most `most`."""
    return islice(_products(dict(codes), groups), most)


def _products(codes: dict[int, int], groups: Sequence[Class]) -> Iterator[dict[int, int]]:
    if not groups:
        yield codes
        return
    first, *others = groups
    for own in _orders(tuple(codes[v] for v in first.members), first.falls):
        yield from _products({**codes, **dict(zip(first.members, own, strict=True))}, others)


def _orders(states: tuple[int, ...], falls: bool) -> Iterator[tuple[int, ...]]:
    """Each different order of these states once."""
    if len(states) <= 1:
        yield states
        return
    for state in sorted(set(states), reverse=falls):
        place = states.index(state)
        for rest in _orders(states[:place] + states[place + 1 :], falls):
            yield (state, *rest)
