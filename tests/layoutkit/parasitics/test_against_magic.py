"""Capacitance of whole circuits against Magic's, which reads the same coefficients from its own technology files."""

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.draw.capacitor import CapacitorSpec, draw_capacitor
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.draw.passive import capacitor, resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.external_engines import ExternalRun, external_parasitics
from layoutkit.parasitics.net_shapes import net_shapes
from layoutkit.parasitics.parasitic_extraction import PexOptions, extract_parasitics
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize

NETLIST = Path(__file__).parents[3] / "skills/netlist-to-gds/assets/ota_5t.spice"
IN_PDK = {
    "sky130A": "sky130A/libs.tech/magic/sky130A.tech",
    "gf180mcuD": "gf180mcuD/libs.tech/magic/gf180mcuD.tech",
    "sg13g2": "ihp-sg13g2/libs.tech/magic/ihp-sg13g2.tech",
}
SCRIPT = """set scalefac [tech lambda]
if {[lindex $scalefac 1] < 2} { scalegrid 1 2 }
drc off
gds read layout.gds
load CELL
select top cell
flatten flat
load flat
select top cell
extract all
quit -noprompt
"""


def technology_file(name):
    """Return Magic's technology file of a process; the test is skipped where there is none, or no Magic."""
    if shutil.which("magic") is None:
        pytest.skip("skipped: needs magic")
    path = Path(os.environ.get("PDK_ROOT", "/nowhere")) / IN_PDK[name]
    if not path.is_file():
        pytest.skip(f"skipped: needs magic's technology file $PDK_ROOT/{IN_PDK[name]}")
    return path


def magics_capacitances(folder, cell, technology):
    """Return the capacitance of each net to everything [fF], and the net of the substrate, as Magic extracts them."""
    (folder / "extract.tcl").write_text(SCRIPT.replace("CELL", cell), encoding="utf-8")
    command = ["magic", "-dnull", "-noconsole", "-rcfile", os.devnull, "-T", str(technology), "extract.tcl"]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    totals, substrate, same = defaultdict(float), "", {}
    for line in (folder / "flat.ext").read_text(encoding="utf-8").splitlines():
        words = [word.strip('"') for word in line.split()]
        if words and words[0] == "node":
            totals[words[1]] += float(words[3]) / 1000
        elif words and words[0] == "substrate":
            substrate = words[1]
        elif words and words[0] == "equiv":
            same[words[2]] = words[1]
        elif words and words[0] == "cap":
            for net in words[1:3]:
                totals[same.get(net, net)] += float(words[3]) / 1000
    return dict(totals), substrate


def with_a_label_on_every_net(extraction, layout):
    """Put a label on nets without one, and return the name of each net."""
    technology, names = extraction.technology, {}
    cell = layout.cell(extraction.cell_name)
    for number, net in extraction.nets.items():
        names[number] = net.name if net.labels else f"net_{number}"
        if net.labels:
            continue
        for conductor in technology.conductors:
            boxes = [part.bbox() for part in extraction.shapes(number, conductor.name).decompose_trapezoids_to_region()]
            if boxes:
                place = max(boxes, key=kdb.Box.area).center()
                text = kdb.Text(names[number], place.x, place.y)
                cell.shapes(technology.layer(layout, conductor.label_layer)).insert(text)
                break
    return names


@pytest.mark.parametrize("name", sorted(IN_PDK))
def test_every_net_of_the_demo_has_magics_capacitance(name, finished_layout, tmp_path):
    """Within a fifth above 1 fF. The net of the substrate is left out: it is what the others have capacitance to."""
    path = technology_file(name)
    _, workspace = finished_layout(NETLIST, name)
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    extraction = extract(layout, choose_cell(layout, None), load(name))
    ours = capacitances(net_shapes(extraction), extraction.technology)
    names = with_a_label_on_every_net(extraction, layout)
    layout.write(str(tmp_path / "layout.gds"))
    magics, substrate = magics_capacitances(tmp_path, extraction.cell_name, path)
    judged = [number for number in names if names[number] != substrate and magics.get(names[number], 0.0) > 1.0]
    assert len(judged) == len(names) - 1 == 7
    for number in judged:
        assert ours.total_fF(number) == pytest.approx(magics[names[number]], rel=0.2), names[number]


@pytest.mark.parametrize("name", sorted(IN_PDK))
def test_both_engines_state_the_same_capacitance_of_every_net(name, finished_layout):
    """Of inner nets and of the substrate's, and not what Magic's netlists by hierarchy or with resistors make of it."""
    if not list(technology_file(name).parent.glob("*.magicrc")):
        pytest.skip("skipped: needs the .magicrc of the process kit")
    _, workspace = finished_layout(NETLIST, name)
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    circuit, technology = read_netlist(workspace / "circuit.json"), load(name)
    ours = extract_parasitics(layout, circuit, technology, PexOptions("c"))
    magics = external_parasitics(layout, circuit, technology, PexOptions("rc"), ExternalRun("magic"))
    totals = {net.net: net.total_fF for net in magics.nets}
    assert sorted(totals) == sorted(circuit.nets)
    for net in ours.nets:
        assert net.total_fF == pytest.approx(totals[net.net], rel=0.2), net.net
    assert f".subckt {circuit.name} {' '.join(circuit.ports)}\n" in magics.spice


PLANES = ["well", "active", "locali", "metal1", "metal2", "metal3", "cap1", "metal4", "cap2", "metal5"]
PLANES += ["metali", "block", "comment"]
CORRECTIONS = {
    # The plates of capacitors, which shield, have no place between the metals; what they are below, counts nothing.
    "sky130A": [
        *((rf"(planeorder +{plane})\s+\d+", rf"\1 {number}") for number, plane in enumerate(PLANES, 1)),
        (r"(defaultoverlap +allm4 metal4) allm3 metal3 84.03", r"\g<0>\n \1 *mimcap cap1 0.0001"),
        (r"(defaultoverlap +allm5 metal5) allm4 metal4 68.33", r"\g<0>\n \1 *mimcap2 cap2 0.0001"),
    ],
    # Gates count as poly over field oxide, against the comment there: the models of transistors have them.
    "sg13g2": [
        (r"(default(?:sidewall|areacap|perimeter)) +allpoly active", r"\1 *poly active"),
        (r"(default(?:overlap|sideoverlap)) +allpoly active (pwell|nwell)", r"\1 *poly active \2"),
    ],
}


def corrected(name, folder):
    """Return Magic's technology file of a process with what it counts twice left out."""
    shutil.copytree(technology_file(name).parent, folder)
    for pattern, text in CORRECTIONS[name]:
        count = 0
        for path in sorted(folder.glob("*.tech")):
            written, times = re.subn(pattern, text, path.read_text(encoding="utf-8"))
            path.write_text(written, encoding="utf-8")
            count += times
        if not count:
            pytest.skip(f"skipped: {name}'s technology file has no line like {pattern}")
    return folder / technology_file(name).name


def both(technology, module, folder, path):
    """Return the capacitance of each net of a drawn module here and in Magic. [fF]"""
    extraction = extract(module.layout, module.cell, technology)
    found = capacitances(net_shapes(extraction), technology)
    names = with_a_label_on_every_net(extraction, module.layout)
    folder.mkdir()
    module.layout.write(str(folder / "layout.gds"))
    magics, substrate = magics_capacitances(folder, module.cell.name, path)
    return {name: (found.total_fF(net), magics[name]) for net, name in names.items() if name not in ("", substrate)}


def new_layout(technology):
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    return layout


def test_magic_counts_metal_through_the_plate_of_a_capacitor(tmp_path):
    """The field says that there is next to nothing (``test_capacitance_fields``). 3 plates of 12 um by 7 um."""
    technology = load("sky130A")
    device = capacitor(technology, "C1", "cap_mim_m3_1", PassiveSize(12e-6, 7e-6, 3), {"p": "a", "n": "b"})

    def drawn():
        return draw_capacitor(new_layout(technology), technology, CapacitorSpec("X", device))

    through = 3 * 12 * 7 * 84.03 / 1000
    plain = both(technology, drawn(), tmp_path / "plain", technology_file("sky130A"))
    for ours, magics in plain.values():
        assert 0.5 * through < magics - ours < 1.2 * through
    for ours, magics in both(technology, drawn(), tmp_path / "own", corrected("sky130A", tmp_path / "kit")).values():
        assert ours == pytest.approx(magics, rel=0.2)


def test_magic_counts_gates_of_sg13g2_as_poly_over_field_oxide(tmp_path):
    technology = load("sg13g2")
    made = transistor(technology, "M1", "nmos", MosSize(10e-6, 5e-6, 1, 1), {terminal: terminal for terminal in "dgsb"})

    def drawn():
        return draw_mos(new_layout(technology), technology, MosSpec(made, "X"))

    ours, magics = both(technology, drawn(), tmp_path / "plain", technology_file("sg13g2"))["g"]
    assert magics - ours == pytest.approx(10 * 5 * 87.433 / 1000, rel=0.2)
    ours, magics = both(technology, drawn(), tmp_path / "own", corrected("sg13g2", tmp_path / "kit"))["g"]
    assert ours == pytest.approx(magics, rel=0.2)


def test_both_engines_divide_what_is_inside_a_resistor_among_its_ends():
    """In gf180mcuD the models have nothing of the heads, so that both programs count all of them."""
    technology = load("gf180mcuD")
    if not list(technology_file("gf180mcuD").parent.glob("*.magicrc")):
        pytest.skip("skipped: needs the .magicrc of the process kit")
    device = resistor(technology, "R1", "resistor", PassiveSize(2e-6, 60e-6, 1, 6), {"p": "a", "n": "c"})
    module = draw_resistors(new_layout(technology), technology, ResistorSpec("X", (device,), "b"))
    circuit = extract(module.layout, module.cell, technology).circuit
    ours = extract_parasitics(module.layout, circuit, technology, PexOptions("c"))
    magics = external_parasitics(module.layout, circuit, technology, PexOptions("c"), ExternalRun("magic"))
    totals = {net.net: net.total_fF for net in magics.nets}
    assert sorted(totals) == ["a", "b", "c"]
    for net in ours.nets:
        assert net.total_fF == pytest.approx(totals[net.net], rel=0.2), net.net
