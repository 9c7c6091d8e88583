"""Figures of matched groups against an independent program, planted errors, and the foundry's models."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from math import hypot
from pathlib import Path

import klayout.db as kdb
import pytest
from gate_oracle import channels
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.draw.group import PairSpec, draw_pair
from layoutkit.draw.mos import Transistor
from layoutkit.extract.extractor import extract
from layoutkit.extract.matched_groups import MatchingReport, MeasuredGroup
from layoutkit.extract.strap_loss import strap_losses
from layoutkit.extract.surroundings import ChannelSurroundings, model_distances, surroundings
from layoutkit.flow.summary import lines_of_groups
from layoutkit.lvs.lvs_result import extracted_spice
from layoutkit.technology import load
from patience import WATCHDOG_S
from thorough import processes

SKY = load("sky130A")
WIDTH, LENGTH, PITCH, END = 2000, 500, 780, 265
SOURCE, DRAINS, GATES = -1000, {"A": -2000, "B": -3000}, {"A": 3500, "B": 4500}
OWN = {"A": "M1", "B": "M2"}
SQUARES = 1000 / 200  # the li1 of M2's drains is 1 um longer
FINGER_MA = 0.516 * 2 * 0.15 / 0.5 * (0.2 / 1.35) ** 1.5  # 0.516 mA/um at the shortest gate and 1.8 V; here 0.2 V
STRAPS_MV = 1000 * 0.2 / 2 * (FINGER_MA * 1e-3 * 2 * SQUARES * 12.8 * 0.2 / 1.8)  # two fingers share a drain
KEPT = []  # KLayout cells die with their layout


class Row:
    """A pair drawn box by box: units of two fingers (source, drain, source), dummies between sources at both ends."""

    def __init__(self, pattern, dummies=2):
        self.layout = kdb.Layout()
        KEPT.append(self.layout)
        self.layout.dbu = 0.001
        self.cell = self.layout.create_cell("ROW")
        self.fingers = ["-"] * dummies + [letter for letter in pattern for _ in "12"] + ["-"] * dummies
        self.end = (len(self.fingers) - 1) * PITCH + LENGTH
        self.box("diff", -END, 0, self.end + END, WIDTH)
        self.box("nsdm", -END - 200, -200, self.end + END + 200, WIDTH + 200)
        for number, letter in enumerate(self.fingers):
            self.gate(number * PITCH, letter)
        for number in range(len(self.fingers) + 1):
            inside = (number - dummies) % 2 == 1 and dummies < number < len(self.fingers) - dummies
            x = number * PITCH - (PITCH - LENGTH) // 2
            x = min(max(x, -140), self.end + 140)
            self.column(x, DRAINS[self.fingers[number]] if inside else SOURCE)
        for y in (SOURCE, *DRAINS.values(), *GATES.values()):
            self.box("met1", -2000, y - 100, self.end + 2000, y + 100)
        self.box("tap", self.end + 1500, 0, self.end + 2000, WIDTH)
        self.box("psdm", self.end + 1300, -200, self.end + 2200, WIDTH + 200)

    def box(self, layer, left, bottom, right, top):
        self.cell.shapes(SKY.layer(self.layout, layer)).insert(kdb.Box(left, bottom, right, top))

    def cut(self, layer, x, y):
        self.box(layer, x - 85, y - 85, x + 85, y + 85)

    def column(self, x, rail):
        for y in range(200, WIDTH, 400):
            self.cut("licon1", x, y)
        self.box("li1", x - 100, rail - 150, x + 100, WIDTH)
        self.cut("mcon", x, rail)

    def gate(self, x, letter):
        middle = x + LENGTH // 2
        rail = SOURCE if letter == "-" else GATES[letter]
        self.box("poly", x, min(rail, 0) - 300, x + LENGTH, max(rail, WIDTH) + 300)
        self.cut("licon1", middle, rail)
        self.box("li1", middle - 100, rail - 150, middle + 100, rail + 150)
        self.cut("mcon", middle, rail)
        if letter != "-":
            text = kdb.Text(OWN[letter], kdb.Trans(middle, WIDTH // 2))
            self.cell.shapes(SKY.layer(self.layout, "device_text")).insert(text)

    def shapes(self, layer):
        return self.cell.shapes(SKY.layer(self.layout, layer))

    def move(self, layer, which, by):
        """Move the right edge of one box of a layer; which: index from the left."""
        boxes = sorted((shape.bbox() for shape in self.shapes(layer).each()), key=lambda each: each.left)
        self.shapes(layer).clear()
        for number, each in enumerate(boxes):
            self.shapes(layer).insert(by(each) if number == which else each)

    def report(self):
        extraction = extract(self.layout, self.cell, SKY)
        return MatchingReport(extraction, self.cell, strap_losses(self.cell, SKY)).measure(
            [MeasuredGroup(("M1", "M2"))]
        )[0]

    def oracle(self):
        return channels(self.cell, (65, 20), (66, 20), (83, 44), tap=(65, 44))


def figures(found, text):
    """Return the means and sums that the report states for a device, from the oracle's channels."""
    own = [channel for channel in found if channel.text == text]
    return {
        "s_per_um": sum(channel.stress() for channel in own) / len(own),
        "ad+as": sum(area for channel in own for area, _ in channel.shares),
        "pd+ps": sum(length for channel in own for _, length in channel.shares),
    }


def agree(report, found):
    for device in report["devices"]:
        wanted = figures(found, device["id"])
        assert device["s_per_um"] == pytest.approx(wanted["s_per_um"], rel=2e-5)
        assert device["ad_um2"] + device["as_um2"] == pytest.approx(wanted["ad+as"], rel=1e-5)
        assert device["pd_um"] + device["ps_um"] == pytest.approx(wanted["pd+ps"], rel=1e-5)


def offset_of(found):
    """Return the offset [mV] of M2 by the cards' coefficients of nfet_01v8: W = 2 um, overdrive 0.2 V."""
    first, second = (figures(found, text)["s_per_um"] for text in ("M1", "M2"))
    mobility = (1 - 0.027 * second) / (1 - 0.027 * first) - 1
    return 9.8 / (1 + 0.2 / 2) * (second - first) - 100 * mobility


@pytest.mark.parametrize("pattern", ["ABBA", "AABB", "ABAB", "AABBBBAA", "ABBBA"])
@pytest.mark.parametrize("dummies", [0, 2])
def test_figures_agree_with_an_independent_program(pattern, dummies):
    row = Row(pattern, dummies)
    report, found = row.report(), row.oracle()
    agree(report, found)
    [offset] = report["predicted_offsets"]
    stress, straps = (offset["contributions"][part]["values"][0] for part in ("stress", "strap"))
    assert stress == pytest.approx(offset_of(found), abs=2e-3)
    assert offset["value"] == pytest.approx(stress + straps, abs=1e-6)
    assert offset["contributions"]["junction"]["counted"] is False  # its drains feed no latch
    assert report["equal"]["dummies"]
    assert report["devices"][0]["dummies"] == dummies
    assert report["devices"][0]["current"] == {
        "axis": "x",
        "forward": report["devices"][0]["fingers"] // 2,
        "backward": report["devices"][0]["fingers"] // 2,
    }


def test_a_pair_whose_row_exchanges_the_devices_has_no_offset():
    report = Row("AABB").report()
    [offset] = report["predicted_offsets"]
    assert offset["contributions"]["stress"]["values"] == pytest.approx([0], abs=1e-9)
    assert offset["contributions"]["strap"]["values"] == pytest.approx([STRAPS_MV], rel=0.02)
    assert offset["value"] == pytest.approx(STRAPS_MV, rel=0.02)
    apart = hypot(*(one - other for one, other in zip(*(each["centroid"] for each in report["devices"]), strict=True)))
    assert offset["centroid_distance_um"] == pytest.approx(apart, abs=1e-6)
    assert apart > 1
    (text,) = offset["unchecked"]  # a gradient over that distance is an offset that nobody models
    assert text.startswith(f"distance: not modelled: the centroids are {apart:g} um apart")
    assert report["distances_spread_percent"] == 0
    (line,) = lines_of_groups([report])
    left_out = f"not modelled: distance ({apart:.3g} um between centroids)"
    assert f"{STRAPS_MV:+.2f} mV from stress and strap; {left_out}" in line
    assert report["equal"]["areas"]
    assert not report["symmetric"]  # the rails of A and B cannot be exchanged by the mirror


def test_symmetry_is_told_only_of_a_mirror_image():
    report = Row("ABBA").report()
    assert (report["symmetric"], report["axis"], report["differences"]) == (True, "vertical", [])
    assert (report["centroid_error_x_um"], report["centroid_error_y_um"]) == (0, 0)


def joined_at_ends(row, right=4500, height=4700, over=300):
    """Join each gate rail to a riser, A at the left and B at the right, as far from the ends as ``over``. [dbu]"""
    for x in (over, row.end - over):
        row.box("met2", x - 150, -1200, x + 150, height if x > over else 4700)
        row.box("met1", x - 150, 300, x + 150, 1700)
    row.box("via", over - 75, 3425, over + 75, 3575)
    if right:
        row.box("via", row.end - over - 75, right - 75, row.end - over + 75, right + 75)


def test_equally_many_cuts_between_equal_metal_over_no_gate_do_not_count():
    row = Row("ABBA")
    joined_at_ends(row)
    report = row.report()
    assert report["symmetric"]
    ((layer, what),) = ((each["layer"], each["what"]) for each in report["differences"])
    assert (layer, "over no channel" in what) == ("via", True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"right": None},  # a cut is missing
        {"height": 4800},  # the metal is not equal
        {"right": 1000, "over": 2 * PITCH + 250},  # a cut over a gate of M2, none over one of M1
        {"right": -1000, "over": 2 * PITCH + 250, "height": 4600},
    ],
)
def test_other_cuts_that_have_no_mirror_image_count(wrong):
    row = Row("ABBA")
    joined_at_ends(row, **wrong)
    report = row.report()
    assert not report["symmetric"]
    assert "via" in {each["layer"] for each in report["differences"] if "what" not in each}


def moved(row):
    row.move("poly", 4, lambda box: box.moved(20, 0))


def without_dummy(row):
    row.move("poly", len(row.fingers) - 1, lambda box: box.moved(20_000, 0))
    row.move("diff", 0, lambda box: kdb.Box(box.left, box.bottom, box.right - PITCH, box.top))


def wider_drain(row):
    row.box("diff", 3 * PITCH - 200, -200, 3 * PITCH - 80, 0)


def metal_over_one_gate(row):
    row.box("met3", 2 * PITCH, 500, 2 * PITCH + 300, 800)


def longer_end(row):
    row.box("diff", row.end, 0, row.end + 700, WIDTH)


@pytest.mark.parametrize(
    ("plant", "spoils", "layer"),
    [
        (moved, {"areas", "distances"}, "poly"),
        (without_dummy, {"distances", "dummies"}, "poly"),
        (wider_drain, {"areas"}, "diff"),
        (metal_over_one_gate, {"metal_above"}, "met3"),
        (longer_end, {"distances"}, "diff"),
    ],
)
def test_a_planted_error_is_found(plant, spoils, layer):
    row = Row("AABB" if plant in (without_dummy, longer_end) else "ABBA")
    before = row.report()
    plant(row)
    report = row.report()
    wrong = {name for name, equal in report["equal"].items() if not equal}
    assert spoils - {"dummies"} <= wrong
    if "dummies" in spoils:
        assert min(device["dummies"] for device in report["devices"]) == 1
    assert not report["symmetric"]
    assert layer in {each["layer"] for each in report["differences"]}
    if plant is not metal_over_one_gate:
        agree(report, row.oracle())
    if "distances" in spoils:
        assert report["predicted_offsets"][0]["value"] != before["predicted_offsets"][0]["value"]
        assert report["predicted_offsets"][0]["value"] == pytest.approx(offset_of(row.oracle()) + STRAPS_MV, abs=2e-3)


@pytest.mark.parametrize("technology", processes())
@pytest.mark.parametrize(("width", "length"), [(2.0, 0.6), (0.5, 1.0)])
def test_what_the_generators_draw_agrees_with_the_independent_program(technology, width, length):
    tech = load(technology)
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    first, second = (
        Transistor(
            f"M{n}", tech.device("pmos"), tech.to_dbu(width), tech.to_dbu(length), 4, 1, f"d{n}", f"g{n}", "s", "b"
        )
        for n in (1, 2)
    )
    module = draw_pair(layout, tech, PairSpec("pair", first, second, dummies=1))
    gds = {role: tech.spec(role).gds for role in ("active", "poly", "device_text")}
    tap = tech.spec("tap").gds if tech.role("tap") else None
    found = {channel.bounds: channel for channel in channels(module.cell, *gds.values(), tap=tap)}
    extraction = extract(layout, module.cell, tech)
    assert len(extraction.fingers) >= 8  # the same channels, found by both
    assert len(extraction.fingers) == len(found)
    for finger in extraction.fingers:
        box = finger.around.box
        channel = min(
            found.values(),
            key=lambda each: abs(each.bounds[0] - box.left / 1000) + abs(each.bounds[1] - box.bottom / 1000),
        )
        assert finger.around.stress(finger.l_um) == pytest.approx(channel.stress(), rel=2e-5)
        shares = sorted((share.area_um2, share.perimeter_um) for share in finger.junctions.values())
        assert [value for pair in shares for value in pair] == pytest.approx(
            [value for pair in channel.shares for value in pair], rel=1e-5
        )


def test_a_line_promises_no_zero():
    """What is below the step that is shown has a size, and what is not modelled a name."""
    pair = Row("ABBA").report()
    (offset,) = pair["predicted_offsets"]
    offset |= {"value": 3e-6, "unchecked": []}
    assert lines_of_groups([pair])[0].partition(";")[0] == "M1 M2: less than 0.01 mV from stress and strap"
    offset |= {"unchecked": ["stress: not modelled: no coefficients"]}
    offset["contributions"]["stress"] |= {"counted": False, "values": []}
    assert "less than 0.01 mV from strap; not modelled: stress" in lines_of_groups([pair])[0]
    offset |= {"value": None}
    assert "not predicted; not modelled: stress" in lines_of_groups([pair])[0]


def test_compute_metrics_measures_the_groups_it_is_asked_for(run_script, tmp_path):
    path = tmp_path / "row.gds"
    Row("ABBA").layout.write(str(path))
    script = ("layout-metrics/scripts/compute_metrics.py", "--layout-path", path, "--technology", "sky130A")
    code, envelope = run_script(*script, "--matched-groups", '[["M1", "M2"]]')
    assert code == 0
    [group] = envelope["data"]["matched_groups"]
    assert [device["id"] for device in group["devices"]] == ["M1", "M2"]
    assert group["symmetric"]
    assert group["devices"][0]["strap_drain_ohm"] < group["devices"][1]["strap_drain_ohm"]
    assert group["predicted_offsets"][0]["unchecked"] == []
    code, envelope = run_script(*script, "--matched-groups", '[["M1", "M9"]]')
    assert (code, envelope["error"]["code"]) == (2, "DEVICE_NOT_FOUND")
    assert envelope["error"]["details"]["available_devices"] == ["M1", "M2"]


def test_a_dummy_loads_the_drain_beside_it():
    row = Row("ABBA")
    tied = kdb.Text("M1", kdb.Trans(2 * PITCH + LENGTH // 2, WIDTH // 2))
    for shape in [shape for shape in row.shapes("device_text").each() if shape.text == tied]:
        row.shapes("device_text").erase(shape)  # the first finger of M1 is a device of its own now
    report = row.report()
    first, second = report["devices"]
    assert first["ad_um2"] == pytest.approx(second["ad_um2"] * 3 / 4)
    assert first["drain_with_dummies_um2"] == pytest.approx(second["drain_with_dummies_um2"])
    assert (report["equal"]["drains_with_dummies"], report["equal"]["current_direction"]) == (False, False)


def test_stacked_ends_and_currents_upwards_are_measured_in_their_direction():
    """A channel of 2 x 0.5 um; its end steps from 1 to 3 um over a quarter of its width, and the same turned by 90."""
    diffusion = kdb.Region([kdb.Polygon(kdb.Box(-1000, 0, 1500, 2000)), kdb.Polygon(kdb.Box(1500, 1500, 3500, 2000))])
    channel = kdb.Polygon(kdb.Box(0, 0, 500, 2000))
    expected = 1 / (0.75 / 1.25 + 0.25 / 3.25) - 0.25
    for turn, ends in ((kdb.Trans.R0, (1, expected)), (kdb.Trans.R90, (1, expected)), (kdb.Trans.R180, (expected, 1))):
        trans = kdb.Trans(turn)
        turned = channel.transformed(trans)
        [found] = surroundings([turned], diffusion.transformed(trans), kdb.Region(), 0.001).values()
        assert (found.sa_um, found.sb_um) == pytest.approx(ends, abs=2e-6)
        assert found.vertical == (turn == kdb.Trans.R90)


@pytest.mark.parametrize(("gap", "expected"), [(0, 0.0), (1234, 1.234), (9995, 9.995), (10_005, None)])
def test_the_nearest_well_edge_is_found_within_its_range(gap, expected):
    channel = kdb.Polygon(kdb.Box(0, 0, 500, 2000))
    well = kdb.Region(kdb.Box(500 + gap, -5000, 30_000 + gap, 5000))
    [found] = surroundings([channel], kdb.Region(kdb.Box(-300, 0, 800, 2000)), well, 0.001).values()
    assert found.well_um == expected


def cards(row):
    """Return the numbers on the card of each device of the extracted netlist."""
    text = extracted_spice(extract(row.layout, row.cell, SKY)).replace("\n+", " ")
    found = {}
    for line in text.splitlines():
        if line.startswith("XM") and not line.startswith("XMDUMMY"):
            found[line.split()[0][1:]] = {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", line)}
    return found


def stress_of_model(card):
    """Return S as BSIM4 computes it from an instance: the mean over nf fingers at a pitch of sd + L. [1/um]"""
    fingers, half = int(card["nf"]), card["l"] / 2
    steps = [half + number * (card["sd"] + card["l"]) for number in range(fingers)]
    return sum(1 / (card[end] + step) for end in ("sa", "sb") for step in steps) / fingers


@pytest.mark.parametrize("pattern", ["ABBA", "AABB", "AABBBBAA"])
def test_the_extracted_cards_give_the_model_what_was_measured(pattern):
    row = Row(pattern)
    found = row.oracle()
    for name, card in cards(row).items():
        wanted = figures(found, name)
        assert card["m"] * (card["ad"] + card["as"]) == pytest.approx(wanted["ad+as"], rel=1e-6)
        assert card["m"] * (card["pd"] + card["ps"]) == pytest.approx(wanted["pd+ps"], rel=1e-6)
        assert stress_of_model(card) == pytest.approx(wanted["s_per_um"], rel=1e-4)


@given(
    st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9), st.none() | st.floats(0.2, 3)), min_size=1, max_size=12),
    st.floats(0.13, 5),
)
@settings(max_examples=60, deadline=None)
def test_a_model_computes_the_mean_stress_of_any_fingers(places, length):
    around = [ChannelSurroundings(kdb.Box(), False, sa, sb, 0, gap, None, None) for sa, sb, gap in places]
    found = model_distances(around, length)
    card = {"nf": len(around) // found.units, "l": length, "sa": found.sa_um, "sb": found.sb_um, "sd": found.sd_um}
    mean = sum(each.stress(length) for each in around) / len(around)
    assert min(found.sa_um, found.sb_um) >= 0
    assert stress_of_model(card) == pytest.approx(mean, rel=1e-3)


LIBRARIES = ("libs.tech/combined/continuous/sky130.lib.spice", "libs.tech/ngspice/sky130.lib.spice")


def sky130_library():
    """Return the file of the foundry's models below PDK_ROOT, None where there is none."""
    root = Path(os.environ.get("PDK_ROOT", "/nowhere")) / "sky130A"
    return next((root / name for name in LIBRARIES if (root / name).is_file()), None)


@pytest.mark.skipif(
    shutil.which("ngspice") is None or sky130_library() is None, reason="skipped: needs ngspice and PDK_ROOT of sky130A"
)
def test_the_foundrys_model_has_the_predicted_offset(tmp_path):
    """ngspice 39 applies the threshold part of stress, and leaves out the mobility part (see the technology file)."""
    lines = ["* pairs", f'.lib "{sky130_library()}" tt']
    thresholds = []
    for case, (pattern, dummies) in enumerate([("AABBBBAA", 0), ("ABBA", 2), ("AABB", 2)]):
        row = Row(pattern, dummies)
        [offset] = row.report()["predicted_offsets"]
        thresholds += offset["contributions"]["stress"]["threshold"]
        for name, card in cards(row).items():
            gate, numbers = f"{name}_{case}", " ".join(f"{key}={value:g}" for key, value in card.items())
            # Diodes at equal currents: the difference of their gate voltages is the offset.
            lines += [
                f"I{gate} 0 {gate} {card['w'] * card['m'] * 1e-6:g}",
                f"X{gate} {gate} {gate} 0 0 sky130_fd_pr__nfet_01v8 {numbers}",
            ]
    lines += [".control", "op", *(f"print v(m2_{case})-v(m1_{case})" for case in range(3)), ".endc", ".end"]
    (tmp_path / ".spiceinit").write_text("set ngbehavior=hsa\nset ng_nomodcheck\nset skywaterpdk\n")
    (tmp_path / "pairs.spice").write_text("\n".join(lines) + "\n")
    command = ["ngspice", "-b", "pairs.spice"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=WATCHDOG_S)
    simulated = [
        1000 * float(found) for found in re.findall(r"^v\(m2_\d\)-v\(m1_\d\) = (\S+)", done.stdout, re.MULTILINE)
    ]
    assert simulated == pytest.approx(thresholds, abs=0.05, rel=0.1)
