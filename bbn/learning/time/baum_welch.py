"""EM over sequences (Baum, Petrie, Soules and Weiss 1970): expected counts from the passes over the chain.

    E: N_jk = Σ_t P(x[t] = k, parents = j | sequence)        M: as everywhere, θ_jk = (N_jk + α_jk) / Σ_k (N_jk + α_jk)

The forward and backward passes give P(state of t | sequence) and the gradient of ln P in every matrix of the chain.
The first gives the counts of emissions and the moments of Gaussians; the second goes through the junction tree of a
slice, once for each distinct row of evidence, and gives those of everything else. A family has one table in all
slices, so it is tied by construction. A step costs T S² for S joint states of the interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bbn import kernels
from bbn.core.errors import DataError, ImpossibleEvidenceError, nearest
from bbn.core.frozen import Array
from bbn.data import Block
from bbn.inference.rows.expected_counts import Expected, by_name, tabled
from bbn.inference.time.chain import Chain, compile_chain, recompiled
from bbn.inference.time.passes import backward, forward
from bbn.inference.time.slices import Slices, compiled
from bbn.kernels.contracts.types import Int32s, Ints
from bbn.learning.gaussian.estimates import GaussianParameters, read_gaussians
from bbn.learning.gaussian.m_step import GaussianFamilies
from bbn.learning.incomplete.problem import Problem
from bbn.learning.tables.priors import Prior, checked_gaussian_prior
from bbn.learning.time.count import learned, plain_prior
from bbn.learning.time.sequence_data import SequenceData, family_column, family_steps, row_weights
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.previous import split_name


class SequenceProblem(Problem):
    """Sequences, a dynamic network and a prior, ready to be climbed; the tables are those of the network's template.

    Parameters
    ----------
    dyn
        The structure, and the starting point.
    data
        The sequences.
    hidden
        Names of variables that nobody has seen; they have no column.
    prior
        Of the tables.
    fixed
        Names of variables whose tables and Gaussians stay as they are.
    n_jobs
        Threads.
    gaussian_options
        prior, tied_variance and fixed_variance of the Gaussians.
    given
        Whether the tables are the starting point; else they are blank, and starts are drawn at random.
    """

    def __init__(
        self,
        dyn: DynamicNetwork,
        data: SequenceData,
        hidden: Any = None,
        prior: Prior | None = None,
        fixed: Iterable[str] = (),
        n_jobs: int | None = None,
        gaussian_options: Mapping[str, Any] | None = None,
        given: bool = True,
    ) -> None:
        self.dyn, self.source, self.given = dyn, data, True  # placeholders keep their tables
        self.start = dyn.template
        _check_hidden(dyn, data, hidden)
        kept = [fixed] if isinstance(fixed, str) else list(fixed)
        if kept and not given:
            raise DataError(
                "fixed= keeps tables of a network as they are; the structure is a graph, without tables"
            )
        stay = self._names_of(kept)
        self.gaussians = self._numbers(data, stay, **(gaussian_options or {})) if dyn.continuous else None
        self.names = tabled(self.start)
        sizes = [self.start[n].table.size for n in self.names]
        told = plain_prior(dyn, prior)
        self.alpha = np.zeros(sum(sizes))
        if told is not None:
            self.alpha = np.concatenate(
                [
                    told.pseudocounts((*self.start[n].parents, self.start[n].variable)).ravel()
                    for n in self.names
                ]
            )
        self.expectation = SequenceExpectation(dyn, self.gaussians, self.names, sizes, n_jobs)  # type: ignore[assignment]
        self._rows()
        self.free = self._free_entries(stay)
        self.groups = []
        self.n_passes = 0
        self._seeds = None
        self.given = given

    def _names_of(self, fixed: list[str]) -> list[str]:
        """The families of the template that stay as they are: placeholders, and those of fixed variables."""
        for name in fixed:
            if name not in self.dyn:
                raise DataError(
                    f"fixed= names {name!r}, which is not a variable{nearest(name, self.dyn.names)}"
                )
        free = set(learned(self.dyn))
        return [n for n in self.start.names if n not in free or split_name(n)[0] in fixed]

    def _numbers(
        self,
        data: SequenceData,
        stay: list[str],
        prior: Any = None,
        tied_variance: Any = False,
        fixed_variance: Any = None,
    ) -> GaussianFamilies:
        """The continuous families of the template."""
        names = self.start.continuous
        checked = checked_gaussian_prior(prior, names)
        given = {name: self.start[name] for name in names}
        parents = {name: tuple(self.start[name].parents) for name in names}
        variables = {name: self.start.variable(name) for name in names}
        families = read_gaussians(parents, variables, given, tied_variance, fixed_variance)
        made = GaussianFamilies(families, data, checked, [n for n in stay if n in names], [])
        seen = data.reduce(_Seen([name for name in names if name in learned(self.dyn)]))
        scales = made.scale[[made.names.index(name) for name in names if name in learned(self.dyn)]]
        made.constant = -float(seen[0] @ np.log(scales))  # placeholders are no numbers of their own
        return made

    def network(self, tables: Array) -> Any:
        """The dynamic network with these tables."""
        return self.dyn.with_template(super().network(tables))


class _Seen:
    """How many numbers, weighted, each of some columns has."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __call__(self, block: Block) -> list[Array]:
        return [np.array([block.weights[~np.isnan(block.numbers[name])].sum() for name in self.names])]


def _check_hidden(dyn: DynamicNetwork, data: SequenceData, hidden: Any) -> None:
    """DataError if what is said to be hidden is not a variable, has other states, or has values."""
    listed = [hidden] if isinstance(hidden, str) else (hidden or ())
    for name in listed:
        if name not in dyn:
            raise DataError(f"hidden= names {name!r}, which is not a variable{nearest(name, dyn.names)}")
        if (
            isinstance(hidden, Mapping)
            and hidden[name] is not None
            and tuple(hidden[name]) != dyn.states(name)
        ):
            raise DataError(
                f"hidden= gives {name!r} the states {list(hidden[name])}, but it has {list(dyn.states(name))}"
            )
        if name in data.observed:
            card = dyn.variable(name).card
            if any((part.codes[name] < card).any() for part in data.parts() if name in part.codes):
                raise DataError(f"hidden variable {name!r} has values in the data")


class SequenceExpectation:
    """The expected counts and moments of a dynamic network's families over sequences."""

    def __init__(
        self,
        dyn: DynamicNetwork,
        gaussians: GaussianFamilies | None,
        names: tuple[str, ...],
        sizes: list[int],
        n_jobs: int | None,
    ) -> None:
        self.dyn, self.gaussians, self.names, self.n_jobs = dyn, gaussians, names, n_jobs
        self.table_ptr = np.cumsum([0, *sizes]).astype(np.int64)
        self.slices = compiled(dyn)
        self._chain: Chain | None = None
        self.columns: dict[int, dict[str, Array]] = {}
        """The numbers in standard units, kept where all sequences are one part in memory."""
        self.keep = False

    def __call__(self, flat: Array, data: SequenceData) -> Expected:
        """The gradient, then the moments, and the log-likelihood of all sequences under these parameters."""
        tables = by_name(self.dyn.template, flat[: self.table_ptr[-1]])
        slices = self.slices.with_tables(tables)
        self.keep = data.in_memory
        pass_ = _Pass(self, slices, tables, flat[self.table_ptr[-1] :])
        for part in data.parts():
            if self._chain is None or not data.in_memory:
                self._chain = compile_chain(self.dyn, part._replace(numbers={}), slices=self.slices)
            pass_.add(recompiled(self._chain, slices, pass_.densities(part)), part)
        if pass_.impossible:
            raise ImpossibleEvidenceError(
                f"{pass_.impossible:g} sequences have probability 0 under the starting network; start from tables "
                "without zeros"
            )
        return Expected(np.concatenate([pass_.gradient, pass_.stats]), pass_.total)


class _Pass:
    """What one pass over the data adds up."""

    def __init__(
        self, whole: SequenceExpectation, slices: Slices, tables: Mapping[str, Array], numbers: Array
    ) -> None:
        self.whole, self.slices, self.tables, self.dyn = whole, slices, tables, whole.dyn
        self.gradient = np.zeros(int(whole.table_ptr[-1]))
        self.own = by_name(self.dyn.template, self.gradient)
        self.total = self.impossible = 0.0
        self.families = whole.gaussians
        self.numbers = [] if self.families is None else self.families.numbers(numbers)
        self.stats = np.zeros(0 if self.families is None else self.families.stats_size)

    def add(self, chain: Chain, part: Any) -> None:
        """Add what some sequences say."""
        passed = forward(chain, self.whole.n_jobs)
        weights = np.ones(len(part.names)) if part.weights is None else part.weights
        lost = np.isneginf(passed.logs) & (weights > 0)
        self.impossible += float(weights[lost].sum())
        counted = (weights > 0) & ~lost
        self.total += float(weights[counted] @ passed.logs[counted])
        gamma, _, starts, pairs = backward(
            chain, passed, np.where(counted, weights, 0.0), False, self.whole.n_jobs
        )
        if part.weights is not None:
            gamma *= row_weights(part)[:, None]
        for name in self.slices.emissions:
            self._emission(chain, name, gamma)
        for kind, patterns in enumerate(chain.patterns):
            count = len(patterns.logs)
            sums = starts if kind == 0 else pairs[patterns.begin : patterns.begin + count]
            values = chain.start if kind == 0 else chain.matrices[patterns.begin : patterns.begin + count]
            self._tree(kind, patterns.rows, sums, values)
        if self.families is not None:
            self._moments(chain, part, gamma)

    def _emission(self, chain: Chain, name: str, gamma: Array) -> None:
        """Counts of an emission by state of the chain; a value that is missing counts as it is expected."""
        slices, tables = self.slices, self.slices.emissions[name].tables
        card = tables.shape[1] - 1
        counts = np.zeros((len(tables) * (card + 1), slices.n_states))
        codes: Int32s = chain.sequences.codes.get(name, np.full(len(gamma), card, np.int32))
        kernels.chain.add_rows(codes + (chain.kind * (card + 1)).astype(np.int32), gamma, counts)
        for kind, own in enumerate(counts.reshape(len(tables), card + 1, -1)):
            table = tables[kind, :-1]
            slope = np.divide(own[:-1], table, out=np.zeros_like(table), where=table > 0) + own[-1]
            index = slices.emission_index(name, kind)
            np.add.at(self.own[self.dyn.family(name, kind)], index, slope.T if index else slope.sum(axis=1))

    def _tree(self, kind: int, rows: Mapping[str, Int32s], sums: Array, values: Array) -> None:
        """The gradient in the tables of a slice, from that in its matrices."""
        slices, tree = self.slices, self.slices.trees[kind]
        weights = (sums * values).reshape(len(sums), -1).sum(axis=1)
        if kind > 0:
            passed = np.zeros((len(sums), tree.n_own // slices.n_states, slices.n_states))
            for state, row in enumerate(slices.row_of_state.tolist()):
                passed[:, row] += sums[:, state]
            sums = passed
        used = np.flatnonzero(weights > 0)
        if not len(used):
            return
        own = sums.reshape(len(sums), -1)[used]
        slope = tree.gradient({name: codes[used] for name, codes in rows.items()}, own, weights[used])
        for name in tree.names:
            family = slices.family_of(name, kind) if name in slices.variables else None
            if family is not None:
                place = self.own[family]
                place += slope[tree.entries(name)].reshape(place.shape)

    # Gaussians, in the units of their columns

    def _settings(self, i: int) -> Ints:
        """The setting of a family's discrete parents in each state of the chain."""
        index = np.zeros(self.slices.n_states, np.intp)
        assert self.families is not None
        for parent in self.families.families[i].discrete:
            name, _ = split_name(parent.name)
            home = parent.name if parent.name in self.slices.of_state else name
            index = index * parent.card + self.slices.of_state[home]
        return index

    def _columns(self, part: Any, kind: Ints) -> dict[str, Array]:
        """The columns of all families in standard units, NaN where a step does not have the family."""
        assert self.families is not None
        found = {}
        for i, name in enumerate(self.families.names):
            own = family_column(self.dyn, part, kind, name)
            found[name] = (own - self.families.centre[i]) / self.families.scale[i]
        return found

    def _learned(self) -> list[int]:
        assert self.families is not None
        return [i for i, name in enumerate(self.families.names) if (split_name(name)[1] or 0) >= 0]

    def densities(self, part: Any) -> Array | None:
        """ln p of each step's numbers in each state of the chain, (steps, S)."""
        if self.families is None:
            return None
        kind = np.minimum(part.position, self.dyn.n_first)
        self.z = self.whole.columns.get(id(part)) or self._columns(part, kind)
        if self.whole.keep:
            self.whole.columns = {id(part): self.z}
        alone = [i for i in self._learned() if i not in self.families.linked]
        total = np.zeros((self.slices.n_states, part.n_steps))
        if alone:
            laid = [self._settings(i) for i in alone]
            means = np.array([self.numbers[i].means[own] for i, own in zip(alone, laid, strict=True)])
            variances = np.array([self.numbers[i].variances[own] for i, own in zip(alone, laid, strict=True)])
            z = np.array([self.z[self.families.names[i]] for i in alone])
            kernels.gaussians.add_log_densities(z, means, variances, total)
        logs = np.ascontiguousarray(total.T)
        for i in self._learned():
            if i in self.families.linked:
                steps = family_steps(self.dyn, kind, self.families.names[i])
                logs[steps] += self._linked(i, steps)
        return logs

    def _linked(self, i: int, steps: Ints) -> Array:
        """ln p of a number given those it depends on, which must all be there."""
        assert self.families is not None
        own: GaussianParameters = self.numbers[i]
        family = self.families.families[i]
        child = self.z[family.name][steps]
        given = np.array([self.z[name][steps] for name in self._regressors(i)]).reshape(-1, len(steps)).T
        there = ~np.isnan(child)
        if np.isnan(given[there]).any():
            raise DataError(
                f"{family.name!r} depends on numbers that are missing in some steps; EM over sequences needs "
                "those complete"
            )
        mean = own.means + np.where(there[:, None], given, 0.0) @ own.weights.T
        logs = -0.5 * (
            (np.where(there, child, 0.0)[:, None] - mean) ** 2 / own.variances
            + np.log(2 * np.pi * own.variances)
        )
        return np.asarray(np.where(there[:, None], logs, 0.0)[:, self._settings(i)])

    def _regressors(self, i: int) -> list[str]:
        assert self.families is not None
        return [self.families.names[p] for p in self.families.parents[i]]

    def _moments(self, chain: Chain, part: Any, gamma: Array) -> None:
        """Add the moments of each family, weighted by P(setting of its discrete parents)."""
        assert self.families is not None
        shares: dict[tuple[int, ...], Array] = {}
        for i in self._learned():
            family = self.families.families[i]
            settings = self._settings(i)
            key = tuple(settings.tolist())
            if key not in shares:
                shares[key] = _by_setting(gamma, settings, family.n_settings)
            place = self.stats[self.families.stats_ptr[i] : self.families.stats_ptr[i + 1]]
            child = self.z[family.name]
            if i not in self.families.linked:
                found = np.zeros((3, 1, family.n_settings))
                kernels.gaussians.add_moments(
                    child[None], shares[key], self.numbers[i].means[None].copy(), found
                )
                place += found.ravel()
                continue
            columns = np.array(
                [np.ones(len(child)), *(self.z[name] for name in self._regressors(i)), child]
            ).T
            there = ~np.isnan(columns).any(axis=1)
            columns = columns[there]
            place += np.einsum(
                "jr,ra,rb->jab", shares[key][:, there], columns, columns, optimize=True
            ).ravel()


def _by_setting(gamma: Array, settings: Ints, n_settings: int) -> Array:
    """P(setting of some discrete parents), (settings, steps), from P(state of the chain), (steps, S)."""
    if n_settings == gamma.shape[1] and (settings == np.arange(n_settings)).all():
        return np.ascontiguousarray(gamma.T)
    shares = np.zeros((n_settings, len(gamma)))
    for state, setting in enumerate(settings.tolist()):
        shares[setting] += gamma[:, state]
    return shares
