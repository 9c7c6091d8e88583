"""Pictures of a layout: layers in the technology's colours, labels, legend, scale, and markers of violations.

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

A picture is cropped to what it shows.

KLayout's ``LayoutView`` draws both parts without a display: the layout with the layer properties (.lyp) that
``layoutkit.layout.klayout_files`` generates, and the sheet around it. ``LayoutView`` draws no legend, does not keep
labels apart and does not enlarge small markers, so this module places those.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING

import klayout.db as kdb
from klayout import lay

from layoutkit.errors import LayoutkitError
from layoutkit.layout import files
from layoutkit.layout.cells import select_layers, sorted_layers
from layoutkit.layout.klayout_files import layer_properties_xml
from layoutkit.layout.reports import noted
from layoutkit.view.drawing_data import marker_color

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.technology import Technology
    from layoutkit.view.drawing_data import Marker

BACKGROUND = 0xFFFFFF
INK = 0x181820
MARGIN = 10
STRIP = 30
SWATCH = (22, 12)
LEGEND_STEP = 20
CHARACTER_WIDTH, CHARACTER_HEIGHT = 8, 13  # KLayout's small built-in font
MAX_LABELS = 400
MAX_LABEL_LENGTH = 40
MIN_LEGEND_WIDTH = 360
MIN_MARKER = 11
RING_WIDTH = 3
MAX_RULES = 12  # rules with an entry of their own in the legend
_OVERSAMPLING = 2
_SOLID, _HOLLOW, _DOTS = 0, 1, 3  # numbers of KLayout's dither patterns
_SETTINGS = {
    "background-color": "#ffffff",
    "grid-visible": "false",
    "text-visible": "false",
    "inst-visible": "false",
    "default-font-size": "0",
}


@dataclass(frozen=True)
class ViewOptions:
    """What to show and how large.

    Attributes:
        width: Largest width of the picture. [pixels]
        height: Largest height of the picture. [pixels]
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
    """The PNG file that ``render`` drew, and what it shows; ``region`` is in um, ``width`` and ``height`` in pixels."""

    png: bytes
    width: int
    height: int
    layers_drawn: tuple[str, ...]
    labels_drawn: int
    markers_drawn: int
    region: tuple[float, float, float, float]


@dataclass(frozen=True)
class _Layer:
    """A layer of the picture: its name, its GDS numbers and the entry of KLayout's layer list that styles it."""

    name: str
    gds: tuple[int, int]
    style: lay.LayerPropertiesNodeRef


@dataclass(frozen=True)
class _Frame:
    """The area of the picture that shows the layout [pixels], and the window of the layout that it shows [um].

    ``whole`` is the width and height of the picture. [pixels]
    """

    left: int
    top: int
    width: int
    height: int
    window: kdb.DBox
    whole: tuple[int, int]

    @property
    def pixel_um(self) -> float:
        """Size of a pixel. [um]"""
        return float(self.window.width() / self.width)

    def around(self, point: kdb.DPoint, width: float, height: float) -> kdb.DBox:
        """Return the box of ``width`` x ``height`` pixels with its centre at ``point``. [um]"""
        half = kdb.DVector(width * self.pixel_um / 2, height * self.pixel_um / 2)
        return kdb.DBox(point - half, point + half)

    def within(self, point: kdb.DPoint, width: float, height: float) -> kdb.DBox:
        """Return the box around ``point``, moved into the window where it would reach out of it. [um]"""
        box, window = self.around(point, width, height), self.window
        dx = max(window.left - box.left, 0.0) + min(window.right - box.right, 0.0)
        dy = max(window.bottom - box.bottom, 0.0) + min(window.top - box.top, 0.0)
        return box.moved(dx, dy)


def render(cell: kdb.Cell, technology: Technology | None, view: ViewOptions, markers: Sequence[Marker] = ()) -> Picture:
    """Return a picture of ``cell``. The same layout and parameters give the same bytes.

    Args:
        cell: What to draw, with all cells below it; its layout must be kept referenced.
        technology: Gives layers their names, colours and order; ``None`` uses layer numbers and KLayout's colours.
        view: What to show of it and how large.
        markers: Violations to mark.

    Raises:
        LayoutkitError: If the cell is empty, the region is empty, or a layer does not exist.
    """
    window = _window(cell, view.region)
    shown = _new_view()
    shown.show_layout(cell.layout().dup(), False)  # a view destroys the layout that it shows
    shown.active_cellview().cell_name = cell.name
    shown.max_hier()
    layers = _style_layers(shown, cell, technology, view.layers)
    drawn = [layer for layer in layers if _has_shapes(shown, layer, window)]
    marked = [marker for marker in markers if marker.box.touches(window)]
    color = marker_color(technology)
    legend = [*_rule_entries(marked, color), *(_swatch(layer) for layer in reversed(drawn))]
    title = view.title if view.title is not None else _title(cell, technology)
    frame = _frame(view, window, title, [name for name, *_ in legend])
    ids = _add_markers(shown, frame, marked, color)
    labels = _labels(cell, frame, {layer.gds for layer in layers}, ids) if view.labels else []
    for text in labels:
        _add_text(shown, text)
    pixels = shown.get_pixels_with_options(frame.width, frame.height, 0, _OVERSAMPLING, 0, frame.window)
    if view.legend:
        pixels = _pasted(_sheet(frame, title, legend), pixels, frame.left, frame.top)
    left, bottom, right, top = (
        round(value, 6) for value in (frame.window.left, frame.window.bottom, frame.window.right, frame.window.top)
    )
    return Picture(
        png=pixels.to_png_data(),
        width=pixels.width(),
        height=pixels.height(),
        layers_drawn=tuple(layer.name for layer in drawn),
        labels_drawn=len(labels),
        markers_drawn=len(marked),
        region=(left, bottom, right, top),
    )


def beside(first: Picture, second: Picture) -> Picture:
    """Return one picture with ``second`` to the right of ``first``; its region is that of ``first``."""
    height = max(first.height, second.height)
    whole = lay.PixelBuffer(first.width + second.width, height)
    whole.fill(0xFF000000 | BACKGROUND)
    for part, left in ((first, 0), (second, first.width)):
        whole = _pasted(whole, lay.PixelBuffer.from_png_data(part.png), left, 0)
    return replace(first, png=whole.to_png_data(), width=whole.width(), height=height)


def save(picture: Picture, path: str | os.PathLike[str], sources: Mapping[str, str] | None = None) -> None:
    """Write ``picture`` to the PNG file ``path``, with a note of its ``sources`` (``layoutkit.layout.reports``).

    Raises:
        FileError: If it cannot be written.
    """
    files.write_bytes(path, noted(picture.png, sources or {}))


def _window(cell: kdb.Cell, region: tuple[float, float, float, float] | None) -> kdb.DBox:
    """Return the part of the cell that must be visible. [um]"""
    if region is None:
        window = cell.dbbox()
        if window.empty():
            raise LayoutkitError(f"cell '{cell.name}' is empty; there is nothing to draw")
        border = max(0.015 * max(window.width(), window.height()), cell.layout().dbu)
        return window.enlarged(border, border)
    left, bottom, right, top = region
    if left >= right or bottom >= top:
        raise LayoutkitError(
            f"region must be [left, bottom, right, top] with left < right and bottom < top, got {list(region)}",
            details={"param_name": "region", "provided_value": list(region)},
        )
    return kdb.DBox(left, bottom, right, top)


def _frame(view: ViewOptions, window: kdb.DBox, title: str, names: Sequence[str]) -> _Frame:
    """Return the area for the layout: as large as ``view`` allows, in the proportions of ``window``.

    The legend is as wide as the longest of ``names`` needs; a narrow picture has none. The picture is as large as the
    layout, the title and the legend need.
    """
    legend = 0
    if view.legend and view.width >= MIN_LEGEND_WIDTH:
        longest = max((len(name) for name in names), default=0)
        legend = min(view.width // 3, MARGIN + SWATCH[0] + 6 + CHARACTER_WIDTH * max(longest, 11) + MARGIN)
    left, top = (MARGIN, STRIP) if view.legend else (0, 0)
    most = view.width - legend - 2 * left, view.height - 2 * top
    scale = min(most[0] / window.width(), most[1] / window.height())
    width, height = (max(1, round(side * scale)) for side in (window.width(), window.height()))
    half = kdb.DVector(width / scale / 2, height / scale / 2)
    needed = [width + legend + 2 * left, height + 2 * top]
    if view.legend:
        needed[0] = max(needed[0], 2 * MARGIN + CHARACTER_WIDTH * len(title))
        needed[1] = max(needed[1], 2 * top + LEGEND_STEP * len(names) if legend else 0)
    whole = min(needed[0], view.width), min(needed[1], view.height)
    return _Frame(left, top, width, height, kdb.DBox(window.center() - half, window.center() + half), whole)


def _new_view() -> lay.LayoutView:
    view = lay.LayoutView()
    for name, value in _SETTINGS.items():
        view.set_config(name, value)
    return view


def _style_layers(
    shown: lay.LayoutView, cell: kdb.Cell, technology: Technology | None, wanted: Sequence[int | str] | None
) -> list[_Layer]:
    """Style the layers, hide those that are not ``wanted``, and return the visible ones, lowest first."""
    layout = cell.layout()
    chosen = {(info.layer, info.datatype) for info in layout.layer_infos()}
    if wanted is not None:
        chosen = set(select_layers(layout, wanted, technology, "layers"))
    shown.clear_layers()
    names = {}
    if technology is not None:
        names = {spec.gds: spec.name for spec in technology.layers.values()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "layers.lyp"
            path.write_bytes(layer_properties_xml(technology))
            shown.load_layer_props(str(path))
    shown.add_missing_layers()
    layers: dict[tuple[int, int], _Layer] = {}
    for style in shown.each_layer():
        gds = (style.source_layer, style.source_datatype)
        style.visible = gds in chosen and gds not in layers
        if style.visible:
            layers[gds] = _Layer(names.get(gds, f"{gds[0]}/{gds[1]}"), gds, style)
    return list(layers.values())


def _has_shapes(shown: lay.LayoutView, layer: _Layer, window: kdb.DBox) -> bool:
    """Return whether ``layer`` has something other than text in the window."""
    edge = min(window.width(), window.height()) / 2000
    inside = window.enlarged(-edge, -edge)
    shapes = shown.active_cellview().cell.begin_shapes_rec_touching(layer.style.layer_index(), inside)
    shapes.shape_flags = kdb.Shapes.SAll & ~kdb.Shapes.STexts
    return not shapes.at_end()


def _add_box(shown: lay.LayoutView, box: kdb.DBox, color: int, pattern: int = _SOLID, *, frame: int = -1) -> None:
    """Draw ``box`` filled with ``pattern``; the colour of its frame is ``frame`` unless that is negative."""
    marker = lay.Marker()
    marker.set_box(box)
    marker.color, marker.frame_color = color, color if frame < 0 else frame
    marker.dither_pattern, marker.line_width, marker.vertex_size, marker.halo = pattern, 1, 0, 0
    shown.add_marker(marker)


def _add_text(shown: lay.LayoutView, text: kdb.DText) -> None:
    """Write ``text`` with a bright rim that keeps it readable on any layer."""
    marker = lay.Marker()
    marker.set_text(text)
    marker.color = INK
    marker.halo, marker.vertex_size, marker.text_frame_enabled = 1, 0, False
    shown.add_marker(marker)


def _add_markers(shown: lay.LayoutView, frame: _Frame, markers: Iterable[Marker], color: int) -> list[kdb.DBox]:
    """Fill each violation's shape, draw a frame around it that can be seen at any scale, and write the rule's id.

    Returns the boxes of the ids. An id that would cover another one is left out.
    """
    written: list[kdb.DBox] = []
    for violation in markers:
        for polygon in violation.polygons:
            shape = lay.Marker()
            shape.set_polygon(polygon)
            shape.color = color
            shape.dither_pattern, shape.line_width, shape.vertex_size, shape.halo = _DOTS, 1, 0, 0
            shown.add_marker(shape)
        box, pixel = violation.box, frame.pixel_um
        around = box.enlarged(
            max(4 * pixel, (MIN_MARKER * pixel - box.width()) / 2),
            max(4 * pixel, (MIN_MARKER * pixel - box.height()) / 2),
        )
        for grown, line_width, ink in ((-2 * pixel, 1, INK), (0.0, RING_WIDTH, color), (2 * pixel, 1, INK)):
            ring = lay.Marker()
            ring.set_box(around.enlarged(grown, grown))
            ring.color = ink
            ring.dither_pattern, ring.line_width, ring.vertex_size, ring.halo = _HOLLOW, line_width, 0, 0
            shown.add_marker(ring)
        rule = violation.rule_id[:MAX_LABEL_LENGTH]
        above = kdb.DPoint(around.center().x, around.top + CHARACTER_HEIGHT * pixel)
        place = frame.within(above, (len(rule) + 1) * CHARACTER_WIDTH, CHARACTER_HEIGHT + 2)
        if rule and not any(place.overlaps(other) for other in written):
            written.append(place)
            _add_box(shown, place, color, frame=INK)
            _add_text(shown, _text(rule, place.center().x, place.center().y, kdb.HAlign.HAlignCenter))
    return written


def _rule_entries(markers: Sequence[Marker], color: int) -> list[tuple[str, int, int, int]]:
    """Return an entry of the legend for each violated rule, with the number of its markers."""
    counts: dict[str, int] = {}
    for marker in markers:
        counts[marker.rule_id or "marker"] = counts.get(marker.rule_id or "marker", 0) + 1
    lines = [f"{rule[:MAX_LABEL_LENGTH]} ({count})" for rule, count in counts.items()]
    if len(lines) > MAX_RULES:
        lines = [*lines[: MAX_RULES - 1], f"{len(lines) - MAX_RULES + 1} more rules"]
    return [(line, color, INK, _SOLID) for line in lines]


def _labels(
    cell: kdb.Cell, frame: _Frame, layers: set[tuple[int, int]], covered: Sequence[kdb.DBox]
) -> list[kdb.DText]:
    """Return the texts of ``layers`` that fit without covering each other, those of upper layers first.

    None lies on the boxes that are ``covered`` already.
    """
    layout, window = cell.layout(), frame.window
    found = set()
    for info in sorted_layers(layout):
        if (info.layer, info.datatype) in layers:
            texts = cell.begin_shapes_rec_touching(layout.layer(info), window.to_itype(layout.dbu))
            texts.shape_flags = kdb.Shapes.STexts
            while not texts.at_end():
                text = texts.shape().text.transformed(texts.trans()).to_dtype(layout.dbu)
                found.add((-info.layer, -info.datatype, text.y, text.x, text.string[:MAX_LABEL_LENGTH]))
                texts.next()
    taken = list(covered)
    placed: list[kdb.DText] = []
    for _, _, y, x, string in sorted(found):
        if len(placed) == MAX_LABELS:
            break
        half = (len(string) * CHARACTER_WIDTH / 2 + 2) * frame.pixel_um
        centre = kdb.DPoint(min(max(x, window.left + half), window.right - half), y)
        box = frame.around(centre, len(string) * CHARACTER_WIDTH, CHARACTER_HEIGHT)
        if not any(box.overlaps(other) for other in taken):
            taken.append(box)
            placed.append(_text(string, centre.x, centre.y, kdb.HAlign.HAlignCenter))
    return placed


def _text(string: str, x: float, y: float, alignment: kdb.HAlign) -> kdb.DText:
    text = kdb.DText(string, kdb.DTrans(0, False, x, y))
    text.halign, text.valign = alignment, kdb.VAlign.VAlignCenter
    return text


def _title(cell: kdb.Cell, technology: Technology | None) -> str:
    box = cell.dbbox()
    process = "" if technology is None else f"   {technology.name}"
    return f"{cell.name}{process}   {box.width():.6g} x {box.height():.6g} um"


def _sheet(frame: _Frame, title: str, legend: Sequence[tuple[str, int, int, int]]) -> lay.PixelBuffer:
    """Return the whole picture without the layout: title, legend and scale. One unit is one pixel, y upwards."""
    sheet = _new_view()
    left_aligned = kdb.HAlign.HAlignLeft
    width, height = frame.whole
    _add_text(sheet, _text(title[: width // CHARACTER_WIDTH], MARGIN, height - STRIP / 2, left_aligned))
    left = frame.left + frame.width + MARGIN
    if left + SWATCH[0] >= width:
        legend = []
    room = height - 2 * frame.top
    step = min(float(LEGEND_STEP), max(float(CHARACTER_HEIGHT), room / max(len(legend), 1)))
    for number, (name, fill, line, pattern) in enumerate(legend[: int(room // step)]):
        top = height - int(frame.top + number * step)
        _add_box(sheet, kdb.DBox(left, top - SWATCH[1], left + SWATCH[0] - 1, top - 1), fill, pattern, frame=line)
        _add_text(sheet, _text(name, left + SWATCH[0] + 6, top - SWATCH[1] / 2, left_aligned))
    length_um = _round_length(frame.window.width() / 5)
    end, base = MARGIN + round(length_um / frame.pixel_um), STRIP // 2
    for bar in (
        (MARGIN, base - 1, end, base),
        (MARGIN, base - 5, MARGIN + 1, base + 4),
        (end - 1, base - 5, end, base + 4),
    ):
        _add_box(sheet, kdb.DBox(*bar), INK)
    _add_text(sheet, _text(f"{length_um:g} um", end + 8, base, left_aligned))
    return sheet.get_pixels_with_options(width, height, 1, 1, 1, kdb.DBox(0, 0, width, height))


def _swatch(layer: _Layer) -> tuple[str, int, int, int]:
    """Return the name, fill colour, frame colour and fill pattern of ``layer``."""
    style = layer.style
    return layer.name, style.eff_fill_color(True), style.eff_frame_color(True), style.eff_dither_pattern(True)


def _round_length(longest_um: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above ``longest_um``."""
    power = 10.0 ** floor(log10(longest_um))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= longest_um * (1 + 1e-9))


def _pasted(sheet: lay.PixelBuffer, part: lay.PixelBuffer, left: int, top: int) -> lay.PixelBuffer:
    """Return ``sheet`` with ``part`` at a place counted from the upper left corner.

    The bytes of a buffer are 8 bytes for its size, then 4 bytes per pixel, starting with the top row.
    """
    whole, piece, width = bytearray(sheet.to_bytes()), part.to_bytes(), part.width()
    for row in range(part.height()):
        start = 8 + 4 * ((top + row) * sheet.width() + left)
        whole[start : start + 4 * width] = piece[8 + 4 * row * width : 8 + 4 * (row + 1) * width]
    return lay.PixelBuffer.from_bytes(bytes(whole))
