"""Pictures from geometry: how much of each pixel a layer covers, blending, lettering, PNG.

KLayout's headless ``LayoutView`` draws three layers at a time, one in each colour channel, on black and oversampled;
a channel is then that layer's coverage. The picture is blended from the coverages, so that layers are really
transparent and a fine pattern does not turn into moire.

Arrays are (height, width) or (height, width, 3), row 0 on top; coverages are float32 from 0 to 1, colours uint8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb
    import numpy as np
    from numpy.typing import NDArray

    Coverage = NDArray[np.float32]
    Canvas = NDArray[np.float32]

Color = tuple[int, int, int]
OVERSAMPLING = 2
CHARACTER_WIDTH = (8, 9, 11)  # KLayout's built-in fonts 0 to 2
CHARACTER_HEIGHT = (13, 15, 18)


@dataclass(frozen=True)
class Lettering:
    """A piece of text: its left end and vertical middle. [pixels, y downwards]"""

    text: str
    x: float
    y: float


def layer_coverages(
    cell: kdb.Cell, layers: Sequence[tuple[int, int]], window: kdb.DBox, width: int, height: int
) -> list[Coverage]:
    """Return the coverage of each of ``layers``.

    Args:
        cell: What to draw, with all cells below it.
        layers: (layer, datatype) pairs.
        window: Part of the cell to show; must have the picture's proportions. [um]
        width: Width of the picture. [pixels]
        height: Height of the picture. [pixels]
    """
    view = _view(cell)
    covered: list[Coverage] = []
    for start in range(0, len(layers), 3):
        group = layers[start : start + 3]
        view.clear_layers()
        for channel, (layer, datatype) in enumerate(group):
            _show(view, f"{layer}/{datatype}@1", 0xFF0000 >> (8 * channel))
        pixels = _pixels(view, width, height, window)
        covered += pixels[: len(group)]
    return covered


def lettering_coverage(pieces: Sequence[Lettering], width: int, height: int, font: int) -> Coverage:
    """Return the coverage of ``pieces`` written in KLayout's font ``font`` (0 small, 1, 2 large)."""
    import klayout.db as kdb

    layout = kdb.Layout()
    layout.dbu = 0.125
    cell = layout.create_cell("LETTERING")
    layer = layout.layer(1, 0)
    for piece in pieces:
        text = kdb.DText(piece.text, kdb.DTrans(0, False, round(piece.x) + 0.5, round(height - piece.y) + 0.5))
        text.halign, text.valign = kdb.HAlign.HAlignLeft, kdb.VAlign.VAlignCenter
        cell.shapes(layer).insert(text)
    view = _view(cell)
    view.set_config("text-visible", "true")
    view.set_config("text-color", "#ff0000")
    view.set_config("text-lazy-rendering", "false")
    view.set_config("apply-text-trans", "false")
    view.set_config("default-font-size", str(font))
    _show(view, "1/0@1", 0xFF0000)
    return _pixels(view, width, height, kdb.DBox(0, 0, width, height), resolution=1 / OVERSAMPLING)[0]


def blank(width: int, height: int, color: Color) -> Canvas:
    """Return a picture of one colour."""
    import numpy as np

    return np.full((height, width, 3), color, dtype=np.float32)


def blend(canvas: Canvas, coverage: Coverage, color: Color, alpha: float) -> None:
    """Paint ``color`` with the opacity ``alpha`` over ``canvas`` where ``coverage`` says so."""
    import numpy as np

    rows, columns = np.flatnonzero(coverage.any(axis=1)), np.flatnonzero(coverage.any(axis=0))
    if not alpha or not rows.size:
        return
    used = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    opacity = coverage[used] * np.float32(alpha)
    part = canvas[used]
    for channel in range(3):
        plane = part[:, :, channel]
        plane += opacity * (np.float32(color[channel]) - plane)


def edges(coverage: Coverage, width: int = 1) -> Coverage:
    """Return the coverage of the inner outline of ``coverage``, ``width`` [pixels] wide."""
    import numpy as np

    inner = coverage
    for _ in range(width):
        padded = np.pad(inner, 1, mode="edge")
        inner = np.minimum.reduce([inner, padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]])
    return coverage - inner


def spread(coverage: Coverage, width: int = 1) -> Coverage:
    """Return ``coverage`` grown by ``width`` [pixels] in all directions."""
    import numpy as np

    grown = coverage
    for _ in range(width):
        padded = np.pad(grown, 1)
        rows = np.maximum.reduce([padded[:-2], padded[1:-1], padded[2:]])
        grown = np.maximum.reduce([rows[:, :-2], rows[:, 1:-1], rows[:, 2:]])
    return grown


def png(canvas: Canvas) -> bytes:
    """Return ``canvas`` as the bytes of a PNG file; the same picture gives the same bytes."""
    import struct
    import zlib

    import numpy as np

    height, width, _ = canvas.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each row starts with its filter, 0: none
    rows[:, 1:] = np.clip(np.rint(canvas), 0, 255).astype(np.uint8).reshape(height, 3 * width)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _view(cell: kdb.Cell) -> Any:
    """Return a view of a copy of ``cell``'s layout; a view destroys the layout it was given."""
    from klayout import lay

    view = lay.LayoutView()
    for name, value in (("background-color", "#000000"), ("grid-visible", "false"), ("text-visible", "false")):
        view.set_config(name, value)
    view.show_layout(cell.layout().dup(), False)
    view.active_cellview().cell_name = cell.name
    view.clear_layers()
    view.max_hier()
    return view


def _show(view: Any, source: str, color: int) -> None:
    from klayout import lay

    style = lay.LayerProperties()
    style.source = source
    style.fill_color = style.frame_color = color
    style.dither_pattern = 0
    style.width = 1
    style.transparent = True  # colours are combined bit by bit, so the channels stay apart
    view.insert_layer(view.end_layers(), style)


def _pixels(view: Any, width: int, height: int, window: kdb.DBox, resolution: float = 1.0) -> list[Coverage]:
    """Return the red, green and blue channel of what ``view`` shows of ``window``, as coverages."""
    import numpy as np

    buffer = view.get_pixels_with_options(width, height, 1, OVERSAMPLING, resolution, window)
    words = np.frombuffer(buffer.to_bytes(), dtype="<u4")[2:].reshape(height, width)  # after width and height
    linear = np.square(np.arange(256, dtype=np.float32) / 255)  # KLayout takes the square root of what it averages
    channels = words.view(np.uint8).reshape(height, width, 4)
    return [linear[channels[:, :, index]] for index in (2, 1, 0)]
