"""Engine: the one protocol of inference, and what all engines share.

A subclass gives `_joint`, the normalised joint of some targets with ln P(evidence), and `_best`, the most
probable assignment. The rest is here: checking, observed targets, soft evidence (iterative proportional
fitting of likelihoods; Deming and Stephan 1940), impossible evidence, options.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast, overload

import numpy as np

from bbn.core.budget import require_memory, require_table
from bbn.core.errors import EvidenceError, ImpossibleEvidenceError, shown
from bbn.core.frozen import Array
from bbn.core.keywords import unknown_keyword
from bbn.core.limits import spread
from bbn.core.threads import default_time_limit
from bbn.inference.soft_evidence import fit_soft
from bbn.inference.timed import timed
from bbn.model.evidence import Evidence, Findings, Model, as_mapping, check_evidence, check_targets
from bbn.model.network import BayesianNetwork
from bbn.model.options import EngineOptions
from bbn.model.variable import Variable
from bbn.results.posterior import EXACT, Assignment, Posterior, Posteriors

if TYPE_CHECKING:
    from typing import Self

    from bbn.inference.gaussian.hybrid import Hybrid

LISTED_BYTES, LISTED_STATE_BYTES = 1500, 90
"""What one of the k best assignments takes, with those it may lead to, and each state of it."""
PLAINLY_SMALL = 100_000
"""A joint of no more cells is not held to the limit before the work for it is priced."""
ARGUMENTS = ("targets", "evidence", "method", "do", "interval", "k")
"""What questions take beside the options of an engine."""
SHRINK_AT_MOST = 40
"""With more findings than this, impossible evidence is reported whole rather than shrunk."""


class Engine:
    """Answers questions about one model; safe to use from several threads at once.

    Parameters
    ----------
    model
        A BayesianNetwork or a FactorGraph.
    options
        What the engine understands; each call may override them.
    """

    name: ClassVar[str]
    exact: bool = True
    """Whether time_limit= stops a question; a sampling engine answers with what it has by then."""
    searches: ClassVar[bool] = False
    """Whether it looks long for a cheap way to answer, so that a joint that would not fit is refused first."""
    defaults: ClassVar[Mapping[str, Any]] = {"memory_limit": None, "time_limit": None, "budget": None}

    def __init__(self, model: Model, **options: Any) -> None:
        self.model = model
        self.options: Mapping[str, Any] = self.defaults
        if options:
            self.options = self._with(options)
        self.time_limit = default_time_limit(self.options.get("time_limit"), self.exact)
        self.numbers: Hybrid | None = None
        """What answers if the network has continuous variables, around an engine of the discrete ones."""
        if isinstance(model, BayesianNetwork) and model.continuous:
            from bbn.inference.gaussian.hybrid import Hybrid

            self.numbers = Hybrid(type(self), model, options)
        else:
            self._prepare()

    @property
    def discrete(self) -> Self:
        """The engine of the discrete variables: itself, unless the network has others too."""
        return self if self.numbers is None else cast("Self", self.numbers.engine)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it is made of; what was compiled is compiled anew."""
        return made_again, (type(self), self.model, dict(self.options))

    @timed
    def query(
        self, targets: str | Sequence[str], evidence: Evidence | None = None, **options: Unpack[EngineOptions]
    ) -> Posterior | Any:
        """The posterior of the targets given evidence; of several, their joint, axes in the order asked.

        Of a continuous target it is a MixturePosterior.

        Parameters
        ----------
        targets : str or sequence of str
            The variable asked for, or several.
        evidence : mapping, optional
            Variable name to finding, as in `BayesianNetwork.query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of this engine, for this question alone; one that it does not have is a TypeError.

        Returns
        -------
        Posterior
            Of a continuous target a MixturePosterior.

        Raises
        ------
        EvidenceError
            A target, variable or state is unknown, or a finding is malformed.
        ImpossibleEvidenceError
            The probability of the evidence is zero.
        BudgetError
            The work would need more memory than allowed. TimeLimitError, a kind of it: more time.

        See Also
        --------
        posteriors : All unobserved variables in one pass.

        Examples
        --------
        >>> import bbn
        >>> engine = bbn.JunctionTree(bbn.example("burglary"))
        >>> round(engine.query("Alarm", {"MaryCalls": "yes"})["yes"], 4)
        0.1501
        """
        settings = self._with(options)
        if self.numbers is not None:
            return self.numbers.query(targets, evidence, options)
        return self._query(targets, evidence, settings)

    def _query(
        self, targets: str | Sequence[str], evidence: Evidence | None, settings: Mapping[str, Any]
    ) -> Posterior:
        names = check_targets(self.model, targets)
        findings = self._findings(evidence, settings)
        variables = tuple(map(self.model.variable, names))
        hard = findings.hard
        free = names if hard.keys().isdisjoint(names) else tuple([n for n in names if n not in hard])
        if free is not names or (self.searches and math.prod([v.card for v in variables]) > PLAINLY_SMALL):
            self._require_joint(variables, settings)
        values, log_evidence = self._joint(free, findings, settings)
        if log_evidence == -math.inf:
            raise self._impossible(findings, evidence, settings)
        if free is not names:
            whole = np.zeros([v.card for v in variables])
            whole[tuple(hard.get(name, slice(None)) for name in names)] = values
            values = whole
        return EXACT.one(variables, values, log_evidence)  # type: ignore[no-any-return]

    @timed
    def posteriors(self, evidence: Evidence | None = None, **options: Unpack[EngineOptions]) -> Posteriors:
        """The posterior of every unobserved variable, by name, in one pass.

        Parameters
        ----------
        evidence : mapping, optional
            Variable name to finding, as in `BayesianNetwork.query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of this engine, for this question alone; one that it does not have is a TypeError.

        Returns
        -------
        Posteriors
            A mapping from variable name to posterior.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError
            As in `query`.
        """
        settings = self._with(options)
        if self.numbers is not None:
            return self.numbers.posteriors(evidence, options)
        return self._posteriors(evidence, settings)

    def _posteriors(self, evidence: Evidence | None, settings: Mapping[str, Any]) -> Posteriors:
        findings = self._findings(evidence, settings)
        answers = self._marginals(findings, settings)
        if answers.log_evidence == -math.inf:
            raise self._impossible(findings, evidence, settings)
        return answers

    @overload
    def mpe(
        self, evidence: Evidence | None = None, k: None = None, **options: Unpack[EngineOptions]
    ) -> Assignment: ...
    @overload
    def mpe(
        self, evidence: Evidence | None, k: int, **options: Unpack[EngineOptions]
    ) -> list[Assignment]: ...
    @overload
    def mpe(
        self, evidence: Evidence | None = None, *, k: int, **options: Unpack[EngineOptions]
    ) -> list[Assignment]: ...

    @timed
    def mpe(
        self, evidence: Evidence | None = None, k: int | None = None, **options: Unpack[EngineOptions]
    ) -> Assignment | list[Assignment]:
        """The most probable states of all unobserved variables, or the list of the `k` best, best first.

        Continuous variables have no states: those that are not observed are integrated out.

        Parameters
        ----------
        evidence : mapping, optional
            Variable name to finding, as in `BayesianNetwork.query`.
        k : int, optional
            Return the `k` best, best first; by default the best alone.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of this engine, for this question alone; one that it does not have is a TypeError.

        Returns
        -------
        Assignment or list of Assignment
            A list where `k` is given.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError
            As in `query`; EvidenceError also for an engine that does not find explanations.
        """
        if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
            raise EvidenceError(f"k must be a positive whole number, found {k!r}")
        if self.numbers is not None:
            self._with(options)
            best = self.numbers.mpe(evidence, k or 1, options)
        else:
            best = self._mpe(evidence, k or 1, options)
        return best[0] if k is None else best

    def _mpe(self, evidence: Evidence | None, k: int, options: Mapping[str, Any]) -> list[Assignment]:
        settings = self._with(options)
        findings = self._findings(evidence, settings)
        if k > 1:
            cards = [v.card for v in self.model.variables if v.name not in findings.hard]
            size = min(k, math.prod(cards)) * listed_bytes(len(cards))
            require_memory(size, f"the {k:,} best assignments", "ask for fewer", settings["memory_limit"])
        best = [
            self._assignment(codes, log_probability)
            for codes, log_probability in self._k_best(findings, k, settings)
        ]
        if not best:
            raise self._impossible(findings, evidence, settings)
        return best

    @timed
    def map(
        self, targets: str | Sequence[str], evidence: Evidence | None = None, **options: Unpack[EngineOptions]
    ) -> Assignment:
        """The most probable joint state of the targets, the other variables summed out (marginal MAP).

        Parameters
        ----------
        targets : str or sequence of str
            The variables to decide.
        evidence : mapping, optional
            Variable name to finding, as in `BayesianNetwork.query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of this engine, for this question alone; one that it does not have is a TypeError.

        Returns
        -------
        Assignment
            The states, and ln P(states, evidence).

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError
            As in `query`.
        """
        settings = self._with(options)
        if self.numbers is not None:
            return self.numbers.map(targets, evidence, options)
        names = check_targets(self.model, targets)
        findings = self._findings(evidence, settings)
        free = tuple(name for name in names if name not in findings.hard)
        codes, log_probability = self._best_of(free, findings, settings)
        if log_probability == -math.inf:
            raise self._impossible(findings, evidence, settings)
        codes |= {name: findings.hard[name] for name in names if name in findings.hard}
        return self._assignment({name: codes[name] for name in names}, log_probability)

    @timed
    def log_evidence(self, evidence: Evidence | None = None, **options: Unpack[EngineOptions]) -> float:
        """ln P(evidence), of the hard and virtual part; −inf if it is impossible. With numbers it is a density.

        Parameters
        ----------
        evidence : mapping, optional
            Variable name to finding, as in `BayesianNetwork.query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of this engine, for this question alone; one that it does not have is a TypeError.

        Returns
        -------
        float
            The logarithm, −inf if the evidence is impossible.

        Raises
        ------
        EvidenceError, BudgetError
            As in `query`.
        """
        settings = self._with(options)
        if self.numbers is not None:
            return self.numbers.log_evidence(evidence, options)
        findings = self._findings(evidence, settings)
        return self._joint((), findings, settings)[1]

    # What a subclass gives, about a model of discrete variables

    def _prepare(self) -> None:
        """Compile what all questions share; called once, when `model` and `options` are there."""

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        """P(targets | findings), none of them hard-observed, and ln P(findings), −inf if impossible."""
        raise NotImplementedError(f"{type(self).__name__} does not answer queries")

    def _best(self, findings: Findings, options: Mapping[str, Any]) -> tuple[dict[str, int], float]:
        """The codes of the best assignment of all but the hard-observed variables, and ln P(it, findings)."""
        raise EvidenceError(f"method {self.name!r} does not find most probable explanations")

    def _k_best(
        self, findings: Findings, k: int, options: Mapping[str, Any]
    ) -> list[tuple[dict[str, int], float]]:
        """The k best assignments and their ln P, best first; fewer where fewer are possible."""
        from bbn.inference.k_best import k_best

        return k_best(lambda f: self._best(f, options), self.model, findings, k)

    def _best_of(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[dict[str, int], float]:
        """The codes of the best assignment of the targets, and ln P(it, findings)."""
        values, log_evidence = self._joint(targets, findings, options)
        if log_evidence == -math.inf:
            return {}, log_evidence
        index = np.unravel_index(int(values.argmax()), values.shape)
        return dict(zip(targets, map(int, index), strict=True)), math.log(values[index]) + log_evidence

    def _marginals(self, findings: Findings, options: Mapping[str, Any]) -> Posteriors:
        """The marginals of all but the hard-observed variables."""
        slots, parts, start = {}, [], 0
        log_evidence = self._joint((), findings, options)[1]
        if log_evidence == -math.inf:
            return Posteriors({}, np.empty(0), log_evidence)
        for variable in self.model.variables:
            if variable.name not in findings.hard:
                slots[variable.name] = (variable, start, start + variable.card)
                start += variable.card
                parts.append(self._joint((variable.name,), findings, options)[0])
        return Posteriors(slots, np.concatenate(parts) if parts else np.empty(0), log_evidence)

    # What they share

    def _require_joint(self, variables: Sequence[Variable], options: Mapping[str, Any]) -> None:
        """BudgetError if the joint of these, as an answer, would not fit."""
        names = [v.name for v in variables]
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        cards = [v.card for v in variables]
        require_table(cards, f"the joint of {shown}", "ask for fewer targets", options["memory_limit"])

    def _with(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The engine's options with these in place; TypeError for one it does not know."""
        if not options:
            return self.options
        if options.get("budget") is not None:
            options = spread(options)
        for option in options:
            if option not in self.defaults:
                raise self._unknown_option(option, options[option])
        return {**self.options, **options}

    def _unknown_option(self, option: str, value: Any) -> TypeError:
        """The error for a keyword that is not an option; evidence given as one is shown as a mapping."""
        if any(v.name == option for v in self.model.variables):
            return TypeError(
                f"{option!r} is a variable, not an option; evidence is given as a mapping: "
                f"evidence={{{option!r}: {shown(value)}}}"
            )
        where = f"method {self.name!r}"
        near = unknown_keyword(where, option, [*self.defaults, *ARGUMENTS])
        return near if "did you mean" in str(near) else unknown_keyword(where, option, self.defaults)

    def _findings(self, evidence: Evidence | None, options: Mapping[str, Any]) -> Findings:
        findings = check_evidence(self.model, evidence)
        return self._fit_soft(findings, evidence, options) if findings.soft else findings

    def _fit_soft(
        self, findings: Findings, evidence: Evidence | None, options: Mapping[str, Any]
    ) -> Findings:
        """The findings with the soft ones as likelihoods under which each marginal is the one asked for."""
        return fit_soft(
            lambda names, given: self._joint(names, given, options),
            findings,
            as_mapping(evidence),
            lambda firm: self._impossible(firm, evidence, options),
        )

    def _impossible(
        self, findings: Findings, evidence: Evidence | None, options: Mapping[str, Any]
    ) -> ImpossibleEvidenceError:
        """The error for findings of probability zero, shrunk to a subset none of which can be left out."""
        names = [*findings.hard, *findings.likelihood]
        if len(names) <= SHRINK_AT_MOST:
            for name in list(names):
                fewer = findings.without(name)
                if self._joint((), fewer, options)[1] == -math.inf:
                    findings = fewer
                    names.remove(name)
        given = {name: as_mapping(evidence).get(name) for name in names}
        shown = ", ".join(f"{name}={value!r}" for name, value in list(given.items())[:SHRINK_AT_MOST])
        more = f", … ({len(given)} findings)" if len(given) > SHRINK_AT_MOST else ""
        if not given:
            return ImpossibleEvidenceError("the model gives every assignment the weight zero", {})
        return ImpossibleEvidenceError(f"impossible evidence, its probability is zero: {shown}{more}", given)

    def _assignment(self, codes: Mapping[str, int], log_probability: float) -> Assignment:
        return Assignment(
            {name: self.model.variable(name).states[code] for name, code in codes.items()}, log_probability
        )


def made_again(kind: type[Engine], model: Model, options: dict[str, Any]) -> Engine:
    """An unpickled engine."""
    return kind(model, **options)


def listed_bytes(n: int) -> int:
    """What an assignment of n variables in a list takes."""
    return LISTED_BYTES + LISTED_STATE_BYTES * n
