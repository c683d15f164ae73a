"""Refutation: questions that a sound estimate must survive.

    placebo                 shuffle the treatment among the rows: whatever effect is left is an accident
    random common cause     add a coin to the graph as a cause of both: the estimate must stay where it is
    subset                  drop a fifth of the rows: likewise

Each is done several times. For the placebo the p-value says how often chance alone gives an estimate as far from 0 as
the real one, so it is small if there is an effect. For the other two it says how well the estimate agrees with the new
ones, so it should not be small.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from bbn.causal.effects.effect import effect
from bbn.causal.effects.effect_models import declared_states, numbers_among
from bbn.causal.effects.effect_result import Effect
from bbn.causal.graph.causal_graph import CausalGraph, as_causal_graph
from bbn.core.display import Table, Tabular
from bbn.core.errors import DataError, EvidenceError, OverlapWarning, nearest
from bbn.core.frozen import Array, Frozen, read_only
from bbn.core.keywords import keywords_checked
from bbn.data import CodedTable, code
from bbn.data.columns import read_table
from bbn.learning.evaluation.resample import take
from bbn.learning.tables.priors import Prior
from bbn.model.variable import State, Variable

KINDS = ("placebo", "random common cause", "subset")
SUBSET = 0.8
"""The share of the rows that is kept."""


class Refutation(NamedTuple):
    """One way of questioning an estimate, and the result."""

    kind: str
    estimate: float
    new_estimate: float
    """The mean of the new estimates."""
    spread: float
    """Their standard deviation."""
    p_value: float
    passed: bool
    """Whether the estimate survives."""


class Refutations(Tabular, Frozen):
    """The refutations of an estimate; iterating gives each Refutation."""

    __slots__ = ("draws", "refutations")

    refutations: tuple[Refutation, ...]
    draws: dict[str, Array]

    def __init__(self, refutations: Iterable[Refutation], draws: dict[str, Array]) -> None:
        self._set(refutations=tuple(refutations), draws={k: read_only(v) for k, v in draws.items()})

    def __iter__(self) -> Iterator[Refutation]:
        return iter(self.refutations)

    def __len__(self) -> int:
        return len(self.refutations)

    def __getitem__(self, kind: str) -> Refutation:
        """The refutation of a kind."""
        for one in self.refutations:
            if one.kind == kind:
                return one
        raise EvidenceError(f"no refutation {kind!r}{nearest(kind, [one.kind for one in self.refutations])}")

    @property
    def passed(self) -> bool:
        """Whether the estimate survives all of them."""
        return all(one.passed for one in self.refutations)

    def _table(self) -> Table:
        rows = [
            [
                r.kind,
                f"{r.estimate:.4f}",
                f"{r.new_estimate:.4f}",
                f"{r.spread:.4f}",
                f"{r.p_value:.3g}",
                "yes" if r.passed else "no",
            ]
            for r in self.refutations
        ]
        return Table(["refutation", "estimate", "new estimate", "spread", "p", "passed"], rows)

    def __repr__(self) -> str:
        told = ", ".join(f"{r.kind}: {'passed' if r.passed else 'failed'}" for r in self.refutations)
        return f"<Refutations {told}>"


@keywords_checked
def refute(
    data: Any,
    graph: Any,
    treatment: str,
    outcome: str,
    *,
    kinds: str | Sequence[str] = KINDS,
    n: int = 50,
    alpha: float = 0.05,
    seed: Any = 0,
    latent: str | Iterable[str] = (),
    adjusted: str | Iterable[str] | None = None,
    treated: State | float | None = None,
    control: State | float | None = None,
    event: State | None = None,
    continuous: str | Iterable[str] | None = None,
    prior: Prior | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    missing: Any = (),
) -> Refutations:
    """Question an estimate: shuffle the treatment, add a random common cause, drop rows, and estimate again.

    Parameters
    ----------
    data, graph, treatment, outcome
        As in `effect`.
    kinds
        Which of "placebo", "random common cause" and "subset".
    n
        How often each is done.
    alpha
        The p-value below which the placebo has found a real effect, and the others a broken estimate.
    seed
        The seed of shuffles, coins and subsets.
    latent, adjusted, treated, control, event, continuous, prior, states, missing
        As in `effect`.

    Returns
    -------
    Refutations
        One `Refutation` per kind: the estimate, the new ones' mean and spread, a p-value, and whether it passed.

    Raises
    ------
    EvidenceError
        For an unknown kind or numbers out of range; and whatever `effect` raises.

    See Also
    --------
    effect : The estimate.
    check_independences : Questions the graph instead.

    Examples
    --------
    >>> import bbn
    >>> net = bbn.example("asia")
    >>> found = bbn.refute(net.sample(1000, seed=1), net, "smoke", "bronc", n=20)
    >>> found.passed, abs(found["placebo"].new_estimate) < 0.05
    (True, True)
    """
    chosen = [kinds] if isinstance(kinds, str) else list(kinds)
    for kind in chosen:
        if kind not in KINDS:
            raise EvidenceError(f"unknown refutation {kind!r}{nearest(kind, KINDS)}")
    if n < 2:
        raise EvidenceError(f"n is {n}; expected at least 2")
    causal = as_causal_graph(graph, latent)
    table = _table(data, graph, causal, treatment, continuous, states, missing)
    asked: dict[str, Any] = {"adjusted": adjusted, "prior": prior, "interval": None}
    compared: dict[str, Any] = {"treated": treated, "control": control, "event": event}
    found = effect(table, causal, treatment, outcome, **asked, **compared)
    asked |= _same_question(found)
    rng = np.random.default_rng(seed)
    draws: dict[str, Array] = {}
    for kind in chosen:
        again = (_again(kind, table, causal, treatment, outcome, rng) for _ in range(n))
        new = []
        for rows, other in again:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OverlapWarning)  # told about the estimate itself
                with suppress(DataError):  # a subset without one of the treatments
                    new.append(float(effect(rows, other, treatment, outcome, **asked).average_effect))
        if len(new) < 2:
            raise DataError(f"too few rows have both treatments for {kind!r}: hardly any new data hold both")
        draws[kind] = np.array(new)
    value = float(found.average_effect)
    return Refutations([_judged(kind, value, own, alpha) for kind, own in draws.items()], draws)


def _table(
    data: Any,
    graph: Any,
    causal: CausalGraph,
    treatment: str,
    continuous: str | Iterable[str] | None,
    states: Mapping[str, Sequence[State]] | None,
    missing: Any,
) -> CodedTable:
    """The columns of measured variables that are there, coded once; columns that are absent are not needed."""
    known = {**declared_states(graph), **(states or {})}
    there = [name for name in read_table(data).names if name in causal.observed]
    numbers = numbers_among(data, there, graph, continuous, None, known, missing, treatment)
    return code(
        data,
        names=there,
        states={name: own for name, own in known.items() if name in there and name not in numbers},
        continuous=numbers,
        missing=missing,
        extra="ignore",
    )


def _same_question(found: Effect) -> dict[str, Any]:
    """What was compared, so that resamples compare the same."""
    asked: dict[str, Any] = {"treated": found.treated, "control": found.control}
    return asked | ({} if found.event is None else {"event": found.event})


def _again(
    kind: str, table: CodedTable, graph: CausalGraph, treatment: str, outcome: str, rng: np.random.Generator
) -> tuple[CodedTable, CausalGraph]:
    """The data and the graph for one more estimate."""
    if kind == "subset":
        kept = np.sort(rng.permutation(table.n_rows)[: max(2, round(SUBSET * table.n_rows))])
        return take(table, kept), graph
    variables, codes, numbers = table.variables, dict(table.codes), dict(table.numbers)
    if kind == "placebo":
        columns: dict[str, Any] = numbers if treatment in numbers else codes
        columns[treatment] = rng.permutation(columns[treatment])
        return CodedTable(variables, codes, table.n_rows, None, table.kind, numbers), graph
    coin = "coin"
    while coin in graph:
        coin += "'"
    codes[coin] = rng.integers(0, 2, table.n_rows).astype(np.uint8)
    arcs = [*graph.arcs, (coin, treatment), (coin, outcome)]
    return (
        CodedTable((*variables, Variable(coin, [0, 1])), codes, table.n_rows, None, table.kind, numbers),
        CausalGraph(arcs, graph.confounded, graph.latent, graph.nodes),
    )


def _judged(kind: str, value: float, draws: Array, alpha: float) -> Refutation:
    """Whether an estimate survives."""
    mean, spread = float(draws.mean()), float(draws.std(ddof=1))
    if kind == "placebo":
        as_far = int((np.abs(draws - mean) >= abs(value)).sum())
        # whatever the real estimate is, shuffled treatments must have no effect on average
        passed = abs(mean) <= 3 * spread / math.sqrt(len(draws)) + 1e-12
        return Refutation(kind, value, mean, spread, (1 + as_far) / (1 + len(draws)), passed)
    apart = abs(mean - value)
    p = math.erfc(apart / spread / math.sqrt(2)) if spread > 0 else float(apart <= 1e-12)
    return Refutation(kind, value, mean, spread, p, p > alpha)
