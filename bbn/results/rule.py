"""Rule: what to choose, for everything that a decision may have observed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.display import Table, Tabular
from bbn.core.errors import EvidenceError, ModelError, nearest
from bbn.core.frozen import Frozen
from bbn.model.cpt import CPT
from bbn.model.factor import TEXT_BYTES, require_cells
from bbn.model.table_input import indexed_rows
from bbn.model.variable import State, Variable

if TYPE_CHECKING:
    import pandas as pd


Codes = NDArray[np.int64]


class Rule(Tabular, Frozen):
    """What to choose, given what is observed.

    Attributes
    ----------
    variable
        The decision's variable.
    observes
        The variables that it observes, in the order of the keys.
    codes
        The code of the choice for each setting of these, one axis each, read-only.
    relevant
        Those of them on which the choice depends.

    >>> import bbn
    >>> best = bbn.example("oil_wildcatter").solve()
    >>> rule = best.policy["Drill"]
    >>> rule["yes", "closed"], rule[{"Test": "yes", "Seismic": "none"}]
    ('yes', 'no')
    >>> print(bbn.example("umbrella_weather").solve().policy["Umbrella"].tree())
    Forecast?
    ├─ rainy: take
    └─ cloudy, sunny: leave
    """

    __slots__ = ("codes", "observes", "variable")

    variable: Variable
    observes: tuple[Variable, ...]
    codes: Codes

    def __init__(self, variable: Variable, observes: tuple[Variable, ...], codes: Codes) -> None:
        codes = np.asarray(codes).view()
        codes.flags.writeable = False
        self._set(variable=variable, observes=observes, codes=codes)

    @property
    def name(self) -> str:
        """The decision's name."""
        return self.variable.name

    @property
    def relevant(self) -> tuple[Variable, ...]:
        """The observed variables on which the choice depends."""
        held = self._held()
        return tuple(
            v
            for axis, v in enumerate(self.observes)
            if held.shape[axis] > 1 and (held != held.take([0], axis)).any()
        )

    def _held(self) -> Codes:
        """The codes that there are in memory: one for all states of what never mattered."""
        return self.codes[tuple(slice(None) if stride else slice(1) for stride in self.codes.strides)]

    def _dependent(self) -> Codes:
        """The codes for each setting of what is relevant."""
        kept = self.relevant
        return self.codes[tuple(slice(None) if v in kept else 0 for v in self.observes)]

    @property
    def choice(self) -> State:
        """The choice, where it is the same whatever is observed; EvidenceError where it depends."""
        if self.relevant:
            raise EvidenceError(
                f"what {self.name!r} chooses depends on {', '.join(v.name for v in self.relevant)}; "
                "index the rule by their states"
            )
        return self.variable.states[int(self.codes.flat[0])]

    def __getitem__(self, observed: Any) -> State:
        """The choice for these states of what is observed: one, a tuple in order, or a mapping by name."""
        if isinstance(observed, Mapping):
            known = [v.name for v in self.observes]
            for name in observed:
                if name not in known:
                    raise EvidenceError(f"{self.name!r} does not observe {name!r}{nearest(name, known)}")
            wanted = [observed.get(v.name) for v in self.observes]
            for i, v in enumerate(self.observes):
                if v.name not in observed:
                    if v in self.relevant:
                        raise EvidenceError(
                            f"what {self.name!r} chooses depends on {v.name!r}; it is not given"
                        )
                    wanted[i] = v.states[0]
        else:
            wanted = list(observed) if isinstance(observed, tuple) else [observed]
        if len(wanted) != len(self.observes):
            names = ", ".join(v.name for v in self.observes) or "nothing"
            raise EvidenceError(
                f"{self.name!r} observes {names}: expected {len(self.observes)} states, found {len(wanted)}"
            )
        index = tuple(v.code(state) for v, state in zip(self.observes, wanted, strict=True))
        return self.variable.states[int(self.codes[index])]

    def to_dict(self) -> dict[Any, State]:
        """State, or tuple of states where several variables are observed, to choice."""
        require_cells(self.codes.size, TEXT_BYTES, "a dictionary")
        keys = product(*(v.states for v in self.observes))
        chosen = [self.variable.states[code] for code in self.codes.ravel().tolist()]
        return {key if len(key) != 1 else key[0]: state for key, state in zip(keys, chosen, strict=True)}

    def to_frame(self) -> pd.DataFrame:
        """One row per setting of what is observed, and the choice in the decision's own column."""
        import pandas as pd

        keys = [key if isinstance(key, tuple) else (key,) for key in self.to_dict()]
        columns: dict[str, Any] = {v.name: [key[i] for key in keys] for i, v in enumerate(self.observes)}
        return pd.DataFrame({**columns, self.name: list(self.to_dict().values())})

    def to_cpt(self) -> CPT:
        """The rule as a table of ones and zeros given what it depends on."""
        return CPT.trusted(self.variable, self.relevant, np.eye(self.variable.card)[self._dependent()])

    def tree(self) -> str:
        """The rule as a tree of questions, as text."""
        return "\n".join(_branch(self.variable, self.relevant, self._dependent()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rule):
            return NotImplemented
        mine, others = (self.variable, self.observes), (other.variable, other.observes)
        return (
            mine == others
            and self.relevant == other.relevant
            and np.array_equal(self._dependent(), other._dependent())
        )

    def __hash__(self) -> int:
        return hash((self.variable, self.observes, self.relevant, self._dependent().tobytes()))

    def __repr__(self) -> str:
        given = ", ".join(v.name for v in self.relevant)
        return f"<Rule {self.name}({given})>" if given else f"<Rule {self.name} = {self.choice}>"

    def _table(self) -> Table:
        kept, codes = self.relevant, self._dependent()
        require_cells(codes.size, TEXT_BYTES, "a table")
        settings = product(*(v.states for v in kept))
        rows = [
            [*map(str, setting), str(self.variable.states[code])]
            for setting, code in zip(settings, codes.ravel().tolist(), strict=True)
        ]
        unused = [v.name for v in self.observes if v not in kept]
        note = f"the same for all states of {', '.join(unused)}" if unused else ""
        return Table([*(v.name for v in kept), self.name], rows, "", note)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.variable, self.observes, np.array(self._held()))


def _restored(variable: Variable, observes: tuple[Variable, ...], held: Codes) -> Rule:
    return Rule(variable, observes, np.broadcast_to(held, [v.card for v in observes]))


def _branch(variable: Variable, asked: tuple[Variable, ...], codes: Codes) -> list[str]:
    """The tree below one place: a choice, or a question with a line for each group of answers that go on alike."""
    if (codes == codes.flat[0]).all():
        return [str(variable.states[int(codes.flat[0])])]
    first = codes[0]
    if all((part == first).all() for part in codes):  # the answer makes no difference here
        return _branch(variable, asked[1:], first)
    alike: dict[bytes, list[int]] = {}
    for code, part in enumerate(codes):
        alike.setdefault(part.tobytes(), []).append(code)
    lines = [f"{asked[0].name}?"]
    for n, group in enumerate(alike.values()):
        last = n == len(alike) - 1
        below = _branch(variable, asked[1:], codes[group[0]])
        answers = ", ".join(str(asked[0].states[code]) for code in group)
        lines.append(f"{'└─' if last else '├─'} {answers}: {below[0]}")
        lines += [f"{'   ' if last else '│  '}{line}" for line in below[1:]]
    return lines


def read_rule(variable: Variable, observes: tuple[Variable, ...], given: Any) -> Rule:
    """A rule from what a user wrote: a Rule, a choice for all cases, or a mapping from observed states to choice."""
    if isinstance(given, Rule):
        if given.variable != variable or given.observes != observes:
            raise ModelError(
                f"the rule for {variable.name!r} is {given!r}, which is one for another decision"
            )
        return given
    codes = np.empty([v.card for v in observes], np.int64)
    if isinstance(given, Mapping):
        for index, choice in indexed_rows(variable, observes, given, "rule"):
            codes[index] = variable.code(choice)
    else:
        codes[...] = variable.code(given)
    return Rule(variable, observes, codes)
