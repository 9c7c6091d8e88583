"""Draw the layouts of the suite small, beside the scoreboard: ``make board`` runs this after the suite.

    python tests/board_pictures.py BUILD/SUITE BOARD

The pictures are BOARD/TECHNOLOGY/NAME.png, one for each finished row of BOARD/board.json; those of other rows are
removed. The picture of the README is that of its OTA, with the legend.
"""

import json
import sys
from pathlib import Path

import klayout.db as kdb

from layoutkit.layout.reports import LAYOUT, noted, sha256_of
from layoutkit.technology import load
from layoutkit.view.render import ViewOptions, render
from skill_pictures import with_palette

SIDE = 420
"""Longer side. [pixels]"""
README_SIDE = 900
README_PICTURE = Path(__file__).resolve().parents[1] / "references" / "images" / "ota_5t_sky130A.png"


def picture_of(path, technology, side=SIDE, *, legend=False):
    """Return the layout in the file ``path`` as a PNG file of few colours, with the SHA-256 of the layout."""
    layout = kdb.Layout()
    layout.read(str(path))
    cell = layout.top_cell()
    box = cell.dbbox()
    longer = max(box.width(), box.height())
    width, height = (max(60, round(side * length / longer)) for length in (box.width(), box.height()))
    view = ViewOptions(width=width, height=height, legend=legend, labels=legend)
    return noted(with_palette(render(cell, load(technology), view).png), {LAYOUT: sha256_of(path)})


def main(suite, board):
    """Write the pictures of all finished rows, and remove those of others."""
    rows = json.loads((board / "board.json").read_text(encoding="utf-8"))["rows"]
    drawn = set()
    for key, row in rows.items():
        if row["status"] == "done":
            technology, _, name = key.partition(" ")
            target = board / technology / f"{name}.png"
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(picture_of(suite / technology / name / "layout.gds", technology))
            drawn.add(target)
    for path in set(board.rglob("*.png")) - drawn:
        path.unlink()
    ota = suite / "sky130A" / "ota_5t" / "layout.gds"
    if ota.is_file():
        README_PICTURE.write_bytes(picture_of(ota, "sky130A", README_SIDE, legend=True))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
