"""What solving a decision network gives: a rule per decision, the policy of all of them, and what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bbn.core.errors import EvidenceError, nearest, shown
from bbn.core.frozen import Frozen
from bbn.results.rule import Rule

if TYPE_CHECKING:
    pass


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
        The sure amount that is as good as the policy: with a risk tolerance, what was maximised; otherwise the expected
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
