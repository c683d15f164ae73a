"""What a decision network can be asked, as methods: `bbn.model.questions` makes them its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from bbn.core.keywords import keywords_checked
from bbn.model.options import MemoryLimit, Seed, SolveOptions

if TYPE_CHECKING:
    from bbn.decisions.information_value import InformationValues
    from bbn.decisions.risk import RiskProfile
    from bbn.decisions.sensitivity import DecisionSensitivity
    from bbn.model.evidence import Evidence
    from bbn.model.network import BayesianNetwork
    from bbn.results.policy import Solution


class DecisionQuestions:
    """What a decision network answers."""

    __slots__ = ()

    @keywords_checked
    def solve(
        self: Any,
        evidence: Evidence | None = None,
        method: Literal["auto", "exact", "local"] = "auto",
        risk_tolerance: float | None = None,
        *,
        restarts: int = 10,
        seed: Seed = None,
        node_limit: int = 2000,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
    ) -> Solution:
        """The policy of greatest expected utility given evidence.

        Parameters
        ----------
        evidence : mapping, optional
            What is known before the first open decision: name to state, Virtual, OneOf or Not; choices made too.
        method : str
            For limited memory: "exact" proves the answer by branch and bound, "local" improves one decision at a time,
            "auto" proves it where that is quick. With perfect recall every answer is exact.
        risk_tolerance : float, optional
            None to make the expected utility largest. R > 0 makes the certainty equivalent under −exp(−u/R) largest:
            the smaller R, the more risk is avoided. R < 0 seeks risk.
        restarts : int
            Starts of the local search, the first always the same, the others random.
        seed : int or Generator, optional
            Where the random starts begin.
        node_limit : int
            The most partial policies that the search for a proof looks at.
        memory_limit : int or str, optional
            The most memory that the tables may take.
        time_limit : float, optional
            The most seconds, TimeLimitError beyond, and at once where it would take far longer. By default
            BBN_TIME_LIMIT, or any time.

        Returns
        -------
        Solution
            With `expected_utility`, `policy`, `proved` and `bound`.

        Raises
        ------
        EvidenceError
            An unknown name or state, or evidence on what depends on a decision that is still open.
        ImpossibleEvidenceError
            The evidence has probability 0.
        BudgetError
            The tables would not fit, or "exact" is not done within `node_limit`.

        See Also
        --------
        expected_utility, with_policy, sensitivity, risk_profile

        >>> import bbn
        >>> best = bbn.example("oil_wildcatter").solve()
        >>> print(best.policy["Test"])
        Test
        ----
        yes
        >>> round(best.expected_utility, 6)
        22.5
        """
        from bbn.decisions.solve import solve

        return solve(
            self,
            evidence,
            method,
            risk_tolerance,
            restarts=restarts,
            seed=seed,
            node_limit=node_limit,
            memory_limit=memory_limit,
            time_limit=time_limit,
        )

    def expected_utility(
        self: Any,
        choices: Mapping[str, Any] | None = None,
        evidence: Evidence | None = None,
        **options: Unpack[SolveOptions],
    ) -> float:
        """The expected utility of these choices, the decisions that are not named being made as well as can be.

        Parameters
        ----------
        choices : mapping, optional
            Decision name to a choice for all cases, to a `Rule`, or to a mapping from observed states to choice; a
            `Policy` is one such.
        evidence : mapping, optional
            As `solve` takes it.
        method, restarts, seed, node_limit, memory_limit, time_limit
            As `solve` takes them.

        Returns
        -------
        float
            The expected total utility.

        Raises
        ------
        EvidenceError
            An unknown decision, choice, name or state.

        See Also
        --------
        solve

        >>> import bbn
        >>> dn = bbn.example("oil_wildcatter")
        >>> round(dn.expected_utility({"Test": "no"}), 6), round(dn.expected_utility({"Drill": "no"}), 6)
        (20.0, 0.0)
        """
        from bbn.decisions.solve import expected_utility

        return expected_utility(self, choices, evidence, **options)

    @keywords_checked
    def with_policy(self: Any, policy: Mapping[str, Any]) -> BayesianNetwork:
        """The Bayesian network in which each decision follows its rule: it answers all the usual questions.

        Parameters
        ----------
        policy : mapping
            Decision name to what `expected_utility` takes, or to a CPT (a randomised rule); every decision.

        Returns
        -------
        BayesianNetwork
            The chance variables and the decisions; utilities are left out.

        Raises
        ------
        ModelError
            A decision has no rule, or one that is not for it.

        See Also
        --------
        solve, risk_profile

        >>> import bbn
        >>> dn = bbn.example("oil_wildcatter")
        >>> net = dn.with_policy(dn.solve().policy)
        >>> round(net.query("Drill")["yes"], 4)
        0.59
        """
        from bbn.decisions.solve import with_policy

        return with_policy(self, policy)

    def value_of_information(
        self: Any,
        tests: Any,
        evidence: Evidence | None = None,
        decision: str | None = None,
        cost: float = 0.0,
        **options: Unpack[SolveOptions],
    ) -> float:
        """How much more the best policy is worth for knowing a variable, or several together, before a decision.

        Parameters
        ----------
        tests : str, CPT or list of them
            A chance variable's name; several, known together; or CPTs of tests that are not in the network, whose
            parents are. What a decision observes already is compared with not observing it.
        evidence : mapping, optional
            As `solve` takes it.
        decision : str, optional
            Before which decision it is known; unless given, the first that can know it. With perfect recall the later
            ones remember it.
        cost : float
            What the tests cost; it is taken off.
        method, restarts, seed, node_limit, memory_limit, time_limit
            As `solve` takes them.

        Returns
        -------
        float
            In the units of the utilities.

        Raises
        ------
        EvidenceError
            An unknown name, or a variable that no decision can know in time.

        See Also
        --------
        information_values

        >>> import bbn
        >>> dn = bbn.example("oil_wildcatter")
        >>> round(dn.value_of_information("Oil"), 6), round(dn.value_of_information("Seismic"), 6)
        (32.5, 2.5)
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
        **options: Unpack[SolveOptions],
    ) -> InformationValues:
        """What each variable, or each set of up to `together`, is worth knowing, the best next test first.

        Parameters
        ----------
        tests : list of str or CPT, optional
            Names of chance variables, and CPTs of tests that are not in the network; unless given, every chance
            variable that some decision could know and none observes.
        evidence : mapping, optional
            As `solve` takes it.
        decision : str, optional
            Before which decision it is known; unless given, the first that can know it.
        costs : mapping, optional
            Name to what knowing it costs, 0 unless given.
        together : int
            The most variables in a set.
        method, restarts, seed, node_limit, memory_limit, time_limit
            As `solve` takes them.

        Returns
        -------
        InformationValues
            A table, the greatest net value first; `best` is the test to do next.

        See Also
        --------
        value_of_information

        >>> import bbn
        >>> bbn.example("oil_wildcatter").information_values(costs={"Oil": 20}).best
        Worth(names=('Oil',), value=32.5, cost=20.0, net=12.5)
        """
        from bbn.decisions.information_value import information_values

        return information_values(self, tests, evidence, decision, costs, together, **options)

    @keywords_checked
    def sensitivity(
        self: Any,
        evidence: Evidence | None = None,
        names: Sequence[str] | None = None,
        certain: bool = False,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
    ) -> DecisionSensitivity:
        """How the expected utility depends on each number of the network, and where the best policy flips.

        Parameters
        ----------
        evidence : mapping, optional
            As `solve` takes it.
        names : list of str, optional
            The chance variables and utilities whose numbers are moved; all unless given.
        certain : bool
            Whether to move probabilities that are 0 or 1 too; these are usually logic rather than estimates.
        memory_limit, time_limit : optional
            As `solve` takes them.

        Returns
        -------
        DecisionSensitivity
            A table; `flips` holds the numbers that can change the policy, the most delicate first.

        Raises
        ------
        EvidenceError
            The network has limited memory, or a name is not one of its nodes.

        See Also
        --------
        risk_profile

        >>> import bbn
        >>> found = bbn.example("oil_wildcatter").sensitivity(names=["Oil", "Cost"])
        >>> cost = found["Cost(Test=yes)"]
        >>> round(cost.low, 6), cost.flips_below["Test"].choice
        (-12.5, 'no')
        """
        from bbn.decisions.sensitivity import sensitivity

        return sensitivity(self, evidence, names, certain, memory_limit, time_limit=time_limit)

    @keywords_checked
    def risk_profile(
        self: Any,
        policy: Mapping[str, Any] | None = None,
        evidence: Evidence | None = None,
        *,
        n_samples: int | None = None,
        seed: Seed = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
    ) -> RiskProfile:
        """The distribution of the total utility under a policy.

        Parameters
        ----------
        policy : mapping, optional
            A rule per decision, as `expected_utility` takes them; the best policy unless given.
        evidence : mapping, optional
            As `solve` takes it; choices made count as the policy of those decisions.
        n_samples : int, optional
            None for the exact distribution; a number of draws to estimate it from.
        seed : int or Generator, optional
            Where the draws begin.
        memory_limit : int or str, optional
            The most memory that the joint of what utilities depend on may take.
        time_limit : float, optional
            As `solve` takes it.

        Returns
        -------
        RiskProfile
            Totals and their probabilities, with mean, quantiles and a plot.

        Raises
        ------
        BudgetError
            That joint would not fit; `n_samples` is the way out.

        See Also
        --------
        sensitivity
        """
        from bbn.decisions.risk import risk_profile

        limits: dict[str, Any] = {"memory_limit": memory_limit, "time_limit": time_limit}
        return risk_profile(self, policy, evidence, n_samples=n_samples, seed=seed, **limits)
