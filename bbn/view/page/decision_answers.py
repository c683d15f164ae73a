"""What a page asks about a decision network: what each choice is worth, and beliefs under the best policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bbn.core.errors import EvidenceError
from bbn.core.keywords import unknown_keyword
from bbn.decisions.solve import expected_utility, solve, with_policy
from bbn.model.decision import Decision
from bbn.model.decision_network import DecisionNetwork
from bbn.model.options import SolveOptions
from bbn.results.mixture_posterior import MixturePosterior
from bbn.results.policy import Solution
from bbn.view.page.answers import Request, Told, density
from bbn.view.page.findings import Asked, asked
from bbn.view.page.model import page_model
from bbn.view.page.tables import table_rows

HIDDEN = ["mpe", "explain", "information", "sensitivity"]
"""The panels that a decision network has no answers for."""


class DecisionAnswers:
    """The answers of one decision network.

    Parameters
    ----------
    net
        The decision network.
    options
        Those of `solve`.
    """

    paths = ("beliefs", "table")

    def __init__(self, net: DecisionNetwork, options: Mapping[str, Any]) -> None:
        known = tuple(SolveOptions.__annotations__)
        for option in options:
            if option not in known:
                raise unknown_keyword("explore of a decision network", option, known)
        self.net, self.options = net, options
        self.layout: dict[str, Any] = {**page_model(net), "hidden": HIDDEN}

    def posteriors(self, given: Asked) -> Any:
        """The posterior of every chance variable and decision that is not observed, under the best policy."""
        return self._followed(given, self._solved(given))

    def beliefs(self, request: Request) -> Told:
        """Beliefs under the best policy, what each choice and utility is worth, and the whole."""
        given = self._given(request)
        best = self._solved(given)
        answers = self._followed(given, best)
        return {
            "beliefs": {
                name: density(p) if isinstance(p, MixturePosterior) else p.values.tolist()
                for name, p in answers.items()
            },
            "log_evidence": answers.log_evidence,
            "expected_utility": best.expected_utility,
            "worths": {
                d.name: worth for d in self.net.decisions if (worth := self._worth(d, given)) is not None
            },
            "utilities": self._utilities(given, best),
        }

    def table(self, request: Request) -> Told:
        """Rows of a chance node's or utility's table, or of what a decision chooses."""
        name = request.get("target")
        if not isinstance(name, str) or name not in self.net:
            raise EvidenceError("target must be a node's name")
        node = self.net[name]
        made = isinstance(node, Decision) and name in (given := self._given(request)).evidence
        rule = None if not isinstance(node, Decision) or made else self._solved(given).policy[name]
        return table_rows(self.net, node, request, rule)

    def _given(self, request: Request) -> Asked:
        given = asked(self.net, request)
        if given.do:
            raise EvidenceError(
                "a decision network has decisions in place of interventions: observe a choice"
            )
        return given

    def _solved(self, given: Asked) -> Solution:
        return solve(self.net, given.evidence, **self.options)

    def _policy(self, given: Asked, best: Solution) -> Any:
        """The network that follows the best policy, and the evidence without the choices made."""
        evidence = dict(given.evidence)
        made = {d.name: evidence.pop(d.name) for d in self.net.decisions if d.name in evidence}
        return with_policy(self.net, {**best.policy, **made}), evidence

    def _followed(self, given: Asked, best: Solution) -> Any:
        net, evidence = self._policy(given, best)
        return net.posteriors(evidence)

    def _worth(self, decision: Decision, given: Asked) -> list[float] | None:
        """What each choice is worth, the other decisions made as well as can be; None where it cannot be fixed."""
        if decision.name in given.evidence:
            return None
        try:
            return [
                expected_utility(self.net, {decision.name: state}, given.evidence, **self.options)
                for state in decision.states
            ]
        except EvidenceError:
            return None

    def _utilities(self, given: Asked, best: Solution) -> dict[str, float]:
        """The expected value of each utility that has a table."""
        net, evidence = self._policy(given, best)
        worths = {}
        for utility in self.net.utilities:
            if utility.combine is None and not utility.continuous_parents:
                worths[utility.name] = float(
                    (_share(net, [p.name for p in utility.parents], evidence) * utility.table).sum()
                )
        return worths


def _share(net: Any, names: list[str], evidence: Mapping[str, Any]) -> Any:
    """The joint posterior of these, 1 where there are none; observed ones hold a single state."""
    return net.query(names, evidence).values if names else 1.0
