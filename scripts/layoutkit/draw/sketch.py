"""An unfinished drawing: boxes and texts by layer name, which are moved and written into a KLayout cell at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutkit.rectangle import Rectangle

if TYPE_CHECKING:
    from collections.abc import Callable

    import klayout.db as kdb

    from layoutkit.technology import Technology


def spread_squares(area: Rectangle, size: int, space: int, grid: int, most: int) -> list[Rectangle]:
    """Return as many squares as fill ``area``, spread evenly, at most ``most`` on a side and at least one.

    Args:
        area: What they fill. [dbu]
        size: Side of a square. [dbu]
        space: Least distance of two of them. [dbu]
        grid: Their corners are multiples of it, from those of ``area``. [dbu]
        most: Largest number of rows, and of columns.
    """

    def spread(low: int, high: int) -> list[int]:
        room = high - low
        count = min(most, max(1, (room + space) // (size + space)))
        if count == 1:
            return [low + (room - size) // (2 * grid) * grid]
        pitch = (room - size) // (count - 1) // grid * grid
        start = low + (room - size - pitch * (count - 1)) // (2 * grid) * grid
        return [start + i * pitch for i in range(count)]

    return [
        Rectangle(x, y, x + size, y + size)
        for y in spread(area.bottom, area.top)
        for x in spread(area.left, area.right)
    ]


class Sketch:
    """Boxes and texts of one cell, before its origin is known."""

    def __init__(self) -> None:
        self.boxes: dict[str, list[Rectangle]] = {}
        self.polygons: dict[str, list[tuple[tuple[int, int], ...]]] = {}
        self.holes: dict[str, list[tuple[tuple[int, int], ...]]] = {}
        self.texts: dict[str, list[tuple[str, int, int]]] = {}

    def box(self, layer: str, area: Rectangle) -> None:
        """Draw ``area`` on ``layer`` (layer name or role)."""
        self.boxes.setdefault(layer, []).append(area)

    def polygon(self, layer: str, points: tuple[tuple[int, int], ...]) -> None:
        """Draw a polygon on ``layer``, within what the boxes span; its box where it is one."""
        xs, ys = sorted({x for x, _ in points}), sorted({y for _, y in points})
        if len(points) == 4 and len(xs) == len(ys) == 2:
            self.box(layer, Rectangle(xs[0], ys[0], xs[1], ys[1]))
        else:
            self.polygons.setdefault(layer, []).append(points)

    def cut(self, layer: str, points: tuple[tuple[int, int], ...]) -> None:
        """Leave a polygon out of the boxes on ``layer``."""
        self.holes.setdefault(layer, []).append(points)

    def text(self, layer: str, text: str, x: int, y: int) -> None:
        """Write ``text`` on ``layer`` at (x, y)."""
        self.texts.setdefault(layer, []).append((text, x, y))

    def extent(self) -> Rectangle:
        """Return the bounding box of all boxes."""
        areas = [area for layer in self.boxes.values() for area in layer]
        return Rectangle(
            min(area.left for area in areas),
            min(area.bottom for area in areas),
            max(area.right for area in areas),
            max(area.top for area in areas),
        )

    def is_mirror_image_of_itself(self, *, upside_down: bool = False) -> bool:
        """Return whether a mirror at the vertical (``upside_down``: horizontal) centre line keeps all boxes."""
        extent = self.extent()
        x, y = extent.left + extent.right, extent.bottom + extent.top
        return all(
            set(areas)
            == {
                Rectangle(a.left, y - a.top, a.right, y - a.bottom)
                if upside_down
                else Rectangle(x - a.right, a.bottom, x - a.left, a.top)
                for a in areas
            }
            for areas in self.boxes.values()
        )

    def write_at_origin(self, cell: kdb.Cell, tech: Technology) -> Callable[[Rectangle], kdb.Box]:
        """Draw everything into ``cell`` with the lower left corner at (0, 0); return what moves an area likewise."""
        import klayout.db as kdb

        extent = self.extent()
        self.write(cell, tech, -extent.left, -extent.bottom)
        return lambda area: kdb.Box(*area).moved(-extent.left, -extent.bottom)

    def write(self, cell: kdb.Cell, tech: Technology, dx: int, dy: int) -> None:
        """Draw everything into ``cell``, moved by (dx, dy); layers in name order, shapes sorted."""
        import klayout.db as kdb

        def polygon(points: tuple[tuple[int, int], ...]) -> kdb.Polygon:
            return kdb.Polygon([kdb.Point(x + dx, y + dy) for x, y in points])

        layout = cell.layout()
        for layer, areas in sorted(self.boxes.items()):
            shapes = cell.shapes(tech.layer(layout, layer))
            if layer in self.holes:
                whole = kdb.Region([kdb.Polygon(kdb.Box(*area).moved(dx, dy)) for area in areas])
                shapes.insert(whole - kdb.Region([polygon(points) for points in self.holes[layer]]))
                continue
            for left, bottom, right, top in sorted(set(areas)):
                shapes.insert(kdb.Box(left + dx, bottom + dy, right + dx, top + dy))
        for layer, polygons in sorted(self.polygons.items()):
            shapes = cell.shapes(tech.layer(layout, layer))
            for points in sorted(set(polygons)):
                shapes.insert(polygon(points))
        for layer, texts in sorted(self.texts.items()):
            shapes = cell.shapes(tech.layer(layout, layer))
            for text, x, y in sorted(texts):
                shapes.insert(kdb.Text(text, kdb.Trans(0, False, x + dx, y + dy)))
