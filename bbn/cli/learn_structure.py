"""The command that learns a structure from data: what `bbn learn` does with the methods that find one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bbn.core.errors import DataError, nearest

if TYPE_CHECKING:
    from bbn.learning.learn_result import LearnResult

METHODS = ("k2", "chow-liu", "tan", "hill-climb", "ges", "exact", "pc", "structural-em")
"""How a structure is learned."""
AUTO = "auto"
"""Hill climbing or structural EM, by what the data hold; with a target, what predicts it best."""

HILL_CLIMB = (
    *("score", "max_parents", "required", "forbidden", "tiers", "seed", "restarts", "max_iter", "tabu"),
    "progress",
    "time_limit",
)
"""The command's options that hill climbing takes, by the name the learner gives them."""

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
        "time_limit",
    ),
    "chow-liu": ("root", "required", "forbidden", "time_limit"),
    "tan": ("target", "root", "required", "forbidden", "time_limit"),
    "hill-climb": HILL_CLIMB,
    "exact": ("score", "max_parents", "required", "forbidden", "tiers", "progress", "time_limit"),
    "ges": ("score", "max_parents", "progress", "time_limit"),
    "pc": ("alpha", "test", "required", "forbidden", "tiers", "progress", "time_limit"),
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
            "time_limit",
        ),
    ),
}


def learn_structure(options: argparse.Namespace) -> tuple[LearnResult, str]:
    """What was learned, structure and tables, and what happened in one line."""
    from bbn.core.display import counted
    from bbn.learning.learn import learn
    from bbn.learning.tables.prior_text import parse_prior

    if options.structure is not None:
        raise DataError(
            f"--method {options.method} learns the structure; --structure goes with mle, em and gradient"
        )
    given = given_options(options)
    hidden = dict(_hidden(text) for text in options.hidden)
    method = options.method
    taken = (
        _TAKES[method]
        if method != AUTO
        else (*_TAKES["hill-climb" if not hidden else "structural-em"], "target")
    )
    for name in given:
        if name not in taken and name != "progress":
            what = (
                f"--method {method}"
                if method != AUTO
                else "a search that is chosen by the data; --method names one"
            )
            raise DataError(f"--{name.replace('_', '-')} does not go with {what}")
    if method == "tan" and "target" not in given:
        raise DataError("--method tan needs --target, the class variable")
    result = learn(
        options.data,
        hidden=hidden or None,
        method=method,
        numbers=options.numbers,
        kinds=column_kinds(options),
        prior=parse_prior(options.prior),
        weights=options.weights,
        missing=options.missing,
        decimal=options.decimal,
        **{name: value for name, value in given.items() if name in taken},
    )
    net = result.network
    summary = (
        f"{result.method}, {counted(len(net), 'variable')}, {counted(len(net.arcs), 'arc')}, "
        f"{counted(net.n_parameters, 'free parameter')}"
    )
    score = getattr(result.detail, "graph", {}).get("score")
    if score is not None:
        summary += f", score {score:.9g}"
    if getattr(result.detail, "graph", {}).get("interrupted"):
        summary += ", stopped before its end"
    if hasattr(result.detail, "objectives"):
        summary += f", {result.detail.reason}, ln P(data) = {result.detail.log_likelihood:.9g}"
    return result, summary


def column_kinds(options: argparse.Namespace) -> dict[str, str] | None:
    """The kinds that --kinds, --drop and --keep tell."""
    kinds: dict[str, str] = {}
    for text in options.kinds:
        for part in text.split(","):
            name, sign, kind = part.rpartition("=")
            if not sign or not name.strip():
                raise DataError(f"--kinds {part.strip()}: expected COLUMN=KIND, as in 'zip=category'")
            kinds[name.strip()] = kind.strip()
    kinds |= {name: "drop" for text in options.drop for name in _names(text)}
    if options.keep:
        from bbn.data.streams.readers import reader

        there = reader(options.data).names()
        kept = [name for text in options.keep for name in _names(text)]
        for name in kept:
            if name not in there:
                raise DataError(f"--keep {name}: there is no such column{nearest(name, there)}")
        kinds |= {name: "drop" for name in there if name not in kept}
    return kinds or None


def given_options(options: argparse.Namespace) -> dict[str, Any]:
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
        "time_limit",
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
