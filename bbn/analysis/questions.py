"""What a network can be asked about its answers: why, what to ask next, what they depend on, as methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from bbn.core.keywords import keywords_checked
from bbn.model.options import EngineOptions, MemoryLimit, Method
from bbn.model.variable import State

if TYPE_CHECKING:
    from bbn.analysis.explain import Explanation
    from bbn.analysis.information import Information
    from bbn.analysis.sensitivity import Sensitivity
    from bbn.model.evidence import Evidence
    from bbn.model.interventions import Interventions
    from bbn.results.mixture_posterior import MixturePosterior
    from bbn.results.posterior import Posterior


class AnalysisQuestions:
    """What a network says about its own answers."""

    __slots__ = ()

    def explain(
        self: Any,
        target: str,
        evidence: Evidence | None,
        method: Method = "auto",
        **options: Unpack[EngineOptions],
    ) -> Explanation:
        """Return which findings moved the posterior of `target`, and by how much, in bits.

        Parameters
        ----------
        target : str
            The variable whose posterior is explained, a discrete one.
        evidence : mapping or None
            Variable name to finding, as in `query`; the findings come in in this order.
        method : str, default "auto"
            The method of inference, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Explanation
            Prints as a table and has `plot()` and `to_frame()`. Each of its `steps` is a finding with the bits that
            the answer loses without it, and the bits by which it moved the answer when it came in.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`; EvidenceError also for a continuous target.

        See Also
        --------
        information : Which variable to ask about next.
        sensitivity : Which table entries the answer depends on.

        Examples
        --------
        >>> import bbn
        >>> why = bbn.example("asia").explain("lung", {"xray": "yes", "smoke": "yes", "asia": "no"})
        >>> {step.finding: round(step.alone, 3) for step in why}
        {'xray': 1.268, 'smoke': 0.072, 'asia': 0.0}
        """
        from bbn.analysis.explain import explain

        return explain(self, target, evidence, method, **options)

    @keywords_checked
    def counterfactual(
        self: Any,
        targets: str | Sequence[str],
        evidence: Evidence | None,
        do: Interventions,
        *,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
    ) -> Posterior | MixturePosterior:
        """Return what targets would have been, had something been done, given what was seen without it.

        Both worlds share everything that the act does not reach, by a twin network (Balke and Pearl 1994). The
        variables that it does reach must say what their noise is: functions of their parents (tables of zeros and ones,
        as `CPT.deterministic` makes them) or Gaussians.

        Parameters
        ----------
        targets : str or sequence of str
            The variable asked for, or several discrete ones.
        evidence : mapping or None
            Variable name to finding, about the world as it is; as in `query`.
        do : mapping
            Variable name to what is done in the other world; as in `query`.
        memory_limit, time_limit : optional
            The most bytes and seconds that the work may take, as in `query`.

        Returns
        -------
        Posterior or MixturePosterior
            As `query` gives it, of the targets in the other world.

        Raises
        ------
        NotIdentifiableError
            A variable that the act reaches has a table that is not a function, so that the network does not decide.
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError
            As in `query`.

        See Also
        --------
        query : With `do`, what will be, once something is done.
        bbn.causation_bounds : Bounds of necessity and sufficiency where tables do not decide.

        Examples
        --------
        >>> import bbn
        >>> dose = bbn.Gaussian("Dose", means=2.0, variances=1.0)
        >>> health = bbn.Gaussian("Health", [dose.variable], means=1.0, variances=4.0, weights=[0.5])
        >>> net = bbn.BayesianNetwork([dose, health])
        >>> seen = {"Dose": 1.0, "Health": 4.0}  # one who fared better than the dose explains
        >>> net.counterfactual("Health", seen, do={"Dose": 3.0}).mean
        5.0
        """
        from bbn.causal.effects.counterfactual import counterfactual

        return counterfactual(self, targets, evidence, do, memory_limit=memory_limit, time_limit=time_limit)

    def information(
        self: Any,
        target: str,
        evidence: Evidence | None = None,
        method: Method = "auto",
        **options: Unpack[EngineOptions],
    ) -> Information:
        """Return the bits that each unobserved variable would tell about `target`: what to ask next.

        Parameters
        ----------
        target : str
            The variable to learn about, a discrete one without evidence of its own.
        evidence : mapping, optional
            What is known already, as in `query`.
        method : str, default "auto"
            The method of inference, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Information
            A dict from variable name to mutual information with the target given the evidence, in bits, the most
            telling first; prints as a table with bars.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`; EvidenceError also for a target that is continuous or has evidence.

        See Also
        --------
        explain : What the evidence there is has told.

        Examples
        --------
        >>> import bbn
        >>> bits = bbn.example("asia").information("lung", {"smoke": "yes"})
        >>> [(name, round(value, 3)) for name, value in bits.items()][:2]
        [('either', 0.423), ('xray', 0.306)]
        """
        from bbn.analysis.information import information

        return information(self, target, evidence, method, **options)

    @keywords_checked
    def sensitivity(
        self: Any,
        target: str,
        evidence: Evidence | None = None,
        state: State | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
    ) -> Sensitivity:
        """Return how P(target = state | evidence) depends on each entry of each table.

        Parameters
        ----------
        target : str
            The variable asked for, a discrete and unobserved one.
        evidence : mapping, optional
            Variable name to finding, as in `query`, but for `bbn.Soft`.
        state : optional
            The state whose probability is looked at; by default the most probable one.
        memory_limit, time_limit : optional
            The most bytes and seconds that the work may take, as in `query`.

        Returns
        -------
        Sensitivity
            `derivatives` by variable, `largest(n)` entries, and `plot()`, a tornado chart. An entry changes with the
            others of its row in proportion (proportional co-variation).

        Raises
        ------
        EvidenceError
            The target is unknown, continuous or observed, or evidence is soft.
        ImpossibleEvidenceError
            The evidence, or the state given it, has probability zero.
        BudgetError
            The derivatives would need more memory than allowed, or, TimeLimitError, more time.

        See Also
        --------
        explain : Which findings the answer depends on.

        Examples
        --------
        >>> import bbn
        >>> result = bbn.example("cancer_test").sensitivity("Cancer", {"Test": "positive"}, state="yes")
        >>> [(entry.name, round(entry.derivative, 3)) for entry in result.largest(1)]
        [('P(Cancer=yes)', 20.796)]
        """
        from bbn.analysis.sensitivity import sensitivity

        return sensitivity(self, target, evidence, state, memory_limit, time_limit=time_limit)
