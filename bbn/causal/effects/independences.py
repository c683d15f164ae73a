"""Is the graph right? The independences that it implies, each tested on the data.

Of a graph in which every variable is measured, the pairs that are not adjacent, each given the parents of the later
one, imply all others (Lauritzen et al. 1990). With hidden causes, a pair of measured variables that some set of
measured variables separates is tested given a smallest such set. P-values are corrected for their number (Holm 1979).
Variables with states are tested by G², or where small counts are expected by the moments of the permutation test;
numbers by their partial correlation, a number and a state by the F test of a regression. One pass of counting answers
all tests of states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bbn.causal.effects.effect_models import numbers_among
from bbn.causal.graph.causal_graph import CausalGraph, as_causal_graph
from bbn.causal.graph.graph_parts import Names
from bbn.causal.graph.separators import smallest_separator
from bbn.core.display import Table, Tabular
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array, Frozen
from bbn.core.keywords import keywords_checked
from bbn.data import CodedTable, DataSource, as_source, complete_data, continuous_columns
from bbn.learning.structure.independence import CountTests

if TYPE_CHECKING:
    import pandas as pd


class Independence(NamedTuple):
    """One implied independence and its test."""

    x: str
    y: str
    given: tuple[str, ...]
    test: str
    """"permutation" (of states: G², or the permutation test where small counts are expected), "partial correlation" or
    "regression"."""
    p_value: float
    adjusted_p_value: float
    """Corrected for the number of tests (Holm 1979)."""
    rejected: bool
    """Whether the data contradict it."""

    def __str__(self) -> str:
        given = f" | {', '.join(self.given)}" if self.given else ""
        return f"{self.x} ⫫ {self.y}{given}"


class IndependenceChecks(Tabular, Frozen):
    """The implied independences of a graph, tested, those that the data contradict first.

    Attributes
    ----------
    checks
        One Independence per test.
    skipped
        Pairs that the graph separates, but only by sets for which there is no test, as text.
    alpha
        The level of the tests, all together.
    """

    __slots__ = ("alpha", "checks", "skipped")

    checks: tuple[Independence, ...]
    skipped: tuple[str, ...]
    alpha: float

    def __init__(self, checks: Iterable[Independence], skipped: Iterable[str], alpha: float) -> None:
        self._set(checks=tuple(checks), skipped=tuple(skipped), alpha=alpha)

    @property
    def rejected(self) -> tuple[Independence, ...]:
        """Those that the data contradict."""
        return tuple(one for one in self.checks if one.rejected)

    @property
    def holds(self) -> bool:
        """Whether the data contradict none of them."""
        return not self.rejected

    def __iter__(self) -> Iterator[Independence]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def __bool__(self) -> bool:
        return self.holds

    def to_frame(self) -> pd.DataFrame:
        """One row per test."""
        import pandas as pd

        return pd.DataFrame(self.checks, columns=list(Independence._fields))

    def _table(self) -> Table:
        rows = [
            [
                str(one),
                one.test,
                f"{one.p_value:.4g}",
                f"{one.adjusted_p_value:.4g}",
                "no" if one.rejected else "yes",
            ]
            for one in self.checks
        ]
        told = f"{len(self.rejected)} of {len(self)} rejected at {self.alpha:g}, all tests together"
        if self.skipped:
            told += f"; not tested: {', '.join(self.skipped)}"
        return Table(["independence", "test", "p", "adjusted p", "holds"], rows, note=told)

    def __repr__(self) -> str:
        return f"<IndependenceChecks: {len(self.rejected)} of {len(self)} rejected at {self.alpha:g}>"


@keywords_checked
def check_independences(
    graph: Any,
    data: Any,
    latent: str | Iterable[str] = (),
    *,
    alpha: float = 0.05,
    continuous: str | Iterable[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    states: Any = None,
    missing: Any = (),
) -> IndependenceChecks:
    """Test every independence of a basis that a causal graph implies.

    Parameters
    ----------
    graph
        A `CausalGraph`, a DiGraph, a network or a list of arcs.
    data
        Any table with complete columns for the measured variables.
    latent
        Variables that are not measured, besides those that the graph says are hidden.
    alpha
        The probability of a false alarm, of all tests together.
    continuous
        Columns of numbers; by default as in `effect`.
    kinds
        Column to its kind, as in `bbn.describe`: "number" or "category", where you know better.
    states, missing
        How to read the data, as in `bbn.fit`.

    Returns
    -------
    IndependenceChecks
        `.holds` says whether the data contradict none of them; iterating gives each with its p-value; prints as a
        table.

    Raises
    ------
    DataError
        For a column that is missing or has missing values.
    EvidenceError
        For an `alpha` that is not between 0 and 1.

    See Also
    --------
    pc : Learns a graph from such tests.
    refute : Questions an estimate instead of the graph.

    References
    ----------
    Shipley (2000), A new inferential test for path models based on directed acyclic graphs. Holm (1979), A simple
    sequentially rejective multiple test procedure.

    Examples
    --------
    >>> import bbn
    >>> net = bbn.example("asia")
    >>> rows = net.sample(2000, seed=1)
    >>> bbn.check_independences(net, rows).holds
    True
    >>> wrong = [arc for arc in net.arcs if arc != ("smoke", "bronc")]
    >>> [str(one) for one in bbn.check_independences(wrong, rows).rejected][:1]
    ['smoke ⫫ bronc']
    """
    if not 0 < alpha < 1:
        raise EvidenceError(f"alpha is {alpha!r}; expected a number between 0 and 1")
    full = as_causal_graph(graph, latent)
    measured = full.projected()
    names = list(measured.nodes)
    numeric = numbers_among(data, names, graph, continuous, kinds, states or {}, missing)
    options: dict[str, Any] = {"states": states} if states is not None else {}
    source = as_source(data, names=names, continuous=numeric, missing=missing, extra="ignore", **options)
    source = complete_data(source, names, "column {} has missing values", "drop those rows")
    numbers = frozenset(continuous_columns(source))
    claims, skipped = _basis(measured, numbers)
    found = _tested(claims, source, numbers)
    adjusted = holm(np.array([p for *_, p in found]))
    checks = [
        Independence(x, y, given, test, p, q, q <= alpha)
        for (x, y, given, test, p), q in zip(found, adjusted.tolist(), strict=True)
    ]
    return IndependenceChecks(
        sorted(checks, key=lambda one: (one.adjusted_p_value, one.p_value)), skipped, alpha
    )


Claim = tuple[str, str, tuple[str, ...]]
"""Two variables and what separates them."""


def _basis(graph: CausalGraph, numbers: Names) -> tuple[list[Claim], list[str]]:
    """A basis of the implied independences, and the pairs for which no test exists."""
    claims: list[Claim] = []
    skipped: list[str] = []
    everything = frozenset(graph.nodes)
    for j, y in enumerate(graph.nodes):
        for x in graph.nodes[:j]:
            if x in graph.parents(y) or x in graph.siblings(y):
                continue
            pair = (frozenset([x]), frozenset([y]))
            if not graph.confounded:
                found: Names | None = frozenset(graph.parents(y))
            else:
                found = smallest_separator(graph, *pair, everything - {x, y})
            if found is None:
                continue
            if numbers & found and x not in numbers and y not in numbers:
                found = smallest_separator(graph, *pair, everything - {x, y} - numbers)
                if found is None:
                    skipped.append(f"{x} ⫫ {y}")
                    continue
            claims.append((x, y, tuple(name for name in graph.nodes if name in found)))
    return claims, skipped


def _tested(
    claims: Sequence[Claim], source: DataSource, numbers: Names
) -> list[tuple[str, str, tuple[str, ...], str, float]]:
    """Each claim with the test that fits it, and its p-value."""
    counted = [claim for claim in claims if not numbers & {claim[0], claim[1], *claim[2]}]
    by_counts = dict(zip(counted, CountTests(source, "permutation")(counted).tolist(), strict=True))
    rows = _NumberTests(source) if len(counted) < len(claims) else None
    found = []
    for claim in claims:
        if claim in by_counts:
            found.append((*claim, "permutation", by_counts[claim]))
        else:
            assert rows is not None
            test = "partial correlation" if {claim[0], claim[1]} <= numbers else "regression"
            found.append((*claim, test, rows.p_value(*claim)))
    return found


class _NumberTests:
    """Tests in which a number takes part, by two regressions, with and without the other variable."""

    def __init__(self, source: DataSource) -> None:
        if not isinstance(source, CodedTable):
            raise EvidenceError("tests of numbers look at rows and so need data in memory")
        self.block = source.merged()
        self.cards = {v.name: v.card for v in source.variables}

    def p_value(self, x: str, y: str, given: tuple[str, ...]) -> float:
        """The F test of the regression of a number on the other variable, beside what is given."""
        from scipy.special import fdtrc

        if y not in self.block.numbers:
            x, y = y, x
        without = self._design(given)
        with_x = np.column_stack([without, self._columns(x)])
        target = self.block.numbers[y] - self.block.numbers[y].mean()
        (less, rank), (more, larger) = (self._left(design, target) for design in (without, with_x))
        freedom = len(target) - larger
        if larger == rank or freedom <= 0:
            return 1.0
        if less <= 1e-20 * float(target @ target):
            return 1.0
        statistic = (less - more) / (larger - rank) / max(more / freedom, np.finfo(float).tiny)
        return float(fdtrc(larger - rank, freedom, max(statistic, 0.0)))

    def _design(self, given: tuple[str, ...]) -> Array:
        """A column per cell of the given states, and those of the given numbers in each cell."""
        n = len(next(iter(self.block.numbers.values())))
        cells = np.zeros(n, dtype=np.intp)
        for name in given:
            if name in self.cards:
                cells = cells * self.cards[name] + self.block.codes[name]
        found, cell = np.unique(cells, return_inverse=True)
        dummies = np.eye(len(found))[cell]
        lines = [self._columns(name) * dummies for name in given if name in self.block.numbers]
        return np.column_stack([dummies, *lines])

    def _columns(self, name: str) -> Array:
        """A number in its own units, or a column for each state except the first."""
        if name in self.block.numbers:
            column = self.block.numbers[name]
            return np.asarray((column - column.mean()) / (column.std() or 1.0))[:, None]
        return np.asarray(np.eye(self.cards[name])[self.block.codes[name]][:, 1:])

    def _left(self, design: Array, target: Array) -> tuple[float, int]:
        """The residual sum of squares of a regression, and the rank of its design."""
        slopes, _, rank, _ = np.linalg.lstsq(design, target, rcond=1e-10)
        return float(((target - design @ slopes) ** 2).sum()), int(rank)


def holm(p: Array) -> Array:
    """P-values corrected for their number, step by step (Holm 1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    found = np.empty_like(p)
    found[order] = np.minimum(steps, 1.0)
    return found
