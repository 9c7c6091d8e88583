"""Where skills are looked for, and which of two comes first."""

import os
from pathlib import Path

import pytest

from skillpack import default_roots
from skillpack.copies.installation import USER, host_folders
from skillpack.exceptions import RootError
from skillpack.hosts.http.api import own_folders
from skillpack.skills.catalog import PATH_VARIABLE, bundled_root, host_roots, project_roots


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Make a home with skills and a repository in it, and work two folders deep in the repository."""
    home = tmp_path / "home"
    repository = home / "code" / "project"
    deep = repository / "a" / "b"
    for base in (home, repository, repository / "a"):
        (base / ".agents" / "skills").mkdir(parents=True)
    (repository / ".claude" / "skills").mkdir(parents=True)
    (repository / ".git").mkdir()
    deep.mkdir()
    monkeypatch.chdir(deep)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv(PATH_VARIABLE, raising=False)
    return home, repository


def test_the_words_stand_for_the_folders_of_project_user_and_pack(folders):
    home, repository = folders
    assert default_roots(["@project", "@user", "@pack"]) == (
        str(repository / "a/.agents/skills"),
        str(repository / ".agents/skills"),
        str(repository / ".claude/skills"),
        str(home / ".agents/skills"),
        bundled_root(),
    )


def test_their_order_is_the_precedence_and_they_mix_with_folders(folders, monkeypatch, tmp_path):
    home, _ = folders
    monkeypatch.setenv(PATH_VARIABLE, os.pathsep.join([str(tmp_path), "@user"]))
    assert default_roots() == (str(tmp_path), str(home / ".agents/skills"))
    assert default_roots(["@user", tmp_path]) == (str(home / ".agents/skills"), str(tmp_path))


@pytest.mark.usefixtures("folders")
def test_a_project_is_only_searched_when_requested():
    assert default_roots() == (bundled_root(),)


def test_without_a_repository_the_project_is_the_folder_itself(tmp_path):
    (tmp_path / ".agents" / "skills").mkdir(parents=True)
    below = tmp_path / "below"
    below.mkdir()
    if any((folder / ".git").exists() for folder in tmp_path.parents):
        pytest.skip("the temporary folder lies in a repository")
    assert project_roots(below) == []
    assert project_roots(tmp_path) == [str(tmp_path / ".agents" / "skills")]


def test_folders_that_do_not_exist_are_left_out(tmp_path):
    assert host_roots(tmp_path) == []


def test_a_named_folder_that_does_not_exist_is_refused():
    with pytest.raises(RootError, match="no such skills directory: /does/not/exist"):
        default_roots(["@pack", "/does/not/exist"])
    with pytest.raises(RootError, match="no such skills directory: ''"):  # not the working folder
        default_roots([""])


def test_the_packs_own_skills_are_there():
    assert (Path(bundled_root()) / "netlist-parse" / "SKILL.md").is_file()


@pytest.mark.skipif(os.name == "nt", reason="skipped: needs a system with a list of users")
@pytest.mark.usefixtures("folders")
def test_a_user_without_a_home_folder_has_no_skills_in_it(monkeypatch):
    """As in a container that runs under the number of a user whom it does not know."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert default_roots(("@user", "@pack")) == (bundled_root(),)
    assert "~" not in own_folders.__wrapped__()
    with pytest.raises(RootError, match="set HOME"):
        host_folders(("claude",), (USER,))
