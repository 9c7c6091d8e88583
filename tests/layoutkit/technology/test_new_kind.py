"""A kind of device that the engine does not know is added in five files of a copy of it and laid out from a netlist."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import layoutkit

ENGINE = Path(layoutkit.__file__).parent

DECLARATION = """"overlap": {
      "noun": "overlap capacitor",
      "terminals": ["p", "n"],
      "ends": ["p", "n"],
      "letter": "C",
      "terminal_names": {"plus": "p", "minus": "n"},
      "model_names": "overlap",
      "parameters": {"w": {"unit": "m", "compared": true}, "l": {"unit": "m", "compared": true}, "m": {}},
      "rectangle": true,
      "file": {},
      "part": "overlap",
      "none_made": "The marker of an overlap capacitor{place} makes none of {technology}",
      "not_made_because": "a metal is missing below it"
    },
    """
DRAWING = '''"""Draw overlap capacitors: the lowest wires below the next ones, and a rail beside them for the first."""

from layoutkit.draw.module import DrawnRectangles, rectangles_module
from layoutkit.draw.passive import EqualRectangles, nets_of, rectangle_on_grid
from layoutkit.draw.sketch import Sketch
from layoutkit.rectangle import Rectangle


def draw_overlap(layout, technology, block):
    """Return the module of one overlap capacitor."""
    ((name, size, nets),) = block.devices
    width, length, m, warnings = rectangle_on_grid(technology, name, block.spec, size)
    device = EqualRectangles(name, block.spec, width, length, m, *nets_of(name, nets), warnings)
    sketch, cut, (low, high) = Sketch(), technology.cuts[0], technology.conductors[:2]
    side, gap = cut.size + 2 * max(cut.enclose_below_end, cut.enclose_above_end), 2 * high.space
    plates = [Rectangle(i * (width + gap), 0, i * (width + gap) + width, length) for i in range(m)]
    rail = Rectangle(0, -gap - side, plates[-1].right, -gap)
    top = Rectangle(0, length - side, plates[-1].right, length)
    for plate in plates:
        sketch.box(block.spec.markers[0], plate)
        sketch.box(low.layer, Rectangle(plate.left, rail.bottom, plate.right, length))
        sketch.box(high.layer, plate)
        x, y = (technology.snap((plate.left + plate.right - cut.size) / 2), rail.bottom + (side - cut.size) // 2)
        sketch.box(cut.layer, Rectangle(x, y, x + cut.size, y + cut.size))
    sketch.box(high.layer, rail)
    sketch.box(high.layer, top)
    drawn = DrawnRectangles(device, plates, [(device.p, rail), (device.n, top)], labels=False)
    return rectangles_module(layout, technology, block.name, sketch, drawn)
'''
RECIPE = """"overlap": Recipe(
        device_class=lambda _: kdb.DeviceClassCapacitor(),
        terminals={"A": "p", "B": "n"},
        shapes=lambda drawn, spec: drawn.layer(spec.markers[0]),
        loose=lambda *_: [],
        extractor=lambda technology, spec, shapes, conducting: (
            kdb.DeviceExtractorCapacitor(spec.name, 1e-16),
            {"P1": shapes, "P2": shapes, "tA": conducting[technology.conductors[0].name],
             "tB": conducting[technology.conductors[1].name]},
        ),
    ),
    """
PROCESS = """technology: with_overlaps
based_on: generic
layers: {overlap.mark: {gds: [90, 0], purpose: marker}}
rules: [{id: OVERLAP, kind: width, layer: overlap.mark, value: 1.0}]
devices:
  overlap: {type: overlap, model: overlap, default: true, min_w: OVERLAP, min_l: OVERLAP, markers: [overlap.mark]}
"""
ADDED = {  # the place in a file before which the new lines stand
    "technology/device_kinds.json": ('"inductor": {', DECLARATION),
    "draw/generators.py": ('"resistor": _resistors,', '"overlap": draw_overlap,\n    '),
    "extract/passive_devices.py": ('"pnp": Recipe(', RECIPE),
}
IMPORT = ("from layoutkit.technology.device_kinds import KINDS\n", "from layoutkit.draw.overlap import draw_overlap\n")
PROGRAM = """
import json, sys
import layoutkit
from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.json_reader import circuit_from_json
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest

report = build_layout(LayoutRequest("coupled.spice", "with_overlaps.yaml", "ws", last_stage="lvs"))
terminals = {"p": "a", "n": "b"}
read = circuit_from_json({"name": "c", "devices": [{"id": "C1", "type": "overlap", "terminals": terminals}]})
drawn = layoutkit.draw("overlap", "with_overlaps.yaml", w=3.0, l=2.0)
print(json.dumps({
    "drc": report["drc"]["violations"], "complete": report["drc"]["complete"], "lvs": report["lvs"]["matched"],
    "read": [device.type for device in read.devices],
    "pcell": len(list(drawn.cell.begin_shapes_rec(drawn.cell.layout().layer(90, 0)).each())),
    "extracted": [(d.model, round(d.w * 1e6, 3), round(d.l * 1e6, 3), d.m) for d in
                  read_netlist("ws/extracted.spice").devices if d.model == "overlap"],
}))
"""


def test_a_kind_of_device_is_added_in_five_files(tmp_path):
    copy = tmp_path / "layoutkit"
    shutil.copytree(ENGINE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, (anchor, lines) in ADDED.items():
        text = (copy / name).read_text("utf-8")
        assert text.count(anchor) == 1, name
        (copy / name).write_text(text.replace(anchor, lines + anchor), "utf-8")
    generators = copy / "draw/generators.py"
    generators.write_text(generators.read_text("utf-8").replace(IMPORT[0], IMPORT[1] + IMPORT[0], 1), "utf-8")
    (copy / "draw/overlap.py").write_text(DRAWING, "utf-8")
    (tmp_path / "with_overlaps.yaml").write_text(PROCESS)
    (tmp_path / "coupled.spice").write_text(
        ".subckt coupled in out vdd vss\nM1 out in vss vss nmos_1v8 w=2u l=0.2u\n"
        "M2 out in vdd vdd pmos_1v8 w=4u l=0.2u\n"
        "X1 out in overlap w=3u l=2u\nX2 in vss overlap w=5u l=4u m=2\n.ends\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ENGINE.parent)])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["drc"], found["complete"], found["lvs"]) == ([], True, True)
    assert found["read"] == ["overlap"]
    assert found["pcell"] == 1
    assert sorted(map(tuple, found["extracted"])) == [("overlap", 3.0, 2.0, 1), ("overlap", 5.0, 4.0, 2)]
    assert len({*ADDED, "draw/overlap.py", "with_overlaps.yaml"}) == 5
