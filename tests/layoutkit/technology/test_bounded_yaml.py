"""YAML of strangers: what would crash the process, or grow without bound, is refused before it is built."""

from pathlib import Path

import pytest

from layoutkit.drc.rule_files import with_rules_of
from layoutkit.errors import FileError, TechnologyError
from layoutkit.file_schema import MAX_DEPTH, MAX_VALUES, read_yaml
from layoutkit.technology import load
from layoutkit.technology.technology_files import SHIPPED
from sturdy.strict_json import load_json

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10))
HOSTILE = {
    # libyaml from 0.2.6 on scans ahead in a flow sequence and refuses 1,000 levels itself, before the first is read
    "lists": ("[" * 100_000, "(nested deeper than 64|exceeded maximum nesting depth)"),
    "maps": ("{a: " * 100_000, "nested deeper than 64"),
    "blocks": ("- " * 100_000 + "x", "nested deeper than 64"),
    "bomb": (BOMB + "technology: *a9\n", f"more than {MAX_VALUES} values"),
    "merge": (MERGED + "technology: *a9\n", f"more than {MAX_VALUES} values"),
    "itself": ("technology: &a [*a]\n", "contains itself"),
    "unknown": ("technology: *nobody\n", "no anchor"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_too_deep_or_too_large_is_refused_with_its_line(name, tmp_path):
    text, message = HOSTILE[name]
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(TechnologyError, match=rf"x.yaml is not readable YAML: line \d+.*{message}"):
        load(str(tmp_path / "x.yaml"))
    with pytest.raises(FileError, match=rf"x.yaml is not readable YAML: line \d+.*{message}"):
        with_rules_of(tmp_path / "x.yaml", load("generic"))


def test_anchors_aliases_and_merges_within_the_bounds_are_read():
    text = "a: &a {x: 1, y: [1, 2]}\nb: {<<: *a, x: 2}\nc: *a\n"
    assert read_yaml(text) == read_yaml(text, trusted=True)
    assert read_yaml(text)["b"] == {"x": 2, "y": [1, 2]}
    assert read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match=r"line 1, column 11: found"):
        read_yaml("a: 'secret")


@pytest.mark.parametrize(
    ("text", "lines", "key"),
    [
        ("technology: x\nlayers: {}\ntechnology: y\n", (1, 3), "technology"),
        ("rules:\n- {id: a, id: b}\n", (2, 2), "id"),
        ("a:\n  x: 1\n  'x': 2\n", (2, 3), "x"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_its_lines(text, lines, key, tmp_path):
    first, second = lines
    said = rf"line {second}: its key is already in line {first}; keep one"
    (tmp_path / "x.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(TechnologyError, match=said) as refused:
        load(str(tmp_path / "x.yaml"))
    assert f"'{key}'" not in str(refused.value)  # of a stranger's file nothing is quoted
    with pytest.raises(FileError, match=said):
        with_rules_of(tmp_path / "x.yaml", load("generic"))
    (tmp_path / "x.json").write_text('{"rules": [],\n "rules": []}', encoding="utf-8")
    with pytest.raises(FileError, match=r"a key appears twice in one object \(line 2\)"):
        with_rules_of(tmp_path / "x.json", load("generic"))


def test_keys_of_other_kinds_and_merged_ones_do_not_stand_twice():
    assert read_yaml("1: a\n'1': b\n") == {1: "a", "1": "b"}
    for path in SHIPPED.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        assert read_yaml(text) == read_yaml(text, trusted=True)
    for text in ("b: &b {x: 1}\nin:\n  m: &m {<<: *b, x: 2}\ntop: {<<: *m, x: 5}\n", "c: {<<: {x: 1}}\n"):
        assert read_yaml(text) == read_yaml(text, trusted=True)  # a mapping that is merged before it is made


def test_the_line_is_that_of_the_first_repeated_key():
    with pytest.raises(ValueError, match=r"a key appears twice in one object \(line 2\)"):
        load_json('{"a": 1,\n"a": {"b": 1,\n"b": 2}}')


def test_a_technology_that_may_not_be_read_is_a_fault_of_the_input(tmp_path, monkeypatch):

    def refuse(*_, **__):
        raise PermissionError(13, "lies outside of the folder", "x")

    (tmp_path / "x.yaml").write_text("technology: x\n", encoding="utf-8")
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(TechnologyError, match=r"x.yaml cannot be read: lies outside of the folder"):
        load(str(tmp_path / "x.yaml"))
