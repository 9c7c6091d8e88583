"""Start-up is part of the product: what an import or ``--help`` may load, and how long it may take."""

import os
import subprocess
import sys

import pytest

HEAVY = ("klayout", "numpy", "numba", "shapely", "yaml", "jsonschema", "click", "networkx", "jinja2")
HEAVY += ("anyio", "mcp", "mcp_types", "starlette", "uvicorn")


def loaded_by(code):
    """Return which heavy packages ``code`` loads."""
    report = f"\nimport sys; print(*sorted(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return done.stderr.split()


@pytest.mark.parametrize("package", ["skillpack", "skillscript", "layoutkit"])
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
from skillpack.cli import main
try: main()
except SystemExit as leave: assert not leave.code
"""
    assert loaded_by(code) == ["click"]


def test_serving_the_layers_loads_yaml_alone(tmp_path):
    code = f"from skillpack import SkillLoader; SkillLoader({str(tmp_path)!r}).get_descriptions()"
    assert set(loaded_by(code)) <= {"yaml"}


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs the CPU time of a child")
def test_help_takes_less_than_150_ms_of_cpu():
    """The least of several runs: a busy machine slows the others down, never this one below the truth."""

    def cpu_seconds():
        process = subprocess.Popen([sys.executable, "-m", "skillpack", "--help"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    assert min(cpu_seconds() for _ in range(5)) < 0.150


def test_every_public_name_can_be_imported():
    import skillpack

    assert all(getattr(skillpack, name) is not None for name in skillpack.__all__)
    assert dir(skillpack) == sorted(skillpack.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = skillpack.nothing
