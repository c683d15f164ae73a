"""The questions a model can be asked, as methods: each delegates to the layer that answers it.

Everything that points upward from a model is here, one line each, imported when it is called; `Askable` is what
networks and factor graphs share, `AskableNetwork` what a network can be asked besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bbn.core.frozen import Frozen
from bbn.model.variable import State

if TYPE_CHECKING:
    from bbn.analysis.explain import Explanation
    from bbn.analysis.sensitivity import Sensitivity
    from bbn.model.evidence import Evidence
    from bbn.results.posterior import Assignment, Posterior, Posteriors
    from bbn.view.explore import Explorer
    from bbn.view.scene import Drawing


class Askable(Frozen):
    """What every model answers."""

    __slots__ = ()

    def query(
        self: Any,
        targets: str | Sequence[str],
        evidence: Evidence | None = None,
        method: str = "auto",
        **options: Any,
    ) -> Posterior:
        """The posterior of the targets given evidence; of several targets, their joint, axes in the order asked.

        >>> import bbn
        >>> p = bbn.example("burglary").query("Burglary", {"JohnCalls": "yes", "MaryCalls": "yes"})
        >>> round(p["yes"], 6)
        0.284172
        """
        from bbn.inference import query

        return query(self, targets, evidence, method, **options)

    def posteriors(
        self: Any, evidence: Evidence | None = None, method: str = "auto", **options: Any
    ) -> Posteriors:
        """The posterior of every unobserved variable, by name, in one pass."""
        from bbn.inference import posteriors

        return posteriors(self, evidence, method, **options)

    def mpe(
        self: Any,
        evidence: Evidence | None = None,
        k: int | None = None,
        method: str = "auto",
        **options: Any,
    ) -> Any:
        """The most probable explanation of the evidence, or the list of the `k` best."""
        from bbn.inference import mpe

        return mpe(self, evidence, k, method, **options)

    def map(
        self: Any,
        targets: str | Sequence[str],
        evidence: Evidence | None = None,
        method: str = "auto",
        **options: Any,
    ) -> Assignment:
        """The most probable joint state of the targets given evidence, the others summed out (marginal MAP)."""
        from bbn.inference import marginal_map

        return marginal_map(self, targets, evidence, method, **options)


class AskableNetwork(Askable):
    """What a network answers besides."""

    __slots__ = ()

    def predict(self: Any, data: Any, target: str, **options: Any) -> Any:
        """The most probable state of `target` for each row of data; columns absent are unobserved.

        `to="answers.parquet"` writes them as they come. Data that `bbn.open_data` opened, a folder or a pattern of
        files without `to` give an iterator over tables, one per batch; Dask's data give a Dask collection.
        """
        from bbn.inference.rows.streaming import answer

        return answer("predict", self, data, target, **options)

    def predict_proba(self: Any, data: Any, target: str, **options: Any) -> Any:
        """The posterior of `target` for each row of data, one column per state; `to` as in `predict`."""
        from bbn.inference.rows.streaming import answer

        return answer("predict_proba", self, data, target, **options)

    def log_likelihood(self: Any, data: Any, **options: Any) -> Any:
        """ln P(row) for each row of data, missing values summed out; `to` as in `predict`."""
        from bbn.inference.rows.streaming import answer

        return answer("log_likelihood", self, data, **options)

    def explain(
        self: Any, target: str, evidence: Evidence, method: str = "auto", **options: Any
    ) -> Explanation:
        """Which findings moved the posterior of `target`, and by how much, in bits."""
        from bbn.analysis.explain import explain

        return explain(self, target, evidence, method, **options)

    def information(
        self: Any, target: str, evidence: Evidence | None = None, method: str = "auto", **options: Any
    ) -> dict[str, float]:
        """Bits that each unobserved variable would tell about `target`, the most telling first: what to ask next."""
        from bbn.analysis.information import information

        return information(self, target, evidence, method, **options)

    def sensitivity(
        self: Any,
        target: str,
        evidence: Evidence | None = None,
        state: State | None = None,
        memory_limit: int | float | str | None = None,
    ) -> Sensitivity:
        """How P(target = state | evidence) depends on each table entry; `.plot()` is a tornado chart."""
        from bbn.analysis.sensitivity import sensitivity

        return sensitivity(self, target, evidence, state, memory_limit)

    def plot(
        self: Any,
        evidence: Evidence | None = None,
        beliefs: bool = True,
        information: bool = False,
        **options: Any,
    ) -> Drawing:
        """The network drawn as cards with belief bars; shows itself in a notebook, `.save("x.svg")` writes it.

        `information=True` draws an arc the wider, the more its ends tell of each other.
        """
        from bbn.view.cards import draw_network

        return draw_network(self, evidence, beliefs, information, **options)

    def explore(self: Any, **options: Any) -> Explorer:
        """The interactive page of the network, served on this machine; a notebook shows it in the cell."""
        from bbn.view.explore import explore

        return explore(self, **options)

    def _repr_svg_(self: Any) -> str:
        return str(self.plot(beliefs=False).svg)

    def sample(
        self: Any,
        n: int,
        evidence: Evidence | None = None,
        seed: Any = None,
        missing: float | Mapping[str, float] = 0.0,
        *,
        to: Any = None,
        client: Any = None,
        **options: Any,
    ) -> Any:
        """A DataFrame of n rows drawn from the network given evidence; `missing` hides values at random.

        `to` writes the rows as they are drawn, to a .parquet or .csv file or to a folder of Parquet files, and gives
        its path. `client`, a Dask client or a scheduler's address, has a cluster draw them: a Dask DataFrame. Further
        options are those of `bbn.inference.sampling.sample.sample`: `as_codes`, `chunks`, `n_jobs`, ….

        >>> import bbn
        >>> bbn.example("campfire").sample(3, seed=7).shape
        (3, 6)
        """
        if client is not None:
            from bbn.inference.rows.cluster import sample_on

            return sample_on(client, self, n, evidence, seed, missing, to=to, **options)
        if to is not None:
            from bbn.inference.rows.streaming import sample_to

            return sample_to(self, to, n, evidence, seed, missing, **options)
        from bbn.inference.sampling.sample import sample

        return sample(self, n, evidence, seed, missing, **options)
