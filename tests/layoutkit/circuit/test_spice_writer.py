"""Written SPICE is read alike by this package, ngspice, netgen and KLayout."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device, write_spice
from layoutkit.circuit.readers.spice_reader import read_spice
from patience import WATCHDOG_S

STRANGE = ("v-", "v+", "x2[19]", "o<1>", "a.b", "n:1", "vdd!", "a/b", "net_1", "0")


def mos(name, nets, **params):
    sizes = {"w": 1.05e-6, "l": 0.15e-6, "nf": 2, "m": 3, **params}
    return Device(name, "nmos", "nfet_01v8", sizes, dict(zip("dgsb", nets, strict=True)))


STRANGE_CIRCUIT = Circuit(
    "strange",
    (
        *(mos(f"M{i}", (STRANGE[i], STRANGE[i - 1], STRANGE[i - 2], "vss")) for i in range(len(STRANGE))),
        mos("X1.M<3>", ("v+", "v-", "v+", "vss"), w=0.42e-6, nf=1, m=1),
    ),
    ("v-", "v+", "vss", "x2[19]"),
)


def test_the_text_is_written_out_in_full():
    circuit = Circuit(
        "amp",
        (
            mos("X1.M2", ("a", "b", "c", "d")),
            Device("R1", "resistor", "rpoly", {"r": 1e3, "w": 1e-6, "l": 4.5e-6, "m": 1}, {"p": "a", "n": "b"}),
            Device("Q1", "npn", "npn_05v5", {"m": 1}, {"c": "a", "b": "b", "e": "c"}),
        ),
        ("a", "b", "c", "d"),
    )
    assert write_spice(circuit) == (
        "* amp\n"
        ".subckt amp a b c d\n"
        "MX1.M2 a b c d nfet_01v8 W=1.05u L=0.15u nf=2 m=3\n"
        "R1 a b rpoly W=1u L=4.5u r=1000.0 m=1\n"
        "Q1 a b c npn_05v5 m=1\n"
        ".ends amp\n"
        ".end\n"
    )


def test_names_spice_cannot_tell_apart_or_write_get_others():
    circuit = Circuit("c d", (mos("M1", ("a", "A", "$3", "b;c")), mos("m1", ("a", "A", "$3", "b;c"))), ("a", "A"))
    text = write_spice(circuit)
    assert ".subckt c_d a A_2\n" in text
    assert "M1 a A_2 _3 b_c " in text
    assert "m1_2 a A_2 _3 b_c " in text


def test_long_lines_are_wrapped():
    text = write_spice(Circuit("wide", (), tuple(f"port_{i}" for i in range(100))))
    assert max(map(len, text.splitlines())) <= 96
    assert text.splitlines()[2].startswith("+ port_")


WORD = st.from_regex(r"[a-z][a-z0-9_.]{0,7}", fullmatch=True)


@st.composite
def circuits(draw):
    """Return circuits whose names are plain and tell themselves apart without case."""
    devices = []
    for number in range(draw(st.integers(1, 5))):
        nets = [draw(WORD) for _ in range(4)]
        kind = draw(st.sampled_from(["nmos", "pmos", "resistor", "capacitor", "diode", "npn"]))
        size = {
            "w": draw(st.integers(1, 10**6 - 1)) * 1e-9,
            "l": draw(st.floats(1e-9, 9e-4)),
            "m": draw(st.integers(1, 9)),
        }
        if kind in ("nmos", "pmos"):
            terminals = dict(zip("dgsb", nets, strict=True))
            extra = draw(st.sampled_from([{}, {"nfin": 4}, {"stack": 2}]))
            devices.append(Device(f"M{number}", kind, f"{kind}_lvt", {**size, "nf": 3, **extra}, terminals))
        elif kind == "npn":
            devices.append(Device(f"Q{number}", kind, "npn_v", {"m": 1}, dict(zip("cbes", nets, strict=True))))
        elif kind == "diode":
            devices.append(
                Device(f"D{number}", kind, "dio", {"m": 1, "area": 2e-12}, dict(zip("pn", nets, strict=False)))
            )
        else:
            letter, key = kind[0].upper(), {"resistor": "r", "capacitor": "c"}[kind]
            value = {
                key: draw(st.floats(0.02, 1e6) if kind == "resistor" else st.floats(1e-15, 1))
            }  # no short, no open
            terminals = dict(zip("pnb", nets[: draw(st.integers(2, 3))], strict=False))
            devices.append(Device(f"{letter}{number}", kind, f"{kind}_x", {**size, **value}, terminals))
    ports = draw(st.lists(WORD, unique=True, max_size=4))
    return Circuit("any", tuple(devices), tuple(ports))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(circuits())
def test_a_circuit_survives_spice(tmp_path, circuit):
    path = tmp_path / "any.sp"
    path.write_text(write_spice(circuit))
    assert read_spice(path) == circuit
    assert write_spice(read_spice(path)) == path.read_text()


@pytest.fixture
def strange(tmp_path):
    path = tmp_path / "strange.spice"
    path.write_text(write_spice(STRANGE_CIRCUIT))
    return path


def test_klayout_reads_the_same_devices_and_nets(strange):
    import klayout.db as kdb

    netlist = kdb.Netlist()
    netlist.read(str(strange), kdb.NetlistSpiceReader())
    (circuit,) = list(netlist.each_circuit())
    assert [pin.name() for pin in circuit.each_pin()] == [port.upper() for port in STRANGE_CIRCUIT.ports]
    devices = list(circuit.each_device())
    for device, expected in zip(devices, STRANGE_CIRCUIT.devices, strict=True):
        nets = {t: device.net_for_terminal(t.upper()).name for t in "dgsb"}
        assert sorted((nets["d"], nets["s"])) == sorted(expected.terminals[t].upper() for t in "ds")
        assert (nets["g"], nets["b"]) == (expected.terminals["g"].upper(), "VSS")
        assert device.parameter("W") == pytest.approx(expected.w * expected.m * 1e6)  # KLayout folds m into W
        assert device.parameter("L") == pytest.approx(expected.l * 1e6)


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="skipped: needs ngspice")
def test_ngspice_expands_the_same_cards(strange, tmp_path):
    deck = tmp_path / "deck.cir"
    deck.write_text(
        f"* deck\n.include {strange}\n.model nfet_01v8 nmos level=14\nxdut p0 p1 p2 p3 strange\n"
        ".control\nlisting expand\nquit 0\n.endc\n.end\n"
    )
    done = subprocess.run(["ngspice", "-b", str(deck)], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    cards = re.findall(r"^\s+\d+ : m\.xdut\.(\S+) (\S+) (\S+) (\S+) (\S+) nfet_01v8 (.*)$", done.stdout, re.MULTILINE)
    inner = {"v-": "p0", "v+": "p1", "vss": "p2", "x2[19]": "p3", "0": "0"}
    expected = [
        (
            (d.id if d.id.startswith("M") else f"M{d.id}").lower(),
            *(inner.get(net, f"xdut.{net}") for net in d.terminals.values()),
            f"w={d.w * 1e6:g}u l={d.l * 1e6:g}u nf={d.nf} m={d.m}",
        )
        for d in STRANGE_CIRCUIT.devices
    ]
    assert cards == expected


NETGEN = shutil.which("netgen-lvs") or (shutil.which("netgen") if Path("/usr/lib/netgen/tcl").exists() else None)


@pytest.mark.skipif(NETGEN is None, reason="skipped: needs netgen")
def test_netgen_finds_the_written_netlist_equal_to_one_written_by_hand(tmp_path):
    circuit = Circuit(
        "pair",
        (mos("X9.M1", ("a", "b", "t", "v"), m=1), mos("X9.M2", ("c", "e", "t", "v"), m=1)),
        ("a", "b", "c", "e", "t", "v"),
    )
    (tmp_path / "one.spice").write_text(write_spice(circuit))
    (tmp_path / "two.spice").write_text(
        ".subckt pair a b c e t v\n"
        "MB c e t v nfet_01v8 L=0.15u W=1.05u nf=2\nMA a b t v nfet_01v8 L=0.15u W=1.05u nf=2\n"
        ".ends\n.end\n"
    )
    command = [str(NETGEN), "-batch", "lvs", "one.spice pair", "two.spice pair", "nosetup", "out.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert "Circuits match uniquely" in done.stdout
    assert "Property errors" not in done.stdout
