"""Netlists that want to exhaust, escape or confuse the reader end in one clear error, quickly."""

import os

import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers import spice_flatten
from layoutkit.circuit.readers.spice_reader import read_spice
from layoutkit.errors import LayoutkitError, NetlistError


def refused(path, **options):
    with pytest.raises(LayoutkitError) as caught:
        read_netlist(path, **options)
    assert caught.value.code == "INVALID_PARAM"
    return str(caught.value)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path):
    assert refused(tmp_path / "none.sp") == f"Netlist file not found: {tmp_path / 'none.sp'}"
    assert "not a regular file" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe.sp")
    assert "not a regular file" in refused(tmp_path / "pipe.sp")
    assert "not found" in refused("bad\0name.sp")
    assert "not found" in refused("x" * 5000)


@pytest.mark.skipif(os.geteuid() == 0, reason="skipped: needs a user whom file permissions bind")
def test_an_unreadable_file_is_refused(tmp_path):
    path = tmp_path / "secret.sp"
    path.write_text("x")
    path.chmod(0)
    assert "cannot be read" in refused(path)


@pytest.mark.parametrize("name", ["a.sp", "a.json", "a.cdl", "a.scs", "a"])
def test_empty_and_binary_files_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"")
    refused(path)
    path.write_bytes(b"\x00\x06\x00\x02\x00\x07" * 100)
    assert "binary" in refused(path)
    path.write_bytes(bytes(range(1, 256)) * 40)
    refused(path)


def test_a_file_of_200_megabytes_is_refused_unread(tmp_path):
    path = tmp_path / "big.sp"
    with path.open("wb") as stream:
        stream.truncate(200_000_000)
    assert "too large" in refused(path)


def test_json_nested_a_million_deep_is_refused(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text('{"cells":' * 200_000)
    assert refused(path).startswith("Invalid JSON format: ")


def test_a_subcircuit_that_contains_itself_is_told(netlist):
    path = netlist(".subckt a x\nX1 x a\n.ends\n")
    with pytest.raises(NetlistError, match="line 2: subcircuit 'a' contains itself: a > a"):
        read_spice(path, top="a")


def test_a_ring_of_subcircuits_is_told(netlist):
    path = netlist(".subckt a x\nX1 x b\n.ends\n.subckt b x\nX1 x a\n.ends\n.subckt top x\nX1 x a\n.ends\n")
    assert "contains itself: a > b > a" in refused(path)
    path = netlist(".subckt a x\nX1 x b\n.ends\n.subckt b x\nX1 x a\n.ends\n")
    assert "in a ring: a, b" in refused(path)


def test_a_bomb_of_instances_is_stopped(netlist, monkeypatch):
    levels = "".join(f".subckt s{i} x\nX1 x s{i + 1}\nX2 x s{i + 1}\n.ends\n" for i in range(30))
    assert "more than 50000" in refused(netlist(levels + ".subckt s30 x\nR1 x x 1\n.ends\n"))
    monkeypatch.setattr(spice_flatten, "MAX_INSTANCES", 1000)  # of cells without devices, fewer are enough
    assert "more than 1000" in refused(netlist(levels + ".subckt s30 x\n.ends\n"))


def test_a_tower_of_subcircuits_is_stopped(netlist):
    levels = "".join(f".subckt s{i} x\nX1 x s{i + 1}\n.ends\n" for i in range(1000))
    assert "nested deeper" in refused(netlist(levels + ".subckt s1000 x\nR1 x x 1\n.ends\n"))


def test_a_chain_of_parameters_is_stopped(netlist):
    chain = "".join(f".param p{i}=p{i + 1}+1\n" for i in range(5000))
    assert "nested" in refused(netlist(chain + ".subckt a x\nM1 x x x x nmos w=p0 l=1u\n.ends\n"))


def test_parameters_in_a_ring_are_told(netlist):
    assert "depends on itself" in refused(netlist(".subckt a x\n.param p=q q=p\nM1 x x x x nmos w=p l=1u\n.ends\n"))


def test_a_file_that_includes_itself_is_told(netlist):
    assert "includes itself" in refused(netlist(".include circuit.sp\n"))


def test_includes_too_deep_and_too_many_are_stopped(netlist, tmp_path):
    for i in range(20):
        (tmp_path / f"i{i}.inc").write_text(f".include i{i + 1}.inc\n")
    assert "nested deeper" in refused(netlist(".include i0.inc\n"))
    (tmp_path / "leaf.inc").write_text("* nothing\n")
    assert "more than 64 files" in refused(netlist(".include leaf.inc\n" * 65))


@pytest.mark.parametrize("how", ["absolute", "dots", "link"])
def test_an_include_cannot_leave_the_folder(tmp_path, how):
    outside = tmp_path / "outside.inc"
    outside.write_text(".param secret=1u\n")
    inside = tmp_path / "design"
    inside.mkdir()
    if how == "link":
        (inside / "link.inc").symlink_to(outside)
    name = {"absolute": str(outside), "dots": "../outside.inc", "link": "link.inc"}[how]
    path = inside / "a.sp"
    path.write_text(f".include '{name}'\n.subckt a x\nM1 x x x x nmos w=secret l=1u\n.ends\n")
    assert "parameter 'secret' is not defined" in refused(path)


def test_a_truncated_netlist_is_told(netlist):
    assert "'a' is never closed; write .ends" in refused(netlist(".subckt a x\nR1 x x 1\n"))


def test_text_that_is_no_netlist_at_all_is_refused(netlist):
    for text in ("hello world\nthis is prose\n", "a,b,c\n1,2,3\n", "<html></html>", "module a(); endmodule"):
        for name in ("text.txt", "text.json", "text.sp", "text"):
            refused(netlist(text, name))


def test_a_line_of_a_million_characters_is_read_quickly(netlist):
    path = netlist(
        ".subckt a x\n" + "R1 x x 1 " + "$ " + "a" * 1_000_000 + "\nR2 x x 'int(" + "(" * 900_000 + "\n.ends\n"
    )
    refused(path)
    circuit = read_spice(netlist(".subckt a " + " ".join(f"p{i}" for i in range(100_000)) + "\nR1 p0 p1 1\n.ends\n"))
    assert len(circuit.ports) == 100_000


def test_latin_1_in_comments_is_no_obstacle(tmp_path):
    path = tmp_path / "a.sp"
    path.write_bytes(b"* Verst\xe4rker\n.subckt a x y\nC1 x y 10\xb5\n.ends\n")
    assert read_spice(path).device("C1").params["c"] == pytest.approx(10e-6)


def test_a_size_in_millimetres_is_refused_with_the_unit_that_was_meant(netlist):
    card = ".subckt a x\nM1 x x x x nmos w=40m l=1u\n.ends\n"
    assert "line 2: 'M1': w=40m is in millimetres" in refused(netlist(card))
    assert read_netlist(netlist(card.replace("40m", "40"))).devices[0].w == 40e-6


@pytest.mark.parametrize(
    ("option", "w", "message"),
    [
        ("", "12000u", "w=12000u is 12 mm"),
        ("", "15e-3", "w=15e-3 is 15 mm"),
        ("", "'40*300u'", "w=(40*300u) is 12 mm"),
        (".option scale=1u\n", "12000", "w=12000 is 12 mm"),
        ("", "1e-12", "w=1e-12 is 1e-12 m"),
    ],
)
def test_a_size_that_no_device_has_is_refused_with_the_name_of_the_device(netlist, option, w, message):
    card = f"{option}.subckt a x\nM1 x x x x nmos w={w} l=1u\n.ends\n"
    assert f"'M1': {message}" in refused(netlist(card))


def test_names_that_the_stored_circuit_cannot_hold_are_refused_at_once(tmp_path):
    """A build that drew them would fail later, when a tool reads the circuit of the workspace."""
    path = tmp_path / "odd.sp"
    path.write_text(".subckt <p>(1)</p> d(1) g s<0> b\nM(2) d(1) g s<0> b nmos W=1u L=1u\n.ends\n", encoding="utf-8")
    assert refused(path).endswith("rename <p>(1)</p>, M(2), d(1)")
    path.write_text(path.read_text().replace("(", "[").replace(")", "]"), encoding="utf-8")
    assert read_netlist(path).devices[0].id == "M[2]"
