"""UAI, the format of the inference competitions: numbers only, variables known by their position.

`BAYES` gives a network (the last variable of each scope is the child), `MARKOV` a factor graph. Variables are named
by their numbers, "0", "1", …, and their states are the integers from 0. In a table the last variable of the scope
varies fastest. Two writers of networks differ, and their files are read as they mean them: with pgmpy the first
varies fastest (told by the rows, which sum to 1 only that way), with aGrUM the child and then the first parent (told
by the names that it puts in comments). Both read all files in their own order, ours too; no order of the parents
makes a table of several mean the same in two orders, and what is written is that of the competitions. Names and
states are lost on writing, with a warning, unless they are of that kind.

Reference: the UAI 2008 to 2022 inference competitions, "model file format" and "evidence file format".
"""

from __future__ import annotations

import os
import re
from functools import cached_property, partial
from math import inf, prod
from typing import NoReturn

import numpy as np

from bbn.core.budget import MAX_AXES
from bbn.core.errors import BudgetError, LossyFormatWarning, ModelError, warn_user
from bbn.core.keywords import keywords_checked
from bbn.io.build import RawNode, build
from bbn.io.formats.block_syntax import shortened
from bbn.io.number_tables import BadNumberError, NumberParser, row_texts, tables
from bbn.io.row_sums import TOLERATED
from bbn.io.source_text import Source
from bbn.model.factor import Factor
from bbn.model.factor_graph import FactorGraph
from bbn.model.network import BayesianNetwork
from bbn.model.table_input import sums_of
from bbn.model.variable import Variable

_COMMENT = re.compile(r"#[^\n]*")
_AGRUM = re.compile(r"^[0-9 ]+   # \S", re.MULTILINE)
_WORD = re.compile(r"\S+")
_STATES_BYTES = (
    300  # the memory of a state: an integer, its entry in a dictionary, and in others while it is checked
)
_SHARED_BYTES = 10  # that of a state of another variable with the same states, and of its entry in a factor


def read(source: Source, strict: bool = False) -> BayesianNetwork | FactorGraph:
    """The network (BAYES) or factor graph (MARKOV) that a UAI file describes."""
    words = _Tokens(source)
    kind = words.word("'BAYES' or 'MARKOV'")
    if kind not in ("BAYES", "MARKOV"):
        words.fail("expected 'BAYES' or 'MARKOV'", kind)
    cards = [words.integer("a number of states", 1) for _ in range(words.count("the number of variables"))]
    scopes = []
    for _ in range(words.count("the number of tables")):
        length = words.integer("the number of variables of a table", 0, MAX_AXES)
        scope = [words.integer("a variable's number", 0, len(cards) - 1) for _ in range(length)]
        if len(set(scope)) != len(scope) or (kind == "BAYES" and not scope):
            words.fail(f"expected {'at least one variable, ' * (not scope)}no variable twice", str(scope))
        scopes.append(scope)
    numbers = NumberParser(0.0 if kind == "MARKOV" else -inf)
    values, places = [], []
    for scope in scopes:
        places.append(words.place)
        size = words.integer("the number of entries", 0)
        if size != prod(cards[i] for i in scope):
            words.fail(f"expected {prod(cards[i] for i in scope)} entries for the scope {scope}", str(size))
        values.append(words.floats(size, numbers))
    words.end()
    if kind == "MARKOV":
        return _factor_graph(source, cards, scopes, values)
    values = _in_order(
        values, [[cards[i] for i in scope] for scope in scopes], bool(_AGRUM.search(source.text))
    )
    nodes = []
    children: set[int] = set()
    for scope, table, place in zip(scopes, values, places, strict=True):
        *parents, child = scope
        if child in children:
            source.fail(
                f"variable {child} is the child, the last of the scope, of two tables", words.where(place)
            )
        children.add(child)
        where = partial(_place_of_table, words, place)
        nodes.append(RawNode(str(child), range(cards[child]), [*map(str, parents)], table, None, where))
    missing = set(range(len(cards))) - children
    if missing:
        raise source.error(f"variable {min(missing)} is the child, the last of the scope, of no table")
    return build(source, nodes, "", None, strict)


def _in_order(tables: list[list[float]], shapes: list[list[int]], agrum: bool) -> list[list[float]]:
    """The tables of a network with the last axis fastest, whoever wrote them."""
    if agrum:
        axes = [[*range(len(shape) - 2, -1, -1), len(shape) - 1] for shape in shapes]
        return _transposed(
            tables, [[shape[a] for a in order] for shape, order in zip(shapes, axes, strict=True)], axes
        )
    if not all(map(_is_conditional, tables, shapes)):
        axes = [list(range(len(shape) - 1, -1, -1)) for shape in shapes]
        reversed_tables = _transposed(tables, [shape[::-1] for shape in shapes], axes)
        if all(map(_is_conditional, reversed_tables, shapes)):
            return reversed_tables
    return tables


def _transposed(
    tables: list[list[float]], shapes: list[list[int]], axes: list[list[int]]
) -> list[list[float]]:
    return [
        np.array(table).reshape(shape).transpose(order).ravel().tolist()
        for table, shape, order in zip(tables, shapes, axes, strict=True)
    ]


def _is_conditional(values: list[float], shape: list[int]) -> bool:
    """Whether the rows along the last axis are distributions, as nearly as a reader asks."""
    sums = sums_of(np.array(values).reshape(-1, shape[-1]))
    return bool((abs(sums - 1.0) <= TOLERATED).all())


def _place_of_table(words: _Tokens, place: int, _row: int) -> int:
    return words.where(place)


def _factor_graph(
    source: Source, cards: list[int], scopes: list[list[int]], values: list[list[float]]
) -> FactorGraph:
    """The factors in the file's order; a variable that no factor names gets a factor of ones."""
    free = sorted(set(range(len(cards))) - {i for scope in scopes for i in scope})
    if any(cards[i] > 10**6 for i in free):
        raise source.error("a variable of more than a million states is in no table")
    unlisted = {cards[i] for i in free}
    source.reserve(
        _STATES_BYTES * sum(unlisted) + _SHARED_BYTES * sum(cards[i] for i in free),
        f"the {len(free)} variables that are in no table",
    )
    states = {card: tuple(range(card)) for card in set(cards)}
    try:
        variables = [Variable(str(i), states[card]) for i, card in enumerate(cards)]
        factors = [
            Factor([variables[i] for i in scope], np.array(table).reshape([cards[i] for i in scope]))
            for scope, table in zip(scopes, values, strict=True)
        ]
        factors += [Factor([variables[i]], np.ones(cards[i])) for i in free]
        return FactorGraph(factors, variables=variables)
    except (ModelError, BudgetError) as error:
        raise source.error(str(error)) from None


@keywords_checked
def load_evidence(path: str | os.PathLike[str]) -> dict[str, int]:
    """Read a UAI evidence file (.evid): the observed variables and their states.

    The keys are the names that reading a UAI model gives its variables, so the result is evidence for its queries.
    A file may start with the number of samples, which must then be 1.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    dict
        Variable name to the code of its state.

    Raises
    ------
    ParseError
        The content is not evidence.
    OSError
        The file cannot be opened.

    See Also
    --------
    load : Read the model.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.uai.evid")
    ...     _ = path.write_text("2 0 1 3 0")
    ...     load_evidence(path)
    {'0': 1, '3': 0}
    """
    words = _Tokens(Source.open(path))
    if len(words.words) % 2 == 0 and words.words:
        samples = words.integer("the number of samples", 0)
        if samples != 1:
            words.fail("expected one sample", str(samples))
    evidence: dict[str, int] = {}
    for _ in range(words.count("the number of observed variables")):
        name = str(words.integer("a variable's number", 0))
        if name in evidence:
            words.fail("expected no variable twice", name)
        evidence[name] = words.integer("a state", 0)
    words.end()
    return evidence


class _Tokens:
    """The words of a file, taken one after another; an error points at the one taken last."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = _COMMENT.sub(lambda match: " " * len(match[0]), source.text)
        self.words = self.text.split()
        self.place = 0

    def word(self, what: str) -> str:
        if self.place == len(self.words):
            self.source.fail(f"expected {what}, found the end", len(self.text))
        self.place += 1
        return self.words[self.place - 1]

    def integer(self, what: str, low: int, high: int = 10**9) -> int:
        word = self.word(what)
        if not (word.isdecimal() and word.isascii() and len(word) < 11 and low <= int(word) <= high):
            limits = f"from {low} to {high}" if high < 10**9 else f"of at least {low}"
            self.fail(f"expected {what}, an integer {limits}", word)
        return int(word)

    def count(self, what: str) -> int:
        """How many items follow, at least a word each."""
        return self.integer(what, 0, max(len(self.words) - self.place, 0))

    def floats(self, count: int, numbers: NumberParser) -> list[float]:
        words = self.words[self.place : self.place + count]
        if len(words) < count:
            self.source.fail(f"expected {count} entries, found {len(words)} and the end", len(self.text))
        try:
            values = numbers.floats(words)
        except BadNumberError as error:
            self.place += words.index(error.word) + 1
            what = "a finite number" if numbers.least < 0 else "a number of at least 0"
            self.fail(f"expected {what}", error.word)
        self.place += count
        return values

    def end(self) -> None:
        if self.place < len(self.words):
            self.fail("expected the end", self.word("the end"))

    def fail(self, message: str, found: str) -> NoReturn:
        self.source.fail(f"{message}, found {shortened(found)}", self.where(self.place - 1))

    def where(self, place: int) -> int:
        """The offset of the word of this number."""
        return self._starts[place]

    @cached_property
    def _starts(self) -> list[int]:
        return [match.start() for match in _WORD.finditer(self.text)]


def write(model: BayesianNetwork | FactorGraph) -> str:
    """The network as BAYES, or the factor graph as MARKOV; a warning if names or states are lost."""
    if isinstance(model, FactorGraph):
        kind, factors = "MARKOV", model.factors()
    else:
        kind, factors = "BAYES", [cpt.factor() for cpt in tables(model)]
    by_number = {str(i): i for i in range(len(model.names))}
    kept = set(model.names) == set(by_number)
    numbers = by_number if kept else {name: i for i, name in enumerate(model.names)}
    ordered = sorted(model.variables, key=lambda variable: numbers[variable.name])
    if not kept or any(variable.states != tuple(range(variable.card)) for variable in ordered):
        warn_user(
            "UAI cannot hold names and states; written are their numbers, in the order of the model's variables",
            LossyFormatWarning,
        )
    lines = [kind, str(len(ordered)), " ".join(str(variable.card) for variable in ordered), str(len(factors))]
    lines += [" ".join(map(str, [len(f.names), *(numbers[name] for name in f.names)])) for f in factors]
    for factor in factors:
        rows = row_texts(factor.values, " ") if factor.names else [repr(factor.values.item())]
        lines += ["", str(factor.values.size), *rows]
    return "\n".join(lines) + "\n"
