"""``skillpack export``: self-contained copies of skills, of this pack and of others, and what is refused."""

import hashlib
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import zipfile
from importlib.metadata import distributions, version
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillpack import SkillLoader, SkillpackError, find_tools, validate
from skillpack.__main__ import command as skillpack
from skillpack.copies.skill_copy import copy_of
from skillpack.copies.writing import archive_bytes, changes_of, export_skills
from skillpack.exceptions import CopyError

ROOT = Path(__file__).parents[2]
SKILLS = sorted(path.parent.name for path in (ROOT / "skills").glob("*/SKILL.md"))
OBJECT = '{"type": "object", "additionalProperties": false, "properties": {}}'
SCRIPT = """\
from skillscript import main

def execute(params, context):
    return {}

if __name__ == "__main__":
    raise SystemExit(main(__file__, "own.run", execute))
"""


@pytest.fixture(scope="session")
def pack():
    return SkillLoader(str(ROOT / "skills"))


@pytest.fixture(scope="session")
def copies(exported):
    return {name: copy for name, (copy, _) in exported.items()}


@pytest.fixture
def own_skill(tmp_path):
    """Return a function that writes a skill of another pack and returns it."""

    def write(files=(), *, tool="scripts/run.py", header="", script=SCRIPT, name="own"):
        home = tmp_path / "packs" / name
        content = {"SKILL.md": f"---\nname: {name}\ndescription: Does something. Use when needed.\n---\n# Own\n"}
        if tool:
            stem = "schemas/" if tool == "handler.py" else "schemas/own.run."
            places = [f"{stem}{part}{'.schema' if tool == 'handler.py' else ''}.json" for part in ("input", "output")]
            schemas = f"input_schema: {places[0]}, output_schema: {places[1]}"
            content["skill.yaml"] = (
                f'skill: {name}\nversion: "2.1.0"\ntools:\n  - {{id: own.run, script: {tool}, {schemas}}}\n'
            )
            content |= dict.fromkeys(places, OBJECT)
            content[tool] = header + script
        for path, text in {**content, **dict(files)}.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text, encoding="utf-8")
        return SkillLoader(str(home.parent)).skills[name]

    return write


def export_skill(skill, folder, **options):
    return export_skills([skill], folder, **options)[0]


def header_of(*dependencies, more=""):
    listed = ", ".join(json.dumps(item) for item in dependencies)
    return f'# /// script\n# requires-python = ">=3.10"\n# dependencies = [{listed}]\n{more}# ///\n'


def modules_in(copy):
    """Return the names of the modules that lie in the copy's packages."""
    paths = [
        path.removeprefix("scripts/") for path in copy.files if path.startswith("scripts/") and path.endswith(".py")
    ]
    return {path[:-3].replace("/", ".").removesuffix(".__init__") for path in paths if "/" in path}


def seen(path):
    return stat.S_IMODE(path.stat().st_mode), path.is_file() and path.read_bytes()


# --- what a copy has


@pytest.mark.parametrize("name", SKILLS)
def test_a_copy_has_every_file_of_each_package_and_no_other_package(name, copies):
    found = {}
    for path in copies[name].files:
        folder, _, rest = path.removeprefix("scripts/").partition("/")
        if path.startswith("scripts/") and rest and not folder.endswith(".dist-info"):
            found.setdefault(folder, set()).add(rest)
    assert set(found) - {"skillscript", "sturdy", "layoutkit", "designgraph"} == set()
    for package, files in found.items():
        listed = ["git", "ls-files", f"scripts/{package}"]
        tracked = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        assert {f"scripts/{package}/{file}" for file in files} | {f"scripts/{package}/py.typed"} >= set(tracked)
        assert not any("__pycache__" in file for file in files)


def test_a_copy_has_the_packages_that_its_scripts_import_and_those_that_these_import(copies):
    def packages(name):
        return {module.partition(".")[0] for module in modules_in(copies[name])}

    assert packages("layout-metrics") == {"skillscript", "sturdy", "layoutkit"}
    assert packages("design-knowledge-graph") == {"skillscript", "sturdy", "layoutkit", "designgraph"}


def test_a_header_lists_what_the_script_reaches_and_no_accelerator(copies):
    header = copies["netlist-to-gds"].files["scripts/build_layout.py"].decode().partition('"""')[0]
    assert '"klayout>=0.30.10"' in header
    assert '"numpy>=1.26"' in header
    assert "numba" not in header
    assert "httpx" not in header
    planning = copies["constraint-planning"].files["scripts/suggest_constraints.py"].decode().partition('"""')[0]
    assert '"httpx>=0.27"' in planning
    graph = copies["design-knowledge-graph"].files["scripts/create_node.py"].decode().partition('"""')[0]
    assert "klayout" not in graph
    assert "analog-layout-skills" not in graph


@pytest.mark.parametrize("name", SKILLS)
def test_a_copy_is_self_contained_and_valid(name, exported):
    copy, home = exported[name]
    assert [finding for finding in validate(home).findings if finding.level == "error"] == []
    assert not any(b"analog-layout.schema.json" in data for path, data in copy.files.items() if path.endswith(".json"))
    assert [path for path, data in copy.files.items() if str(ROOT).encode() in data] == []
    about = f"scripts/analog_layout_skills-{version('analog-layout-skills')}.dist-info"
    assert b"Apache License" in copy.files[f"{about}/licenses/LICENSE"]
    assert [found.version for found in distributions(path=[str(home / "scripts")])] == [version("analog-layout-skills")]
    assert not any("__pycache__" in path or Path(path).name.startswith(".") for path in copy.files)


def test_the_schemas_of_a_copy_mean_what_they_meant(pack, exported):
    folder = exported["mos-pcell"][1].parent
    copied, original = (find_tools(loader.skills.values()) for loader in (SkillLoader(str(folder)), pack))
    assert copied.faults == ()
    assert [tool.to_json() for tool in copied.by_id.values()] == [tool.to_json() for tool in original.by_id.values()]


def test_the_manifest_lists_every_file(pack, tmp_path):
    home = export_skill(pack.skills["drc-check"], tmp_path).path
    manifest = json.loads((home / "manifest.json").read_text())
    present = {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    present.pop("manifest.json")
    assert {item["path"]: item["sha256"] for item in manifest["files"]} == {
        path: hashlib.sha256(data).hexdigest() for path, data in present.items()
    }
    assert all(item["size"] == len(present[item["path"]]) for item in manifest["files"])
    assert manifest["tools"] == ["drc.run_check"]
    assert (manifest["name"], manifest["version"]) == ("drc-check", version("analog-layout-skills"))


def test_two_exports_have_the_same_bytes(tmp_path):
    """Another folder, umask, hash seed, working folder and time; folders and archives."""
    digests = []
    for number, umask in ((1, 0o077), (2, 0o000)):
        target = tmp_path / f"a b {number}"
        code = f"import os; os.umask({umask}); from skillpack.__main__ import command\n"
        for more in ([], ["--archive"]):
            arguments = ["export", "gds-export", "--to", str(target), *more]
            code += f"command({arguments!r}, standalone_mode=False)\n"
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, check=True, env={**os.environ, "PYTHONHASHSEED": str(number)}
        )
        digests.append({path.relative_to(target): seen(path) for path in target.rglob("*")})
    assert digests[0] == digests[1]


def test_an_archive_unpacks_to_the_folder(pack, tmp_path):
    skill = pack.skills["mos-pcell"]
    (written,) = export_skills([skill], tmp_path, archive=True)
    with zipfile.ZipFile(written.path) as file:
        assert file.testzip() is None
        file.extractall(tmp_path / "unpacked")
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    folder = export_skill(skill, tmp_path / "folder").path
    found = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    unpacked = tmp_path / "unpacked" / "mos-pcell"
    assert {path.relative_to(unpacked): path.read_bytes() for path in unpacked.rglob("*") if path.is_file()} == found
    skills_ref = pytest.importorskip("skills_ref", reason="skipped: needs skills-ref")
    assert skills_ref.validate(unpacked) == []


def test_a_copy_of_a_copy_is_the_copy(exported):
    copy, home = exported["mos-pcell"]
    again = copy_of(SkillLoader(str(home.parent)).skills["mos-pcell"])
    assert again.files == copy.files


# --- skills of other packs


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", ["jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0"]),
        (header_of(), ["jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0"]),
        (header_of("analog-layout-skills"), ["jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0"]),
        (
            header_of("Analog_Layout.Skills>=0.1", "requests>=2"),
            ["jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0", "requests>=2"],
        ),
        (
            header_of("click>=8; python_version < '4'"),
            ['click>=8; python_version < "4"', "jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0"],
        ),
        (
            header_of("numpy<2; python_version < '3.11'", "numpy>=2; python_version >= '3.11'"),
            [
                "jinja2>=3.1",
                "jsonschema>=4.20",
                'numpy<2; python_version < "3.11"',
                'numpy>=2; python_version >= "3.11"',
                "pyyaml>=6.0",
            ],
        ),
    ],
)
def test_a_skill_of_another_pack_takes_its_dependencies_from_its_header(own_skill, header, expected):
    copy = copy_of(own_skill(header=header))
    text = copy.files["scripts/run.py"].decode()
    listed = [json.loads(line[2:].strip(" ,")) for line in text.split("# ]")[0].split("\n") if line.startswith("#   ")]
    assert listed == expected
    assert text.endswith(SCRIPT)
    locked = "scripts/run.py.lock" in copy.files
    assert locked == (expected == ["jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0"])
    assert locked or any("has no lock" in note for note in copy.notes)
    assert copy.version


@pytest.mark.parametrize(
    ("python", "expected"),
    [(">=3.8", ">=3.10"), (">=3.10", ">=3.10"), (">=3.12", ">=3.12"), (">=3.8,<3.13", ">=3.10,>=3.8,<3.13")],
)
def test_a_header_allows_only_the_pythons_of_the_modules_beside_the_script(own_skill, python, expected):
    header = header_of("analog-layout-skills").replace(">=3.10", python)
    copy = copy_of(own_skill(header=header))
    assert f'# requires-python = "{expected}"\n' in copy.files["scripts/run.py"].decode()
    assert ("scripts/run.py.lock" in copy.files) == (expected == ">=3.10")


def test_a_skill_with_modules_of_its_own_runs_from_its_copy(own_skill, tmp_path):
    script = SCRIPT.replace("    return {}", "    import parts.second, first\n    return {}")
    files = {
        "scripts/first.py": "import json\nfrom layoutkit.errors import FileError\n",
        "scripts/parts/__init__.py": "",
        "scripts/parts/second.py": "from . import third\n",
        "scripts/parts/third.py": "import designgraph.graph\n",
        "scripts/unused.py": "import no_such_library\n",
        "references/notes.md": "x",
        "scripts/__pycache__/x.pyc": "x",
        ".DS_Store": "x",
        "scripts/run.py~": "x",
        "scripts/.run.py.swp": "x",
    }
    written = export_skill(own_skill(files, script=script), tmp_path / "out")
    assert {"scripts/first.py", "scripts/parts/third.py", "scripts/unused.py", "references/notes.md"} <= set(
        written.copy.files
    )
    assert {"layoutkit", "layoutkit.errors", "designgraph", "designgraph.graph"} <= modules_in(written.copy)
    assert not any(name.endswith(("~", ".swp", ".pyc", ".DS_Store")) for name in written.copy.files)
    program = (
        "import runpy, sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p and p not in CHECKOUT]\n"
    )
    place = str(ROOT)
    code = f"CHECKOUT = ({place + '/loader'!r}, {place + '/scripts'!r})\n{program}"
    code += f"sys.argv = ['run.py']; sys.path[0] = {str(written.path / 'scripts')!r}\n"
    code += f"runpy.run_path({str(written.path / 'scripts' / 'run.py')!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert json.loads(done.stdout)["ok"], done.stdout + done.stderr


def test_modules_elsewhere_in_the_skill_are_followed_too(own_skill):
    """A script may add a folder of the skill to ``sys.path``."""
    script = "import sys\nsys.path.insert(0, 'lib')\nimport own_words.first\n" + SCRIPT
    files = {
        "lib/own_words/__init__.py": "",
        "lib/own_words/first.py": "from . import second\n",
        "lib/own_words/second.py": "import own_alone\n",
        "lib/more/own_alone.py": "import designgraph.graph\n",
    }
    assert "designgraph.graph" in modules_in(copy_of(own_skill(files, script=script)))
    with pytest.raises(CopyError, match="imports nothing_here, which is not in the skill"):
        copy_of(own_skill({**files, "lib/own_words/second.py": "import nothing_here\n"}, script=script))


def test_a_handler_gets_a_program_that_runs_it(own_skill, tmp_path):
    handler = "import beside\nfrom layoutkit.errors import FileError\n\ndef execute(params, context):\n    return {}\n"
    written = export_skill(own_skill({"beside.py": ""}, tool="handler.py", script=handler), tmp_path / "out")
    assert "scripts/skillscript/handler.py" in written.copy.files
    done = subprocess.run(
        [sys.executable, "-S", str(written.path / "scripts" / "run.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout)["ok"], done.stdout + done.stderr
    called = CliRunner().invoke(skillpack, ["run", "own.run", "--skills-dir", str(tmp_path / "out")])
    assert json.loads(called.output)["ok"], called.output


def test_a_skill_without_scripts_is_copied(own_skill, tmp_path):
    written = export_skill(own_skill({"references/a.md": "a"}, tool=""), tmp_path / "out")
    assert sorted(written.copy.files) == ["SKILL.md", "manifest.json", "references/a.md"]


def test_modules_named_by_strings_are_found(own_skill):
    script = SCRIPT.replace(
        "    return {}",
        '    import subprocess, sys\n    from importlib import import_module\n    import_module("designgraph.graph")\n'
        '    subprocess.run([sys.executable, "-m", "layoutkit.errors"])\n'
        '    subprocess.run([sys.executable, "-c", "from layoutkit.technology.expressions import x"])\n    return {}',
    )
    names = modules_in(copy_of(own_skill(script=script)))
    assert {"designgraph.graph", "layoutkit.errors", "layoutkit.technology.expressions"} <= names


def test_an_import_for_type_checkers_is_not_followed(own_skill):
    script = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import layoutkit.errors\n" + SCRIPT
    assert not {name for name in modules_in(copy_of(own_skill(script=script))) if name.startswith("layoutkit")}


# --- what is refused


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({}, {"script": "import requests_of_nobody\n" + SCRIPT}, "imports requests_of_nobody"),
        ({}, {"header": "# /// script\n# dependencies = 3\n# ///\n"}, "header"),
        ({}, {"header": "# /// script\n# dependencies = [\n# ///\n"}, "not TOML"),
        ({}, {"header": header_of() + "\n" + header_of()}, "2 headers"),
        ({}, {"header": header_of("not a requirement!")}, "is not a requirement"),
        ({}, {"header": header_of("numpy; nope == '3'")}, "is not a requirement"),
        ({}, {"header": header_of().replace(">=3.10", "new")}, "no range of versions"),
        ({}, {"header": header_of("analog-layout-skills>=99")}, "needs analog-layout-skills>=99, but"),
        (
            {},
            {"header": header_of("x", more='# [tool.uv.sources]\n# x = { path = "../x" }\n')},
            "takes libraries from this machine: path = '../x'",
        ),
        *(
            ({}, {"header": header_of(*needed, more=more)}, f"takes libraries from this machine: {place}")
            for needed, more, place in [
                (
                    ["x"],
                    '# [tool.uv.sources]\n# x = [{ path = "../x", marker = "os_name == \'nt\'" }]\n',
                    "path = '../x'",
                ),
                (["x @ file:///x.whl"], "", "url = 'file:///x.whl'"),
                ([], '# [tool.uv]\n# find-links = ["schemas", "/x"]\n', "find-links = 'schemas'"),
                ([], '# [[tool.uv.index]]\n# url = "/x"\n', "url = '/x'"),
            ]
        ),
        ({}, {"header": header_of(more="# [tool.uv]\n# sources = 3\n")}, "tables below tool"),
        ({}, {"header": header_of(more="# tool.uv.offline = true\n")}, "settings of tool above its first table"),
        ({}, {"script": "x = " + "-" * 100_000 + "1\n"}, "run.py is not valid Python 3"),
        ({"references/\u00c9.md": "", "references/e\u0301.md": ""}, {}, "are one name"),
        ({"references/a:b.md": ""}, {}, "not every system allows"),
        ({"references/con.md": ""}, {}, "not every system allows"),
        ({"scripts/Skillscript/Envelope.py": ""}, {}, "where a module of the copy belongs"),
        ({}, {"script": "def broken(:\n"}, "run.py is not valid Python 3"),
        ({"manifest.json": "{}"}, {}, "has a file manifest.json, but in a copy"),
        ({"schemas/own.run.input.json": '{"$ref": "../../../x.json#/$defs/y"}'}, {}, "leads out"),
        ({"schemas/own.run.input.json": '{"$ref": "../../x.json#/$defs/y"}'}, {}, "x.json cannot be read"),
    ],
)
def test_what_cannot_be_made_self_contained_is_refused(own_skill, tmp_path, files, options, message):
    with pytest.raises(CopyError, match=message.replace("(", "\\(")):
        export_skill(own_skill(files, **options), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("link", ["../../secret.txt", "/etc/hostname", "missing", "../own"])
def test_links_out_of_the_skill_are_refused(own_skill, link):
    skill = own_skill({"references/a.md": "a", "../../secret.txt": "secret"})
    Path(skill.dir, "references", "link").symlink_to(link)
    with pytest.raises(CopyError, match="link"):
        copy_of(skill)


def test_a_link_within_the_skill_is_copied_as_a_file(own_skill, tmp_path):
    skill = own_skill({"references/a.md": "a"})
    Path(skill.dir, "references", "b.md").symlink_to("a.md")
    written = export_skill(skill, tmp_path / "out")
    assert (written.path / "references" / "b.md").read_text() == "a"
    assert not (written.path / "references" / "b.md").is_symlink()


@pytest.mark.parametrize("name", ["../evil", "a/b", "UPPER", ".hidden", "con trol"])
def test_a_name_that_is_no_name_of_a_skill_is_refused(own_skill, tmp_path, name):
    skill = own_skill(tool="")._replace(name=name)
    with pytest.raises(CopyError, match="is not 1-64 characters"):
        export_skill(skill, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["packs"]


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "a\x1bb", "a\u202eb"])
def test_a_file_name_that_deceives_is_refused(own_skill, name):
    skill = own_skill(tool="")
    Path(skill.dir, name).write_text("x")
    with pytest.raises(CopyError, match="file name"):
        copy_of(skill)


def test_a_pipe_in_a_skill_is_refused(own_skill):
    skill = own_skill(tool="")
    os.mkfifo(Path(skill.dir, "pipe"))
    with pytest.raises(CopyError, match="FIFO"):
        copy_of(skill)


# --- where it is written


def test_only_an_unchanged_copy_is_replaced(own_skill, tmp_path):
    skill = own_skill({"references/a.md": "a", "references/old.md": "old"})
    home = export_skill(skill, tmp_path).path
    Path(skill.dir, "references", "a.md").write_text("new")
    Path(skill.dir, "references", "old.md").unlink()
    (home / "scripts" / "__pycache__").mkdir()
    (home / "scripts" / "__pycache__" / "run.cpython-311.pyc").write_bytes(b"x")
    export_skill(skill, tmp_path)
    assert (home / "references" / "a.md").read_text() == "new"
    assert not (home / "references" / "old.md").exists()
    (home / "references" / "a.md").write_text("mine")
    (home / "more.txt").write_text("mine")
    assert changes_of(home) == ["more.txt", "references/a.md"]
    with pytest.raises(CopyError, match=r"was changed .*\(more.txt, references/a.md\); --force deletes"):
        export_skill(skill, tmp_path)
    assert (home / "references" / "a.md").read_text() == "mine"
    export_skill(skill, tmp_path, force=True)
    assert changes_of(home) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link", "manifest of another"])
def test_what_no_export_wrote_is_kept(pack, tmp_path, kind):
    target = tmp_path / "mos-pcell"
    if kind == "file":
        target.write_text("mine")
    elif kind == "link":
        (tmp_path / "elsewhere").mkdir()
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target.mkdir()
        (target / "manifest.json" if kind != "folder" else target / "SKILL.md").write_text('{"name": "mine"}')
    for force in (False, True):
        with pytest.raises(CopyError, match=r"exists and is no copy|is a link"):
            export_skill(pack.skills["mos-pcell"], tmp_path, force=force)
    assert target.is_symlink() or target.is_file() or len(list(target.iterdir())) == 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_copy_is_not_written_into_its_skill(own_skill):
    skill = own_skill(tool="")
    for folder in (Path(skill.dir), Path(skill.dir, "copies", "x"), Path(skill.dir).parent, Path(skill.dir, "..")):
        with pytest.raises(CopyError, match="the skill itself"):
            export_skill(skill, folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_reported(own_skill, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(CopyError, match="cannot be written"):
        export_skill(own_skill(tool=""), tmp_path / "locked")


@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/skills"])
def test_a_target_that_cannot_be_a_folder_is_reported(own_skill, tmp_path, folder):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CopyError, match="cannot be written"):
        export_skill(own_skill(tool=""), tmp_path / folder)


def test_a_failed_move_restores_the_earlier_copy(own_skill, tmp_path, monkeypatch):
    skill = own_skill({"references/a.md": "a"})
    home = export_skill(skill, tmp_path).path
    Path(skill.dir, "references", "a.md").write_text("new")
    real = Path.rename

    def rename(self, target):
        if Path(target) == home and self.name.endswith("-new"):
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(CopyError, match="No space left"):
        export_skill(skill, tmp_path)
    monkeypatch.undo()
    assert changes_of(home) == []
    assert (home / "references" / "a.md").read_text() == "a"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own", "packs"]


# --- the command


def invoke(*arguments):
    return CliRunner().invoke(skillpack, ["export", *map(str, arguments)])


def test_all_faults_are_reported_and_nothing_is_written(tmp_path):
    (tmp_path / "mos-pcell").mkdir()
    (tmp_path / "drc-check").write_text("mine")
    done = invoke("mos-pcell", "drc-check", "gds-export", "--to", tmp_path)
    assert isinstance(done.exception, SkillpackError)
    assert str(done.exception).count("exists and is no copy") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drc-check", "mos-pcell"]
    unknown = invoke("mos-pcel", "no-such-skill", "--to", tmp_path / "out")
    assert unknown.exit_code == 2
    assert "'mos-pcell'" in unknown.output
    assert "no-such-skill" in unknown.output
    for wrong in (["--to", tmp_path], ["mos-pcell", "--all", "--to", tmp_path], ["mos-pcell"]):
        assert invoke(*wrong).exit_code == 2


def test_a_folder_that_cannot_be_is_reported(tmp_path):
    assert isinstance(invoke("gds-export", "--to", tmp_path / ("x" * 300)).exception, CopyError)


def test_the_answer_as_json(tmp_path):
    done = invoke("gds-export", "gds-export", "--to", tmp_path, "--json")
    (found,) = json.loads(done.output)["copies"]
    assert (found["name"], found["tools"], found["notes"]) == ("gds-export", ["export.gds"], [])
    assert Path(found["path"]) == tmp_path / "gds-export"
    assert found["files"] == len([path for path in (tmp_path / "gds-export").rglob("*") if path.is_file()])


def test_an_archive_replaces_only_an_archive_of_an_export(pack, tmp_path):
    target = tmp_path / "gds-export.skill"
    target.write_text("mine")
    assert isinstance(invoke("gds-export", "--archive", "--to", tmp_path).exception, CopyError)
    with zipfile.ZipFile(target, "w") as file:  # encrypted, if the flag in the list at its end were true
        file.writestr("gds-export/manifest.json", "{}")
    data = bytearray(target.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    target.write_bytes(data)
    assert isinstance(invoke("gds-export", "--archive", "--to", tmp_path).exception, CopyError)
    target.unlink()
    os.mkfifo(target)  # nothing may wait for what writes into it
    assert isinstance(invoke("gds-export", "--archive", "--to", tmp_path).exception, CopyError)
    target.unlink()
    target.write_bytes(archive_bytes(copy_of(pack.skills["gds-export"])))
    assert invoke("gds-export", "--archive", "--to", tmp_path).exit_code == 0


# --- distributions


@pytest.fixture
def other_pack(tmp_path, monkeypatch):
    """Return the skill of an installed distribution whose package the skill's script imports."""
    site = tmp_path / "site"
    files = {
        "otherpack/__init__.py": "",
        "otherpack/words.py": "import click\nfrom layoutkit.errors import FileError\n",
        "otherpack/unused.py": "",
        "otherpack/skills/own/SKILL.md": "---\nname: own\ndescription: Does something.\n---\n# Own\n",
        "otherpack/skills/own/scripts/run.py": header_of("other-pack") + "import otherpack.words\n" + SCRIPT,
        "other_pack-3.4.dist-info/METADATA": "Metadata-Version: 2.1\nName: other-pack\nVersion: 3.4\n"
        "Requires-Dist: analog-layout-skills\nRequires-Dist: click>=8.1\nRequires-Dist: imported-nowhere>=1\n",
    }
    files["other_pack-3.4.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    forget()
    yield SkillLoader(str(site / "otherpack" / "skills")).skills["own"]
    forget()


def forget():
    """Forget which distributions are installed."""
    from skillpack.copies import packages

    for remembered in (packages.distribution, packages.required_by, packages.providers):
        remembered.cache_clear()
    for remembered in (packages.packages_of, packages.own_distribution):
        remembered.cache_clear()


def test_the_distribution_that_ships_a_skill_is_copied_with_what_it_imports(other_pack):
    copy = copy_of(other_pack)
    assert {"otherpack", "otherpack.words", "layoutkit.errors", "skillscript"} <= modules_in(copy)
    assert not any("SKILL.md" in path for path in copy.files if path.startswith("scripts/"))
    header = copy.files["scripts/run.py"].decode().split("# ///\n")[0]
    assert '"click>=8.1"' in header
    assert "imported-nowhere" not in header
    assert "other-pack" not in header
    assert "scripts/run.py.lock" in copy.files


def test_without_an_installation_an_export_is_refused(pack, monkeypatch):
    from skillpack.copies import programs

    monkeypatch.setattr(programs, "own_distribution", lambda: None)
    with pytest.raises(CopyError, match=r"run: .*pip install .*-e "):
        copy_of(pack.skills["mos-pcell"])


def test_a_header_may_take_libraries_from_the_skill_and_modules_of_the_copy_from_anywhere(own_skill):
    more = '# [tool.uv]\n# find-links = ["../wheels"]\n# sources.Analog_Layout_Skills = { path = "../../.." }\n'
    copy = copy_of(own_skill({"wheels/x.whl": ""}, header=header_of("analog-layout-skills", more=more)))
    assert copy.files["scripts/run.py"].decode().count(more) == 1


def test_files_of_an_earlier_installation_hide_no_package(own_skill, tmp_path, monkeypatch):
    """An editable installation records files of former versions in a folder that is no package any more."""
    site = tmp_path / "site"
    files = {
        "_analog_layout_skills.pth": f"{ROOT / 'loader'}\n{ROOT / 'scripts'}\n",
        "skillpack/bundled_skills/own/scripts/run.py": "",
        "analog_layout_skills-0.1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: analog-layout-skills\n"
        "Version: 0.1.0\nRequires-Dist: jsonschema>=4.20\nRequires-Dist: pyyaml>=6.0\n",
    }
    files["analog_layout_skills-0.1.0.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    forget()
    try:
        assert "skillscript" in modules_in(copy_of(own_skill()))
    finally:
        forget()


def test_a_header_of_a_skills_own_keeps_its_lock(own_skill):
    script = header_of("requests>=2") + "import requests\n"
    copy = copy_of(own_skill({"scripts/run.py.lock": "version = 1\n", "scripts/more.py": script}))
    assert "scripts/run.py.lock" in copy.files
    assert copy.files["scripts/run.py.lock"] != b"version = 1\n"
    assert copy.files["scripts/more.py"].decode() == script
    kept = copy_of(own_skill({"scripts/more.py": script, "scripts/more.py.lock": "version = 1\n"}))
    assert kept.files["scripts/more.py.lock"] == b"version = 1\n"
    complete = header_of("jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0")
    kept = copy_of(own_skill({"scripts/run.py.lock": "version = 1\n"}, header=complete))
    assert kept.files["scripts/run.py.lock"] == b"version = 1\n"


# --- a Python that lacks a library


def test_a_copy_names_the_command_that_makes_it_run(pack, tmp_path):
    """The library is missed late, when the handler needs it; with uv, with pip, and for a worker of a server."""
    home = export_skill(pack.skills["gds-export"], tmp_path / "the copies").path
    program, example = home / "scripts" / "export_gds.py", home / "assets" / "example.gds"
    arguments = ["--layout-path", str(example), "--output-path", str(tmp_path / "x.gds")]
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)

    def answer(*more, path):
        done = subprocess.run(
            [sys.executable, "-S", str(program), *more], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={"PATH": str(path)}, input='{"params": {}}\n',
        )  # fmt: skip
        (line,) = done.stdout.splitlines()
        assert done.stderr == ""  # no traceback: the command is all that helps
        return done.returncode, json.loads(line)["error"]

    code, error = answer(*arguments, path=tmp_path)
    assert (code, error["code"]) == (3, "SERVICE_UNAVAILABLE")
    assert error["details"]["command"] == shlex.join(["uv", "run", str(program), *arguments])
    assert error["message"].endswith(error["details"]["command"])
    code, error = answer(*arguments, path=nothing)
    listed = re.findall(r'^#   "(.*)",$', program.read_text(), re.MULTILINE)
    assert {"jsonschema>=4.20", "klayout>=0.30.10"} <= {*listed}
    needed = shlex.join(listed)
    own = "~/.analog-layout-skills/bin/python"  # -S hides pip
    assert error["details"]["command"] == (
        f"{sys.executable} -m venv ~/.analog-layout-skills && {own} -m pip install {needed}"
        f" && {own} {shlex.join([str(program), *arguments])}"
    )
    code, error = answer("--serve", path=nothing)
    assert error["details"]["command"] == f"{sys.executable} -m pip install {needed}"
    code, error = answer("--serve", path=tmp_path)
    assert error["details"]["command"] == f"uv pip install --python {sys.executable} {needed}"


def test_a_library_that_only_the_header_of_a_copy_names_is_reported_too(own_skill, tmp_path):
    script = SCRIPT.replace("    return {}", "    import requests_of_nobody")
    header = header_of(
        "requests-of-nobody", "jinja2>=3.1", "jsonschema>=4.20", "pyyaml>=6.0"
    )  # all that is needed, in another form
    written = export_skill(own_skill(header=header, script=script), tmp_path / "out")
    done = subprocess.run(
        [sys.executable, str(written.path / "scripts" / "run.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["details"]["missing"] == "requests_of_nobody"
    assert "requests-of-nobody" in done.stdout or "uv run" in done.stdout


def test_an_unreadable_declaration_is_no_missing_schema(own_skill, tmp_path):
    """A Python without YAML cannot read where skill.yaml says that the schemas are."""
    skill = own_skill()
    Path(skill.dir, "schemas").rename(Path(skill.dir, "other"))
    declaration = Path(skill.dir, "skill.yaml")
    declaration.write_text(declaration.read_text().replace("schemas/", "other/"))
    written = export_skill(SkillLoader(str(Path(skill.dir).parent)).skills["own"], tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-S", str(written.path / "scripts" / "run.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["details"]["missing"] == "yaml"
