"""Filtering one row at a time: a state that takes evidence and gives the next state, and forgets what it has seen.

Its memory is that of one slice, whatever the number of rows. A batch of rows goes through the kernels at once and
leaves the state that its rows leave one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bbn.core.errors import EvidenceError, ImpossibleEvidenceError
from bbn.core.frozen import Array, Frozen, read_only
from bbn.inference.time.chain import Chain, Patterns, compile_chain
from bbn.inference.time.kalman import Kalman
from bbn.inference.time.marginals import beliefs_of
from bbn.inference.time.numbers import log_densities, numbers_of
from bbn.inference.time.passes import forward
from bbn.inference.time.sequences import Sequences, read_sequences
from bbn.inference.time.slices import Slices, compiled
from bbn.inference.time.whole_sequences import whole_sequences
from bbn.kernels.contracts.chain import FAINT, FAINTEST
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.evidence import Evidence, Findings, check_evidence, observed_numbers
from bbn.model.gaussian import Gaussian
from bbn.model.previous import split_name
from bbn.model.variable import Continuous
from bbn.results.beliefs import Beliefs
from bbn.results.posterior import Posterior

KEPT = 4096
"""Matrices that are kept for rows of evidence that come again."""

Row = Mapping[str, float]


class _Last(NamedTuple):
    """What the beliefs of the last step are read off: the state before it, its likelihood and its evidence."""

    before: Array
    side: Array
    kind: int
    findings: Findings


class FilterState(
    Frozen, compared=("dyn", "step", "log_evidence", "_alpha", "_logs", "_recent", "_read_off", "_numbers")
):
    """P(slice | evidence so far); `update` gives the next one.

    Attributes
    ----------
    dyn
        The dynamic network.
    step
        The number of rows taken.
    log_evidence
        ln P(evidence so far).

    Examples
    --------
    >>> import bbn
    >>> state = bbn.example("umbrella").start()
    >>> for day in ["yes", "yes"]:
    ...     state = state.update({"Umbrella": day})
    >>> state["Rain"].round(4), state.step
    (array([0.8834, 0.1166]), 2)
    """

    __slots__ = (
        "_alpha",
        "_kalman",
        "_last",
        "_logs",
        "_memo",
        "_recent",
        "_slices",
        "dyn",
        "log_evidence",
        "step",
    )

    dyn: DynamicNetwork
    step: int
    log_evidence: float
    _slices: Slices
    _alpha: Array
    _last: _Last | None
    _recent: tuple[Row, ...]
    _kalman: tuple[Kalman, Array, Array] | None
    _logs: Array | None
    """The logarithms of `_alpha`, once a state that is possible is too improbable for a double."""
    _memo: dict[str, Any]

    def __init__(
        self,
        dyn: DynamicNetwork,
        slices: Slices,
        alpha: Array,
        step: int = 0,
        log_evidence: float = 0.0,
        last: _Last | None = None,
        recent: tuple[Row, ...] = (),
        kalman: tuple[Kalman, Array, Array] | None = None,
        logs: Array | None = None,
    ) -> None:
        self._set(
            dyn=dyn,
            step=step,
            log_evidence=log_evidence,
            _slices=slices,
            _alpha=read_only(alpha),
            _last=last,
            _recent=recent,
            _kalman=kalman,
            _logs=logs,
            _memo={},
        )

    @property
    def _read_off(self) -> tuple[Any, ...] | None:
        """What tells the beliefs of the last step from those of other states."""
        last = self._last
        return last and (last.before, last.side, last.kind, last.findings.hard, last.findings.likelihood)

    @property
    def _numbers(self) -> tuple[Array, Array] | None:
        """The mean of the numbers and the root of their covariance."""
        return self._kalman and self._kalman[1:]

    def update(self, row: Evidence | None = None) -> FilterState:
        """The state after one more step.

        Parameters
        ----------
        row
            Variable to finding, as evidence is for a network; None: nothing was observed.

        Raises
        ------
        EvidenceError
            An unknown variable or state.
        ImpossibleEvidenceError
            The row contradicts those before it; this state stays as it is.
        """
        for name in row or ():
            self.dyn.variable(name)
        findings, numbers = check_evidence(self.dyn.template, row), observed_numbers(self.dyn.template, row)
        if findings.soft:
            raise EvidenceError(
                f"Soft evidence on {next(iter(findings.soft))!r} is not possible over time; use bbn.Virtual"
            )
        slices, kind = self._slices, min(self.step, self._slices.kinds - 1)
        for name in findings.likelihood:
            if name in slices.core:
                raise EvidenceError(
                    f"a likelihood on {name!r} needs it in the state from the start: dyn.start(likelihoods=[{name!r}])"
                )
        matrix, log = _matrix(slices, kind, findings.hard)
        likelihood = _likelihood(slices, kind, findings)
        recent = (numbers, *self._recent[: self.dyn.order])
        kalman = self._kalman
        if kalman is not None:
            engine, mean, root = kalman
            given = np.array([numbers.get(name, np.nan) for name in self.dyn.continuous])
            fixed = np.array([name in self.dyn.static for name in engine.names])
            step, density = engine.advance(engine.motion(kind, {}), mean, root, given, fixed)
            kalman, log = (engine, step.mean, step.root), log + density
        elif numbers:
            logs = log_densities(
                numbers_of(slices, kind), self._lately(recent), np.array([len(recent) - 1]), slices.n_states
            )
            peak = float(logs.max())
            likelihood, log = likelihood * np.exp(logs[0] - peak), log + peak
        before = matrix if kind == 0 else self._alpha @ matrix
        now = before * likelihood
        total = float(now.sum())
        in_logs = None
        if self._logs is not None or _faint(matrix, before, likelihood, now):
            in_logs, total = self._in_logs(matrix, likelihood, kind)
            now = np.exp(in_logs) * total
        if not total > 0:
            shown = ", ".join(f"{name}={state}" for name, state in (row or {}).items())
            raise ImpossibleEvidenceError(
                f"step {self.step}: {shown} has probability 0 given the steps before it", dict(row or {})
            )
        last = _Last(self._alpha, likelihood / total, kind, findings)
        logs_so_far = self.log_evidence + math.log(total) + log
        taken = self.step + 1
        return FilterState(self.dyn, slices, now / total, taken, logs_so_far, last, recent, kalman, in_logs)

    def _in_logs(self, matrix: Array, likelihood: Array, kind: int) -> tuple[Array, float]:
        """The logarithms of P(state | evidence) after a step, and what the step is divided by, 0 if impossible."""
        with np.errstate(divide="ignore"):
            steps, findings = np.log(matrix), np.log(likelihood)
            if kind > 0:
                logs = np.log(self._alpha) if self._logs is None else self._logs
                steps = np.logaddexp.reduce(logs[:, None] + steps, axis=0)
        now = steps + findings
        total = float(np.logaddexp.reduce(now))
        return now - (total if total > -math.inf else 0.0), math.exp(total)

    def run(self, rows: Any) -> tuple[FilterState, Beliefs]:
        """The state after a table of steps, and the beliefs of each of them.

        Parameters
        ----------
        rows
            Evidence as `DynamicNetwork.filter` takes it, one sequence.
        """
        sequences = read_sequences(self.dyn, rows)
        if self.dyn.continuous or sequences.several or self._logs is not None:
            return self._one_by_one(sequences)
        chain = compile_chain(self.dyn, sequences, step=self.step, before=self._alpha, slices=self._slices)
        passed = forward(chain, 1)
        if np.isneginf(passed.logs[0]) or not passed.scale[-1] > 0:
            return self._one_by_one(sequences)  # raises and names the step, or goes on in logarithms
        side = chain.likelihood / passed.scale[:, None]
        arrays = beliefs_of(
            chain, np.concatenate([self._alpha[None], passed.alpha]), passed.alpha, side, shifted=True
        )
        hard, soft = {}, {}
        for name, codes in sequences.codes.items():
            if codes[-1] < self.dyn.variable(name).card:
                hard[name] = int(codes[-1])
        for name, own in sequences.likelihoods.items():
            soft[name] = own[-1]
        before = passed.alpha[-2] if len(passed.alpha) > 1 else self._alpha
        last = _Last(before.copy(), side[-1].copy(), int(chain.kind[-1]), Findings(hard, soft, {}))
        logs = self.log_evidence + float(passed.logs[0])
        state = FilterState(
            self.dyn, self._slices, passed.alpha[-1].copy(), self.step + sequences.n_steps, logs, last
        )
        return state, Beliefs(self.dyn.variables, arrays, logs, self.step)

    def _one_by_one(self, sequences: Sequences) -> tuple[FilterState, Beliefs]:
        """The same, row after row."""
        from bbn.model.evidence import Virtual

        state = self
        found: dict[str, list[Array]] = {name: [] for name in self.dyn.names}
        for t in range(sequences.n_steps):
            row: dict[str, Any] = {}
            for name, codes in sequences.codes.items():
                states = self.dyn.states(name)
                if codes[t] < len(states):
                    row[name] = states[codes[t]]
            for name, own in sequences.likelihoods.items():
                if (own[t] != 1).any():
                    row[name] = Virtual(dict(zip(self.dyn.states(name), own[t].tolist(), strict=True)))
            row |= {name: float(own[t]) for name, own in sequences.numbers.items() if not np.isnan(own[t])}
            state = state.update(row)
            for name in found:
                found[name].append(state[name])
        arrays = {name: np.array(own) for name, own in found.items()}
        return state, Beliefs(self.dyn.variables, arrays, state.log_evidence, self.step)

    def __getitem__(self, name: str) -> Array:
        """The belief of a variable in the last step: (states,), or mean and variance of a continuous one."""
        self.dyn.variable(name)
        if self._last is None:
            raise EvidenceError("no step was taken yet; update(row) takes one, update() one without evidence")
        if "beliefs" not in self._memo:
            self._memo["beliefs"] = self._read()
        own: Array = self._memo["beliefs"][name]
        return own

    def query(self, name: str) -> Posterior:
        """The belief of a discrete variable in the last step.

        Parameters
        ----------
        name : str
            A discrete variable.
        """
        variable = self.dyn.variable(name)
        if isinstance(variable, Continuous):
            raise EvidenceError(f"{name!r} is continuous: state[{name!r}] holds its mean and variance")
        return Posterior((variable,), self[name].copy(), self.log_evidence)

    def _read(self) -> dict[str, Array]:
        """The beliefs of the last step, by a chain of it and of the steps whose numbers it needs."""
        assert self._last is not None
        slices, last = self._slices, self._last
        at = max(len(self._recent), 2) - 1
        lately = self._lately(self._recent, at + 1)
        codes = {}
        for name, code in last.findings.hard.items():
            codes[name] = np.full(at + 1, self.dyn.variable(name).card, np.int32)
            codes[name][at] = code
        likelihoods = {name: np.tile(own, (at + 1, 1)) for name, own in last.findings.likelihood.items()}
        kind = np.full(at + 1, -1)
        kind[at] = last.kind
        rows = {
            n: np.array([last.findings.hard[n]], np.int32) for n in slices.core if n in last.findings.hard
        }
        patterns = [
            Patterns({}, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1), 0)
            for _ in range(slices.kinds)
        ]
        log = _matrix(slices, last.kind, last.findings.hard)[1]
        patterns[last.kind] = Patterns(rows, np.array([at]), np.zeros(1, np.int64), np.array([log]), 0)
        empty = np.zeros((at + 1, slices.n_states))
        chain = Chain(
            slices, lately._replace(codes=codes, likelihoods=likelihoods), kind, patterns, empty[:1],
            np.zeros(1, np.int32), np.zeros((1, 1, 1)), np.zeros(at + 1, np.int32), empty, np.zeros(at + 1),
        )  # fmt: skip
        alpha, side = empty.copy(), empty.copy()
        alpha[at - 1], alpha[at], side[at] = last.before, self._alpha, last.side
        found = {
            name: read_only(own[at].copy()) for name, own in beliefs_of(chain, alpha, alpha, side).items()
        }
        if self._kalman is not None:
            engine, mean, root = self._kalman
            for name in self.dyn.continuous:
                i = engine.place[name]
                found[name] = read_only(np.array([mean[i], float(root[i] @ root[i])]))
        return found

    def _lately(self, recent: tuple[Row, ...], rows: int | None = None) -> Sequences:
        """The numbers of the last steps as a sequence."""
        n = len(recent) if rows is None else rows
        numbers = {}
        for name in self.dyn.continuous:
            own = np.full(n, np.nan)
            for back, row in enumerate(recent):
                own[n - 1 - back] = row.get(name, np.nan)
            numbers[name] = own
        return Sequences([0], np.array([0, n], np.int64), {}, numbers, {}, False, (0,))

    def __repr__(self) -> str:
        return (
            f"<FilterState: {self.step} step{'s' * (self.step != 1)}, log evidence {self.log_evidence:.6g}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (
            self._alpha,
            self.step,
            self.log_evidence,
            self._last,
            self._recent,
            self._kalman,
            self._logs,
        )
        return _restored, (self.dyn, tuple(self._slices.widened), *parts)


def _restored(dyn: DynamicNetwork, widened: tuple[str, ...], *parts: Any) -> FilterState:
    return FilterState(dyn, compiled(dyn, widened), *parts)


def start(dyn: DynamicNetwork, likelihoods: Iterable[str] = ()) -> FilterState:
    """See `DynamicNetwork.start`."""
    named = [likelihoods] if isinstance(likelihoods, str) else list(likelihoods)
    for name in named:
        dyn.variable(name)
    slices = compiled(dyn, [name for name in named if name in compiled(dyn).core])
    kalman = None
    passed = any(
        isinstance(p, Continuous) and ((split_name(p.name)[1] or 0) < 0 or p.name in dyn.static)
        for c in dyn.template.conditionals
        for p in c.parents
    )
    discrete = any(isinstance(c, Gaussian) and c.discrete_parents for c in dyn.template.conditionals)
    if passed and not discrete:
        engine = Kalman(dyn)
        kalman = (engine, np.zeros(len(engine.names)), np.zeros((len(engine.names), 0)))
    return FilterState(dyn, slices, np.zeros(slices.n_states), kalman=kalman)


def filter_batches(
    dyn: DynamicNetwork, source: Any, sequence: str | None, limit: Any = None
) -> Iterator[Any]:
    """The beliefs of a source batch by batch: of one long sequence, or of sequences that lie one after the other."""
    if sequence is not None:
        for table in whole_sequences(dyn, source, sequence):
            yield dyn.filter(table, sequence=sequence, memory_limit=limit)
        return
    state = start(dyn)
    from bbn.data.streams.open import read_batches

    for batch in read_batches(source, list(dyn.names))[0]:
        state, beliefs = state.run(batch.data)
        yield beliefs


def _faint(matrix: Array, before: Array, likelihood: Array, now: Array) -> bool:
    """Whether a state that is possible is, or may be by the next step, too improbable for a double."""
    possible = (before > 0) & (likelihood > 0)
    least = float(matrix.min(initial=1.0, where=matrix > 0))
    floor = max(FAINT, FAINTEST / least)
    return bool((now[possible] < floor * now.sum()).any())


def _matrix(slices: Slices, kind: int, hard: Mapping[str, int]) -> tuple[Array, float]:
    """The matrix into a step with this evidence, and the logarithm of what it was divided by."""
    given = tuple((name, hard[name]) for name in slices.core if name in hard)
    kept: dict[Any, tuple[Array, float]] = slices.kept
    found = kept.get((kind, given))
    if found is None:
        rows = {name: np.array([code], np.int32) for name, code in given}
        values, logs = slices.matrices(kind, rows, 1)
        found = values[0], float(logs[0]) if logs[0] > -np.inf else 0.0
        if len(kept) >= KEPT:
            kept.clear()
        kept[kind, given] = found
    return found


def _likelihood(slices: Slices, kind: int, findings: Findings) -> Array:
    """How likely a row of states is in each of the chain's."""
    likelihood = np.ones(slices.n_states)
    for name, code in findings.hard.items():
        if name in slices.of_state:
            likelihood *= slices.of_state[name] == code
        elif name in slices.emissions:
            likelihood *= slices.emissions[name].tables[kind, code]
    for name, own in findings.likelihood.items():
        if name in slices.of_state:
            likelihood *= own[slices.of_state[name]]
        else:
            likelihood *= own @ slices.emissions[name].tables[kind, :-1]
    return likelihood
