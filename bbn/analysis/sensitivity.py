"""How an answer depends on each table entry.

With x = P(t, e) and y = P(e), both linear in any one entry θ = P(x_k | u), the answer x/y has the derivative
(x′ − (x/y) y′) / y. The partial derivatives of x and y in all entries come from one backward pass each (Darwiche 2003;
the same pass that gives EM its expected counts). An entry cannot change alone: the others of its row shrink or grow in
proportion (proportional co-variation; Laskey 1995), and that is the derivative given here. Because x and y are linear
in θ, the answer for any other value of θ follows without further inference. The entries of a NoisyMax are the rows of
its links and its leak; a Deterministic has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bbn.core.budget import Ledger
from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError, ImpossibleEvidenceError
from bbn.core.frozen import Array, Frozen
from bbn.core.threads import limited
from bbn.data import Block
from bbn.inference.gaussian.hybrid import as_discrete
from bbn.inference.rows.expected_counts import EntryGradient, entries, entry_names
from bbn.model.cpt import CPT
from bbn.model.evidence import Evidence, Findings, check_evidence
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Continuous, State, Variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DERIVATIVE_COPIES = 4
"""Arrays like all tables that are there at once: the derivatives of x and of y, those given, and temporaries."""
ENTRY_BYTES, PARENT_BYTES = 550, 40
"""What an `Entry` takes, and each parent's state in its name."""
INSTEAD = "ask about a smaller part of the network, such as net.subnetwork(names)"
STEP = 0.1
"""A tornado chart moves each entry down by this share of its value, and up by this share of its distance to 1."""


class Entry(NamedTuple):
    """One table entry and what the answer owes to it."""

    name: str
    """The entry in words, such as P(Campfire=yes | Storm=no)."""
    variable: str
    place: tuple[int, ...]
    value: float
    derivative: float
    low: float
    """The answer with the entry lower by a tenth."""
    high: float
    """The answer with the entry higher by a tenth of its distance to 1."""


class Sensitivity(Tabular, Frozen, compared=("target", "state", "probability", "derivatives")):
    """The derivative of P(target = state | evidence) in every table entry.

    Attributes
    ----------
    target, state, probability
        The answer looked at.
    derivatives
        Variable name to an array like its table; of a NoisyMax, like its `rows`.
    """

    __slots__ = ("_entries", "derivatives", "probability", "state", "target")

    target: str
    state: State
    probability: float
    derivatives: dict[str, Array]
    _entries: list[Entry]

    def __init__(
        self,
        target: str,
        state: State,
        probability: float,
        derivatives: dict[str, Array],
        entries: list[Entry],
    ) -> None:
        self._set(
            target=target, state=state, probability=probability, derivatives=derivatives, _entries=entries
        )

    def largest(self, n: int = 10) -> list[Entry]:
        """The entries with the largest derivatives, largest first.

        Parameters
        ----------
        n : int, default 10
            How many.

        Returns
        -------
        list of Entry
            Each with the name of the entry, its value and its derivative.
        """
        return self._entries[:n]

    def __repr__(self) -> str:
        return f"<Sensitivity of P({self.target}={self.state}) = {self.probability:.6g}>"

    def _table(self) -> Table:
        top = self.largest(15)
        most = max((abs(entry.derivative) for entry in top), default=0.0) or 1.0
        rows: list[list[Cell]] = [
            [entry.name, f"{entry.value:.6g}", f"{entry.derivative:+.4g}", Bar(abs(entry.derivative) / most)]
            for entry in top
        ]
        title = f"P({self.target}={self.state}) = {self.probability:.6g}"
        return Table(["entry", "value", "derivative", ""], rows, title)

    def plot(self, n: int = 10, axes: Axes | None = None) -> Axes:
        """A tornado chart: the answer as each of the n most telling entries moves down and up by a tenth.

        Parameters
        ----------
        n : int, default 10
            How many entries.
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default on new ones.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        top = sorted(self._entries[: 5 * n], key=lambda entry: -abs(entry.high - entry.low))[:n]
        if axes is None:
            import matplotlib.pyplot as plt

            longest = max((len(entry.name) for entry in top), default=0)
            size = (4.5 + 0.085 * longest, 1.2 + 0.36 * len(top))
            axes = plt.subplots(figsize=size, layout="constrained")[1]
        for moved, fill, label in (
            ("low", "#d3deea", "a tenth lower"),
            ("high", "#4878a8", "a tenth higher"),
        ):
            lengths = [getattr(entry, moved) - self.probability for entry in top]
            axes.barh(
                range(len(top)), lengths, left=self.probability, color=fill, edgecolor="#4878a8", label=label
            )
        axes.axvline(self.probability, color="#1b1f24", linewidth=0.8)
        axes.set_yticks(range(len(top)), [f"{entry.name} = {entry.value:.3g}" for entry in top])
        axes.invert_yaxis()
        axes.set_xlabel(f"P({self.target}={self.state}), the entry moved as shown")
        axes.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return axes


@limited("or " + INSTEAD)
def sensitivity(
    net: BayesianNetwork,
    target: str,
    evidence: Evidence | None = None,
    state: State | None = None,
    memory_limit: int | float | str | None = None,
    *,
    time_limit: float | None = None,
) -> Sensitivity:
    """See `BayesianNetwork.sensitivity`."""
    variable = net.variable(target)
    if isinstance(variable, Continuous):
        raise EvidenceError(
            f"the target {target!r} is continuous; sensitivity is that of a state's probability"
        )
    names = entry_names(net)
    if net.continuous:
        net, evidence = as_discrete(net, evidence)
    findings = check_evidence(net, evidence)
    if target in findings.hard:
        raise EvidenceError(f"the target {target!r} is observed; its probability cannot change")
    if findings.soft:
        raise EvidenceError("sensitivity takes hard and virtual evidence, not Soft")
    ledger = Ledger(memory_limit)
    size = 8 * sum(net[name].n_entries for name in names)
    ledger.reserve(DERIVATIVE_COPIES * size, "the derivatives in all table entries", INSTEAD)
    posterior = net.query(target, evidence, memory_limit=memory_limit)
    chosen = variable.code(posterior.mode() if state is None else state)
    probability = float(posterior.values[chosen])
    if probability == 0:
        raise ImpossibleEvidenceError(f"P({target}={variable.states[chosen]}) is zero given this evidence")
    whole, hard = _with_sensors(net, findings)
    gradient = EntryGradient(whole, n_jobs=1, ledger=ledger)
    below = _gradient(gradient, hard)
    above = _gradient(gradient, {**hard, target: chosen})
    derivatives: dict[str, Array] = {}
    listed: list[Entry] = []
    for name in names:
        cpt, table = net[name], entries(net, name)
        x, y = probability * _covaried(table, above[name]), _covaried(table, below[name])
        slope = x - probability * y
        derivatives[name] = slope
        telling = np.argwhere(np.abs(slope) > 1e-15)
        room = len(telling) * (ENTRY_BYTES + PARENT_BYTES * len(cpt.parents))
        ledger.reserve(room, f"the list of entries that {target!r} depends on", INSTEAD)
        for index in telling:
            place = tuple(index.tolist())
            value = float(table[place])
            low, high = (
                _moved(probability, float(x[place]), float(y[place]), change)
                for change in (-STEP * value, STEP * (1 - value))
            )
            listed.append(Entry(_entry_name(cpt, place), name, place, value, float(slope[place]), low, high))
    listed.sort(key=lambda entry: -abs(entry.derivative))
    return Sensitivity(target, variable.states[chosen], probability, derivatives, listed)


def _with_sensors(net: BayesianNetwork, findings: Findings) -> tuple[BayesianNetwork, dict[str, int]]:
    """The network with each likelihood as an observed binary child of its variable, and all hard findings."""
    sensors, hard = [], dict(findings.hard)
    for name, weights in findings.likelihood.items():
        share = weights / weights.max()
        sensor = Variable(_unused(net, name), [0, 1])
        sensors.append(CPT(sensor, [net.variable(name)], np.stack([1 - share, share], axis=1)))
        hard[sensor.name] = 1
    return net.with_cpts(sensors), hard


def _unused(net: BayesianNetwork, name: str) -> str:
    candidate = f"finding on {name}"
    while candidate in net:
        candidate += "'"
    return candidate


def _gradient(gradient: EntryGradient, hard: Mapping[str, int]) -> Mapping[str, Array]:
    """∂ ln P(findings) / ∂ entry, every entry taken as free of the others."""
    codes = {name: np.array([code], np.int32) for name, code in hard.items()}
    flat, logs = gradient.expectation.block(gradient.tables, Block(codes, np.ones(1)))
    if logs[0] == -math.inf:
        raise ImpossibleEvidenceError("the evidence has probability zero")
    return gradient.by_name(flat)


def _covaried(table: Array, free: Array) -> Array:
    """The derivative in each entry when the others of its row make room in proportion (equally, from 1)."""
    rest, others = _of_others(table), _of_others(free * table)
    count = max(table.shape[-1] - 1, 1)
    certain = rest == 0
    shared = np.divide(others, rest, out=np.zeros_like(table), where=~certain)
    return np.asarray(free - np.where(certain, _of_others(free) / count, shared))


def _of_others(values: Array) -> Array:
    """For each entry of a row the sum of the others, added up: next to 1 a difference from the total has no digits."""
    before, after = np.zeros_like(values), np.zeros_like(values)
    before[..., 1:] = values[..., :-1].cumsum(axis=-1)
    after[..., :-1] = values[..., :0:-1].cumsum(axis=-1)[..., ::-1]
    return before + after


def _moved(probability: float, x: float, y: float, change: float) -> float:
    """The answer when an entry changes: (x/y + x′ change) / (1 + y′ change), all relative to P(e)."""
    return min(1.0, max(0.0, (probability + x * change) / max(1.0 + y * change, 1e-300)))


def _entry_name(cpt: CPT, place: tuple[int, ...]) -> str:
    if isinstance(cpt, NoisyMax):
        return cpt.row_name(*place)
    setting = (f"{p.name}={p.states[i]}" for p, i in zip(cpt.parents, place, strict=False))
    given = " | " + ", ".join(setting) if cpt.parents else ""
    return f"P({cpt.name}={cpt.variable.states[place[-1]]}{given})"
