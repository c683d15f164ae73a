"""Linear and integer programs, solved by HiGHS: what branch and cut asks, and nothing more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array

Ints = NDArray[np.int64]
CLOSE = 1e-6
"""What counts as nothing: the tolerance of the programs, in nats."""

Heed = Callable[[float, Array | None], None]
"""Hears the bound of an integer program, and a solution where a better one was found."""
POLL = 0.05
"""Seconds between looks at what may end the work."""


class Row(NamedTuple):
    """The weighted sum of some columns is at least `least`; weights are 1 unless given."""

    columns: Ints
    least: float
    weights: Array | None = None


class LinearProgram:
    """Minimise the cost of columns, each 0 or more; with `whole` each 0 or 1.

    Attributes
    ----------
    x : ndarray
        The solution.
    """

    def __init__(self, cost: Array, whole: bool) -> None:
        import highspy

        make: Any = highspy.Highs  # its stubs leave it untyped
        self.highs = make()
        self.infinite = highspy.kHighsInf
        self.whole = whole
        n = len(cost)
        self.x: Array = np.zeros(n)
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", CLOSE / 10),
        ):
            self.highs.setOptionValue(option, value)
        every = np.arange(n, dtype=np.int32)
        self.highs.addVars(n, np.zeros(n), np.full(n, 1.0 if whole else self.infinite))
        self.highs.changeColsCost(n, every, cost)
        if whole:
            self.highs.changeColsIntegrality(n, every, np.full(n, highspy.HighsVarType.kInteger))

    def add(self, rows: Sequence[Row], most: float | None = None) -> None:
        """Add rows, with a sum of at most `most` if given."""
        if rows:
            sizes = np.array([len(row.columns) for row in rows])
            columns = np.concatenate([row.columns for row in rows]).astype(np.int32)
            weights = [np.ones(len(row.columns)) if row.weights is None else row.weights for row in rows]
            self.highs.addRows(
                len(rows),
                np.array([row.least for row in rows]),
                np.full(len(rows), self.infinite if most is None else most),
                len(columns),
                (np.cumsum(sizes) - sizes).astype(np.int32),
                columns,
                np.concatenate(weights),
            )

    def leave_out(self, columns: Ints) -> None:
        """Fix some columns at zero."""
        if len(columns):
            zeros = np.zeros(len(columns))
            self.highs.changeColsBounds(len(columns), columns.astype(np.int32), zeros, zeros)

    def solve(self, check: Callable[[], None], heed: Heed | None = None, start: Array | None = None) -> bool:
        """Solve it; False if there is no solution. `start` is a solution that is known.

        `check` may raise to end the work. The solver may not call back for seconds, so integer programs run in a
        thread of their own; one that is abandoned ends at its next callback.
        """
        import highspy

        if not self.whole:
            check()
            self.highs.run()
        else:
            if start is not None:
                known = highspy.HighsSolution()
                known.col_value = start.tolist()
                self.highs.setSolution(known)
            self._run_apart(check, heed)
        status = self.highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return False
        if status != highspy.HighsModelStatus.kOptimal:
            raise ArithmeticError(f"HiGHS did not solve a program: {self.highs.modelStatusToString(status)}")
        self.x = np.array(self.highs.getSolution().col_value)
        return True

    def _run_apart(self, check: Callable[[], None], heed: Heed | None) -> None:
        import highspy

        better = highspy.cb.HighsCallbackType.kCallbackMipImprovingSolution
        lock = threading.Lock()
        stopped: list[BaseException] = []

        def listen(event: Any) -> None:
            with lock:
                if heed is not None and not stopped:
                    out = event.data_out
                    try:
                        x = np.array(out.mip_solution) if event.callback_type == better else None
                        heed(out.mip_dual_bound, x)
                    except Exception as error:  # it must not pass through the solver
                        stopped.append(error)
            if stopped:
                event.interrupt()

        events = [self.highs.cbMipInterrupt, self.highs.cbMipImprovingSolution]
        for event in events:
            event.subscribe(listen)
        work = threading.Thread(target=self.highs.run, name="HiGHS")
        try:
            work.start()
            while work.is_alive():
                check()
                work.join(POLL)
        except BaseException as error:
            with lock:
                stopped.append(error)
            raise
        for event in events:
            event.clear()
        if stopped:
            raise stopped[0]

    @property
    def bound(self) -> float:
        """A lower bound of every solution of an integer program."""
        return float(self.highs.getInfo().mip_dual_bound)

    def multipliers(self) -> list[float]:
        """Of the rows of a linear program; those below zero are taken as zero."""
        return [max(float(dual), 0.0) for dual in self.highs.getSolution().row_dual]
