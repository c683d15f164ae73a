"""What solving a decision network gives: a rule per decision, the policy of all of them, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.display import Table, Tabular
from bbn.core.errors import EvidenceError, ModelError, nearest, shown
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


class Policy(Frozen, Mapping[str, Rule]):
    """A rule per decision, by name, in the order in which the decisions are made.

    Parameters
    ----------
    rules : mapping
        Decision name to `Rule`.

    >>> import bbn
    >>> policy = bbn.example("oil_wildcatter").solve().policy
    >>> list(policy), policy["Test"].choice
    (['Test', 'Drill'], 'yes')
    """

    __slots__ = ("_made", "_make")

    _made: dict[str, Rule] | None
    _make: Callable[[], Mapping[str, Rule]] | None

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._set(_made=dict(rules), _make=None)

    @classmethod
    def later(cls, make: Callable[[], Mapping[str, Rule]]) -> Policy:
        """A policy whose rules are made when they are first looked at.

        Parameters
        ----------
        make : function
            Gives the rules by name; called once.

        Returns
        -------
        Policy
            The policy.
        """
        policy = cls.__new__(cls)
        policy._set(_made=None, _make=make)
        return policy

    @property
    def _rules(self) -> dict[str, Rule]:
        if self._made is None:
            assert self._make is not None
            self._set(_made=dict(self._make()))
        return self._made  # type: ignore[return-value]  # set just above

    def __getitem__(self, name: str) -> Rule:
        try:
            return self._rules[name]
        except (KeyError, TypeError):
            raise EvidenceError(f"there is no decision {shown(name)}{nearest(name, self._rules)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, name: object) -> bool:
        return name in self._rules

    def tree(self) -> str:
        """Each rule as a tree of questions, as text."""
        return "\n".join(f"{name}\n{rule.tree()}\n" for name, rule in self._rules.items()).rstrip("\n")

    def __eq__(self, other: object) -> bool:
        return self._rules == other._rules if isinstance(other, Policy) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._rules.values()))

    def __repr__(self) -> str:
        return f"<Policy: {', '.join(map(repr, self._rules.values())) or 'nothing to decide'}>"

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._rules.values()))

    def _repr_html_(self) -> str:
        return "".join(rule._repr_html_() for rule in self._rules.values())

    def __reduce__(self) -> tuple[Any, ...]:
        return Policy, (self._rules,)


class Solution(Frozen):
    """The best policy found, and what it is worth.

    Attributes
    ----------
    expected_utility
        The expected total utility of the policy, given the evidence.
    policy
        A `Policy`: a `Rule` for each decision that the evidence leaves open.
    proved
        Whether no other policy is worth more. With limited memory and many policies the search is local, and this is
        False.
    bound
        What no policy can be worth more than; `expected_utility` itself where `proved`. With a risk tolerance it bounds
        the certainty equivalent.
    certainty_equivalent
        The sure amount that is as good as the policy: with a risk tolerance, what was made largest; else the expected
        utility.
    log_evidence
        ln P(evidence), of the evidence on chance variables.
    method
        "elimination", "single policy updating" or "branch and bound".

    >>> import bbn
    >>> best = bbn.example("umbrella_weather").solve({"Forecast": "rainy"})
    >>> best.policy["Umbrella"].choice, round(best.expected_utility, 4)
    ('take', 56.0)
    """

    __slots__ = (
        "bound",
        "certainty_equivalent",
        "expected_utility",
        "log_evidence",
        "method",
        "policy",
        "proved",
    )

    expected_utility: float
    policy: Policy
    proved: bool
    bound: float
    certainty_equivalent: float
    log_evidence: float
    method: str

    def __init__(
        self,
        expected_utility: float,
        policy: Policy,
        proved: bool,
        bound: float,
        certainty_equivalent: float,
        log_evidence: float,
        method: str,
    ) -> None:
        self._set(
            expected_utility=expected_utility,
            policy=policy,
            proved=proved,
            bound=bound,
            certainty_equivalent=certainty_equivalent,
            log_evidence=log_evidence,
            method=method,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Solution):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.expected_utility, self.policy))

    def __repr__(self) -> str:
        return f"<Solution, expected utility {self.expected_utility:.6g}: {self.policy!r}>"

    def __str__(self) -> str:
        return f"{self._headline()}\n\n{self.policy}" if self.policy else self._headline()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(self._headline())}</p>{self.policy._repr_html_()}"

    def _headline(self) -> str:
        told = f"expected utility {self.expected_utility:.6g}"
        if self.certainty_equivalent != self.expected_utility:
            told += f", certainty equivalent {self.certainty_equivalent:.6g}"
        if not self.proved:
            told += f" (a local optimum; no policy is worth more than {self.bound:.6g})"
        return told

    def __reduce__(self) -> tuple[Any, ...]:
        return Solution, tuple(
            getattr(self, field)
            for field in (
                "expected_utility",
                "policy",
                "proved",
                "bound",
                "certainty_equivalent",
                "log_evidence",
                "method",
            )
        )


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
