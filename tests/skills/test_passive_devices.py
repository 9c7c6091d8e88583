"""layout.create_resistor and layout.create_capacitor, and circuits with both, judged by netgen and ngspice."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.technology import load, names
from patience import WATCHDOG_S

RESISTOR, CAPACITOR = "passive-devices/scripts/create_resistor.py", "passive-devices/scripts/create_capacitor.py"
REAL = [name for name in names() if load(name).passives]
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


@pytest.mark.parametrize(
    ("script", "arguments", "words"),
    [
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


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a function that lays the filter out once a technology."""
    done = {}

    def build(technology):
        if technology not in done:
            folder = tmp_path_factory.mktemp(technology)
            (folder / "filter.spice").write_text(FILTER)
            done[technology] = build_layout(LayoutRequest(str(folder / "filter.spice"), technology, str(folder / "ws")))
        return done[technology]

    return build


@pytest.mark.parametrize("technology", REAL)
def test_a_circuit_with_resistors_and_a_capacitor_is_laid_out_clean(built, technology):
    report = built(technology)
    assert report["routing"]["failed"] == []
    assert (report["drc"]["passed"], report["drc"]["total_violations"]) == (True, 0)
    assert report["lvs"]["mismatches"] == []
    assert report["lvs"]["matched"]


@pytest.mark.skipif(shutil.which("netgen-lvs") is None, reason="skipped: needs netgen-lvs")
@pytest.mark.parametrize("technology", REAL)
@pytest.mark.parametrize(
    ("pattern", "change", "matches"),
    [(None, None, True), (r"^XR2 (\S+) (\S+)", r"XR2 mid \2", False), (r"^XC1 .*\n", "", False)],
    ids=["as drawn", "wrong net", "device gone"],
)
def test_netgen_agrees_on_the_connections(built, tmp_path, technology, pattern, change, matches):
    report = built(technology)
    reference = Path(report["files"]["reference_netlist"]).read_text()
    extracted = Path(report["files"]["extracted_netlist"]).read_text()
    if pattern:
        reference, count = re.subn(pattern, change, reference, flags=re.MULTILINE)
        assert count
    # Bulks of resistors that the netlist leaves open are not part of its side.
    stubs, models = "", set(re.findall(r"^X\S+ (?:\S+ )+?(\S+) W=", reference, re.MULTILINE))
    for model in sorted(models):
        nodes = len(re.search(rf"^X\S+ (.*) {model} ", extracted, re.MULTILINE).group(1).split())
        if nodes == 3:
            extracted = re.sub(rf"^(X\S+ \S+ \S+) \S+ {model} ", rf"\1 {model} ", extracted, flags=re.MULTILINE)
        stubs += f".subckt {model} p n W=1 L=1 m=1\n.ends\n"
    (tmp_path / "one.spice").write_text(stubs + extracted)
    (tmp_path / "two.spice").write_text(stubs + reference)
    lines = [f'permute "{side} {model}" p n' for side in ("-circuit1", "-circuit2") for model in sorted(models)]
    lines += [
        f'property "{side} {model}" remove W L m w l nf' for side in ("-circuit1", "-circuit2") for model in models
    ]
    mos = load(technology).device("nmos").model
    lines += [f'permute "{side} {mos}" drain source' for side in ("-circuit1", "-circuit2")]
    lines += [f'property "{side} {mos}" remove nf m' for side in ("-circuit1", "-circuit2")]
    (tmp_path / "setup.tcl").write_text("\n".join(lines) + "\n")
    command = ["netgen-lvs", "-batch", "lvs", "one.spice filter", "two.spice filter", "setup.tcl", "out"]
    output = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=WATCHDOG_S, cwd=tmp_path
    ).stdout
    assert ("match uniquely" in output) is matches, output


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
@pytest.mark.parametrize("technology", REAL)
def test_ngspice_finds_the_values_that_were_asked_for(built, tmp_path, technology):
    """The divider halves; with the source at out, R2 || R1 = 10 kohm and 200 fF have a pole at 79.6 MHz."""
    tech, report = load(technology), built(technology)
    extracted = Path(report["files"]["extracted_netlist"]).read_text().replace(".end\n", "")
    resistor, plate = tech.passive("resistor"), tech.passive("capacitor")
    widths = {re.search(r"W=([\d.]+)u", line).group(1) for line in extracted.splitlines() if line.startswith("XR")}
    (width,) = widths
    bulk = " b" if resistor.terminals > 2 else ""
    value = f"{plate.value}*w*1e6*l*1e6+{plate.edge_value}*2e6*(w+l)"
    stubs = (
        f".subckt {resistor.model_of(float(width))} p n{bulk} w=1u l=1u m=1\nR1 p n '{resistor.value}*l/w/m'\n.ends\n"
        f".subckt {plate.model} p n w=1u l=1u m=1\nC1 p n 'm*({value})'\n.ends\n"
        f".model {tech.device('nmos').model} nmos level=1 vto=0.5\n"
    )
    ports = re.search(r"^\.subckt \S+ (.*)$", extracted, re.MULTILINE).group(1).split()
    nets = " ".join({"vss": "0", "vdd": "0", "in": "0"}.get(port, port) for port in ports)
    bench = (
        f"X1 {nets} filter\nVmid mid 0 dc 1 ac 1\n.control\nop\nprint v(out)\n"
        "ac dec 200 1meg 1g\nmeas ac pole when vdb(out)=-9.0309\n.endc\n.end\n"
    )
    (tmp_path / "deck.spice").write_text("* deck\n" + stubs + extracted + bench)
    output = subprocess.run(
        ["ngspice", "-b", "deck.spice"], capture_output=True, text=True, check=False, timeout=WATCHDOG_S, cwd=tmp_path
    ).stdout
    found = dict(re.findall(r"^(v\(out\)|pole)\s*=\s*([\d.e+-]+)", output, re.MULTILINE))
    assert float(found["v(out)"]) == pytest.approx(0.5, rel=5e-3)
    assert float(found["pole"]) == pytest.approx(79.58e6, rel=2e-2)
