"""layout.create_resistor, _capacitor and _diode, and circuits with such devices, judged by netgen and ngspice."""

import re
import shutil
import subprocess
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.circuit import read_netlist
from layoutkit.drc.check import check
from layoutkit.extract.extractor import extract
from layoutkit.lvs.compare import compare
from layoutkit.technology import load
from netgen_netlists import MEASURED, without_tied
from patience import WATCHDOG_S
from thorough import processes

RESISTOR, CAPACITOR = "passive-devices/scripts/create_resistor.py", "passive-devices/scripts/create_capacitor.py"
DIODE = "passive-devices/scripts/create_diode.py"
REAL = [name for name in processes() if load(name).passives]
FILTER = Path(__file__).with_name("filter.spice").read_text(encoding="utf-8")


@pytest.mark.parametrize("technology", REAL)
def test_a_resistor_by_value_has_the_value(run_script, technology):
    code, envelope = run_script(RESISTOR, "--device-id", "R1", "--r", 10_000, "--technology", technology)
    assert code == 0
    data = envelope["data"]
    assert data["drawn"]["R1"]["r"] == pytest.approx(10_000, rel=5e-3)
    assert data["drc"] == {**data["drc"], "passed": True, "total_violations": 0}
    assert {pin["net"] for pin in data["pins"]} == {"R1_P", "R1_N", "R1_B"}


@pytest.mark.parametrize("technology", REAL)
def test_matched_resistors_share_their_centre(run_script, technology):
    arguments = ["--l", 40e-6, "--segments", 4, "--matched", '[{"device_id": "R2"}]', "--dummies", 1]
    code, envelope = run_script(RESISTOR, "--device-id", "R1", *arguments, "--technology", technology)
    assert code == 0
    assert envelope["data"]["centroid_error_um"] == 0
    assert sorted(envelope["data"]["drawn"]) == ["R1", "R2"]
    assert len(envelope["data"]["device_instances"]) == 8


@pytest.mark.parametrize("technology", REAL)
def test_a_capacitor_by_value_has_the_value(run_script, technology):
    code, envelope = run_script(CAPACITOR, "--device-id", "C1", "--c", 1e-12, "--technology", technology)
    assert code == 0
    assert envelope["data"]["drawn"]["c"] == pytest.approx(1e-12, rel=2e-3)
    assert envelope["data"]["drc"]["passed"]


@pytest.mark.parametrize("technology", REAL)
def test_a_diode_by_area_has_the_area(run_script, technology):
    arguments = ["--device-id", "D1", "--area", 2e-12, "--perimeter", 6e-6, "--m", 2, "--technology", technology]
    code, envelope = run_script(DIODE, *arguments)
    assert code == 0
    data = envelope["data"]
    assert data["drawn"] == {"w": 2e-6, "l": 1e-6, "m": 2, "area": 2e-12, "perimeter": 6e-6}
    assert data["drc"]["passed"]
    assert {pin["net"] for pin in data["pins"]} == {"D1_P", "D1_N"}
    assert len(data["device_instances"]) == 2


@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
        (DIODE, ["--w", 1e-6], "give either w and l"),
        (DIODE, ["--w", 1e-6, "--l", 1e-6, "--area", 1e-12], "give either w and l"),
        (DIODE, ["--area", 1e-12, "--perimeter", 1e-6], "no rectangle has an area"),
        (DIODE, ["--w", 1e-4, "--l", 1e-4], "Use more and smaller units"),
        (DIODE, ["--area", 1e-12, "--technology", "generic"], "no passive device"),
        (RESISTOR, ["--r", 1e3, "--l", 1e-6], "either l or r"),
        (RESISTOR, [], "either l or r"),
        (RESISTOR, ["--r", 1e3, "--matched", '[{"device_id": "X"}]'], "named twice"),
        (RESISTOR, ["--r", 1e3, "--technology", "generic"], "no passive device"),
        (RESISTOR, ["--l", 1e-6, "--w", 1e-6], "exists 0.35"),
        (CAPACITOR, ["--l", 5e-6], "give w with l"),
        (CAPACITOR, ["--c", 1e-17], "less than the smallest"),
        (CAPACITOR, ["--c", 0], "c"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_leaves_nothing(tmp_path, run_script, script, arguments, words):
    code, envelope = run_script(script, "--device-id", "X", *arguments, "--workspace", tmp_path / "ws")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert words in envelope["error"]["message"]
    assert not (tmp_path / "ws" / "layout.gds").exists()


@pytest.fixture
def built(finished_layout):
    """Return a function that returns the report of the filter."""
    return lambda technology: finished_layout(FILTER, technology)[0]


@pytest.mark.parametrize("technology", REAL)
def test_a_circuit_with_resistors_and_a_capacitor_is_laid_out_clean(built, technology):
    report = built(technology)
    assert report["routing"]["failed"] == []
    assert (report["drc"]["passed"], report["drc"]["total_violations"]) == (True, 0)
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["matched"]


@pytest.mark.parametrize(
    ("technology", "marker", "blocks", "poly"),
    [("gf180mcuD", (110, 5), [(49, 0)], (30, 0)), ("sg13g2", (128, 0), [(28, 0), (24, 0)], (5, 0))],
)
def test_resistors_of_a_finished_circuit_are_marked_exactly_where_they_are(built, technology, marker, blocks, poly):
    layout = kdb.Layout()
    layout.read(built(technology)["files"]["gds"])

    def shapes(*gds):
        index = layout.find_layer(*gds)
        return kdb.Region() if index is None else kdb.Region(layout.top_cell().begin_shapes_rec(index)).merged()

    blocked = kdb.Region()
    for block in blocks:
        blocked += shapes(*block)
    assert not blocked.is_empty()
    assert (shapes(*marker) ^ (blocked & shapes(*poly))).is_empty()


@pytest.mark.parametrize("technology", REAL)
def test_a_finished_circuit_whose_resistor_markers_cover_the_heads_fails_both_checks(built, technology):
    """Foreign LVS finds no device there; DRC of sky130A has no rule about it."""
    tech = load(technology)
    layout = kdb.Layout()
    layout.read(built(technology)["files"]["gds"])
    cell = layout.top_cell()
    for marker in {layer for spec in tech.passives.values() if spec.type == "resistor" for layer in spec.cuts_body}:
        index = tech.layer(layout, marker)
        wide = kdb.Region(cell.begin_shapes_rec(index)).sized(0, 3000, 2)
        cell.shapes(index).insert(wide)
    circuit = read_netlist(built(technology)["files"]["reference_netlist"], identify_modules=False)
    result = compare(extract(layout, cell, tech), circuit)
    assert "unrecognised_device" in {mismatch.kind for mismatch in result.mismatches}
    rules = {verdict.rule.id for verdict in check(layout, cell, tech).violated}
    assert rules & {"PRES.9a", "LRES.9a", "PolyRes.a"} or technology == "sky130A"


# Parameters of the PDKs' subcircuits: width and length of a resistor, of a capacitor, and their unit in metres.
PARAMETERS = {
    "sky130A": (("w", "l"), ("w", "l"), 1e-6),
    "gf180mcuD": (("r_width", "r_length"), ("c_width", "c_length"), 1),
    "sg13g2": (("w", "l"), ("w", "l"), 1),
}


@pytest.mark.skipif(shutil.which("netgen-lvs") is None, reason="skipped: needs netgen-lvs")
@pytest.mark.parametrize("technology", REAL)
@pytest.mark.parametrize(
    ("pattern", "change", "matches"),
    [
        (None, None, True),
        (r"^XR2 (\S+) (\S+)", r"XR2 mid \2", False),
        (r"^XR2 (\S+) (\S+) (\S+)", r"XR2 \1 \2 vdd", False),
        (r"^XC1 .*\n", "", False),
    ],
    ids=["as drawn", "wrong net", "wrong substrate", "device gone"],
)
def test_netgen_takes_both_netlists_as_they_are(built, tmp_path, technology, pattern, change, matches):
    report = built(technology)
    reference = Path(report["files"]["reference_netlist"]).read_text()
    if pattern:
        reference, count = re.subn(pattern, change, reference, flags=re.MULTILINE)
        assert count
    (tmp_path / "two.spice").write_text(without_tied(reference))
    (tmp_path / "one.spice").write_text(without_tied(Path(report["files"]["extracted_netlist"]).read_text()))
    resistor, plate, length = *PARAMETERS[technology][:2], r" w=| r_width=| c_width=| l="
    setup = ["permute default", "property default"]
    for side in ("-circuit1", "-circuit2"):
        for model in sorted(set(re.findall(rf"^X\S+ (?:\S+ )+?(\S+)(?={length})", reference, re.MULTILINE))):
            ends = "1 3" if "fet" in model or "mos" in model else "1 2"
            limits = " ".join(f"{{{name} 0.01}}" for name in sorted({*resistor, *plate}))
            setup += [f'permute "{side} {model}" {ends}', f'property "{side} {model}" tolerance {limits}']
            setup.append(f'property "{side} {model}" remove nf ng m {MEASURED}')
    (tmp_path / "setup.tcl").write_text("\n".join(setup) + "\n")
    command = ["netgen-lvs", "-batch", "lvs", "one.spice filter", "two.spice filter", "setup.tcl", "out"]
    output = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=WATCHDOG_S, cwd=tmp_path
    ).stdout
    assert ("match uniquely" in output and "Property errors" not in output) is matches, output


@pytest.mark.parametrize("technology", REAL)
def test_the_netlist_for_the_lvs_deck_is_one_of_letters(built, technology):
    """The readers of the foundries' KLayout decks take an X card for a call of a subcircuit."""
    text = Path(built(technology)["files"]["deck_netlist"]).read_text()
    cards = [line for line in text.splitlines() if line[:1] not in "*.+"]
    assert {card[0] for card in cards} == {"M", "R", "C"}
    (bulk,) = {card.split()[4] for card in cards if card[0] == "M"}
    assert {card.split()[3] for card in cards if card[0] == "R"} == {bulk}


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
@pytest.mark.parametrize("technology", REAL)
@pytest.mark.parametrize("kind", ["reference_netlist", "extracted_netlist"])
def test_ngspice_finds_the_values_that_were_requested(built, tmp_path, technology, kind):
    """The divider halves; with the source at out, R2 || R1 = 10 kohm and 200 fF have a pole at 79.6 MHz."""
    tech, report = load(technology), built(technology)
    netlist = Path(report["files"][kind]).read_text().replace(".end\n", "")
    resistor, plate = tech.passive("resistor"), tech.passive("capacitor")
    (r_w, r_l), (c_w, c_l), unit = PARAMETERS[technology]
    least = (resistor.widths[0] if resistor.widths else resistor.min_w) * tech.dbu_um * 1e-6 / unit
    value = f"{plate.value * 1e12 * unit**2}*{c_w}*{c_l}+{plate.edge_value * 2e6 * unit}*({c_w}+{c_l})"
    stubs = (
        f".subckt {resistor.model_of(least * unit * 1e6)} 1 2 3 {r_w}={least} {r_l}=0\n"
        f"R1 1 2 '{resistor.value}*{r_l}/{r_w}'\n.ends\n"
        f".subckt {plate.model} 1 2 {c_w}=0 {c_l}=0\nC1 1 2 '{value}'\n.ends\n"
        f".subckt {tech.device('nmos').model} d g s b w=0 l=0\nR1 d s 1g\n.ends\n"
    )
    ports = re.search(r"^\.subckt \S+ (.*)$", netlist, re.MULTILINE).group(1).split()
    nets = " ".join({"vss": "0", "vdd": "0", "in": "0"}.get(port, port) for port in ports)
    bench = (
        f"X1 {nets} filter\nVmid mid 0 dc 1 ac 1\n.control\nop\nprint v(out)\n"
        "ac dec 200 1meg 1g\nmeas ac pole when vdb(out)=-9.0309\n.endc\n.end\n"
    )
    (tmp_path / "deck.spice").write_text("* deck\n" + stubs + netlist + bench)
    output = subprocess.run(
        ["ngspice", "-b", "deck.spice"], capture_output=True, text=True, check=False, timeout=WATCHDOG_S, cwd=tmp_path
    ).stdout
    found = dict(re.findall(r"^(v\(out\)|pole)\s*=\s*([\d.e+-]+)", output, re.MULTILINE))
    assert float(found["v(out)"]) == pytest.approx(0.5, rel=5e-3), output
    assert float(found["pole"]) == pytest.approx(79.58e6, rel=2e-2)


@pytest.mark.parametrize("technology", REAL)
def test_a_bipolar_array_has_its_single_unit_in_the_middle(run_script, technology):
    nets = ["--nets", '{"c": "vss", "b": "vss", "e": "a"}']
    matched = '[{"device_id": "Q2", "m": 8, "nets": {"c": "vss", "b": "vss", "e": "b"}}]'
    arguments = ["--device-id", "Q1", *nets, "--matched", matched, "--technology", technology]
    code, envelope = run_script("passive-devices/scripts/create_bipolar_array.py", *arguments, "--dummies", 0)
    assert code == 0
    data = envelope["data"]
    assert (data["pattern"], data["dummies"], data["centroid_error_um"]) == (["BBB", "BAB", "BBB"], 0, 0)
    assert data["drawn"]["Q2"]["area"] == pytest.approx(8 * data["drawn"]["Q1"]["area"])
    assert data["drc"]["passed"]
    assert {pin["net"] for pin in data["pins"]} == {"vss", "a", "b"}


def test_dummies_of_a_resistor_of_metal_are_refused(run_script):
    arguments = ["--device", "res_generic_m1", "--l", 1e-5, "--technology", "sky130A"]
    code, envelope = run_script(RESISTOR, "--device-id", "R1", *arguments, "--dummies", 2)
    assert code == 2
    assert "res_generic_m1 is of metal and has no dummies" in envelope["error"]["message"]
    assert run_script(RESISTOR, "--device-id", "R1", *arguments)[0] == 0
