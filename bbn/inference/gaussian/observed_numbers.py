"""What numbers observed below the discrete variables of a network say about these.

No discrete variable has a continuous parent, so the discrete variables are a network by themselves, and numbers are a
likelihood λ(s) = p(numbers | s) over the settings s of discrete parents: one factor for each component of the
continuous variables (see `components`), kept as logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import require_table
from bbn.core.errors import EvidenceError, ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.inference.gaussian.components import Component, Given, component_of, components, members_of
from bbn.inference.gaussian.jointly_gaussian import NEAR
from bbn.model.cpt import CPT
from bbn.model.evidence import Evidence, Virtual, as_mapping, check_evidence, observed_numbers
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable

KEPT, KEPT_CELLS = 1024, 1 << 14
"""A network keeps at most KEPT sets of components, none of them larger than KEPT_CELLS cells."""


RANGE = 600.0
"""One table holds likelihoods down to e^−RANGE; a wider range is the product of several tables."""
SMALLEST = math.exp(-RANGE)
TABLES = 64
"""A stand-in whose favourite settings are all impossible is tried with up to TABLES tables before scopes are joined."""
MARGIN = 40.0
"""What is e^−MARGIN of the total does not show in a double."""

Scope = tuple[str, ...]


class StandIn(NamedTuple):
    """Discrete evidence that stands for all the evidence."""

    children: list[CPT]
    """Variables to add to the discrete network."""
    evidence: dict[str, Any]
    log_scale: float
    """What to add to ln P(evidence)."""
    reach: float
    """Likelihoods below e^−reach of the largest are taken as zero,"""
    cut: list[Scope]
    """which happened in these scopes."""

    def suffices(self, log_share: float) -> bool:
        """Whether nothing that counts was cut off, e^log_share being what the numbers leave of the total."""
        return not self.cut or log_share > MARGIN - self.reach


class Observed:
    """Evidence on a network with continuous variables, the numbers in it as likelihoods over discrete variables.

    Attributes
    ----------
    discrete
        The evidence on discrete variables, as it was given.
    findings
        The same, checked.
    seen
        Continuous variable name to the number observed.
    numbers
        The same, with those that `do` has set.
    likelihoods
        Discrete names, in the network's order, to ln λ over their states,
    log_offset
        less this in all of them together.
    """

    def __init__(
        self, net: BayesianNetwork, evidence: Evidence | None, memory_limit: int | str | None = None
    ) -> None:
        self.net, self.memory_limit = net, memory_limit
        self._answers: dict[Component, Given] = {}
        self.findings = check_evidence(net, evidence)
        self.discrete = {n: value for n, value in as_mapping(evidence).items() if net.states(n)}
        self.numbers = set_numbers(net)
        self.seen = observed_numbers(net, evidence)
        for name, number in self.seen.items():
            if self.numbers.setdefault(name, number) != number:
                raise ImpossibleEvidenceError(
                    f"impossible evidence: {name!r} is set to {self.numbers[name]:g}, found {number:g}",
                    {name: number},
                )
        self.likelihoods: dict[Scope, Array] = {}
        self.joined: set[Scope] = set()
        self.log_offset = 0.0
        for part in self.components:
            if part.observed:
                scope = tuple(v.name for v in part.regime)
                logs, offset = self._log_density(part)
                self.likelihoods[scope] = self.likelihoods.get(scope, 0.0) + logs.reshape(part.shape)
                self.log_offset += offset

    @cached_property
    def components(self) -> list[Component]:
        """The components of the observed continuous variables and their ancestors."""
        return self._kept(
            None, lambda: components(self.net, self.numbers, (), self._fixed, self.memory_limit)
        )

    def component_of(self, name: str) -> Component:
        """The component of an unobserved continuous variable, or a larger one with the same regime."""
        larger = self._inside.get(name)
        if larger is not None:
            if name in self._above or not larger.regime:
                return larger
            members = members_of(self.net, name, self.numbers, self._above)
            regime = {p.name for g in members for p in g.discrete_parents if p.name not in self._fixed}
            if len(regime) == len(larger.regime):
                return larger
        (found,) = self._kept(
            name,
            lambda: [component_of(self.net, name, self.numbers, self._above, self._fixed, self.memory_limit)],
        )
        for other in found.names:
            self._inside.setdefault(other, found)
        return found

    @cached_property
    def _inside(self) -> dict[str, Component]:
        """Components so far, by what is in them."""
        return {name: part for part in self.components for name in part.names}

    @cached_property
    def _columns(self) -> dict[str, Array]:
        return {name: np.array([x]) for name, x in self.numbers.items()}

    @cached_property
    def _above(self) -> set[str]:
        return self.net.ancestral_set(self.numbers)

    @cached_property
    def _fixed(self) -> dict[str, int]:
        """The states of discrete parents that are known."""
        hard = self.findings.hard
        return {name: hard[name] for name in regime_of(self.net) if name in hard}

    def _kept(self, what: str | None, make: Callable[[], list[Component]]) -> list[Component]:
        """Components that depend on what is observed, not on the numbers: they are kept with the network."""
        kept: dict[Any, list[Component]] = self.net.memo.setdefault("components", {})
        key = (what, frozenset(self.numbers), frozenset(self._fixed.items()))
        found = kept.get(key)
        if found is None:
            found = make()
            if sum(part.cells for part in found) <= KEPT_CELLS:
                if len(kept) >= KEPT:
                    kept.clear()
                kept[key] = found
        return found

    def given(self, part: Component) -> Given:
        """A component given the numbers."""
        found = self._answers.get(part)
        if found is None:
            found = self._answers[part] = part.given(self._columns)
        return found

    def stand(self, virtual: bool, reach: float = RANGE) -> StandIn:
        """Each likelihood as an observed child of its variables; with `virtual`, of one variable as its own.

        A likelihood with a wider range than one table holds is the product of n equal ones, exp(ln λ / n), down to
        e^−reach of its largest entry.
        """
        children: list[CPT] = []
        evidence, log_scale, cut = dict(self.discrete), self.log_offset, []
        taken = self.findings.likelihood | self.findings.soft
        for scope, logs in self.likelihoods.items():
            highest = float(logs.max())
            log_scale += highest
            scaled = np.exp(logs - highest)
            n_tables = 1
            if scaled.min() < SMALLEST:
                apart = logs - highest
                if apart.min() < -reach:
                    cut.append(scope)
                    apart = np.where(apart < -reach, -np.inf, apart)
                lowest = float(apart.min(initial=0.0, where=np.isfinite(apart)))
                n_tables = max(1, math.ceil(-lowest / RANGE))
                scaled = np.exp(apart / n_tables)
            if virtual and n_tables == 1 and len(scope) == 1 and scope[0] not in taken:
                states = self.net.states(scope[0])
                evidence[scope[0]] = Virtual(dict(zip(states, scaled.tolist(), strict=True)))
            elif scope:
                parents = tuple(self.net.variable(name) for name in scope)
                table = np.stack([scaled, 1 - scaled], axis=-1)
                name = unused(self.net, f"numbers below {', '.join(scope)}")
                for i in range(n_tables):
                    child = Variable(unused(self.net, f"{name} ({i + 1})") if i else name, ["seen", "other"])
                    children.append(CPT.trusted(child, parents, table))
                    evidence[child.name] = "seen"
        return StandIn(children, evidence, log_scale, reach, cut)

    def wider(
        self, stand: StandIn, virtual: bool, log_share: float, prior: Callable[[Scope], Array]
    ) -> StandIn | None:
        """A stand-in that reaches further, where one does not suffice; None if there is none.

        What is left of the total says how far it has to reach. If nothing is left, because all settings that the
        numbers favour are impossible, the scopes that were cut are joined, and the settings of them that are possible
        by `prior` compared with each other alone.
        """
        if log_share > -math.inf:
            return self.stand(virtual, MARGIN + 1 - log_share)
        if stand.reach < TABLES * RANGE:
            return self.stand(virtual, TABLES * RANGE)
        together = {name for scope in stand.cut for name in scope}
        names = tuple(name for name in self.net.names if name in together)
        require_table(
            [self.net.variable(name).card for name in names],
            f"the joint of {len(names)} discrete variables ({', '.join(names[:6])}{', …' * (len(names) > 6)}) below "
            "which numbers contradict each other",
            "observe more of them, or fewer of the numbers",
            self.memory_limit,
        )
        with np.errstate(divide="ignore"):
            logs = np.where(prior(names) > 0, 0.0, -np.inf)
        for scope in stand.cut:
            order = sorted(range(len(scope)), key=lambda k: names.index(scope[k]))
            shape = [self.net.variable(name).card if name in scope else 1 for name in names]
            logs = logs + self.likelihoods[scope].transpose(order).reshape(shape)
        if not logs.max() > -math.inf or names in self.joined:
            return None
        for scope in stand.cut:
            del self.likelihoods[scope]
        self.likelihoods[names] = self.likelihoods.get(names, 0.0) + logs
        self.joined.add(names)
        return self.stand(virtual)

    def too_far(self, names: Iterable[str]) -> EvidenceError:
        """The error for numbers whose density is zero even as a logarithm."""
        shown = ", ".join(f"{name}={self.numbers[name]:g}" for name in names)
        return EvidenceError(
            f"{shown}: so far from what the network expects, by its variances, that the density is too small for a "
            "double even as a logarithm"
        )

    def _log_density(self, part: Component) -> tuple[Array, float]:
        given = self.given(part)
        logs: Array = given.log_density[0]
        if logs.min() > NEAR:
            return logs, 0.0
        given = part.refined(given, self._columns)
        logs, offset = given.log_density[0], float(np.max(given.offset))  # of the one row
        logs = np.asarray(np.where(np.isfinite(logs), logs, -np.inf))
        if logs.max() == -np.inf:
            raise self.too_far(part.names[i] for i in part.observed)
        return logs, offset


def discrete_network(net: BayesianNetwork) -> BayesianNetwork:
    """The network of the discrete variables, or of one constant where there are none."""
    if "discrete" not in net.memo:
        if len(net.continuous) < len(net):
            made = net.discrete_part()
        else:
            made = BayesianNetwork([CPT.uniform(Variable(unused(net, "constant"), ["certain"]))], net.name)
        net.memo.setdefault("discrete", made)
    kept: BayesianNetwork = net.memo["discrete"]
    return kept


def regime_of(net: BayesianNetwork) -> tuple[str, ...]:
    """The discrete parents of continuous variables."""
    if "regime" not in net.memo:
        parents = {p for name in net.continuous for p in net.parents(name)}
        net.memo["regime"] = tuple(name for name in net.names if name in parents and net.states(name))
    found: tuple[str, ...] = net.memo["regime"]
    return found


def set_numbers(net: BayesianNetwork) -> dict[str, float]:
    """The numbers that `do` has set, by name."""
    return {c.name: float(c.means) for c in net.conditionals if isinstance(c, Gaussian) and c.is_point}


def unused(net: BayesianNetwork, name: str) -> str:
    """`name`, or one like it that no variable of the network has."""
    while name in net:
        name += "'"
    return name
