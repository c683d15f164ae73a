"""The interactive page of a network, on a server or as a widget in a notebook, and what is clicked in either.

`bbn.view.page.server` does the talking, `answers.py` and `decision_answers.py` know the answers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from bbn.core.errors import BBNError, ModelError
from bbn.core.extras import needed_by
from bbn.model.decision_network import DecisionNetwork
from bbn.model.network import BayesianNetwork
from bbn.view.page.answers import NetworkAnswers
from bbn.view.page.decision_answers import DecisionAnswers
from bbn.view.page.edited_answers import EditedAnswers
from bbn.view.page.findings import Asked, asked, findings
from bbn.view.page.server import Server

FRAME = 620
"""The height of the page in a notebook, in pixels."""


class Explorer:
    """The page of one network. In a notebook it shows itself; elsewhere `url` is where it is served until closed.

    Parameters
    ----------
    net
        A Bayesian or decision network.
    host, port
        Where to listen; port 0 takes a free one.
    edit
        Whether the page may edit the network.
    timed
        Whether it is a dynamic network, unrolled.
    options
        For the inference engine, or for solving decisions, such as memory_limit.
    """

    def __init__(
        self,
        net: BayesianNetwork | DecisionNetwork,
        host: str = "127.0.0.1",
        port: int = 0,
        edit: bool = False,
        timed: bool = False,
        **options: Any,
    ) -> None:
        self._answers: NetworkAnswers | DecisionAnswers
        if isinstance(net, DecisionNetwork):
            if edit:
                raise ModelError("the page edits Bayesian networks; this is a decision network")
            self._answers = DecisionAnswers(net, options)
        elif edit:
            self._answers = EditedAnswers(net, options)
        else:
            self._answers = NetworkAnswers(net, options, timed)
        self.host = host
        self._wanted_port = port
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self._widget: Any = None
        self._given = Asked({}, {})

    @property
    def net(self) -> Any:
        """The network, as it is now where the page may edit it."""
        return self._answers.net

    @property
    def layout(self) -> dict[str, Any]:
        """What the page draws."""
        return self._answers.layout

    @property
    def evidence(self) -> dict[str, Any]:
        """What is observed on the page, as `query` takes it; set it, and a page in a notebook follows."""
        return dict(self._given.evidence)

    @evidence.setter
    def evidence(self, evidence: Mapping[str, Any]) -> None:
        self._put(findings(self.net, evidence, self._given.do))

    @property
    def done(self) -> dict[str, Any]:
        """What is done on the page, as the `do=` of `query` takes it; set it, and a page in a notebook follows."""
        return dict(self._given.do)

    @done.setter
    def done(self, do: Mapping[str, Any]) -> None:
        self._put(findings(self.net, self._given.evidence, do))

    @property
    def posteriors(self) -> Any:
        """The posterior of every unobserved variable given what is clicked on the page."""
        return self._answers.posteriors(self._given)

    @property
    def server(self) -> Server:
        """The server, which begins to listen when it is first needed; OSError if it cannot."""
        if self._server is None:
            self._server = Server((self.host, self._wanted_port), self)
            self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
            self._thread.start()
        return self._server

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        """Where the page is served."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}/"

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may name as its host."""
        names = {self.host, "localhost", "127.0.0.1", "[::1]"}
        return frozenset(f"{name}:{self.port}" for name in names)

    @property
    def widget(self) -> Any:
        """The page as an anywidget, with traits `evidence`, `done` and `posteriors`; ImportError if there is none."""
        if self._widget is None:
            with needed_by("the page as a widget", "'bbn[notebook]'"):
                from bbn.view.page.widget import PageWidget

            self._widget = PageWidget(self)
        return self._widget

    def observe(self, handler: Callable[[Any], None], names: str = "evidence") -> None:
        """Call a function when what is clicked changes.

        Parameters
        ----------
        handler : callable
            Called with a change, as traitlets do: `change["new"]` is the new value.
        names : str, default "evidence"
            "evidence", "done" or "posteriors".
        """
        self.widget.observe(handler, names)

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def wait(self) -> None:
        """Serve until interrupted."""
        self.server  # noqa: B018  # begins to listen
        assert self._thread is not None
        try:
            self._thread.join()
        except KeyboardInterrupt:
            self.close()

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
        name = path.removeprefix("/")
        if name not in self._answers.paths:
            return None
        if name == "beliefs" and request.get("current") is True:
            self._follow(asked(self.net, request))  # also where it is impossible, and has no answer
        told: dict[str, Any] = getattr(self._answers, name)(request)
        if name == "edit" and self._widget is not None:
            self._widget.redraw()
        return told

    def _follow(self, given: Asked) -> None:
        """Note what was clicked."""
        self._given = given
        if self._widget is not None:
            self._widget.follow()

    def _put(self, given: dict[str, Any]) -> None:
        """Take evidence from Python, and show it."""
        self._follow(asked(self.net, {"evidence": given}))
        if self._widget is not None:
            self._widget.findings = given

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget; without anywidget the page in a frame: as one file if it is small, otherwise served."""
        try:
            return self.widget._repr_mimebundle_(**kwargs)
        except ImportError:
            return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        from bbn.view.page.export import html_text

        try:
            source = f'srcdoc="{escape(html_text(self.net))}" sandbox="allow-scripts allow-downloads"'
        except BBNError:
            source = f'src="{self.url}"'
        return f'<iframe {source} width="100%" height="{FRAME}" title="bbn explore"></iframe>'


def explore(
    net: Any,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = False,
    edit: bool = False,
    timed: bool = False,
    **options: Any,
) -> Explorer:
    """The interactive page of a network; in a notebook the result shows it."""
    explorer = Explorer(net, host, port, edit, timed, **options)
    if browser:
        import webbrowser

        webbrowser.open(explorer.url)
    return explorer
