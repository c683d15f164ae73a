"""Beliefs over time as bands: each state as high as it is probable; of a number, its mean and two widths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.errors import EvidenceError
from bbn.results.beliefs import Beliefs
from bbn.view.colours import BELIEF, EDGE, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 1.7
"""Inches of one variable's panel."""
MOST_DRAWN = 12
"""Panels that are drawn where nobody said which."""


def draw_bands(beliefs: Beliefs, names: str | Sequence[str] | None = None, ax: Any = None) -> Any:
    """See `Beliefs.plot`."""
    import matplotlib.pyplot as plt

    wanted = [names] if isinstance(names, str) else list(_uncertain(beliefs) if names is None else names)
    for name in wanted:
        beliefs.variable(name)
    if ax is not None:
        if len(wanted) != 1:
            raise EvidenceError(f"ax= takes one variable, found {', '.join(wanted)}; name the one to draw")
        _panel(beliefs, wanted[0], ax)
        ax.set_xlabel("step")
        return ax
    panels: Any = plt.subplots(
        len(wanted), figsize=(8, HEIGHT * len(wanted) + 0.4), sharex=True, squeeze=False, layout="constrained"
    )[1]
    for name, panel in zip(wanted, panels[:, 0], strict=True):
        _panel(beliefs, name, panel)
    panels[-1, 0].set_xlabel("step")
    return panels[0, 0] if len(wanted) == 1 else panels[:, 0]


def _uncertain(beliefs: Beliefs) -> list[str]:
    """The variables that are not certain in every step; all where there are none."""
    found = []
    for variable in beliefs.variables:
        own = beliefs[variable.name]
        sure = (own[:, 1] == 0).all() if not variable.states else (own.max(axis=1, initial=0) == 1).all()
        if not sure:
            found.append(variable.name)
    return (found or list(beliefs.names))[:MOST_DRAWN]


def _panel(beliefs: Beliefs, name: str, axes: Axes) -> None:
    """One variable."""
    from matplotlib import colormaps

    steps, own = np.array(beliefs.steps), beliefs[name]
    edges = np.append(steps, steps[-1] + 1) - 0.5 if len(steps) else np.zeros(0)
    states = beliefs.variable(name).states
    axes.set_ylabel(name)
    axes.set_xlim(edges[0], edges[-1])
    if not states:
        width = 2 * np.sqrt(own[:, 1])
        axes.fill_between(steps, own[:, 0] - width, own[:, 0] + width, color=BELIEF, alpha=0.25, linewidth=0)
        axes.plot(steps, own[:, 0], color=BELIEF, label="mean ± 2 sd")
    else:
        shades = colormaps["cividis"](np.linspace(0.1, 0.95, len(states)))
        top = np.cumsum(own, axis=1)
        low = np.zeros(len(steps))
        for code, state in enumerate(states):
            axes.stairs(top[:, code], edges, baseline=low, fill=True, color=shades[code], label=str(state))
            if code + 1 < len(states):
                axes.stairs(top[:, code], edges, baseline=None, color=PAPER, linewidth=0.6)
            low = top[:, code]
        axes.set_ylim(0, 1)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(EDGE)
