"""Extraction by other programs: Magic and KPEX, where they are installed, with what the process kit gives them.

A program gets a copy of the layout in a folder of its own and a time limit. Its netlist is kept as it is, but for the
order of the pins, which is that of the input netlist. The figures of nets are read from its capacitors.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.circuit.spice_writer import write_spice
from layoutkit.errors import KlayoutError, LayoutkitError, MissingProgramError
from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell
from layoutkit.other_programs import MAX_BYTES, OtherProgram, ProgramRun, log_tail, run_program
from layoutkit.parasitics.layout_circuit import layout_circuit
from layoutkit.parasitics.net_network import GROUND, Elements, NetParasitics, Parasitics, pair_mismatches
from layoutkit.parasitics.net_shapes import inner_nets
from layoutkit.parasitics.parasitic_extraction import net_capacitors
from layoutkit.templates import rendered

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.parasitics.parasitic_extraction import PexOptions
    from layoutkit.technology import Technology

    SharesOfNets = dict[str, tuple[tuple[str, float], ...]]

PROGRAMS = {
    name: OtherProgram(name, f"engine {name} needs its program", f"{hint}, or use engine builtin")
    for name, hint in (
        ("magic", "install Magic 8.3 (http://opencircuitdesign.com/magic, built with Tcl) and put it on PATH"),
        ("kpex", "install KLayout-PEX (pip install klayout-pex) and KLayout 0.30.3, and put kpex and klayout on PATH"),
    )
}
_KPEX_KITS = {"sky130A": "sky130A", "sg13g2": "ihp_sg13g2", "gf180mcuD": "gf180mcuD"}
_SUBSTRATES = frozenset({"0", "vsubs", "gnd!", "vsubstrate"})
_SCALES = {"a": 1e-18, "f": 1e-15, "p": 1e-12, "n": 1e-9, "u": 1e-6}
_CAPACITOR = re.compile(r"C\S*\s+(\S+)\s+(\S+)\s+([-+.\deE]+)([afpnu]?)", re.IGNORECASE)
_MAX_LOG = 2000  # bytes
_WHOLE_NETS = "whole_nets.spice"
"""Magic's capacitors between nets without resistors: extresist leaves out couplings of the nets that it divides."""


@dataclass(frozen=True)
class ExternalRun:
    """How to run another program.

    Attributes:
        engine: ``magic`` or ``kpex``.
        timeout_s: Longest time. [s]
        max_bytes: Most that it may write.
    """

    engine: str
    timeout_s: float = 300.0
    max_bytes: int = MAX_BYTES


def external_parasitics(
    layout: kdb.Layout, circuit: Circuit, technology: Technology, options: PexOptions, run: ExternalRun
) -> Parasitics:
    """Return the parasitics that another program extracts.

    Raises:
        MissingProgramError: If the program, or what the process kit has for it, is not installed.
        TimeLimitError: If it took longer than allowed.
        UnsupportedOperationError: If it wrote more than allowed.
        LayoutkitError: If it wrote no netlist of the circuit.
    """
    program = PROGRAMS[run.engine].path()
    cell = choose_cell(layout, options.cell_name)
    shares: SharesOfNets = {}
    with tempfile.TemporaryDirectory(prefix="pex-") as name:
        folder = Path(name)
        written = folder / "out.spice"
        if run.engine == "magic":
            command = _magic(program, technology, cell.name, options, folder)
            layout, shares = _with_inner_names(layout, circuit, technology, options)
        else:
            command = _kpex(program, technology, circuit, cell.name, options, folder)
        layout.write(str(folder / "layout.gds"))
        run_program(ProgramRun(command, folder, run.timeout_s, run.engine, max_bytes=run.max_bytes))
        log = log_tail(folder, _MAX_LOG)
        text = written.read_text(errors="replace") if written.is_file() else ""
        whole = folder / _WHOLE_NETS
        capacitors = whole.read_text(errors="replace") if whole.is_file() else text
    if f".subckt {cell.name}".lower() not in text.lower():
        raise LayoutkitError(f"{run.engine} wrote no netlist of cell {cell.name}; it said: {log.strip()}")
    spice, unchecked = with_pins(_with_names_of(circuit, text), cell.name, circuit, shares)
    nets, elements = figures_of_elements(_with_names_of(circuit, capacitors), circuit, shares)
    unchecked += [f"resistances to terminals: engine {run.engine} states them in its netlist only"]
    if run.engine == "magic" and options.mode == "rc":
        unchecked.append(
            "capacitors of the netlist: Magic's extresist drops and repeats some; nets states those without resistors"
        )
    return Parasitics(
        cell=circuit.name,
        nets=nets,
        pairs=pair_mismatches(options.constraints, nets, {}),
        elements=elements,
        spice=spice,
        spef="",
        unchecked=tuple(unchecked),
    )


def kit_folder(technology: Technology) -> Path:
    """Return the folder of the process kit below ``$PDK_ROOT``.

    Raises:
        MissingProgramError: If there is none.
    """
    root = os.environ.get("PDK_ROOT")
    names = [os.environ.get("PDK", ""), *(technology.simulation.pdk if technology.simulation else ()), technology.name]
    for name in filter(None, names):
        if root and (Path(root) / name).is_dir():
            return Path(root) / name
    raise MissingProgramError(
        f"the process kit of {technology.name} is not below PDK_ROOT ({root or 'not set'}); install it (open_pdks or "
        f"volare, the IHP-Open-PDK) and set PDK_ROOT to the folder that holds {names[-1]}, or use engine builtin",
        details={"program": "PDK_ROOT"},
    )


def _magic(program: str, technology: Technology, cell: str, options: PexOptions, folder: Path) -> list[str]:
    """Return the command that runs Magic, and write its script."""
    magic = kit_folder(technology) / "libs.tech" / "magic"
    found = sorted(magic.glob("*.magicrc"))
    if not found:
        raise MissingProgramError(f"{magic} holds no .magicrc for Magic", details={"program": "PDK_ROOT"})
    script = rendered("magic_extraction.tcl", cell=cell, whole_nets=_WHOLE_NETS, resistances=options.mode == "rc")
    (folder / "pex.tcl").write_text(script)
    return [program, "-dnull", "-noconsole", "-rcfile", str(found[0]), "pex.tcl"]


def _with_inner_names(
    layout: kdb.Layout, circuit: Circuit, technology: Technology, options: PexOptions
) -> tuple[kdb.Layout, SharesOfNets]:
    """Return a layout in which each net without a label has one with its name, and the nets inside resistors.

    Magic would name them by their places. Each net inside a resistor is stated with the shares that the nets at the
    ends have of its capacitance, see ``inner_nets``.
    """
    named = layout.dup()
    technology = technology.made_for(device.model for device in circuit.devices)
    cell = choose_cell(named, options.cell_name)
    found = layout_circuit(extract(named, cell, technology, waived_layers=options.waived_layers), circuit)
    inner = inner_nets(found.extraction)
    names = {number: found.nets[number] for number, net in found.extraction.nets.items() if not net.labels}
    names |= {number: _inner_name(number, found.nets.values()) for number in inner}
    for number, text in sorted(names.items()):
        metal = ((each, found.extraction.shapes(number, each.name)) for each in technology.conductors)
        conductor, shapes = next(((each, shapes) for each, shapes in metal if not shapes.is_empty()), (None, None))
        if conductor is None or shapes is None:
            continue
        boxes = [part.bbox() for part in shapes.decompose_trapezoids_to_region()]
        middle = max(boxes, key=lambda box: (box.area(), str(box))).center()
        cell.shapes(technology.layer(named, conductor.label_layer)).insert(kdb.Text(text, middle.x, middle.y))
    shares = {names[each]: tuple((found.nets[end], part) for end, part in ends) for each, ends in inner.items()}
    return named, shares


def _inner_name(number: int, taken: Collection[str]) -> str:
    name = f"inner_{number}"
    while name in taken:
        name += "_"
    return name


def _kpex(
    program: str, technology: Technology, circuit: Circuit, cell: str, options: PexOptions, folder: Path
) -> list[str]:
    """Return the command that runs KPEX's own engine, and write its schematic."""
    if technology.name not in _KPEX_KITS:
        raise LayoutkitError(f"kpex knows {', '.join(sorted(_KPEX_KITS))}, not {technology.name}; use engine builtin")
    (folder / "schematic.spice").write_text(write_spice(circuit, technology, "lvs_deck"))
    command = [program, "--pdk", _KPEX_KITS[technology.name], "--gds", "layout.gds", "--cell", cell]
    command += ["--schematic", "schematic.spice", "--2.5D", "--mode", "RC" if options.mode == "rc" else "CC"]
    return [*command, "--out_dir", "kpex", "--out_spice", "out.spice"]


def _with_names_of(circuit: Circuit, text: str) -> str:
    """Return a netlist whose nodes have the circuit's names where a program spells them in plain characters.

    Magic leaves out the last ``!`` or ``#`` and writes other characters for brackets and commas. A name that two nets
    could have stays as it is.
    """
    known = {net.lower() for net in circuit.nets}
    of_plain: dict[str, list[str]] = defaultdict(list)
    for net in circuit.nets:
        of_plain[_plain(net)].append(net)
    changed = {plain: nets[0] for plain, nets in of_plain.items() if len(nets) == 1 and plain != nets[0].lower()}

    def named(match: re.Match[str]) -> str:
        word, (base, inner) = match[0].lower(), (match[1], match[2] or "")
        if word in known or base.lower() in known or _plain(base) not in changed:
            return match[0]
        return changed[_plain(base)] + inner

    return re.sub(r"(?<=[ \t])([^\s=]+?)([.:$](?:n|t)?\d+)?(?=\s)", named, text) if changed else text


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name.lower().rstrip("!#"))


def with_pins(text: str, cell: str, circuit: Circuit, labelled: Collection[str]) -> tuple[str, list[str]]:
    """Return the netlist with name and pins of the input netlist, and what could not be done.

    Some kits make a pin of each label: those of inner nets of the circuit, and of nets that got labels.
    """
    joined = re.sub(r"\n\+[ \t]*", " ", text)
    head = re.search(rf"^\.subckt[ \t]+{re.escape(cell)}(?=\s)(.*)$", joined, re.IGNORECASE | re.MULTILINE)
    if head is None:
        raise KlayoutError(f"no .subckt {cell} in the netlist")
    inner = {net.lower() for net in (*circuit.nets, *labelled)} - {port.lower() for port in circuit.ports}
    pins = [pin for pin in head[1].split() if pin.lower() not in inner]
    wanted = {pin.lower(): pin for pin in pins}
    if sorted(wanted) != sorted(port.lower() for port in circuit.ports):
        return joined, [f"order of pins: the netlist has {' '.join(pins)}, the input {' '.join(circuit.ports)}"]
    ports = " ".join(wanted[port.lower()] for port in circuit.ports)
    return f"{joined[: head.start()]}.subckt {circuit.name} {ports}{joined[head.end() :]}", []


def figures_of_elements(
    text: str, circuit: Circuit, shares: SharesOfNets
) -> tuple[tuple[NetParasitics, ...], Elements]:
    """Return the capacitance of each net and the capacitors; nodes of one net count as that net.

    Args:
        text: The netlist.
        circuit: Names the nets.
        shares: Net to the nets that its capacitance counts to, each with its share.
    """
    names = {net.lower(): net for net in (*circuit.nets, *shares)}
    substrates = _SUBSTRATES - set(names)  # a circuit may call one of its nets 0
    ground: dict[str, float] = defaultdict(float)
    coupling: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in re.sub(r"\n\+[ \t]*", " ", text).splitlines():
        found = _CAPACITOR.match(line)
        if found is None:
            continue
        value = float(found[3]) * _SCALES.get(found[4].lower(), 1.0) * 1e15
        one, other = (_net_of(found[place], names) for place in (1, 2))
        for first, part in shares.get(one, ((one, 1.0),)):
            for second, share in shares.get(other, ((other, 1.0),)):
                if first in substrates or second in substrates:
                    ground[second if first in substrates else first] += value * part * share
                elif first != second:
                    coupling[first][second] += value * part * share
                    coupling[second][first] += value * part * share
    nets = tuple(
        NetParasitics(net=net, ground_fF=ground.get(net, 0.0), coupling_fF=dict(sorted(coupling[net].items())))
        for net in sorted({*ground, *coupling} - substrates)
    )
    return nets, Elements(capacitors=net_capacitors(nets, coupled=True, substrate=GROUND))


def _net_of(node: str, names: Mapping[str, str]) -> str:
    """Return the net of a node: Magic calls the nodes of a net ``net.n1``, ``net.t0``, KPEX ``net.1``."""
    plain = node.lower()
    if plain not in names and plain not in _SUBSTRATES:
        plain = re.sub(r"[.:$](n|t)?\d+$", "", plain)
    return names.get(plain, plain)
