"""What every model can be asked, as methods: `bbn.model.questions` makes them those of networks and factor graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from bbn.inference import engine as engine_of
from bbn.model.options import EngineOptions, Method, QueryOptions

if TYPE_CHECKING:
    from bbn.core.limits import Budget
    from bbn.model.evidence import Evidence
    from bbn.model.interventions import Interventions
    from bbn.results.posterior import Assignment, Posterior, Posteriors
    from bbn.results.query_plan import QueryPlan


class ModelQuestions:
    """Posteriors and explanations, of networks and factor graphs alike."""

    __slots__ = ()

    def query(
        self: Any,
        targets: str | Sequence[str],
        evidence: Evidence | None = None,
        method: Method = "auto",
        *,
        do: Interventions | None = None,
        interval: float | None = None,
        **options: Unpack[QueryOptions],
    ) -> Posterior | Any:
        """Return the posterior of the targets given evidence; of several targets, their joint.

        Parameters
        ----------
        targets : str or sequence of str
            The variable asked for, or several; a joint has its axes in the order asked. Observed targets are allowed.
        evidence : mapping, optional
            Variable name to finding: a state (of a continuous variable a number), `bbn.Virtual`, `bbn.Soft`,
            `bbn.OneOf` or `bbn.Not`; None and NaN mean unobserved.
        method : str, default "auto"
            "auto" and "junction-tree" are exact and fast, "elimination" and "enumeration" exact and simple;
            "likelihood-weighting", "rejection", "importance" and "gibbs" sample; "loopy" passes messages until they
            settle. "auto" never approximates: past the memory limit it raises BudgetError and names a way out.
        do : mapping, optional
            Variable name to what is done to it before anything is observed, as in `BayesianNetwork.do`: the evidence is
            evidence after the act.
        interval : float, optional
            Give each probability a credible interval that holds this share of the answers, such as 0.95: of networks
            drawn from what the tables were learned from. Needs a network fitted with ``keep_counts=True``.
        memory_limit : int, float or str, optional
            Any method. The most bytes that the work may take, such as ``2e9`` or ``"2 GB"``; by default
            BBN_MEMORY_LIMIT, or half of the memory there is.
        time_limit : float, optional
            Exact methods: the most seconds, then TimeLimitError. Sampling: the seconds after which to answer with the
            samples there are.
        budget : Budget, optional
            Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
        order : str, optional
            "junction-tree" and "elimination". The rule that chooses the elimination order: "min-fill",
            "weighted-min-fill", "min-weight", "min-neighbours"; the junction tree also takes "auto", its default, the
            cheapest of several. Elimination's default is "min-fill".
        n_samples : int, optional
            Sampling. How many samples to draw; by default 100,000 ("gibbs": 200,000 sweeps of all chains together),
            or as many as `target_std_error` or `time_limit` allow.
        seed : int or numpy.random.Generator, optional
            Sampling, and `interval`. The same seed gives the same answer, whatever `n_jobs` is.
        target_std_error : float, optional
            Sampling. Draw until the standard error of every probability is at most this.
        n_jobs : int, optional
            Sampling. Threads, −1 for one per core; by default OMP_NUM_THREADS if set, otherwise one per core.
        progress : bool, optional
            Sampling. Whether to show a progress bar; by default on a terminal and in a notebook.
        chains : int, default 16
            "gibbs". The number of chains.
        burn_in : int, default 500
            "gibbs". Sweeps of each chain that are thrown away at the start.
        max_iter : int, default 500
            "loopy". Iterations after which to give up.
        tol : float, default 1e-12
            "loopy". Messages have settled when none changes by more than this.
        damping : float, optional
            "loopy". The share of the old message that is kept, from 0 up to but not including 1; by default 0,
            and 0.5 for messages that are slow to settle.
        schedule : {"sequential", "flooding"}, default "sequential"
            "loopy". Whether factors send in turn, each from the newest messages, or all at once.
        n_draws : int, default 500
            With `interval`: how many networks to draw.

        Returns
        -------
        Posterior
            ``p["yes"]`` is a probability; with `interval` a CrediblePosterior. A continuous target, which must be
            asked for alone, gives a MixturePosterior.

        Raises
        ------
        EvidenceError
            A target, variable, state or method is unknown, or a finding is malformed.
        ImpossibleEvidenceError
            The probability of the evidence is zero; the error names the findings that conflict.
        BudgetError
            The work would need more memory than allowed. TimeLimitError, a kind of it: more time.
        TypeError
            The method has no such option; the error names the nearest.

        See Also
        --------
        posteriors : All unobserved variables in one pass.
        map : The most probable joint state of some variables.
        predict_proba : The posterior of a target for every row of a table.

        Examples
        --------
        >>> import bbn
        >>> net = bbn.example("burglary")
        >>> p = net.query("Burglary", {"JohnCalls": "yes", "MaryCalls": "yes"})
        >>> round(p["yes"], 6)
        0.284172
        >>> net.query(["Burglary", "Earthquake"], {"Alarm": "yes"}).values.round(4).tolist()
        [[0.0008, 0.3728], [0.2303, 0.3962]]
        >>> round(net.query("Earthquake", {"Alarm": "yes"})["yes"], 4)  # an alarm that rings by itself tells of causes
        0.231
        >>> round(net.query("Earthquake", do={"Alarm": "yes"})["yes"], 4)  # one that we set off does not
        0.002
        >>> rough = net.query("Burglary", {"Alarm": "yes"}, method="gibbs", n_samples=20_000, seed=7)
        >>> bool(abs(rough["yes"] - 0.373551) < 5 * rough.std_error[0])
        True
        """
        engine = self.memo.get(f"engine {method}")
        if engine is not None and do is None and interval is None:  # asked before: no need to look for it
            return engine.query(targets, evidence, **options)
        model = self if do is None else self._acted(do)
        if interval is not None:
            from bbn.inference.credible import credible_query

            return credible_query(model, targets, evidence, method, interval=interval, **options)
        # n_draws= without interval= is a TypeError there
        return engine_of(model, method).query(targets, evidence, **options)  # type: ignore[misc]

    def posteriors(
        self: Any,
        evidence: Evidence | None = None,
        method: Method = "auto",
        *,
        do: Interventions | None = None,
        **options: Unpack[EngineOptions],
    ) -> Posteriors:
        """Return the posterior of every unobserved variable, all in one pass.

        Parameters
        ----------
        evidence : mapping, optional
            Variable name to finding, as in `query`.
        method : str, default "auto"
            The method of inference, as in `query`.
        do : mapping, optional
            What is done before anything is observed, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Posteriors
            A mapping from variable name to its Posterior (of a continuous variable a MixturePosterior), each made when
            it is looked at; `log_evidence` is ln P(evidence).

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`.

        See Also
        --------
        query : One variable, or the joint of several.
        predict_proba : The posterior of a target for every row of a table.

        Examples
        --------
        >>> import bbn
        >>> beliefs = bbn.example("burglary").posteriors({"JohnCalls": "yes"})
        >>> {name: round(p["yes"], 4) for name, p in beliefs.items()}
        {'Burglary': 0.0163, 'Earthquake': 0.0114, 'Alarm': 0.0434, 'MaryCalls': 0.04}
        """
        engine = self.memo.get(f"engine {method}")
        if engine is not None and do is None:
            return engine.posteriors(evidence, **options)  # type: ignore[no-any-return]
        return engine_of(self if do is None else self._acted(do), method).posteriors(evidence, **options)

    @overload
    def mpe(
        self: Any,
        evidence: Evidence | None = None,
        k: None = None,
        method: Method = "auto",
        *,
        do: Interventions | None = None,
        **options: Unpack[EngineOptions],
    ) -> Assignment: ...
    @overload
    def mpe(
        self: Any,
        evidence: Evidence | None = None,
        *,
        k: int,
        method: Method = "auto",
        do: Interventions | None = None,
        **options: Unpack[EngineOptions],
    ) -> list[Assignment]: ...
    @overload
    def mpe(
        self: Any,
        evidence: Evidence | None,
        k: int,
        method: Method = "auto",
        *,
        do: Interventions | None = None,
        **options: Unpack[EngineOptions],
    ) -> list[Assignment]: ...

    def mpe(
        self: Any,
        evidence: Evidence | None = None,
        k: int | None = None,
        method: Method = "auto",
        *,
        do: Interventions | None = None,
        **options: Unpack[EngineOptions],
    ) -> Assignment | list[Assignment]:
        """Return the most probable explanation of the evidence: one state for each unobserved variable.

        Parameters
        ----------
        evidence : mapping, optional
            Variable name to finding, as in `query`.
        k : int, optional
            Return the `k` best explanations, best first; by default the best alone.
        method : str, default "auto"
            The method of inference, as in `query`; only the exact ones find explanations.
        do : mapping, optional
            What is done before anything is observed, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Assignment or list of Assignment
            `states` by name and `log_probability`, ln P(states, evidence). With `k` a list, shorter where fewer
            assignments are possible. Continuous variables that are not observed are integrated out.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`; EvidenceError also for a `k` below 1, and for a method that samples.

        See Also
        --------
        map : The most probable state of some variables, the others summed out.

        Examples
        --------
        >>> import bbn
        >>> net = bbn.example("burglary")
        >>> best = net.mpe({"JohnCalls": "yes", "MaryCalls": "yes"})
        >>> best.states
        {'Burglary': 'no', 'Earthquake': 'no', 'Alarm': 'yes'}
        >>> [one.states["Burglary"] for one in net.mpe({"Alarm": "yes", "MaryCalls": "yes"}, k=3)]
        ['no', 'yes', 'no']
        """
        return engine_of(self if do is None else self._acted(do), method).mpe(evidence, k, **options)

    def map(
        self: Any,
        targets: str | Sequence[str],
        evidence: Evidence | None = None,
        method: Method = "auto",
        *,
        do: Interventions | None = None,
        **options: Unpack[EngineOptions],
    ) -> Assignment:
        """Return the most probable joint state of the targets, the other variables summed out (marginal MAP).

        Parameters
        ----------
        targets : str or sequence of str
            The variables to decide; discrete ones.
        evidence : mapping, optional
            Variable name to finding, as in `query`.
        method : str, default "auto"
            The method of inference, as in `query`.
        do : mapping, optional
            What is done before anything is observed, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Assignment
            `states` by name, in the order asked, and `log_probability`, ln P(states, evidence).

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`; EvidenceError also for a continuous target, which has no most probable state.

        See Also
        --------
        mpe : The most probable state of all variables at once, which need not agree.
        query : The probabilities of all joint states.

        Examples
        --------
        >>> import bbn
        >>> best = bbn.example("asia").map(["lung", "bronc"], {"dysp": "yes", "smoke": "yes"})
        >>> best.states, round(best.probability, 4)
        ({'lung': 'no', 'bronc': 'yes'}, 0.2163)
        """
        return engine_of(self if do is None else self._acted(do), method).map(targets, evidence, **options)

    def explain_plan(
        self,
        targets: str | Sequence[str] | None = None,
        evidence: Evidence | None = None,
        kind: str | None = None,
        *,
        do: Interventions | None = None,
        run: bool = False,
        budget: Budget | None = None,
    ) -> QueryPlan:
        """Return how an exact question would be answered: each pass, the plan, those rejected, and their prices.

        Nothing large is allocated unless the plan is run.

        Parameters
        ----------
        targets : str or sequence of str, optional
            The variables asked for, of "query" and "map".
        evidence : mapping, optional
            Variable name to finding, as in `query`; of "log_likelihood" and "predict" any row, whose columns count.
        kind : {"query", "posteriors", "mpe", "map", "log_likelihood", "predict"}, optional
            The question; by default "query" where there are targets, else "posteriors".
        do : mapping, optional
            What is done before anything is observed, as in `query`.
        run : bool, default False
            Whether to run the plan too, and say what it took.
        budget : Budget, optional
            What the answer may take: ``bbn.Budget(bytes="1 GB")``.

        Returns
        -------
        QueryPlan
            Prints as a report; `passes`, `plan`, `rejected`, `predicted`, `actual`, and `to_dict()` for machines.

        Raises
        ------
        EvidenceError
            A target, variable, state or kind of question is unknown.
        ImpossibleEvidenceError
            The values observed cannot occur together.

        See Also
        --------
        query : The answer itself.

        Examples
        --------
        >>> import bbn
        >>> plan = bbn.example("asia").explain_plan("lung", {"xray": "yes"})
        >>> plan.plan.name, plan.plan.cells
        ('tree', 16.0)
        """
        from bbn.inference.exact.explain_plan import explain_plan

        model: Any = self
        return explain_plan(model if do is None else model._acted(do), targets, evidence, kind, run, budget)

    def _log_evidence(
        self: Any, evidence: Evidence | None, method: Method = "auto", **options: Unpack[EngineOptions]
    ) -> float:
        """ln P(evidence), or of a factor graph ln Z(evidence); −inf if it is impossible."""
        return engine_of(self, method).log_evidence(evidence, **options)
