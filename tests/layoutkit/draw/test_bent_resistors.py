"""Resistors with bends: one bar that turns back, as long as the model of the process counts it."""

import klayout.db as kdb
import pytest
from drawn_together import in_lots, not_passed

from layoutkit.circuit import map_circuit, read_netlist, write_spice
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.draw.passive import resistor
from layoutkit.draw.resistor import ResistorSpec, draw_resistors
from layoutkit.errors import GeometryError
from layoutkit.extract.extractor import extract
from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.layout.files import read_layout
from layoutkit.lvs.compare import compare
from layoutkit.lvs.lvs_result import extracted_spice
from layoutkit.technology import load
from layoutkit.technology.passive_sizes import PassiveSize
from thorough import THOROUGH

TECH = load("sg13g2")
MODELS = {"rsil": 0.010, "rppd": 0.006, "rhigh": -0.040}  # what the model adds to the width [um]
SIZES = [(0.5, 0.96), (0.5, 10), (1.23, 3), (5, 20)]
CASES = [(model, size, bends, m) for model in MODELS for size in SIZES for bends in (1, 2, 3, 10) for m in (1, 2)]


def length_um(model, width, bar, bends):
    """leff = (b + 1) l + b (2 / kappa weff + ps), with kappa = 1.85 and ps = 0.18 um (resistors_mod.lib)."""
    return (bends + 1) * bar + bends * (2 / 1.85 * (width + MODELS[model]) + 0.18)


def new_layout():
    layout = kdb.Layout()
    layout.dbu = TECH.dbu_um
    return layout


def drawn(model, width, length, bends, m=1, dummies=0, layout=None):  # noqa: PLR0917 - as on a card
    layout = layout or new_layout()
    size = PassiveSize(width * 1e-6, length * 1e-6, m, bends=bends)
    made = resistor(TECH, "R1", model, size, {"p": "a", "n": "b"})
    return draw_resistors(layout, TECH, ResistorSpec(f"X{layout.cells()}", (made,), "sub", dummies))


@pytest.mark.parametrize(("model", "cases"), in_lots(CASES if THOROUGH else CASES[::5], lambda case: case[0]))
def test_bent_bars_are_clean_and_as_long_as_the_model_counts_them(model, cases):
    layout, cells = new_layout(), {}
    for _, size, bends, m in cases:
        wanted = length_um(model, *size, bends)
        cell = cells[size, bends, m] = drawn(model, size[0], wanted, bends, m, layout=layout).cell
        found = extract(layout, cell, TECH)
        assert not any(found.ignored.values())
        (device,) = found.devices
        assert [(each.w_um, each.text) for each in device.fingers] == [(size[0], "R1")] * m
        assert device.l_um == pytest.approx(wanted, abs=0.006)  # about a grid step
        cores = (TECH.region(cell, "PolyRes") & TECH.region(cell, "GatPoly")).merged()
        assert [polygon.num_points() for polygon in cores.each()] == [4 + 4 * bends] * m
    assert not_passed(layout, cells, TECH) == {}


@pytest.mark.parametrize(("length", "dummies"), [(5.0, 0), (60.0, 1)])
def test_bars_too_short_for_their_bends_or_with_dummies_stay_straight(length, dummies):
    module = drawn("rppd", 3, length, 3, dummies=dummies)
    assert all(polygon.is_box() for polygon in TECH.region(module.cell, "PolyRes").merged().each())


@pytest.mark.parametrize(("bar", "bends"), [(28.81, 39), (990, 1)])
def test_the_longest_bar_that_is_drawn_limits_each_bar_and_not_all_of_them(bar, bends):
    module = drawn("rhigh", 1, length_um("rhigh", 1, bar, bends), bends)
    height_um = TECH.region(module.cell, "PolyRes").bbox().height() / 1000
    assert bar < height_um < bar + 3  # the bar, and where it turns
    with pytest.raises(GeometryError, match=r"Length of each of 2 segments .* above 0.001 m, the most that is drawn"):
        drawn("rhigh", 1, length_um("rhigh", 1, 1001, 1), 1)


@pytest.mark.parametrize("length", [0.001, 0.875])
def test_the_least_length_is_that_of_all_bars(length):
    with pytest.raises(GeometryError, match=r"^Length .* is below minimum 9.6e-07"):
        drawn("rhigh", 0.5, length, 1)


@pytest.mark.parametrize(("sizes", "matches"), [("w=0.5u l=6u b=3", True), ("w=0.5u l=6u b=4", False)])
def test_lvs_compares_the_bends_of_the_netlist(sizes, matches):
    module = drawn("rppd", 0.5, length_um("rppd", 0.5, 6, 3), 3)
    netlist = read_netlist(NetlistText(f".subckt x a b sub\nXR1 a b sub rppd {sizes}\n.ends\n"))
    assert compare(extract(module.layout, module.cell, TECH), netlist).matched == matches


def test_a_build_draws_a_lone_resistor_bent(tmp_path):
    text = ".subckt x a b c d vss\nX1 a b vss rppd w=1u l=10u b=10\nX2 c d vss rsil w=0.5u l=3.3u b=1 m=2\n.ends\n"
    request = LayoutRequest(technology="sg13g2", workspace=str(tmp_path), netlist_text=text, last_stage="lvs")
    report = build_layout(request)
    assert (report["drc"]["violations"], report["lvs"]["mismatches"]) == ([], [])
    assert (report["drc"]["complete"], report["lvs"]["complete"]) == (True, True)
    layout = read_layout(report["files"]["gds"])
    cores = TECH.region(layout.top_cell(), "PolyRes").merged()
    assert sorted(polygon.num_points() for polygon in cores.each()) == [8, 8, 44]


@pytest.mark.parametrize("form", ["spice", "lvs_deck"])
def test_netlists_state_bends_and_the_length_of_each_bar(form):
    card = ".subckt x a b vss\nXR1 a b vss rppd w=1.5u l=10u b={} m=2\n.ends\n"
    for bends in (0, 1, 7):
        mapped = map_circuit(read_netlist(NetlistText(card.format(bends))), TECH)
        text = write_spice(mapped, TECH, form)
        stated = dict(word.split("=") for word in text.split() if "=" in word)
        assert int(stated.get("b", 0)) == bends
        assert float(stated["l"][:-1]) == pytest.approx(10, abs=0.006 / (bends + 1))
        (again,) = map_circuit(read_netlist(NetlistText(text)), TECH).devices
        assert again.params == mapped.devices[0].params


@pytest.mark.parametrize("m", [1, 2])
def test_an_extracted_netlist_states_the_bends_of_the_layout(m):
    module = drawn("rsil", 0.5, length_um("rsil", 0.5, 4, 3), 3, m)
    text = extracted_spice(extract(module.layout, module.cell, TECH))
    (card,) = (line for line in text.splitlines() if line.startswith("XR"))
    stated = dict(word.split("=") for word in card.split() if "=" in word)
    assert (stated["w"], stated["b"], stated["m"]) == ("0.5u", "3", str(m))
    assert float(stated["l"][:-1]) == pytest.approx(4, abs=0.002)


def test_netlists_of_a_build_state_the_bends_that_are_drawn(tmp_path):
    text = ".subckt x a b c vss\nX1 a b vss rppd w=3u l=0.5u b=3\nX2 b c vss rppd w=1u l=10u b=2\n.ends\n"
    request = LayoutRequest(technology="sg13g2", workspace=str(tmp_path), netlist_text=text, last_stage="lvs")
    report = build_layout(request)
    assert report["lvs"]["mismatches"] == []
    for name in ("reference.spice", "reference.cdl", "extracted.spice"):
        cards = [line.split() for line in (tmp_path / name).read_text().splitlines() if " rppd " in line]
        bends = {
            stated["w"]: stated.get("b") for card in cards for stated in [dict(w.split("=") for w in card if "=" in w)]
        }
        assert bends == {"3u": None, "1u": "2"}  # too short for its bends, and bent
