"""Networks with continuous variables: exact inference over the discrete part, conditional Gaussians below it.

Numbers observed are a likelihood λ(s) over settings s of discrete variables (see `numbers`). The engine of the
discrete network takes λ as a likelihood on the parent, or, where there are several parents, as an observed child
that they share; the posterior of a continuous variable x is the mixture Σ_s P(s | evidence) p(x | s, numbers). For
this class of networks that is the exact scheme of Lauritzen (1992); Lauritzen and Jensen (2001) is the general one.
The cost is that of the discrete network, with the discrete parents of each component (see `components`) joined.

Likelihoods are kept as logarithms and scaled to a maximum of 1; entries that no double holds are zero at first. Where
what is left of the scaled total is so little that these could count, the question is asked again with all that could.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bbn.core.errors import EvidenceError, ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.inference.gaussian.observed_numbers import Observed, StandIn, discrete_network
from bbn.model.evidence import Evidence, as_mapping, check_targets
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable
from bbn.results.all_posteriors import AllPosteriors
from bbn.results.mixture_posterior import MixturePosterior
from bbn.results.posterior import Assignment, Posterior, Posteriors

if TYPE_CHECKING:
    from bbn.inference.engine import Engine
    from bbn.model.options import Method

Answer = TypeVar("Answer", Posterior, Posteriors)
Found = TypeVar("Found")


class Hybrid:
    """What answers for an engine of a network with continuous variables, around an engine of the discrete ones.

    An `Engine` holds one as `numbers` and passes every question to it. The options of a question are those of the
    engine, as given.

    Parameters
    ----------
    kind : type of Engine
        The class of the engine.
    net : BayesianNetwork
        The whole network.
    options : mapping
        The options that the engine was given.

    Attributes
    ----------
    network
        The network of its discrete variables; where there are none, of one constant.
    engine
        The engine of that network, of the same class.
    """

    def __init__(self, kind: type[Engine], net: BayesianNetwork, options: Mapping[str, Any]) -> None:
        self.net, self.continuous = net, frozenset(net.continuous)
        self.network = discrete_network(net)
        self.known = frozenset(self.network.names)
        self.engine = kind(self.network, **options)

    def query(
        self, targets: str | Sequence[str], evidence: Evidence | None, options: Mapping[str, Any]
    ) -> Posterior | MixturePosterior:
        """The posterior of discrete targets, or of one continuous target: a MixturePosterior."""
        if not self._concerns_numbers(targets, evidence):
            return self.engine.query(targets, evidence, **options)
        names = check_targets(self.net, targets)
        case = Case(self, evidence, options)
        asked = [name for name in names if name in self.continuous]
        if not asked:
            return case.joint(names)
        if len(names) > 1:
            raise EvidenceError(
                f"{asked[0]!r} is continuous, and has no joint posterior with others; ask for it alone"
            )
        return case.mixture(asked[0])

    def posteriors(self, evidence: Evidence | None, options: Mapping[str, Any]) -> Posteriors:
        """The posterior of every unobserved variable."""
        return Case(self, evidence, options).posteriors()

    def mpe(self, evidence: Evidence | None, k: int, options: Mapping[str, Any]) -> list[Assignment]:
        """The k most probable states of the discrete variables, unobserved continuous ones integrated out."""
        return Case(self, evidence, options).mpe(k)

    def map(
        self, targets: str | Sequence[str], evidence: Evidence | None, options: Mapping[str, Any]
    ) -> Assignment:
        """The most probable joint state of discrete targets."""
        if not self._concerns_numbers(targets, evidence):
            return self.engine.map(targets, evidence, **options)
        names = check_targets(self.net, targets)
        for name in names:
            if name in self.continuous:
                raise EvidenceError(
                    f"{name!r} is continuous: a density has no most probable state; "
                    f"query({name!r}) gives its mean and quantiles"
                )
        return Case(self, evidence, options).map(names)

    def log_evidence(self, evidence: Evidence | None, options: Mapping[str, Any]) -> float:
        """ln p(evidence), −inf if it is impossible; with numbers a log density."""
        if not self._concerns_numbers((), evidence):
            return self.engine.log_evidence(evidence, **options)
        try:
            return Case(self, evidence, options).log_evidence()
        except ImpossibleEvidenceError:
            return -math.inf

    def _concerns_numbers(self, names: str | Sequence[str], evidence: Evidence | None) -> bool:
        """Whether a question names a continuous variable, or one that is unknown."""
        known = self.known
        asked = (names,) if isinstance(names, str) else names if isinstance(names, list | tuple) else ()
        try:
            if not known.issuperset(asked):
                return True
            return evidence is not None and not known.issuperset(as_mapping(evidence))
        except TypeError:  # a name that cannot be hashed is unknown
            return True


class Case:
    """One set of evidence, with the numbers in it turned into likelihoods over discrete variables."""

    def __init__(
        self,
        hybrid: Hybrid,
        evidence: Evidence | None,
        options: Mapping[str, Any],
        virtual: bool = True,
    ) -> None:
        self.hybrid, self.engine, self.options, self.virtual = hybrid, hybrid.engine, options, virtual
        self.observed = Observed(
            hybrid.net, evidence, options.get("memory_limit", hybrid.engine.options.get("memory_limit"))
        )
        self.discrete = self.observed.discrete
        self._take(self.observed.stand(virtual))

    def _take(self, stand: StandIn) -> None:
        self.stand, self.evidence, self.log_scale = stand, stand.evidence, stand.log_scale
        self.asked = self.engine
        """The engine that is asked `evidence` instead: of the discrete network, with further children if need be."""
        if stand.children:
            network = self.hybrid.network.with_cpts(stand.children)
            self.asked = type(self.engine)(network, **self.engine.options)

    def settled(self) -> StandIn:
        """A stand-in that suffices, if the evidence is possible."""
        while self.stand.cut and self._widened(self.asked.log_evidence(self.evidence, **self.options)):
            pass
        return self.stand

    def joint(self, names: tuple[str, ...]) -> Posterior:
        """The joint posterior of discrete variables."""
        found = self._sure(lambda: self.asked.query(names, self.evidence, **self.options))
        return Posterior(found.variables, found.values, found.log_evidence + self.log_scale, found.sampling)

    def log_evidence(self) -> float:
        """ln p(evidence); ImpossibleEvidenceError if it is impossible."""
        while True:
            value = self.asked.log_evidence(self.evidence, **self.options)
            if not self._widened(value):
                return value + self.log_scale

    def mixture(self, name: str) -> MixturePosterior:
        """The posterior of a continuous variable."""
        return self._mixture(name, self.joint)

    def posteriors(self) -> AllPosteriors:
        """The posterior of every unobserved variable."""
        hybrid = self.hybrid
        found = self._sure(lambda: self.asked.posteriors(self.evidence, **self.options))
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
        best = self._possible(lambda: self.asked.mpe(self.evidence, k, **self.options))
        return [self._assignment(one) for one in best]

    def map(self, names: tuple[str, ...]) -> Assignment:
        """The most probable joint state of discrete variables."""
        best = self._possible(lambda: self.asked.map(names, self.evidence, **self.options))
        return self._assignment(best)

    def _possible(self, ask: Callable[[], Found]) -> Found:
        """What the engine answers; an error names the discrete evidence, not what stands for numbers."""
        self.settled()
        try:
            return ask()
        except ImpossibleEvidenceError:
            self._refuse_impossible()
            raise

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

    # When likelihoods that were cut off could count

    def _sure(self, ask: Callable[[], Answer]) -> Answer:
        """What the engine answers, asked again where the stand-in did not suffice."""
        while True:
            try:
                answer = ask()
            except ImpossibleEvidenceError:
                if not self._widened(-math.inf):
                    raise
            else:
                if not self._widened(answer.log_evidence):
                    return answer

    def _widened(self, log_evidence: float) -> bool:
        """Whether to ask again, with a stand-in that reaches further; raise if the discrete evidence is impossible."""
        if log_evidence == -math.inf:
            self._refuse_impossible()
        stand = self.stand
        if not stand.cut or (stand.suffices(log_evidence) and not self.observed.findings.likelihood):
            return False
        log_share = log_evidence - self.engine.log_evidence(self.discrete, **self.options)
        if stand.suffices(log_share):
            return False
        wider = self.observed.wider(stand, self.virtual, log_share, self._prior)
        if wider is None:
            raise self.observed.too_far(self.observed.numbers)
        self._take(wider)
        return True

    def _refuse_impossible(self) -> None:
        """Raise if the discrete evidence alone is impossible: numbers never are."""
        self.engine.query(self.hybrid.network.names[0], self.discrete, **self.options)

    def _prior(self, names: tuple[str, ...]) -> Array:
        found: Posterior = self.engine.query(names, self.discrete, **self.options)
        return found.values

    def _assignment(self, found: Assignment) -> Assignment:
        states = {name: state for name, state in found.states.items() if name in self.hybrid.net}
        return Assignment(states, found.log_probability + self.log_scale)


def hybrid(net: BayesianNetwork, method: Method = "auto") -> Hybrid:
    """What answers for the engine that a network with continuous variables keeps."""
    from bbn.inference import engine

    numbers = engine(net, method).numbers
    assert numbers is not None
    return numbers


def as_discrete(net: BayesianNetwork, evidence: Evidence | None) -> tuple[BayesianNetwork, dict[str, Any]]:
    """A network of discrete variables and evidence on it that give these the same posteriors as the whole does."""
    numbers = hybrid(net)
    stand = Case(numbers, evidence, {}, virtual=False).settled()
    return numbers.network.with_cpts(stand.children), stand.evidence
