"""Diodes from netlist to verdict: drawn clean, extracted with the area and perimeter of arithmetic, compared."""

import re
import shutil
import subprocess
from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.circuit import Circuit, Device, read_netlist, write_spice
from layoutkit.circuit.passive_map import with_sides
from layoutkit.draw.diode import diode, draw_diode
from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError, NetlistError, UnsupportedOperationError
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize
from patience import WATCHDOG_S
from thorough import processes

DIODES = [
    (name, spec.name) for name in processes() for spec in load(name).passives.values() if spec.kind.name == "diode"
]
REAL = sorted({name for name, _ in DIODES})
ANODE_IS_SUBSTRATE = {"sky130A": "diode_pw2nd_05v5", "gf180mcuD": "diode_nd2ps_03v3", "sg13g2": "dantenna"}
CATHODE_IS_WELL = {"sky130A": "diode_pd2nw_05v5", "gf180mcuD": "diode_pd2nw_03v3", "sg13g2": "dpantenna"}
MODELS = {"sky130A": "sky130_fd_pr__"}


def drawn(technology, flavour, w_um, l_um, m=1):
    tech = load(technology)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    device = diode(tech, "D1", flavour, PassiveSize(w_um * 1e-6, l_um * 1e-6, m), {"p": "a", "n": "k"})
    return tech, draw_diode(layout, tech, "X", device)


def circuit(flavour, w_um, l_um, m=1, nets=("a", "k")):
    params = {"w": w_um * 1e-6, "l": l_um * 1e-6, "m": m}
    return Circuit("x", (Device("D1", "diode", flavour, params, dict(zip("pn", nets, strict=True))),), ("a", "k"))


def judged(tech, module, netlist):
    return compare(extract(module.layout, module.cell, tech), netlist)


def change(module, tech, layer, box, *, draw):
    """Add ``box`` [dbu] to a layer or erase it there."""
    shapes = module.cell.shapes(tech.layer(module.layout, layer))
    region = kdb.Region(shapes)
    shapes.clear()
    shapes.insert(region + kdb.Region(box) if draw else region - kdb.Region(box))


@pytest.mark.parametrize(("technology", "flavour"), DIODES)
def test_every_diode_is_clean_and_has_the_area_and_perimeter_of_its_sides(technology, flavour):
    spec, um = load(technology).passive(flavour), load(technology).to_um
    least = um(spec.min_w)
    longer = um(load(technology).snap_up(max(spec.min_l, spec.min_area / spec.min_w)))
    long = min(3.4, um(spec.max_l)) if spec.max_l else 3.4
    for w_um, l_um, m in ((least, longer, 2), (max(1.2, least), long, 1)):
        tech, module = drawn(technology, flavour, w_um, l_um, m)
        report = check(module.layout, module.cell, tech)
        assert (report.complete, [verdict.rule.id for verdict in report.violated]) == (True, [])
        extraction = extract(module.layout, module.cell, tech)
        (device,) = extraction.devices
        areas = [round(part.w_um * part.l_um, 4) for part in device.fingers]
        perimeters = [round(2 * (part.w_um + part.l_um), 4) for part in device.fingers]
        assert (device.device, areas, perimeters) == (
            flavour,
            [round(w_um * l_um, 4)] * m,
            [round(2 * (w_um + l_um), 4)] * m,
        )
        assert not any(extraction.ignored.values())
        result = compare(extraction, circuit(flavour, w_um, l_um, m))
        assert result.matched, [mismatch.message for mismatch in result.mismatches]
        assert result.complete


@pytest.mark.parametrize("technology", REAL)
def test_an_exchanged_another_or_a_missing_diode_is_found(technology):
    flavour, other = CATHODE_IS_WELL[technology], ANODE_IS_SUBSTRATE[technology]
    tech, module = drawn(technology, flavour, 2.0, 1.0, 3)

    def kinds(netlist):
        return {mismatch.kind for mismatch in judged(tech, module, netlist).mismatches}

    assert kinds(circuit(flavour, 2.0, 1.0, 3)) == set()
    assert kinds(circuit(flavour, 1.0, 2.0, 3)) == set()  # the same rectangle
    assert kinds(circuit(flavour, 6.0, 1.0)) == {"wrong_parameter"}  # the same area, less perimeter
    assert kinds(circuit(flavour, 2.01, 1.0, 3)) == {"wrong_parameter"}
    assert kinds(circuit(flavour, 2.0, 1.0, 2)) == {"wrong_parameter"}
    for area, perimeter in ((2.5e-12, 5e-6), (2.0e-12, 5e-6), (2.0e-12, 7e-6), (1.9e-12, 6e-6)):  # no rectangle has two
        netlist = circuit(flavour, 2.0, 1.0, 3)
        odd = replace(netlist.devices[0], params={"area": area, "perimeter": perimeter, "m": 3})
        (mismatch,) = judged(tech, module, replace(netlist, devices=(odd,))).mismatches
        text = f"{round(3e12 * area, 6):g} um2 and {round(3e6 * perimeter, 6):g} um in the netlist"
        assert (mismatch.kind, text in mismatch.message) == ("wrong_parameter", True)
    assert kinds(circuit(flavour, 2.0, 1.0, 3, ("k", "a")))
    assert kinds(circuit(other, 2.0, 1.0, 3))
    assert "extra_device" in kinds(Circuit("x", (), ("a", "k")))
    erased, empty = drawn(technology, flavour, 2.0, 1.0)
    for name in tech.passive(flavour).markers:
        empty.cell.shapes(erased.layer(empty.layout, name)).clear()
    assert "missing_device" in {m.kind for m in judged(erased, empty, circuit(flavour, 2.0, 1.0)).mismatches}
    assert not extract(empty.layout, empty.cell, erased).devices


@pytest.mark.parametrize("technology", REAL)
def test_a_marker_over_part_of_the_diffusion_or_over_none_is_reported(technology):
    flavour = ANODE_IS_SUBSTRATE[technology]
    marker = load(technology).passive(flavour).markers[0]
    tech, module = drawn(technology, flavour, 2.0, 1.0)
    junction = module.gates[0].box
    right = kdb.Box(junction.right - 200, junction.bottom - 100, junction.right + 100, junction.top + 100)
    change(module, tech, marker, right, draw=False)
    found = judged(tech, module, circuit(flavour, 2.0, 1.0))
    assert "unrecognised_device" in {mismatch.kind for mismatch in found.mismatches}
    tech, module = drawn(technology, flavour, 2.0, 1.0)
    change(module, tech, marker, kdb.Box(50_000, 0, 51_000, 1000), draw=True)
    (mismatch,) = judged(tech, module, circuit(flavour, 2.0, 1.0)).mismatches
    assert (mismatch.kind, mismatch.layout[0][1]) == ("unrecognised_device", (50.5, 0.5))


@pytest.mark.parametrize("technology", REAL)
def test_a_marker_may_cover_the_taps_as_well(technology):
    flavour = ANODE_IS_SUBSTRATE[technology]
    tech, module = drawn(technology, flavour, 2.0, 1.0)
    change(module, tech, tech.passive(flavour).markers[0], module.cell.bbox(), draw=True)
    assert judged(tech, module, circuit(flavour, 2.0, 1.0)).matched


def test_the_marker_of_another_voltage_over_a_diode_changes_nothing():
    tech, module = drawn("gf180mcuD", "diode_nd2ps_06v0", 1.0, 2.0)
    change(module, tech, "V5_XTOR", module.cell.bbox(), draw=True)
    result = judged(tech, module, circuit("diode_nd2ps_06v0", 1.0, 2.0))
    assert (result.mismatches, result.complete, result.matched) == ((), True, True)


@pytest.mark.parametrize("technology", REAL)
def test_sources_and_taps_are_no_diodes_and_a_marked_transistor_is_reported(technology):
    tech = load(technology)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    device = transistor(tech, "M1", "nmos", MosSize(2e-6, tech.to_um(tech.device("nmos").min_l) * 1e-6))
    module = draw_mos(layout, tech, MosSpec(device, "X"))
    extraction = extract(layout, module.cell, tech)
    assert [found.kind.name for found in extraction.devices] == ["nmos"]
    assert not any(extraction.ignored.values())
    marker = tech.passive(ANODE_IS_SUBSTRATE[technology]).markers[0]
    change(module, tech, marker, module.gates[0].box.enlarged(2000, 100), draw=True)
    assert extract(layout, module.cell, tech).ignored["diode"]


@pytest.mark.parametrize("technology", REAL)
def test_a_diode_too_large_for_its_taps_says_to_use_more_units(technology):
    with pytest.raises(GeometryError, match=r"D1 cannot be one rectangle .* Use more and smaller units"):
        drawn(technology, CATHODE_IS_WELL[technology], 100.0, 90.0)
    with pytest.raises(GeometryError, match="below minimum"):
        drawn(technology, CATHODE_IS_WELL[technology], 0.1, 1.0)


def clamp(technology):
    model = MODELS.get(technology, "")
    low, high = (f"{model}{names[technology]}" for names in (ANODE_IS_SUBSTRATE, CATHODE_IS_WELL))
    return f""".subckt clamp in out vdd vss
D1 vss in {low} area=2p pj=6u
XD2 in vdd {high} w=2u l=1u m=2
M1 out in vss vss nmos w=2u l=0.5u
M2 out in vdd vdd pmos w=4u l=0.5u
.ends
"""


@pytest.mark.parametrize("technology", REAL)
def test_a_netlist_with_diodes_becomes_a_clean_layout_and_netlists_of_the_process(tmp_path, technology):
    source = tmp_path / "clamp.spice"
    source.write_text(clamp(technology))
    request = LayoutRequest(netlist_path=str(source), technology=technology, workspace=str(tmp_path / "work"))
    report = build_layout(request)
    assert report["drc"]["passed"]
    assert (report["lvs"]["matched"], report["lvs"]["complete"]) == (True, True)
    layout = kdb.Layout()
    layout.read(report["files"]["gds"])
    tech = load(technology)
    extraction = extract(layout, layout.top_cell(), tech)
    for kind in ("reference_netlist", "deck_netlist", "extracted_netlist"):
        written = read_netlist(report["files"][kind], identify_modules=False)
        assert sum(device.type == "diode" for device in written.devices) == 2, kind
        result = compare(extraction, written)
        assert result.matched, (kind, [mismatch.message for mismatch in result.mismatches])


STRING = """.subckt string top vss
D1 top mid DMOD area=4p pj=8u
D2 mid vss DMOD area=4p pj=8u m=2
D3 vss top {model} area=2p pj=6u
.ends
"""


@pytest.mark.parametrize("technology", REAL)
def test_a_string_of_foreign_diodes_becomes_junctions_in_wells_of_their_own(tmp_path, technology):
    source = tmp_path / "string.spice"
    source.write_text(STRING.format(model="DMOD"))
    report = build_layout(LayoutRequest(netlist_path=str(source), technology=technology, workspace=str(tmp_path / "w")))
    assert (report["drc"]["passed"], report["lvs"]["matched"], report["lvs"]["complete"]) == (True, True, True)
    written = read_netlist(report["files"]["reference_netlist"], identify_modules=False)
    models = {device.id.removeprefix("X"): device.model for device in written.devices}
    prefix, well, low = MODELS.get(technology, ""), CATHODE_IS_WELL[technology], ANODE_IS_SUBSTRATE[technology]
    assert models == {"D1": prefix + well, "D2": prefix + well, "D3": prefix + low}


def test_a_junction_of_the_substrate_on_another_net_asks_for_the_net_of_its_deep_well(tmp_path):
    source = tmp_path / "string.spice"
    source.write_text(STRING.format(model="dantenna").replace("D1 top mid DMOD", "D1 top mid dantenna"))
    with pytest.raises(UnsupportedOperationError, match=r"D1 needs a deep well.*name one with deep_well_net"):
        build_layout(LayoutRequest(netlist_path=str(source), technology="sg13g2", workspace=str(tmp_path / "work")))


def test_a_process_without_diodes_names_what_it_has(tmp_path):
    source = tmp_path / "clamp.spice"
    source.write_text(clamp("sg13g2"))
    with pytest.raises(UnsupportedOperationError, match=r"no device for diode: D1, XD2; it has nmos, pmos"):
        build_layout(LayoutRequest(netlist_path=str(source), technology="generic", workspace=str(tmp_path / "work")))


@pytest.mark.parametrize(
    ("card", "sides_um"),
    [
        ("D1 a k diode_nd2ps_03v3 area=2p pj=6u", (2, 1)),
        ("D1 a k diode_nd2ps_03v3 A=2p P=6u", (2, 1)),
        ("X1 a k sky130_fd_pr__diode_pw2nd_05v5 area=2e12 perim=6e6", (2, 1)),
        ("X1 a k sky130_fd_pr__diode_pw2nd_05v5 area=2 perim=6", (2, 1)),
        ("D1 a k dantenna 4p", (2, 2)),
        ("XD1 a k dpantenna l=1u w=2u m=3", (2, 1)),
        ("D1 a k dantenna w=2u l=1u A=9p P=12u", (2, 1)),
    ],
)
def test_cards_state_a_diode_by_sides_or_by_area_in_the_units_of_their_process(tmp_path, card, sides_um):
    source = tmp_path / "x.spice"
    source.write_text(f".subckt x a k\n{card}\n.ends\n")
    (device,) = map(with_sides, read_netlist(source, identify_modules=False).devices)
    assert (device.type, device.terminals) == ("diode", {"p": "a", "n": "k"})
    assert (device.w * 1e6, device.l * 1e6) == pytest.approx(sides_um)


def test_the_library_of_sky130_scales_areas_itself():
    card = write_spice(circuit("diode_pw2nd_05v5", 1.5, 0.5, 2), load("sky130A")).splitlines()[2]
    assert card == "D1 a k sky130_fd_pr__diode_pw2nd_05v5 area=0.75e12 pj=4e6 m=2"


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
@pytest.mark.parametrize(
    ("technology", "unit", "option"), [("sky130A", 1e-6, ".option scale=1u"), ("gf180mcuD", 1.0, "")]
)
def test_ngspice_finds_the_area_and_perimeter_through_a_model_as_the_library_has_it(tmp_path, technology, unit, option):
    """The libraries declare diodes by ``.model``, sky130's per um2 and um. Capacitances at 0 V: 1 fF/um2, 0.1 fF/um."""
    flavour = ANODE_IS_SUBSTRATE[technology]
    cards = [
        line
        for line in write_spice(circuit(flavour, 1.5, 0.5, 2), load(technology)).splitlines()
        if line[:1] not in "*."
    ]
    model = f".model {MODELS.get(technology, '')}{flavour} d level=3 cjo={1e-3 * unit**2} cjp={1e-10 * unit}"
    deck = ["* diode", option, model, *cards, "Va a 0 0", "Vk k 0 dc 0 ac 1", ".control", "ac lin 1 1meg 1meg"]
    deck += ["let farad = -imag(i(vk)) / (2 * pi * 1meg)", "print farad", ".endc", ".end"]
    (tmp_path / "deck.spice").write_text("\n".join(deck) + "\n")
    command = ["ngspice", "-b", str(tmp_path / "deck.spice")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WATCHDOG_S)
    printed = re.search(r"farad = (\S+)", done.stdout)
    assert printed, done.stdout + done.stderr
    assert float(printed[1]) == pytest.approx(2 * (0.75 * 1e-15 + 4 * 1e-16), rel=1e-3)


def test_json_netlists_state_sides_or_an_area(tmp_path):
    terminals = '"terminals": {"anode": "a", "cathode": "k"}'

    def read(params):
        source = tmp_path / "x.json"
        source.write_text(
            f'{{"name": "x", "devices": [{{"id": "D1", "type": "diode", "params": {params}, {terminals}}}]}}'
        )
        return with_sides(read_netlist(source, identify_modules=False).devices[0])

    for params in ('{"w": 2e-6, "l": 1e-6}', '{"area": 2e-12, "perimeter": 6e-6}'):
        assert (read(params).w, read(params).l) == pytest.approx((2e-6, 1e-6))
    with pytest.raises(NetlistError, match="no rectangle has the area"):
        read('{"area": 2e-12, "perimeter": 1e-6}')
    with pytest.raises(NetlistError, match=r"params.area - must be between 0 and 1e-06 square metres"):
        read('{"area": 2}')
