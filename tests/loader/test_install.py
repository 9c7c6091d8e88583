"""``skillpack install``: copies in the folders of hosts, listed, updated and removed; what users did stays."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

import forked
from patience import WATCHDOG_S
from skillpack import SkillLoader
from skillpack.__main__ import command
from skillpack.authoring.validation import Plan, write_skill
from skillpack.copies import installation, writing
from skillpack.copies.installation import PROJECT, USER, host_folders, install, uninstall, update
from skillpack.copies.writing import installed_skill
from skillpack.exceptions import InstallError, RootError

NAMES = ("alpha", "beta")


@pytest.fixture
def pack(tmp_path):
    """Return a folder with two skills without tools."""
    for name in NAMES:
        home = write_skill(Plan(name, tmp_path / "pack"))
        (home / "references").mkdir()
        (home / "references/more.md").write_text(f"more of {name}\n")
    return tmp_path / "pack"


@pytest.fixture
def skills(pack):
    return dict(SkillLoader(pack).skills)


@pytest.fixture
def skillpack(pack, tmp_path, monkeypatch):
    """Return a function that runs the command in an empty project, with an empty home: its exit code and output."""
    home, project = tmp_path / "empty home", tmp_path / "my project"
    home.mkdir()
    project.mkdir()
    monkeypatch.chdir(project)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("SKILLPACK_PATH", str(pack))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)

    def run(*arguments):
        result = CliRunner().invoke(command, ["install", *map(str, arguments)])
        if isinstance(result.exception, InstallError):  # which main() prints
            return 2, str(result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    return run


def tree(folder):
    """Return everything below a folder: contents of files, targets of links, None for folders."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize(
    ("host", "scope", "expected"),
    [
        ("claude", "--project", "my project/.claude/skills"),
        ("claude", "--user", "empty home/.claude/skills"),
        ("codex", "--project", "my project/.agents/skills"),
        ("codex", "--user", "empty home/.agents/skills"),
        ("agents", "--project", "my project/.agents/skills"),
        ("agents", "--user", "empty home/.agents/skills"),
        ("gemini", "--project", "my project/.gemini/skills"),
        ("gemini", "--user", "empty home/.gemini/skills"),
        ("./of another host", "--user", "my project/of another host"),
    ],
)
def test_every_host_has_a_folder_of_the_user_and_one_of_the_project(skillpack, tmp_path, host, scope, expected):
    assert skillpack("alpha", "--host", host, scope) == (0, f"installed alpha in {tmp_path / expected}\n")
    found = SkillLoader(tmp_path / expected).skills
    assert list(found) == ["alpha"]
    assert (tmp_path / expected / "alpha/references/more.md").read_text() == "more of alpha\n"
    others = [path for path in tmp_path.rglob("SKILL.md") if not path.is_relative_to(tmp_path / "pack")]
    assert others == [tmp_path / expected / "alpha/SKILL.md"]


def test_claude_keeps_the_users_skills_where_its_configuration_is(skillpack, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    skillpack("alpha", "--host", "claude", "--user")
    assert (tmp_path / "elsewhere/skills/alpha/SKILL.md").is_file()


def test_without_a_scope_it_is_the_project_s(skillpack, tmp_path):
    skillpack("--all", "--host", "claude")
    assert sorted(path.name for path in (tmp_path / "my project/.claude/skills").iterdir()) == list(NAMES)
    assert list((tmp_path / "empty home").iterdir()) == []


def test_hosts_that_share_a_folder_are_one_place(skillpack, tmp_path):
    linked = tmp_path / "my project/.claude/skills"
    (tmp_path / "my project/.agents/skills").mkdir(parents=True)
    linked.parent.mkdir()
    linked.symlink_to("../.agents/skills")
    code, output = skillpack("alpha", *(word for host in ("agents", "codex", "claude") for word in ("--host", host)))
    assert (code, output) == (0, f"installed alpha in {tmp_path / 'my project/.agents/skills'}\n")
    assert linked.is_symlink()
    (listed,) = json.loads(skillpack("--list", "--json")[1])
    assert (listed["hosts"], listed["scope"]) == (["claude", "codex", "agents"], "project")


def test_the_life_of_an_installed_skill(skillpack, pack, tmp_path):
    folder = tmp_path / "my project/.claude/skills"
    assert skillpack("--list")[1].startswith("nothing is installed in ")
    skillpack("--all", "--host", "claude")
    installed = tree(folder)
    assert skillpack("--all", "--host", "claude") == (0, "".join(f"unchanged {name} in {folder}\n" for name in NAMES))
    assert skillpack("--list") == (0, f"{folder} (claude; project)\n    alpha ?\n    beta ?\n")
    assert tree(folder) == installed
    (pack / "alpha/references/more.md").write_text("new\n")
    (pack / "alpha/references/second.md").write_text("second\n")
    assert skillpack("--update") == (0, f"updated alpha in {folder}\nunchanged beta in {folder}\n")
    assert (folder / "alpha/references/more.md").read_text() == "new\n"
    assert skillpack("--update") == (0, "".join(f"unchanged {name} in {folder}\n" for name in NAMES))
    shutil.rmtree(pack / "beta")
    assert skillpack("--update")[1].endswith(f"kept beta in {folder}; this pack does not have it\n")
    assert skillpack("--remove", "alpha", "--host", "claude") == (0, f"removed alpha in {folder}\n")
    assert skillpack("--remove", "--all", "--host", "claude") == (0, f"removed beta in {folder}\n")
    assert tree(folder) == {}


def test_what_a_user_edited_is_overwritten_and_removed_only_by_force(skillpack, tmp_path):
    folder = tmp_path / "my project/.claude/skills"
    skillpack("--all", "--host", "claude")
    installed = tree(folder)
    (folder / "alpha/SKILL.md").write_text("mine")
    (folder / "beta/references/more.md").unlink()
    edited = tree(folder)
    (shown,) = [one for one in json.loads(skillpack("--list", "--json")[1]) if one["name"] == "alpha"]
    assert shown["changed"] == ["SKILL.md"]
    for arguments in (["--update"], ["--all", "--host", "claude"], ["--remove", "--all", "--host", "claude"]):
        code, output = skillpack(*arguments)
        assert code == 2
        assert [line.split(";")[0] for line in output.splitlines()] == [
            f"{folder}/alpha is not as it was installed: SKILL.md",
            f"{folder}/beta is not as it was installed: references/more.md",
        ]
        assert "--force" in output
        assert tree(folder) == edited
    assert skillpack("--update", "--force")[0] == 0
    assert tree(folder) == installed


def test_a_lock_that_uv_rewrote_is_reported_and_replaced(skillpack, pack, tmp_path):
    (pack / "alpha/scripts").mkdir()
    (pack / "alpha/scripts/x.py.lock").write_text("version = 1\n")
    skillpack("alpha", "--host", "claude")
    lock = tmp_path / "my project/.claude/skills/alpha/scripts/x.py.lock"
    for arguments in (["--update"], ["--remove", "alpha", "--host", "claude"]):
        lock.write_text("version = 2\n")
        assert "changed: scripts/x.py.lock" in skillpack("--list")[1]
        assert skillpack(*arguments)[0] == 0
    assert not lock.exists()


def test_what_a_user_added_survives_an_update_and_stops_a_removal(skillpack, pack, tmp_path):
    home = tmp_path / "my project/.claude/skills/alpha"
    skillpack("alpha", "--host", "claude")
    (home / "build/my layout").mkdir(parents=True)
    (home / "build/my layout/layout.gds").write_bytes(b"drawn")
    (home / "build/last").symlink_to("my layout")
    (home / "__pycache__").mkdir()
    (home / "__pycache__/x.pyc").write_bytes(b"")
    (pack / "alpha/references/more.md").write_text("new\n")
    assert skillpack("--update")[1].startswith("updated alpha")
    assert (home / "build/last/layout.gds").read_bytes() == b"drawn"
    assert (home / "build/last").is_symlink()
    assert (home / "references/more.md").read_text() == "new\n"
    code, output = skillpack("--remove", "alpha", "--host", "claude")
    assert (code, "build/last, build/my layout/layout.gds; --force" in output) == (2, True)
    assert skillpack("--remove", "alpha", "--host", "claude", "--force")[0] == 0
    assert not home.exists()


def test_a_new_file_does_not_overwrite_one_that_the_user_added(skillpack, pack, tmp_path):
    home = tmp_path / "my project/.claude/skills/alpha"
    skillpack("alpha", "--host", "claude")
    (home / "references/notes.md").write_text("mine")
    (pack / "alpha/references/notes.md").write_text("theirs")
    for force in ((), ("--force",)):
        code, output = skillpack("--update", *force)
        assert (code, "references/notes.md would be overwritten" in output) == (2, True)
    assert (home / "references/notes.md").read_text() == "mine"


def a_folder_without_manifest(home, _):
    home.mkdir()
    (home / "SKILL.md").write_text("mine")


def a_folder_with_another_manifest(home, _):
    home.mkdir()
    (home / "manifest.json").write_text('{"name": "alpha", "files": []}')


def a_manifest_of_another_skill(home, _):
    shutil.copytree(home.parent / "beta", home)


def a_manifest_that_is_a_link(home, tmp_path):
    shutil.copytree(home.parent / "beta", home)
    text = (home / "manifest.json").read_text().replace('"beta"', '"alpha"')
    (tmp_path / "manifest.json").write_text(text)
    (home / "manifest.json").unlink()
    (home / "manifest.json").symlink_to(tmp_path / "manifest.json")


def a_link_to_a_skill(home, tmp_path):
    home.symlink_to(tmp_path / "pack/alpha")


def a_link_to_nothing(home, tmp_path):
    home.symlink_to(tmp_path / "nothing")


def a_file(home, _):
    home.write_text("mine")


FOREIGN = [
    a_folder_without_manifest,
    a_folder_with_another_manifest,
    a_manifest_of_another_skill,
    a_manifest_that_is_a_link,
    a_link_to_a_skill,
    a_link_to_nothing,
    a_file,
]


@pytest.mark.parametrize("make", FOREIGN, ids=lambda make: make.__name__)
def test_what_skillpack_did_not_install_is_never_touched(skillpack, pack, tmp_path, make):
    folder = tmp_path / "my project/.claude/skills"
    skillpack("beta", "--host", "claude")
    make(folder / "alpha", tmp_path)
    (pack / "beta/references/more.md").write_text("new\n")
    before = tree(folder)
    for arguments in (["--all"], ["--all", "--force"], ["--remove", "alpha", "--force"]):
        code, output = skillpack(*arguments, "--host", "claude")
        assert (code, "skillpack did not install it" in output or "not installed by skillpack" in output) == (2, True)
        assert tree(folder) == before
    assert [one["name"] for one in json.loads(skillpack("--list", "--json")[1])] == ["beta"]


def test_a_skill_of_another_distribution_is_replaced_only_by_force(skills, tmp_path):
    install([skills["alpha"]], [tmp_path / "host"])
    manifest = tmp_path / "host/alpha/manifest.json"
    manifest.write_text(manifest.read_text().replace('"distribution": null', '"distribution": "other-pack"'))
    with pytest.raises(InstallError, match="is from other-pack, not from"):
        update(skills, [tmp_path / "host"], [], force=False)
    (outcome,) = update(skills, [tmp_path / "host"], [], force=True)
    assert outcome.action == "updated"


@pytest.mark.parametrize("path", ["../../secret", "/etc/hostname", "sub/../../x", ""])
def test_a_manifest_that_names_files_elsewhere_reaches_none_of_them(skills, tmp_path, path):
    install([skills["alpha"]], [tmp_path / "host"])
    (tmp_path / "secret").write_text("mine")
    home = tmp_path / "host/alpha"
    manifest = json.loads((home / "manifest.json").read_text())
    manifest["files"].append({"path": path, "sha256": "0", "size": 1})
    (home / "manifest.json").write_text(json.dumps(manifest))
    assert installed_skill(home).changed == (path,)
    uninstall([tmp_path / "host"], ["alpha"], force=True)
    assert (tmp_path / "secret").read_text() == "mine"


@pytest.mark.parametrize("suffix", ["new", "old", "gone"])
def test_a_link_where_folders_are_prepared_is_not_written_through(skills, tmp_path, suffix):
    """A project that came from elsewhere may contain one."""
    (tmp_path / "target").mkdir()
    (tmp_path / "host").mkdir()
    (tmp_path / f"host/.alpha.skillpack-{suffix}").symlink_to(tmp_path / "target")
    install([skills["alpha"]], [tmp_path / "host"])
    assert [path.name for path in (tmp_path / "host").iterdir()] == ["alpha"]
    assert list((tmp_path / "target").iterdir()) == []
    assert installed_skill(tmp_path / "host/alpha").changed == ()


def test_a_manifest_controls_no_terminal(skillpack, tmp_path):
    skillpack("alpha", "--host", "claude")
    manifest = tmp_path / "my project/.claude/skills/alpha/manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": null', '"version": "\\u001b[31m"'))
    assert "alpha \\x1b[31m\n" in skillpack("--list")[1]


def test_all_faults_are_reported_at_once_and_nothing_is_written(skillpack, pack, tmp_path):
    (pack / "alpha/manifest.json").write_text("{}")  # the name of the list of files in a copy
    (tmp_path / "my project/file").write_text("")
    taken = tmp_path / "my project/.claude/skills/beta"
    taken.mkdir(parents=True)
    before = tree(tmp_path)
    hosts = ["--host", "claude", "--host", "./file", "--host", "./file/below", "--host", "gemini"]
    code, output = skillpack("alpha", "beta", *hosts)
    assert code == 2
    for fault in ("alpha: has a file manifest.json", "/file cannot be created", "/file/below cannot be created"):
        assert fault in output
    assert tree(tmp_path) == before
    (pack / "alpha/manifest.json").unlink()
    assert "skillpack did not install it" in skillpack("alpha", "beta", "--host", "claude", "--host", "gemini")[1]
    assert not (tmp_path / "my project/.gemini").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="skipped: needs a user other than root")
def test_a_folder_that_cannot_be_written_is_reported(skills, tmp_path):
    (tmp_path / "host").mkdir(mode=0o500)
    with pytest.raises(InstallError, match="cannot be written: Permission denied"):
        install([skills["alpha"]], [tmp_path / "host"])


def test_a_link_to_a_folder_that_does_not_exist_is_reported(skills, tmp_path):
    (tmp_path / "host").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InstallError, match="is a link to a folder that does not exist"):
        install([skills["alpha"]], [tmp_path / "host"])
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["alpha"], "give --host: claude, codex"),
        (["--host", "claude"], "give NAMES of skills, or --all"),
        (["--remove", "--host", "claude"], "give NAMES of skills, or --all"),
        (["--remove", "alpha"], "give --host"),
        (["alpha", "--all", "--host", "claude"], "either NAMES or --all"),
        (["alpha", "--host", "claude", "--list", "--remove"], "only one of --list and --remove"),
        (["alpha", "--host", "claude", "--user", "--project"], "only one of --project and --user"),
    ],
)
def test_a_command_that_is_not_complete_is_refused(skillpack, tmp_path, arguments, message):
    code, output = skillpack(*arguments)
    assert (code, message in output) == (2, True)
    assert list((tmp_path / "my project").iterdir()) == []


@pytest.mark.parametrize(
    ("host", "message"),
    [("", "'' is neither a host"), ("x" * 300, "is neither a host"), ("~nobody at all/skills", "no such user")],
)
def test_a_host_that_names_no_folder_is_refused(tmp_path, monkeypatch, host, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RootError, match=message):
        host_folders((host,), (PROJECT,))


def test_a_name_that_no_folder_can_have_is_reported(skillpack, tmp_path):
    code, output = skillpack("alpha", "--host", f"./below/{'x' * 300}/skills")
    assert (code, "cannot be created: " in output) == (2, True)
    assert list((tmp_path / "my project").iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="skipped: needs a system whose home folder is HOME")
@pytest.mark.parametrize("home", ["", "relative"])
def test_a_home_that_is_no_absolute_path_is_refused(monkeypatch, home):
    monkeypatch.setenv("HOME", home)
    with pytest.raises(RootError, match="set HOME to an absolute path"):
        host_folders(("gemini",), (USER,))


def test_a_name_that_is_not_installed_is_not_reported_as_nothing_installed(skillpack, tmp_path):
    skillpack("alpha", "--host", "claude")
    place = tmp_path / "my project/.claude/skills"
    code, output = skillpack("--list", "alpha", "beta", "--host", "claude", "--project")
    lines = f"{place} (claude; project)\n    alpha ?\nskillpack did not install beta in {place} (claude; project)\n"
    assert (code, output) == (0, lines)


def test_names_that_mean_nothing_get_suggestions(tmp_path, pack):
    def run(*arguments):
        words = [*forked.skillpack(), "install", "--skills-dir", str(pack), *arguments]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=WATCHDOG_S)

    done = run("alpa", "betta", "--host", "claude")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'alpha'" in done.stderr
    assert "'beta'" in done.stderr
    done = run("alpha", "--host", "cluade")
    assert (done.returncode, "'claude'" in done.stderr, "./cluade" in done.stderr) == (2, True, True)
    assert [path.name for path in tmp_path.iterdir()] == ["pack"]


# --- interruptions


class Interrupted(BaseException):
    """Stands for a signal, or for a process that ends, at one place."""


def interrupted_at(monkeypatch, step, *, killed):
    """Interrupt the ``step``-th renaming of a folder, counted from 1; where it kills, nothing is cleaned up either."""
    rename, calls = Path.rename, []

    def counted(self, target):
        calls.append(self)
        if len(calls) == step or (killed and len(calls) > step):
            raise Interrupted
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", counted)
    if killed:
        monkeypatch.setattr(installation, "discard", lambda *_: None)


CHANGING = ("manifest.json", "references/more.md")


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("killed", [False, True])
def test_an_interrupted_update_loses_nothing(skills, pack, tmp_path, monkeypatch, step, killed):
    """At each renaming; where the process is killed, nothing can be put right before the next command."""
    root = tmp_path / "host"
    install(skills.values(), [root])
    (root / "alpha/mine").write_text("mine")
    before = {name: tree(root / name) for name in NAMES}
    for name in NAMES:
        (pack / name / "references/more.md").write_text("new\n")
    with monkeypatch.context() as patch, suppress(Interrupted):
        interrupted_at(patch, step, killed=killed)
        update(skills, [root], [], force=False)
    with writing.locked(root):
        pass  # what any next command does first
    for name in NAMES:
        after = tree(root / name)
        assert after["references/more.md"] in {b"new\n", before[name]["references/more.md"]}
        assert {**after, **dict.fromkeys(CHANGING)} == {**before[name], **dict.fromkeys(CHANGING)}
        assert installed_skill(root / name).changed == ()
    assert sorted(path.name for path in root.iterdir()) == list(NAMES)
    assert {one.action for one in update(skills, [root], [], force=False)} <= {"updated", "unchanged"}


def test_when_a_file_cannot_be_written_nothing_is_replaced(skills, pack, tmp_path, monkeypatch):
    root = tmp_path / "host"
    install([skills["alpha"]], [root])
    before = tree(root)
    (pack / "alpha/references/more.md").write_text("new\n")
    written = Path.write_bytes

    def full(self, content):
        if self.name == "more.md" and "beta" in str(self):
            raise OSError(28, "No space left on device", str(self))
        return written(self, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(
        InstallError, match=r"more\.md cannot be written: No space left on device \(done before: nothing"
    ):
        install(skills.values(), [root])
    assert tree(root) == before


def test_two_commands_at_one_time_leave_whole_skills(pack, tmp_path):
    """Both update the same skills again and again, from packs that differ."""
    other = shutil.copytree(pack, tmp_path / "other")
    for name in NAMES:
        (other / name / "references/more.md").write_text("other\n")
    root = tmp_path / "host"
    code = (
        "import sys; from pathlib import Path; from skillpack import SkillLoader; "
        "from skillpack.copies.installation import install\n"
        "for _ in range(8): install(SkillLoader(sys.argv[1]).skills.values(), [Path(sys.argv[2])])"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, folder, root]) for folder in (pack, other)]
    assert [process.wait(timeout=WATCHDOG_S) for process in running] == [0, 0]
    assert sorted(path.name for path in root.iterdir()) == list(NAMES)
    assert all(installed_skill(root / name).changed == installed_skill(root / name).added == () for name in NAMES)
