"""Independent slow truth for networks with Gaussian variables, and random ones to try it on.

Every setting of the discrete variables is written out. Given it, x = (I − W)⁻¹(a + noise) is one multivariate
normal distribution; scipy's density and the textbook's Schur complement do the rest.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import bbn

EXACT = [bbn.JunctionTree, bbn.VariableElimination, bbn.Enumeration]


def random_network(rng, max_discrete=3, max_continuous=4, max_card=3, arcs_between_numbers=True):
    """A random network of at least one continuous variable; names in no telling order."""
    names = [f"v{i}" for i in rng.permutation(20)]
    variables, conditionals = [], []
    for _ in range(int(rng.integers(0 if rng.random() < 0.1 else 1, max_discrete + 1))):
        v = bbn.Variable(names.pop(), [f"s{k}" for k in range(int(rng.integers(1, max_card + 1)))])
        parents = [p for p in variables if rng.random() < 0.5]
        shape = [p.card for p in parents]
        table = rng.dirichlet(np.ones(v.card), size=shape)
        conditionals.append(bbn.CPT(v, parents, table))
        variables.append(v)
    numbers = []
    for _ in range(int(rng.integers(1, max_continuous + 1))):
        discrete = [p for p in variables if rng.random() < 0.5]
        above = [p for p in numbers if arcs_between_numbers and rng.random() < 0.5]
        parents = discrete + above
        parents = [parents[i] for i in rng.permutation(len(parents))]
        shape = [p.card for p in parents if p.card]
        gaussian = bbn.Gaussian(
            names.pop(),
            parents,
            means=rng.normal(0, 2, shape),
            variances=rng.uniform(0.3, 2.0, shape),
            weights=rng.uniform(-1.2, 1.2, [*shape, len(above)]) if above else None,
        )
        conditionals.append(gaussian)
        numbers.append(gaussian.variable)
    return bbn.BayesianNetwork([conditionals[i] for i in rng.permutation(len(conditionals))])


def random_evidence(net, rng, share=0.4, virtual=True):
    """A state, a likelihood or a number for some of the variables, all from one draw of the network."""
    drawn, evidence = forward(net, rng), {}
    for name, value in drawn.items():
        if rng.random() < share:
            evidence[name] = value
            states = net.states(name)
            if states and virtual and rng.random() < 0.4:
                evidence[name] = bbn.Virtual(
                    dict(zip(states, rng.uniform(0.05, 3, len(states)), strict=True))
                )
    return evidence


def forward(net, rng):
    """One row drawn along the arcs, by the definition."""
    row = {}
    for name in net.names:
        c = net[name]
        states = tuple(net.states(p.name).index(row[p.name]) for p in c.parents if p.card)
        if isinstance(c, bbn.Gaussian):
            numbers = [row[p.name] for p in c.continuous_parents]
            mean = c.means[states] + float(np.dot(c.weights[states], numbers))
            row[name] = float(rng.normal(mean, math.sqrt(c.variances[states])))
        else:
            row[name] = net.states(name)[rng.choice(c.variable.card, p=c.table[states])]
    return row


@dataclass
class Truth:
    """The exact answers by enumeration of the discrete assignments."""

    net: object
    evidence: dict

    def __post_init__(self):
        net, evidence = self.net, self.evidence
        self.discrete = [v for v in net.variables if v.card]
        self.numbers = [v.name for v in net.variables if not v.card]
        self.seen = [n for n in self.numbers if n in evidence]
        self.cases = []
        for states in itertools.product(*(v.states for v in self.discrete)):
            setting = dict(zip([v.name for v in self.discrete], states, strict=True))
            log_weight = self._log_discrete(setting)
            if log_weight == -math.inf:
                continue
            mean, covariance = self._normal(setting)
            if self.seen:
                at = [self.numbers.index(n) for n in self.seen]
                found = np.array([evidence[n] for n in self.seen])
                log_weight += multivariate_normal(mean[at], covariance[np.ix_(at, at)]).logpdf(found)
                gain = covariance[:, at] @ np.linalg.inv(covariance[np.ix_(at, at)])
                mean, covariance = mean + gain @ (found - mean[at]), covariance - gain @ covariance[at]
            self.cases.append((setting, log_weight, mean, covariance))
        self.log_evidence = float(logsumexp([case[1] for case in self.cases]))

    def _log_discrete(self, setting):
        total = 0.0
        for v in self.discrete:
            cpt = self.net[v.name]
            total += math.log(cpt.row(*(setting[p.name] for p in cpt.parents))[setting[v.name]] or 1e-320)
            finding = self.evidence.get(v.name)
            if isinstance(finding, bbn.Virtual):
                total += math.log(finding.weights[setting[v.name]])
            elif finding is not None and finding != setting[v.name]:
                return -math.inf
        return total

    def _normal(self, setting):
        n = len(self.numbers)
        weights, intercept, noise = np.zeros((n, n)), np.zeros(n), np.zeros(n)
        for i, name in enumerate(self.numbers):
            c = self.net[name]
            at = tuple(p.code(setting[p.name]) for p in c.discrete_parents)
            intercept[i], noise[i] = c.means[at], c.variances[at]
            for k, parent in enumerate(c.continuous_parents):
                weights[i, self.numbers.index(parent.name)] = c.weights[at][k]
        total = np.linalg.inv(np.eye(n) - weights)
        return total @ intercept, total @ np.diag(noise) @ total.T

    def probability(self, name):
        """P(state | evidence) of each state of a discrete variable."""
        totals = dict.fromkeys(self.net.states(name), 0.0)
        for setting, log_weight, _, _ in self.cases:
            totals[setting[name]] += math.exp(log_weight - self.log_evidence)
        return totals

    def mixture(self, name):
        """(weight, mean, variance) of a continuous variable in each discrete assignment."""
        i = self.numbers.index(name)
        return np.array([(math.exp(w - self.log_evidence), m[i], v[i, i]) for _, w, m, v in self.cases])

    def moments(self):
        """E[x] and E[x xᵀ] of all continuous variables."""
        weights = [math.exp(w - self.log_evidence) for _, w, _, _ in self.cases]
        first = sum(w * case[2] for w, case in zip(weights, self.cases, strict=True))
        second = sum(w * (c[3] + np.outer(c[2], c[2])) for w, c in zip(weights, self.cases, strict=True))
        return first, second


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def naive(variances=(1.0, 1.0), means=((0.0, 1.0), (0.0, 1.0)), prior=(0.5, 0.5)):
    z = bbn.Variable("Z", ["a", "b"])
    leaves = [bbn.Gaussian(n, [z], m, v) for n, m, v in zip("XY", means, variances, strict=True)]
    return bbn.BayesianNetwork([bbn.CPT(z, table=list(prior)), *leaves])
