"""Networks with continuous variables: exact inference over the discrete part, conditional Gaussians below it.

No discrete variable has a continuous parent, so the discrete variables are a network by themselves, and numbers
observed below them are a likelihood: λ(s) = p(numbers | s) over the settings s of discrete parents. The engine of the
discrete network takes λ as a likelihood on the parent, or, where there are several parents, as the observed child
that they share; the posterior of a continuous variable x is the mixture Σ_s P(s | evidence) p(x | s, numbers). For
this class of networks that is the exact scheme of Lauritzen (1992); Lauritzen and Jensen (2001) is the general one.
The cost is that of the discrete network, with the discrete parents of each component (see `components`) joined.

Likelihoods are kept as logarithms and scaled to a maximum of 1. Where what is left of the scaled total is so little
that entries may have been lost to underflow, the answer is worked out in logarithms, over the joint of those parents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bbn.cpt import CPT
from bbn.errors import EvidenceError, ImpossibleEvidenceError
from bbn.evidence import Evidence, Virtual, check_evidence, check_number, check_targets
from bbn.frozen import Array
from bbn.gaussian import Gaussian
from bbn.inference.components import Component, Given, components, is_point
from bbn.mixture import AllPosteriors, MixturePosterior
from bbn.network import BayesianNetwork
from bbn.posterior import Assignment, Posterior, Posteriors
from bbn.variable import Continuous, Variable

if TYPE_CHECKING:
    from bbn.inference.engine import Engine

Answer = TypeVar("Answer", Posterior, Posteriors)

_TOO_FAR = (
    "{shown}: so far from what the network expects, by its variances, that the density is too small for a double even "
    "as a logarithm"
)
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
        self, engine: Engine, evidence: Evidence | None, k: int | None, options: dict[str, Any]
    ) -> Assignment | list[Assignment]:
        """The most probable states of the discrete variables, unobserved continuous ones integrated out."""
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

    def split(self, evidence: Evidence | None) -> tuple[dict[str, Any], dict[str, float]]:
        """The evidence on discrete variables, and the numbers observed, those that `do` has set among them."""
        if evidence is not None and not isinstance(evidence, Mapping):
            raise EvidenceError(f"evidence must be a mapping from variable to finding, found {evidence!r}")
        discrete: dict[str, Any] = {}
        numbers = {
            c.name: float(c.means) for c in self.net.conditionals if isinstance(c, Gaussian) and is_point(c)
        }
        for name, value in (evidence or {}).items():
            variable = self.net.variable(name)
            if not isinstance(variable, Continuous):
                discrete[name] = value
                continue
            number = check_number(variable, value)
            if number is not None and numbers.setdefault(name, number) != number:
                raise ImpossibleEvidenceError(
                    f"impossible evidence: {name!r} is set to {numbers[name]:g}, found {number:g}",
                    {name: value},
                )
        return discrete, numbers


class Case:
    """One set of evidence, with the numbers in it turned into likelihoods over discrete variables."""

    def __init__(
        self, hybrid: Hybrid, engine: Engine, evidence: Evidence | None, options: dict[str, Any]
    ) -> None:
        self.hybrid, self.engine, self.options = hybrid, engine, options
        self.limit = options.get("memory_limit", engine.options.get("memory_limit"))
        self.discrete, self.numbers = hybrid.split(evidence)
        self.observed = frozenset(evidence or ()) & frozenset(self.numbers)
        self.findings = check_evidence(hybrid.discrete, self.discrete)
        self.likelihoods: dict[tuple[str, ...], Array] = {}
        """Discrete names in the network's order to ln λ over their states."""
        self.log_scale = 0.0
        for part in components(hybrid.net, self.numbers, (), self.findings.hard, self.limit):
            if part.observed:
                self._add(part, self._given(part))
        self.asked, self.evidence = self._in_place()

    def _given(self, part: Component) -> Given:
        return part.given({name: np.array([x]) for name, x in self.numbers.items()})

    def _add(self, part: Component, given: Given) -> None:
        log_density = given.log_density[0]
        log_density = np.where(np.isnan(log_density), -np.inf, log_density)
        if log_density.max() == -np.inf:
            raise EvidenceError(_TOO_FAR.format(shown=self._shown(part.names[i] for i in part.observed)))
        scope = tuple(v.name for v in part.regime)
        total = self.likelihoods.get(scope, np.zeros(()))
        self.likelihoods[scope] = total + log_density.reshape(part.shape)

    def _in_place(self) -> tuple[Engine, dict[str, Any]]:
        """An engine and discrete evidence for it that stand for all the evidence, up to `log_scale`."""
        net = self.hybrid.net
        evidence = dict(self.discrete)
        children = []
        for scope, logs in self.likelihoods.items():
            highest = float(logs.max())
            self.log_scale += highest
            scaled = np.exp(logs - highest)
            if len(scope) == 1 and scope[0] not in self.findings.likelihood | self.findings.soft:
                states = net.states(scope[0])
                evidence[scope[0]] = Virtual(dict(zip(states, scaled.tolist(), strict=True)))
            elif scope:
                child = Variable(_unused(net, f"numbers below {', '.join(scope)}"), ["seen", "other"])
                parents = tuple(net.variable(name) for name in scope)
                children.append(CPT.trusted(child, parents, np.stack([scaled, 1 - scaled], axis=-1)))
                evidence[child.name] = "seen"
        if not children:
            return self.engine, evidence
        extended = self.hybrid.discrete.with_cpts(children)
        return type(self.engine)(extended, **self.engine.options), evidence

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
            free = [v for v in hybrid.discrete.variables if v.name not in self.findings.hard]
            found = together([self._in_logs((v.name,)) for v in free])
        else:
            found = Posteriors(found._slots, found._flat, found.log_evidence + self.log_scale, found.sampling)
        known: dict[tuple[str, ...], Posterior] = {}

        def joint(names: tuple[str, ...]) -> Posterior:
            if names not in known:
                known[names] = found[names[0]] if len(names) == 1 else self.joint(names)
            return known[names]

        wanted = [name for name in hybrid.net.continuous if name not in self.observed]
        mixtures = {name: self._mixture(name, joint, found.log_evidence) for name in wanted}
        return AllPosteriors(hybrid.net.names, found, mixtures, found.log_evidence)

    def mpe(self, k: int | None) -> Assignment | list[Assignment]:
        """The most probable states of the discrete variables, or the k best."""
        self._require_kept()
        best = self.asked.mpe(self.evidence, k, **self.options)
        found = [self._assignment(a) for a in (best if isinstance(best, list) else [best])]
        return found if k is not None else found[0]

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
        if name in self.numbers:
            means, variances = np.array([self.numbers[name]]), np.zeros(1)
        else:
            parts = components(self.hybrid.net, self.numbers, (name,), self.findings.hard, self.limit)
            part = next(part for part in parts if name in part.names)
            means, variances = part.mean(name, self._given(part))[0], part.variance(name)
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
            raise EvidenceError(_TOO_FAR.format(shown=self._shown(self.numbers)))
        values = np.exp(logs - highest)
        values = np.asarray(values.sum(axis=tuple(range(len(names), values.ndim))))
        log_evidence = prior.log_evidence + highest + math.log(values.sum())
        return Posterior(prior.variables[: len(names)], values / values.sum(), log_evidence)

    def _assignment(self, found: Assignment) -> Assignment:
        states = {name: state for name, state in found.states.items() if name in self.hybrid.net}
        return Assignment(states, found.log_probability + self.log_scale)

    def _shown(self, names: Iterable[str]) -> str:
        return ", ".join(f"{name}={self.numbers[name]:g}" for name in names)


def discrete_network(net: BayesianNetwork) -> BayesianNetwork:
    """The network of the discrete variables, or of one constant where there are none."""
    if len(net.continuous) < len(net):
        return net.discrete_part()
    constant = Variable(_unused(net, "constant"), ["certain"])
    return BayesianNetwork([CPT.uniform(constant)], net.name)


def together(posteriors: Sequence[Posterior]) -> Posteriors:
    """Posteriors of one variable each, all given the same evidence."""
    slots, start = {}, 0
    for p in posteriors:
        (variable,) = p.variables
        slots[variable.name] = (variable, start, start + variable.card)
        start += variable.card
    return Posteriors(slots, np.concatenate([p.values for p in posteriors]), posteriors[0].log_evidence)


def _unused(net: BayesianNetwork, name: str) -> str:
    """`name`, or one like it that no variable of the network has."""
    while name in net:
        name += "'"
    return name
