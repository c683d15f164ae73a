"""The questions a decision network can be asked, as methods: each delegates to the room that answers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bbn.core.frozen import Frozen

if TYPE_CHECKING:
    from bbn.decisions.information_value import InformationValues
    from bbn.decisions.risk import RiskProfile
    from bbn.decisions.sensitivity import DecisionSensitivity
    from bbn.model.evidence import Evidence
    from bbn.model.network import BayesianNetwork
    from bbn.results.policy import Solution
    from bbn.view.scene import Drawing


class AskableDecisions(Frozen):
    """What a decision network answers."""

    __slots__ = ()

    def solve(
        self: Any,
        evidence: Evidence | None = None,
        method: str = "auto",
        risk_tolerance: float | None = None,
        **options: Any,
    ) -> Solution:
        """The policy of greatest expected utility given evidence; see `bbn.decisions.solve.solve` for the options.

        >>> import bbn
        >>> best = bbn.example("oil_wildcatter").solve()
        >>> print(best.policy["Test"])
        Test
        ----
        yes
        """
        from bbn.decisions.solve import solve

        return solve(self, evidence, method, risk_tolerance, **options)

    def expected_utility(
        self: Any,
        choices: Mapping[str, Any] | None = None,
        evidence: Evidence | None = None,
        **options: Any,
    ) -> float:
        """The expected utility of these choices, a state or a rule per decision, the others made as well as can be.

        >>> import bbn
        >>> round(bbn.example("oil_wildcatter").expected_utility({"Test": "no", "Drill": "yes"}), 6)
        20.0
        """
        from bbn.decisions.solve import expected_utility

        return expected_utility(self, choices, evidence, **options)

    def with_policy(self: Any, policy: Mapping[str, Any]) -> BayesianNetwork:
        """The Bayesian network in which each decision follows its rule."""
        from bbn.decisions.solve import with_policy

        return with_policy(self, policy)

    def value_of_information(
        self: Any,
        tests: Any,
        evidence: Evidence | None = None,
        decision: str | None = None,
        cost: float = 0.0,
        **options: Any,
    ) -> float:
        """How much more a decision is worth for knowing a variable, or several, first; see `information_values`.

        >>> import bbn
        >>> round(bbn.example("oil_wildcatter").value_of_information("Oil"), 6)
        32.5
        """
        from bbn.decisions.information_value import value_of_information

        return value_of_information(self, tests, evidence, decision, cost, **options)

    def information_values(
        self: Any,
        tests: Iterable[Any] | None = None,
        evidence: Evidence | None = None,
        decision: str | None = None,
        costs: Mapping[str, float] | None = None,
        together: int = 1,
        **options: Any,
    ) -> InformationValues:
        """What each variable, or each set of up to `together`, is worth knowing, the best next test first."""
        from bbn.decisions.information_value import information_values

        return information_values(self, tests, evidence, decision, costs, together, **options)

    def sensitivity(
        self: Any, evidence: Evidence | None = None, names: Sequence[str] | None = None, **options: Any
    ) -> DecisionSensitivity:
        """How the expected utility depends on each table entry and utility, and where the policy flips."""
        from bbn.decisions.sensitivity import sensitivity

        return sensitivity(self, evidence, names, **options)

    def risk_profile(
        self: Any, policy: Mapping[str, Any] | None = None, evidence: Evidence | None = None, **options: Any
    ) -> RiskProfile:
        """The distribution of the total utility under a policy, the best one unless given."""
        from bbn.decisions.risk import risk_profile

        return risk_profile(self, policy, evidence, **options)

    def plot(self: Any, evidence: Evidence | None = None, solved: bool = True, **options: Any) -> Drawing:
        """The network drawn: ovals for chance, squares for decisions, diamonds for utilities.

        `solved=True` shows what each choice of the first open decision is worth, and the beliefs under the best policy.
        """
        from bbn.view.decisions import draw_decisions

        return draw_decisions(self, evidence, solved, **options)

    def _repr_svg_(self: Any) -> str:
        return str(self.plot(solved=False).svg)
