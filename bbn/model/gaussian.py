"""Gaussian: a continuous variable given its parents, a normal distribution per setting of the discrete ones.

With discrete parents D and continuous parents Y, X | d, y ~ N(mean(d) + weights(d)·y, variance(d)): the
conditional linear Gaussian of Lauritzen (1992). Continuous variables have continuous children only, so that given
the discrete variables everything continuous is jointly Gaussian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.budget import require_table
from bbn.core.display import Table, Tabular
from bbn.core.errors import ModelError, nearest
from bbn.core.frozen import Array, Frozen, numbers, read_only
from bbn.core.keywords import keywords_checked
from bbn.model.cpt import checked_parents
from bbn.model.previous import gaussian_parents
from bbn.model.table_input import indexed_rows, row_name, settings
from bbn.model.variable import Continuous, Variable

KIND = "Gaussian"


class Gaussian(Tabular, Frozen, cached=("_hash",)):
    """The normal distribution of a continuous variable given its parents.

    Parameters
    ----------
    name
        The child's name, or the child itself, a Continuous.
    parents
        Its parents, discrete and continuous in any order; `Previous` where one lies in an earlier slice.
    means
        The mean in each setting of the discrete parents, where the continuous ones are 0. One of: an array with an
        axis per discrete parent; a mapping from a tuple of their states (a bare state where there is one) to a
        number; a number, the same in every setting (in a list or not where there are no discrete parents).
    variances
        Likewise, each above 0.
    weights
        The weight of each continuous parent in each setting: an array as above with a last axis of one entry per
        continuous parent; a mapping from setting to such a row, which may itself map names to numbers; or one row for
        all settings. Where there is one continuous parent, a row may be a number.
    tied_variance
        The variance is the same in all settings, and stays so in learning.
    fixed_variance
        Learning keeps the variances as they are.

    >>> sex = Variable("Sex", ["f", "m"])
    >>> height = Gaussian("Height", [sex], means={"f": 166.0, "m": 180.0}, variances=[36.0, 49.0])
    >>> height.means, height.variances
    (array([166., 180.]), array([36., 49.]))
    >>> print(Gaussian("Weight", [sex, height.variable], means=-90.0, variances=64.0, weights={"f": 0.9, "m": 1.0}))
    Weight | Sex, Height
    Sex  mean  variance  weight of Height
    ---  ----  --------  ----------------
    f     -90        64               0.9
    m     -90        64                 1
    """

    __slots__ = (
        "_hash",
        "fixed_variance",
        "means",
        "parents",
        "tied_variance",
        "variable",
        "variances",
        "weights",
    )

    variable: Continuous
    parents: tuple[Variable, ...]
    means: Array
    variances: Array
    weights: Array
    tied_variance: bool
    fixed_variance: bool
    _hash: int | None

    @keywords_checked
    def __init__(
        self,
        name: str | Continuous,
        parents: Sequence[Variable] = (),
        means: Any = None,
        variances: Any = None,
        weights: Any = None,
        tied_variance: bool = False,
        fixed_variance: bool = False,
    ) -> None:
        if isinstance(name, Variable) and not isinstance(name, Continuous):
            raise ModelError(
                f"{KIND} {name.name!r}: the variable has states {list(name.states)}; "
                f"expected a name or bbn.Continuous({name.name!r})"
            )
        variable = name if isinstance(name, Continuous) else Continuous(name)
        parents = gaussian_parents(variable, parents, means, variances, weights)
        parents = checked_parents(variable, parents, KIND)
        reader = _ParameterReader(variable, parents)
        for what, values in (("means", means), ("variances", variances)):
            if values is None:
                raise ModelError(f"{KIND} {variable.name!r}: no {what} given")
        read_means, read_variances = reader.scalars("mean", means), reader.scalars("variance", variances)
        if tied_variance and (read_variances != read_variances.flat[0]).any():
            raise ModelError(
                f"{KIND} {variable.name!r}: a tied variance is the same in every setting, found "
                f"{read_variances.min():g} and {read_variances.max():g}"
            )
        self._set(
            variable=variable,
            parents=parents,
            means=read_only(read_means),
            variances=read_only(read_variances),
            weights=read_only(reader.rows(weights)),
            tied_variance=bool(tied_variance),
            fixed_variance=bool(fixed_variance),
            _hash=None,
        )

    @classmethod
    def trusted(
        cls,
        variable: Continuous,
        parents: tuple[Variable, ...],
        means: Array,
        variances: Array,
        weights: Array,
        tied_variance: bool = False,
        fixed_variance: bool = False,
    ) -> Gaussian:
        """A Gaussian from parts known to be right; the arrays are not copied and become read-only.

        Parameters
        ----------
        variable : Continuous
            The child.
        parents : tuple of Variable
            Its parents, discrete and continuous in any order.
        means, variances : ndarray
            One axis per discrete parent.
        weights : ndarray
            One more axis, of one entry per continuous parent.
        tied_variance, fixed_variance : bool, default False
            As in `Gaussian`.

        Returns
        -------
        Gaussian
            The conditional, unchecked.
        """
        gaussian = cls.__new__(cls)
        gaussian._set(
            variable=variable,
            parents=parents,
            means=read_only(means),
            variances=read_only(variances),
            weights=read_only(weights),
            tied_variance=tied_variance,
            fixed_variance=fixed_variance,
            _hash=None,
        )
        return gaussian

    @classmethod
    def point(cls, variable: Continuous, value: float) -> Gaussian:
        """The variable set to one number: no parents, and the variance 0 that no other Gaussian may have.

        Parameters
        ----------
        variable : Continuous
            The variable.
        value : float
            The number.

        Returns
        -------
        Gaussian
            The conditional that `BayesianNetwork.do` puts in.
        """
        return cls.trusted(variable, (), np.array(value), np.array(0.0), np.zeros(0))

    @property
    def is_point(self) -> bool:
        """Whether the variable is set to one number, as `do` does it."""
        return not self.parents and float(self.variances) == 0.0

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def discrete_parents(self) -> tuple[Variable, ...]:
        """The parents with states, in order: the axes of `means`, `variances` and, but for the last, `weights`."""
        return tuple(p for p in self.parents if not isinstance(p, Continuous))

    @property
    def continuous_parents(self) -> tuple[Continuous, ...]:
        """The parents that are numbers, in order: the last axis of `weights`."""
        return tuple(p for p in self.parents if isinstance(p, Continuous))

    @property
    def n_parameters(self) -> int:
        """The number of free parameters; a tied variance is one, a fixed one none."""
        free = 0 if self.fixed_variance else 1 if self.tied_variance else self.variances.size
        return self.means.size + self.weights.size + free

    def with_family(self, variable: Continuous, parents: tuple[Variable, ...]) -> Gaussian:
        """The same numbers for a variable and parents of other names or states, one for one.

        Parameters
        ----------
        variable : Continuous
            The new child.
        parents : tuple of Variable
            The new parents, one for one.

        Returns
        -------
        Gaussian
            The same numbers.
        """
        return Gaussian.trusted(
            variable,
            parents,
            self.means,
            self.variances,
            self.weights,
            self.tied_variance,
            self.fixed_variance,
        )

    def __repr__(self) -> str:
        given = f" | {', '.join(p.name for p in self.parents)}" if self.parents else ""
        return f"<Gaussian p({self.name}{given}), {self.means.size} setting{'s' * (self.means.size != 1)}>"

    def _table(self) -> Table:
        given = f" | {', '.join(p.name for p in self.parents)}" if self.parents else ""
        discrete = self.discrete_parents
        slopes = [f"weight of {p.name}" for p in self.continuous_parents]
        rows = [
            [
                *map(str, states),
                *(f"{x:.6g}" for x in (self.means[index], self.variances[index], *self.weights[index])),
            ]
            for index, states in settings(discrete)
        ]
        return Table([*(p.name for p in discrete), "mean", "variance", *slopes], rows, f"{self.name}{given}")


class _ParameterReader:
    """Reads what a user wrote as means, variances or weights of one family."""

    @keywords_checked
    def __init__(self, variable: Continuous, parents: tuple[Variable, ...]) -> None:
        self.variable = variable
        self.discrete = tuple(p for p in parents if not isinstance(p, Continuous))
        self.slopes = tuple(p.name for p in parents if isinstance(p, Continuous))
        self.shape = tuple(p.card for p in self.discrete)
        require_table(
            [*self.shape, max(1, len(self.slopes))], f"{KIND} {variable.name!r}", "use fewer parents"
        )

    def scalars(self, what: str, values: Any) -> Array:
        """One number per setting, `what` it is: a mean or a variance."""
        plural = f"{what}s"
        if isinstance(values, Mapping):
            array = np.empty(self.shape)
            for index, value in self._rows(values):
                array[index] = self._numbers(value, (), what, index)
        else:
            array = self._numbers(values, None, plural)
            if array.shape == () or (array.shape == (1,) and not self.discrete):
                array = np.full(self.shape, array.item())
        self._check_shape(array, self.shape, plural)
        legal = np.isfinite(array) if what == "mean" else np.isfinite(array) & (array > 0)
        expected = "a finite number" if what == "mean" else "a finite number above 0"
        self._check(array, legal, lambda index: f"the {what}", expected)
        return array

    def rows(self, weights: Any) -> Array:
        """One row per setting, an entry for each continuous parent."""
        shape = (*self.shape, len(self.slopes))
        if not self.slopes:
            if (
                weights is not None
                and np.size(weights)
                and not (isinstance(weights, Mapping) and not weights)
            ):
                raise ModelError(
                    f"{KIND} {self.variable.name!r}: weights are for continuous parents, of which it has none"
                )
            return np.zeros(shape)
        if weights is None:
            raise ModelError(
                f"{KIND} {self.variable.name!r}: no weights given for its continuous parents {', '.join(self.slopes)}"
            )
        if isinstance(weights, Mapping) and not self._is_row(weights):
            array = np.empty(shape)
            for index, row in self._rows(weights):
                array[index] = self._row(row, index)
        elif isinstance(weights, Mapping):
            array = np.broadcast_to(self._row(weights, None), shape).copy()
        else:
            array = self._numbers(weights, None, "weights")
            if len(self.slopes) == 1 and array.shape == self.shape:
                array = array[..., None]
            elif array.shape in ((), (len(self.slopes),)) and (array.ndim or len(self.slopes) == 1):
                array = np.broadcast_to(array, shape).copy()
        self._check_shape(array, shape, "weights")
        self._check(
            array,
            np.isfinite(array),
            lambda index: f"the weight of {self.slopes[index[-1]]!r}",
            "a finite number",
        )
        return array

    def _is_row(self, weights: Mapping[Any, Any]) -> bool:
        """Whether a mapping is one row for all settings, names to numbers, rather than settings to rows."""
        return (not self.discrete and () not in weights) or set(weights) == set(self.slopes)

    def _row(self, row: Any, index: tuple[int, ...] | None) -> Array:
        where = self._place(index)
        if isinstance(row, Mapping):
            for name in row:
                if name not in self.slopes:
                    raise ModelError(f"{where}: no continuous parent {name!r}{nearest(name, self.slopes)}")
            missing = [name for name in self.slopes if name not in row]
            if missing:
                raise ModelError(f"{where}: no weight for {', '.join(missing)}")
            row = [row[name] for name in self.slopes]
        elif len(self.slopes) == 1 and np.ndim(row) == 0:
            row = [row]
        return self._numbers(row, (len(self.slopes),), "weights", index)

    def _rows(self, rows: Mapping[Any, Any]) -> Any:
        if not self.discrete:
            if set(rows) != {()}:
                raise ModelError(
                    f"{KIND} {self.variable.name!r}: it has no discrete parents; expected a number, found {rows!r}"
                )
            return [((), rows[()])]
        return indexed_rows(self.variable, self.discrete, rows, KIND)

    def _numbers(
        self, values: Any, shape: tuple[int, ...] | None, what: str, index: tuple[int, ...] | None = None
    ) -> Array:
        try:
            array = numbers(values)
        except (TypeError, ValueError):
            raise ModelError(f"{self._place(index)}: {what}: expected numbers, found {values!r}") from None
        if shape is not None and array.shape != shape:
            expected = (
                f"{shape[0]} numbers, one for each of {', '.join(self.slopes)}" if shape else "a number"
            )
            raise ModelError(f"{self._place(index)}: {what}: expected {expected}, found {values!r}")
        return array

    def _check_shape(self, array: Array, shape: tuple[int, ...], what: str) -> None:
        if array.shape != shape:
            axes = ", ".join([p.name for p in self.discrete] + ["continuous parents"] * (what == "weights"))
            raise ModelError(
                f"{KIND} {self.variable.name!r}: expected {what} of shape {shape} (axes {axes or 'none'}), "
                f"found {array.shape}"
            )

    def _check(self, array: Array, legal: Any, name: Any, expected: str) -> None:
        for bad in np.argwhere(~legal):
            index = tuple(bad.tolist())
            raise ModelError(
                f"{self._place(index[: len(self.discrete)])}: {name(index)} is {array[index]:g}; expected {expected}"
            )

    def _place(self, index: tuple[int, ...] | None) -> str:
        return row_name(self.variable, self.discrete if index is not None else (), index or (), KIND)
