"""``import layoutkit``: the five functions, what they return, and that nothing is loaded before it is needed."""

import inspect
import subprocess
import sys
from pathlib import Path

import klayout.db as kdb
import pytest

import layoutkit
from layoutkit.errors import LayoutkitError
from layoutkit.layout.files import read_layout

ROOT = Path(__file__).parents[3]
PAIR = ROOT / "skills/netlist-to-gds/assets/pair.spice"
BUS = ".subckt follower in<0> out vdd vss\nM1 vdd in<0> out vss nmos w=2u l=0.5u\n.ends\n"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def netlist():
    return layoutkit.circuit(PAIR)


@pytest.fixture(scope="module")
def built(netlist, tmp_path_factory):
    return layoutkit.build(netlist, "sky130A", tmp_path_factory.mktemp("pair"), progress=lambda _: None)


def loaded_after(code):
    """Return the modules of the engine and of KLayout that a new Python has after ``code``."""
    report = (
        "import sys; print(*sorted(n for n in sys.modules if n.split('.')[0] in ('layoutkit', 'klayout', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_import_loads_nothing_and_a_process_or_a_netlist_needs_no_klayout():
    assert loaded_after("import layoutkit; dir(layoutkit)") == ["layoutkit"]
    used = loaded_after(f"import layoutkit; layoutkit.technology('sky130A'); layoutkit.circuit({str(PAIR)!r})")
    assert "layoutkit.circuit" in used
    assert not {"klayout", "numpy"} & set(used)


@pytest.mark.parametrize("first", ["import layoutkit", "import layoutkit.technology", "from layoutkit.draw import mos"])
def test_a_package_of_the_engine_is_also_its_function_whichever_is_loaded_first(first):
    code = f"{first}\nimport layoutkit, layoutkit.technology as room\nassert room.load and callable(layoutkit.draw)"
    assert "layoutkit.python_api" in loaded_after(f"{code}\nassert room('generic') is layoutkit.technology('generic')")


def test_the_functions_show_their_parameters_and_are_listed():
    from layoutkit import python_api

    assert set(layoutkit.__all__) <= set(dir(layoutkit))
    for name in layoutkit.__all__:
        assert inspect.signature(getattr(layoutkit, name)) == inspect.signature(getattr(python_api, name))
        assert f"layoutkit.{name}(" in layoutkit.__doc__
    with pytest.raises(AttributeError, match="nosuch"):
        _ = layoutkit.nosuch


def test_a_netlist_is_a_path_or_a_text_and_shows_its_devices_escaped(netlist):
    assert [module.type for module in netlist.circuit.modules] == ["differential_pair"]
    assert layoutkit.circuit(PAIR.read_text(encoding="utf-8")).circuit.devices == netlist.circuit.devices
    page = layoutkit.circuit(BUS)._repr_html_()
    assert "g=in&lt;0&gt;" in page
    assert "<0>" not in page


def test_a_drawn_device_has_the_size_that_was_asked_and_is_saved_as_it_is(tmp_path):
    drawn = layoutkit.draw("nmos", "sky130A", w=4, l=0.5, nf=2)
    gates = [drawn.layout.find_layer(*drawn.technology.spec(name).gds) for name in ("poly", "active")]
    poly, active = (kdb.Region(drawn.cell.begin_shapes_rec(index)) for index in gates)
    assert (
        sorted((gate.bbox().width(), gate.bbox().height()) for gate in (poly & active).each_merged())
        == [(500, 2000)] * 2
    )
    read = read_layout(drawn.save(tmp_path / "nmos.gds"))
    assert kdb.LayoutDiff().compare(read, drawn.layout)
    assert drawn._repr_png_().startswith(PNG)
    assert layoutkit.check(drawn).ok


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: layoutkit.draw("nmoss", "sky130A"), ["did you mean 'nmos'", "capacitor"]),
        (lambda: layoutkit.draw("nmos", "sky130A", widht=1, x=2), ["no parameter widht, x", "nf (Fingers"]),
        (lambda: layoutkit.draw("nmos", "sky130A", nf=1.5, m="two"), ["nf must be an integer", "m must be"]),
        (lambda: layoutkit.build(BUS, "sky130A", sead=1), ["no option sead", "seed"]),
        (lambda: layoutkit.technology("sky999"), ["sky130A"]),
    ],
)
def test_an_error_names_every_fault_and_what_is_allowed(call, words):
    with pytest.raises(LayoutkitError) as raised:
        call()
    assert [word for word in words if word not in str(raised.value)] == []


def test_a_build_is_the_report_of_the_flow_with_its_layout(built, netlist):
    assert (built.ok, built.faults) == (True, ())
    assert Path(built.files["gds"]).read_bytes()
    assert built.layout.size_um == (built.report["placement"]["width"], built.report["placement"]["height"])
    verdict = layoutkit.check(built.layout, netlist)
    assert (verdict.ok, verdict.lvs["matched"]) == (True, True)
    for page in (built._repr_html_(), verdict._repr_html_()):
        assert ">matched</td>" in page
        assert "data:image/png;base64," in page


def test_a_build_says_where_its_whole_report_is(built):
    assert Path(built.files["report"]).is_file()
    assert built.files["report"] in built._repr_html_()


def test_a_layout_file_is_judged_in_the_process_of_its_workspace(built):
    verdict = layoutkit.check(built.files["gds"])
    assert (verdict.layout.technology.name, verdict.ok, verdict.lvs) == ("sky130A", True, None)
    assert "not run" in verdict._repr_html_()


def test_a_layout_without_its_contacts_is_neither_clean_nor_matched(built, netlist, tmp_path):
    from layoutkit.python_api import Layout

    spoilt = read_layout(built.files["gds"])
    spoilt.clear_layer(spoilt.find_layer(*built.layout.technology.spec("contact").gds))
    layout = Layout(spoilt, spoilt.top_cell(), built.layout.technology)
    verdict = layoutkit.check(layout, netlist)
    assert not verdict.ok
    assert any(text.startswith("LVS does not match") for text in verdict.faults)
    assert "not matched" in verdict._repr_html_()
    layout.save(tmp_path / "spoilt.oas")
    assert layoutkit.check(tmp_path / "spoilt.oas", netlist, "sky130A").faults == verdict.faults


def test_a_build_that_stops_early_is_not_ok_and_has_no_layout(netlist, tmp_path):
    stopped = layoutkit.build(netlist, layoutkit.technology("sky130A"), tmp_path, progress=str, until="place")
    assert not stopped.ok
    assert "route" in stopped._repr_html_()
    with pytest.raises(LayoutkitError, match="still to run: route"):
        _ = stopped.layout


def test_a_layout_that_changed_after_its_build_is_not_taken_for_the_result(netlist, tmp_path):
    from layoutkit.python_api import Build

    path = tmp_path / "layout.gds"
    drawn = layoutkit.draw("diode", "sky130A")
    drawn.save(path)
    report = {"files": {"gds": str(path)}, "layout_sha256": "0" * 64, "remaining_stages": [], "warnings": []}
    with pytest.raises(LayoutkitError, match="has changed since"):
        _ = Build(netlist, report, ()).layout
