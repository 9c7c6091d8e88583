"""The history of a workspace: undone byte for byte, also after a crash at any step, and bounded."""

import json

import pytest

from layoutkit.errors import FileError, LayoutConflictError, LayoutkitError
from layoutkit.layout import files, history
from layoutkit.layout.history import FOLDER, JOURNAL, History
from layoutkit.layout.workspace import Workspace


def changed(home, content, name="change"):
    """Change the layout as a tool does."""
    past = History.of(home)
    past.begin(name)
    (home / "layout.gds").write_bytes(content)
    past.end()


def test_each_operation_is_undone_byte_for_byte(tmp_path):
    contents = [b"one", b"two", b"three"]
    for number, content in enumerate(contents):
        changed(tmp_path, content, f"step {number}")
    for number, content in reversed(list(enumerate(contents))):
        assert (tmp_path / "layout.gds").read_bytes() == content
        assert History.of(tmp_path).undo(1) == [f"step {number}"]
    assert not (tmp_path / "layout.gds").exists()
    with pytest.raises(LayoutkitError, match="nothing to undo"):
        History.of(tmp_path).undo(1)
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == [JOURNAL]


def test_an_operation_that_changed_nothing_is_not_recorded(tmp_path):
    changed(tmp_path, b"one")
    changed(tmp_path, b"one")
    assert len(History.of(tmp_path).operations) == 1


def test_only_files_that_the_operation_changed_are_restored(tmp_path):
    changed(tmp_path, b"one")
    changed(tmp_path, b"two")
    (tmp_path / "circuit.json").write_text("{}")  # by netlist.parse
    History.of(tmp_path).undo(1)
    assert (tmp_path / "layout.gds").read_bytes() == b"one"
    assert (tmp_path / "circuit.json").read_text() == "{}"


def test_a_change_by_another_program_is_not_lost_silently(tmp_path):
    changed(tmp_path, b"one")
    changed(tmp_path, b"two")
    (tmp_path / "layout.gds").write_bytes(b"by hand")
    with pytest.raises(LayoutConflictError, match="changed by another program after 'change'"):
        History.of(tmp_path).undo(1)
    assert (tmp_path / "layout.gds").read_bytes() == b"by hand"
    History.of(tmp_path).undo(1, discard=True)
    assert (tmp_path / "layout.gds").read_bytes() == b"one"


def test_a_crash_at_any_write_of_an_operation_or_an_undo_leaves_a_design_that_can_be_undone(tmp_path, monkeypatch):
    """Every write is made to fail in turn; then the same is tried again."""
    real, writes = files.write_bytes, [0, 0]

    def failing(path, data):
        writes[0] += 1
        if writes[0] == writes[1]:
            raise FileError("the power failed")
        real(path, data)

    monkeypatch.setattr(files, "write_bytes", failing)
    for step in range(1, 20):
        home = tmp_path / str(step)
        home.mkdir()
        writes[:] = [0, 0]
        changed(home, b"one")
        (home / "circuit.json").write_bytes(b"A")
        past = History.of(home)
        writes[:] = [0, step]
        crashed = False
        try:
            past.begin("both")
            failing(home / "layout.gds", b"two")
            failing(home / "circuit.json", b"B")
            past.end()
            History.of(home).undo(1)
        except FileError:
            crashed = True
        writes[:] = [0, 0]
        again = History.of(home)  # finishes an undo that was begun
        if again.operations and again.operations[-1].name == "both" and again.operations[-1].changed(again.present()):
            again.undo(1)
        assert (home / "layout.gds").read_bytes() == b"one"
        assert (home / "circuit.json").read_bytes() == b"A"
        assert not History.of(home).restoring
        if not crashed:
            break
    assert step > 5  # so many writes were interrupted


def test_the_history_is_bounded_in_number_and_size(tmp_path, monkeypatch):
    for number in range(history.MAX_OPERATIONS + 5):
        changed(tmp_path, f"{number}".encode())
    assert len(History.of(tmp_path).operations) == history.MAX_OPERATIONS
    assert len(list((tmp_path / FOLDER).iterdir())) <= history.MAX_OPERATIONS + 1
    monkeypatch.setattr(history, "MAX_BYTES", 3000)
    for number in range(5):
        changed(tmp_path, bytes([number]) * 1000)
    kept = [path for path in (tmp_path / FOLDER).iterdir() if path.name != JOURNAL]
    assert sum(path.stat().st_size for path in kept) <= 3000


@pytest.mark.parametrize("text", ["x", "[]", '{"format": 9}', '{"format": 1, "operations": [{}], "restoring": {}}'])
def test_a_journal_of_another_version_is_refused_with_its_place(tmp_path, text):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / JOURNAL).write_text(text)
    with pytest.raises(FileError, match="is not a journal of this version"):
        History.of(tmp_path)


def test_a_journal_cannot_name_files_elsewhere(tmp_path):
    changed(tmp_path, b"one")
    journal = tmp_path / FOLDER / JOURNAL
    data = json.loads(journal.read_text())
    data["restoring"] = {"../stolen": "0" * 64, "layout.gds": "../../secret"}
    journal.write_text(json.dumps(data))
    with pytest.raises(FileError, match="is not a journal of this version"):
        History.of(tmp_path)


def test_reports_get_their_names_again_when_their_layout_does(tmp_path):
    import klayout.db as kdb

    workspace = Workspace(tmp_path)
    with workspace.update_layout(0.001) as layout:
        layout.create_cell("A").shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, 10, 10))
    report = tmp_path / "drc.lyrdb"
    report.write_text(f"<x><description>[layout_sha256={workspace.saved.sha256}]</description></x>")
    with workspace.update_layout(0.001) as layout:
        layout.cell("A").clear()
    assert not report.exists()
    assert workspace.operations() == ["change the layout", "change the layout"]
    workspace.undo()
    assert report.exists()
