"""export.gds through its command line: the specified parameters and answer (S0.9), and every kind of bad file."""

import hashlib

import klayout.db as kdb
import pytest

from layoutkit.errors import LayoutkitError
from layoutkit.layout import files
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.tools.layout_outputs import export

SCRIPT = "gds-export/scripts/export_gds.py"


def write(path, *, tops=("TOP",)):
    layout = kdb.Layout()
    layout.dbu = 0.001
    child = layout.create_cell("CHILD")
    child.shapes(layout.layer(4, 0)).insert(kdb.Box(0, 0, 100, 200))
    child.shapes(layout.layer(10, 0)).insert(kdb.Path([kdb.Point(0, 0), kdb.Point(100, 0)], 40))
    for name in tops:
        top = layout.create_cell(name)
        for x in (0, 1000):
            top.insert(kdb.CellInstArray(child.cell_index(), kdb.Trans(0, False, x, 0)))
    layout.write(str(path))
    return path


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source.gds")


def refused(answer):
    code, envelope = answer
    assert (code, envelope["ok"], envelope["error"]["code"]) == (2, False, "INVALID_PARAM")
    return envelope["error"]["message"]


def test_the_answer_is_the_seeds(tmp_path, run_script, source):
    code, envelope = run_script(SCRIPT, "--output-path", "out.gds", "--layout-path", source)
    assert code == 0
    stats = envelope["data"].pop("export_stats")
    assert envelope["data"] == {
        "output_path": str(tmp_path / "out.gds"),
        "cell_name": "TOP",
        "file_size_bytes": (tmp_path / "out.gds").stat().st_size,
        "layout_sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
        "warnings": [],
    }
    assert stats == {
        "cell_count": 2,
        "layer_count": 2,
        "polygon_count": 1,
        "path_count": 1,
        "text_count": 0,
        "layers": ["4/0", "10/0"],
    }


def test_all_parameters_of_the_seed_work_together(tmp_path, run_script, source):
    arguments = ["--cell-name", "TOP", "--flatten", "--layer-filter", "[4]", "--unit", "1e-3", "--precision", "5e-10"]
    code, envelope = run_script(SCRIPT, "--output-path", "out.gds", "--layout-path", source, *arguments)
    assert code == 0
    assert envelope["data"]["export_stats"] == {
        "cell_count": 1,
        "layer_count": 1,
        "polygon_count": 2,
        "path_count": 0,
        "text_count": 0,
        "layers": ["4/0"],
    }
    read = kdb.Layout()
    read.read(str(tmp_path / "out.gds"))
    assert read.dbu == pytest.approx(0.0005)
    assert read.top_cell().dbbox() == kdb.DBox(0, 0, 1.1, 0.2)


def test_two_processes_write_the_same_bytes(tmp_path, run_script, source):
    for name in ("a.gds", "b.gds"):
        run_script(SCRIPT, "--output-path", name, "--layout-path", source, PYTHONHASHSEED=name.encode().hex()[:2])
    assert (tmp_path / "a.gds").read_bytes() == (tmp_path / "b.gds").read_bytes()


def test_the_workspaces_layout_is_the_default(tmp_path, run_script):
    for folder in ("workspace", "given", "named"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "layout.gds", tops=(folder.upper(),))
    for expected, arguments, environment in (
        ("WORKSPACE", [], {}),
        ("NAMED", [], {"ANALOG_LAYOUT_WORKSPACE": "named"}),
        ("GIVEN", ["--workspace", "given"], {"ANALOG_LAYOUT_WORKSPACE": "named"}),
    ):
        code, envelope = run_script(SCRIPT, "--output-path", "out.gds", *arguments, **environment)
        assert (code, envelope["data"]["cell_name"]) == (0, expected)


def test_layer_names_need_their_technology(run_script, source):
    filtered = ["--output-path", "out.gds", "--layout-path", source, "--layer-filter", '["metal2"]']
    code, envelope = run_script(SCRIPT, *filtered)
    assert (code, envelope["data"]["export_stats"]["layers"]) == (0, ["10/0"])
    assert "nothing is drawn on layer metal2" in refused(run_script(SCRIPT, *filtered, "--technology", "sky130A"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cell-name", "NONE"], "the layout has no cell 'NONE'; it has: CHILD, TOP"),
        (["--layer-filter", "[99]"], "nothing is drawn on layer 99; the layout has: 4/0, 10/0"),
        (["--layer-filter", "[]"], "layer_filter"),
        (["--layer-filter", '[{"layer": [4, true]}]'], "layer_filter"),
        (["--precision", "3e-9"], "cannot hold this layout without rounding"),
        (["--precision", "0"], "precision"),
        (["--unit", "true"], "unit"),
        (["--flaten"], "flatten"),
    ],
)
def test_a_wrong_parameter_is_reported_and_leaves_no_file(tmp_path, run_script, source, arguments, message):
    answer = run_script(SCRIPT, "--output-path", "out.gds", "--layout-path", source, *arguments)
    assert message in refused(answer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.gds"]


def test_several_top_cells_need_a_choice(tmp_path, run_script):
    source = write(tmp_path / "two.gds", tops=("A", "B"))
    message = refused(run_script(SCRIPT, "--output-path", "out.gds", "--layout-path", source))
    assert message == "the layout has 2 top cells, choose one with cell_name: A, B"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("none/out.gds", "does not exist; create it first"),
        ("folder.gds", "it is a folder"),
        ("file/out.gds", "file"),
        ("out.txt", "is not that of a layout format"),
        ("source.gds", "is the file the layout comes from"),
        ("./link.gds", "is the file the layout comes from"),
        ("/dev/full", "is not that of a layout format"),
        ("x" * 300 + ".gds", "too long"),
        ("/proc/out.gds", "cannot write"),
    ],
)
def test_an_unwritable_output_is_reported_and_leaves_no_file(tmp_path, run_script, source, output, message):
    (tmp_path / "folder.gds").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "link.gds").symlink_to("source.gds")
    before = {path.name: path.is_dir() or path.read_bytes() for path in tmp_path.iterdir()}
    assert message in refused(run_script(SCRIPT, "--output-path", output, "--layout-path", source))
    assert {path.name: path.is_dir() or path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["missing", "directory", "empty", "binary", "truncated"])
def test_a_bad_input_file_is_reported_and_leaves_no_file(tmp_path, run_script, source, kind):
    bad = tmp_path / "bad.gds"
    if kind == "directory":
        bad.mkdir()
    elif kind != "missing":
        data = source.read_bytes()
        content = {"empty": b"", "binary": bytes(range(256)), "truncated": data[:-40]}
        bad.write_bytes(content[kind])
    assert "bad.gds" in refused(run_script(SCRIPT, "--output-path", "out.gds", "--layout-path", bad))
    assert not (tmp_path / "out.gds").exists()


def test_an_input_file_that_hangs_the_reader_is_reported_and_leaves_no_file(tmp_path, monkeypatch, hanging_oasis):
    """The time limit is half a second instead of ten."""
    monkeypatch.setattr(files, "BASE_TIMEOUT_S", 0.5)
    (tmp_path / "bad.gds").write_bytes(hanging_oasis)
    params = {"layout_path": str(tmp_path / "bad.gds"), "output_path": str(tmp_path / "out.gds")}
    with pytest.raises(LayoutkitError, match=r"bad\.gds.* the reader did not finish within 0\.5"):
        export(params, CurrentLayout(params))
    assert not (tmp_path / "out.gds").exists()


def test_a_workspace_without_layout_is_reported(run_script):
    assert "holds no layout yet" in refused(run_script(SCRIPT, "--output-path", "out.gds"))


def test_the_lef_of_a_cell_is_written_beside_it_and_lists_the_pins_inside_its_outline(tmp_path, run_script):
    layout = kdb.Layout()
    cell = layout.create_cell("top")
    for name, x in (("a", 0), ("b", 4000)):
        cell.shapes(layout.layer(68, 20)).insert(kdb.Box(x, 0, x + 500, 300 + x))
        cell.shapes(layout.layer(68, 16)).insert(kdb.Box(x + (x > 0) * 100, 0 if x == 0 else 100, x + 300, 300))
        cell.shapes(layout.layer(68, 5)).insert(kdb.Text(name, x + 200, 200))
    layout.write(str(tmp_path / "in.gds"))
    target = ("--output-path", "out.gds", "--layout-path", "in.gds", "--lef-path", "out.lef", "--technology", "sky130A")
    code, envelope = run_script(SCRIPT, *target)
    assert code == 0
    assert envelope["data"]["lef"] == {"path": str(tmp_path / "out.lef"), "pins": ["a", "b"], "inside": ["b"]}
    assert "no shape on prBndry.boundary" in envelope["data"]["warnings"][0]
    assert "SIZE 4.5 BY 4.3 ;" in (tmp_path / "out.lef").read_text()
