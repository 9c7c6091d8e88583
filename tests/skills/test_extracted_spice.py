"""What the layout really is, judged by other programs: netgen compares and ngspice simulates the extracted netlists.

Every shipped technology, so that a new one is judged the day it appears.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from layoutkit.technology import load
from netgen_netlists import MEASURED, without_tied
from patience import WATCHDOG_S
from thorough import processes

OTA = Path(__file__).parents[2] / "skills/netlist-to-gds/assets/ota_5t.spice"
INVERTER = """
.subckt inverter in out vdd vss
MN out in vss vss nmos W=2u L=0.5u nf=1
MP out in vdd vdd pmos W=6u L=0.5u nf=2
.ends
"""


@pytest.fixture
def built(finished_layout):
    """Return a function that returns the report of a circuit by name."""
    return lambda technology, name: finished_layout(OTA if name == "ota_5t" else INVERTER, technology)[0]


@pytest.mark.parametrize("technology", processes())
@pytest.mark.parametrize("name", ["ota_5t", "inverter"])
def test_the_layout_is_clean_in_every_technology(built, technology, name):
    report = built(technology, name)
    assert report["routing"]["failed"] == []
    assert report["drc"]["passed"]
    assert report["drc"]["total_violations"] == 0
    assert report["drc"]["rules_unchecked"] == []
    lvs = report["lvs"]
    assert (lvs["matched"], lvs["complete"], lvs["mismatches"]) == (True, True, [])
    assert (lvs["not_compared"], lvs["layers_unchecked"], lvs["layers_waived"]) == ([], [], [])


@pytest.mark.parametrize("technology", processes())
def test_the_flow_measures_every_matched_group(built, technology):
    """The bounds: offset of the input pair at most 0.5 mV, equal areas, and equal distances to the ends."""
    matching = built(technology, "ota_5t")["matching"]
    assert matching["unmeasured"] == []
    found = {tuple(sorted(device["id"] for device in group["devices"])): group for group in matching["groups"]}
    assert sorted(found) == [("M1", "M2"), ("M3", "M4"), ("M5", "M6")]
    assert len(matching["groups"]) == 3
    for group in found.values():
        assert group["spread"]["ad_um2_percent"] <= 1
        assert group["spread"]["as_um2_percent"] <= 1
        assert group["distances_spread_percent"] <= 2
    [offset] = found["M1", "M2"]["predicted_offsets"]
    assert offset["unit"] == "mV"
    if technology == "sky130A":
        assert abs(offset["value"]) <= 0.5
    else:
        assert offset["contributions"]["stress"]["values"] == []
        assert any(entry.startswith("stress: not modelled") for entry in offset["unchecked"])


@pytest.mark.parametrize(
    ("technology", "given"),
    [("sky130A", "ad as pd ps sa sb sd"), ("gf180mcuD", "as ad ps pd sa sb sd"), ("sg13g2", "as ad ps pd")],
)
def test_the_extracted_transistors_carry_what_was_measured(built, technology, given):
    text = Path(built(technology, "inverter")["files"]["extracted_netlist"]).read_text().replace("\n+", " ")
    transistors = [line for line in text.splitlines() if line.startswith("X")]
    assert len(transistors) == 2
    for line in transistors:
        assert [word.split("=")[0] for word in line.split() if "=" in word][3:-1] == given.split()
    assert "sa=" not in Path(built(technology, "inverter")["files"]["reference_netlist"]).read_text()


def netgen_matches(folder, models, extracted, reference):
    """Tell whether netgen finds the two netlists' ota_5t the same, sizes included."""
    for path, name in ((extracted, "extracted.spice"), (reference, "reference.spice")):
        (folder / name).write_text(without_tied(Path(path).read_text()))
    extracted, reference = folder / "extracted.spice", folder / "reference.spice"
    lines = []
    ends = "1 3" if re.search(r"^X", Path(extracted).read_text(), re.MULTILINE) else "drain source"
    for model in models:
        for circuit in ("-circuit1", "-circuit2"):
            lines += [
                f'permute "{circuit} {model}" {ends}',
                f'property "{circuit} {model}" parallel enable',  # one width, as in the PDKs' setups
                f'property "{circuit} {model}" parallel {{l critical}} {{w add}}',
                f'property "{circuit} {model}" remove nf ng m {MEASURED}',
                f'property "{circuit} {model}" tolerance {{w 0.001}} {{l 0.001}}',
            ]
    setup = folder / "setup.tcl"
    setup.write_text("\n".join(lines) + "\n")
    command = ["netgen-lvs", "-batch", "lvs", f"{extracted} ota_5t", f"{reference} ota_5t", str(setup), "report.out"]
    output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WATCHDOG_S, cwd=folder).stdout
    return "match uniquely" in output and "roperty error" not in output


@pytest.mark.skipif(shutil.which("netgen-lvs") is None, reason="skipped: needs netgen-lvs")
@pytest.mark.parametrize("technology", processes())
@pytest.mark.parametrize(
    ("pattern", "change", "matches"),
    [
        (None, None, True),
        (r"(?i)( w=)12", r"\g<1>11", False),
        (r"(?i)( l=)1(?=u? )", r"\g<1>2", False),
        (r"^(X?M1 \S+) inp", r"\1 inn", False),
        (r"^X?M6 .*\n", "", False),
    ],
    ids=["as drawn", "wrong width", "wrong length", "wrong gate", "device gone"],
)
def test_netgen_agrees_with_the_verdict(built, tmp_path, technology, pattern, change, matches):
    report = built(technology, "ota_5t")
    reference = Path(report["files"]["reference_netlist"]).read_text()
    if pattern:
        reference, count = re.subn(pattern, change, reference, flags=re.MULTILINE)
        assert count
    altered = tmp_path / "altered.spice"
    altered.write_text(reference)
    models = {spec.model for spec in load(technology).devices.values() if spec.type in {"nmos", "pmos"}}
    used = sorted(model for model in models if model in reference)
    assert netgen_matches(tmp_path, used, report["files"]["extracted_netlist"], altered) is matches


# What the transistors of the PDKs' libraries are called with: unit of w and l in metres, and the number of fingers.
SUBCIRCUITS = {"sky130A": ("1u", "nf"), "gf180mcuD": ("1", "nf"), "sg13g2": ("1", "ng")}


def level_1(technology, spec):
    """Return a level-1 transistor behind a name of the technology, called as the PDK's library has it."""
    threshold = "0.5" if spec.type == "nmos" else "-0.5"
    model = f"level1_{spec.type}" if technology in SUBCIRCUITS else spec.model
    card = f".model {model} {spec.type} level=1 vto={threshold} kp=100u lambda=0.05\n"
    if technology not in SUBCIRCUITS:
        return card
    unit, fingers = SUBCIRCUITS[technology]
    call = f"M1 d g s b {model} w='w*{unit}' l='l*{unit}'"
    measured = " ".join(f"{name}=0" for name in MEASURED.split())
    return f".subckt {spec.model} d g s b w=0 l=0 {fingers}=1 {measured}\n{call}\n{card}.ends\n"


def simulate(folder, report, technology, bench):
    """Return the numbers ngspice prints for ``bench`` with level-1 transistors behind the technology's names."""
    spice = Path(report["files"]["extracted_netlist"]).read_text().replace(".end\n", "")
    cards = [
        level_1(technology, spec)
        for spec in load(technology).devices.values()
        if spec.type in {"nmos", "pmos"} and spec.model in spice
    ]
    deck = folder / "deck.spice"
    deck.write_text(spice + "".join(cards) + bench)
    done = subprocess.run(["ngspice", "-b", str(deck)], capture_output=True, text=True, check=False, timeout=WATCHDOG_S)
    found = dict(re.findall(r"^(\w+)\s*=\s*(-?[\d.]+(?:e[+-]\d+)?)", done.stdout, re.MULTILINE))
    assert found, done.stdout + done.stderr
    return {name: float(value) for name, value in found.items()}


def ports(report):
    """Return the ports of the extracted subcircuit, in its order."""
    text = Path(report["files"]["extracted_netlist"]).read_text()
    return re.search(r"^\.subckt \S+ (.*)$", text, re.MULTILINE).group(1).split()


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
@pytest.mark.parametrize("technology", processes())
def test_the_extracted_inverter_inverts(built, tmp_path, technology):
    """W/L of 4 below and 12 above: with equal kp the PMOS is three times as strong."""
    report = built(technology, "inverter")
    bench = (
        f"X1 {' '.join({'vss': '0'}.get(port, port) for port in ports(report))} inverter\n"
        "Vdd vdd 0 1.8\nVin in 0 0\n.control\ndc Vin 0 1.8 0.002\n"
        "meas dc low find v(out) at=1.8\nmeas dc high find v(out) at=0\nmeas dc middle when v(out)=0.9\n.endc\n.end\n"
    )
    found = simulate(tmp_path, report, technology, bench)
    assert found["low"] == pytest.approx(0, abs=1e-3)
    assert found["high"] == pytest.approx(1.8, abs=1e-3)
    # Both saturated: sqrt(12) * (1.8 - v - 0.5) = sqrt(4) * (v - 0.5), by hand v = 1.0072.
    assert found["middle"] == pytest.approx(1.0072, abs=0.02)


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
@pytest.mark.parametrize("technology", processes())
def test_the_extracted_ota_amplifies(built, tmp_path, technology):
    """Gain gm * (ron || rop) by hand: 10 uA of bias doubled by the tail, lambda 0.05 on both sides."""
    report = built(technology, "ota_5t")
    nets = " ".join({"vss": "0", "inn": "ref", "inp": "sig"}.get(port, port) for port in ports(report))
    bench = (
        f"X1 {nets} ota_5t\nVdd vdd 0 1.8\nIb vdd bias 10u\nVr ref 0 1\nVs sig 0 dc 1 ac 1\nCl out 0 1p\n"
        ".control\nop\nac dec 10 10 1k\nlet gain=abs(v(out))\nmeas ac low find gain at=100\n.endc\n.end\n"
    )
    found = simulate(tmp_path, report, technology, bench)
    # Id = 10 uA a side, gm = sqrt(2 * 100u * 16 * 10u) = 179 uS, gds = 2 * 0.05 * 10u = 1 uS: a gain near 179.
    assert 120 < found["low"] < 230
