"""The PCells: the same geometry as the generators, errors in sight, and the same inside KLayout's application."""

import json
import shutil
import subprocess
from dataclasses import replace

import klayout.db as kdb
import pytest

from layoutkit.draw.mos import MosSize, MosSpec, draw_mos, transistor
from layoutkit.drc.check import check
from layoutkit.errors import GeometryError
from layoutkit.extract.extractor import extract
from layoutkit.layout.klayout_files import error_layer, write_package
from layoutkit.pcells.registration import DeviceLibrary, instantiate, register
from layoutkit.technology import load
from patience import WATCHDOG_S
from thorough import processes

needs_klayout = pytest.mark.skipif(shutil.which("klayout") is None, reason="KLayout's application is not installed")

DRAW = """
import json, pya
told = {}
for name, (cells, target) in wanted.items():
    layout = pya.Layout()
    layout.dbu = 0.001
    layout.technology_name = name
    top = layout.create_cell("TOP")
    shown = told[name] = []
    for number, (pcell, values) in enumerate(cells):
        cell = layout.create_cell(pcell, "analog_" + name, values)
        shown.append([cell.display_title(), [s.text_string for i in layout.layer_indexes()
            for s in cell.shapes(i).each() if s.is_text() and layout.get_info(i).layer == 999]])
        top.insert(pya.CellInstArray(cell.cell_index(), pya.Trans(0, False, number * 100000, 0)))
    options = pya.SaveLayoutOptions()
    options.write_context_info = False
    layout.write(target, options)
print(json.dumps(told))
"""


def cells_of(name):
    """Return the PCells that the application draws, with their parameters: all, and one that cannot be drawn."""
    pcells = DeviceLibrary(load(name)).declarations
    return [*((pcell, {}) for pcell in sorted(pcells)), ("nmos", {"w": 0.001})]


def draw_in_application(folder):
    """Draw the PCells of every technology in KLayout's application; return what it shows, by technology."""
    write_package(processes(), str(folder / "salt" / "package"), version="1")
    wanted = {name: (cells_of(name), str(folder / f"{name}.gds")) for name in processes()}
    (folder / "draw.py").write_text(f"wanted = {wanted!r}\n{DRAW}")
    run = subprocess.run(
        ["klayout", "-zz", "-nc", "-r", folder / "draw.py"],
        env={"KLAYOUT_HOME": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module", params=processes())
def tech(request):
    return load(request.param)


@pytest.fixture(scope="module")
def library(tech):
    return register(tech.name)


@pytest.fixture
def layout(tech):
    empty = kdb.Layout()
    empty.dbu = tech.dbu_um
    return empty


def texts(layout, cell, tech):
    layer = layout.layer(*error_layer(tech))
    return [shape.text_string for shape in cell.shapes(layer).each() if shape.is_text()]


def silent_errors(layout, cell):
    return cell.shapes(layout.error_layer()).size()


def test_every_pcell_with_its_defaults_is_clean(tech, library, layout):
    for pcell in library.layout().pcell_names():
        cell = layout.create_cell(pcell, library.name(), {})
        assert texts(layout, cell, tech) == []
        assert not cell.bbox().empty()
        report = check(layout, cell, tech)
        assert [v.rule.id for v in report.violated] == [], pcell


def test_the_libraries_hold_single_paired_and_mirrored_transistors(library):
    found = set(library.layout().pcell_names())
    assert {f"{kind}{what}" for kind in ("nmos", "pmos") for what in ("", "_pair", "_mirror")} <= found


def test_a_pcell_is_what_its_generator_draws(tech, library, layout):
    spec = tech.device("nmos")
    width, length = 8 * spec.min_w, 2 * spec.min_l
    values = {"w": tech.to_um(width), "l": tech.to_um(length), "nf": 2, "m": 2, "nets": "out in vss vss"}
    cell = layout.create_cell("nmos", library.name(), values)
    other = kdb.Layout()
    other.dbu = tech.dbu_um
    size = MosSize(tech.to_um(width) * 1e-6, tech.to_um(length) * 1e-6, 2, 2)
    device = transistor(tech, "M1", "nmos", size, {"d": "out", "g": "in", "s": "vss", "b": "vss"})
    drawn = draw_mos(other, tech, MosSpec(device, "X")).cell
    for index in other.layer_indexes():
        ours = kdb.Region(cell.shapes(layout.layer(other.get_info(index))))
        assert (ours ^ kdb.Region(drawn.shapes(index))).is_empty()


@pytest.mark.parametrize("pcell", ["nmos", "pmos_pair", "nmos_mirror"])
def test_the_fields_of_the_ring_choose_it(tech, library, layout, pcell):
    values = {"ring": "double", "outer_net": "guard"}
    cells = [layout.create_cell(pcell, library.name(), v) for v in ({}, values, {"ring": "open", "open_sides": "top"})]
    closed = []
    for cell in cells:
        taps = kdb.Region(cell.shapes(tech.layer(layout, "tap")))
        taps += kdb.Region(cell.shapes(tech.layer(layout, "active")))
        closed.append(sum(polygon.holes() > 0 for polygon in taps.merged().each()))
    assert closed == [1, 2, 0]
    labels = cells[1].shapes(tech.layer(layout, tech.conductors[1].label_layer))
    assert "guard" in {shape.text_string for shape in labels.each() if shape.is_text()}


def test_the_widths_of_a_mirror_are_extracted_as_asked(tech, library, layout):
    spec = tech.device("nmos")
    unit = tech.to_um(8 * spec.min_w)
    values = {"ratio": "1:2:3", "w": unit, "nf": 2, "l": tech.to_um(2 * spec.min_l)}
    cell = layout.create_cell("nmos_mirror", library.name(), values)
    static = layout.cell(layout.convert_cell_to_static(cell.cell_index()))
    widths = sorted(device.w_um for device in extract(layout, static, tech).devices)
    assert widths == pytest.approx([unit, 2 * unit, 3 * unit])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"w": 0.001}, "below minimum"),
        ({"w": "wide"}, "w must be a number, got 'wide'"),
        ({"nf": 0}, "Number of fingers must be positive"),
        ({"dummies": -1}, "dummies must not be negative"),
        ({"nets": "a b"}, "nets must name 4 nets"),
        ({"device": "none"}, "device must be one of"),
        ({"ring": "open", "open_sides": "left, up"}, "the sides of a ring are bottom, top, left, right, got left up"),
    ],
)
def test_what_cannot_be_drawn_says_so_in_the_cell(tech, library, layout, values, reason):
    cell = layout.create_cell("nmos", library.name(), values)
    assert reason in " ".join(texts(layout, cell, tech))
    assert silent_errors(layout, cell) == 0
    others = [i for i in layout.layer_indexes() if layout.get_info(i).layer != error_layer(tech)[0]]
    assert all(cell.shapes(index).is_empty() for index in others)
    marker = kdb.Region(cell.shapes(layout.layer(*error_layer(tech))))
    assert marker.bbox().width() > 10 / layout.dbu


def test_notes_tell_what_is_rounded_and_what_cannot_be_drawn(tech, library, layout):
    declaration = library.declarations["nmos"]
    odd = tech.to_um(8 * tech.device("nmos").min_w) + 0.4 * tech.to_um(tech.grid)

    def notes(**values):
        given = [values.get(field.name, field.default) for field in declaration.fields]
        return declaration.coerce_parameters(layout, [*given, ""])[-1]

    assert notes() == ""
    assert "grid" in notes(w=odd)
    assert notes(w=1e-6).startswith("cannot be drawn: Width")


def test_checked_instances_refuse_what_klayout_lets_pass(library, layout):
    with pytest.raises(GeometryError, match="no parameter 'width'"):
        instantiate(layout, library, "nmos", {"width": 1.0})
    with pytest.raises(GeometryError, match="no PCell 'fet'"):
        instantiate(layout, library, "fet", {})
    with pytest.raises(GeometryError, match="below minimum"):
        instantiate(layout, library, "nmos", {"w": 1e-3})
    assert not instantiate(layout, library, "nmos", {}).bbox().empty()


def test_another_database_unit_is_told_and_not_drawn_wrong(tech, library):
    layout = kdb.Layout()
    layout.dbu = tech.dbu_um
    declaration = library.declarations["nmos"]
    other = kdb.Layout()
    other.dbu = 2 * tech.dbu_um
    cell = other.create_cell("C")
    declaration.produce(other, [], [field.default for field in declaration.fields], cell)
    assert "database unit" in " ".join(texts(other, cell, tech))


def test_a_fault_of_the_generator_is_shown_too(tech, library, layout, monkeypatch):
    declaration = library.declarations["nmos"]

    def broken(*_):
        raise ZeroDivisionError("x")

    monkeypatch.setattr(declaration, "generator", replace(declaration.generator, prepared=broken))
    cell = layout.create_cell("C")
    declaration.produce(layout, [], [field.default for field in declaration.fields], cell)
    assert "internal error" in " ".join(texts(layout, cell, tech))


@needs_klayout
def test_the_application_draws_the_same_from_the_package(once, tech, library, layout):
    drawn, folder = once(draw_in_application, "pcells")
    cells, shown = cells_of(tech.name), drawn[tech.name]
    assert [words for _, words in shown[:-1]] == [[]] * (len(cells) - 1)
    assert "below minimum" in " ".join(shown[-1][1])
    read = kdb.Layout()
    read.read(str(folder / f"{tech.name}.gds"))
    top = layout.create_cell("TOP")
    for number, (pcell, values) in enumerate(cells):
        cell = layout.create_cell(pcell, library.name(), values)
        top.insert(kdb.CellInstArray(cell.cell_index(), kdb.Trans(0, False, number * 100000, 0)))
    for info in {*(layout.get_info(i).to_s() for i in layout.layer_indexes())} - {"999/0"}:
        number, datatype = map(int, info.split("/"))
        ours = kdb.Region(top.begin_shapes_rec(layout.layer(number, datatype)))
        theirs = kdb.Region(read.cell("TOP").begin_shapes_rec(read.layer(number, datatype)))
        assert (ours ^ theirs).is_empty(), info


@pytest.mark.parametrize(("pcell", "nets"), [("nmos", "d g s body"), ("nmos_pair", ""), ("nmos_mirror", "")])
def test_nmos_pcells_have_an_isolated_body_where_the_process_has_deep_wells(tech, library, layout, pcell, nets):
    declared = {field.name for field in library.layout().pcell_declaration(pcell).get_parameters()}
    assert ("isolated" in declared) == (tech.deep_well is not None)
    if tech.deep_well is None:
        return
    values = {"isolated": True, "well_nets": "vddh sub", **({"nets": nets} if nets else {})}
    cell = layout.create_cell(pcell, library.name(), values)
    assert texts(layout, cell, tech) == []
    report = check(layout, cell, tech)
    assert report.summary()["total_violations"] == 0
    found = extract(layout, cell, tech)
    assert "vddh" in {text for net in found.nets.values() for text in net.texts}
    if nets:
        assert found.circuit.devices[0].terminals["b"] == "body"
