"""Which causes Gibbs sampling moves together with what they decide, and with each other.

A cause that decides its child with certainty can only change together with it, so each cause is a move with all
children that it may decide, and with theirs. Moves may overlap: each is a draw from the full conditional of its
variables. Where the sum of numbers is known exactly, or only whether it is odd, no cause can change alone: neighbours
exchange what they have, two at a time, which reaches every setting if numbers go by steps of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bbn.core.errors import EvidenceError
from bbn.inference.sampling.gibbs_blocks import MOST_STATES, GibbsBlock, join_blocks, too_large
from bbn.inference.sampling.gibbs_causes import Family
from bbn.kernels.contracts.causes import SUM
from bbn.model.factor import Factor

FEW_STATES = 64
"""A cause moves together with a child that it need not move with, where they have no more joint states than this."""


def tied_blocks(
    blocks: Sequence[GibbsBlock], families: Sequence[Family], factors: Sequence[Factor]
) -> list[GibbsBlock]:
    """The moves: blocks that may overlap and cover all variables; EvidenceError if they would be too large.

    Parameters
    ----------
    blocks
        Blocks that cover the variables and do not overlap, as the factors ask for.
    families
        The conditionals of many causes.
    factors
        All other factors.
    """
    home = {name: block for block in blocks for name in block.names}
    zeros = [factor for factor in factors if (factor.values == 0).any()]
    by_parent: dict[str, list[Family]] = {}
    for family in families:
        for parent in family.parents:
            by_parent.setdefault(parent.name, []).append(family)
    moves = [_with_children(block, home, by_parent, zeros) for block in blocks]
    for family in families:
        if family.kind == SUM:
            pairs = [_joined(pair, zeros) for pair in _exchanges(family, home)]
            moves += [_with_children(pair, home, by_parent, zeros) for pair in pairs]
    return _maximal(moves)


def _with_children(
    block: GibbsBlock,
    home: dict[str, GibbsBlock],
    by_parent: dict[str, list[Family]],
    zeros: Sequence[Factor],
) -> GibbsBlock:
    """The block with the children that it decides, and those that these decide; or with a single other child."""
    waiting = list(block.names)
    together = {block.names: block}
    others = {}
    while waiting:
        for family in by_parent.get(waiting.pop(), ()):
            if family.child is None or family.child in block.names:
                continue
            child = home[family.child]
            if not family.certain:
                others[child.names] = child
            elif child.names not in together:
                together[child.names] = child
                waiting += child.names
    whole = _joined(together.values(), zeros)
    others = {names: child for names, child in others.items() if names not in together}
    if len(others) == 1:
        (child,) = others.values()
        if len(whole.states) * len(child.states) <= FEW_STATES:
            whole = _joined([whole, child], zeros)
    return whole


def _joined(blocks: Iterable[GibbsBlock], zeros: Sequence[Factor]) -> GibbsBlock:
    first, *rest = blocks
    for block in rest:
        if set(block.names) <= set(first.names):
            continue
        first = join_blocks(first, block, zeros)
        if len(first.states) > MOST_STATES:
            raise too_large(first.names)
    return first


def _exchanges(family: Family, home: dict[str, GibbsBlock]) -> list[tuple[GibbsBlock, GibbsBlock]]:
    """The pairs of parents that must exchange numbers: none where parents may change one by one.

    With sums by steps of one that is so if the sums that are allowed, given the states left to the child, are
    neighbours, and more than one or all at an end of what is possible.
    """
    numbers = [_numbers(family, i, home) for i in range(len(family.parents))]
    known = int(family.leaves[-1][0])
    low, high = known + sum(map(min, numbers)), known + sum(map(max, numbers))
    codes = [family.seen] if family.child is None else _codes(family.child, home)
    sums = [v for v in range(low, high + 1) if family.level[v] in codes]
    gaps = np.diff(sums)
    steps = all(own == list(range(own[0], own[-1] + 1)) for own in numbers)
    whole = not len(gaps) or int(gaps.max()) == 1
    if (
        whole
        and (len(sums) > 1 or not sums or sums[0] in (low, high))
        and (steps or len(sums) == high - low + 1)
    ):
        return []
    if not steps or (len(gaps) and int(gaps.max()) > 2):
        child = family.child or "an observed child"
        raise EvidenceError(
            f"gibbs: the numbers of {', '.join(p.name for p in family.parents[:6])}, … ({len(family.parents)} "
            f"variables) must make up a sum that {child!r} fixes, and may not be reached one or two at a time; use an "
            'exact method or method="importance"'
        )
    moving = [home[p.name] for p, own in zip(family.parents, numbers, strict=True) if len(own) > 1]
    moving = list({block.names: block for block in moving}.values())
    half = max(2, len(moving) // 2)
    return [(moving[i], moving[i + step]) for step in (1, half) for i in range(len(moving) - step)]


def _numbers(family: Family, i: int, home: dict[str, GibbsBlock]) -> list[int]:
    """The numbers that a parent may still have, ascending."""
    return sorted({int(family.leaves[i][code]) for code in _codes(family.parents[i].name, home)})


def _codes(name: str, home: dict[str, GibbsBlock]) -> set[int]:
    block = home[name]
    return set(block.states[:, block.names.index(name)].tolist())


def _maximal(moves: Sequence[GibbsBlock]) -> list[GibbsBlock]:
    """The moves that no other one contains, each once."""
    distinct = list({frozenset(move.names): move for move in moves}.values())
    holding: dict[str, list[frozenset[str]]] = {}
    for move in distinct:
        for name in move.names:
            holding.setdefault(name, []).append(frozenset(move.names))
    return [
        move
        for move in distinct
        if not any(frozenset(move.names) < other for other in holding[move.names[0]])
    ]
