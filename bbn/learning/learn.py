"""Learning in one call: the four problems, structure known or not, data complete or not.

================  ============================================  ============================================
                  complete data                                 missing values or hidden variables
================  ============================================  ============================================
structure known   counting (`fit`)                              EM (`fit_em`)
structure open    hill climbing, then counting                  structural EM (`structural_em`)
================  ============================================  ============================================

(Russell & Norvig, Artificial Intelligence; Friedman 1998 for the last.)
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bbn.core.errors import BBNWarning, DataError, nearest
from bbn.core.frozen import Frozen
from bbn.data import DataSource, as_source
from bbn.data.reading import Reading
from bbn.learning.incomplete.em import fit_em
from bbn.learning.incomplete.gradient import fit_gradient
from bbn.learning.structure.chow_liu import chow_liu, tan
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.k2 import k2
from bbn.learning.structure.pc import pc
from bbn.learning.structure.structural_em import structural_em
from bbn.learning.tables.fit import fit
from bbn.model.equivalence import is_cpdag, to_dag
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State

TABLES: dict[str, Callable[..., Any]] = {"mle": fit, "em": fit_em, "gradient": fit_gradient}
"""Methods for the tables of a known structure."""
STRUCTURES: dict[str, Callable[..., Any]] = {
    "hill-climb": hill_climb,
    "k2": k2,
    "chow-liu": chow_liu,
    "tan": tan,
    "pc": pc,
    "structural-em": structural_em,
}
"""Methods that learn the structure too."""
METHODS = ("auto", *TABLES, *STRUCTURES)


class LearnResult(Frozen, compared=("network", "method")):
    """A learned network and how it came about.

    Attributes
    ----------
    network
        The network, structure and tables.
    method
        The method that was used, as it is named in `method=`.
    report
        What was known, what was chosen and why, and what came out, in a few lines.
    detail
        What the method itself gave: the structure with its score, or the result of the iterations; None for counting.
    """

    __slots__ = ("detail", "method", "network", "report")

    network: BayesianNetwork
    method: str
    report: str
    detail: Any

    def __init__(self, network: BayesianNetwork, method: str, report: str, detail: Any = None) -> None:
        self._set(network=network, method=method, report=report, detail=detail)

    def __repr__(self) -> str:
        return f"<LearnResult: {self.network!r} by {self.method}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<div>{escape(repr(self))}</div><pre>{escape(self.report)}</pre>"


def learn(
    data: Any,
    structure: Any = None,
    hidden: Mapping[str, Sequence[State]] | None = None,
    method: str = "auto",
    *,
    prior: Any = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] = (),
    progress: bool | None = None,
    **options: Any,
) -> LearnResult:
    """Learn a network from data, whatever is known and whatever is missing.

    Parameters
    ----------
    data
        Anything tabular.
    structure
        A DiGraph, a list of arcs or a network, if the structure is known.
    hidden
        Variables that were never observed, with their states.
    method
        "auto" chooses by what is known (see the report); or "mle", "em", "gradient" for the tables of a known
        structure, "hill-climb", "k2", "chow-liu", "tan", "pc", "structural-em" for an unknown one.
    prior
        The prior of the tables; None for maximum likelihood.
    states, weights, missing, unseen
        How to read the data.
    continuous
        Names of nodes of a known structure that are Gaussians, besides those that the structure says are.
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.
    **options
        Go to the method: `order` for k2, `target` for tan, `restarts`, `seed`, `score`, `max_parents`, …

    Returns
    -------
    LearnResult
        With `network` and `report`.

    >>> result = learn({"Rain": ["yes", "no", "no", "yes"] * 9, "Wet": ["yes", "no", "no", "yes"] * 9})
    >>> result.network
    <BayesianNetwork: 2 nodes, 1 arc>
    >>> print(result.report.splitlines()[0])
    structure unknown, data complete: hill-climb, then counting
    """
    if method not in METHODS:
        raise ValueError(
            f"unknown method {method!r}{nearest(method, METHODS)}; the methods are {', '.join(METHODS)}"
        )
    began = time.perf_counter()
    reading = {"states": states, "weights": weights, "missing": missing, "unseen": unseen}
    if continuous:
        reading["continuous"] = continuous
    source, holes = _source(data, structure, hidden, reading)
    chosen = method
    if method == "auto":
        choices = ("mle", "em") if structure is not None else ("hill-climb", "structural-em")
        chosen = choices[bool(holes)]
    if structure is None and chosen in TABLES:
        raise DataError(
            f"method={chosen!r} learns the tables of a known structure, but there is no structure=; "
            f"for an unknown one there are {', '.join(STRUCTURES)}"
        )
    if structure is not None and chosen in STRUCTURES:
        raise DataError(
            f"method={chosen!r} learns the structure, but structure= gives it; give start= to begin with it"
        )
    if continuous and chosen in ("mle", "em"):
        options["continuous"] = continuous
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BBNWarning)
        network, detail = _run(chosen, source, structure, hidden, prior, progress, options)
    lines = [
        f"structure {'unknown' if structure is None else 'known'}, "
        f"data {'incomplete' if holes else 'complete'}: {chosen}"
        + (", then counting" if chosen in STRUCTURES and chosen != "structural-em" else ""),
        _why(chosen, method, holes),
        f"{source.n_rows} rows, {len(network)} variables, {len(network.arcs)} arcs, "
        f"{network.n_parameters} free parameters",
    ]
    score = getattr(detail, "graph", {}).get("score")
    if score is not None:
        lines.append(f"score of the structure: {score:.6f}")
    if hasattr(detail, "log_likelihoods"):
        lines.append(
            f"log-likelihood {detail.log_likelihood:.6f} after {detail.n_iter} steps, {detail.reason}"
        )
    passes = getattr(source, "passes", None)
    if passes is not None:
        lines.append(f"{passes} pass{'es' * (passes != 1)} over the data")
    lines += [f"note: {warning.message}" for warning in caught]
    lines.append(f"{time.perf_counter() - began:.2f} s")
    return LearnResult(network, chosen, "\n".join(lines), detail)


def _source(data: Any, structure: Any, hidden: Any, reading: dict[str, Any]) -> tuple[DataSource, list[str]]:
    """The data as a source, and the variables with holes in them, hidden ones among them."""
    unseen = list(hidden or ())
    if structure is None:
        source = as_source(data, hidden=unseen, **reading)
    else:
        from bbn.learning.structure.structure import observe, read_structure

        shape = read_structure(structure)
        _, source = observe(shape, data, Reading(**reading), hidden)
    return source, [*source.incomplete, *unseen]


def _run(
    chosen: str,
    source: DataSource,
    structure: Any,
    hidden: Any,
    prior: Any,
    progress: bool | None,
    options: Any,
) -> tuple[BayesianNetwork, Any]:
    """The network, and what the method gave on the way."""
    if chosen == "mle":
        return fit(structure, source, prior, progress=progress, **options), None
    if chosen in TABLES:
        result = TABLES[chosen](structure, source, hidden, prior, progress=progress, **options)
        return result.network, result
    if chosen == "structural-em":
        result = structural_em(source, hidden, progress=progress, **options)
        return result.network, result
    if hidden:
        raise DataError(f"method={chosen!r} knows no hidden variables; 'structural-em' does")
    if chosen not in ("chow-liu", "tan"):
        options = {"progress": progress, **options}
    graph = STRUCTURES[chosen](source, **options)
    return fit(to_dag(graph) if is_cpdag(graph) else graph, source, prior), graph


def _why(chosen: str, method: str, holes: list[str]) -> str:
    """Why this method."""
    if method != "auto":
        return f"method={method!r} was asked for"
    shown = ", ".join(map(repr, holes[:4])) + (", …" if len(holes) > 4 else "")
    return {
        "mle": "the structure is given and every value is there, so counting is all there is to do",
        "em": f"the structure is given, but values are missing in {shown}, so EM fills them in by expectation",
        "hill-climb": "nothing is given but complete data, so arcs are added, deleted and reversed by their bdeu score",
        "structural-em": f"no structure is given and values are missing in {shown}, so search and EM alternate",
    }[chosen]
