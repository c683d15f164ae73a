"""The best assignment, read from cliques that were maximised toward their roots.

Each clique's axes start with those it shares with its parent. Going from the roots down, these are already decided;
they pick one row of the clique, and the largest cell of that row decides the others (Dawid 1992).
"""

from __future__ import annotations

from bbn.kernels.tape import Layout
from bbn.kernels.types import Floats, Ints


def best_states(layout: Layout, cards: Ints, work: Floats, base: Floats) -> dict[int, int]:
    """Variable number to code, from the collected potentials of dynamic (`work`) and static (`base`) cliques."""
    sizes = cards.tolist()
    starts, axes = layout.axes_ptr.tolist(), layout.axes.tolist()
    states: dict[int, int] = {}
    for c, (offset, shared, dynamic) in enumerate(
        zip(layout.clique.tolist(), layout.separator.tolist(), layout.dynamic.tolist(), strict=True)
    ):
        members = axes[starts[c] : starts[c + 1]]
        row, columns = 0, 1
        for v in members[:shared]:
            row = row * sizes[v] + states[v]
        for v in members[shared:]:
            columns *= sizes[v]
        cells = (work if dynamic else base)[offset + row * columns : offset + (row + 1) * columns]
        best = int(cells.argmax())
        for v in reversed(members[shared:]):
            best, states[v] = divmod(best, sizes[v])
    return states
