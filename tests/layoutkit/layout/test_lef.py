"""LEF of a cell, judged by KLayout's LEF reader and its geometry."""

import klayout.db as kdb
import pytest

from layoutkit.errors import LayoutkitError
from layoutkit.flow.port_frame import PortNet, draw_frame, plan_frame
from layoutkit.layout.export import lef_of
from layoutkit.technology import load
from thorough import processes


def technology_lef(process):
    layers = "".join(
        f"LAYER {c.name}\n TYPE ROUTING ;\n DIRECTION HORIZONTAL ;\n PITCH 1 ;\n WIDTH 0.1 ;\nEND {c.name}\n"
        for c in process.conductors
    )
    return f"VERSION 5.8 ;\nUNITS\n DATABASE MICRONS 1000 ;\nEND UNITS\n{layers}END LIBRARY\n"


def read_by_klayout(tmp_path, process, text):
    """Return the only macro of a LEF file, as KLayout reads it."""
    (tmp_path / "technology.lef").write_text(technology_lef(process), encoding="utf-8")
    (tmp_path / "cell.lef").write_text(text, encoding="utf-8")
    options = kdb.LoadLayoutOptions()
    options.lefdef_config.read_lef_with_def = False
    options.lefdef_config.dbu = process.dbu_um
    options.lefdef_config.lef_files = [str(tmp_path / "technology.lef")]
    layout = kdb.Layout()
    layout.read(str(tmp_path / "cell.lef"), options)
    return layout, layout.top_cell()


def shapes_of(layout, cell, name):
    found = kdb.Region()
    for info in layout.layer_infos():
        if info.name == name:
            found += kdb.Region(cell.shapes(layout.layer(info)))
    return found.merged()


def framed(process, core=(0, 0, 23450, 12340)):
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    cell = layout.create_cell("amplifier")
    middle = (kdb.Box(*core),)
    nets = [PortNet("inp", middle, direction="input"), PortNet("out", middle, direction="output")]
    nets += [PortNet("vdd", middle, "power"), PortNet("vss", middle, "ground")]
    frame = plan_frame(process, kdb.Box(*core), nets, 1500, "ring")
    draw_frame(layout, cell, process, frame)
    return layout, cell, frame


@pytest.mark.parametrize("technology", processes())
def test_klayout_reads_outline_pins_and_obstructions_of_the_lef(tmp_path, technology):
    process = load(technology)
    layout, cell, frame = framed(process)
    uses = {"inp": ("signal", "input"), "vdd": ("power", "inout"), "vss": ("ground", "inout")}
    lef = lef_of(cell, process, uses)
    assert (lef.pins, lef.inside, lef.warnings) == (("inp", "out", "vdd", "vss"), (), ())
    read, macro = read_by_klayout(tmp_path, process, lef.text)
    assert macro.name == "amplifier"
    (outline,) = [shapes_of(read, macro, info.name).bbox() for info in read.layer_infos() if info.name == "OUTLINE"]
    assert outline == frame.boundary  # the reader keeps the layout's coordinates: it takes ORIGIN into account
    for conductor in process.conductors:
        here = [port for port in frame.ports if port.layer == conductor.name]
        pins = kdb.Region([port.pin if conductor.pin_layer else port.box for port in here]).merged()
        assert (shapes_of(read, macro, f"{conductor.name}.PIN") ^ pins).is_empty(), conductor.name
        blocked = shapes_of(read, macro, f"{conductor.name}.OBS")
        metal = kdb.Region(cell.shapes(process.layer(layout, conductor.layer)))
        assert (metal - blocked - pins.sized(conductor.space + (conductor.wide_space or 0))).is_empty()
        assert blocked.is_empty() == metal.is_empty()
        assert (blocked & pins).is_empty()
        assert blocked.separation_check(pins, conductor.space).is_empty()
    for word in ("DIRECTION INPUT ;", "USE POWER ;", "USE GROUND ;", "CLASS BLOCK ;"):
        assert word in lef.text


def test_a_pin_inside_the_outline_and_a_missing_outline_are_told():
    process = load("sky130A")
    layout, cell, _ = framed(process)
    cell.shapes(process.layer(layout, "met2.pin")).insert(kdb.Box(5000, 5000, 5300, 5300))
    cell.shapes(process.layer(layout, "met2.label")).insert(kdb.Text("probe", 5100, 5100))
    assert lef_of(cell, process).inside == ("probe",)
    cell.shapes(process.layer(layout, "boundary")).clear()
    assert "no shape on prBndry.boundary" in lef_of(cell, process).warnings[0]


def test_metal_outside_of_the_outline_is_told():
    process = load("sky130A")
    layout, cell, frame = framed(process)
    edge = frame.boundary
    cell.shapes(process.layer(layout, "met3")).insert(kdb.Box(edge.right - 500, 0, edge.right + 85, 330))
    (warning,) = lef_of(cell, process, {}).warnings
    assert "up to 0.085 um outside of its outline" in warning


def test_cells_that_lef_cannot_hold_are_refused():
    process = load("sky130A")
    layout, cell, _ = framed(process)
    with pytest.raises(LayoutkitError, match="is empty"):
        lef_of(layout.create_cell("nothing"), process)
    bare = layout.create_cell("bare")
    bare.shapes(process.layer(layout, "met1")).insert(kdb.Box(0, 0, 1000, 1000))
    with pytest.raises(LayoutkitError, match="has no label on a pin"):
        lef_of(bare, process)
    cell.name = "two words"
    with pytest.raises(LayoutkitError, match="LEF cannot hold the names 'two words'"):
        lef_of(cell, process)
