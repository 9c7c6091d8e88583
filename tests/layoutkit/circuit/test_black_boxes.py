"""Instances of empty or undefined subcircuits: refused by name, or kept as black boxes where the caller lists them."""

import json

import pytest

from layoutkit.circuit import ModelNames, read_netlist, write_spice
from layoutkit.circuit.circuit import BlackBox
from layoutkit.circuit.readers.json_reader import circuit_from_json
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.errors import NetlistError
from layoutkit.flow.design import LayoutRequest, read_circuit
from layoutkit.technology import load

SPICE = """.subckt BOX a b
.ends
.subckt stage in out vss
M1 out in vss vss nmos W=1u L=1u
XB out inner BOX
.ends
.subckt top in out vss
X1 in out vss stage
XU in far elsewhere
.ends
"""
SPECTRE = """simulator lang=spectre
subckt BOX a b
ends BOX
subckt top in out vss
M1 (out in vss vss) nmos w=1u l=1u
I1 (out in) BOX
ends top
"""
KEPT = (
    BlackBox("X1.XB", "BOX", {"a": "out", "b": "X1.inner"}),
    BlackBox("XU", "elsewhere", {"1": "in", "2": "far"}),
)


def written(tmp_path, text, name="n.spice"):
    path = tmp_path / name
    path.write_text(text)
    return path


def json_netlist(cells):
    return json.dumps({"cells": cells, "top": "top"})


MOS = {"id": "M1", "type": "nmos", "terminals": {"d": "out", "g": "in", "s": "vss", "b": "vss"}}
USE = {"id": "XB", "cell": "box", "terminals": {"a": "out"}}
TOP = {"name": "top", "ports": ["in", "out", "vss"], "devices": [MOS], "instances": [USE]}


def test_an_undefined_subcircuit_is_refused_by_name(tmp_path):
    with pytest.raises(NetlistError, match=r"Undefined subcircuits: 'elsewhere' \(used by XU\).*black_boxes"):
        read_netlist(written(tmp_path, SPICE))


@pytest.mark.parametrize("text", [SPICE.replace("XU in far elsewhere\n", ""), SPECTRE])
def test_an_empty_subcircuit_is_refused_by_name(tmp_path, text):
    with pytest.raises(NetlistError, match=r"Empty subcircuits.*'BOX' \(used by (X1\.XB|I1)\).*black_boxes") as caught:
        read_netlist(written(tmp_path, text))
    assert list(caught.value.details["empty"]) == ["BOX"]


CELLS = [
    ("sky130A", "sky130_fd_sc_hd__inv_1", "nfet_01v8"),
    ("gf180mcuD", "gf180mcu_fd_sc_mcu7t5v0__inv_1", "nfet_05v0"),
    ("sg13g2", "sg13g2_inv_1", "sg13_lv_nmos"),
]


@pytest.mark.parametrize(("technology", "cell", "model"), CELLS)
def test_a_cell_of_the_process_libraries_is_named_with_what_to_do(tmp_path, technology, cell, model):
    process = load(technology)
    names = ModelNames(process)
    own = f".subckt top in out vss\nM1 out in vss vss {model} w=1u l=1u\nX1 in out vss {cell}\n.ends\n"
    empty = f".subckt {cell} a y vss\n.ends\n"
    for text in (own, empty + own):
        with pytest.raises(NetlistError, match=f"Of these, {cell} are cells of the libraries of {technology}.*by hand"):
            read_netlist(written(tmp_path, text), names=names)
        with pytest.raises(NetlistError) as caught:  # of another subcircuit nothing is known
            read_netlist(written(tmp_path, text.replace(cell, "stage")), names=names)
        assert "libraries" not in caught.value.message
    whole = empty.replace(".ends", f"M2 y a vss vss {model} w=1u l=1u\n.ends") + own
    for text, boxes, words in (
        (whole, (), f"their transistors are drawn: {cell}"),
        (own, (cell,), f"place them by hand and wire them to the labelled nets: X1 ({cell})"),
    ):
        request = LayoutRequest(netlist_text=text, technology=technology, black_boxes=boxes)
        _, warnings = read_circuit(request, process)
        assert [warning for warning in warnings if "libraries" in warning and warning.endswith(words)]
        _, warnings = read_circuit(
            LayoutRequest(
                netlist_text=text.replace(cell, "stage"), technology=technology, black_boxes=("stage",) * len(boxes)
            ),
            process,
        )
        assert not [warning for warning in warnings if "libraries" in warning]


def test_listed_subcircuits_are_kept_with_their_nets(tmp_path):
    circuit = read_netlist(written(tmp_path, SPICE), black_boxes=["box", "elsewhere"])
    assert circuit.black_boxes == KEPT
    assert [device.id for device in circuit.devices] == ["X1.M1"]
    assert {"X1.inner", "far"} <= circuit.nets.keys()


def test_a_listed_name_that_is_no_black_box_is_refused(tmp_path):
    with pytest.raises(NetlistError, match="black_boxes lists stage, typo"):
        read_netlist(written(tmp_path, SPICE), black_boxes=["BOX", "elsewhere", "stage", "typo"])


@pytest.mark.parametrize("cells", [[TOP, {"name": "box", "ports": ["a"]}], [TOP]])
def test_an_empty_or_undefined_cell_of_a_json_netlist_is_refused_by_name(tmp_path, cells):
    path = written(tmp_path, json_netlist(cells), "n.json")
    with pytest.raises(NetlistError, match=r"cells\[0\]\.instances\[0\]\.cell - no .* 'box'; .*black_boxes"):
        read_netlist(path)
    assert read_netlist(path, black_boxes=["box"]).black_boxes == (BlackBox("XB", "box", {"a": "out"}),)


def test_black_boxes_survive_json_and_are_refused_there_again(tmp_path):
    circuit = read_netlist(written(tmp_path, SPICE), black_boxes=["BOX", "elsewhere"])
    path = written(tmp_path, json.dumps({"circuit": circuit.to_json()}), "circuit.json")
    assert read_netlist(path, black_boxes=["BOX", "elsewhere"]).black_boxes == KEPT
    with pytest.raises(NetlistError, match="BOX"):
        circuit_from_json(circuit.to_json())


def test_black_boxes_survive_spice(tmp_path):
    circuit = read_netlist(written(tmp_path, SPICE), black_boxes=["BOX", "elsewhere"])
    again = read_netlist(
        written(tmp_path, write_spice(circuit), "r.spice"), black_boxes=["BOX", "elsewhere"], top="top"
    )
    assert [(box.cell, tuple(box.nets.values())) for box in again.black_boxes] == [
        (box.cell, tuple(box.nets.values())) for box in KEPT
    ]


def test_a_circuit_without_black_boxes_has_no_instances_in_json(tmp_path):
    text = SPICE.replace("XU in far elsewhere\n", "").replace("XB out inner BOX\n", "")
    assert "instances" not in read_netlist(written(tmp_path, text), top="top").to_json()


# A mirror whose first two widths are one expression, in two instances of a cell whose parameter differs.
OPEN = """.subckt cell g d vss k=1
M1 d g vss vss nch w='k*wu' l=lu
.ends
.subckt top ref a b vss
M1 ref ref vss vss nch w=wu l=lu
X1 ref a vss cell k=1
X2 ref b vss cell k=3
.ends
"""


def test_sizes_that_nothing_defines_are_left_out_of_the_answer_and_tell_equal_devices_from_others():
    circuit = read_netlist(NetlistText(OPEN), keep_unknown=True)
    (mirror,) = circuit.modules
    assert set(mirror.devices) == {"M1", "X1.M1", "X2.M1"}
    assert [value for name, value in mirror.properties["ratios"].items() if name == "X2.M1"] == [None]
    shown = circuit.to_json()
    assert all("w" not in device["params"] and "l" not in device["params"] for device in shown["devices"])
    (warning,) = [text for text in circuit.warnings if "are not defined" in text]
    assert warning.endswith(": wu, lu")
    first, second, third = (circuit.device(name) for name in ("M1", "X1.M1", "X2.M1"))
    assert len({first.l, second.l, third.l}) == 1
    assert third.w not in (first.w, second.w)


def test_a_netlist_with_open_sizes_is_not_drawn():
    with pytest.raises(NetlistError, match="parameter 'wu' is not defined"):
        read_netlist(NetlistText(OPEN))


def test_a_capacitor_card_of_four_nodes_is_a_device_that_nothing_defines():
    text = ".subckt tank a b t vss\nC1 a t b vss some_varactor w=2u l=1u\nM1 a b vss vss nmos w=1u l=1u\n.ends\n"
    (box,) = read_netlist(NetlistText(text), keep_unknown=True).black_boxes
    assert (box.cell, list(box.nets.values())) == ("some_varactor", ["a", "t", "b", "vss"])
    with pytest.raises(NetlistError, match="some_varactor"):
        read_netlist(NetlistText(text))
