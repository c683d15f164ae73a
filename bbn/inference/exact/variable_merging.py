"""Variable merging: variables whose states fix each other are taken as one.

Where a table is zero but for one state of u for each state of v, and one of v for each of u, either says what the
other is: their joint is zero off a bijection. So it is in pedigrees with the two alleles of a person whose unordered
pair was seen, and with alleles that are known to be copies of one another. Such variables become one, and so do their
tables (a table of both is its diagonal); a merged table may show more of them. A clique that would hold several of them
then holds one, so that large pedigrees have 2 to 40 times fewer cells. It takes a few passes over the tables (10 ms for
500 small ones), so it is done where a run is long.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from bbn.inference.exact.embedding import Embedding
from bbn.inference.exact.problem import Factors, offsets
from bbn.kernels.contracts.types import Floats

Codes = NDArray[np.intp]


def merged(model: Factors, apart: Collection[int] = ()) -> tuple[Factors, Embedding] | None:
    """The model whose variables that fix each other are one, and the way back; None if none do.

    Variables are numbered as before; one that became a part of another has one state left.

    Parameters
    ----------
    model : Factors
        The model, without the states that cannot occur.
    apart : collection of variables
        Those that stay as they are.
    """
    cards = model.cards.tolist()
    bounds, starts, members = model.scope_ptr.tolist(), model.table_ptr.tolist(), model.scope.tolist()
    scopes = [members[a:b] for a, b in pairwise(bounds)]
    tables = [
        model.tables[start:end].reshape([cards[v] for v in scope])
        for (start, end), scope in zip(pairwise(starts), scopes, strict=True)
    ]
    holding: list[list[int]] = [[] for _ in cards]
    for f, scope in enumerate(scopes):
        for v in scope:
            holding[v].append(f)
    speaker = list(range(len(cards)))
    image: dict[int, Codes] = {}
    waiting = list(range(len(scopes)))[::-1]
    while waiting:
        f = waiting.pop()
        found = _fixed(scopes[f], tables[f], cards, apart)
        if found is None:
            continue
        kept, gone, states = found
        for w, own in enumerate(speaker):
            if own == gone:
                image[w] = states if w == gone else image[w][states]
                speaker[w] = kept
        for g in holding[gone]:
            scopes[g], tables[g] = _renamed(scopes[g], tables[g], kept, gone, states)
            if g not in holding[kept]:
                holding[kept].append(g)
        waiting += [g for g in holding[gone] if g != f] + [f]
        holding[gone] = []
    if not image:
        return None
    left = model.cards.copy()
    left[list(image)] = 1
    flat = [np.ascontiguousarray(table).ravel() for table in tables]
    small = model._replace(
        cards=left,
        scope_ptr=offsets([len(scope) for scope in scopes]),
        scope=np.array([v for scope in scopes for v in scope], np.int64),
        table_ptr=offsets([table.size for table in flat]),
        tables=np.concatenate(flat),
        most_states=int(left.max(initial=1)),
    )
    codes = [image[v] if v in image else np.arange(cards[v]) for v in range(len(cards))]
    sizes = [len(own) for own in codes]
    source = np.array(speaker, np.int64)
    return small, Embedding(source, offsets(sizes), np.concatenate(codes), model.cards, left)


def _fixed(
    scope: list[int], table: Floats, cards: list[int], apart: Collection[int]
) -> tuple[int, int, Codes] | None:
    """Two variables of a table that fix each other, and the state of the second for each of the first."""
    own = [v for v in scope if v not in apart]
    if len({cards[v] for v in own}) == len(own):
        return None
    some = table != 0.0
    if some.all():
        return None
    for u, v in combinations(own, 2):
        if cards[u] == cards[v]:
            i, j = scope.index(u), scope.index(v)
            both = some.any(axis=tuple(k for k in range(len(scope)) if k not in (i, j)))
            if i > j:
                both = both.T
            if (both.sum(axis=0) == 1).all() and (both.sum(axis=1) == 1).all():
                return u, v, both.argmax(axis=1)
    return None


def _renamed(
    scope: list[int], table: Floats, kept: int, gone: int, states: Codes
) -> tuple[list[int], Floats]:
    """A table in which `kept` says what `gone` is."""
    axis = scope.index(gone)
    table = table.take(states, axis=axis)
    if kept not in scope:
        return [kept if v == gone else v for v in scope], table
    both = np.diagonal(table, axis1=scope.index(kept), axis2=axis)
    return [v for v in scope if v not in (kept, gone)] + [kept], both
