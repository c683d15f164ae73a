"""The most probable explanations: by one maximised junction tree, or by a search with bounds, whichever costs less.

A maximum may not be taken through the chain of small tables that a NoisyMax is elsewhere, so the tree needs its full
table, and all its parents in one clique. The search (`noisy_best`) needs neither, but nothing foretells how long it
takes. So a tree that is foreseen to be small answers; beside a larger one the search may spend a multiple of what the
tree would cost, and then the tree answers, if it fits the memory. What the tree cannot answer is searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import BudgetError, TimeLimitError
from bbn.inference.exact.elimination_orders import HOPELESS, greedy
from bbn.inference.exact.problem import (
    INSTEAD,
    Factors,
    Question,
    factored,
    flatten,
    numbered,
    relevant,
    shape,
)
from bbn.inference.exact.query_compiler import Compiler
from bbn.inference.search.noisy_max_search import SINGLE, WORK, NoisyBest, bounded
from bbn.kernels.contracts.tape import COLLECTED
from bbn.model.evidence import Findings, Model
from bbn.model.expansion import noisy, table_cells

LIGHT = 1e6
"""The cells up to which a tree answers at once, its full tables among them: some milliseconds."""
PATIENCE = 5.0
"""The numbers that a search may look at for each cell of the tree."""
KEPT = 512
"""The shapes of question whose cells are known."""

Best = list[tuple[dict[str, int], float]]


class Explanations:
    """Finds the best explanations of a model in which some NoisyMax is a chain of small tables.

    Parameters
    ----------
    model : BayesianNetwork
        What it is asked about.
    compiler : Compiler
        What answers its other questions, through chains.
    """

    def __init__(self, model: Model, compiler: Compiler) -> None:
        self._model = model
        self._compiler = compiler
        self._tables: Compiler | None = None
        self._cells: dict[Question, float] = {}

    def best(self, findings: Findings, k: int, options: Mapping[str, Any]) -> Best:
        """The k best assignments as codes and ln P, best first; fewer where fewer are possible."""
        cells = self._foreseen(findings, options) if bounded(self._model) else 0.0
        if cells <= LIGHT:
            return _either(
                lambda: by_tree(self._model, self._of_tables(), findings, k, options),
                lambda: _by_search(self._model, findings, k, options),
            )
        return _either(
            lambda: _by_search(self._model, findings, k, options, min(WORK, PATIENCE * cells)),
            lambda: by_tree(self._model, self._of_tables(), findings, k, options),
        )

    def _foreseen(self, findings: Findings, options: Mapping[str, Any]) -> float:
        """The cells of the tree of full tables and of these tables, from their scopes alone."""
        net = factored(self._model, certain=True)  # type: ignore[arg-type]
        number = {v.name: i for i, v in enumerate(net.variables)}
        question = shape(findings, number, goal=COLLECTED)
        if question not in self._cells:
            if len(self._cells) >= KEPT:
                self._cells.clear()
            cards = np.array([v.card for v in net.variables], np.int64)
            scopes = [
                [number[v.name] for v in (*c.parents, c.variable) if v.card > 1] for c in net.conditionals
            ]
            bounds = np.cumsum([0, *map(len, scopes)]).astype(np.int64)
            members = np.array([v for scope in scopes for v in scope], np.int64)
            heads = np.arange(len(cards))
            model = Factors((), number, cards, bounds, members, np.empty(0, np.int64), np.empty(0), heads)
            needed = relevant(model, question)
            found = greedy(cards, needed.ptr, needed.scope, options["order"], HOPELESS)
            self._cells[question] = found.cells + sum(map(table_cells, noisy(net)))
        return self._cells[question]

    def _of_tables(self) -> Compiler:
        """What answers by the model with the full tables of NoisyMax."""
        if self._tables is None:
            own = self._compiler
            limit = own.options["memory_limit"]
            size = 16 * sum(map(table_cells, noisy(self._model)))  # type: ignore[arg-type]
            require_memory(int(min(size, 1e300)), "the full tables of noisy maxima", INSTEAD, limit)
            flat = flatten(self._model, limit, whole=True)
            self._tables = Compiler(flat, own.options, own.known, own.factors.tables.nbytes)
        return self._tables


def best_explanations(
    model: Model, compiler: Compiler, findings: Findings, k: int, options: Mapping[str, Any]
) -> Best:
    """The k best assignments of a model without chains, as codes and ln P, best first."""
    return _either(
        lambda: by_tree(model, compiler, findings, k, options),
        lambda: _by_search(model, findings, k, options),
    )


def by_tree(model: Model, compiler: Compiler, findings: Findings, k: int, options: Mapping[str, Any]) -> Best:
    """The k best assignments, by a maximised tree of the compiler's tables."""
    number = compiler.factors.number
    question = shape(findings, number, goal=COLLECTED)
    found = compiler.answer(question, numbered(findings, number), options, k)
    places = [(v.name, number[v.name]) for v in model.variables if v.name not in findings.hard]
    return [
        ({name: int(codes[v]) for name, v in places}, found.log + log_ratio)
        for codes, log_ratio in found.ranking
    ]


def _by_search(
    model: Model, findings: Findings, k: int, options: Mapping[str, Any], work: float = WORK
) -> Best:
    if not bounded(model, SINGLE):
        raise BudgetError("there is no noisy maximum whose bounds could be searched by")
    net = factored(model, certain=True)  # type: ignore[arg-type]
    return [
        ({name: code for name, code in codes.items() if name in model}, log_probability)  # type: ignore[operator]
        for codes, log_probability in NoisyBest(net, findings, options, k, work).best()
    ]


def _either(first: Callable[[], Best], second: Callable[[], Best]) -> Best:
    """What the first way gives, or, where its work is refused, the second; the first refusal if both are."""
    try:
        return first()
    except TimeLimitError:
        raise
    except BudgetError as refusal:
        try:
            return second()
        except TimeLimitError:
            raise
        except BudgetError:
            raise refusal from None
