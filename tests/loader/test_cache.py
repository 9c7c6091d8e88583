"""What scans remember on disk: it saves time and never changes what is found."""

import json
import os
import random
import stat
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from patience import WATCHDOG_S
from skillpack import SkillLoader
from skillpack.skills import cache, catalog

AGE = cache.SETTLED_SECONDS + 60


@pytest.fixture
def settled(monkeypatch):
    """Let files that were written a moment ago count as old enough to be remembered."""
    monkeypatch.setattr(cache, "SETTLED_SECONDS", -AGE)
    monkeypatch.setattr(cache, "FINE_SETTLED_SECONDS", -AGE)


@pytest.fixture
def reads(monkeypatch):
    """Return the list of the SKILL.md files that are read from now on."""
    done = []
    read_skill = catalog.read_skill

    def counted(path, folder, *, is_link):
        done.append(Path(folder).name)
        return read_skill(path, folder, is_link=is_link)

    monkeypatch.setattr(catalog, "read_skill", counted)
    return done


@pytest.fixture
def root(write_skill, tmp_path):
    write_skill("a", description="One.")
    write_skill("b", "---\nname: b\ndescription: Use: it\nmetadata: {k: v}\n---\n")
    write_skill("group/画", "---\nname: 画\ndescription: 画一个晶体管\n---\n")
    write_skill("bad", "no frontmatter")
    return tmp_path / "skills"


def only_file(directory):
    (path,) = directory.iterdir()
    return path


def with_plain_checksum(path):
    """Have the checksum say nothing of the root, and of what the reading depends on."""
    content = path.read_bytes().partition(b"\n")[2]
    path.write_bytes(b"skillpack-cache %08x\n" % zlib.crc32(content) + content)


@pytest.mark.usefixtures("settled")
def test_a_second_process_reads_no_skill_again_and_finds_the_same(root, reads, cache_directory):
    first = SkillLoader(root).catalog
    assert sorted(reads) == ["a", "b", "bad", "画"]
    reads.clear()
    assert SkillLoader(root).catalog == first
    assert reads == ["bad"]  # what cannot be used is not remembered
    assert first.skills["b"].repairs
    assert stat.S_IMODE(cache_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(cache_directory).stat().st_mode) == 0o600


@pytest.mark.usefixtures("settled")
def test_a_warm_scan_imports_next_to_nothing(root):
    (root / "bad" / "SKILL.md").unlink()
    SkillLoader(root)
    code = f"""
import sys
before = set(sys.modules)
from skillpack import SkillLoader
from skillpack.skills import cache
cache.SETTLED_SECONDS = cache.FINE_SETTLED_SECONDS = -{AGE}
found = SkillLoader({str(root)!r})
found.get_descriptions()
print(len(found.skills), *({{"yaml", "dataclasses", "typing", "re", "json"}} & (set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", ["content", "same size", "same size and time", "replaced", "gone", "new", "moved"])
def test_every_change_is_seen(root, reads, change):
    loader = SkillLoader(root)
    path = root / "a" / "SKILL.md"
    before = path.stat()
    text = path.read_text()
    if change == "content":
        path.write_text(text.replace("One.", "Another."))
    elif change in {"same size", "same size and time"}:
        time.sleep(0.05)  # the clock of a file system ticks every few milliseconds
        path.write_text(text.replace("One.", "Two."))
        if change == "same size and time":
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "replaced":
        other = path.with_name("other")
        other.write_text(text.replace("One.", "Two."))
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.rename(path)
    elif change == "gone":
        path.unlink()
    elif change == "new":
        (root / "c").mkdir()
        (root / "c" / "SKILL.md").write_text(text.replace("name: a", "name: c"))
    else:
        (root / "a").rename(root / "d")
    expected = SkillLoader(root, cache=False).catalog
    reads.clear()
    loader.reload()
    assert loader.catalog == expected
    assert SkillLoader(root).catalog == expected
    assert "b" not in reads


def test_a_file_that_is_too_young_to_show_a_change_is_read_again(root, reads, cache_directory, monkeypatch):
    monkeypatch.setattr(cache, "FINE_SETTLED_SECONDS", 60.0)
    SkillLoader(root)
    reads.clear()
    loader = SkillLoader(root)
    assert sorted(reads) == ["a", "b", "bad", "画"]
    reads.clear()
    loader.reload()
    assert sorted(reads) == ["a", "b", "bad", "画"]
    assert not cache_directory.exists()


@pytest.mark.parametrize(("parts_ns", "remembered"), [(123_456_789, True), (0, False), (120_000_000, False)])
def test_a_file_of_a_second_ago_is_remembered_where_the_clock_is_fine(root, reads, parts_ns, remembered):
    status = (root / "a" / "SKILL.md").stat()
    modified = status.st_ctime_ns // 1_000_000_000 * 1_000_000_000 - 5_000_000_000 + parts_ns
    os.utime(root / "a" / "SKILL.md", ns=(modified, modified))
    time.sleep(cache.FINE_SETTLED_SECONDS + 0.05)
    SkillLoader(root)
    reads.clear()
    SkillLoader(root)
    assert ("a" not in reads) == remembered


@pytest.mark.usefixtures("settled")
def test_a_link_is_looked_at_every_time(root, write_skill, tmp_path):
    home = write_skill("linked", "x")
    (home / "docs.md").write_text("---\nname: linked\ndescription: d\n---\n")
    (home / "SKILL.md").unlink()
    (home / "SKILL.md").symlink_to("docs.md")
    assert "linked" in SkillLoader(root).skills
    (tmp_path / "outside.md").write_text("---\nname: linked\ndescription: d\n---\n")
    (home / "SKILL.md").unlink()
    (home / "SKILL.md").symlink_to(tmp_path / "outside.md")
    assert "linked" not in SkillLoader(root).skills


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"One.", b"Two.")),
        lambda path: path.write_bytes(random.Random(1).randbytes(5000)),
        lambda path: path.write_bytes(b"skillpack-cache 00000000\n" + b"x" * 1000),
        lambda path: path.write_bytes(b"skillpack-cache ffffffff\n" + b"\xff" * 4),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        with_plain_checksum,
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: (path.unlink(), os.mkfifo(path)),
        lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to(path.with_suffix(".x"))),
        lambda path: path.chmod(0o622),
    ],
)
def test_a_cache_that_is_not_as_it_was_written_is_not_used_and_does_no_harm(root, reads, cache_directory, damage):
    expected = SkillLoader(root).catalog
    damage(only_file(cache_directory))
    reads.clear()
    assert SkillLoader(root).catalog == expected
    assert "a" in reads


@pytest.mark.usefixtures("settled")
def test_a_cache_of_another_root_is_not_used(root, write_skill, reads, tmp_path, cache_directory):
    write_skill("a", root="other", description="Of the other root.")
    SkillLoader(tmp_path / "other")
    (of_other,) = cache_directory.iterdir()
    content = of_other.read_bytes()
    of_other.unlink()
    SkillLoader(root)
    only_file(cache_directory).write_bytes(content)
    reads.clear()
    assert SkillLoader(root).skills["a"].description == "One."
    assert "a" in reads


@pytest.mark.usefixtures("settled")
def test_a_cache_of_another_version_is_not_used(root, reads, monkeypatch):
    SkillLoader(root)
    monkeypatch.setattr(cache, "_fingerprint", lambda: "another version")
    reads.clear()
    SkillLoader(root)
    assert "a" in reads


@pytest.mark.usefixtures("settled")
def test_a_cache_folder_that_others_may_write_to_is_not_used(root, reads, cache_directory):
    SkillLoader(root)
    cache_directory.chmod(0o777)
    reads.clear()
    loader = SkillLoader(root)
    assert "a" in reads
    assert "others may write to it" in loader.cache.problem()


@pytest.mark.usefixtures("settled")
def test_a_cache_folder_that_is_a_link_or_a_file_is_not_used(root, cache_directory, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    cache_directory.symlink_to(tmp_path / "elsewhere")
    assert len(SkillLoader(root).skills) == 3
    assert list((tmp_path / "elsewhere").iterdir()) == []
    cache_directory.unlink()
    cache_directory.write_text("")
    assert len(SkillLoader(root).skills) == 3


@pytest.mark.usefixtures("settled")
def test_a_cache_that_comes_with_a_pack_is_neither_read_nor_written(root, monkeypatch):
    """The folder lies in the root, where whoever wrote the skills could have written it too."""
    inside = root / ".cache"
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(inside))
    SkillLoader(root)
    assert not inside.exists()


@pytest.mark.usefixtures("settled")
def test_an_unwritable_home_costs_time_and_nothing_else(root, monkeypatch):
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, "/dev/null/cache")
    loader = SkillLoader(root)
    assert len(loader.skills) == 3
    assert "cannot be used" in loader.cache.problem()


@pytest.mark.usefixtures("settled")
def test_the_cache_can_be_switched_off_and_put_elsewhere(root, monkeypatch, tmp_path, cache_directory):
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, "")
    assert SkillLoader(root).cache.problem() == "switched off"
    SkillLoader(root, cache=tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()
    assert not cache_directory.exists()


def test_the_default_place_is_the_users_cache_folder(monkeypatch):
    monkeypatch.delenv(cache.DIRECTORY_VARIABLE)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.default_directory() == "/xdg/skillpack"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.default_directory() == "/home/someone/.cache/skillpack"


@pytest.mark.usefixtures("settled")
def test_each_root_has_its_own_file_and_old_ones_are_removed(write_skill, tmp_path, cache_directory, monkeypatch):
    monkeypatch.setattr(cache, "MAX_ROOTS", 3)
    for number in range(5):
        write_skill("same", root=f"root{number}", description=f"Of root {number}.")
        SkillLoader(tmp_path / f"root{number}")
        for path in cache_directory.iterdir():
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    assert len(list(cache_directory.iterdir())) == 3
    for number in range(5):
        assert SkillLoader(tmp_path / f"root{number}").skills["same"].description == f"Of root {number}."


@pytest.mark.usefixtures("settled")
def test_what_a_killed_writer_left_is_removed_in_time(root, cache_directory):
    cache_directory.mkdir(mode=0o700)
    left, fresh = cache_directory / "x.skills.1.2.tmp", cache_directory / "x.skills.3.4.tmp"
    left.write_text("")
    fresh.write_text("")
    os.utime(left, (fresh.stat().st_mtime - 7200,) * 2)
    SkillLoader(root)
    assert not left.exists()
    assert fresh.exists()


@pytest.mark.usefixtures("settled")
def test_names_that_are_no_text_are_remembered_too(root, reads):
    home = root / os.fsdecode(b"\xff")
    try:
        home.mkdir()
    except OSError:
        pytest.skip("this file system has names of text only")
    (home / "SKILL.md").write_text("---\nname: odd\ndescription: d\n---\n")
    first = SkillLoader(root).catalog
    reads.clear()
    assert SkillLoader(root).catalog == first
    assert "odd" in first.skills
    assert reads == ["bad"]


def rewriting(root, cache_directory, seed, rounds):
    """Change skills and scan, again and again; return what was wrong."""
    os.environ[cache.DIRECTORY_VARIABLE] = cache_directory
    cache.SETTLED_SECONDS = cache.FINE_SETTLED_SECONDS = -AGE
    rng = random.Random(seed)
    wrong = []
    for number in range(rounds):
        name = f"s{rng.randrange(10)}"
        beside = Path(root, name, f"SKILL.md.{seed}")
        length = 4 * number + seed + 1  # another one every time, as no clock tells writes within a few ms apart
        beside.write_text(f"---\nname: {name}\ndescription: {'x' * length}\n---\n")
        beside.replace(beside.with_name("SKILL.md"))
        found = SkillLoader(root)
        if found.catalog.errors or len(found.skills) != 10:
            wrong.append(found.catalog.errors)
    return wrong


def test_writers_at_the_same_time_leave_a_cache_that_tells_the_truth(write_skill, tmp_path, cache_directory):
    for number in range(10):
        write_skill(f"s{number}")
    root = str(tmp_path / "skills")
    command = [sys.executable, __file__, root, str(cache_directory)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    writers = [
        subprocess.Popen([*command, str(seed), "25"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for seed in range(4)
    ]
    assert [writer.communicate(timeout=WATCHDOG_S)[0] for writer in writers] == [b"[]"] * 4
    assert SkillLoader(root).catalog == SkillLoader(root, cache=False).catalog
    assert [path.suffix for path in cache_directory.iterdir()] == [".skills"]


def test_doctor_says_where_scans_are_remembered(root, cache_directory):
    def doctor():
        done = subprocess.run(
            [sys.executable, "-m", "skillpack", "doctor", "--json", "--skills-dir", str(root)],
            capture_output=True,
            check=False,
        )
        return json.loads(done.stdout)["cache"]

    assert doctor() == {"directory": str(cache_directory), "problem": None}
    cache_directory.mkdir(exist_ok=True)
    cache_directory.chmod(0o777)
    assert "others may write" in doctor()["problem"]


if __name__ == "__main__":  # a writer of test_writers_at_the_same_time_leave_a_cache_that_tells_the_truth
    print(rewriting(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])), end="")
