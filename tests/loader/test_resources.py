"""Layer 3 (S3.3): a resource is a file of its skill, whatever the path says."""

import base64
import hashlib
import os

import pytest

from skillpack import SkillLoader

OUTSIDE = "text of a file outside"


@pytest.fixture
def home(write_skill, tmp_path):
    (tmp_path / "outside.txt").write_text(OUTSIDE)
    return write_skill(
        "s", files={"references/a.md": "文本\n", "assets/x.bin": b"\xff\x00", "assets/nul.txt": b"a\x00b"}
    )


@pytest.fixture
def read(home, tmp_path):
    assert home.is_dir()
    return lambda path, **options: SkillLoader(tmp_path / "skills").read_resource("s", path, **options)


def test_text_is_served_as_text(read):
    assert read("references/a.md") == {
        "success": True,
        "data": {
            "path": "references/a.md",
            "size": 7,
            "digest": "sha256:" + hashlib.sha256("文本\n".encode()).hexdigest(),
            "encoding": "utf-8",
            "content": "文本\n",
        },
    }


@pytest.mark.parametrize(("path", "data"), [("assets/x.bin", b"\xff\x00"), ("assets/nul.txt", b"a\x00b")])
def test_other_bytes_are_served_in_base64(read, path, data):
    answer = read(path)["data"]
    assert (answer["encoding"], base64.b64decode(answer["content"])) == ("base64", data)


def test_a_path_may_be_written_loosely(read):
    assert read("./references//a.md")["data"]["path"] == "references/a.md"


@pytest.mark.parametrize(
    "path",
    [
        "../../outside.txt",
        "references/../../../outside.txt",
        "references/../../s/references/a.md",
        "..",
        "/etc/passwd",
        "//etc/passwd",
        "C:/Windows/win.ini",
        "C:x",
        "\\\\server\\share",
        "references\\a.md",
        "..\\..\\outside.txt",
        "references/a.md\x00.png",
        "references/\ud800.md",
        "",
        ".",
        "/",
        "references",
        "references/a.md/b",
        "x" * 5000,
        "link.txt",
        "linked-folder/outside.txt",
        "device",
        "loop",
    ],
)
def test_no_path_leads_out_of_the_skill_or_crashes(read, home, tmp_path, path):
    (home / "link.txt").symlink_to(tmp_path / "outside.txt")
    (home / "linked-folder").symlink_to(tmp_path)
    (home / "device").symlink_to("/dev/zero")
    (home / "loop").symlink_to("loop")
    answer = read(path)
    assert answer["success"] is False
    assert OUTSIDE not in str(answer)


def test_the_absolute_path_of_an_own_resource_is_refused_too(read, home):
    assert read(str(home / "references/a.md"))["success"] is False


def test_a_fifo_does_not_hang(read, home):
    os.mkfifo(home / "references" / "pipe")
    assert read("references/pipe")["message"] == "'references/pipe' is a FIFO, not a regular file"


def test_a_link_inside_the_skill_is_served(read, home):
    (home / "references" / "b.md").symlink_to("a.md")
    assert read("references/b.md")["data"]["content"] == "文本\n"


def test_the_size_limit_is_exact(read):
    assert read("references/a.md", max_bytes=7)["success"] is True
    assert read("references/a.md", max_bytes=6)["message"] == "'references/a.md' has 7 bytes, more than the 6 allowed"


def test_a_missing_file_comes_with_the_nearest_resources(read):
    answer = read("references/b.md")
    assert answer["message"] == "skill 's' has no file 'references/b.md'"
    assert answer["suggestions"] == ["references/a.md"]


def test_resources_are_listed_without_caches_links_to_outside_and_special_files(home, tmp_path):
    (home / "scripts" / "__pycache__").mkdir(parents=True)
    (home / "scripts" / "__pycache__" / "x.pyc").write_bytes(b"")
    (home / "scripts" / "run.py").write_text("")
    (home / "references" / "out.md").symlink_to(tmp_path / "outside.txt")
    os.mkfifo(home / "references" / "pipe")
    skill = SkillLoader(tmp_path / "skills").skills["s"]
    assert skill.resources == ["assets/nul.txt", "assets/x.bin", "references/a.md", "scripts/run.py"]


def test_a_resource_folder_that_links_to_outside_lists_nothing(write_skill, tmp_path):
    home = write_skill("linked")
    (home / "references").symlink_to(tmp_path)
    assert SkillLoader(tmp_path / "skills").skills["linked"].resources == []
