"""Approximate: what engines share whose answers are not exact. They say how far off these may be.

A subclass gives `_estimate`, the answer for several groups of targets at once with a report on its error, and may
add to `_warn`, which warns that an answer is poor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.engine import Engine
from bbn.inference.sampling.draws import offsets
from bbn.model.evidence import Evidence, Findings, check_targets
from bbn.results.posterior import Posterior, Posteriors
from bbn.results.sampling_report import SamplingReport


class Estimate(NamedTuple):
    """The answer of a run: the cells of all groups one after the other, ln P(evidence), and the report."""

    values: Array
    log_evidence: float
    report: SamplingReport


class Approximate(Engine):
    """An engine whose answers carry a report on their error."""

    def _query(
        self, targets: str | Sequence[str], evidence: Evidence | None, settings: Mapping[str, Any]
    ) -> Posterior:
        names = check_targets(self.model, targets)
        findings = self._findings(evidence, settings)
        variables = tuple(map(self.model.variable, names))
        self._require_joint(variables, settings)
        free = tuple(name for name in names if name not in findings.hard)
        estimate = self._checked_estimate([free], findings, evidence, settings)
        where = tuple(findings.hard.get(name, slice(None)) for name in names)
        values = _placed(estimate.values, variables, where)
        error = estimate.report.std_error
        report = estimate.report.with_error(None if error is None else _placed(error, variables, where))
        return Posterior(variables, values, estimate.log_evidence, report)

    def _posteriors(self, evidence: Evidence | None, settings: Mapping[str, Any]) -> Posteriors:
        findings = self._findings(evidence, settings)
        free = [v for v in self.model.variables if v.name not in findings.hard]
        estimate = self._checked_estimate([(v.name,) for v in free], findings, evidence, settings)
        ends = offsets([v.card for v in free]).tolist()
        slots = {v.name: (v, ends[i], ends[i + 1]) for i, v in enumerate(free)}
        return Posteriors(slots, estimate.values, estimate.log_evidence, estimate.report)

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        estimate = self._estimate([targets], findings, options)
        return estimate.values.reshape([self.model.variable(n).card for n in targets]), estimate.log_evidence

    def _estimate(
        self, groups: Sequence[tuple[str, ...]], findings: Findings, options: Mapping[str, Any]
    ) -> Estimate:
        """P(group | findings) of each group of targets; ln P(findings) is −inf if no sample agreed with them."""
        raise NotImplementedError

    def _checked_estimate(
        self,
        groups: Sequence[tuple[str, ...]],
        findings: Findings,
        evidence: Evidence | None,
        options: Mapping[str, Any],
    ) -> Estimate:
        estimate = self._estimate(groups, findings, options)
        if estimate.log_evidence == -math.inf:
            raise self._no_answer(findings, evidence, estimate.report, options)
        self._warn(estimate.report, options)
        return estimate

    def _warn(self, report: SamplingReport, options: Mapping[str, Any]) -> None:
        """Warn if an answer is poor."""

    def _no_answer(
        self,
        findings: Findings,
        evidence: Evidence | None,
        report: SamplingReport,
        options: Mapping[str, Any],
    ) -> Exception:
        """The error for findings that came out as impossible."""
        return self._impossible(findings, evidence, options)


def _placed(free: Array, variables: tuple[Any, ...], where: tuple[Any, ...]) -> Array:
    """The cells of the free targets in an array over all targets, zero where they differ from what was observed."""
    whole = np.zeros([v.card for v in variables])
    whole[where] = free.reshape(whole[where].shape)
    return whole
