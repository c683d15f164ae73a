"""The questions about a network's answers: why, what to ask next, what they depend on, and pictures of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack, cast

from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.model.options import EngineOptions, MemoryLimit, Method
from bbn.model.variable import State

if TYPE_CHECKING:
    from bbn.analysis.explain import Explanation
    from bbn.analysis.information import Information
    from bbn.analysis.sensitivity import Sensitivity
    from bbn.model.evidence import Evidence
    from bbn.model.interventions import Interventions
    from bbn.model.network import BayesianNetwork
    from bbn.results.mixture_posterior import MixturePosterior
    from bbn.results.posterior import Posterior
    from bbn.view.page.explorer import Explorer
    from bbn.view.scene import Drawing


class AnalysisQuestions(Frozen):
    """What a network says about its own answers."""

    __slots__ = ()

    def explain(
        self,
        target: str,
        evidence: Evidence | None,
        method: Method = "auto",
        **options: Unpack[EngineOptions],
    ) -> Explanation:
        """Return which findings moved the posterior of `target`, and by how much, in bits.

        Parameters
        ----------
        target : str
            The variable whose posterior is explained, a discrete one.
        evidence : mapping or None
            Variable name to finding, as in `query`; the findings come in in this order.
        method : str, default "auto"
            The method of inference, as in `query`.
        memory_limit, time_limit, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Explanation
            Prints as a table and has `plot()` and `to_frame()`. Each of its `steps` is a finding with the bits that
            the answer loses without it, and the bits by which it moved the answer when it came in.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`; EvidenceError also for a continuous target.

        See Also
        --------
        information : Which variable to ask about next.
        sensitivity : Which table entries the answer depends on.

        Examples
        --------
        >>> import bbn
        >>> why = bbn.example("asia").explain("lung", {"xray": "yes", "smoke": "yes", "asia": "no"})
        >>> {step.finding: round(step.alone, 3) for step in why}
        {'xray': 1.268, 'smoke': 0.072, 'asia': 0.0}
        """
        from bbn.analysis.explain import explain

        return explain(cast("BayesianNetwork", self), target, evidence, method, **options)

    @keywords_checked
    def counterfactual(
        self,
        targets: str | Sequence[str],
        evidence: Evidence | None,
        do: Interventions,
        *,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
    ) -> Posterior | MixturePosterior:
        """Return what targets would have been, had something been done, given what was seen without it.

        Both worlds share everything that the act does not reach, by a twin network (Balke and Pearl 1994). The
        variables that it does reach must say what their noise is: functions of their parents (tables of zeros and ones,
        as `CPT.deterministic` makes them) or Gaussians.

        Parameters
        ----------
        targets : str or sequence of str
            The variable asked for, or several discrete ones.
        evidence : mapping or None
            Variable name to finding, about the world as it is; as in `query`.
        do : mapping
            Variable name to what is done in the other world; as in `query`.
        memory_limit, time_limit : optional
            The most bytes and seconds that the work may take, as in `query`.

        Returns
        -------
        Posterior or MixturePosterior
            As `query` gives it, of the targets in the other world.

        Raises
        ------
        NotIdentifiableError
            A variable that the act reaches has a table that is not a function, so that the network does not decide.
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError
            As in `query`.

        See Also
        --------
        query : With `do`, what will be, once something is done.
        bbn.causation_bounds : Bounds of necessity and sufficiency where tables do not decide.

        Examples
        --------
        >>> import bbn
        >>> dose = bbn.Gaussian("Dose", means=2.0, variances=1.0)
        >>> health = bbn.Gaussian("Health", [dose.variable], means=1.0, variances=4.0, weights=[0.5])
        >>> net = bbn.BayesianNetwork([dose, health])
        >>> seen = {"Dose": 1.0, "Health": 4.0}  # one who fared better than the dose explains
        >>> net.counterfactual("Health", seen, do={"Dose": 3.0}).mean
        5.0
        """
        from bbn.causal.effects.counterfactual import counterfactual

        net, limits = cast("BayesianNetwork", self), {"memory_limit": memory_limit, "time_limit": time_limit}
        return counterfactual(net, targets, evidence, do, **limits)

    def information(
        self,
        target: str,
        evidence: Evidence | None = None,
        method: Method = "auto",
        **options: Unpack[EngineOptions],
    ) -> Information:
        """Return the bits that each unobserved variable would tell about `target`: what to ask next.

        Parameters
        ----------
        target : str
            The variable to learn about, a discrete one without evidence of its own.
        evidence : mapping, optional
            What is known already, as in `query`.
        method : str, default "auto"
            The method of inference, as in `query`.
        memory_limit, time_limit, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        Information
            A dict from variable name to mutual information with the target given the evidence, in bits, the most
            telling first; prints as a table with bars.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`; EvidenceError also for a target that is continuous or has evidence.

        See Also
        --------
        explain : What the evidence there is has told.

        Examples
        --------
        >>> import bbn
        >>> bits = bbn.example("asia").information("lung", {"smoke": "yes"})
        >>> [(name, round(value, 3)) for name, value in bits.items()][:2]
        [('either', 0.423), ('xray', 0.306)]
        """
        from bbn.analysis.information import information

        return information(cast("BayesianNetwork", self), target, evidence, method, **options)

    @keywords_checked
    def sensitivity(
        self,
        target: str,
        evidence: Evidence | None = None,
        state: State | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
    ) -> Sensitivity:
        """Return how P(target = state | evidence) depends on each entry of each table.

        Parameters
        ----------
        target : str
            The variable asked for, a discrete and unobserved one.
        evidence : mapping, optional
            Variable name to finding, as in `query`, but for `bbn.Soft`.
        state : optional
            The state whose probability is looked at; by default the most probable one.
        memory_limit, time_limit : optional
            The most bytes and seconds that the work may take, as in `query`.

        Returns
        -------
        Sensitivity
            `derivatives` by variable, `largest(n)` entries, and `plot()`, a tornado chart. An entry changes with the
            others of its row in proportion (proportional co-variation).

        Raises
        ------
        EvidenceError
            The target is unknown, continuous or observed, or evidence is soft.
        ImpossibleEvidenceError
            The evidence, or the state given it, has probability zero.
        BudgetError
            The derivatives would need more memory than allowed, or, TimeLimitError, more time.

        See Also
        --------
        explain : Which findings the answer depends on.

        Examples
        --------
        >>> import bbn
        >>> result = bbn.example("cancer_test").sensitivity("Cancer", {"Test": "positive"}, state="yes")
        >>> [(entry.name, round(entry.derivative, 3)) for entry in result.largest(1)]
        [('P(Cancer=yes)', 20.796)]
        """
        from bbn.analysis.sensitivity import sensitivity

        net, limit = cast("BayesianNetwork", self), memory_limit
        return sensitivity(net, target, evidence, state, limit, time_limit=time_limit)

    def plot(
        self,
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
        memory_limit, time_limit, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
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

        net = cast("BayesianNetwork", self)
        return draw_network(
            net, evidence, beliefs, information, focus, steps, title, method=method, **options
        )

    def explore(
        self,
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
        memory_limit, time_limit, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
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

        net = cast("BayesianNetwork", self)
        return explore(net, host, port, browser, edit, method=method, **options)

    def export_html(self, path: str | os.PathLike[str]) -> None:
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

        export_html(cast("BayesianNetwork", self), path)

    def _repr_svg_(self) -> str:
        return self.plot(beliefs=False).svg
