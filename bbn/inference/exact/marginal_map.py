"""Marginal MAP: the best states of some variables, the others summed out, by whichever plan costs least.

States that cannot occur and variables that fix each other leave the problem first: a variable that stands for one that
is decided is decided. What is left goes by the joint of the targets, read from a junction tree, or by elimination in a
constrained order, sums before maxima (Koller and Friedman 2009, section 13.2.3), which need not hold all targets in one
table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bbn.core.budget import memory_limit
from bbn.core.errors import BudgetError
from bbn.inference.exact.elimination import best_of, plan_buckets
from bbn.inference.exact.elimination_orders import PORTFOLIO
from bbn.inference.exact.embedding import Embedding
from bbn.inference.exact.executor import open_plan
from bbn.inference.exact.passes import passed
from bbn.inference.exact.prices import BUCKET_CELL
from bbn.inference.exact.problem import INSTEAD, Factors, Question, Values, cells_of, relevant
from bbn.inference.exact.query_compiler import Compiler
from bbn.inference.exact.tree_plan import plan_tree
from bbn.inference.log_factor import LogFactor
from bbn.kernels.contracts.types import Ints
from bbn.model.variable import Variable

JOINT_CELLS = 1_000_000
"""The most joint states of the targets that are read from a tree."""


def marginal_map(
    compiler: Compiler, question: Question, values: Values, options: Mapping[str, Any]
) -> tuple[Ints, float]:
    """The codes of the targets, in their order, and ln of their weight with the evidence; -inf if it is impossible.

    Parameters
    ----------
    compiler
        That of the model.
    question, values
        The shape of the sum, its targets being what is decided, and the findings.
    options
        memory_limit and order.
    """
    whole, asked = compiler.factors, question
    model, embedding = whole, None
    needed = relevant(whole, question).factors
    filters = compiler.filters()
    if filters is not None:
        domain = filters.domain(values)
        if domain is None:
            return np.empty(0, np.int64), -math.inf
        model, embedding = filters.filtered(domain, needed)
        values = embedding.values(values)
        found = passed(model, question)
        if found is not None:
            model, embedding = found.factors, embedding.then(found.embedding)
        question = embedding.question(question)
        needed = np.arange(len(model.heads))
    codes, log = _by_the_cheaper(compiler, model, needed, question, values, options)
    if log == -math.inf:
        return np.empty(0, np.int64), log
    return _lifted(codes, question, asked, embedding), log


def _lifted(codes: Ints, question: Question, asked: Question, embedding: Embedding | None) -> Ints:
    """The codes of the targets that were asked for, from those of the variables that stand for them."""
    if embedding is None:
        return codes
    every = np.zeros(len(embedding.new), np.int64)
    every[list(question.targets)] = codes
    return embedding.assignment(every)[list(asked.targets)]


def _by_the_cheaper(
    compiler: Compiler,
    model: Factors,
    needed: Ints,
    question: Question,
    values: Values,
    options: Mapping[str, Any],
) -> tuple[Ints, float]:
    """The best codes of the targets, by a tree of their joint or in a constrained order."""
    limit, rule = options["memory_limit"], options["order"]
    beside = compiler.beside + compiler.factors.tables.nbytes
    tree = None
    if cells_of(model, question.targets) <= JOINT_CELLS:
        tree = plan_tree(model, question, rule, once=True, limit=limit)
        if tree.bytes + beside > memory_limit(limit):
            tree = None
    variables = [
        Variable(name, range(card)) for name, card in zip(model.names, model.cards.tolist(), strict=True)
    ]
    scopes = _scopes(model, needed, question, variables)
    targets = [variables[v] for v in question.targets]
    buckets, refusal = None, None
    for name in PORTFOLIO if rule == "auto" else (rule,):
        try:
            found = plan_buckets(list(scopes), targets, name, options, beside)
        except BudgetError as error:
            refusal = refusal or error
        else:
            buckets = found if buckets is None or found.cells < buckets.cells else buckets
    if tree is not None and (buckets is None or tree.seconds <= BUCKET_CELL * buckets.cells):
        values_read, log = open_plan(tree, limit, compiler.known.room, beside).run(
            values.hard, values.likelihoods
        )
        if log == -math.inf:
            return np.empty(0, np.int64), log
        best = int(values_read.argmax())
        shape = model.cards[list(question.targets)]
        return np.array(np.unravel_index(best, shape)), log + math.log(values_read[best]) + values.log_scale
    if buckets is None:
        raise refusal or BudgetError(INSTEAD)
    with compiler.known.turn(buckets.bytes, memory_limit(limit) - beside):
        codes, log = best_of(buckets, lambda: _log_factors(model, needed, values, variables))
    return np.array([codes.get(v.name, 0) for v in targets], np.int64), log + values.log_scale


def _scopes(
    model: Factors, needed: Ints, question: Question, variables: list[Variable]
) -> list[dict[str, int]]:
    """The scopes of the factors that are needed, without what is observed, and of the likelihoods."""
    free = [[v for v in _members(model, f) if v not in question.sliced] for f in needed.tolist()]
    free += [[v] for v in question.likelihood]
    return [{variables[v].name: variables[v].card for v in own} for own in free]


def _log_factors(model: Factors, needed: Ints, values: Values, variables: list[Variable]) -> list[LogFactor]:
    """The factors that are needed, sliced at what is observed, and the likelihoods, as logarithms."""
    seen = dict(values.hard)
    found = []
    with np.errstate(divide="ignore"):
        for f in needed.tolist():
            members = _members(model, f)
            table = model.tables[model.table_ptr[f] : model.table_ptr[f + 1]]
            table = table.reshape([variables[v].card for v in members])
            table = table[tuple(seen.get(v, slice(None)) for v in members)]
            found.append(
                LogFactor.trusted(tuple(variables[v] for v in members if v not in seen), np.log(table))
            )
        found += [LogFactor.trusted((variables[v],), np.log(weights)) for v, weights in values.likelihoods]
    return found


def _members(model: Factors, f: int) -> list[int]:
    return model.scope[model.scope_ptr[f] : model.scope_ptr[f + 1]].tolist()  # type: ignore[no-any-return]
