"""Previous: a parent in an earlier slice of a dynamic network, and the names that slices give to variables.

Inside a conditional such a parent is a variable named "Rain[-1]", the way a file writes it; a variable of the unrolled
network is named "Rain[3]". A table may be given before the states of that parent are known: they are then read off the
table (the keys of its rows, or the length of its axis), and a `DynamicNetwork` puts them in the declared order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.errors import ModelError
from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.model.binned import Binned
from bbn.model.variable import Continuous, Variable, checked_name

_INDEXED = re.compile(r"(.+)\[(-?[0-9]{1,18})\]", re.DOTALL)
MAX_LAG = 1_000
"""Slices that a parent may lie back."""
_POSITION = "position {}"


class Previous(Frozen):
    """A parent that lies in an earlier slice.

    Parameters
    ----------
    name
        The variable's name, or the Variable itself, which a Gaussian needs where its table does not tell whether the
        parent has states.
    lag
        How many slices back, at least 1.

    See Also
    --------
    bbn.DynamicNetwork : what it is used in.

    Examples
    --------
    >>> from bbn.model.cpt import CPT
    >>> rain = Variable("Rain", ["yes", "no"])
    >>> CPT(rain, [Previous("Rain")], {"yes": [0.7, 0.3], "no": [0.3, 0.7]})
    <CPT P(Rain | Rain[-1]), shape (2, 2)>
    """

    __slots__ = ("lag", "name", "variable")

    name: str
    lag: int
    variable: Variable | None

    @keywords_checked
    def __init__(self, name: str | Variable, lag: int = 1) -> None:
        own = name if isinstance(name, Variable) else None
        if isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 1:
            raise ModelError(f"Previous: lag is {lag!r}; expected a whole number of slices, at least 1")
        self._set(name=checked_name(own.name if own is not None else name), lag=int(lag), variable=own)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Previous):
            return NotImplemented
        return (self.name, self.lag, self.variable) == (other.name, other.lag, other.variable)

    def __hash__(self) -> int:
        return hash((self.name, self.lag, self.variable))

    def __repr__(self) -> str:
        return f"Previous({self.name!r}{f', {self.lag}' if self.lag != 1 else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Previous, (self.variable or self.name, self.lag)


def in_slice(name: str, index: int) -> str:
    """The name of a variable in a slice of the unrolled network, or, with a negative index, of slices back.

    >>> in_slice("Rain", 3), in_slice("Rain", -1)
    ('Rain[3]', 'Rain[-1]')
    """
    return f"{name}[{index}]"


def split_name(name: str) -> tuple[str, int | None]:
    """A variable's name and its slice, None where the name has none.

    >>> split_name("Rain[-2]"), split_name("Rain")
    (('Rain', -2), ('Rain', None))
    """
    match = _INDEXED.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, None)


def renamed(variable: Variable, name: str) -> Variable:
    """The same variable under another name."""
    if isinstance(variable, Binned):
        return Binned(name, variable.edges, variable.states)
    return Continuous(name) if isinstance(variable, Continuous) else Variable(name, variable.states)


def table_parents(variable: Variable, parents: Any, table: Any) -> Any:
    """The parents of a CPT with each `Previous` as a variable, whose states the table tells where nothing else does."""
    if not isinstance(parents, list | tuple) or not any(type(p) is Previous for p in parents):
        return parents
    return [_known(variable, p) or _read_off(f"CPT {variable.name!r}", p, k, len(parents), table)
            if isinstance(p, Previous) else p
            for k, p in enumerate(parents)]  # fmt: skip


def gaussian_parents(variable: Variable, parents: Any, means: Any, variances: Any, weights: Any) -> Any:
    """The parents of a Gaussian likewise; one that is not named by its Variable must be told by the other arguments.

    Without weights it is discrete; with weights, and with one mean and one variance for all settings, continuous.
    """
    if not isinstance(parents, list | tuple) or not any(type(p) is Previous for p in parents):
        return parents
    what = f"Gaussian {variable.name!r}"
    known = [_known(variable, p) if isinstance(p, Previous) else p for p in parents]
    if None not in known:
        return known
    flat = all(not isinstance(numbers, Mapping) and np.ndim(numbers) == 0 for numbers in (means, variances))
    unknown = next(p for p, own in zip(parents, known, strict=True) if own is None)
    if weights is not None:
        if flat:
            return [Continuous(in_slice(p.name, -p.lag)) if own is None else own
                    for p, own in zip(parents, known, strict=True)]  # fmt: skip
    elif not flat:
        discrete = [p for p, own in zip(parents, known, strict=True) if not isinstance(own, Continuous)]
        table = means if isinstance(means, Mapping) or np.ndim(means) else variances
        return [_read_off(what, p, discrete.index(p), len(discrete), table, False) if own is None else own
                for p, own in zip(parents, known, strict=True)]  # fmt: skip
    raise ModelError(
        f"{what}: whether {unknown!r} has states is not told; write bbn.Previous(variable) with the Variable itself"
    )


def _known(variable: Variable, parent: Previous) -> Variable | None:
    """The parent as a variable where it was given as one, or is the child itself."""
    own = parent.variable or (variable if parent.name == variable.name else None)
    return None if own is None else renamed(own, in_slice(parent.name, -parent.lag))


def _read_off(
    what: str, parent: Previous, axis: int, n_parents: int, table: Any, has_child: bool = True
) -> Variable:
    """The parent with the states that the rows' keys name, or with as many as its axis is long."""
    name = in_slice(parent.name, -parent.lag)
    keys: Any = list(table.index) if hasattr(table, "columns") and hasattr(table, "index") else table
    if isinstance(keys, Mapping) or (hasattr(table, "index") and hasattr(table, "columns")):
        listed = [(key,) if n_parents == 1 and not isinstance(key, tuple) else key for key in keys]
        if any(not isinstance(key, tuple) or len(key) != n_parents for key in listed):
            raise ModelError(
                f"{what}: expected rows keyed by the states of its {n_parents} parents, found {listed[:3]}"
            )
        return Variable(name, tuple(dict.fromkeys(key[axis] for key in listed)))
    try:
        shape = np.shape(table)
    except ValueError:
        shape = ()
    if len(shape) != n_parents + has_child:
        raise ModelError(f"{what}: expected a table with an axis per parent{' and its own last' * has_child}, "
                         f"found shape {shape}")  # fmt: skip
    return Variable(name, [_POSITION.format(k) for k in range(shape[axis])])


def aligned(parent: Variable, declared: Variable) -> list[int] | None:
    """Which of the parent's states each declared state is, or None where they are not the same states."""
    if parent.states == declared.states or parent.states == tuple(
        map(_POSITION.format, range(declared.card))
    ):
        return list(range(declared.card))
    if len(parent.states) != declared.card:
        return None
    places = [parent.find(state) for state in declared.states]
    return None if None in places else [place for place in places if place is not None]


def check_plain_names(names: Sequence[str]) -> None:
    """ModelError if a name ends like that of a variable in a slice."""
    for name in names:
        if split_name(name)[1] is not None:
            raise ModelError(
                f"variable {name!r}: a name in a dynamic network must not end in a slice's number; "
                "a parent in an earlier slice is bbn.Previous(name)"
            )
