"""Start-up is part of the product: what an import or ``--help`` may load, and how much of it."""

import subprocess
import sys

import pytest

HEAVY = ("klayout", "numpy", "numba", "shapely", "yaml", "jsonschema", "click", "networkx", "jinja2", "frontmatter")
HEAVY += ("anyio", "docstring_parser", "fastapi", "mcp", "mcp_types", "packaging", "pydantic", "starlette", "uvicorn")


def loaded_by(code):
    """Return which heavy packages ``code`` loads."""
    report = f"\nimport sys; print(*sorted(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return done.stderr.split()


@pytest.mark.parametrize("package", ["skillpack", "skillscript", "layoutkit", "sturdy"])
def test_importing_a_package_loads_nothing_heavy(package):
    assert loaded_by(f"import {package}") == []


def test_importing_skillpack_loads_no_third_party_package():
    code = """
import sys
before = set(sys.modules)
import skillpack
tops = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(tops - sys.stdlib_module_names - {"skillpack"}), file=sys.stderr)
sys.exit()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["mcp", "--help"], ["http", "--help"], ["--version"]]
)
def test_help_loads_nothing_but_click(arguments):
    code = f"""
import sys
sys.argv = ["skillpack", *{arguments!r}]
from skillpack.__main__ import main
try: main()
except SystemExit as leave: assert not leave.code
"""
    assert loaded_by(code) == ["click"]


def test_serving_the_layers_loads_nothing_heavy_but_what_reads_frontmatter(tmp_path):
    code = f"from skillpack import SkillLoader; SkillLoader({str(tmp_path)!r}).get_descriptions()"
    assert set(loaded_by(code)) <= {"frontmatter", "yaml"}


def test_help_loads_few_modules_beyond_those_of_click():
    """Start-up costs about a millisecond a module; `make bench` prints its CPU time as a ratio."""
    code = """
import sys, click
before = set(sys.modules)
sys.argv = ["skillpack", "--help"]
from skillpack.__main__ import main
try: main()
except SystemExit: pass
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    commands = {name for name in loaded if name.startswith("skillpack.commands")}
    assert len(commands) < 20, loaded
    assert len(set(loaded) - commands) <= 50, loaded


def test_every_public_name_can_be_imported():
    import skillpack

    assert all(getattr(skillpack, name) is not None for name in skillpack.__all__)
    assert dir(skillpack) == sorted(skillpack.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = skillpack.nothing
