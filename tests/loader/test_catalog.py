"""Scanning (S3.1, S3.4): one bad skill never hides another, and each loss is told."""

import os
from pathlib import Path

import pytest

from skillpack import scan
from skillpack.authoring.validation import frontmatter_findings
from skillpack.untrusted.strict_yaml import MAX_FILE_BYTES

GOOD = "---\nname: good\ndescription: Fine.\n---\nbody"


def reasons(catalog):
    return {Path(entry.path).parent.name: entry.reason for entry in catalog.skipped}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no frontmatter", "does not start with"),
        ("---\nname: bad\n---\n", "the frontmatter has no description"),
        ("---\nname: bad\ndescription:\n---\n", "the frontmatter has no description"),
        ("---\nname: bad\ndescription: [a, b]\n---\n", "the description must be text, not a list"),
        ("---\nname: {a: b}\ndescription: b\n---\n", "the name must be text, not a mapping"),
        ('---\nname: "a\\n## System"\ndescription: b\n---\n', "line break or a control character"),
        (b"---\nname: bad\ndescription: \xe9\n---\n", "is not UTF-8"),
        (GOOD.encode() + b"x" * MAX_FILE_BYTES, "more than the 1048576 allowed"),
    ],
)
def test_a_bad_skill_is_skipped_with_its_reason_and_hides_nothing(write_skill, tmp_path, text, reason):
    write_skill("bad", text)
    write_skill("good")
    catalog = scan([tmp_path / "skills"])
    assert list(catalog.skills) == ["good"]
    assert reason in reasons(catalog)["bad"]
    assert catalog.errors == catalog.skipped


@pytest.mark.parametrize("written", ["", "name:\n", "name: ''\n", "name: ' '\n", "name: ~\n"])
@pytest.mark.parametrize("folder", ["unnamed", "My_Skill"])
def test_a_skill_without_a_name_goes_by_its_folders(write_skill, tmp_path, written, folder):
    """As in Claude Code; a finding says so."""
    write_skill(folder, f"---\n{written}description: b\n---\nbody")
    write_skill("good")
    catalog = scan([tmp_path / "skills"])
    assert set(catalog.skills) == {folder, "good"}
    assert catalog.skipped == ()
    skill = catalog.skills[folder]
    assert (skill.is_unnamed, catalog.skills["good"].is_unnamed) == (True, False)
    assert ("warning", "name-missing") in {(finding.level, finding.rule) for finding in frontmatter_findings(skill)}
    assert any(finding.rule == "name-form" for finding in frontmatter_findings(skill)) == (folder == "My_Skill")


def test_of_an_unnamed_skill_and_one_that_declares_its_name_the_first_path_wins(write_skill, tmp_path):
    write_skill("b", "---\ndescription: b\n---\nunnamed")
    write_skill("a", "---\nname: b\ndescription: a\n---\nnamed")
    catalog = scan([tmp_path / "skills"])
    assert catalog.skills["b"].body == "named"
    assert [entry.path for entry in catalog.shadowed] == [str(tmp_path / "skills/b/SKILL.md")]


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling link", "link to outside", "device", "unreadable"])
def test_a_skill_file_of_another_kind_is_skipped_without_hanging(write_skill, tmp_path, kind):
    write_skill("good")
    home = tmp_path / "skills" / "odd"
    home.mkdir()
    path = home / "SKILL.md"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "dangling link":
        path.symlink_to("nowhere.md")
    elif kind == "link to outside":
        (tmp_path / "outside.md").write_text(GOOD)
        path.symlink_to(tmp_path / "outside.md")
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_text(GOOD)
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("root reads everything")
    catalog = scan([tmp_path / "skills"])
    assert list(catalog.skills) == ["good"]
    assert [entry.path for entry in catalog.errors] == [str(path)]


def test_a_link_inside_the_skill_may_be_its_skill_file(write_skill, tmp_path):
    home = write_skill("good", "x")
    (home / "docs.md").write_text(GOOD)
    (home / "SKILL.md").unlink()
    (home / "SKILL.md").symlink_to("docs.md")
    assert list(scan([tmp_path / "skills"]).skills) == ["good"]


def test_a_linked_skill_folder_works_and_its_resources_are_its_own(write_skill, tmp_path):
    home = write_skill(
        "elsewhere", "---\nname: linked\ndescription: d\n---\n", root="store", files={"scripts/x.py": ""}
    )
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "linked").symlink_to(home)
    skill = scan([tmp_path / "skills"]).skills["linked"]
    assert skill.dir == str(tmp_path / "skills" / "linked")
    assert skill.resources == ["scripts/x.py"]
    assert frontmatter_findings(skill) == []


def test_links_that_lead_back_end_the_search_there(write_skill, tmp_path):
    write_skill("good")
    (tmp_path / "skills" / "loop").symlink_to(tmp_path / "skills")
    (tmp_path / "skills" / "group").mkdir()
    (tmp_path / "skills" / "group" / "up").symlink_to(tmp_path)
    catalog = scan([tmp_path / "skills"])
    assert list(catalog.skills) == ["good"]
    assert [entry.level for entry in catalog.skipped] == ["info", "info"]
    assert (catalog.errors, catalog.shadowed) == ((), ())


def test_an_earlier_root_wins_and_the_shadowed_skill_is_reported(write_skill, tmp_path):
    first = write_skill("same", root="project", description="first")
    second = write_skill("same", root="user", description="second")
    catalog = scan([tmp_path / "project", tmp_path / "user"])
    assert catalog.skills["same"].description == "first"
    assert [(entry.path, entry.by) for entry in catalog.shadowed] == [
        (str(second / "SKILL.md"), str(first / "SKILL.md"))
    ]
    assert scan([tmp_path / "user", tmp_path / "project"]).skills["same"].description == "second"


def test_inside_a_root_the_path_that_sorts_first_wins(write_skill, tmp_path):
    text = "---\nname: same\ndescription: {}\n---\n"
    write_skill("b", text.format("second"))
    write_skill("a", text.format("first"))
    catalog = scan([tmp_path / "skills"])
    assert catalog.skills["same"].description == "first"
    assert len(catalog.shadowed) == 1


def test_the_same_root_twice_shadows_nothing(write_skill, tmp_path):
    write_skill("good")
    (tmp_path / "alias").symlink_to(tmp_path / "skills")
    catalog = scan([tmp_path / "skills", tmp_path / "skills", tmp_path / "alias"])
    assert (len(catalog.skills), catalog.shadowed) == (1, ())


def test_the_search_is_bounded_in_depth_and_number(write_skill, tmp_path):
    write_skill("a/b/c/deep")
    write_skill("z-last")
    shallow = scan([tmp_path / "skills"], max_depth=3)
    assert list(shallow.skills) == ["z-last"]
    assert [entry.reason for entry in shallow.skipped] == ["lies deeper than 3 levels: not searched"]
    assert set(scan([tmp_path / "skills"]).skills) == {"deep", "z-last"}
    few = scan([tmp_path / "skills"], max_folders=3)
    assert few.skills == {}
    assert ["too many folders" in entry.reason for entry in few.errors] == [True]


def test_hidden_folders_and_folders_inside_a_skill_are_not_searched(write_skill, tmp_path):
    write_skill("good")
    write_skill(".git/hidden")
    write_skill("good/assets/example")
    assert list(scan([tmp_path / "skills"]).skills) == ["good"]


def test_a_root_may_be_a_skill_itself(write_skill):
    assert list(scan([write_skill("good")]).skills) == ["good"]


def test_a_missing_root_and_a_misspelt_file_are_reported(write_skill, tmp_path):
    home = write_skill("low")
    (home / "SKILL.md").rename(home / "skill.md")
    catalog = scan([tmp_path / "nowhere", tmp_path / "skills"])
    assert [entry.reason for entry in catalog.errors] == [
        "the skills directory does not exist",
        "the file must be named SKILL.md",
    ]


@pytest.mark.parametrize("declaration", ["skill.yaml", "skill.json"])
def test_tools_without_a_skill_file_are_reported(write_skill, tmp_path, declaration):
    home = write_skill("half", files={declaration: '{"tools": []}'})
    (home / "SKILL.md").unlink()
    reason = "declares tools, but there is no SKILL.md beside it: agents do not see them"
    assert reasons(scan([tmp_path / "skills"])) == {"half": reason}


def test_a_skill_that_departs_from_the_specification_is_used_all_the_same_and_reported(write_skill, tmp_path):
    write_skill("folder", f"---\nname: Other Name\ndescription: <{'x' * 1100}\n---\n")
    skill = scan([tmp_path / "skills"]).skills["Other Name"]
    assert [(finding.level, finding.rule) for finding in frontmatter_findings(skill)] == [
        ("error", "name-form"),
        ("error", "description-length"),
        ("error", "description-brackets"),
        ("error", "name-folder"),
    ]


def test_an_unquoted_colon_is_a_warning_of_a_usable_skill(write_skill, tmp_path):
    write_skill("folder", "---\nname: folder\ndescription: Use when: asked\n---\n")
    skill = scan([tmp_path / "skills"]).skills["folder"]
    assert skill.description == "Use when: asked"
    assert [(finding.level, finding.rule) for finding in frontmatter_findings(skill)] == [("warning", "yaml-colon")]


def test_scanning_runs_nothing_of_a_skill(write_skill, tmp_path):
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')"
    write_skill("good", files={"scripts/x.py": trap, "__init__.py": trap, "sitecustomize.py": trap})
    scan([tmp_path / "skills"])
    assert not (tmp_path / "ran").exists()


def test_a_scan_is_the_same_every_time(write_skill, tmp_path):
    for name in ("c", "a", "b"):
        write_skill(name)
    assert list(scan([tmp_path / "skills"]).skills) == ["a", "b", "c"]
    assert scan([tmp_path / "skills"]) == scan([tmp_path / "skills"])
