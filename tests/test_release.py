"""What a release needs (``references/releasing.md``): one version everywhere, a dated changelog, files, pinned actions.

``RELEASE_TAG=v1.2.3`` makes the tests compare with a tag, too.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
import yaml

from patience import WATCHDOG_S

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli", reason="skipped: needs Python 3.11 or tomli")

ROOT = Path(__file__).resolve().parent.parent
HEADING = re.compile(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d{2}-\d{2})")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def version():
    return re.search(r'^version = "(\d+\.\d+\.\d+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]


def faults(changelog, current, tag=""):
    """Return what is wrong with a changelog for the version ``current``, and for a release of ``tag``."""
    first, *headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    found = [f"{heading!r} is not 'X.Y.Z - YYYY-MM-DD'" for heading in headings if not HEADING.fullmatch(heading)]
    if first != "Unreleased":
        found.append(f"the first section is {first!r}, not 'Unreleased'")
    released = [match for heading in headings if (match := HEADING.fullmatch(heading))]
    versions = [tuple(map(int, match.groups()[:3])) for match in released]
    dates = [date.fromisoformat(match[4]) for match in released]
    if versions != sorted(set(versions), reverse=True) or dates != sorted(dates, reverse=True):
        found.append("the versions or their dates are not in descending order")
    now = tuple(map(int, current.split(".")))
    if versions and now < versions[0]:
        found.append(f"version {current} is older than the last section")
    if tag and tag != f"v{current}":
        found.append(f"the tag {tag} is not v{current}")
    if tag and now not in versions[:1]:
        found.append(f"the last section is not that of {current}")
    return found


def test_the_changelog_and_the_version_agree():
    assert faults(CHANGELOG, version(), os.environ.get("RELEASE_TAG", "")) == []


def test_make_manifests_would_change_nothing(tmp_path):
    """A version that is stale in a manifest would keep a host from updating the plugin."""
    manifests = pytest.importorskip("manifests", reason="skipped: needs Python 3.11 or tomli")
    manifests.write(tmp_path, manifests.read_project())
    for path in manifests.manifests(manifests.read_project()):
        assert (ROOT / path).read_bytes() == (tmp_path / path).read_bytes(), f"{path}: run make manifests"
    for path in manifests.links():
        assert (ROOT / path).readlink() == (tmp_path / path).readlink(), f"{path}: run make manifests"
    assert f'"version": "{version()}"' in (tmp_path / "plugin.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("sections", "current", "tag", "expected"),
    [
        (["Unreleased"], "0.1.0", "", None),
        (["Unreleased", "0.2.0 - 2026-02-01", "0.1.0 - 2026-01-01"], "0.2.0", "v0.2.0", None),
        (["Unreleased", "0.1.0 - 2026-01-01"], "0.2.0", "", None),
        (["Unreleased"], "0.1.0", "v0.1.0", "the last section is not"),
        (["Unreleased", "0.2.0 - 2026-02-01"], "0.2.0", "v0.2.1", "is not v0.2.0"),
        (["Unreleased", "0.2.0 - 2026-02-01"], "0.1.0", "", "is older than"),
        (["Unreleased", "0.1.0 - 2026-01-01", "0.2.0 - 2026-02-01"], "0.2.0", "", "descending"),
        (["Unreleased", "0.2.0"], "0.2.0", "", "is not 'X.Y.Z"),
        (["0.2.0 - 2026-02-01"], "0.2.0", "v0.2.0", "not 'Unreleased'"),
    ],
)
def test_the_check_of_a_release_finds_faults(sections, current, tag, expected):
    found = "; ".join(faults("".join(f"## {section}\n\n- a line\n" for section in sections), current, tag))
    assert expected in found if expected else found == ""


def citation_faults(citation, project, changelog):
    """Return what is wrong with the citation of a project: fields that differ, or another date than its section's."""
    wanted = {"title": "name", "abstract": "description", "version": "version", "license": "license"}
    found = [field for field, source in wanted.items() if citation.get(field) != project[source]]
    found += [] if citation.get("keywords") == project["keywords"] else ["keywords"]
    found += [] if citation.get("repository-code") == project["urls"]["Source"] else ["repository-code"]
    found += [] if citation.get("authors") == project["authors"] else ["authors"]
    sections = (HEADING.fullmatch(line) for line in re.findall(r"^## (.+)$", changelog, re.MULTILINE))
    dates = {".".join(match.groups()[:3]): match[4] for match in sections if match}
    released = citation.get("date-released")
    found += [] if (str(released) if released else None) == dates.get(project["version"]) else ["date-released"]
    return found


def test_the_citation_says_what_the_project_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    fixed = {"cff-version": "1.2.0", "type": "software"}
    assert {field: citation[field] for field in fixed} == fixed
    assert citation["message"]
    assert all(set(author) == {"name"} for author in citation["authors"])  # a team, no person
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation_faults(citation, project, CHANGELOG) == []
    released = "## Unreleased\n\n## {} - 2026-02-01\n".format(project["version"])
    assert citation_faults(citation, project, released) == ["date-released"]
    assert citation_faults({**citation, "date-released": date(2026, 2, 1)}, project, released) == []
    assert citation_faults({**citation, "version": "9.9.9"}, project, CHANGELOG) == ["version"]


def make(*arguments):
    """Run make with this environment's Python instead of one that it would create."""
    binaries = Path(sys.executable).parent
    command = ["make", "-o", f"{binaries.parent}/.installed-dev", f"VENV={binaries.parent}", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=WATCHDOG_S)


def test_the_files_of_a_release_are_those_that_users_build(built_wheel, wheel_environment, tmp_path):
    """The wheel, and the archive of a skill, which whoever has only the wheel exports with the same bytes."""
    assert "export --all --archive" in make("-n", "dist").stdout
    make("dist", f"DIST={tmp_path / 'dist'}", "EXPORTED=mos-pcell")
    files = {path.name: path for path in (tmp_path / "dist").iterdir()}
    sums = dict(line.split("  ")[::-1] for line in files.pop("SHA256SUMS").read_text().splitlines())
    notes = files.pop("NOTES.md").read_text(encoding="utf-8")
    assert sums == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    (wheel,) = built_wheel.glob("*.whl")
    assert files[wheel.name].read_bytes() == wheel.read_bytes()
    assert f"analog_layout_skills-{version()}.tar.gz" in files
    done = wheel_environment.run("skillpack", "export", "mos-pcell", "--archive", "--to", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/mos-pcell.skill").read_bytes() == files["mos-pcell.skill"].read_bytes()
    section = re.search(rf"^## {re.escape(version())} .*?\n(.*?)(?=^## |\Z)", CHANGELOG, re.MULTILINE | re.DOTALL)
    assert notes == (section[1] if section else "")


def used_by(job):
    return [step["uses"] for step in job["steps"] if "uses" in step]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_pinned_actions_and_no_more_rights_than_it_needs(workflow):
    """A tag of an action can be moved to other code; a commit cannot."""
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    used = [action for job in content["jobs"].values() for action in used_by(job)]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)] == []
    assert content["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 90 for job in content["jobs"].values())
    rights = {right for job in content["jobs"].values() for right in job.get("permissions", {}).items()}
    assert rights <= {("contents", "write"), ("id-token", "write"), ("attestations", "write")}
    for job in content["jobs"].values():  # whoever may write runs no code of the repository
        if "permissions" in job:
            assert not [action for action in used_by(job) if action.startswith("actions/checkout@")]


def test_a_release_is_built_once_and_published_only_after_everything_passed():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    build, *publishing = jobs
    commands = [step["run"].partition(" #")[0] for step in jobs[build]["steps"] if "run" in step]
    assert commands[-3:] == [".ci/run", "make dist try-dist", "test -s dist/NOTES.md"]
    assert jobs[build]["env"] == {"RELEASE_TAG": "${{ github.ref_name }}"}
    assert publishing
    for name in publishing:
        assert jobs[name]["needs"] == build
        assert not re.search(r"hatchling|make |pip install|build ", json.dumps(jobs[name]["steps"]))
    for target in ("dist", "try-dist"):
        assert make("-n", target).stdout
