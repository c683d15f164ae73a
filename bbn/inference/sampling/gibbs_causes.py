"""Conditionals of many causes in Gibbs sampling, without their tables: NoisyMax and Deterministic.

A NoisyMax is a family of effects, of which the strongest shows; so are the maximum and the minimum of numbers. All
other functions follow from the sum of numbers. Causes that are observed are constant, and so is the leak. Where the
child is observed as y, with α_i(x) = P(effect of cause i ≤ y | x),

    P(y | x) = ∏ α_i(x_i) · P(some effect is y | all are ≤ y),

a factor of each cause alone and a family of two levels; of the weakest state the factors say all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import Ledger
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array
from bbn.inference.sampling.draws import offsets
from bbn.inference.sampling.gibbs_blocks import GibbsBlock
from bbn.kernels.contracts.causes import MOST, STRONGEST, SUM, Causes
from bbn.kernels.contracts.types import Ints
from bbn.model import expansion
from bbn.model.deterministic import Deterministic
from bbn.model.expansion import table_cells
from bbn.model.factor import Factor
from bbn.model.factored import Factored
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax, joined
from bbn.model.variable import Variable

NODE_BYTES = 32
"""What a level of an effect takes in a chain: twice two numbers, for the leaf and for what joins it."""


class Family(NamedTuple):
    """One conditional of many causes."""

    kind: int
    child: str | None
    """None if it is observed."""
    seen: int
    """The level (of a sum: the code) that is observed, or 0."""
    level: Ints
    """Of effects the level of each code; of numbers the code of each sum."""
    size: int
    n_codes: int
    """The states of the child."""
    parents: tuple[Variable, ...]
    """Those that are not observed."""
    leaves: list[Any]
    """Per parent, then of all that is constant: effects of shape (codes, levels), or numbers of shape (codes,)."""

    @property
    def certain(self) -> bool:
        """Whether causes may rule out states of the child other than by their mere absence."""
        return self.kind == SUM or any((leaf[:, 0] == 0).any() for leaf in self.leaves)

    @property
    def has_zeros(self) -> bool:
        """Whether some settings are impossible."""
        return self.certain or bool((self.leaves[-1] == 0).any())


def large_families(
    net: BayesianNetwork, names: set[str], hard: Mapping[str, int]
) -> tuple[dict[str, Family | None], list[Factor]]:
    """The conditionals of these variables whose tables, at the findings, would be large, and factors beside them.

    Returns
    -------
    families, factors
        The family by child, None where the factors say all.
    """
    families: dict[str, Family | None] = {}
    factors: list[Factor] = []
    for own in net.conditionals:
        name = own.variable.name
        if name in names and isinstance(own, Factored) and table_cells(own) > expansion.TABLE_CELLS:
            families[name], more = _family(own, hard)
            factors += more
    return families, factors


def effect_family(own: Factored, hard: Mapping[str, int]) -> tuple[Family | None, list[Factor]] | None:
    """The family and the factors of a NoisyMax, a maximum or a minimum; None of what follows from a sum."""
    plain = isinstance(own, NoisyMax) or (isinstance(own, Deterministic) and own.rule in ("max", "min"))
    return _family(own, hard) if plain else None


def _family(own: Factored, hard: Mapping[str, int]) -> tuple[Family | None, list[Factor]]:
    if isinstance(own, NoisyMax):
        level = np.arange(own.variable.card)
        rises = own.weakest_code == 0
        links = [link if rises else link[:, ::-1] for link in (*own.links, own.leak[None])]
        return _strongest(own, level if rises else level[::-1], links, hard)
    assert isinstance(own, Deterministic)
    if own.rule in ("max", "min"):
        *causes, child = own.numbers
        sign = 1 if own.rule == "max" else -1
        values = sorted({sign * n for numbers in own.numbers for n in numbers})
        links = [np.eye(len(values))[[values.index(sign * n) for n in numbers]] for numbers in causes]
        links.append(np.eye(len(values))[:1])
        return _strongest(own, np.array([values.index(sign * n) for n in child]), links, hard)
    return _sum(own, hard), []


def _strongest(
    own: Factored, level: Ints, links: Sequence[Array], hard: Mapping[str, int]
) -> tuple[Family | None, list[Factor]]:
    """A family of effects, given each cause's and the leak's from the weakest level on."""
    free = tuple(p for p in own.parents if p.name not in hard)
    constant = [
        link[[hard[p.name]]] for p, link in zip(own.parents, links, strict=False) if p.name in hard
    ] + [links[-1]]
    own_links = [link for p, link in zip(own.parents, links, strict=False) if p.name not in hard]
    child = None if own.name in hard else own.name
    factors: list[Factor] = []
    seen, size = 0, links[-1].shape[1]
    if child is None:
        seen = int(level[hard[own.name]])
        scopes = [*((p,) for p in free), *(() for _ in constant)]
        for scope, link in zip(scopes, [*own_links, *constant], strict=True):
            at_most = link[:, : seen + 1].sum(axis=1)
            factors.append(Factor.trusted(scope, at_most if scope else at_most[0]))
        if seen == 0:
            return None, factors
        own_links = [_at_most(link, seen) for link in own_links]
        constant = [_at_most(link, seen) for link in constant]
        seen, size = 1, 2
    together = constant[0]
    for link in constant[1:]:
        together = joined(together, link)
    return Family(
        STRONGEST, child, seen, level, size, own.variable.card, free, [*own_links, together]
    ), factors


def _at_most(link: Array, seen: int) -> Array:
    """P(effect < seen) and P(effect = seen), given it is at most that; without effect where it cannot be."""
    pair = np.stack([link[:, :seen].sum(axis=1), link[:, seen]], axis=1)
    total = pair.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(pair, total, out=np.tile([1.0, 0.0], (len(link), 1)), where=total > 0))


def _sum(own: Deterministic, hard: Mapping[str, int]) -> Family:
    """A family of numbers: the child's code follows from their sum."""
    free = tuple(p for p in own.parents if p.name not in hard)
    leaves = [np.array(n) for p, n in zip(own.parents, own.numbers, strict=False) if p.name not in hard]
    known = sum(n[hard[p.name]] for p, n in zip(own.parents, own.numbers, strict=False) if p.name in hard)
    size = sum(max(numbers) for numbers in own.numbers[:-1]) + 1
    if size > MOST:
        raise EvidenceError(
            f"gibbs: the numbers of the parents of {own.name!r} add up to {size - 1:,}, more than {MOST:,}; use an "
            'exact method or method="likelihood-weighting"'
        )
    sums = np.arange(size)
    if own.rule == "sum":
        result = np.minimum(sums, max(own.numbers[-1]))
    elif own.rule == "xor":
        result = sums % 2
    else:
        least = {"or": 1, "and": len(own.parents)}.get(own.rule, own.at_least or 0)
        result = (sums >= least).astype(np.int64)
    place = {number: code for code, number in enumerate(own.numbers[-1])}
    level = np.array([place.get(number, MOST) for number in result.tolist()], np.int64)
    child, seen = (None, hard[own.name]) if own.name in hard else (own.name, 0)
    return Family(SUM, child, seen, level, size, own.variable.card, free, [*leaves, np.array([known])])


def domain_factors(families: Iterable[Family], variables: Callable[[str], Variable]) -> list[Factor]:
    """Ones and zeros: the states that families leave to a child, or to the parents of an observed one."""
    found = []
    for own in families:
        left = _of_sums(own) if own.kind == SUM else _of_effects(own)
        found += [
            Factor.trusted((variables(name),), possible.astype(float))
            for name, possible in left.items()
            if not possible.all()
        ]
    return found


def _of_effects(own: Family) -> dict[str, NDArray[np.bool_]]:
    """States that the strongest effect may leave: at least what each cause brings for sure, and what one may bring."""
    support = [(leaf > 0).any(axis=0) for leaf in own.leaves]
    if own.child is not None:
        least = max(int(levels.argmax()) for levels in support)
        possible = np.logical_or.reduce(support) & (np.arange(own.size) >= least)
        return {own.child: possible[own.level]}
    able = [i for i, levels in enumerate(support) if levels[1]]
    if len(able) == 1 and able[0] < len(own.parents):  # one cause alone explains what is seen
        return {own.parents[able[0]].name: own.leaves[able[0]][:, 1] > 0}
    return {}


def _of_sums(own: Family) -> dict[str, NDArray[np.bool_]]:
    """States for which a sum within reach gives what is seen, or, of the child, those that some sum gives."""
    low, high = (sum(int(pick(leaf)) for leaf in own.leaves) for pick in (np.min, np.max))
    if own.child is not None:
        return {own.child: np.isin(np.arange(own.n_codes), own.level[low : high + 1])}
    wanted = np.cumsum(np.concatenate([[0], own.level == own.seen]))
    found = {}
    for parent, numbers in zip(own.parents, own.leaves, strict=False):
        first, last = low - numbers.min() + numbers, high - numbers.max() + numbers
        found[parent.name] = wanted[last + 1] > wanted[first]
    return found


def log_shares(own: Family, codes: Mapping[str, Ints], n: int) -> Array:
    """ln P(what is seen | causes) of n rows of codes, but for the factors beside the family."""
    if own.kind == SUM:
        sums = np.full(n, own.leaves[-1][0])
        for parent, numbers in zip(own.parents, own.leaves, strict=False):
            sums += numbers[codes[parent.name]]
        return np.where(own.level[sums] == own.seen, 0.0, -np.inf)
    below, at = np.full(n, own.leaves[-1][0, 0]), np.full(n, own.leaves[-1][0, 1])
    for parent, leaf in zip(own.parents, own.leaves, strict=False):
        rows = leaf[codes[parent.name]]
        at, below = at + below * rows[:, 1], below * rows[:, 0]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(at))


def compile_causes(
    families: Sequence[Family], blocks: Sequence[GibbsBlock], columns: Mapping[str, int]
) -> Causes:
    """The families, and the terms that they add to the moves of these blocks, as flat arrays."""
    effects, numbers, levels = _Pile(), _Pile(), _Pile()
    families = list(families)
    leaf_ptr = offsets([len(own.leaves) for own in families])
    level = [levels.add(own.level) for own in families]
    column, row = [], []
    for own in families:
        for parent, leaf in zip((*own.parents, None), own.leaves, strict=True):
            column.append(-1 if parent is None else columns[parent.name])
            row.append(numbers.add(leaf) if own.kind == SUM else effects.add(_written(leaf)))
    n_terms: list[int] = []
    family: list[int] = []
    members: list[list[int]] = []
    effect: list[int] = []
    shown: list[int] = []
    held = _held(families)
    for block in blocks:
        place = {name: k for k, name in enumerate(block.names)}
        before = len(family)
        touched: dict[int, list[int]] = {}
        for name in block.names:
            for f, i in held.get(name, ()):
                touched.setdefault(f, []).extend([i] if i >= 0 else [])
        for f, inside in sorted(touched.items()):
            own = families[f]
            family.append(f)
            members.append([int(leaf_ptr[f]) + i for i in inside])
            codes = [block.states[:, place[own.parents[i].name]] for i in inside]
            together = [own.leaves[i][code] for i, code in zip(inside, codes, strict=True)]
            effect.append(_together(own, together, len(block.states), effects, numbers))
            if own.child in place:
                code = block.states[:, place[own.child]]
                shown.append(levels.add(own.level[code] if own.kind == STRONGEST else code))
            else:
                shown.append(-1)
        n_terms.append(len(family) - before)
    return Causes(
        term_ptr=offsets(n_terms),
        family=np.array(family, np.int64),
        member_ptr=offsets([len(m) for m in members]),
        member=np.array([leaf for m in members for leaf in m], np.int64),
        effect=np.array(effect, np.int64),
        shown=np.array(shown, np.int64),
        kind=np.array([own.kind for own in families], np.int64),
        size=np.array([own.size for own in families], np.int64),
        child=np.array([-1 if own.child is None else columns[own.child] for own in families], np.int64),
        seen=np.array([own.seen for own in families], np.int64),
        level=np.array(level, np.int64),
        leaf_ptr=leaf_ptr,
        column=np.array(column, np.int64),
        row=np.array(row, np.int64),
        effects=effects.whole(np.float64),
        numbers=numbers.whole(np.int64),
        levels=levels.whole(np.int64),
    )


def _held(families: Sequence[Family]) -> dict[str, list[tuple[int, int]]]:
    """By variable, the families that hold it, and as which of their parents; −1 as the child."""
    held: dict[str, list[tuple[int, int]]] = {}
    for f, own in enumerate(families):
        for i, parent in enumerate(own.parents):
            held.setdefault(parent.name, []).append((f, i))
        if own.child is not None:
            held.setdefault(own.child, []).append((f, -1))
    return held


def reserve_causes(families: Sequence[Family], n_chains: int, ledger: Ledger) -> None:
    """BudgetError if what chains keep of the families would not fit."""
    levels = sum(own.size * len(own.leaves) for own in families if own.kind == STRONGEST)
    ledger.reserve(n_chains * NODE_BYTES * levels, "the effects of many causes", "use fewer chains")


def _together(own: Family, parts: list[Any], n_states: int, effects: _Pile, numbers: _Pile) -> int:
    """Where the effect, or the number, of some causes together lies, for each joint state of their block."""
    if own.kind == SUM:
        return numbers.add(np.sum([np.zeros(n_states, np.int64), *parts], axis=0))
    together = np.tile(np.eye(own.size)[:1], (n_states, 1))
    for part in parts:
        together = joined(together, part)
    return effects.add(_written(together))


def _written(effects: Array) -> Array:
    """Each effect as its probabilities, then their sums."""
    return np.concatenate([effects, np.cumsum(effects, axis=1)], axis=1)


class _Pile:
    """Arrays end to end."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.size = 0

    def add(self, array: Any) -> int:
        """Where the array begins."""
        self.parts.append(np.ravel(array))
        self.size += int(array.size)
        return self.size - int(array.size)

    def whole(self, kind: type) -> Any:
        """All of it, never empty."""
        return np.concatenate([*self.parts, np.zeros(1)]).astype(kind)
