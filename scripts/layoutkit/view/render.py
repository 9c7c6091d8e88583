"""A picture of a layout: layers in the technology's colours, labels, legend, scale, and markers of violations.

::

    +--------------------------------------------+
    | cell   technology   5.4 x 4.56 um          |  title
    +----------------------------------+---------+
    |                                  | # poly  |
    |             layout               | # met1  |  legend
    |                                  |         |
    +----------------------------------+---------+
    | |--| 1 um                                  |  scale
    +--------------------------------------------+
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.errors import LayoutkitError
from layoutkit.layout import files
from layoutkit.layout.cells import select_layers, sorted_layers
from layoutkit.layout.provenance import noted
from layoutkit.view import raster
from layoutkit.view.raster import CHARACTER_HEIGHT, CHARACTER_WIDTH, Lettering

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.technology import Technology
    from layoutkit.view.markers import Marker
    from layoutkit.view.raster import Canvas, Color, Coverage

BACKGROUND: Color = (255, 255, 255)
INK: Color = (24, 24, 32)
MARKER_COLOR: Color = (230, 0, 0)
PALETTE: tuple[Color, ...] = (
    (31, 119, 180), (214, 39, 40), (44, 160, 44), (148, 103, 189), (255, 127, 14),
    (23, 190, 207), (227, 119, 194), (140, 86, 75), (188, 189, 34), (90, 90, 90),
)  # fmt: skip
MARGIN = 10
STRIP = 30
SWATCH = (22, 12)
LABEL_FONT, TITLE_FONT = 0, 1
MAX_LABELS = 400
MAX_LABEL_LENGTH = 40
MIN_LEGEND_WIDTH = 360
MIN_MARKER = 11
MARKER_FILL = 0.45


@dataclass(frozen=True)
class View:
    """What to show and how large.

    Attributes:
        width: Width of the picture. [pixels]
        height: Height of the picture. [pixels]
        region: Part of the cell to show: left, bottom, right, top; ``None`` shows all. [um]
        layers: Layers to show, as ``cells.select_layers`` takes them; ``None`` shows all.
        legend: Whether to add title, legend and scale.
        labels: Whether to write the layout's texts.
        title: Text for the title; ``None`` takes the cell's name.
    """

    width: int = 1200
    height: int = 900
    region: tuple[float, float, float, float] | None = None
    layers: Sequence[int | str] | None = None
    legend: bool = True
    labels: bool = True
    title: str | None = None


@dataclass(frozen=True)
class Picture:
    """What ``render`` drew."""

    png: bytes
    layers_drawn: tuple[str, ...]
    labels_drawn: int
    markers_drawn: int
    region: tuple[float, float, float, float]


@dataclass(frozen=True)
class _Style:
    """How one layer is shown; layers of a lower ``rank`` lie below."""

    name: str
    gds: tuple[int, int]
    color: Color
    fill: float
    frame: float
    rank: int


@dataclass(frozen=True)
class _Frame:
    """Where in the picture the layout is [pixels] and which part of it that shows [um]."""

    left: int
    top: int
    width: int
    height: int
    window: kdb.DBox

    @property
    def scale(self) -> float:
        """Pixels per micrometre."""
        return float(self.width / self.window.width())

    def x(self, x_um: float) -> float:
        return self.left + (x_um - self.window.left) * self.scale

    def y(self, y_um: float) -> float:
        return self.top + (self.window.top - y_um) * self.scale


def render(cell: kdb.Cell, technology: Technology | None, view: View, markers: Sequence[Marker] = ()) -> Picture:
    """Return a picture of ``cell``.

    Args:
        cell: What to draw, with all cells below it; its layout must be kept referenced.
        technology: Gives layers their names, colours and order; ``None`` uses layer numbers and a palette.
        view: What to show of it and how large.
        markers: Violations to mark.

    Raises:
        LayoutkitError: If the cell is empty, the region is empty, or a layer does not exist.
    """
    styles = _styles(cell, technology, view.layers)
    frame = _frame(cell, view, styles)
    canvas = raster.blank(view.width, view.height, BACKGROUND)
    part = canvas[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
    coverages = raster.layer_coverages(cell, [style.gds for style in styles], frame.window, frame.width, frame.height)
    drawn = []
    for style, coverage in zip(styles, coverages, strict=True):
        if coverage.any():
            drawn.append(style)
            _paint(part, coverage, style.color, style.fill, style.frame)
    shown = [marker for marker in markers if marker.box.touches(frame.window)]
    _paint_markers(part, frame, shown)
    letterings = _labels(cell, frame, {style.gds for style in styles}) if view.labels else []
    if view.legend:
        title = view.title if view.title is not None else _title(cell, technology)
        _write(
            canvas[:STRIP],
            [Lettering(title[: view.width // CHARACTER_WIDTH[TITLE_FONT]], MARGIN, STRIP / 2)],
            TITLE_FONT,
        )
        _write(canvas, letterings + _legend(canvas, frame, drawn, len(shown)) + _scale_bar(canvas, frame), LABEL_FONT)
    else:
        _write(canvas, letterings, LABEL_FONT)
    window = frame.window
    return Picture(
        png=raster.png(canvas),
        layers_drawn=tuple(style.name for style in drawn),
        labels_drawn=len(letterings),
        markers_drawn=len(shown),
        region=_rounded(window),
    )


def _rounded(window: kdb.DBox) -> tuple[float, float, float, float]:
    return round(window.left, 6), round(window.bottom, 6), round(window.right, 6), round(window.top, 6)


def save(picture: Picture, path: str | os.PathLike[str], sources: Mapping[str, str] | None = None) -> None:
    """Write ``picture`` to the PNG file ``path``, with a note of its ``sources`` (``layoutkit.layout.provenance``).

    Raises:
        FileError: If it cannot be written.
    """
    files.write_bytes(path, noted(picture.png, sources or {}))


def _styles(cell: kdb.Cell, technology: Technology | None, wanted: Sequence[int | str] | None) -> list[_Style]:
    """Return the styles of the layers to draw, lowest first."""
    layout = cell.layout()
    if wanted is None:
        pairs = [(info.layer, info.datatype) for info in sorted_layers(layout)]
    else:
        pairs = select_layers(layout, wanted, technology, "layers")
    named = {} if technology is None else {spec.gds: spec for spec in technology.layers.values()}
    order = {gds: position for position, gds in enumerate(named)}
    backdrop, cuts, pins = _kinds(technology)
    styles = []
    for number, pair in enumerate(pairs):
        spec = named.get(pair)
        name = f"{pair[0]}/{pair[1]}" if spec is None else spec.name
        color = PALETTE[(pair[0] + number) % len(PALETTE)] if spec is None or spec.color is None else _rgb(spec.color)
        fill, line, rank = 0.5, 0.9, 1000
        if name in backdrop:
            fill, line, rank = 0.13, 0.7, 0
        elif name in cuts:
            fill, line = 0.8, 1.0
        elif name in pins:
            fill, line = 0.0, 0.5
        styles.append(_Style(name, pair, color, fill, line, rank + order.get(pair, len(order))))
    return sorted(styles, key=lambda style: (style.rank, style.gds))


def _kinds(technology: Technology | None) -> tuple[set[str], set[str], set[str]]:
    """Return the names of wells and implants, of cuts, and of pin layers."""
    if technology is None:
        return set(), set(), set()
    backdrop = {technology.role(role) for role in ("nwell", "pwell", "poly_contact_marker")}
    for device in technology.devices.values():
        backdrop |= {device.implant, device.bulk_implant, device.well, *device.marked_by}
    cuts = {technology.contact.layer, *(cut.layer for cut in technology.cuts)}
    pins = {conductor.pin_layer for conductor in technology.conductors}
    return {name for name in backdrop if name}, cuts, {name for name in pins if name}


def _rgb(color: str) -> Color:
    digits = color.lstrip("#")
    return int(digits[0:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _frame(cell: kdb.Cell, view: View, styles: Sequence[_Style]) -> _Frame:
    """Return the place of the layout in the picture and the window of it that fits there."""
    import klayout.db as kdb

    if view.region is None:
        window = cell.dbbox()
        if window.empty():
            raise LayoutkitError(f"cell '{cell.name}' is empty; there is nothing to draw")
        border = max(0.04 * max(window.width(), window.height()), cell.layout().dbu)
        window = window.enlarged(border, border)
    else:
        left, bottom, right, top = view.region
        if left >= right or bottom >= top:
            raise LayoutkitError(
                f"region must be [left, bottom, right, top] with left < right and bottom < top, "
                f"got {list(view.region)}",
                details={"param_name": "region", "provided_value": list(view.region)},
            )
        window = kdb.DBox(left, bottom, right, top)
    legend = _legend_width(view, styles)
    x, y = (MARGIN, STRIP) if view.legend else (0, 0)
    width = view.width - legend - 2 * x
    height = view.height - 2 * y
    scale = min(width / window.width(), height / window.height())
    center = window.center()
    half = kdb.DVector(width / scale / 2, height / scale / 2)
    return _Frame(x, y, width, height, kdb.DBox(center - half, center + half))


def _legend_width(view: View, styles: Sequence[_Style]) -> int:
    """Return the width of the legend with the names in it; a picture too small for one has none. [pixels]"""
    if not view.legend or view.width < MIN_LEGEND_WIDTH:
        return 0
    longest = max((len(style.name) for style in styles), default=0)
    return min(view.width // 3, MARGIN + SWATCH[0] + 6 + CHARACTER_WIDTH[LABEL_FONT] * max(longest, 11) + MARGIN)


def _paint(part: Canvas, coverage: Coverage, color: Color, fill: float, frame: float) -> None:
    raster.blend(part, coverage, color, fill)
    dark = (int(color[0] * 0.7), int(color[1] * 0.7), int(color[2] * 0.7))
    raster.blend(part, raster.edges(coverage), dark, frame)


def _paint_markers(part: Canvas, frame: _Frame, markers: Iterable[Marker]) -> None:
    """Fill each violation's shape and draw a frame around it that can be seen at any scale."""
    import klayout.db as kdb
    import numpy as np

    markers = list(markers)
    if not markers:
        return
    layout = kdb.Layout()
    layout.dbu = 0.001
    cell = layout.create_cell("MARKERS")
    shapes = cell.shapes(layout.layer(1, 0))
    rings = np.zeros(part.shape[:2], dtype=np.float32)
    for marker in markers:
        for polygon in marker.polygons:
            shapes.insert(polygon)
        left, right = frame.x(marker.box.left) - frame.left, frame.x(marker.box.right) - frame.left
        top, bottom = frame.y(marker.box.top) - frame.top, frame.y(marker.box.bottom) - frame.top
        grow_x, grow_y = max(4.0, (MIN_MARKER - right + left) / 2), max(4.0, (MIN_MARKER - bottom + top) / 2)
        columns = [max(0, round(left - grow_x)), max(0, round(right + grow_x))]
        rows = [max(0, round(top - grow_y)), max(0, round(bottom + grow_y))]
        ring = np.zeros_like(rings[rows[0] : rows[1], columns[0] : columns[1]])
        ring[:2], ring[-2:], ring[:, :2], ring[:, -2:] = 1, 1, 1, 1
        target = rings[rows[0] : rows[1], columns[0] : columns[1]]
        np.maximum(target, ring, out=target)
    coverage = raster.layer_coverages(cell, [(1, 0)], frame.window, frame.width, frame.height)[0]
    raster.blend(part, coverage, MARKER_COLOR, MARKER_FILL)
    raster.blend(part, raster.spread(rings), BACKGROUND, 0.8)
    raster.blend(part, rings, MARKER_COLOR, 1.0)


def _labels(cell: kdb.Cell, frame: _Frame, layers: set[tuple[int, int]]) -> list[Lettering]:
    """Return the texts of ``layers`` that fit without covering each other, in reading order of the layers."""
    layout = cell.layout()
    width, height = CHARACTER_WIDTH[LABEL_FONT], CHARACTER_HEIGHT[LABEL_FONT]
    taken: list[tuple[float, float, float, float]] = []
    placed: list[Lettering] = []
    found = set()
    for info in sorted_layers(layout):
        if (info.layer, info.datatype) in layers:
            texts = cell.begin_shapes_rec_touching(layout.layer(info), frame.window.to_itype(layout.dbu))
            texts.shape_flags = _text_flag()
            while not texts.at_end():
                text = texts.shape().text.transformed(texts.trans()).to_dtype(layout.dbu)
                found.add((-info.layer, -info.datatype, text.y, text.x, text.string[:MAX_LABEL_LENGTH]))
                texts.next()
    for _, _, y_um, x_um, string in sorted(found):
        if len(placed) == MAX_LABELS:
            break
        half = len(string) * width / 2
        x = min(max(frame.x(x_um), frame.left + half + 2), frame.left + frame.width - half - 2)
        box = (x - half, frame.y(y_um) - height / 2, x + half, frame.y(y_um) + height / 2)
        if not any(box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3] for t in taken):
            taken.append(box)
            placed.append(Lettering(string, x - half, frame.y(y_um)))
    return placed


def _text_flag() -> int:
    import klayout.db as kdb

    return int(kdb.Shapes.STexts)


def _write(canvas: Canvas, pieces: Sequence[Lettering], font: int) -> None:
    """Write ``pieces`` with a bright rim that keeps them readable on any layer."""
    if pieces:
        height, width, _ = canvas.shape
        coverage = raster.lettering_coverage(pieces, width, height, font)
        raster.blend(canvas, raster.spread(coverage, 2), BACKGROUND, 0.8)
        raster.blend(canvas, coverage, INK, 1.0)


def _title(cell: kdb.Cell, technology: Technology | None) -> str:
    box = cell.dbbox()
    process = "" if technology is None else f"   {technology.name}"
    return f"{cell.name}{process}   {box.width():.6g} x {box.height():.6g} um"


def _legend(canvas: Canvas, frame: _Frame, styles: Sequence[_Style], marker_count: int) -> list[Lettering]:
    """Draw a swatch for each layer, uppermost first, and return the names to write beside them."""
    import numpy as np

    left = frame.left + frame.width + MARGIN
    if left + SWATCH[0] >= canvas.shape[1]:
        return []
    entries = [(style.name, style.color, style.fill, style.frame) for style in reversed(styles)]
    if marker_count:
        entries.insert(0, (f"{marker_count} marker" + "s" * (marker_count > 1), MARKER_COLOR, MARKER_FILL, 1.0))
    step = min(20.0, max(float(CHARACTER_HEIGHT[LABEL_FONT]), frame.height / max(len(entries), 1)))
    names = []
    for number, (name, color, fill, line) in enumerate(entries[: int(frame.height // step)]):
        top = int(frame.top + number * step)
        swatch = canvas[top : top + SWATCH[1], left : left + SWATCH[0]]
        inner = np.pad(np.ones((SWATCH[1] - 2, SWATCH[0] - 2), dtype=np.float32), 1)
        _paint(swatch, inner, color, fill, line)
        names.append(Lettering(name, left + SWATCH[0] + 6, top + SWATCH[1] / 2))
    return names


def _scale_bar(canvas: Canvas, frame: _Frame) -> list[Lettering]:
    """Draw a bar of a round length below the layout and return the length to write beside it."""
    length_um = _round_length(frame.width / 5 / frame.scale)
    end, base = MARGIN + round(length_um * frame.scale), canvas.shape[0] - STRIP // 2
    for reach, start, stop in ((1, MARGIN, end), (5, MARGIN, MARGIN + 2), (5, end - 2, end)):
        canvas[base - reach : base + reach, start:stop] = INK
    return [Lettering(f"{length_um:g} um", end + 8, base)]


def _round_length(longest_um: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above ``longest_um``."""
    from math import floor, log10

    power = 10.0 ** floor(log10(longest_um))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= longest_um * (1 + 1e-9))
