"""Cells without taps: their wells are ports, named by texts on the layers of wells or by nothing at all."""

import klayout.db as kdb

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load

WELLS = {"VPB": ("nwell", 2500, 4500), "VNB": ("pwell", 2500, -300)}
TAPLESS = """.subckt inv A VGND VNB VPB VPWR Y
X0 Y A VGND VNB sky130_fd_pr__nfet_01v8 w=1 l=0.15
X1 VPWR A Y VPB sky130_fd_pr__pfet_01v8 w=1 l=0.15
.ends
"""


def cell_without_taps(technology, wells):
    """Return an inverter whose wells are its ports, as those of standard cells, and its layout."""
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    cell = layout.create_cell("INV")
    boxes = {
        "diff": [(0, 0, 2150, 1000), (0, 3000, 2150, 4000)],
        "nwell": [(-500, 2500, 2700, 4600)],
        "nsdm": [(-125, -125, 2275, 1125)],
        "psdm": [(-125, 2875, 2275, 4125)],
        "poly": [(1000, -500, 1150, 4500), (900, 1900, 1250, 2300)],
        "licon1": [
            (x, y, x + 170, y + 170) for x, y in ((400, 400), (1600, 400), (400, 3400), (1600, 3400), (990, 2015))
        ],
    }
    names = {"VGND": (300, 300, 700, 700), "VPWR": (300, 3300, 700, 3700), "Y": (1500, 300, 1900, 3700)}
    names["A"] = (900, 1900, 1300, 2300)
    boxes["li1"] = boxes["li1.pin"] = list(names.values())
    for layer, drawn in boxes.items():
        for box in drawn:
            cell.shapes(technology.layer(layout, layer)).insert(kdb.Box(*box))
    for name, (left, bottom, _, _) in names.items():
        cell.shapes(technology.layer(layout, "li1.label")).insert(kdb.Text(name, left + 50, bottom + 50))
    for name, (well, x, y) in wells.items():
        cell.shapes(technology.layer(layout, f"{well}.pin")).insert(kdb.Box(x - 50, y - 50, x + 50, y + 50))
        cell.shapes(technology.layer(layout, f"{well}.label")).insert(kdb.Text(name, x, y))
    return layout, cell


def compared(technology, wells, netlist=TAPLESS):
    layout, cell = cell_without_taps(technology, wells)
    return compare(extract(layout, cell, technology), read_netlist(NetlistText(netlist), identify_modules=False))


def test_labels_name_the_wells_of_a_cell_without_taps():
    result = compared(load("sky130A"), WELLS)
    assert (result.matched, result.complete, result.mismatches) == (True, True, ())
    assert not result.warnings


def test_a_label_on_the_wrong_well_is_found():
    exchanged = {"VPB": WELLS["VNB"], "VNB": WELLS["VPB"]}
    assert {mismatch.kind for mismatch in compared(load("sky130A"), exchanged).mismatches} == {"swapped_ports"}


def test_a_well_without_taps_needs_no_label_since_its_devices_show_which_it_is():
    result = compared(load("sky130A"), {"VNB": WELLS["VNB"]})
    assert (result.matched, result.complete, result.mismatches) == (True, True, ())
    assert ["VPB" in warning and "without taps" in warning for warning in result.warnings] == [True]


def test_a_well_that_the_netlist_ties_to_a_supply_is_not_tied_by_its_label():
    tied = TAPLESS.replace(" VPB ", " ").replace("Y VPB", "Y VPWR").replace("A Y sky", "A Y VPWR sky")
    kinds = {mismatch.kind for mismatch in compared(load("sky130A"), WELLS, tied).mismatches}
    assert "extra_port" in kinds


def test_a_label_on_poly_names_its_net():
    technology = load("sky130A")
    layout, cell = cell_without_taps(technology, WELLS)
    cell.shapes(technology.layer(layout, "li1.label")).clear()
    for name, x, y in (("VGND", 350, 350), ("VPWR", 350, 3350), ("Y", 1550, 350)):
        cell.shapes(technology.layer(layout, "li1.label")).insert(kdb.Text(name, x, y))
    cell.shapes(technology.layer(layout, "poly.label")).insert(kdb.Text("A", 1075, 4400))
    result = compare(extract(layout, cell, technology), read_netlist(NetlistText(TAPLESS), identify_modules=False))
    assert (result.matched, result.complete, result.mismatches) == (True, True, ())
