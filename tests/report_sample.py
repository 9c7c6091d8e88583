"""What a report page is made from, with a name of one's choice wherever a name from a file appears."""

import klayout.db as kdb

from layoutkit.technology import load
from layoutkit.view.drawing_data import drawing_data, shapes_data
from layoutkit.view.report_page import ReportInputs

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&{{data}}"


def nested_layout():
    """Return a cell with holes, a path, all eight orientations and an array of an array."""
    layout = kdb.Layout()
    layout.dbu = 0.001
    poly, metal = layout.layer(2, 0), layout.layer(4, 0)
    leaf, middle, top = (layout.create_cell(name) for name in ("LEAF", "MIDDLE", "TOP"))
    ring = kdb.Polygon(kdb.Box(0, 0, 900, 500))
    ring.insert_hole(kdb.Box(100, 100, 300, 200))
    leaf.shapes(poly).insert(ring)
    leaf.shapes(metal).insert(kdb.Path([kdb.Point(0, 0), kdb.Point(700, 0), kdb.Point(700, 900)], 80))
    leaf.shapes(metal).insert(kdb.Polygon([kdb.Point(-50, 0), kdb.Point(0, 400), kdb.Point(300, 0)]))
    place = kdb.Trans(1, True, 100, 50)
    middle.insert(kdb.CellInstArray(leaf.cell_index(), place, kdb.Vector(1500, 20), kdb.Vector(-30, 1400), 3, 2))
    for turn in range(8):
        top.insert(kdb.CellInstArray(leaf.cell_index(), kdb.Trans(turn % 4, turn > 3, 6000 * turn, 7000)))
    turned = kdb.Trans(3, False, 9000, 0)
    top.insert(kdb.CellInstArray(middle.cell_index(), turned, kdb.Vector(7000, 0), kdb.Vector(0, 1), 2, 1))
    top.shapes(poly).insert(kdb.Box(-100, -200, 300, 400))
    for shape in (
        ring,
        kdb.Box(50, 150, 400, 450),
        kdb.Polygon([kdb.Point(-80, 0), kdb.Point(200, 460), kdb.Point(500, 0)]),
    ):
        polygon = shape if isinstance(shape, kdb.Polygon) else kdb.Polygon(shape)
        top.shapes(poly).insert(polygon * 20)  # they overlap each other, and the triangle a part of the ring's hole
    for box in (kdb.Box(0, -20_000, 9000, -12_000), kdb.Box(5000, -16_000, 20_000, -9000)):
        top.shapes(metal).insert(box)
    return layout, top


def inputs_of(name="amp", **changes):
    layout, top = nested_layout()
    circuit = {
        "name": name,
        "devices": [
            {
                "id": f"M{name}",
                "type": "nmos",
                "model": name,
                "params": {"w": 2e-6},
                "terminals": {"d": name, "g": "in"},
            }
        ],
    }
    violation = {"rule_id": name, "rule_description": name, "severity": "error", "count": 2}
    place = {"x": 1.0, "y": 2.0, "layer": name, "box": [0.9, 1.9, 1.1, 2.1], "distance": 0.1}
    drc = {
        "passed": False,
        "complete": False,
        "total_violations": 2,
        "rules_checked": 7,
        "rules_unchecked": [{"rule_id": "R9", "reason": name}],
        "layers_unchecked": [{"name": name, "layer": "1/2"}],
        "layers_waived": [name],
        "violations": [{**violation, "locations": [place]}],
    }
    report = {
        "circuit": {"name": name, "device_count": 1, "net_count": 2},
        "technology": name,
        "recognition": {
            "supplies": [{"net": name, "kind": "power", "reason": name}],
            "groups": [{"id": name, "what": name, "devices": [f"M{name}"]}],
            **{
                key: [name]
                for key in (
                    "cut",
                    "across_cells",
                    "symmetry",
                    "not_matched",
                    "drain_source_exchanged",
                    "carry_both_ways",
                    "undefined_cells",
                )
            },
        },
        "drc": drc,
        "warnings": [name],
        "remaining_stages": ["lvs"],
    }
    shapes = shapes_data([kdb.Polygon(kdb.Box(0, 0, 500, 200))])
    nets = {
        "nets": [{"name": name, "pins": [f"M{name}.d"], "shapes": {"poly": shapes}}],
        "devices": [{"name": f"M{name}", "is": name, "nets": {"d": name}, "boxes": [0, 0, 100, 100]}],
        "labels": [[name, 0, 0]],
    }
    values = {
        "report": report,
        "circuit": circuit,
        "drawing": drawing_data(top, load("generic")),
        "picture": b"\x89PNG",
        "nets": nets,
        "faults": (name,),
        "command": name,
        "options": {"netlist_text": name},
        "versions": {"program": name},
        "digests": {"layout_sha256": "0" * 64},
    }
    del layout
    return ReportInputs(**{**values, **changes})
