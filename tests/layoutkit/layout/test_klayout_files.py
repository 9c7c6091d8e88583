"""The .lyt and .lyp files, read by KLayout itself: the Python module and, where installed, the application."""

import json
import shutil
import subprocess

import klayout.db as kdb
import pytest
from klayout import lay

from layoutkit.errors import FileError, TechnologyError
from layoutkit.layout.klayout_files import error_layer, layer_properties_xml, technology_xml, write_package
from layoutkit.technology import load, names
from patience import WATCHDOG_S

needs_klayout = pytest.mark.skipif(shutil.which("klayout") is None, reason="KLayout's application is not installed")

READ_TECHNOLOGY = """
import json, pya
layers = {}
for name in names:
    technology = pya.Technology.technology_by_name(name)
    view = pya.LayoutView()
    view.load_layer_props(technology.base_path() + "/" + technology.layer_properties_file)
    layers[name] = [[node.name, node.source] for node in view.each_layer()]
print(json.dumps({"known": pya.Technology.technology_names(), "layers": layers}))
"""


def shown_layers(path):
    view = lay.LayoutView()
    view.load_layer_props(str(path))
    return {node.source: (node.name, node.eff_fill_color() & 0xFFFFFF) for node in view.each_layer()}


@pytest.mark.parametrize("name", names())
def test_every_layer_of_the_technology_has_its_name_and_colour(tmp_path, name):
    technology = load(name)
    path = tmp_path / "x.lyp"
    path.write_bytes(layer_properties_xml(technology))
    shown = shown_layers(path)
    assert len(shown) == len(technology.layers) + 1
    for spec in technology.layers.values():
        title, color = shown[f"{spec.gds[0]}/{spec.gds[1]}@1"]
        assert title == f"{spec.name} - {spec.gds[0]}/{spec.gds[1]}"
        if spec.color:
            assert color == int(spec.color.removeprefix("#"), 16)


@pytest.mark.parametrize("name", names())
def test_the_error_layer_is_red_and_no_layer_of_the_technology(tmp_path, name):
    technology = load(name)
    path = tmp_path / "x.lyp"
    path.write_bytes(layer_properties_xml(technology))
    number, datatype = error_layer(technology)
    assert (number, datatype) not in {spec.gds for spec in technology.layers.values()}
    assert shown_layers(path)[f"{number}/{datatype}@1"] == (f"drawing error - {number}/{datatype}", 0xFF0000)


@pytest.mark.parametrize("name", names())
def test_the_technology_states_unit_layers_and_wiring(name):
    technology = load(name)
    read = kdb.Technology.technology_from_xml(technology_xml(technology).decode())
    assert (read.name, read.dbu, read.layer_properties_file) == (name, technology.dbu_um, f"{name}.lyp")
    (stack,) = read.component("connectivity").each()
    joined = {(c.layer_a(), c.via_layer(), c.layer_b()) for c in stack.each_connection()}
    layers = {c.name: c.layer for c in technology.conductors}
    for cut in technology.cuts:
        names_of = (layers[cut.below], cut.layer, layers[cut.above])
        gds = tuple("/".join(map(str, technology.spec(layer).gds)) for layer in names_of)
        assert gds in joined
    assert len(joined) >= len(technology.cuts) + 2


def test_same_technology_same_bytes():
    assert technology_xml(load("sky130A")) == technology_xml(load("sky130A"))
    assert layer_properties_xml(load("sky130A")) == layer_properties_xml(load("sky130A"))


def test_a_package_without_pcells_holds_no_code(tmp_path):
    written = write_package(["generic"], str(tmp_path / "p"), version="1", pcells=False)
    assert written["files"] == ["grain.xml", "tech/generic/generic.lyp", "tech/generic/generic.lyt"]
    assert sorted(p.relative_to(tmp_path / "p").as_posix() for p in (tmp_path / "p").rglob("*.*")) == written["files"]


def test_two_files_of_one_technology_are_refused(tmp_path):
    with pytest.raises(TechnologyError, match="listed only once"):
        write_package(["generic", load("generic").path], str(tmp_path), version="1")


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError):
        write_package(["generic"], str(tmp_path / "file"), version="1")


@needs_klayout
def test_the_application_finds_the_technologies_and_their_layers(tmp_path):
    write_package(names(), str(tmp_path / "salt" / "package"), version="1", pcells=False)
    script = tmp_path / "read.py"
    script.write_text(f"names = {names()!r}\n{READ_TECHNOLOGY}")
    run = subprocess.run(
        ["klayout", "-zz", "-nc", "-r", script],
        env={"KLAYOUT_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        check=True,
    )
    told = json.loads(run.stdout.splitlines()[-1])
    assert {*names()} <= {*told["known"]}
    for name in names():
        layers, shown = load(name).layers, told["layers"][name][:-1]
        assert [f"{spec.gds[0]}/{spec.gds[1]}@1" for spec in layers.values()] == [source for _, source in shown]
        assert [title.split(" - ")[0] for title, _ in shown] == list(layers)
