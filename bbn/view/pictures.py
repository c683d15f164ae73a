"""Pictures and pages of models, as methods: `plot`, `explore` and the like of `bbn.model.questions`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Unpack

from bbn.model.options import EngineOptions, Method, SolveOptions

if TYPE_CHECKING:
    from bbn.model.evidence import Evidence
    from bbn.view.page.explorer import Explorer
    from bbn.view.scene import Drawing


class NetworkPictures:
    """A Bayesian network as a picture, a page and a file."""

    __slots__ = ()

    def plot(
        self: Any,
        evidence: Evidence | None = None,
        beliefs: bool = True,
        information: bool = False,
        *,
        focus: str | None = None,
        steps: int = 1,
        title: str = "",
        method: Method = "auto",
        **options: Unpack[EngineOptions],
    ) -> Drawing:
        """Draw the network as cards in layers, parents above children, with a bar for each belief.

        Parameters
        ----------
        evidence : mapping, optional
            Variable name to finding, as in `query`; observed cards stand out, the others show their posteriors.
        beliefs : bool, default True
            False draws names and states alone, without inference.
        information : bool, default False
            Draw arcs wider where their ends have more mutual information given the evidence.
        focus : str, optional
            Draw this variable and its neighbourhood alone; the beliefs are those of the whole network.
        steps : int, default 1
            How many arcs away from `focus` the neighbourhood reaches, in either direction.
        title : str, default ""
            A heading above the picture.
        method : str, default "auto"
            The method of inference, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Drawing
            Shows itself in a notebook; `save("net.svg")` writes SVG, PNG or PDF, `axes(ax)` draws with matplotlib.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`.

        See Also
        --------
        explore : The same as a page to click on.
        bbn.plot_cpt : One table as a picture.

        Examples
        --------
        >>> import bbn
        >>> picture = bbn.example("burglary").plot({"JohnCalls": "yes"})
        >>> picture.svg[:4], "JohnCalls = yes" in picture.description
        ('<svg', True)
        >>> bbn.example("alarm").plot(focus="HR", steps=1, title="Around the heart rate").description[-35:]
        'Shown: 6 nodes within 1 step of HR.'
        """
        from bbn.view.cards import draw_network

        return draw_network(
            self, evidence, beliefs, information, focus, steps, title, method=method, **options
        )

    def explore(
        self: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        browser: bool = False,
        edit: bool = False,
        method: Method = "auto",
        **options: Unpack[EngineOptions],
    ) -> Explorer:
        """The interactive page of the network: click on a state to observe it.

        In a notebook the result shows itself (with anywidget, an optional extra, its evidence follows the clicks);
        elsewhere its `url` serves the page on this machine.

        Parameters
        ----------
        host : str, default "127.0.0.1"
            The address to listen on.
        port : int, default 0
            The port to listen on; 0 takes a free one.
        browser : bool, default False
            Open the page in the web browser.
        edit : bool, default False
            Let the page edit the network: `net` of the result is what it has become; this network stays as it is.
        method : str, default "auto"
            The method of inference, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Explorer
            Shows the page in a notebook's cell; `url` is its address, `wait()` serves until interrupted, `close()`
            stops. `evidence`, `done` and `posteriors` are what is clicked, and what follows from it.

        Raises
        ------
        OSError
            The address cannot be listened on: when `url` is asked for.

        See Also
        --------
        plot : The same as a picture.
        export_html : The page as one file.

        Examples
        --------
        >>> import bbn
        >>> page = bbn.example("burglary").explore()
        >>> page.url.startswith("http://127.0.0.1:")
        True
        >>> page.close()
        """
        from bbn.view.page.explorer import explore

        return explore(self, host, port, browser, edit, method=method, **options)

    def export_html(self: Any, path: str | os.PathLike[str]) -> None:
        """Write the interactive page of the network as one HTML file, which needs no server and no connection.

        The file holds the network's compiled junction tree; the reader's browser answers. Evidence, interventions,
        posteriors, the most probable explanation, cases, find and zoom work as in `explore`.

        Parameters
        ----------
        path : path
            The file to write; it is replaced at once when everything is written.

        Raises
        ------
        ModelError
            The network has continuous variables.
        BudgetError
            The junction tree, or the file, would be too large for a browser; the message says how large.
        OSError
            The file cannot be written.

        See Also
        --------
        explore : The same page from a server, for networks of any size.

        Examples
        --------
        >>> import bbn, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "asia.html")
        ...     bbn.example("asia").export_html(path)
        ...     path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        from bbn.view.page.export import export_html

        export_html(self, path)

    def _repr_svg_(self: Any) -> str:
        return str(self.plot(beliefs=False).svg)


class DecisionPictures:
    """A decision network as a picture and a page."""

    __slots__ = ()

    def plot(
        self: Any,
        evidence: Evidence | None = None,
        solved: bool = True,
        **options: Unpack[SolveOptions],
    ) -> Drawing:
        """The network drawn: ovals for chance, squares for decisions, diamonds for utilities.

        Parameters
        ----------
        evidence : mapping, optional
            What is known; those nodes stand out.
        solved : bool
            Show what each choice is worth, and the beliefs under the best policy; False draws names alone.
        method, restarts, seed, node_limit, memory_limit, time_limit
            As `solve` takes them.

        Returns
        -------
        Drawing
            Shows itself in a notebook; `.save("x.svg")` writes it.
        """
        from bbn.view.decisions import draw_decisions

        return draw_decisions(self, evidence, solved, **options)

    def explore(
        self: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        browser: bool = False,
        **options: Unpack[SolveOptions],
    ) -> Explorer:
        """The interactive page of the network: what each choice is worth, updated with every click.

        Parameters
        ----------
        host : str, default "127.0.0.1"
            The address to listen on.
        port : int, default 0
            The port to listen on; 0 takes a free one.
        browser : bool, default False
            Open the page in the web browser.
        method, restarts, seed, node_limit, memory_limit, time_limit
            As `solve` takes them.

        Returns
        -------
        Explorer
            As `BayesianNetwork.explore` gives it; `posteriors` are those under the best policy.

        Raises
        ------
        OSError
            The address cannot be listened on: when `url` is asked for.

        See Also
        --------
        plot : The same as a picture.

        >>> import bbn
        >>> page = bbn.example("oil_wildcatter").explore()
        >>> page.evidence = {"Test": "yes", "Seismic": "closed"}
        >>> page.posteriors["Drill"].mode()
        'yes'
        """
        from bbn.view.page.explorer import explore

        return explore(self, host, port, browser, **options)

    def _repr_svg_(self: Any) -> str:
        return str(self.plot(solved=False).svg)


class TimePictures:
    """A dynamic network, unrolled, as a picture and a page."""

    __slots__ = ()

    def plot(self: Any, steps: int | None = None, **options: Any) -> Drawing:
        """The network of two slices (more where parents lie further back) drawn as cards; `steps` says how many.

        Further options are those of `BayesianNetwork.plot`.

        Parameters
        ----------
        steps : int, optional
            How many slices; by default two, or more where parents lie further back.
        **options
            Those of `BayesianNetwork.plot`: `beliefs`, `information`, `method` and the options of the
            method.
        """
        from bbn.view.cards import draw_network

        options.setdefault("beliefs", False)
        return draw_network(self.unroll(self.order + 1 if steps is None else steps), None, **options)

    def explore(
        self: Any,
        steps: int = 6,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        browser: bool = False,
        **options: Any,
    ) -> Explorer:
        """The interactive page of this many slices; the panel of a node shows its variable over time.

        Parameters
        ----------
        steps : int, default 6
            How many slices.
        host : str, default "127.0.0.1"
            The address to listen on.
        port : int, default 0
            The port to listen on; 0 takes a free one.
        browser : bool, default False
            Open the page in the web browser.
        **options
            Those of `BayesianNetwork.query`: `method` and the options of the method.

        Returns
        -------
        Explorer
            As `BayesianNetwork.explore` gives it, of the unrolled network.

        Raises
        ------
        OSError
            The address cannot be listened on: when `url` is asked for.

        Examples
        --------
        >>> import bbn
        >>> page = bbn.example("umbrella").explore(3)
        >>> page.evidence = {"Umbrella[0]": "yes"}
        >>> round(page.posteriors["Rain[0]"]["yes"], 4)
        0.8182
        """
        from bbn.view.page.explorer import explore

        return explore(self.unroll(steps), host, port, browser, timed=True, **options)

    def _repr_svg_(self: Any) -> str:
        return str(self.plot().svg)
