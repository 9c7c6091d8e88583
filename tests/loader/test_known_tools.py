"""Finding tools again: the declarations of a skill are read again exactly when one of its files has changed."""

import json
import os
import shutil

import pytest

from skillpack import find_tools, scan
from skillpack.hosts import pack as known_tools
from skillpack.hosts.pack import KnownTools
from skillpack.registry.declaration import read_tools


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the skills ``first`` and ``second``."""
    for name in ("first", "second"):
        home = tmp_path / name
        (home / "schemas").mkdir(parents=True)
        (home / "scripts").mkdir()
        (home / "more").mkdir()
        (home / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does {name} things.\n---\n")
        (home / "scripts" / "do.py").write_text("from skillscript import main\n")
        (home / "more" / "out.json").write_text('{"type": "object"}')
        (home / "schemas" / "in.json").write_text(json.dumps({"type": "object", "title": "one"}))
        tool = {"id": f"{name}.do", "script": "scripts/do.py", "version": "1.0.0"}
        tool |= {"input_schema": "schemas/in.json", "output_schema": "more/out.json"}
        (home / "skill.yaml").write_text(json.dumps({"skill": name, "tools": [tool]}))
    return tmp_path


@pytest.fixture
def reads(monkeypatch):
    """Return the names of the skills that are read; files count as settled at once."""
    names = []

    def counted(skill):
        names.append(skill.name)
        return read_tools(skill)

    monkeypatch.setattr(known_tools, "read_tools", counted)
    monkeypatch.setattr(known_tools, "SETTLED_SECONDS", -3600)
    return names


def found(known, folder):
    """Return what is found, which must be what a fresh look finds."""
    skills = scan([folder]).skills.values()
    tools = known.find(skills)
    assert tools == find_tools(skills)
    return tools


def test_what_has_not_changed_is_not_read_again(folder, reads):
    known = KnownTools()
    first = found(known, folder)
    (folder / "first" / "scripts" / "__pycache__").mkdir()
    found(known, folder)
    reads.clear()
    (folder / "first" / "scripts" / "__pycache__" / "do.pyc").write_text("")
    assert found(known, folder) == first
    assert reads == []


def keep_size_and_time(path, old, new):
    """Replace a text by one of the same length and give the file its old time back."""
    status = path.stat()
    path.write_text(path.read_text().replace(old, new))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES = {
    "a schema": lambda home: (home / "schemas" / "in.json").write_text('{"type": "object", "required": ["x"]}'),
    "a schema, of the same size and time": lambda home: keep_size_and_time(home / "schemas" / "in.json", "one", "two"),
    "a schema elsewhere": lambda home: (home / "more" / "out.json").write_text('{"type": "object", "required": []}'),
    "the declaration": lambda home: keep_size_and_time(home / "skill.yaml", "first.do", "first.it"),
    "a script is removed": lambda home: (home / "scripts" / "do.py").unlink(),
    "a second declaration": lambda home: (home / "skill.json").write_text("{}"),
    "the skill is removed": shutil.rmtree,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_read_again_and_nothing_else(folder, reads, change):
    known = KnownTools()
    before = found(known, folder)
    reads.clear()
    CHANGES[change](folder / "first")
    assert found(known, folder) != before
    assert "second" not in reads


def switch_link(path):
    path.with_name("other.json").write_text(path.read_text().replace("string", "number"))
    path.unlink()
    path.symlink_to("other.json")


SHARED_CHANGES = {
    "another text": lambda path: path.write_text('{"$defs": {"text": {"type": "string", "maxLength": 3}}}'),
    "the same size and time": lambda path: keep_size_and_time(path.resolve(), "string", "number"),
    "a link to another file": switch_link,
    "removed": lambda path: path.unlink(),
}


@pytest.mark.usefixtures("reads")
@pytest.mark.parametrize("change", SHARED_CHANGES)
def test_definitions_beside_the_skill_are_looked_at_too(folder, change):
    shared = folder / "shared.json"
    (folder / "one.json").write_text('{"$defs": {"text": {"type": "string"}}}')
    shared.symlink_to("one.json")
    schema = {"type": "object", "properties": {"x": {"$ref": "../../shared.json#/$defs/text"}}}
    (folder / "first" / "schemas" / "in.json").write_text(json.dumps(schema))
    known = KnownTools()
    before = found(known, folder)
    SHARED_CHANGES[change](shared)
    assert found(known, folder) != before


def test_a_faulty_declaration_and_files_that_have_just_changed_are_always_read(folder, reads, monkeypatch):
    known = KnownTools()
    (folder / "second" / "skill.yaml").write_text("tools: 5")
    found(known, folder)
    reads.clear()
    assert found(known, folder).faults
    assert reads == ["second"]
    monkeypatch.setattr(known_tools, "SETTLED_SECONDS", 3600)
    found(known, folder)
    reads.clear()
    found(known, folder)
    assert reads == ["first", "second"]
