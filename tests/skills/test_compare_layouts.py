"""layout.compare_layouts through its command line: shapes, devices and verdicts of two builds, and the picture."""

import json
import shutil

import klayout.db as kdb
import pytest
from klayout import lay

from forked import run_program

SCRIPT = "layout-view/scripts/compare_layouts.py"
BUILD = "netlist-to-gds/scripts/build_layout.py"
INVERTER = (
    "* an inverter\n.subckt inv a y vdd vss\nMP y a vdd vdd pmos w=4u l=0.5u\nMN y a vss vss nmos w=2u l=0.5u\n.ends\n"
)
HALF = 100  # dbu


def draw(path, *boxes, dbu=0.001):
    layout = kdb.Layout()
    layout.dbu = dbu
    cell = layout.create_cell("TOP")
    for layer, box in boxes:
        cell.shapes(layout.layer(layer, 0)).insert(kdb.DBox(*box))
    layout.write(str(path))
    return path


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder of a build, and of the same after a transistor was made wider."""
    home = tmp_path_factory.mktemp("builds")
    (home / "inv.spice").write_text(INVERTER, encoding="utf-8")
    for name in ("first", "second"):
        assert run_program(BUILD, "--netlist-path", "inv.spice", "--workspace", name, cwd=home).returncode == 0
    wider = ("--from", "place", "--sizes", '{"MN": {"w": 3e-6}}')
    assert run_program(BUILD, "--workspace", "second", *wider, cwd=home).returncode == 0
    return home / "first", home / "second"


def test_shapes_that_only_one_file_has_are_told_by_layer_with_their_area(tmp_path, run_script):
    """One 1 x 2 um box is 0.5 um longer in the second file, which counts in another database unit."""
    before = draw(tmp_path / "a.gds", (4, (0, 0, 1, 2)), (2, (0, 0, 1, 1)))
    after = draw(tmp_path / "b.gds", (4, (0, 0, 1, 2.5)), (2, (0, 0, 1, 1)), dbu=0.005)
    code, envelope = run_script(SCRIPT, "--before", before, "--after", after)
    data = envelope["data"]
    assert code == 0
    assert data["layers"] == [{"layer": "metal1", "before": 2.0, "after": 2.5, "only_before": 0.0, "only_after": 0.5}]
    assert data["same_shapes"] is False
    assert data["words"] == [
        "height: 2 um before, 2.5 um after (+25.0%)",
        "area: 2 um2 before, 2.5 um2 after (+25.0%)",
        "other shapes on metal1",
    ]
    assert data["places_marked"] == 1
    assert data["image_path"] == str(tmp_path / "comparison.png")
    assert lay.PixelBuffer.read_png(data["image_path"]).width() > 2 * HALF
    assert len(data["warnings"]) == 2


def test_equal_shapes_in_other_cells_and_pieces_are_equal(tmp_path, run_script):
    before = draw(tmp_path / "a.gds", (4, (0, 0, 1, 2)))
    after = draw(tmp_path / "b.gds", (4, (0, 0, 1, 1.5)), (4, (0, 1, 1, 2)))
    _, envelope = run_script(SCRIPT, "--before", before, "--after", after, "--output-path", tmp_path / "c.png")
    assert envelope["data"]["same_shapes"] is True
    assert envelope["data"]["words"] == []
    assert envelope["data"]["places_marked"] == 0


def test_two_builds_differ_by_device_size_and_verdict(built, run_script):
    first, second = built
    _, envelope = run_script(SCRIPT, "--before", first, "--after", second)
    data = envelope["data"]
    assert {"device": "MN", "change": "other values", "what": "w 2 um to 3 um"} in data["devices"]
    assert {each["name"]: (each["before"], each["after"]) for each in data["verdicts"]}["DRC clean"] == (True, True)
    assert "poly" in {each["layer"] for each in data["layers"]}
    assert data["warnings"] == []


def test_a_finding_that_only_one_build_has_is_new_or_mended(built, run_script, tmp_path):
    """A finding planted in the summary of a copy is new from the first to the copy, and mended the other way."""
    first = built[0]
    copy = shutil.copytree(first, tmp_path / "copy")
    summary = json.loads((copy / "summary.json").read_text())
    finding = {
        "id": "planted",
        "severity": "must",
        "devices": ["MN"],
        "nets": [],
        "why": "it is planted",
        "place": None,
    }
    summary["review"]["findings"].append(finding)
    (copy / "summary.json").write_text(json.dumps(summary))
    found = {}
    for name, pair in (("new", (first, copy)), ("mended", (copy, first))):
        _, envelope = run_script(SCRIPT, "--before", pair[0], "--after", pair[1])
        found[name] = envelope["data"]["findings"]
        assert f"{name} finding planted (must): it is planted" in envelope["data"]["words"]
    assert [each["id"] for each in found["new"]["new"]] == ["planted"]
    assert found["new"]["mended"] == []
    assert [each["id"] for each in found["mended"]["mended"]] == ["planted"]


def test_a_build_whose_layout_was_changed_is_compared_by_shapes_alone(built, run_script, tmp_path):
    copy = shutil.copytree(built[0], tmp_path / "copy")
    layout = kdb.Layout()
    layout.read(str(copy / "layout.gds"))
    layout.top_cell().shapes(layout.layer(4, 0)).insert(kdb.DBox(0, 0, 1, 1))
    layout.write(str(copy / "layout.gds"))
    _, envelope = run_script(SCRIPT, "--before", built[0], "--after", copy)
    assert envelope["data"]["verdicts"] == []
    assert envelope["data"]["findings"]["compared"] is False
    assert "no up-to-date summary.json" in envelope["data"]["warnings"][0]


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("summary.json", lambda data: data["review"].update(findings=[{"id": 1}])),
        ("summary.json", lambda data: data["metrics"].update(devices=[{"id": "MN", "centroid": "here"}])),
        ("summary.json", lambda data: data.update(layout_sha256=["x"])),
        ("circuit.json", lambda data: data["circuit"]["devices"][0].update(terminals=["d", "g"])),
    ],
    ids=["findings", "places", "digest", "terminals"],
)
def test_what_a_file_holds_besides_a_build_is_not_compared(built, run_script, tmp_path, file, change):
    copy = shutil.copytree(built[0], tmp_path / "copy")
    data = json.loads((copy / file).read_text())
    change(data)
    (copy / file).write_text(json.dumps(data))
    code, envelope = run_script(SCRIPT, "--before", built[0], "--after", copy)
    assert code == 0
    assert envelope["data"]["same_shapes"] is True


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.gds", "no such file"), ("text.gds", "cannot read"), (".", "")],
    ids=["missing", "no layout", "an empty folder"],
)
def test_what_cannot_be_compared_is_refused(tmp_path, run_script, name, message):
    good = draw(tmp_path / "a.gds", (4, (0, 0, 1, 2)))
    (tmp_path / "text.gds").write_text("not a layout")
    code, envelope = run_script(SCRIPT, "--before", good, "--after", tmp_path / name)
    assert code == 2
    assert message in envelope["error"]["message"]
    assert not list(tmp_path.glob("*.png"))


def test_a_link_to_a_compared_file_is_not_written_over(tmp_path, run_script):
    good = draw(tmp_path / "a.gds", (4, (0, 0, 1, 2)))
    (tmp_path / "link.png").symlink_to(good)
    held = good.read_bytes()
    code, _ = run_script(SCRIPT, "--before", good, "--after", good, "--output-path", tmp_path / "link.png")
    assert (code, good.read_bytes()) == (2, held)


def test_an_empty_layout_has_no_size_and_two_processes_are_told(tmp_path, run_script):
    before = draw(tmp_path / "a.gds", (4, (0, 0, 1, 2)))
    after = draw(tmp_path / "b.gds")
    code, envelope = run_script(SCRIPT, "--before", before, "--after", after)
    assert code == 0
    assert "width: 1 um before, 0 um after (-100.0%)" in envelope["data"]["words"]
    sky = tmp_path / "sky.gds"
    layout = kdb.Layout()
    cell = layout.create_cell("TOP")
    for layer in (66, 67, 68):
        cell.shapes(layout.layer(layer, 20)).insert(kdb.DBox(0, 0, 1, 1))
    layout.write(str(sky))
    _, envelope = run_script(SCRIPT, "--before", before, "--after", sky)
    assert any("two processes" in text for text in envelope["data"]["warnings"])
    _, envelope = run_script(SCRIPT, "--before", after, "--after", sky)
    assert not any("two processes" in text for text in envelope["data"]["warnings"])
    code, envelope = run_script(SCRIPT, "--before", after, "--after", after, "--output-path", tmp_path / "both.png")
    assert (code, envelope["data"]["same_shapes"]) == (0, True)
