"""Reading layouts that may be anything (issue: bad input), writing files that are whole or absent."""

import gzip
import os
import struct
import time
from contextlib import suppress
from pathlib import Path

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.errors import FileError, LayoutkitError
from layoutkit.layout import files


def sample(order=("A", "B"), layers=((1, 0), (68, 20))):
    """A cell B that places A twice in an array; made in the orders asked for."""
    layout = kdb.Layout()
    layout.dbu = 0.001
    for pair in layers:
        layout.layer(*pair)
    for name in order:
        layout.create_cell(name)
    for pair in sorted(layers):
        layout.cell("A").shapes(layout.layer(*pair)).insert(kdb.Box(0, 0, 100, 200))
    array = kdb.CellInstArray(
        layout.cell("A").cell_index(), kdb.Trans(0, False, 10, 20), kdb.Vector(500, 0), kdb.Vector(0, 600), 2, 3
    )
    layout.cell("B").insert(array)
    return layout


@pytest.fixture
def gds(tmp_path):
    path = tmp_path / "sample.gds"
    files.write_layout(sample(), path)
    return path


@pytest.mark.parametrize("suffix", [".gds", ".gds2", ".oas", ".oasis", ".gds.gz", ".oas.gz", ".GDS"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"sample{suffix}"
    size = files.write_layout(sample(), path)
    assert path.stat().st_size == size
    assert kdb.LayoutDiff().compare(sample(), files.read_layout(path), kdb.LayoutDiff.Silent)


def test_the_format_is_taken_from_the_content_not_from_the_name(tmp_path):
    files.write_layout(sample(), tmp_path / "x.oas")
    (tmp_path / "x.oas").rename(tmp_path / "x.gds")
    assert files.read_layout(tmp_path / "x.gds").cell("B") is not None


def test_a_file_name_that_is_no_text_is_read(tmp_path, gds):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff \xe5\xae\xbd.gds"))
    gds.rename(odd)
    assert files.read_layout(odd).cell("A") is not None


def test_bytes_do_not_depend_on_the_order_in_which_cells_and_layers_were_made(tmp_path):
    files.write_layout(sample(), tmp_path / "a.gds")
    files.write_layout(sample(order=("B", "A"), layers=((68, 20), (1, 0))), tmp_path / "b.gds")
    assert (tmp_path / "a.gds").read_bytes() == (tmp_path / "b.gds").read_bytes()


def test_bytes_hold_no_time(tmp_path, monkeypatch):
    files.write_layout(sample(), tmp_path / "a.gds.gz")
    monkeypatch.setattr(time, "time", lambda: 1e9)
    files.write_layout(sample(), tmp_path / "b.gds.gz")
    assert (tmp_path / "a.gds.gz").read_bytes() == (tmp_path / "b.gds.gz").read_bytes()


def test_properties_survive_writing(tmp_path):
    layout = sample()
    shape = layout.cell("A").shapes(layout.layer(1, 0)).insert(kdb.Box(0, 0, 7, 7))
    shape.set_property(5, "five")
    files.write_layout(layout, tmp_path / "a.gds")
    read = files.read_layout(tmp_path / "a.gds")
    marked = [s for s in read.cell("A").shapes(read.layer(1, 0)).each() if s.property(5) == "five"]
    assert [s.bbox() for s in marked] == [kdb.Box(0, 0, 7, 7)]


def refused(path, **limits):
    with pytest.raises(FileError) as caught:
        files.read_layout(path, **limits)
    assert caught.value.code == "INVALID_PARAM"
    assert str(path) in str(caught.value)
    return caught.value.details["reason"]


def test_a_missing_file_is_reported(tmp_path):
    assert refused(tmp_path / "none.gds") == "no such file"


def test_a_path_through_a_file_is_told(gds):
    assert refused(gds / "x.gds") == "Not a directory"


def test_a_directory_is_told(tmp_path):
    assert "folder" in refused(tmp_path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.gds")
    assert "regular" in refused(tmp_path / "pipe.gds")


def test_a_name_with_a_null_is_told():
    with pytest.raises(FileError):
        files.read_layout("a\0b.gds")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (bytes(range(256)) * 4, "neither GDSII nor OASIS"),
        (b"* a netlist\n.end\n", "neither GDSII nor OASIS"),
        (b"\x00\x06\x00\x02\x02\x58", "truncated or corrupt"),
        (b"%SEMI-OASIS\r\n", "truncated or corrupt"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (gzip.compress(b"hello" * 100, mtime=0), "neither"),
        (gzip.compress(b"hello" * 100, mtime=0)[:-9], "gzip"),
    ],
)
def test_what_is_no_layout_is_told(tmp_path, content, reason):
    (tmp_path / "bad.gds").write_bytes(content)
    assert reason in refused(tmp_path / "bad.gds")


def test_every_truncation_of_a_gds_file_is_told(gds):
    data = gds.read_bytes()
    for length in range(4, len(data)):
        gds.write_bytes(data[:length])
        assert "truncated" in refused(gds)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_corrupt_gds_file_is_read_or_told(changes):
    data = bytearray(files.layout_bytes(sample(), "GDS2"))
    for position, value in changes:
        data[position % len(data)] = value
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"mutant-{os.getpid()}.gds"  # noqa: S108 - hypothesis shares it
    path.write_bytes(data)
    with suppress(FileError):
        files.read_layout(path)
    path.unlink()


def test_a_cell_that_contains_itself_is_told(gds):
    data = gds.read_bytes()
    sname = struct.pack(">HH", 6, 0x1206)
    assert data.count(sname + b"A\0") == 1
    gds.write_bytes(data.replace(sname + b"A\0", sname + b"B\0"))
    assert refused(gds) == "a cell contains itself"


def test_a_database_unit_of_zero_is_told(gds):
    data = gds.read_bytes()
    at = data.index(struct.pack(">HH", 20, 0x0305)) + 4
    gds.write_bytes(data[:at] + bytes(16) + data[at + 16 :])
    assert "database unit" in refused(gds)


def test_a_file_larger_than_allowed_is_told(gds):
    assert "more than the allowed 10" in refused(gds, max_bytes=10)


def test_a_gzip_bomb_is_told(tmp_path):
    (tmp_path / "bomb.gds.gz").write_bytes(gzip.compress(bytes(50_000_000), mtime=0))
    assert "unzips to more" in refused(tmp_path / "bomb.gds.gz", max_bytes=1_000_000)


def test_an_oasis_file_that_hangs_the_reader_is_told_in_time(tmp_path, hanging_oasis):
    """KLayout's reader never returns from these bytes, holds the GIL and ignores SIGTERM."""
    (tmp_path / "hang.oas").write_bytes(hanging_oasis)
    assert "did not finish within 0.5 s" in refused(tmp_path / "hang.oas", timeout_s=0.5)


def test_a_huge_oasis_repetition_is_told_in_time(tmp_path):
    """One rectangle, repeated 2^31 by 2^31 times, in 316 bytes."""
    rectangle = bytes.fromhex("147f42140a0a000001feffffff07feffffff071414")
    data = b"%SEMI-OASIS\r\n" + b"\x01\x031.0\x00\xe8\x07" + bytes(13) + b"\x0e\x03TOP" + rectangle
    (tmp_path / "many.oas").write_bytes(data + b"\x02\xfc\x01" + bytes(253))
    refused(tmp_path / "many.oas", timeout_s=0.5)


def test_reading_says_nothing_on_stdout(tmp_path, capfd):
    """KLayout prints its warnings to stdout, where the result envelope belongs."""
    (tmp_path / "x.gds").write_bytes(without_cell_a())
    assert "Z" in refused(tmp_path / "x.gds")
    assert capfd.readouterr().out == ""


def without_cell_a():
    """The sample as GDSII, with its references to A changed to a cell Z that is not there."""
    sname = struct.pack(">HH", 6, 0x1206)
    return files.layout_bytes(sample(), "GDS2").replace(sname + b"A\0", sname + b"Z\0")


def unwritable(path):
    with pytest.raises(FileError) as caught:
        files.write_layout(sample(), path)
    assert caught.value.code == "INVALID_PARAM"
    return str(caught.value)


def test_a_missing_folder_is_told(tmp_path):
    assert "create it first" in unwritable(tmp_path / "none" / "x.gds")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_a_folder_is_told(tmp_path):
    (tmp_path / "x.gds").mkdir()
    assert "it is a folder" in unwritable(tmp_path / "x.gds")


def test_an_output_that_is_a_device_is_told(tmp_path):
    (tmp_path / "x.gds").symlink_to("/dev/full")
    assert "regular" in unwritable(tmp_path / "x.gds")


def test_an_unknown_suffix_is_told(tmp_path):
    assert ".gds" in unwritable(tmp_path / "x.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_folder_is_told(tmp_path):
    tmp_path.chmod(0o500)
    assert "not writable" in unwritable(tmp_path / "x.gds")
    tmp_path.chmod(0o700)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "x.gds").write_bytes(b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in unwritable(tmp_path / "x.gds")
    assert [p.name for p in tmp_path.iterdir()] == ["x.gds"]
    assert (tmp_path / "x.gds").read_bytes() == b"old"


def test_a_link_to_a_file_stays_a_link(tmp_path):
    (tmp_path / "real.gds").write_bytes(b"old")
    (tmp_path / "x.gds").symlink_to("real.gds")
    files.write_layout(sample(), tmp_path / "x.gds")
    assert (tmp_path / "x.gds").is_symlink()
    assert files.read_layout(tmp_path / "real.gds").cell("A") is not None


def test_a_written_file_is_readable_by_whom_the_umask_allows(tmp_path):
    previous = os.umask(0o022)
    try:
        files.write_text(tmp_path / "x.txt", "x")
    finally:
        os.umask(previous)
    assert (tmp_path / "x.txt").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["a b", "宽", "a\tb", ""])
def test_a_cell_name_that_gds_cannot_hold_is_told(tmp_path, name):
    layout = kdb.Layout()
    layout.create_cell("x")
    layout.rename_cell(0, name)
    with pytest.raises(LayoutkitError, match="cannot be stored"):
        files.write_layout(layout, tmp_path / "x.gds")
    assert list(tmp_path.iterdir()) == []
