"""Drawing: a picture as a list of rectangles, texts and curves, shown as SVG or drawn by matplotlib.

The SVG text needs nothing but this file; `save` to PNG or PDF and `axes` use matplotlib.
"""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bbn.core.atomic import replacing
from bbn.core.extras import needed_by
from bbn.view.colours import ARC, INK, PAPER
from bbn.view.measures import clipped, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML does not allow in a text."""

HEADING, HEADING_SIZE = 90, 15.0
"""The most letters of a heading, and their size in points."""
WIDEST_PNG = 4000
"""Dots across a PNG, unless `dpi` is given."""
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Box:
    """A rectangle; `title` is what a pointer that rests on it reads."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = "none"
    radius: float = 0.0
    title: str = ""


@dataclass(frozen=True)
class Oval(Box):
    """An ellipse that fills the rectangle."""


@dataclass(frozen=True)
class Diamond(Box):
    """A rhombus whose corners are the middles of the rectangle's sides."""

    @property
    def corners(self) -> tuple[tuple[float, float], ...]:
        """Left, top, right, bottom."""
        x, y, w, h = self.x, self.y, self.width, self.height
        return (x, y + h / 2), (x + w / 2, y), (x + w, y + h / 2), (x + w / 2, y + h)


@dataclass(frozen=True)
class Words:
    """A line of text; anchor is "start", "middle" or "end"."""

    x: float
    y: float
    text: str
    size: float = 11.0
    colour: str = INK
    anchor: str = "start"
    bold: bool = False
    italic: bool = False


@dataclass(frozen=True)
class Curve:
    """A smooth line through points, with an arrow head at its end unless told otherwise."""

    points: tuple[tuple[float, float], ...]
    colour: str = ARC
    width: float = 1.2
    dashed: bool = False
    arrow: bool = True
    title: str = ""


@dataclass(frozen=True, repr=False)
class Drawing:
    """A picture that shows itself in a notebook and saves itself to a file.

    Attributes
    ----------
    width, height
        In points.
    shapes
        What is drawn, from back to front.
    description
        The text alternative, for readers who do not see the picture.
    """

    width: float
    height: float
    shapes: tuple[Box | Words | Curve, ...]
    description: str = ""
    margin: float = field(default=12.0)

    def __repr__(self) -> str:
        return f"<Drawing, {self.width:.0f} by {self.height:.0f}: {self.description[:60]}>"

    @property
    def svg(self) -> str:
        """The picture as SVG text."""
        m = self.margin
        w, h = self.width + 2 * m, self.height + 2 * m
        title, _, more = self.description.partition(". ")
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-m:g} {-m:g} {w:.1f} {h:.1f}" width="{w:.0f}" '
            f'height="{h:.0f}" role="img" font-family="{FONT}">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(more)}</desc>" if more else "",
            f'<rect x="{-m:g}" y="{-m:g}" width="{w:.1f}" height="{h:.1f}" fill="{PAPER}"/>',
        ]
        parts += [_svg(shape) for shape in self.shapes]
        return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", "\n".join([*parts, "</svg>"]) + "\n")

    def titled(self, title: str) -> Drawing:
        """The same picture with a heading above it; an empty title changes nothing.

        Parameters
        ----------
        title : str
            The heading.

        Returns
        -------
        Drawing
            A new picture.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("asia").plot().titled("Chest clinic").description[:13]
        'Chest clinic.'
        """
        if not title:
            return self
        shown = clipped(title, HEADING)
        wide = max(self.width, text_width(shown, bold=True) * HEADING_SIZE / 11)
        across, down = (wide - self.width) / 2, HEADING_SIZE + 14
        heading = Words(wide / 2, HEADING_SIZE, shown, HEADING_SIZE, anchor="middle", bold=True)
        shapes = (heading, *(_moved(shape, across, down) for shape in self.shapes))
        told = f"{title.rstrip('.')}. {self.description}"
        return replace(self, width=wide, height=self.height + down, shapes=shapes, description=told)

    def _repr_svg_(self) -> str:
        return self.svg

    def save(
        self, path: str | os.PathLike[str] | IO[bytes], format: str | None = None, dpi: float | None = None
    ) -> None:
        """Write the picture to a file; `format` is "svg", "png" or "pdf" where no suffix tells it.

        The file is replaced at once when everything is written: a failure leaves the old one as it was.

        Parameters
        ----------
        path : path or binary file
            Where to.
        format : {"svg", "png", "pdf"}, optional
            By default that of the suffix.
        dpi : float, optional
            Dots per inch of a PNG; by default 144, or fewer so that the picture is at most WIDEST_PNG (4,000) wide.

        Raises
        ------
        ValueError
            The format is unknown.
        OSError
            The file cannot be written.
        """
        suffix = Path(path).suffix.removeprefix(".").lower() if isinstance(path, str | os.PathLike) else ""
        kind = format or suffix
        if kind not in ("svg", "png", "pdf"):
            raise ValueError(f"{str(path)!r}: a picture is saved as .svg, .png or .pdf")
        if isinstance(path, str | os.PathLike):
            with replacing(path) as file:
                self._write(file, kind, dpi)
        else:
            self._write(path, kind, dpi)

    def _write(self, file: IO[bytes], kind: str, dpi: float | None) -> None:
        if kind == "svg":
            file.write(self.svg.encode())
            return
        with needed_by(f"a .{kind}", "'bbn[plot]', or save a .svg"):
            from matplotlib.figure import Figure

        m = self.margin
        dpi = min(144.0, WIDEST_PNG * 72 / (self.width + 2 * m)) if dpi is None else dpi
        figure = Figure(figsize=((self.width + 2 * m) / 72, (self.height + 2 * m) / 72))
        self.axes(figure.add_axes((0.0, 0.0, 1.0, 1.0)))
        figure.savefig(file, format=kind, dpi=dpi, facecolor=PAPER)

    def axes(self, axes: Axes | None = None) -> Axes:
        """Draw the picture on matplotlib axes (new ones unless given), and give them back.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default on new ones.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.figure(figsize=(self.width / 72, self.height / 72)).add_axes((0.0, 0.0, 1.0, 1.0))
        from bbn.view.matplotlib import draw

        draw(self, axes)
        return axes


def _moved(shape: Box | Words | Curve, across: float, down: float) -> Box | Words | Curve:
    if isinstance(shape, Curve):
        return replace(shape, points=tuple((x + across, y + down) for x, y in shape.points))
    return replace(shape, x=shape.x + across, y=shape.y + down)


def spline(points: tuple[tuple[float, float], ...]) -> list[tuple[tuple[float, float], ...]]:
    """Cubic pieces through the points, each leaving and arriving vertically, as (control, control, end)."""
    pieces: list[tuple[tuple[float, float], ...]] = []
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        bend = (y1 - y0) * 0.5
        pieces.append(((x0, y0 + bend), (x1, y1 - bend), (x1, y1)))
    return pieces


def arrow_head(
    points: tuple[tuple[float, float], ...], width: float = 1.2
) -> tuple[tuple[float, float], ...]:
    """The triangle at the end of a curve, which arrives vertically; a wide line has a larger one."""
    size = 6.0 + 2.5 * max(width - 1.2, 0.0)
    (_, y0), (x1, y1) = points[-2:]
    back = size if y1 >= y0 else -size
    return ((x1, y1), (x1 - size * 0.45, y1 - back), (x1 + size * 0.45, y1 - back))


def _svg(shape: Box | Words | Curve) -> str:
    if isinstance(shape, Box):
        title = f"<title>{escape(shape.title)}</title>" if shape.title else ""
        look = f'fill="{shape.fill}" stroke="{shape.stroke}">{title}'
        if isinstance(shape, Oval):
            rx, ry = shape.width / 2, shape.height / 2
            return (
                f'<ellipse cx="{shape.x + rx:.1f}" cy="{shape.y + ry:.1f}" rx="{rx:.1f}" ry="{ry:.1f}" '
                f"{look}</ellipse>"
            )
        if isinstance(shape, Diamond):
            corners = " ".join(f"{px:.1f},{py:.1f}" for px, py in shape.corners)
            return f'<polygon points="{corners}" {look}</polygon>'
        return (
            f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}" '
            f'rx="{shape.radius:g}" {look}</rect>'
        )
    if isinstance(shape, Words):
        weight = ' font-weight="600"' if shape.bold else ""
        slant = ' font-style="italic"' if shape.italic else ""
        return (
            f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size:g}" fill="{shape.colour}" '
            f'text-anchor="{shape.anchor}"{weight}{slant}>{escape(shape.text)}</text>'
        )
    x, y = shape.points[0]
    path = f"M{x:.1f} {y:.1f}" + "".join(
        " C" + " ".join(f"{px:.1f} {py:.1f}" for px, py in piece) for piece in spline(shape.points)
    )
    dash = ' stroke-dasharray="5 4"' if shape.dashed else ""
    title = f"<title>{escape(shape.title)}</title>" if shape.title else ""
    line = f'<path d="{path}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width:g}"{dash}>{title}</path>'
    if not shape.arrow:
        return line
    head = " ".join(f"{px:.1f},{py:.1f}" for px, py in arrow_head(shape.points, shape.width))
    return f'{line}<polygon points="{head}" fill="{shape.colour}"/>'
