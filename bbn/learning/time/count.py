"""Dynamic networks from complete sequences: every distinct family is counted over all the steps that have it.

    θ_jk = (N_jk + α_jk) / Σ_k (N_jk + α_jk)

where N adds up over slices: a family has one table in all of them, so a sequence of T steps is T rows of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.learning.gaussian.estimates import (
    GaussianFamily,
    Moments,
    estimate,
    overall,
    pool,
    read_gaussians,
    warn_of,
)
from bbn.learning.gaussian.moments import moments_of
from bbn.learning.tables.fit import network_from_counts
from bbn.learning.tables.priors import Prior, checked_gaussian_prior, checked_prior
from bbn.learning.time.sequence_data import SequenceData, family_steps, row_weights, step_table
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.previous import renamed, split_name
from bbn.model.variable import Continuous, Variable


class PlainNames:
    """A prior that knows the template's families by the names of their variables: "Rain" for "Rain[0]" too."""

    def __init__(self, prior: Prior) -> None:
        self.prior = prior

    def pseudocounts(self, family: tuple[Variable, ...]) -> Array:
        """Those of the family under its plain names; none of a placeholder."""
        if (split_name(family[-1].name)[1] or 0) < 0:
            return np.zeros([v.card for v in family])
        return self.prior.pseudocounts((*family[:-1], renamed(family[-1], split_name(family[-1].name)[0])))

    def check_names(self, names: tuple[str, ...]) -> None:
        """As the prior does."""
        self.prior.check_names(names)


def plain_prior(dyn: DynamicNetwork, prior: Any) -> PlainNames | None:
    """A prior checked against the variables of a dynamic network."""
    names = tuple(name for name in dyn.names if name not in dyn.continuous)
    checked = checked_prior(prior, names)
    return None if checked is None else PlainNames(checked)


def learned(dyn: DynamicNetwork) -> list[str]:
    """The names of the families of the template that are learned: all but placeholders."""
    return [name for name in dyn.template.names if (split_name(name)[1] or 0) >= 0]


def count_sequences(
    dyn: DynamicNetwork,
    data: SequenceData,
    prior: Prior | None = None,
    gaussian_prior: Any = None,
    tied_variance: Any = False,
    fixed_variance: Any = None,
    keep_counts: bool = False,
) -> DynamicNetwork:
    """The dynamic network of the same structure with the tables and Gaussians that complete sequences give."""
    for name in dyn.names:
        if name not in data.observed:
            raise DataError(
                f"the data have no column {name!r}; bbn.fit_em learns with variables that were never observed"
            )
    if data.incomplete:
        raise DataError(
            f"column {data.incomplete[0]!r} has missing values; bbn.fit_em learns from incomplete sequences"
        )
    template, names = dyn.template, learned(dyn)
    told = plain_prior(dyn, prior)
    parents = {name: tuple(p for p in template[name].parents) for name in names}
    discrete = [name for name in names if not isinstance(template.variable(name), Continuous)]
    numeric = {name: template.variable(name) for name in names if name not in discrete}
    checked = checked_gaussian_prior(gaussian_prior, tuple(numeric))
    given = {name: template[name] for name in numeric}
    own_parents = {name: parents[name] for name in numeric}
    families = read_gaussians(own_parents, numeric, given, tied_variance, fixed_variance)
    counts: dict[str, Any] = {name: np.zeros(template[name].table.shape) for name in discrete}
    moments: dict[str, list[Moments]] = {family.name: [] for family in families}
    for part in data.parts():
        _check_static(dyn, part)
        kind = np.minimum(part.position, dyn.n_first)
        weights = row_weights(part)
        for name in names:
            steps = family_steps(dyn, kind, name)
            if len(steps):
                table = step_table(dyn, part, steps, (*parents[name], template.variable(name)), weights)
                if name in counts:
                    counts[name] += table.counts([(*(p.name for p in parents[name]), name)])[0]
                else:
                    family = next(own for own in families if own.name == name)
                    moments[name] += moments_of([family], table)
    estimates = []
    for family in families:
        pooled = pool(moments[family.name]) if moments[family.name] else _nothing(family)
        units = overall(pooled)
        known = None
        if checked is not None:
            known = checked.told(split_name(family.name)[0], units.centre[-1], units.scale[-1] ** 2)
        estimates.append(estimate(family, pooled, units, known))
    warn_of(families, estimates)
    placeholders = [template[name] for name in template.names if name not in names]
    fitted = network_from_counts(
        parents,
        {name: template.variable(name) for name in discrete},
        counts,
        told,
        keep_counts=keep_counts,
        others=[*placeholders, *(f.gaussian(e.numbers) for f, e in zip(families, estimates, strict=True))],
    )
    return dyn.with_template(fitted)


def _nothing(family: GaussianFamily) -> Moments:
    q = len(family.columns)
    return Moments(
        np.zeros(family.n_settings), np.zeros((family.n_settings, q)), np.zeros((family.n_settings, q, q))
    )


def _check_static(dyn: DynamicNetwork, part: Any) -> None:
    """DataError if a static variable changes within a sequence."""
    for name in dyn.static:
        own = part.codes[name] if name in part.codes else part.numbers[name]
        changes = np.flatnonzero(own != np.repeat(own[part.ptr[:-1]], np.diff(part.ptr)))
        if len(changes):
            s = int(np.searchsorted(part.ptr, changes[0], side="right")) - 1
            raise DataError(f"column {name!r} is static, but changes within sequence {part.names[s]!r}")
