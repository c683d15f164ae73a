"""Networks with continuous variables: exact inference over the discrete part, conditional Gaussians below it.

Numbers observed are a likelihood λ(s) over settings s of discrete variables (see `numbers`). The engine of the
discrete network takes λ as a likelihood on the parent, or, where there are several parents, as an observed child
that they share; the posterior of a continuous variable x is the mixture Σ_s P(s | evidence) p(x | s, numbers). For
this class of networks that is the exact scheme of Lauritzen (1992); Lauritzen and Jensen (2001) is the general one.
The cost is that of the discrete network, with the discrete parents of each component (see `components`) joined.

Likelihoods are kept as logarithms and scaled to a maximum of 1. Where what is left of the scaled total is so little
that entries may have been lost to underflow, the answer is worked out in logarithms, over the joint of those parents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bbn.errors import EvidenceError, ImpossibleEvidenceError
from bbn.evidence import Evidence, check_targets
from bbn.inference.numbers import Observed, discrete_network
from bbn.mixture import AllPosteriors, MixturePosterior
from bbn.network import BayesianNetwork
from bbn.posterior import Assignment, Posterior, Posteriors
from bbn.variable import Continuous, Variable

if TYPE_CHECKING:
    from bbn.inference.engine import Engine

Answer = TypeVar("Answer", Posterior, Posteriors)

LOST = -500.0
"""A scaled total below e to this, beside that of the discrete evidence, may have lost entries to underflow."""


class Hybrid:
    """The continuous side of a network.

    Attributes
    ----------
    net
        The whole network.
    discrete
        The network of its discrete variables; where there are none, of one constant.
    """

    def __init__(self, net: BayesianNetwork) -> None:
        self.net = net
        self.continuous = frozenset(net.continuous)
        self.discrete = discrete_network(net)

    def concerns(self, names: str | Sequence[str], evidence: Evidence | None) -> bool:
        """Whether a question names a continuous variable, or one that is unknown."""
        given = evidence if isinstance(evidence, Mapping) else ()
        asked = (names,) if isinstance(names, str) else names if isinstance(names, list | tuple) else ()
        known = self.discrete._variables
        return any(not isinstance(name, str) or name not in known for name in (*given, *asked))

    def query(
        self, engine: Engine, targets: str | Sequence[str], evidence: Evidence | None, options: dict[str, Any]
    ) -> Posterior | MixturePosterior:
        """The posterior of discrete targets, or of one continuous target."""
        names = check_targets(self.net, targets)
        case = Case(self, engine, evidence, options)
        asked = [name for name in names if name in self.continuous]
        if not asked:
            return case.joint(names)
        if len(names) > 1:
            raise EvidenceError(
                f"{asked[0]!r} is continuous, and has no joint posterior with others; ask for it alone"
            )
        return case.mixture(asked[0])

    def posteriors(self, engine: Engine, evidence: Evidence | None, options: dict[str, Any]) -> AllPosteriors:
        """The posterior of every unobserved variable."""
        case = Case(self, engine, evidence, options)
        return case.posteriors()

    def mpe(
        self, engine: Engine, evidence: Evidence | None, k: int, options: dict[str, Any]
    ) -> list[Assignment]:
        """The k most probable states of the discrete variables, unobserved continuous ones integrated out."""
        return Case(self, engine, evidence, options).mpe(k)

    def map(
        self, engine: Engine, targets: str | Sequence[str], evidence: Evidence | None, options: dict[str, Any]
    ) -> Assignment:
        """The most probable joint state of discrete targets."""
        names = check_targets(self.net, targets)
        for name in names:
            if name in self.continuous:
                raise EvidenceError(
                    f"{name!r} is continuous: a density has no most probable state; "
                    f"query({name!r}) gives its mean and quantiles"
                )
        return Case(self, engine, evidence, options).map(names)

    def log_evidence(self, engine: Engine, evidence: Evidence | None, options: dict[str, Any]) -> float:
        """ln p(evidence), −inf if it is impossible."""
        try:
            return Case(self, engine, evidence, options).log_evidence()
        except ImpossibleEvidenceError:
            return -math.inf


class Case:
    """One set of evidence, with the numbers in it turned into likelihoods over discrete variables."""

    def __init__(
        self, hybrid: Hybrid, engine: Engine, evidence: Evidence | None, options: dict[str, Any]
    ) -> None:
        self.hybrid, self.engine, self.options = hybrid, engine, options
        self.observed = Observed(
            hybrid.net, evidence, options.get("memory_limit", engine.options.get("memory_limit"))
        )
        self.discrete, self.likelihoods = self.observed.discrete, self.observed.likelihoods
        children, self.evidence, self.log_scale = self.observed.stand(virtual=True)
        self.asked = engine
        """The engine that is asked `evidence` instead: of the discrete network, with further children if need be."""
        if children:
            self.asked = type(engine)(hybrid.discrete.with_cpts(children), **engine.options)

    def joint(self, names: tuple[str, ...]) -> Posterior:
        """The joint posterior of discrete variables."""
        found = self._checked(lambda: self.asked.query(names, self.evidence, **self.options))
        if found is None:
            return self._in_logs(names)
        return Posterior(found.variables, found.values, found.log_evidence + self.log_scale, found.sampling)

    def log_evidence(self) -> float:
        """ln p(evidence); ImpossibleEvidenceError if it is impossible."""
        value = self.asked.log_evidence(self.evidence, **self.options)
        if value == -math.inf or self._is_lost(value):
            self._refuse_impossible()
            return self._in_logs(()).log_evidence
        return value + self.log_scale

    def mixture(self, name: str) -> MixturePosterior:
        """The posterior of a continuous variable."""
        return self._mixture(name, self.joint)

    def posteriors(self) -> AllPosteriors:
        """The posterior of every unobserved variable."""
        hybrid = self.hybrid
        asked = self.asked
        found = self._checked(lambda: asked._posteriors(self.evidence, asked._with(self.options)))
        if found is None:
            free = [v for v in hybrid.discrete.variables if v.name not in self.observed.findings.hard]
            found = together([self._in_logs((v.name,)) for v in free])
        else:
            found = Posteriors(found._slots, found._flat, found.log_evidence + self.log_scale, found.sampling)
        known: dict[tuple[str, ...], Posterior] = {}

        def joint(names: tuple[str, ...]) -> Posterior:
            if names not in known:
                known[names] = found[names[0]] if len(names) == 1 else self.joint(names)
            return known[names]

        wanted = [name for name in reversed(hybrid.net.continuous) if name not in self.observed.seen]
        mixtures = {name: self._mixture(name, joint, found.log_evidence) for name in wanted}
        return AllPosteriors(hybrid.net.names, found, mixtures, found.log_evidence)

    def mpe(self, k: int) -> list[Assignment]:
        """The k most probable states of the discrete variables."""
        self._require_kept()
        best = self.asked._mpe(self.evidence, k, self.asked._with(self.options))
        return [self._assignment(one) for one in best]

    def map(self, names: tuple[str, ...]) -> Assignment:
        """The most probable joint state of discrete variables."""
        self._require_kept()
        return self._assignment(self.asked.map(names, self.evidence, **self.options))

    def _mixture(
        self,
        name: str,
        joint: Callable[[tuple[str, ...]], Posterior],
        log_evidence: float | None = None,
    ) -> MixturePosterior:
        variable = self.hybrid.net.variable(name)
        assert isinstance(variable, Continuous)
        weights, sampling = np.ones(1), None
        regime: tuple[Variable, ...] = ()
        observed = self.observed
        if name in observed.numbers:
            means, variances = np.array([observed.numbers[name]]), np.zeros(1)
        else:
            part = observed.component_of(name)
            means, variances = part.mean(name, observed.given(part))[0], part.variance(name)
            regime = part.regime
        if regime:
            answer = joint(tuple(v.name for v in regime))
            weights, sampling, log_evidence = answer.values.reshape(-1), answer.sampling, answer.log_evidence
        elif log_evidence is None:
            log_evidence = self.log_evidence()
        return MixturePosterior(variable, regime, weights, means, variances, log_evidence, sampling)

    # When entries of the likelihoods may have been lost to underflow

    def _checked(self, ask: Callable[[], Answer]) -> Answer | None:
        """What the engine answers, or None if what it was asked with may have lost too much."""
        try:
            answer = ask()
        except ImpossibleEvidenceError:
            self._refuse_impossible()
            return None
        return None if self._is_lost(answer.log_evidence) else answer

    def _is_lost(self, log_evidence: float) -> bool:
        if not any(self.likelihoods) or not log_evidence < LOST:
            return False
        return log_evidence - self.engine.log_evidence(self.discrete, **self.options) < LOST

    def _refuse_impossible(self) -> None:
        """Raise if the discrete evidence alone is impossible: numbers never are."""
        self.engine.query(self.hybrid.discrete.names[0], self.discrete, **self.options)

    def _require_kept(self) -> None:
        """Raise if the evidence is impossible, or too much of it was lost."""
        if not self.likelihoods:
            return
        value = self.asked.log_evidence(self.evidence, **self.options)
        if value == -math.inf:
            self._refuse_impossible()
        if value == -math.inf or self._is_lost(value):
            raise EvidenceError(
                "the numbers observed are so far from what the network expects that only posteriors can be worked out, "
                "no most probable states; query the variables instead"
            )

    def _in_logs(self, names: tuple[str, ...]) -> Posterior:
        """The joint posterior of discrete variables, by a sum in logarithms over all settings of their regimes."""
        net = self.hybrid.net
        scopes = {name for scope in self.likelihoods for name in scope}
        others = tuple(n for n in net.names if n in scopes and n not in names)
        prior = self.engine.query((*names, *others), self.discrete, **self.options)
        axes = {name: i for i, name in enumerate(prior.names)}
        with np.errstate(divide="ignore"):
            logs = np.log(prior.values)
        for scope, likelihood in self.likelihoods.items():
            order = sorted(range(len(scope)), key=lambda k: axes[scope[k]])
            shape = [prior.variables[i].card if name in scope else 1 for name, i in axes.items()]
            logs = logs + likelihood.transpose(order).reshape(shape)
        highest = float(logs.max())
        if not highest > -math.inf:
            raise self.observed.too_far(self.observed.numbers)
        values = np.exp(logs - highest)
        values = np.asarray(values.sum(axis=tuple(range(len(names), values.ndim))))
        log_evidence = prior.log_evidence + highest + math.log(values.sum())
        return Posterior(prior.variables[: len(names)], values / values.sum(), log_evidence)

    def _assignment(self, found: Assignment) -> Assignment:
        states = {name: state for name, state in found.states.items() if name in self.hybrid.net}
        return Assignment(states, found.log_probability + self.log_scale)


def together(posteriors: Sequence[Posterior]) -> Posteriors:
    """Posteriors of one variable each, all given the same evidence."""
    slots, start = {}, 0
    for p in posteriors:
        (variable,) = p.variables
        slots[variable.name] = (variable, start, start + variable.card)
        start += variable.card
    return Posteriors(slots, np.concatenate([p.values for p in posteriors]), posteriors[0].log_evidence)
