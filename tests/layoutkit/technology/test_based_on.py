"""A technology file that states only what differs from another: merged, checked, drawn in, known by all its content."""

import json
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import check
from layoutkit.errors import TechnologyError
from layoutkit.extract.extractor import extract
from layoutkit.layout.klayout_files import write_package
from layoutkit.layout.workspace_record import DrawnIn
from layoutkit.technology import load
from layoutkit.technology.technology_files import MOST_BASES, SHIPPED
from layoutkit.tools.technology_file import validate

# The generic process without its fourth metal, with wider space in the first, and a transistor of another flavour.
VARIANT = """
technology: generic3
based_on: generic
without:
  layers: ["metal4*", via3]
  stack.conductors: [metal4]
  stack.cuts: [via3]
  parasitics.conductors: [metal4]
  parasitics.pairs: ["metal4/*"]
  rules: ["M4_*", "VIA3_*", M3_ENC_VIA3*]
layers:
  lvt: {gds: [60, 0], purpose: implant}
devices:
  nmos: {supply_v: 1.5}
  nmos_lvt: {type: nmos, model: nmos_lvt, min_l: POLY_MIN_WIDTH, min_w: GATE_MIN_WIDTH, implant: nplus,
    bulk_implant: pplus, well: pwell, markers: [lvt], dimensions: {marker_enclosure: 0.2, marker_space: 0.4}}
rules:
  - {id: ANGLE_90, layers: [active, poly, contact, via1, via2]}
  - {id: ANGLE_45, layers: [nwell, pwell, nplus, pplus, metal1, metal2, metal3]}
  - id: PIN_IN_METAL
    cases: [{inner: metal1.pin, outer: metal1}, {inner: metal2.pin, outer: metal2}, {inner: metal3.pin, outer: metal3}]
  - {id: M1_MIN_SPACE, value: 0.3}
  - {id: LVT_MIN_WIDTH, kind: width, layer: lvt, value: 0.4, description: Minimum width of lvt, source: own}
"""


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(text=VARIANT, name="variant.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def variant(written):
    return written()


def test_a_file_beside_the_work_makes_a_process(variant):
    assert [str(fault) for fault in validate(variant).faults] == []
    base, tech = load("generic"), load(variant)
    assert [each.name for each in tech.conductors] == ["metal1", "metal2", "metal3"]
    assert [each.name for each in tech.cuts] == ["via1", "via2"]
    assert tech.conductors[0].space == 300
    assert tech.conductors[1:] == base.conductors[1:3]
    assert tech.devices["nmos"].supply_v == 1.5
    assert tech.devices["nmos"].min_w == base.devices["nmos"].min_w
    assert tech.rule("M1_MIN_SPACE").options == base.rule("M1_MIN_SPACE").options
    assert tech.rule("M1_MIN_SPACE").description == base.rule("M1_MIN_SPACE").description
    assert "LVT_MIN_WIDTH" in {rule.id for rule in tech.rules}
    assert not tech.notes  # they say what the base is
    assert len(base.conductors) == 4
    assert base.conductors[0].space < 300


@pytest.mark.parametrize("flavour", ["nmos", "nmos_lvt", "pmos"])
def test_its_transistors_are_drawn_checked_and_extracted(variant, flavour):
    tech = load(variant)
    layout = kdb.Layout()
    made = transistor(tech, "M1", flavour, MosSize(4e-6, 0.5e-6, 2), {"d": "d", "g": "g", "s": "s", "b": "b"})
    cell = draw_mos(layout, tech, MosSpec(made, "cell")).cell
    report = check(layout, cell, tech)
    assert [(v.rule.id, v.reason) for v in report.verdicts if v.status == "failed"] == []
    assert [device.model for device in extract(layout, cell, tech).circuit.devices] == [tech.devices[flavour].model]


def test_a_file_may_be_based_on_one_that_is_based_on_another(written):
    written()
    second = load(
        written("technology: second\nbased_on: variant.yaml\nrules: [{id: M2_MIN_SPACE, value: 0.5}]\n", "b.yaml")
    )
    assert [each.space for each in second.conductors[:2]] == [300, 500]
    assert "nmos_lvt" in second.devices


@pytest.mark.parametrize(("device", "known"), [("npn13G2", True), ("diodevdd_2kv", False)])
def test_a_usual_current_is_that_of_a_bipolar(written, device, known):
    path = written(f"technology: mine\nbased_on: sg13g2\ndevices:\n  {device}: {{usual_ma_um: 1.0}}\n")
    said = [fault for fault in validate(str(path)).faults if "usual_ma_um" in str(fault)]
    assert (not said) == known


def test_every_name_that_the_base_has_not_is_told_at_once(written):
    path = written(
        "technology: mine\nbased_on: generic\n"
        "without: {layers: [metal11, 'via*'], rulez: [x], stack.cuts: [via9], notes: [first]}\n"
    )
    with pytest.raises(TechnologyError) as caught:
        load(path)
    text = str(caught.value)
    for words in (
        "'metal11' (did you mean 'metal1'?)",
        "without.rulez",
        "did you mean 'rules'",
        "'via9'",
        "without.notes",
    ):
        assert words in text
    assert "via*" not in text


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("based_on: [generic]", "based_on: must be the name"),
        ("based_on: ../generic.yaml", "in the same folder"),
        ("based_on: nowhere.yaml", "in the same folder"),
        ("based_on: sky", "shipped technology (generic,"),
        ("based_on: generic\nwithout: {layers: metal4}", "without.layers: must be a list of names"),
        ("without: {layers: [metal4]}", "based_on"),
        ("based_on: variant.yaml", f"more than {MOST_BASES} files"),
    ],
)
def test_what_is_wrong_with_the_base_is_told(written, said, words):
    path = written(f"technology: mine\n{said}\n")
    with pytest.raises(TechnologyError, match=r"variant\.yaml") as caught:
        load(path)
    assert words in str(caught.value)


def test_a_rule_stated_twice_is_a_fault_as_in_any_file(written):
    twice = "rules: [{id: A, kind: width, layer: poly, value: 1}, {id: A, kind: width, layer: poly, value: 2}]"
    assert "there is another rule of this id" in [
        fault.message for fault in validate(written(f"technology: mine\nbased_on: generic\n{twice}\n")).faults
    ]


def test_a_change_of_the_base_is_a_change(written):
    base = written(
        (SHIPPED / "generic.yaml").read_text(encoding="utf-8").replace("technology: generic", "technology: b", 1),
        "b.yaml",
    )
    path = written("technology: mine\nbased_on: b.yaml\n")
    before = load(path)
    recorded = DrawnIn.of(before).sha256
    text = Path(base).read_text(encoding="utf-8")
    Path(base).write_text(text.replace("id: M1_MIN_SPACE,", "id: M1_MIN_SPACE, severity: warning,"), encoding="utf-8")
    after = load(path)
    assert (before.rule("M1_MIN_SPACE").severity, after.rule("M1_MIN_SPACE").severity) == ("error", "warning")
    assert DrawnIn.of(after).sha256 != recorded


def test_the_package_for_klayout_holds_the_whole_file(variant, tmp_path):
    write_package([variant], str(tmp_path / "package"), version="1")
    document = json.loads((tmp_path / "package/python/layoutkit/technology/generic3.yaml").read_text(encoding="utf-8"))
    assert "based_on" not in document
    assert [entry["name"] for entry in document["stack"]["conductors"]] == ["metal1", "metal2", "metal3"]
