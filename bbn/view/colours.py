"""The colours of the pictures, and how far apart two colours are to the eye (WCAG 2.2, contrast ratio).

Text stands out from what is behind it by at least 4.5 to 1, lines and bars by 3 to 1; the tests check both.
"""

from __future__ import annotations

INK, PAPER = "#1b1f24", "#ffffff"
BELIEF, OBSERVED, LIKELY = "#4878a8", "#b5541c", "#8a6d1f"
"""The colours of bars: a belief, an observed state, a variable with virtual or soft evidence."""
HEAD, HEAD_OBSERVED, TRACK = "#e8eef5", "#f7e3d6", "#eef1f4"
"""Behind a card's name, the same where there is evidence, and behind a bar."""
EDGE, ARC = "#78828f", "#57606a"
RIGHT, MISSING, EXTRA, REVERSED = ARC, "#b5541c", "#1f6f3f", "#7a3fa0"
"""The colours of arcs in a comparison; missing ones are dashed too, so that colour is not all that tells."""
TREATMENT, OUTCOME, ADJUSTED, HIDDEN = "#d3e8d9", "#d6e4f5", "#f3e2b8", "#f4f4f4"
"""Behind the names of variables in a causal graph, by their role."""
CAUSAL, OPEN = EXTRA, MISSING
"""The arcs of causal paths, and of open paths that are not causal."""
SEPARATOR, SEPARATOR_EDGE = "#fbf3e4", "#8f7433"


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, from 1 (alike) to 21 (black and white).

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return round((high + 0.05) / (low + 0.05), 9)


def ink_on(background: str) -> str:
    """The colour of text on a background: black or white, whichever stands out more, always by 4.5 to 1."""
    return max(("#000000", PAPER), key=lambda colour: contrast(colour, background))


def _luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour such as #1b1f24."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
