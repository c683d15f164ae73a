"""The interactive page: a network laid out, and the answers to a page's questions about it.

`bbn.view.server` does the talking. What a page asks is validated here, and answered within the memory budget of
inference.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

from bbn.analysis.explain import explain
from bbn.analysis.information import information
from bbn.core.errors import EvidenceError, ModelError
from bbn.core.keywords import unknown_keyword
from bbn.inference import engine_class
from bbn.model.evidence import Virtual
from bbn.model.interventions import acted
from bbn.model.network import BayesianNetwork
from bbn.view.cards import MAX_STATES
from bbn.view.fold import readable
from bbn.view.measures import BAR, PAD, PERCENT, ROW, TITLE, clipped, text_width
from bbn.view.scene import arrow_head, spline
from bbn.view.server import Server


class Explorer:
    """A server of one network's page, running in the background until closed.

    Parameters
    ----------
    net
        The network.
    host, port
        Where to listen; port 0 takes a free one.
    options
        For the inference engine, such as memory_limit.
    """

    def __init__(self, net: BayesianNetwork, host: str = "127.0.0.1", port: int = 0, **options: Any) -> None:
        if net.continuous:
            raise ModelError(
                f"{net.continuous[0]!r} is continuous; the interactive page shows discrete variables: "
                "plot() draws this network, and discrete_part() is what the page can show of it"
            )
        method = options.get("method", "auto")
        known = ("method", *engine_class(method).defaults)
        for option in options:
            if option not in known:
                raise unknown_keyword(f"method {method!r}", option, known)
        self.net, self.options = net, options
        self.layout = page_model(net)
        self.server = Server((host, port), self)
        self.host, self.port = host, self.server.server_address[1]
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}/"

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may name as its host."""
        names = {self.host, "localhost", "127.0.0.1", "[::1]"}
        return frozenset(f"{name}:{self.port}" for name in names)

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def wait(self) -> None:
        """Serve until interrupted."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.close()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" width="100%" height="620" title="bbn explore"></iframe>'

    def answer(self, path: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to one question, None where there is no such path; BBNError or ValueError if it has none.

        Parameters
        ----------
        path : str
            What is asked, such as "/beliefs".
        request : mapping
            The page's question.

        Returns
        -------
        dict or None
            What goes back as JSON.
        """
        return ANSWERS[path](self, request) if path in ANSWERS else None

    def beliefs(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The posterior of every unobserved variable.

        Parameters
        ----------
        request : mapping
            The page's question: its evidence, and its target where it has one.

        Returns
        -------
        dict
            What goes back as JSON.
        """
        net, evidence = _asked(self.net, request)
        answers = net.posteriors(evidence, **self.options)
        return {
            "beliefs": {name: p.values.tolist() for name, p in answers.items()},
            "log_evidence": answers.log_evidence,
        }

    def mpe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The most probable explanation.

        Parameters
        ----------
        request : mapping
            The page's question: its evidence, and its target where it has one.

        Returns
        -------
        dict
            What goes back as JSON.
        """
        net, evidence = _asked(self.net, request)
        best = net.mpe(evidence, **self.options)
        return {
            "states": {n: str(s) for n, s in best.states.items()},
            "log_probability": best.log_probability,
        }

    def explain(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Which findings moved the target.

        Parameters
        ----------
        request : mapping
            The page's question: its evidence, and its target where it has one.

        Returns
        -------
        dict
            What goes back as JSON.
        """
        target = _target(self.net, request)
        net, evidence = _asked(self.net, request)
        given = {name: value for name, value in evidence.items() if name != target}
        steps = [
            {"finding": _finding_text(step.finding, step.value), "alone": min(step.alone, 1e9)}
            for step in explain(net, target, given, **self.options)
        ]
        return {"steps": sorted(steps, key=lambda step: -float(step["alone"]))}

    def information(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What would tell most about the target.

        Parameters
        ----------
        request : mapping
            The page's question: its evidence, and its target where it has one.

        Returns
        -------
        dict
            What goes back as JSON.
        """
        target = _target(self.net, request)
        net, evidence = _asked(self.net, request)
        given = {name: value for name, value in evidence.items() if name != target}
        return {"bits": list(information(net, target, given, **self.options).items())}

    def sensitivity(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The table entries that the target's probability depends on most.

        Parameters
        ----------
        request : mapping
            The page's question: its evidence, and its target where it has one.

        Returns
        -------
        dict
            What goes back as JSON.
        """
        target = _target(self.net, request)
        state = self.net.states(target)[_index(request.get("state"), self.net.variable(target).card, target)]
        net, given = _asked(self.net, request)
        limit = self.options.get("memory_limit")
        largest = net.sensitivity(target, given, state, limit).largest(20)
        return {"entries": [{"name": entry.name, "derivative": entry.derivative} for entry in largest]}


ANSWERS: dict[str, Callable[[Explorer, Mapping[str, Any]], dict[str, Any]]] = {
    "/beliefs": Explorer.beliefs,
    "/mpe": Explorer.mpe,
    "/explain": Explorer.explain,
    "/information": Explorer.information,
    "/sensitivity": Explorer.sensitivity,
}


def explore(
    net: BayesianNetwork, host: str = "127.0.0.1", port: int = 0, browser: bool = False, **options: Any
) -> Explorer:
    """Serve the interactive page of a network; in a notebook the result shows it."""
    explorer = Explorer(net, host, port, **options)
    if browser:
        import webbrowser

        webbrowser.open(explorer.url)
    return explorer


def page_model(net: BayesianNetwork) -> dict[str, Any]:
    """Everything the page needs to draw the network."""
    labels = {v.name: max(text_width(clipped(str(s))) for s in v.states) for v in net.variables}
    sizes = {
        v.name: (
            2 * PAD + max(text_width(clipped(v.name), bold=True), labels[v.name] + BAR + 8 + PERCENT),
            TITLE + 6 + ROW * min(v.card, MAX_STATES),
        )
        for v in net.variables
    }
    plan = readable(sizes, net.arcs)
    arcs = []
    for (parent, child), path in plan.arcs.items():
        (x0, y0), (x1, y1) = plan.centres[parent], plan.centres[child]
        points = ((x0, y0 + sizes[parent][1] / 2), *path, (x1, y1 - sizes[child][1] / 2))
        curve = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(
            " C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in spline(points)
        )
        head = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrow_head(points))
        arcs.append({"parent": parent, "child": child, "path": curve, "head": head})
    nodes = [
        {
            "name": v.name,
            "states": [str(s) for s in v.states],
            "rows": min(v.card, MAX_STATES),
            "label": labels[v.name],
            "wide": text_width(clipped(v.name), bold=True),
            "x": plan.centres[v.name][0] - sizes[v.name][0] / 2,
            "y": plan.centres[v.name][1] - sizes[v.name][1] / 2,
            "width": sizes[v.name][0],
            "height": sizes[v.name][1],
        }
        for v in net.variables
    ]
    return {
        "name": net.name,
        "nodes": nodes,
        "arcs": arcs,
        "width": plan.width,
        "height": plan.height,
        "title": TITLE,
        "row": ROW,
        "percent": PERCENT,
    }


def _asked(net: BayesianNetwork, request: Mapping[str, Any]) -> tuple[BayesianNetwork, dict[str, Any]]:
    """The network after what is done, and what is observed then.

    A request's evidence is name to {"state": index}, {"do": index} or {"virtual": [weights]}.
    """
    given = request.get("evidence", {})
    if not isinstance(given, dict):
        raise EvidenceError("evidence must be an object")
    evidence: dict[str, Any] = {}
    done: dict[str, Any] = {}
    for name, finding in given.items():
        variable = net.variable(name)
        kind, value = (
            next(iter(finding.items())) if isinstance(finding, dict) and len(finding) == 1 else ("", 0)
        )
        if kind == "state":
            evidence[name] = variable.states[_index(value, variable.card, name)]
        elif kind == "do":
            done[name] = variable.states[_index(value, variable.card, name)]
        elif kind == "virtual":
            if not isinstance(value, list) or len(value) != variable.card or not all(map(_is_number, value)):
                raise EvidenceError(f"virtual evidence on {name!r} must be {variable.card} numbers")
            evidence[name] = Virtual(dict(zip(variable.states, value, strict=True)))
        else:
            raise EvidenceError(
                f"the finding on {name!r} must be {{state: index}}, {{do: index}} or {{virtual: [weights]}}"
            )
    return acted(net, done), evidence


def _target(net: BayesianNetwork, request: Mapping[str, Any]) -> str:
    target = request.get("target")
    if not isinstance(target, str):
        raise EvidenceError("target must be a node's name")
    return net.variable(target).name


def _index(value: Any, card: int, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < card:
        raise EvidenceError(f"the state of {name!r} must be an index from 0 to {card - 1}")
    return value


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _finding_text(name: str, value: Any) -> str:
    if isinstance(value, Virtual):
        return f"{name} ~ " + ", ".join(f"{state}: {weight:.3g}" for state, weight in value.weights.items())
    return f"{name} = {value}"
