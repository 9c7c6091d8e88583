"""HBTs of a pair, mirror, quad and amplifier in the flow: one centroid, equal surroundings, clean."""

from collections import defaultdict

import klayout.db as kdb
import pytest

from layoutkit.circuit import map_circuit, read_netlist
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load

MIXER = """.subckt mixer vcc gnd rfp rfn lop lon bias ifp ifn
XQ1 a rfp t gnd npn13G2 Nx=4 m=2
XQ2 b rfn t gnd npn13G2 Nx=4 m=2
XQ3 ifp lop a gnd npn13G2 Nx=2 m=2
XQ4 ifn lon a gnd npn13G2 Nx=2 m=2
XQ5 ifp lon b gnd npn13G2 Nx=2 m=2
XQ6 ifn lop b gnd npn13G2 Nx=2 m=2
XQ7 bias bias gnd gnd npn13G2 Nx=4 m=2
XQ8 t bias gnd gnd npn13G2 Nx=4 m=4
XR1 vcc ifp gnd rppd w=1u l=10u
XR2 vcc ifn gnd rppd w=1u l=10u
.ends
"""
AMPLIFIER = """.subckt lna vcc gnd in out ib
XQ1 c1 b1 gnd gnd npn13G2 Nx=8
XQ2 c2 vb c1 gnd npn13G2 Nx=8
XQ3 vcc c2 e3 gnd npn13G2 Nx=4
XQ4 ib ib gnd gnd npn13G2 Nx=2
XRB ib b1 gnd rppd w=1u l=20u
XRC vcc c2 gnd rppd w=4u l=5u
XRE e3 gnd gnd rppd w=4u l=10u
XRV vcc vb gnd rppd w=1u l=10u
XC1 in b1 cap_cmim w=20u l=20u
XC2 e3 out cap_cmim w=20u l=20u
.ends
"""


def built(folder, text):
    path = folder / "circuit.spice"
    path.write_text(text)
    report = build_layout(LayoutRequest(str(path), "sg13g2", str(folder / "ws"), last_stage="lvs"))
    assert (report["drc"]["passed"], report["drc"]["complete"], report["drc"]["total_violations"]) == (True, True, 0)
    assert (report["lvs"]["mismatches"], report["lvs"]["verdict"]) == ([], "complete")
    layout = kdb.Layout()
    layout.read(str(folder / "ws" / "layout.gds"))
    return layout


def units(layout):
    """Return the middles of the units of each transistor, by the texts in them, and the cell that holds them all."""
    text_layer, marker = (layout.find_layer(*load("sg13g2").spec(name).gds) for name in ("TEXT", "TRANS"))
    found = {}
    for cell in layout.each_cell():
        if cell.child_cells() == 0 and cell.name.startswith("npn_"):
            boxes = [shape.bbox() for shape in cell.shapes(marker).each()]
            middles = defaultdict(list)
            for shape in cell.shapes(text_layer).each():
                if shape.is_text() and shape.text_string.startswith("XQ"):
                    box = next(box for box in boxes if box.contains(kdb.Point(shape.text.x, shape.text.y)))
                    middles[shape.text_string].append(box.center())
            found[frozenset(middles)] = middles
    return found


def test_pair_mirror_and_quad_have_one_centroid_each(tmp_path):
    found = units(built(tmp_path, MIXER))
    assert set(found) == {frozenset(names) for names in (("XQ1", "XQ2"), ("XQ7", "XQ8"), ("XQ3", "XQ4", "XQ5", "XQ6"))}
    for middles in found.values():
        centroids = {
            name: (sum(at.x for at in places) / len(places), sum(at.y for at in places) / len(places))
            for name, places in middles.items()
        }
        assert len(set(centroids.values())) == 1, centroids


def test_an_amplifier_of_hbts_is_clean(tmp_path):
    built(tmp_path, AMPLIFIER)


@pytest.mark.parametrize(
    ("change", "joined"),
    [
        (("Nx=2 m=2", "Nx=2"), True),  # one unit each
        (("XQ6 ifn lop b", "XQ6 ifp lop b"), False),  # no longer crossed
        (("XQ6 ifn lop b gnd npn13G2 Nx=2", "XQ6 ifn lop b gnd npn13G2 Nx=4"), False),  # another unit
    ],
)
def test_a_quad_is_four_equal_transistors_with_crossed_collectors(tmp_path, change, joined):
    path = tmp_path / "circuit.spice"
    path.write_text(MIXER.replace(*change))
    circuit = map_circuit(read_netlist(str(path)), load("sg13g2"))
    groups = [set(group.devices) for group in suggest_constraints(circuit).matching]
    assert ({"XQ3", "XQ4", "XQ5", "XQ6"} in groups) is joined


def test_three_crossed_pairs_share_no_device_between_groups(tmp_path):
    third = "XQ9 ifp lo3 a gnd npn13G2 Nx=2\nXQ10 ifn lo3 b gnd npn13G2 Nx=2\nXR1"
    path = tmp_path / "circuit.spice"
    path.write_text(MIXER.replace("Nx=2 m=2", "Nx=2").replace("ifp ifn\n", "ifp ifn lo3\n", 1).replace("XR1", third))
    circuit = map_circuit(read_netlist(str(path)), load("sg13g2"))
    named = [name for group in suggest_constraints(circuit).matching for name in group.devices]
    assert len(named) == len(set(named))
