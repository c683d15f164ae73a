"""A NoisyMax in two worlds: its noise is the effect of each cause, the same in both where the worlds share the cause.

With x and x* the states of a cause in the two worlds, and e and e* its effects there,

    child = max(others, e),   child* = max(others, e*),   others = the strongest effect of causes that do not differ

where e* = e if x* = x. Where they differ, each effect has the distribution of its row. If one of the two rows is
certain (a cause that is absent), that is all there is to know, and e* is drawn from its row. Two rows that are both
uncertain do not say how the effects go together, so there is no answer then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from bbn.core.errors import NotIdentifiableError
from bbn.core.frozen import Array
from bbn.model.cpt import CPT, Conditional
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Variable


def twin_effects(
    own: NoisyMax,
    variables: Mapping[str, Variable],
    placed: Mapping[str, Conditional],
    free: Callable[[str], str],
) -> tuple[NoisyMax, list[Conditional]]:
    """The conditional of this world by its effects, and the effects and the conditional of the other world.

    Parameters
    ----------
    own
        The conditional, of which at least one parent differs between the worlds.
    variables
        By name, the variable of the other world for each that differs.
    placed
        What is done.
    free
        Makes names that are not in use.
    """
    child, star = own.variable, variables[own.name]
    same = [i for i, p in enumerate(own.parents) if p.name not in variables]
    others = Variable(free(f"{own.name} by others"), child.states)
    made: list[Conditional] = [
        NoisyMax.made(
            others,
            tuple(own.parents[i] for i in same),
            [own.links[i] for i in same],
            own.leak,
            own.strongest,
        )
    ]
    here, there = [others], [others]
    for parent, link in zip(own.parents, own.links, strict=True):
        if parent.name not in variables:
            continue
        other = variables[parent.name]
        effect, moved = (
            Variable(free(f"{name} by {parent.name}"), child.states) for name in (own.name, star.name)
        )
        coupled = _coupled(own, parent, link, _possible(placed.get(parent.name), parent))
        made.append(CPT.trusted(effect, (parent,), link))
        made.append(CPT.trusted(moved, (parent, effect, other), coupled))
        here.append(effect)
        there.append(moved)
    made.append(_strongest(star, there, star.states[child.code(own.strongest)]))
    return _strongest(child, here, own.strongest), made


def _coupled(own: NoisyMax, parent: Variable, link: Array, possible: list[int]) -> Array:
    """P(e* | x, e, x*), shape (states of the parent, of the child, of the parent, of the child)."""
    certain = (link == 1.0).any(axis=1)
    table = np.empty((parent.card, link.shape[1], parent.card, link.shape[1]))
    table[:] = link
    for x in range(parent.card):
        table[x, :, x] = np.eye(link.shape[1])
        for y in possible:
            if x != y and not (certain[x] or certain[y]):
                raise NotIdentifiableError(
                    f"what {own.name!r} would have been had {parent.name!r} been {parent.states[y]!r} and not "
                    f"{parent.states[x]!r} is not decided: both states have uncertain effects, and their link does not "
                    f"say how these go together. Write {parent.name!r} as several causes of {own.name!r}, each "
                    "absent or present, or the noise as variables of their own"
                )
    return table


def _possible(done: Conditional | None, parent: Variable) -> list[int]:
    """The states that a parent may have in the other world."""
    if isinstance(done, CPT) and not done.parents:
        return [int(code) for code in np.flatnonzero(done.table)]
    return list(range(parent.card))


def _strongest(variable: Variable, effects: list[Variable], strongest: object) -> NoisyMax:
    """The strongest of some effects, without more ado."""
    card = variable.card
    leak = np.zeros(card)
    leak[0 if strongest == variable.states[-1] else card - 1] = 1.0
    links = [np.eye(card) for _ in effects]
    return NoisyMax.made(variable, tuple(effects), links, leak, strongest)  # type: ignore[arg-type]
