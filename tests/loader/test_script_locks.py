"""``skills/scripts.lock``, from which exported scripts get their locks: up to date, and of the public index only."""

import re
from pathlib import Path

import pytest

from skillpack.copies.locks import LOCK_FILE, read_lock
from skillpack.copies.requirements import Requirement, allows, normal_name, parse_requirement
from skillpack.copies.script_header import parse_toml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "skills" / LOCK_FILE).read_text(encoding="utf-8")
CONTENT = parse_toml(TEXT)
PROJECT = parse_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = re.search(r"^LOCKED_EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
PYTHONS = ("310", "311", "312", "313")


def test_the_lock_is_of_what_pyproject_requires():
    """If this fails, run ``make locks``."""
    texts = [*PROJECT["dependencies"], *(text for extra in EXTRAS for text in PROJECT["optional-dependencies"][extra])]
    required = {item.name: (item.specifier, bool(item.marker)) for item in map(parse_requirement, texts)}
    locked = {item.name: (item.specifier, bool(item.marker)) for item in read_lock(TEXT).requirements}
    assert locked == required
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PyYAML", Requirement("pyyaml")),
        ("a >= 1 , < 2", Requirement("a", (), ">=1,<2")),
        ("a (>=1.0)", Requirement("a", (), ">=1.0")),
        ("A.b_c[Y, x]~=1.2; python_version < '3'", Requirement("a-b-c", ("x", "y"), "~=1.2", "python_version < '3'")),
        ("a @ https://x.org/a.whl ; os_name == 'nt'", Requirement("a", (), "@ https://x.org/a.whl", "os_name == 'nt'")),
        ("a>=1; extra == 'fast'", Requirement("a", (), ">=1", "", "fast")),
        (
            "a; (python_version >= '3.11') and extra == \"dev\"",
            Requirement("a", (), "", "python_version >= '3.11'", "dev"),
        ),
    ],
)
def test_requirements_are_read(text, expected):
    assert parse_requirement(text) == expected
    assert normal_name(expected.name) == expected.name
    assert parse_requirement(str(expected)) == expected._replace(extra="")


@pytest.mark.parametrize("version", ["0.1.0", "1.0", "1.0.5", "1.10", "2.3.1", "3"])
@pytest.mark.parametrize(
    "specifier", ["", ">=1", ">1.0", "<2", "<=1.10.0", "==1.0", "==1.*", "!=1.0.5", "~=1.0", "~=1.0.2", ">=1,<3"]
)
def test_versions_are_compared_as_packaging_compares_them(specifier, version):
    specifiers = pytest.importorskip("packaging.specifiers", reason="skipped: needs packaging")
    assert allows(specifier, version) == specifiers.SpecifierSet(specifier).contains(version)


@pytest.mark.parametrize("text", ["", "not one", "a b>=1", "-a", "a>=", "a;b c[", "../x"])
def test_what_is_no_requirement_is_refused(text):
    if text == "a;b c[":
        assert parse_requirement(text).marker == "b c["  # markers are passed on, not judged
        return
    with pytest.raises(ValueError, match="is not a requirement"):
        parse_requirement(text)
