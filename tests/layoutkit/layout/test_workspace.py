"""The folder of a design in progress: nothing is lost, neither by concurrency nor by bad files."""

import subprocess
import sys
import threading

import klayout.db as kdb
import pytest

from layoutkit.errors import FileError, LayoutkitError, TechnologyError, TimeLimitError
from layoutkit.layout import files
from layoutkit.layout.cells import choose_cell, flat_shape_count, fresh_cell, store_cell
from layoutkit.layout.workspace import Workspace
from layoutkit.tools.current_layout import CurrentLayout
from patience import WATCHDOG_S

ADD_CELL = """
import sys
import klayout.db as kdb
from layoutkit.layout.cells import fresh_cell
from layoutkit.layout.workspace import Workspace
for number in range(3):
    with Workspace(sys.argv[1]).update_layout(0.001) as layout:
        cell = fresh_cell(layout, f"M{sys.argv[2]}_{number}")
        cell.shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, 10, 10))
"""


def cell_with_box(layout, name, size=10):
    cell = fresh_cell(layout, name)
    cell.shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, size, size))
    return cell


def place(parent, child):
    parent.insert(kdb.CellInstArray(child.cell_index(), kdb.Trans(0, False, 0, 0)))


def names(layout):
    return sorted(cell.name for cell in layout.each_cell())


def test_eight_processes_that_add_cells_at_once_lose_none(tmp_path):
    run = [sys.executable, "-c", ADD_CELL, str(tmp_path / "w")]
    processes = [subprocess.Popen([*run, str(number)]) for number in range(8)]
    assert [process.wait(WATCHDOG_S) for process in processes] == [0] * 8
    expected = sorted(f"M{process}_{number}" for process in range(8) for number in range(3))
    assert names(Workspace(tmp_path / "w").read_layout()) == expected


def test_the_order_in_which_cells_were_added_does_not_show_in_the_bytes(tmp_path):
    for folder, order in (("a", "12"), ("b", "21")):
        for name in order:
            with Workspace(tmp_path / folder).update_layout(0.001) as layout:
                cell_with_box(layout, f"M{name}")
    assert Workspace(tmp_path / "a").layout_path.read_bytes() == Workspace(tmp_path / "b").layout_path.read_bytes()


def test_nothing_is_saved_when_the_update_fails(tmp_path):
    workspace = Workspace(tmp_path)
    with workspace.update_layout(0.001) as layout:
        cell_with_box(layout, "M1")
    before = workspace.layout_path.read_bytes()
    with pytest.raises(LayoutkitError, match="cannot be stored"), workspace.update_layout(0.001) as layout:
        cell_with_box(cell_with_box(layout, "M2").layout(), "a name with spaces")
    assert workspace.layout_path.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".history", ".lock", "layout.gds"]


def test_a_corrupt_layout_is_told_and_left_as_it_is(tmp_path):
    workspace = Workspace(tmp_path)
    workspace.layout_path.write_bytes(b"\x00\x06\x00\x02\x02\x58 half a file")
    with pytest.raises(FileError, match=r"layout\.gds"), workspace.update_layout(0.001):
        pytest.fail("a corrupt layout must not be opened")
    assert workspace.layout_path.read_bytes() == b"\x00\x06\x00\x02\x02\x58 half a file"


def test_another_database_unit_is_told(tmp_path):
    with Workspace(tmp_path).update_layout(0.005) as layout:
        cell_with_box(layout, "M1")
    with pytest.raises(FileError, match=r"0\.005 um, the technology one of 0\.001 um"):
        Workspace(tmp_path).open_layout(0.001)


def test_a_locked_workspace_is_told_in_time(tmp_path):
    workspace = Workspace(tmp_path)
    held, done = threading.Event(), threading.Event()

    def hold():
        with workspace.lock():
            held.set()
            done.wait(WATCHDOG_S)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(WATCHDOG_S)
    with pytest.raises(TimeLimitError) as caught, workspace.lock(timeout_s=0.05):
        pytest.fail("the lock is held by another")
    done.set()
    thread.join()
    assert caught.value.code == "TIMEOUT"
    with workspace.lock(timeout_s=1):
        pass


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    script = (
        "import sys,time; from layoutkit.layout.workspace import Workspace\n"
        "with Workspace(sys.argv[1]).lock(): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with Workspace(tmp_path).lock(timeout_s=5):
        pass


def test_a_workspace_that_is_a_file_is_told(tmp_path):
    (tmp_path / "w").write_text("x")
    with pytest.raises(FileError, match="specify a folder"):
        Workspace(tmp_path / "w")
    with pytest.raises(FileError, match="cannot create"), Workspace(tmp_path / "w" / "deep").update_layout(0.001):
        pytest.fail("a folder below a file cannot be")


def test_a_workspace_without_a_layout_is_told(tmp_path):
    with pytest.raises(FileError, match="holds no layout yet"):
        CurrentLayout({"workspace": str(tmp_path)}).read()


def test_the_folder_is_the_one_given_else_the_environments_else_workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("ANALOG_LAYOUT_WORKSPACE", str(tmp_path / "env"))
    assert Workspace(tmp_path / "given").directory == tmp_path / "given"
    assert Workspace().directory == tmp_path / "env"
    monkeypatch.delenv("ANALOG_LAYOUT_WORKSPACE")
    assert str(Workspace().directory) == "workspace"


def test_json_is_kept_sorted_and_read_back(tmp_path):
    workspace = Workspace(tmp_path / "new")
    workspace.write_json("circuit.json", {"b": 1, "a": ["宽"]})
    assert workspace.circuit_path.read_text(encoding="utf-8") == '{\n  "a": [\n    "宽"\n  ],\n  "b": 1\n}\n'
    assert workspace.read_json("circuit.json") == {"b": 1, "a": ["宽"]}
    files.write_text(workspace.circuit_path, "{")
    with pytest.raises(FileError, match="not JSON"):
        workspace.read_json("circuit.json")


def test_a_cell_that_is_drawn_again_stays_where_it_is_placed_and_drops_what_only_it_used():
    layout = kdb.Layout()
    top, device = cell_with_box(layout, "TOP"), cell_with_box(layout, "M1")
    via, shared = cell_with_box(layout, "VIA"), cell_with_box(layout, "SHARED")
    place(top, device)
    place(device, via)
    place(device, shared)
    place(top, shared)
    cell_with_box(layout, "M1", size=20)
    assert names(layout) == ["M1", "SHARED", "TOP"]
    assert layout.cell("TOP").bbox() == kdb.Box(0, 0, 20, 20)


def test_storing_a_cell_twice_is_storing_it_once():
    source = kdb.Layout()
    parent, middle, leaf = (cell_with_box(source, name) for name in ("A", "B", "C"))
    place(parent, middle)
    place(middle, leaf)
    target = kdb.Layout()
    target.dbu = source.dbu
    for _ in range(2):
        stored = store_cell(target, parent)
    assert stored.name == "A"
    assert kdb.LayoutDiff().compare(source, target, kdb.LayoutDiff.Silent)


def test_storing_into_another_database_unit_is_refused():
    source, target = kdb.Layout(), kdb.Layout()
    target.dbu = 0.005
    with pytest.raises(FileError, match="database units differ"):
        store_cell(target, cell_with_box(source, "A"))


def test_a_cell_is_chosen_only_when_there_is_no_doubt():
    layout = kdb.Layout()
    with pytest.raises(LayoutkitError, match="holds no cells"):
        choose_cell(layout)
    cell_with_box(layout, "A")
    assert choose_cell(layout).name == "A"
    cell_with_box(layout, "B")
    assert choose_cell(layout, "B").name == "B"
    with pytest.raises(LayoutkitError, match="2 top cells, choose one with cell_name: A, B"):
        choose_cell(layout)
    with pytest.raises(LayoutkitError, match="no cell 'C'; it has: A, B"):
        choose_cell(layout, "C")


def test_flat_shapes_are_counted_without_flattening():
    layout = kdb.Layout()
    below = cell_with_box(layout, "L0")
    for level in range(1, 8):
        cell = cell_with_box(layout, f"L{level}")
        step = kdb.Vector(1, 1)
        cell.insert(kdb.CellInstArray(below.cell_index(), kdb.Trans(0, False, 0, 0), step, step, 100, 10))
        below = cell
    assert flat_shape_count(below) == sum(1000**level for level in range(8))


def test_of_two_first_drawings_at_once_the_second_is_refused_when_it_is_of_another_technology(tmp_path):
    technologies = {name: Workspace(tmp_path).technology(name) for name in ("sky130A", "gf180mcuD")}
    for name in ("sky130A", "sky130A"):
        with Workspace(tmp_path).update_layout(0.001, technologies[name]) as layout:
            cell_with_box(layout, f"M{layout.cells()}")
    before = Workspace(tmp_path).layout_path.read_bytes()
    with (
        pytest.raises(TechnologyError, match="is drawn in sky130A, not in gf180mcuD"),
        Workspace(tmp_path).update_layout(0.001, technologies["gf180mcuD"]),
    ):
        pytest.fail("a layout of another technology must not be opened for drawing")
    assert Workspace(tmp_path).layout_path.read_bytes() == before


def test_a_lock_that_others_keep_does_not_lose_a_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr("layoutkit.layout.workspace.LOCK_TIMEOUT_S", 0.0)
    workspace = Workspace(tmp_path)
    with workspace.lock():
        told = Workspace(tmp_path).add_reports([tmp_path / "drc.lyrdb"])
    assert "cannot record which reports" in told[0]
    assert "was locked by another process" in told[0]


def test_entries_of_a_circuit_that_are_of_another_form_are_left_out(tmp_path):
    workspace = Workspace(tmp_path)
    usable = {"id": "M1", "terminals": {"d": "q"}}
    workspace.write_json("circuit.json", {"name": "t", "devices": [usable, {"w": 1}, 3], "modules": [{"name": "x"}]})
    assert workspace.circuit() == {"name": "t", "devices": [usable], "modules": []}
    workspace.write_json("circuit.json", {"devices": {"M1": {}}})
    assert workspace.circuit() == {"devices": [], "modules": []}
