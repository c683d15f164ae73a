"""Problems: a question about a model as arrays, which passes change and plans are made of.

The product of a problem's factors, with its findings, is what the question is about. A question is a shape: it says
which variables are observed and what is read, not which values were seen, so one plan serves all values of a shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import require_memory
from bbn.kernels.contracts.tape import COLLECTED, QUERY
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.model.cpt import CPT
from bbn.model.evidence import Findings, Model
from bbn.model.network import BayesianNetwork

SMALL_BYTES = 131_072
"""Tables and plans of no more bytes are not worth asking for the limit, unless one is given."""
INSTEAD = "observe more variables, ask for fewer targets, or choose a sampling method"


class Factors(NamedTuple):
    """A model's factors as arrays; variables are numbered in the model's order.

    Factor f has the variables ``scope[scope_ptr[f]:scope_ptr[f + 1]]``, but for those of one state, and the table that
    starts at ``tables[table_ptr[f]]``, in C order. ``heads[f]`` is the variable it is the conditional table of, or -1.
    """

    names: tuple[str, ...]
    number: dict[str, int]
    cards: Ints
    scope_ptr: Ints
    scope: Ints
    table_ptr: Ints
    tables: Floats
    heads: Ints
    most_states: int = 1
    padded: frozenset[int] = frozenset()
    """Variables whose tables have one more slice; the tables are then a plan's own, not the engine's."""


class Question(NamedTuple):
    """The shape of a question; it holds no values."""

    sliced: frozenset[int] = frozenset()
    """Variables whose observed code will pick a slice of each table."""
    likelihood: frozenset[int] = frozenset()
    """Variables that each run brings a likelihood for."""
    masked: bool = False
    """Whether each run may bring a likelihood or a code for any variable that is not sliced."""
    targets: tuple[int, ...] = ()
    """The variables whose joint is read; all in one clique then."""
    goal: int = QUERY
    """QUERY: the joint of the targets; MARGINALS: of each variable; COLLECTED: see `bbn.kernels.contracts.tape`."""
    maximise: bool = False
    """Whether the run takes maxima, not sums."""


class Values(NamedTuple):
    """Findings by number."""

    hard: Pairs
    """Variables and codes."""
    likelihoods: Vectors
    """Variables and a number for each state."""
    log_scale: float
    """ln of what the likelihoods were divided by."""


class Answer(NamedTuple):
    """What a run of a plan reads, in the numbers of the problem that it was asked about."""

    values: Floats
    """The joint of the targets, flat; or the marginals of all variables."""
    log: float
    """ln of the weight of the evidence, -inf if it is impossible; of a maximum, of the best assignment."""
    starts: Ints | None = None
    """Of marginals: where each variable's begins among the values, -1 if it is not there."""
    ranking: Sequence[tuple[Ints, float]] = ()
    """Of a maximum: the codes of all variables, best first, and ln of the ratio to the best."""


IMPOSSIBLE = Answer(np.empty(0), -math.inf)
"""The answer where the evidence cannot occur."""


def flatten(model: Model, limit: int | float | str | None = None, whole: bool = False) -> Factors:
    """The arrays of a model; BudgetError if its tables take more than the limit.

    A NoisyMax or Deterministic is a chain of small tables, with variables in between that the model does not have; with
    `whole` a NoisyMax is its full table.
    """
    directed = isinstance(model, BayesianNetwork)
    if directed:
        cpts: Any = model.conditionals  # type: ignore[attr-defined]
        if set(map(type, cpts)) != {CPT}:
            model = factored(model, certain=whole)  # type: ignore[arg-type]
            cpts = model.conditionals
            directed = all(isinstance(c, CPT) for c in cpts)
    variables = model.variables
    number = {v.name: i for i, v in enumerate(variables)}
    if directed:  # a conditional stands where its variable does
        members = [number[v.name] for cpt in cpts for v in cpt.parents]
        tables = [cpt.table for cpt in cpts]
    else:
        factors = model.factors()
        members = [number[v.name] for factor in factors for v in factor.variables]
        tables = [factor.values for factor in factors]
    size = 8 * sum([table.size for table in tables])
    if size > SMALL_BYTES or limit is not None:
        require_memory(size, "an engine's copy of the model's tables", "use smaller tables", limit)
    cards = [len(v.states) for v in variables]
    packed = kernels.layout.pack_factors(cards, members, tables, directed)
    return Factors(tuple(number), number, *packed, max(cards) if cards else 1)


def factored(model: BayesianNetwork, beyond: float = 0.0, certain: bool = False) -> BayesianNetwork:
    """The network with chains of small tables in place of full ones, see `chained`; itself if there are none."""
    if set(map(type, model.conditionals)) == {CPT}:
        return model
    from bbn.model.expansion import chained

    return chained(model, beyond, certain)


def shape(
    findings: Findings, number: Mapping[str, int], targets: tuple[int, ...] = (), goal: int = QUERY
) -> Question:
    """The question about these targets (all marginals, for the goal MARGINALS) given findings of these names."""
    likelihood = findings.likelihood
    return Question(
        frozenset(map(number.__getitem__, findings.hard)),
        frozenset(map(number.__getitem__, likelihood)) if likelihood else frozenset(),
        False,
        targets,
        goal,
        goal == COLLECTED,
    )


def numbered(findings: Findings, number: Mapping[str, int]) -> Values:
    """The findings by number, likelihoods of extreme size scaled to a maximum of 1."""
    hard = [(number[name], code) for name, code in findings.hard.items()]
    if not findings.likelihood:
        return Values(hard, (), 0.0)
    likelihood, log_scale = [], 0.0
    for name, values in findings.likelihood.items():
        highest = float(values.max())
        if highest > 0 and not 1e-30 < highest < 1e30:
            scaled = values / highest
            if (scaled[values > 0] > 1e-300).all():  # otherwise no scale fits, and wide numbers are used
                values = scaled
                log_scale += math.log(highest)
        likelihood.append((number[name], values))
    return Values(hard, likelihood, log_scale)


def cells_of(model: Factors, variables: Sequence[int]) -> int:
    """The cells of the joint of some variables."""
    return int(np.prod(model.cards[list(variables)], dtype=object)) if variables else 1


def read_targets(model: Factors, question: Question) -> tuple[int, ...]:
    """The targets that are read: the joint is the same without those of one state, but one must be left to be read."""
    targets = question.targets
    if len(targets) > 1:
        targets = tuple(v for v in targets if model.cards[v] > 1) or targets[:1]
    return targets


def pad(model: Factors, padded: frozenset[int]) -> Factors:
    """The model in which each of these variables, alone in its factor, has one more slice there: the sum."""
    if not padded:
        return model
    cards = model.cards.copy()
    cards[list(padded)] += 1
    tables = []
    for f, start in enumerate(model.table_ptr[:-1].tolist()):
        scope = model.scope[model.scope_ptr[f] : model.scope_ptr[f + 1]]
        table = model.tables[start : model.table_ptr[f + 1]]
        for axis, v in enumerate(scope.tolist()):
            if v in padded:
                shape = [*cards[scope[:axis]], *model.cards[scope[axis:]]]
                whole = table.reshape(shape)
                table = np.concatenate([whole, whole.sum(axis=axis, keepdims=True)], axis=axis)
        tables.append(table.reshape(-1))
    return model._replace(
        cards=cards,
        tables=np.concatenate(tables),
        table_ptr=offsets([table.size for table in tables]),
        padded=padded,
        most_states=model.most_states + 1,
    )


class Relevant(NamedTuple):
    """What a question needs of a model: barren leaves dropped, observed variables sliced out."""

    role: Ints
    """Of each variable; see `reduce_scopes`."""
    factors: Ints
    """The factors that count."""
    ptr: Ints
    scope: Ints
    """Their scopes without what is observed, as offsets and members."""


def relevant(model: Factors, question: Question) -> Relevant:
    """The factors that a question needs (Shachter 1986), and their scopes without what is observed."""
    sliced, likelihood, masked, targets, goal, _ = question
    if len(targets) > 1:
        targets = read_targets(model, question)
    return Relevant(
        *kernels.layout.reduce_scopes(
            model.scope_ptr,
            model.scope,
            model.heads,
            len(model.cards),
            sliced,
            likelihood,
            masked,
            targets,
            goal != QUERY,
        )
    )


def offsets(sizes: Sequence[int] | Ints) -> Ints:
    """Where each of some parts begins, and where the last ends."""
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends
