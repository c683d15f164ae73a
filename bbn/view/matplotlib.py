"""The shapes of a Drawing on matplotlib axes, for PNG, PDF and figures of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bbn.view.scene import Box, Diamond, Drawing, Oval, Words, arrow_head, spline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALIGN = {"start": "left", "middle": "center", "end": "right"}


def draw(drawing: Drawing, axes: Axes) -> None:
    """Draw every shape, in points, y downwards."""
    from matplotlib.patches import Ellipse, FancyBboxPatch, PathPatch, Polygon, Rectangle
    from matplotlib.path import Path

    m = drawing.margin
    axes.set_xlim(-m, drawing.width + m)
    axes.set_ylim(drawing.height + m, -m)
    axes.set_aspect("equal")
    axes.axis("off")
    for layer, shape in enumerate(drawing.shapes):
        if isinstance(shape, Box):
            style: dict[str, Any] = {"facecolor": shape.fill, "edgecolor": shape.stroke, "linewidth": 0.8}
            r = min(shape.radius, shape.width / 2, shape.height / 2)
            if isinstance(shape, Oval):
                middle = (shape.x + shape.width / 2, shape.y + shape.height / 2)
                box: Any = Ellipse(middle, shape.width, shape.height, **style)
            elif isinstance(shape, Diamond):
                box = Polygon(shape.corners, closed=True, **style)
            elif r > 0:
                corner = (shape.x + r, shape.y + r)
                round_ = f"round,pad={r:g},rounding_size={r:g}"
                box = FancyBboxPatch(
                    corner, shape.width - 2 * r, shape.height - 2 * r, boxstyle=round_, **style
                )
            else:
                box = Rectangle((shape.x, shape.y), shape.width, shape.height, **style)
            axes.add_patch(box).set_zorder(layer)
        elif isinstance(shape, Words):
            axes.text(
                shape.x,
                shape.y,
                shape.text.replace("$", r"\$"),
                fontsize=shape.size * 0.9,
                color=shape.colour,
                ha=_ALIGN[shape.anchor],
                va="baseline",
                fontweight="bold" if shape.bold else "normal",
                fontstyle="italic" if shape.italic else "normal",
                zorder=layer,
            )
        else:
            points, codes = [shape.points[0]], [Path.MOVETO]
            for piece in spline(shape.points):
                points += piece
                codes += [Path.CURVE4] * 3
            line = PathPatch(
                Path(points, codes),
                facecolor="none",
                edgecolor=shape.colour,
                linewidth=shape.width,
                linestyle=(0, (5, 4)) if shape.dashed else "solid",
                zorder=layer,
            )
            axes.add_patch(line)
            if shape.arrow:
                axes.add_patch(
                    Polygon(arrow_head(shape.points, shape.width), color=shape.colour, zorder=layer)
                )
