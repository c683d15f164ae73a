"""Passes: changes of a problem after which the same question has a smaller answer to work out.

A pass is a pure function of a problem's factors. It gives other factors with the same variable numbers and an embedding
that says what each old variable is in terms of the new ones; with that, answers of every kind are lifted back, so a
pass is written once and serves them all: posteriors, joints, the best explanations, marginal MAP.

Two passes come before these, as they look at the shape of the question and at the values observed: barren leaves and
observed variables leave the problem (`problem.relevant`), states that the values rule out leave it
(`domain_filtering`). What stands here looks at the tables that are left then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from bbn.inference.exact.embedding import Embedding
from bbn.inference.exact.problem import Factors, Question
from bbn.inference.exact.variable_merging import merged


class Pass(NamedTuple):
    """A change of the problem."""

    name: str
    """As `explain_plan` prints it."""
    apply: Callable[[Factors, Collection[int]], tuple[Factors, Embedding] | None]
    """Other factors and the embedding into them, for factors and the variables to stay as they are; None: no change."""


PASSES = (Pass("variable merging", merged),)
"""In the order in which they are tried; adding one is a file and a line here."""


class Passed(NamedTuple):
    """What passes made of a problem."""

    factors: Factors
    question: Question
    embedding: Embedding
    names: tuple[str, ...]
    """Those that changed something."""


def passed(model: Factors, question: Question) -> Passed | None:
    """The problem after all passes; None if none changes it. Variables that bring a likelihood stay as they are."""
    found: Passed | None = None
    for own in PASSES:
        step = own.apply(model, question.likelihood)
        if step is not None:
            model, embedding = step
            question = embedding.question(question)
            names: tuple[str, ...] = ()
            if found is not None:
                embedding, names = found.embedding.then(embedding), found.names
            found = Passed(model, question, embedding, (*names, own.name))
    return found
