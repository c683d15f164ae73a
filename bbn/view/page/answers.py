"""What a page asks about a Bayesian network, and the answers, within the memory budget of inference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bbn.analysis.explain import explain
from bbn.analysis.information import information
from bbn.core.errors import EvidenceError
from bbn.core.keywords import unknown_keyword
from bbn.inference import engine_class
from bbn.model.interventions import acted
from bbn.model.network import BayesianNetwork
from bbn.results.mixture_posterior import MixturePosterior
from bbn.view.density import STRIPS
from bbn.view.page.findings import Asked, asked, in_words, index, target
from bbn.view.page.model import page_model
from bbn.view.page.tables import table_rows

INSIDE = 0.998
"""The share of a density that is drawn."""

Told = dict[str, Any]
Request = Mapping[str, Any]


class NetworkAnswers:
    """The answers of one network.

    Parameters
    ----------
    net
        The network.
    options
        For the inference engine, such as memory_limit.
    timed
        Whether it is a dynamic network, unrolled.
    """

    paths: tuple[str, ...] = ("beliefs", "mpe", "explain", "information", "sensitivity", "table")

    def __init__(self, net: BayesianNetwork, options: Mapping[str, Any], timed: bool = False) -> None:
        method = options.get("method", "auto")
        known = ("method", *engine_class(method).defaults)
        for option in options:
            if option not in known:
                raise unknown_keyword("explore()", option, [*known, "host", "port", "browser", "edit"])
        self.net, self.options, self.timed = net, options, timed
        self.layout = page_model(net, timed)
        if net.continuous:
            self.layout["hidden"] = ["sensitivity"]

    def posteriors(self, given: Asked) -> Any:
        """The posterior of every unobserved variable."""
        return acted(self.net, given.do).posteriors(given.evidence, **self.options)

    def beliefs(self, request: Request) -> Told:
        """The posterior of every unobserved variable: one share per state, or the density of a number."""
        answers = self.posteriors(asked(self.net, request))
        return {
            "beliefs": {
                name: density(p) if isinstance(p, MixturePosterior) else p.values.tolist()
                for name, p in answers.items()
            },
            "log_evidence": answers.log_evidence,
        }

    def mpe(self, request: Request) -> Told:
        """The most probable explanation."""
        net, evidence = self._acted(request)
        best = net.mpe(evidence, **self.options)
        return {
            "states": {n: s if isinstance(s, float) else str(s) for n, s in best.states.items()},
            "log_probability": best.log_probability,
        }

    def explain(self, request: Request) -> Told:
        """Which findings moved the target."""
        name, (net, evidence) = self._target(request), self._acted(request)
        given = {other: value for other, value in evidence.items() if other != name}
        steps = [
            {"finding": in_words(step.finding, step.value), "alone": min(step.alone, 1e9)}
            for step in explain(net, name, given, **self.options)
        ]
        return {"steps": sorted(steps, key=lambda step: -float(step["alone"]))}

    def information(self, request: Request) -> Told:
        """Which variables would say most about the target."""
        name, (net, evidence) = self._target(request), self._acted(request)
        given = {other: value for other, value in evidence.items() if other != name}
        return {"bits": list(information(net, name, given, **self.options).items())}

    def sensitivity(self, request: Request) -> Told:
        """The table entries that the probability of one state of the target depends on most."""
        name = self._target(request)
        state = self.net.states(name)[index(request.get("state"), self.net.variable(name).card, name)]
        net, evidence = self._acted(request)
        largest = net.sensitivity(name, evidence, state, self.options.get("memory_limit")).largest(20)
        return {"entries": [{"name": entry.name, "derivative": entry.derivative} for entry in largest]}

    def table(self, request: Request) -> Told:
        """Rows of the target's table."""
        return table_rows(self.net, self.net[target(self.net, request)], request)

    def _acted(self, request: Request) -> tuple[BayesianNetwork, dict[str, Any]]:
        """The network after what is done, and what is observed then."""
        given = asked(self.net, request)
        return acted(self.net, given.do), given.evidence

    def _target(self, request: Request) -> str:
        name = target(self.net, request)
        if not self.net.states(name):
            raise EvidenceError(f"{name!r} is a number; this question is about variables with states")
        return name


def density(posterior: MixturePosterior) -> Told:
    """The density of a number over the range that holds nearly all of it; none where there is no spread.

    >>> import bbn
    >>> net = bbn.BayesianNetwork([bbn.Gaussian("X", means=2.0, variances=4.0)])
    >>> told = density(net.query("X"))
    >>> told["mean"], told["std"], round(told["low"], 1), len(told["density"])
    (2.0, 2.0, -4.2, 65)
    """
    mean, std = float(posterior.mean), float(posterior.std)
    if not std > 0:
        return {"mean": mean, "std": 0.0, "low": mean, "high": mean, "density": []}
    low, high = posterior.interval(INSIDE)
    heights = np.asarray(posterior.pdf(np.linspace(low, high, STRIPS + 1)))
    heights = np.where(np.isfinite(heights), heights, 0.0)
    return {"mean": mean, "std": std, "low": low, "high": high, "density": heights.tolist()}
