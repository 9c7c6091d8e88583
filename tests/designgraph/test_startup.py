"""Start-up is part of the product: what an import of the design graph or ``--help`` of its programs may load."""

import subprocess
import sys
from pathlib import Path

import pytest

import designgraph

HEAVY = ("klayout", "numpy", "yaml", "jsonschema", "layoutkit", "skillscript")
SCRIPTS = sorted((Path(__file__).parents[2] / "skills" / "design-knowledge-graph" / "scripts").glob("*.py"))


def loaded_by(code, names):
    report = f"\nimport sys; print(*sorted(name for name in {names!r} if name in sys.modules))"
    return subprocess.run(
        [sys.executable, "-c", code + report], capture_output=True, text=True, check=True
    ).stdout.split()


def test_importing_and_using_the_graph_loads_nothing_heavy(tmp_path):
    path = str(tmp_path / "graph.json")
    use = f"from designgraph import open_graph; open_graph({path!r}).create_node('g', 'a', 'Signal', {{}})"
    assert loaded_by(use, HEAVY) == []
    assert loaded_by("import designgraph, designgraph.service", ("networkx",)) == []  # before a graph is read


@pytest.mark.parametrize("script", [s for s in SCRIPTS if s.stem != "graph_worker"], ids=lambda script: script.stem)
def test_help_of_a_program_loads_no_graph(script):
    code = f"""
import runpy, sys
sys.argv = [{str(script)!r}, "--help"]
try: runpy.run_path({str(script)!r}, run_name="__main__")
except SystemExit as leave: assert not leave.code
sys.stdout = open(1, "w")
"""
    done = subprocess.run([sys.executable, str(script), "--help"], capture_output=True, text=True, check=True)
    assert "--graph-id" in done.stdout
    probe = (
        code
        + "import os; heavy = ('designgraph', 'layoutkit', 'yaml', 'networkx')\n"
        + "os.write(2, repr([name for name in heavy if name in sys.modules]).encode())"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("[]")


def test_every_public_name_can_be_imported():
    assert all(getattr(designgraph, name) is not None for name in designgraph.__all__)
    with pytest.raises(AttributeError):
        designgraph.no_such_name  # noqa: B018 - the access is the test
