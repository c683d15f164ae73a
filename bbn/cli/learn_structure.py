"""The command that learns a structure from data: what `bbn learn` does with the methods that find one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bbn.core.errors import DataError

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork

METHODS = ("k2", "chow-liu", "tan", "hill-climb", "exact", "pc", "structural-em")
"""How a structure is learned."""

# Which of the command's options each method takes, by the name the learner gives them.
_TAKES = {
    "k2": (
        "order",
        "score",
        "max_parents",
        "required",
        "forbidden",
        "seed",
        "restarts",
        "refine",
        "progress",
    ),
    "chow-liu": ("root", "required", "forbidden"),
    "tan": ("target", "root", "required", "forbidden"),
    "hill-climb": (
        *(
            "score",
            "max_parents",
            "required",
            "forbidden",
            "tiers",
            "seed",
            "restarts",
            "max_iter",
            "tabu",
            "progress",
        ),
    ),
    "exact": ("score", "max_parents", "required", "forbidden", "tiers", "progress"),
    "pc": ("alpha", "test", "required", "forbidden", "tiers", "progress"),
    "structural-em": (
        *(
            "score",
            "max_parents",
            "required",
            "forbidden",
            "tiers",
            "seed",
            "restarts",
            "max_iter",
            "progress",
        ),
    ),
}


def learn_structure(options: argparse.Namespace) -> tuple[BayesianNetwork, str]:
    """The network, structure and tables, and what happened in one line."""
    from bbn.learning.learn import learn
    from bbn.learning.tables.priors import parse_prior

    if options.structure is not None:
        raise DataError(
            f"--method {options.method} learns the structure; --structure goes with mle, em and gradient"
        )
    given = _given(options)
    for name in given:
        if name not in _TAKES[options.method] and name != "progress":
            raise DataError(f"--{name.replace('_', '-')} does not go with --method {options.method}")
    if options.method == "tan" and "target" not in given:
        raise DataError("--method tan needs --target, the class variable")
    hidden = dict(_hidden(text) for text in options.hidden)
    result = learn(
        options.data,
        hidden=hidden or None,
        method=options.method,
        prior=parse_prior(options.prior),
        weights=options.weights,
        missing=options.missing,
        **{name: value for name, value in given.items() if name in _TAKES[options.method]},
    )
    net = result.network
    summary = (
        f"{options.method}, {len(net)} variables, {len(net.arcs)} arcs, {net.n_parameters} free parameters"
    )
    score = getattr(result.detail, "graph", {}).get("score")
    if score is not None:
        summary += f", score {score:.9g}"
    if hasattr(result.detail, "objectives"):
        summary += f", {result.detail.reason}, ln P(data) = {result.detail.log_likelihood:.9g}"
    notes = [line for line in result.report.splitlines() if line.startswith("note: ")]
    return net, "\n".join([summary, *notes])


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, read."""
    given: dict[str, Any] = {}
    if options.order is not None:
        given["order"] = "random" if options.order == "random" else _names(options.order)
    if options.tiers is not None:
        given["tiers"] = [_names(tier) for tier in options.tiers.split(";")]
    for name in ("required", "forbidden"):
        if getattr(options, name):
            given[name] = [_arc(text, name) for text in getattr(options, name)]
    for name in (
        "target",
        "root",
        "score",
        "max_parents",
        "alpha",
        "test",
        "tabu",
        "seed",
        "restarts",
        "max_iter",
    ):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    if options.refine:
        given["refine"] = True
    if options.progress is not None:
        given["progress"] = options.progress
    return given


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _arc(text: str, option: str) -> tuple[str, str]:
    parent, arrow, child = text.partition(">")
    if not arrow:
        raise DataError(f"--{option} {text}: expected an arc as 'PARENT>CHILD'")
    return parent.strip(), child.strip()


def _hidden(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, listed = text.partition("=")
    if not listed:
        raise DataError(f"--hidden {text}: expected its states, as in '{name}=a,b'")
    return name, tuple(listed.split(","))
