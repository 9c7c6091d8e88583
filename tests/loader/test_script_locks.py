"""``skills/scripts.lock``, from which exported scripts get their locks: up to date, and of the public index only."""

import re
from pathlib import Path

import pytest

from skillpack.copies.packages import parse_requirement, required_by
from skillpack.copies.script_header import LOCK_FILE, parse_toml, read_header, read_lock

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "skills" / LOCK_FILE).read_text(encoding="utf-8")
CONTENT = parse_toml(TEXT)
PROJECT = parse_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = re.search(r"^LOCKED_EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
PYTHONS = ("310", "311", "312", "313")


def test_the_lock_is_of_what_pyproject_requires():
    """If this fails, run ``make locks``."""
    texts = [*PROJECT["dependencies"], *(text for extra in EXTRAS for text in PROJECT["optional-dependencies"][extra])]
    assert set(read_lock(TEXT).requirements) == {str(parse_requirement(text)) for text in texts}
    assert CONTENT["requires-python"] == PROJECT["requires-python"]


def test_the_lock_names_the_public_index_only():
    addresses = re.findall(r'"([a-z]+://[^"]*)"', TEXT)
    hosts = ("https://pypi.org/simple", "https://files.pythonhosted.org/packages/")
    assert [address for address in addresses if not address.startswith(hosts)] == []
    assert {tuple(package["source"]) for package in CONTENT["package"]} == {("registry",)}
    assert "options" not in CONTENT


@pytest.mark.parametrize("name", ["klayout", "numpy", "pyyaml", "rpds-py"])
def test_every_python_has_a_wheel_of_what_is_compiled(name):
    files = [wheel["url"] for package in CONTENT["package"] if package["name"] == name for wheel in package["wheels"]]
    for python in PYTHONS:
        assert any(f"-cp{python}-cp{python}-" in file and "x86_64" in file for file in files), python


def test_a_cut_holds_what_its_requirements_need_and_nothing_else():
    cut = parse_toml(read_lock(TEXT).cut(["pyyaml>=6.0", "jsonschema>=4.20"], ">=3.10"))
    names = {package["name"] for package in cut["package"]}
    assert names == {
        "attrs",
        "jsonschema",
        "jsonschema-specifications",
        "pyyaml",
        "referencing",
        "rpds-py",
        "typing-extensions",
    }
    assert [item["name"] for item in cut["manifest"]["requirements"]] == ["jsonschema", "pyyaml"]
    assert [package for package in cut["package"] if package not in CONTENT["package"]] == []
    assert "[[package]]" not in read_lock(TEXT).cut([], ">=3.10")


@pytest.mark.parametrize(
    ("requirements", "python"), [(["requests"], ">=3.10"), (["pyyaml>=5"], ">=3.10"), (["pyyaml>=6.0"], ">=3.11")]
)
def test_what_the_lock_does_not_cover_has_no_cut(requirements, python):
    assert read_lock(TEXT).cut(requirements, python) is None


@pytest.mark.parametrize("text", ["", "not one", "a b>=1", "-a", "a>=", "a;b c[", "../x", "a; nope == '3'"])
def test_what_is_no_requirement_is_refused(text):
    with pytest.raises(ValueError, match="is not a requirement"):
        parse_requirement(text)


class Metadata:
    """Stands for an installed distribution, with lines as the usual build programs write them."""

    requires = (
        "PyYAML >=6",
        "two (>=2) ; python_version >= '3.11'",
        "two (<2) ; python_version < '3.11'",
        "one; extra == 'fast'",
        "both>=1; (python_version >= '3.11' and os_name == 'nt') and extra == \"all\"",
        "Own.Pack[fast]; extra == 'all'",
        "either; extra == 'fast' or extra == 'other'",
        "former times (1.0.*",
    )


@pytest.mark.parametrize(
    ("extras", "more"),
    [
        ((), []),
        (("fast",), ["one"]),
        (("all",), ['both>=1; python_version >= "3.11" and os_name == "nt"', "one"]),
    ],
)
def test_what_a_distribution_requires_is_read_with_its_markers(extras, more, monkeypatch):
    monkeypatch.setattr("skillpack.copies.packages.distribution", lambda _: Metadata)
    required_by.cache_clear()
    found = list(map(str, required_by("own-pack", extras)))
    required_by.cache_clear()
    assert found == ["pyyaml>=6", 'two>=2; python_version >= "3.11"', 'two<2; python_version < "3.11"', *more]


def test_lines_that_begin_a_header_and_never_end_it_are_passed_over_at_once():
    assert read_header("# /// script\n" * 50_000) is None
