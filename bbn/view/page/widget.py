"""The page in a notebook's cell, by anywidget (JupyterLab, VS Code, Colab): its evidence is a trait.

The page lives in a frame of its own, so that neither its style nor its keys touch the notebook's. It asks through the
notebook's own connection: no port is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from bbn.core.errors import BBNError
from bbn.view.page import assets
from bbn.view.page.export import page_text
from bbn.view.page.findings import findings

if TYPE_CHECKING:
    from bbn.view.page.explorer import Explorer


class PageWidget(anywidget.AnyWidget):
    """The page of an Explorer.

    Parameters
    ----------
    explorer
        What gives the answers.
    """

    _esm = assets.text("widget.js")
    page = traitlets.Unicode().tag(sync=True)
    findings = traitlets.Dict().tag(sync=True)
    evidence = traitlets.Dict()
    done = traitlets.Dict()
    posteriors = traitlets.Any()

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        super().__init__(page=page_text(explorer.layout))
        self.follow()
        self.findings = findings(explorer.net, explorer.evidence, explorer.done)
        self.on_msg(self._asked)
        self.observe(self._set, "evidence")

    def follow(self) -> None:
        """Take over what was clicked."""
        explorer = self._explorer
        self.evidence, self.done = explorer.evidence, explorer.done
        if self.trait_has_value("posteriors") and self._trait_notifiers.get("posteriors"):
            try:
                self.posteriors = explorer.posteriors
            except BBNError:  # impossible evidence has none; the page says why
                self.posteriors = None

    def redraw(self) -> None:
        """Take over the network as it was edited, for views that are opened from now on."""
        self.page = page_text(self._explorer.layout)

    def _set(self, change: Any) -> None:
        """Pass evidence that was set on the widget on to the explorer."""
        if change["new"] != self._explorer.evidence:
            self._explorer.evidence = change["new"]

    def _asked(self, widget: Any, content: Any, buffers: Any) -> None:
        """Answer the page."""
        if not isinstance(content, dict) or not isinstance(content.get("path"), str):
            return
        body = content.get("body")
        try:
            told = self._explorer.answer(content["path"], body if isinstance(body, dict) else {})
            answer: dict[str, Any] = (
                {"told": told} if told is not None else {"error": "there is no such question"}
            )
        except (BBNError, ValueError, RecursionError) as error:
            answer = {"error": str(error)}
        self.send({"id": content.get("id"), **answer})
