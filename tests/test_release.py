"""What a release needs (``references/releasing.md``): one version everywhere, a dated changelog, pinned actions.

``RELEASE_TAG=v1.2.3`` makes the tests compare with a tag, too.
"""

import json
import os
import re
from datetime import date
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
HEADING = re.compile(r"(\d+)\.(\d+)\.(\d+) - (\d{4}-\d{2}-\d{2})")
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
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert faults(changelog, version(), os.environ.get("RELEASE_TAG", "")) == []


@pytest.mark.parametrize("manifest", ["plugin.json", ".claude-plugin/plugin.json"])
def test_the_plugin_manifests_have_the_version_of_the_package(manifest):
    assert json.loads((ROOT / manifest).read_text(encoding="utf-8"))["version"] == version()


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


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_pinned_actions_and_no_more_rights_than_it_needs(workflow):
    """A tag of an action can be moved to other code; a commit cannot."""
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    used = [step["uses"] for job in content["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)] == []
    assert content["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 90 for job in content["jobs"].values())
