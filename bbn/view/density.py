"""The card of a continuous variable: its density, drawn as narrow bars."""

from __future__ import annotations

import numpy as np

from bbn.results.mixture_posterior import MixturePosterior
from bbn.view.colours import BELIEF, EDGE, HEAD, HEAD_OBSERVED, OBSERVED, PAPER
from bbn.view.measures import PAD, ROW, TITLE, text_width
from bbn.view.scene import Box, Curve, Words

STRIPS = 64
"""The bars that a density is drawn with."""
WIDTH, HEIGHT = 120.0, 36.0
"""The least width of a density, and its height."""


class DensityCard:
    """The box of a continuous variable: its density over the range that holds nearly all of it, mean ± std below.

    Parameters
    ----------
    name
        What the card is called.
    belief
        The posterior; a number that was observed; None to leave the density out.
    """

    def __init__(self, name: str, belief: MixturePosterior | float | None) -> None:
        self.name, self.belief = name, belief
        if isinstance(belief, MixturePosterior):
            self.summary = f"{belief.mean:.4g} ± {belief.std:.3g}"
        else:
            self.summary = "a number" if belief is None else f"{belief:.6g}"
        self.drawn = isinstance(belief, MixturePosterior) and belief.variance > 0
        inner = max(text_width(self.summary), WIDTH if self.drawn else 0.0)
        self.width = 2 * PAD + max(text_width(name, bold=True), inner)
        self.height = TITLE + 6 + ROW + (HEIGHT + ROW if self.drawn else 0.0)

    def shapes(self, x: float, y: float, kind: str) -> list[Box | Words | Curve]:
        """The card with its top left corner at (x, y); kind is "observed" or ""."""
        out: list[Box | Words | Curve] = [
            Box(x, y, self.width, self.height, PAPER, OBSERVED if kind else EDGE, 4),
            Box(x + 0.8, y + 0.8, self.width - 1.6, TITLE - 1.6, HEAD_OBSERVED if kind else HEAD, radius=3.5),
            Words(x + self.width / 2, y + 14, self.name, anchor="middle", bold=True),
        ]
        top = y + TITLE + 3
        if self.drawn:
            out += self._density(x + PAD, top, self.width - 2 * PAD)
            top += HEIGHT + ROW
        out.append(
            Words(x + self.width / 2, top + 11, self.summary, size=10.5, anchor="middle", italic=not kind)
        )
        return out

    def _density(self, left: float, top: float, width: float) -> list[Box | Words | Curve]:
        belief = self.belief
        assert isinstance(belief, MixturePosterior)
        low, high = belief.interval(0.998)
        edges = np.linspace(low, high, STRIPS + 1)
        heights = belief.pdf((edges[:-1] + edges[1:]) / 2)
        heights = np.where(np.isfinite(heights), heights, 0.0)
        heights = heights / (heights.max() or 1.0) * HEIGHT
        strip = width / STRIPS
        out: list[Box | Words | Curve] = [
            Box(
                left + i * strip,
                top + HEIGHT - h,
                strip + 0.2,
                h,
                BELIEF,
                title=f"{self.name} near {edges[i]:.4g}",
            )
            for i, h in enumerate(heights.tolist())
            if h > 0.05
        ]
        below = top + HEIGHT
        out.append(Box(left, below, width, 0.6, EDGE))
        out.append(Words(left, below + 10, f"{low:.4g}", size=8.5))
        out.append(Words(left + width, below + 10, f"{high:.4g}", size=8.5, anchor="end"))
        return out
