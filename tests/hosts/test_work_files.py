"""The files that tools work on: which are served, which a call made, and what may be uploaded."""

import os
import shutil
import socket
from types import SimpleNamespace

import pytest

from skillpack import ToolDeclaration
from skillpack.exceptions import FileRefusedError
from skillpack.hosts.pack import Pack
from skillpack.hosts.work_files import MAX_MADE, WorkFiles
from skillpack.untrusted.file_access import FileExistsAlreadyError, name_fault, open_inside, write_inside

SECRET = b"hunter2"
FOLDER = {"type": "object", "properties": {"workspace": {"type": "string", "x-path": True}}}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A server's folder with ways out of it, and secrets beside it and hidden in it."""
    folder = tmp_path / "home"
    (folder / "ws").mkdir(parents=True)
    (folder / "ws" / "größe 1.json").write_bytes(b"{}")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "key").write_bytes(SECRET)
    (folder / "ws" / ".lock").write_bytes(SECRET)
    (tmp_path / "secret").write_bytes(SECRET)
    (folder / "linked").symlink_to(tmp_path / "secret")
    (folder / "out").symlink_to(tmp_path)
    (folder / "loop").symlink_to("loop")
    (folder / "inner").symlink_to("ws")
    (folder / "unhidden").symlink_to(".hidden")
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)
    return folder


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def content(files, path, limit=1 << 20):
    with files.open(path) as opened:
        return opened.read(limit)


OUTSIDE = (
    *("", ".", "..", "/", "../secret", "ws/../../secret", "ws/../ws/größe 1.json", "./ws", "ws/", "ws//größe 1.json"),
    *("linked", "out/secret", "out/home/.hidden/key", "unhidden/key", ".hidden/key", "ws/.lock"),
    *("/etc/passwd", "//etc/passwd", "a\0b", "ws\\größe 1.json", "C:\\x", "x" * 5000, "\udcff", "none", "~/x"),
)


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_of_the_folder_and_nothing_hidden_is_read(home, path):
    for files in (WorkFiles(str(home)), WorkFiles()):
        with pytest.raises(FileNotFoundError):
            files.open(path)


@pytest.mark.parametrize("path", ["ws", "pipe"])
def test_what_is_no_regular_file_is_refused_without_waiting(home, path):
    with pytest.raises(FileRefusedError, match="not a regular file"):
        WorkFiles(str(home)).open(path)


def test_a_device_and_a_socket_are_refused(home):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for root, name in ((str(home), "socket"), ("/dev", "zero")):
            with pytest.raises(FileRefusedError):
                open_inside(root, name)


def test_a_file_is_read_by_its_path_and_by_links_within_the_folder(home):
    files = WorkFiles(str(home))
    for path in ("ws/größe 1.json", "inner/größe 1.json", f"{home}/ws/größe 1.json"):
        assert content(files, path) == b"{}"
    with files.open("inner/größe 1.json") as opened:
        assert (opened.file.path, opened.file.size) == ("ws/größe 1.json", 2)


def test_a_folder_that_becomes_a_link_after_the_check_leads_nowhere(home, tmp_path):
    """Between a check of the path and the opening, another process can replace a folder."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(SECRET)
    (home / "swapped").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileRefusedError, match="symbolic link"):
        open_inside(str(home), "swapped/secret")
    for link in ("linked", "loop"):
        with pytest.raises(FileRefusedError, match="symbolic link"):
            open_inside(str(home), link)
    with pytest.raises(FileRefusedError, match="symbolic link"):
        write_inside(str(home), "swapped/new", b"x", replace=True)
    assert names_in(tmp_path / "elsewhere") == ["secret"]


def test_reading_is_bounded_also_where_the_file_grows_meanwhile(home):
    files = WorkFiles(str(home))
    growing = home / "ws" / "growing"
    growing.write_bytes(bytes(100))
    with pytest.raises(FileRefusedError, match="has 100 bytes; at most 99"):
        content(files, "ws/growing", 99)
    with files.open("ws/growing") as opened:
        growing.write_bytes(bytes(500))
        with pytest.raises(FileRefusedError, match="grew beyond the 200 bytes"):
            opened.read(200)


def test_the_digest_follows_the_content(home):
    files, digests = WorkFiles(str(home)), []
    for text in (b"a", b"b", b"a"):
        files.write("ws/x", text, replace=True)
        with files.open("ws/x") as opened:
            digests.append(opened.sha256)
    assert digests[0] == digests[2] == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert digests[1] != digests[0]


def test_a_change_within_one_tick_of_the_clock_gives_another_digest(home):
    files, path = WorkFiles(str(home)), home / "ws" / "x"
    digests, stamp = set(), (home / "ws" / "größe 1.json").stat().st_mtime_ns
    for text in (b"a", b"b"):
        path.write_bytes(text)
        os.utime(path, ns=(stamp, stamp))
        with files.open("ws/x") as opened:
            digests.add(opened.sha256)
    assert len(digests) == 2


def test_a_listing_has_files_without_hidden_ones_and_links_and_says_when_it_is_cut(home):
    files = WorkFiles(str(home))
    (home / "ws" / "a" / "b").mkdir(parents=True)
    (home / "ws" / "a" / "b" / "deep.txt").write_bytes(b"12345")
    names = ["ws/a/b/deep.txt", "ws/größe 1.json"]
    assert files.listing() == (sorted(files.listing()[0]), False)
    assert [(file.path, file.size) for file in files.listing()[0]] == list(zip(names, (5, 2), strict=True))
    assert [file.path for file in files.listing("ws/a")[0]] == names[:1]
    assert files.listing(limit=1)[1] is True
    for path in ("..", "out", "/etc", ".hidden", "none"):
        assert files.listing(path) == ([], False)
    assert WorkFiles().listing() == ([], False)


REFUSED_NAMES = (
    *("", "/x", "a/", "a//b", "./x", "../x", "a/../x", "a/./b", ".x", "a/.x/b", "a/..", "~\0", "a\nb", "a\x7f"),
    *("con", "NUL.txt", "a/com1.gds", "a:b", "a\\b", "a*", "a?", '"a"', "a|b", "<a", "a.", "a ", "a /b", "\udcff"),
    *("x" * 201, "/".join(["abcdefghi"] * 110), "C:\\x", "/etc/passwd"),
)


@pytest.mark.parametrize("path", REFUSED_NAMES)
def test_a_name_that_leads_out_or_that_some_system_cannot_have_is_refused(home, path):
    with pytest.raises(FileRefusedError, match="path"):
        WorkFiles(str(home)).write(path, b"x", replace=True)
    assert names_in(home.parent) == ["home", "secret"]


def test_names_of_all_languages_are_taken(home):
    for path in ("网表/x y.sp", "a.b-c_d+e", "x" * 200, "console", "a/b/c/d"):
        assert name_fault(path) is None
        assert WorkFiles(str(home)).write(path, b"new", replace=False) is True
        assert (home / path).read_bytes() == b"new"


def test_a_file_is_written_completely_or_not_at_all(home, monkeypatch):
    files = WorkFiles(str(home))
    assert files.write("ws/n.sp", b"old", replace=False) is True
    with pytest.raises(FileExistsAlreadyError, match=r"'ws/n.sp' exists already"):
        files.write("ws/n.sp", b"new", replace=False)
    assert content(files, "ws/n.sp") == b"old"
    assert files.write("ws/n.sp", b"new", replace=True) is False
    assert content(files, "ws/n.sp") == b"new"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(FileRefusedError, match="No space left"):
            files.write("ws/n.sp", b"newer", replace=True)
    assert content(files, "ws/n.sp") == b"new"
    assert names_in(home / "ws") == [".lock", "größe 1.json", "n.sp"]


def test_a_file_is_written_also_where_there_are_no_hard_links(home, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_, **__: (_ for _ in ()).throw(PermissionError(1, "not permitted")))
    files = WorkFiles(str(home))
    assert files.write("ws/n.sp", b"old", replace=False) is True
    with pytest.raises(FileExistsAlreadyError):
        files.write("ws/n.sp", b"new", replace=False)
    assert content(files, "ws/n.sp") == b"old"
    assert names_in(home / "ws") == [".lock", "größe 1.json", "n.sp"]


@pytest.mark.parametrize("path", ["ws", "pipe", "linked", "out/x", "ws/größe 1.json/x", "inner/x", "loop"])
def test_nothing_but_a_file_is_replaced_and_no_link_is_followed(home, path):
    with pytest.raises(FileRefusedError):
        WorkFiles(str(home)).write(path, b"x", replace=True)
    assert (home.parent / "secret").read_bytes() == SECRET
    assert (home / "linked").is_symlink()


def test_programs_are_refused_and_so_is_every_file_where_there_is_no_folder(home):
    with pytest.raises(FileRefusedError, match="is a program"):
        WorkFiles(str(home)).write("ws/A.Deck", b"x", replace=True, programs=(".deck",))
    with pytest.raises(FileRefusedError, match="--directory"):
        WorkFiles().write("x", b"x", replace=True)


def tool(**annotations):
    return ToolDeclaration("a.b", "s", "x.py", FOLDER, {}, entry={"annotations": annotations})


def paths(made):
    return [file.path for file in made]


def test_the_files_that_a_call_made_are_those_it_names_and_those_in_the_folder_it_was_given(home):
    files = WorkFiles(str(home))
    since = (home / "ws" / "größe 1.json").stat().st_mtime
    os.utime(home / "ws" / "größe 1.json", (1, 1))
    for name in ("b.bin", "a.txt", ".part", "sub/c", "old"):
        (home / "ws" / name).parent.mkdir(exist_ok=True)
        (home / "ws" / name).write_bytes(b"12")
    os.utime(home / "ws" / "old", (1, 1))
    (home / "ws" / "link").symlink_to(home.parent / "secret")
    data = {"files": {"x": "ws/b.bin", "y": "ws/old", "z": "ws/link"}, "log_path": "../secret", "note": "ws/a.txt"}
    params = {"workspace": "ws"}
    assert paths(files.made(tool(), params, data, since)) == ["ws/b.bin", "ws/a.txt", "ws/sub/c"]
    assert paths(files.made(tool(read_only=True), params, data, since)) == ["ws/b.bin"]
    assert paths(files.made(tool(), {}, data, since)) == ["ws/b.bin"]
    assert files.made(tool(), params, None, since) == []


def test_a_file_that_a_call_only_read_is_not_one_it_made(home):
    """An answer names its inputs too, and one may have been handed over just before."""
    files, given = WorkFiles(), home / "ws" / "given.sp"
    given.write_bytes(b"x")
    data = {"files": {"netlist": "ws/given.sp"}}
    for written, offered in ((98.9, False), (98.0, True), (97.0, False), (99.99, True)):  # 98.0: whole seconds
        os.utime(given, (written, written))
        assert bool(files.made(tool(read_only=True), {"workspace": "ws"}, data, 100.0)) is offered


def test_a_call_offers_a_limited_number_of_files(home):
    for number in range(MAX_MADE + 5):
        (home / "ws" / f"n{number}").write_bytes(b"")
    assert len(WorkFiles(str(home)).made(tool(), {"workspace": "ws"}, {}, 0)) == MAX_MADE


def test_without_a_folder_of_its_own_a_server_serves_what_calls_wrote(home, tmp_path):
    files = WorkFiles()
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").write_bytes(b"k")
    os.utime(other / "kept", (1, 1))
    (home / "single").write_bytes(b"s")
    (home / "beside").write_bytes(SECRET)
    assert files.made(tool(), {"workspace": str(other)}, {}, 2) == []
    with pytest.raises(FileNotFoundError):  # it was named, but nothing was written there
        files.open(f"{other}/kept")
    (other / "made").write_bytes(b"m")
    data = {"image_path": "single"}
    assert paths(files.made(tool(), {"workspace": str(other)}, data, 2)) == ["single", f"{other}/made"]
    assert content(files, f"{other}/kept") == b"k"
    assert content(files, "single") == b"s"
    assert paths(files.listing()[0]) == [f"{other}/kept", f"{other}/made", "single"]
    for path in ("beside", f"{tmp_path}/secret", "ws/größe 1.json"):
        with pytest.raises(FileNotFoundError):
            files.open(path)


def test_programs_are_not_taken_and_nothing_is_taken_into_a_folder_of_skills(pack, tmp_path):
    """A skill.yaml names any file as a program: whoever could hand one over would run it."""
    from skillpack.execution.limits import CallLimits, program_suffixes

    inner = {"properties": {"a": {"items": {"x-programs": [".Lua"]}}, "b": {"x-programs": [".deck"]}}}
    assert program_suffixes([SimpleNamespace(input_schema=inner)]) == (".deck", ".lua")
    folder = tmp_path / "shared"
    shutil.copytree(pack.roots[0], folder / "skills")
    (folder / "skills" / "linked").symlink_to(folder / "elsewhere")
    shutil.copytree(next((folder / "skills").glob("*/SKILL.md")).parent, folder / "elsewhere")
    refused = ("a.py", "a.SO", "skills/new/skill.yaml", "Skills/new/run.txt", "skills/x", "elsewhere/run.txt")
    for programs in (False, True):
        limits = CallLimits(str(folder), programs=programs)
        with Pack([folder / "skills"], limits=limits, files=WorkFiles(str(folder))) as serving:
            assert serving.take_file("notes.txt", b"x", replace=True) is not programs
            for path in refused:
                if programs:
                    assert serving.take_file(path, b"x", replace=True) is True
                    continue
                with pytest.raises(FileRefusedError, match="--allow-decks"):
                    serving.take_file(path, b"x", replace=True)
