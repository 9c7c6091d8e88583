"""Cost of the design rule check at a million shapes, flat and hierarchical, against the KLayout application.

    python tests/bench/drc.py [--runs N]

Both judge the same layout by the same rules, from the file to the report, each as a process of its own. The rules are
those of sky130A that a KLayout deck states in one call, so that neither side is spared a step.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from run import HEADER, print_row, ratio

EXECUTE = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"  # what is measured is started by Python
SHAPES = 1_000_000
DECK_HEAD = """
source($input)
report("bench", $report)
{deep}
li1 = input(67, 20)
met1 = input(68, 20)
poly = input(66, 20)
diff = input(65, 20)
licon = input(66, 44)
mcon = input(67, 44)
nsdm = input(93, 44)
"""
DECK_RULES = {
    "li.1": 'li1.width(0.17.um, euclidian).output("li.1")',
    "li.3": 'li1.space(0.17.um, euclidian).output("li.3")',
    "li.6": 'li1.with_area(0, 0.0561.um).output("li.6")',
    "m1.1": 'met1.width(0.14.um, euclidian).output("m1.1")',
    "m1.2": 'met1.space(0.14.um, euclidian).output("m1.2")',
    "m1.4": 'met1.enclosing(mcon, 0.03.um, euclidian).output("m1.4"); (mcon - met1).output("m1.4")',
    "m1.6": 'met1.with_area(0, 0.083.um).output("m1.6")',
    "m1.7": 'met1.holes.with_area(0, 0.14.um).output("m1.7")',
    "poly.1a": 'poly.width(0.15.um, euclidian).output("poly.1a")',
    "poly.2": 'poly.space(0.21.um, euclidian).output("poly.2")',
    "licon.2": 'licon.space(0.17.um, euclidian).output("licon.2")',
    "licon.5a": 'd = licon & diff; diff.enclosing(d, 0.04.um, euclidian).output("licon.5a")',
    "licon.8": 'p = licon & poly; poly.enclosing(p, 0.05.um, euclidian).output("licon.8")',
    "ct.2": 'mcon.space(0.19.um, euclidian).output("ct.2")',
    "ct.4": '(mcon - li1).output("ct.4")',
    "n/psd.10a": 'nsdm.with_area(0, 0.265.um).output("n/psd.10a")',
}


def measure(runs: int) -> None:
    """Print one line a measurement; one saying so where the KLayout application is not installed."""
    application = shutil.which("klayout")
    if application is None:
        print("DRC of 1e6 shapes: not measured, the KLayout application is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        _write_layouts(Path(folder))
        for name, layout, mode in (("flat", "flat.gds", ""), ("hierarchical", "cells.gds", "deep")):
            (Path(folder) / "bench.drc").write_text(_deck(mode), encoding="utf-8")
            own = ["skills/drc-check/scripts/run_check.py", "--technology", "sky130A", "--layout-path", layout]
            own += ["--rule-ids", json.dumps(list(DECK_RULES)), "--report-path", "own.lyrdb"]
            theirs = [application, "-b", "-r", "bench.drc", "-rd", f"input={layout}", "-rd", "report=deck.lyrdb"]
            measured = ratio(own, ["-c", EXECUTE, *theirs], min(runs, 3), folder)
            print_row(f"DRC of 1e6 shapes, {name} / KLayout application", measured, "at most 1.0")


def _deck(deep: str) -> str:
    return DECK_HEAD.format(deep=deep) + "\n".join(DECK_RULES.values()) + "\n"


def _write_layouts(folder: Path) -> None:
    """Write a million shapes as an array of one cell, cells.gds, and flat, flat.gds."""
    import klayout.db as kdb

    from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
    from layoutkit.layout.files import write_layout
    from layoutkit.technology import load

    tech = load("sky130A")
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    device = transistor(tech, "M1", "nmos", MosSize(8e-6, 0.5e-6, nf=4), None)
    module = draw_mos(layout, tech, MosSpec(device, "UNIT"))
    unit, box = module.cell, module.cell.bbox()
    across = round((SHAPES / sum(unit.shapes(index).size() for index in layout.layer_indexes())) ** 0.5)
    top = layout.create_cell("TOP")
    pitch = kdb.Vector(box.width() + 2000, 0), kdb.Vector(0, box.height() + 2000)
    top.insert(kdb.CellInstArray(unit.cell_index(), kdb.Trans(0, False, 0, 0), *pitch, across, across))
    write_layout(layout, folder / "cells.gds")
    top.flatten(True)
    write_layout(layout, folder / "flat.gds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="pairs measured after one warm-up (default 3)")
    print(HEADER)
    measure(parser.parse_args().runs)
