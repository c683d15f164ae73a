"""The posteriors of every unobserved variable of a network with continuous ones, in one mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bbn.core.display import BAR, Bar, Cell, Table
from bbn.core.errors import EvidenceError, nearest
from bbn.results.posterior import Posterior, Posteriors

if TYPE_CHECKING:
    import pandas as pd

from bbn.results.mixture_posterior import MixturePosterior


class AllPosteriors(Posteriors):
    """The posterior of each variable by name, where some are continuous.

    Parameters
    ----------
    order
        The variables' names in the order to show them.
    discrete
        The posteriors of the discrete ones.
    continuous
        Those of the continuous ones, by name.
    log_evidence
        ln p(evidence).
    """

    __slots__ = ("_continuous", "_order")

    def __init__(
        self,
        order: tuple[str, ...],
        discrete: Posteriors,
        continuous: Mapping[str, MixturePosterior],
        log_evidence: float,
    ) -> None:
        known = frozenset(order)
        slots = {name: slot for name, slot in discrete._slots.items() if name in known}
        super().__init__(slots, discrete._flat, log_evidence, discrete.sampling)
        self._order = tuple(name for name in order if name in slots or name in continuous)
        self._continuous = dict(continuous)

    def __getitem__(self, name: str) -> Any:
        if name in self._continuous:
            return self._continuous[name]
        if name not in self._slots:
            hint = nearest(name, self._order)
            raise EvidenceError(f"no posterior of {name!r}: it was observed or is unknown{hint}")
        return super().__getitem__(name)

    def _all(self) -> Iterator[Posterior]:
        return map(self.__getitem__, self._order)

    def __contains__(self, name: object) -> bool:
        return name in self._slots or name in self._continuous

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __hash__(self) -> int:
        return hash(frozenset(self._order))

    def __repr__(self) -> str:
        shown = ", ".join(self._order[:6])
        return f"<Posteriors of {len(self)} variables: {shown}{', …' * (len(self) > 6)}>"

    def _rows(self) -> Iterator[tuple[str, Any, float, Cell]]:
        for name, posterior in self.items():
            if isinstance(posterior, MixturePosterior):
                yield name, "mean", posterior.mean, ""
                yield name, "std", posterior.std, ""
            else:
                yield from ((name, state, p, Bar(p)) for state, p in posterior.to_dict().items())

    def _table(self) -> Table:
        rows: list[list[Cell]] = []
        last = ""
        for name, state, value, bar in self._rows():
            rows.append([name if name != last else "", str(state), f"{value:.6g}", bar])
            last = name
        note = "" if rows else "(no unobserved variables)"
        return Table(["variable", "state", "probability", " " * BAR] if rows else [], rows, note=note)

    def to_frame(self) -> pd.DataFrame:
        """One row per variable and state: "variable", "state", "probability"; of a continuous one, "mean" and "std"."""
        import pandas as pd

        cells = [(name, state, value) for name, state, value, _ in self._rows()]
        return pd.DataFrame(cells, columns=["variable", "state", "probability"])

    def __reduce__(self) -> tuple[Any, ...]:
        discrete = Posteriors(dict(self._slots), self._flat, self.log_evidence, self.sampling)
        return AllPosteriors, (self._order, discrete, self._continuous, self.log_evidence)
