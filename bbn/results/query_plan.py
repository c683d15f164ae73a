"""QueryPlan: how an exact question would be answered, and what that takes, as a report."""

from __future__ import annotations

from typing import Any, NamedTuple

from bbn.core.budget import show_bytes
from bbn.core.frozen import Frozen


class PassReport(NamedTuple):
    """What a pass did to the problem.

    Attributes
    ----------
    name
        The pass.
    cells
        The cells of the tree by rules alone before and after; None where it was not applied.
    states
        The states of all variables that are left before and after; None likewise.
    seconds
        What it took.
    note
        What it found, or why it was not applied.
    """

    name: str
    cells: tuple[float, float] | None
    states: tuple[int, int] | None
    seconds: float
    note: str


class PlanReport(NamedTuple):
    """A plan and its price.

    Attributes
    ----------
    name
        What it is.
    cells, bytes, seconds
        The cells of its cliques, the memory that it takes with a run, and what a run is predicted to take on this
        machine.
    note
        Its largest clique; of a plan that was rejected, why.
    """

    name: str
    cells: float
    bytes: float
    seconds: float
    note: str


class Spent(NamedTuple):
    """What making a plan and one run of it take, in seconds, and the memory."""

    making: float
    run: float
    bytes: float


class QueryPlan(Frozen):
    """How a question would be answered, and what that takes.

    Attributes
    ----------
    question : str
        What was asked.
    model : str
        The size of the model.
    passes : tuple of PassReport
        What each pass did to the problem, or why it was not applied.
    plan : PlanReport
        The plan that answers.
    rejected : tuple of PlanReport
        Others that were priced, and why they were not taken.
    predicted : Spent
        What it is predicted to take on this machine.
    actual : Spent or None
        What it took, where it was run.
    """

    __slots__ = ("actual", "model", "passes", "plan", "predicted", "question", "rejected")

    question: str
    model: str
    passes: tuple[PassReport, ...]
    plan: PlanReport
    rejected: tuple[PlanReport, ...]
    predicted: Spent
    actual: Spent | None

    def __init__(
        self,
        question: str,
        model: str,
        passes: tuple[PassReport, ...],
        plan: PlanReport,
        rejected: tuple[PlanReport, ...],
        predicted: Spent,
        actual: Spent | None,
    ) -> None:
        self._set(
            question=question,
            model=model,
            passes=passes,
            plan=plan,
            rejected=rejected,
            predicted=predicted,
            actual=actual,
        )

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "question": self.question,
            "model": self.model,
            "passes": [one._asdict() for one in self.passes],
            "plan": self.plan._asdict(),
            "rejected": [one._asdict() for one in self.rejected],
            "predicted": self.predicted._asdict(),
            "actual": None if self.actual is None else self.actual._asdict(),
        }

    def __repr__(self) -> str:
        return f"<QueryPlan {self.question}: {self.plan.name}, {_cells(self.plan.cells)} cells>"

    def __str__(self) -> str:
        lines = [self.question, f"  model      {self.model}", "  passes"]
        width = max(len(one.name) for one in self.passes)
        for one in self.passes:
            if one.cells is None or one.states is None:
                lines.append(f"    {one.name:<{width}}  {one.note}")
                continue
            changed = f"{_cells(one.cells[0])} → {_cells(one.cells[1])} cells, "
            changed += f"{one.states[0]:,} → {one.states[1]:,} states"
            took = f", {show_seconds(one.seconds)}" if one.seconds else ""
            lines.append(f"    {one.name:<{width}}  {changed}{took}{'; ' if one.note else ''}{one.note}")
        lines.append(
            f"  plan       {self.plan.name}: {_cells(self.plan.cells)} cells, {_bytes(self.plan.bytes)}"
        )
        if self.plan.note:
            lines.append(f"             {self.plan.note}")
        for k, other in enumerate(self.rejected):
            head = "rejected" if k == 0 else ""
            size = f"{_cells(other.cells)} cells, {_bytes(other.bytes)}"
            lines.append(f"  {head:<9}  {other.name}: {size}; {other.note}")
        for head, spent in (("predicted", self.predicted), ("actual", self.actual)):
            if spent is not None:
                took = f"making {show_seconds(spent.making)}, a run {show_seconds(spent.run)}"
                lines.append(f"  {head:<9}  {took}, {_bytes(spent.bytes)}")
        return "\n".join(lines)


def _cells(cells: float) -> str:
    return f"{cells:,.0f}" if cells < 1e8 else f"{cells:.2g}"


def _bytes(size: float) -> str:
    return show_bytes(int(min(size, 1e300)))


def show_seconds(seconds: float) -> str:
    """A length of time in the unit that suits it."""
    for unit, length in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if seconds < 999.5 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"
