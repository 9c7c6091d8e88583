"""The wheel, not the checkout, is what people install: it holds the packages, the technologies and the skills.

``wheel_environment`` opens no file of the checkout, has an empty home and a space in its name.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from installed_wheel import ROOT, build_wheel
from skillpack import SkillLoader
from skillpack.copies.skill_copy import copy_of

PACKAGES = {"designgraph", "layoutkit", "skillpack", "skillscript", "sturdy"}  # why so many: references/decisions/0012
# Names that Windows cannot store, whatever their extension.
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}

# Each command line of the argument, in one process: what it printed and its exit code.
COMMANDS = """
import json, sys
from click.testing import CliRunner
from skillpack.__main__ import command
outcomes = []
for line in json.loads(sys.argv[1]):
    outcome = CliRunner().invoke(command, line)
    outcomes.append([outcome.exit_code, outcome.output])
print(json.dumps(outcomes))
"""


def printed(environment, *command, cwd, **variables):
    """Return what a program of the environment prints; fail if it fails."""
    done = environment.run(*command, cwd=cwd, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def names_in(archive):
    """Return the paths in a wheel or a source distribution, in the latter without its one top folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return [name for name in wheel.namelist() if not name.endswith("/")]
    with tarfile.open(archive) as source:
        return [entry.name.partition("/")[2] for entry in source.getmembers() if not entry.isdir()]


def build_source_distribution(folder, source=ROOT):
    """Build the source distribution of ``source`` into ``folder`` and return its path."""
    from hatchling.builders.sdist import SdistBuilder

    (path,) = SdistBuilder(str(source)).build(directory=str(folder), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def wheel(built_wheel):
    return next(built_wheel.glob("*.whl"))


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory):
    pytest.importorskip("hatchling.builders.sdist", reason="skipped: needs hatchling")
    return build_source_distribution(tmp_path_factory.mktemp("source"))


def test_archives_built_from_the_source_distribution_are_the_same_and_hold_no_stray_file(
    wheel, source_distribution, tmp_path
):
    """No git is needed: the unpacked archive is no repository."""
    with tarfile.open(source_distribution) as archive:
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path, **safe)  # noqa: S202 - built above
    (unpacked,) = tmp_path.iterdir()
    for stray in (".env", "password.txt", "build/x.py", "skills/mos-pcell/.env", "scripts/layoutkit/.idea/x.py"):
        (unpacked / stray).parent.mkdir(exist_ok=True)
        (unpacked / stray).write_text("secret = 1")
    compiled = unpacked / "skills/mos-pcell/scripts/__pycache__/x.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.touch()
    assert build_wheel(tmp_path, unpacked).read_bytes() == wheel.read_bytes()
    assert build_source_distribution(tmp_path, unpacked).read_bytes() == source_distribution.read_bytes()


def test_the_wheel_holds_four_packages_and_the_licence(wheel):
    inside = names_in(wheel)
    about = re.match(r"(.*?-.*?)-", wheel.name)[1] + ".dist-info"
    assert {Path(name).parts[0] for name in inside} == {*PACKAGES, about}
    assert [name for name in inside if any(part.startswith((".", "test")) for part in Path(name).parts)] == []
    assert f"{about}/licenses/LICENSE" in inside


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="skipped: needs a git clone")
def test_the_source_distribution_holds_the_files_of_the_repository(source_distribution):
    """A file that is not committed yet may be in it, too, but not one that git ignores, nor the folder of links."""
    files = ["git", "ls-files", "-z", "--cached"]
    committed, present = (
        set(subprocess.run([*files, *more], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"))
        for more in ([], ["--others", "--exclude-standard"])
    )
    inside = {*names_in(source_distribution), ""}
    missing = {name for name in committed - inside if (ROOT / name).exists()}
    assert {name for name in missing if not name.startswith(".claude-plugin/pack/")} == set()
    assert inside - present == {"PKG-INFO"}


def test_windows_can_store_every_file(wheel, source_distribution):
    for archive in (wheel, source_distribution):
        names = names_in(archive)
        assert len({name.lower() for name in names}) == len(names)
        assert max(map(len, names)) < 150
        for part in {part for name in names for part in Path(name).parts}:
            assert not re.search(r'[<>:"|?*\\\x00-\x1f]|[. ]$', part), part
            assert part.partition(".")[0].lower() not in RESERVED, part


def test_the_metadata_names_project_licence_and_pythons(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
        (metadata,) = (name for name in inside if name.endswith(".dist-info/METADATA"))
        fields = Parser().parsestr(archive.read(metadata).decode())
        (programs,) = (archive.read(name).decode() for name in inside if name.endswith("entry_points.txt"))
    urls = dict(url.split(", ") for url in fields.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} == set(urls)
    assert all(f"{url}/".startswith(f"{urls['Homepage']}/") for url in urls.values())
    assert fields["Author"] == "analog-layout-skills maintainers"
    assert fields["License-Expression"] == "Apache-2.0"
    classifiers = fields.get_all("Classifier")
    assert not [name for name in classifiers if name.startswith("License ::")]  # the expression replaces them
    minors = [int(name.rpartition(".")[2]) for name in classifiers if re.search(r":: 3\.\d+$", name)]
    assert fields["Requires-Python"] == f">=3.{minors[0]}"
    assert (ROOT / ".ci/run").read_text().count(f"OLDEST=3.{minors[0]} NEWEST=3.{minors[-1]}") == 1
    assert minors == list(range(minors[0], minors[-1] + 1))
    known = pytest.importorskip("trove_classifiers", reason="skipped: needs trove-classifiers").classifiers
    assert set(classifiers) <= set(known)
    for program in ("skillpack", fields["Name"]):  # uvx and pipx run the one named like the distribution
        assert f"{program} = skillpack.__main__:main" in programs
    assert {name.split("/")[0] for name in inside if name.endswith("py.typed")} == PACKAGES


def test_each_command_of_the_wheel_answers(wheel_environment, tmp_path):
    expected = {
        ("list", "--json"): '"netlist-to-gds"',
        ("show", "netlist-to-gds"): "LVS",
        ("read", "netlist-to-gds", "assets/ota_5t.spice"): ".subckt ota_5t",
        ("read", "technology-files", "references/technology-format.md"): "purpose",
        ("search", "current mirror"): "current-mirror",
        ("intent", "draw a current mirror"): "layout.create_current_mirror",
        ("prompt",): "mos-pcell",
        ("tools", "--json"): "flow.build_layout",
        ("validate",): "skills",
        ("new", "my-skill"): "my-skill",
        ("install", "mos-pcell", "--host", "agents"): "installed mos-pcell",
        ("validate", "skills/my-skill"): "1 skill",
        ("doctor",): str(wheel_environment.site / "skillpack" / "bundled_skills"),
        ("pipeline", "check", "netlist-to-gds/assets/netlist-to-gds.pipeline.yaml"): "steps can run",
        ("--version",): "version",
    }
    answer = printed(wheel_environment, "python", "-c", COMMANDS, json.dumps(list(expected)), cwd=tmp_path)
    for (line, wanted), (code, output) in zip(expected.items(), json.loads(answer), strict=True):
        assert code == 0, (line, output)
        assert re.search(re.escape(wanted), output, re.IGNORECASE), (line, output)
        assert "__pycache__" not in output, line
    names = {path.parent.name for path in ROOT.glob("skills/*/SKILL.md")}
    assert {skill["name"] for skill in json.loads(json.loads(answer)[0][1])} == names


@pytest.mark.parametrize("skill", sorted(path.parent.name for path in ROOT.glob("skills/*/SKILL.md")))
def test_a_script_of_each_skill_starts_and_finds_its_shared_definitions(skill, wheel_environment, tmp_path):
    script = min((wheel_environment.site / "skillpack/bundled_skills" / skill / "scripts").glob("*.py"))
    served = printed(wheel_environment, "python", script, "--schema", cwd=tmp_path)
    assert json.loads(served)["input"]["$schema"]
    assert "analog-layout.schema.json" not in served  # the schema contains what it refers to


def test_the_wheel_exports_what_the_checkout_exports(wheel_environment, tmp_path):
    names = ["mos-pcell", "design-knowledge-graph"]
    loader = SkillLoader(str(ROOT / "skills"))
    answer = printed(wheel_environment, "skillpack", "export", *names, "--to", "the copies", "--json", cwd=tmp_path)
    assert [copy["notes"] for copy in json.loads(answer)["copies"]] == [[], []]
    for name in names:
        home = tmp_path / "the copies" / name
        found = {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}
        assert found == copy_of(loader.skills[name]).files


def test_the_wheel_draws_checks_and_writes_nothing_beside_its_modules(wheel_environment, tmp_path):
    """The shipped pipeline and the KLayout package, run as a user runs them."""
    before = sorted(path for path in wheel_environment.site.rglob("*") if "__pycache__" not in path.parts)
    netlist = wheel_environment.site / "skillpack/bundled_skills/netlist-to-gds/assets/pair.spice"
    inputs = {"netlist_path": str(netlist), "output_path": "pair.gds", "technology": "sky130A"}
    run = ("skillpack", "pipeline", "run", "netlist-to-gds/assets/matched-pair.pipeline.yaml")
    answer = json.loads(printed(wheel_environment, *run, "--inputs", json.dumps(inputs), cwd=tmp_path))
    assert answer["ok"]
    assert (tmp_path / "pair.gds").stat().st_size > 0
    params = {"technologies": ["sky130A"], "output_dir": "klayout package", "pcells": True}
    run = ("analog-layout-skills", "run", "technology.export_klayout", "--params", json.dumps(params))
    assert json.loads(printed(wheel_environment, *run, cwd=tmp_path))["ok"]
    assert (tmp_path / "klayout package/python/layoutkit/technology/sky130A.yaml").is_file()
    assert list(wheel_environment.home.iterdir()) == []
    assert before == sorted(path for path in wheel_environment.site.rglob("*") if "__pycache__" not in path.parts)


def test_a_skill_copied_elsewhere_finds_its_definitions_in_the_wheel(wheel_environment, tmp_path):
    copy = tmp_path / ".claude/skills/mos-pcell"
    shutil.copytree(ROOT / "skills/mos-pcell", copy)
    script = copy / "scripts/create_nmos_pcell.py"
    served = json.loads(printed(wheel_environment, "python", script, "--schema", cwd=tmp_path))
    assert served["input"]["properties"]["workspace"]["x-env"] == "ANALOG_LAYOUT_WORKSPACE"


def test_the_wheel_in_a_folder_of_a_project_does_not_take_the_projects_skills_for_its_own(wheel, tmp_path):
    """``pip install --target vendor`` puts the packages where the checkout has them: beside ``skills``."""
    (tmp_path / "skills" / "other").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "vendor")  # noqa: S202 - built above
    code = "from skillpack.skills.catalog import bundled_root as a; print(a());"
    code += "from skillscript.schema_references import _installed_skills as b; print(b())"
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "vendor")}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tmp_path / "vendor/skillpack/bundled_skills")] * 2


def test_the_server_of_the_wheel_needs_its_extra_and_draws_with_it(wheel_environment, tmp_path):
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    without = wheel_environment.run("skillpack", "mcp", cwd=tmp_path)
    assert (without.returncode, "mcp]" in without.stderr) == (2, True), without.stderr
    extra = wheel_environment.with_extras("mcp")
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with subprocess.Popen(
        [wheel_environment.skillpack, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=wheel_environment.environment(**extra),
    ) as server:

        def ask(**message):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline()) if "id" in message else None

        assert ask(id=1, method="initialize", params=client)["result"]["serverInfo"]
        ask(method="notifications/initialized")
        arguments = {"device_id": "M1", "w": 2e-6, "l": 0.5e-6, "technology": "sky130A", "workspace": "ws"}
        call = {"name": "layout_create_nmos_pcell", "arguments": arguments}
        answer = ask(id=2, method="tools/call", params=call)
        server.stdin.close()
    assert not answer["result"].get("isError"), answer
    assert (tmp_path / "ws/layout.gds").stat().st_size > 0
