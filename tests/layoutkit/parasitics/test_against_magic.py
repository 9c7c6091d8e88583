"""Capacitance of whole circuits against Magic's, which reads the same coefficients from its own technology files."""

import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell
from layoutkit.parasitics.capacitance import capacitances
from layoutkit.parasitics.external_engines import ExternalRun, external_parasitics
from layoutkit.parasitics.net_shapes import net_shapes
from layoutkit.parasitics.parasitic_extraction import PexOptions, extract_parasitics
from layoutkit.technology import load

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
