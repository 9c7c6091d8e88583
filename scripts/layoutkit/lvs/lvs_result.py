"""The verdict of LVS as data, with the differences that it reports, and the files that state it.

Each text of a difference names both sides. The files are KLayout's report database and the extracted netlist.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.spice_writer import write_spice
from layoutkit.errors import KlayoutError
from layoutkit.extract.extractor import combined
from layoutkit.extract.surroundings import (
    WELL_RANGE_UM,
    ChannelSurroundings,
    ModelDistances,
    equivalent_distances,
    model_distances,
)
from layoutkit.layout.files import check_target, write_bytes
from layoutkit.layout.reports import noted
from layoutkit.lvs.reference import klayout_netlist

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import BlackBox, Circuit, Device
    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction, Point
    from layoutkit.layout.files import PathLike
    from layoutkit.lvs.reference import Reference

# Kinds in the order of the report: causes first, possible consequences last.
KINDS = (
    "nothing_compared",
    "unrecognised_device",
    "short",
    "open",
    "floating_bulk",
    "missing_device",
    "extra_device",
    "swapped_nets",
    "swapped_ports",
    "wrong_connection",
    "wrong_parameter",
    "missing_port",
    "extra_port",
    "net_mismatch",
)


@dataclass(frozen=True)
class LvsMismatch:
    """One difference.

    Attributes:
        kind: One of ``KINDS``.
        message: What differs, naming net or device on both sides.
        cause: What most often is behind it, and what to look at.
        reference: Names of the netlist's nets or devices concerned.
        layout: The layout's names of nets or devices, with a place to look at where there is one.
        terminals: Of each net of a short, its net in the layout and the fingers with the terminal that is on it.
    """

    kind: str
    message: str
    cause: str
    reference: tuple[str, ...] = ()
    layout: tuple[tuple[str, Point | None], ...] = ()
    terminals: tuple[tuple[tuple[int, DrawnFinger, str], ...], ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the mismatch as JSON data; places in micrometres."""
        return {
            "kind": self.kind,
            "message": self.message,
            "cause": self.cause,
            "reference": list(self.reference),
            "layout": [{"name": name, **_place_json(place)} for name, place in self.layout],
        }

    @property
    def rank(self) -> tuple[int, str]:
        """Sorts mismatches: by kind, then by text."""
        return KINDS.index(self.kind), self.message


def wrong_parameter(message: str, cause: str, ids: Sequence[str], drawn: Iterable[ExtractedDevice]) -> LvsMismatch:
    """Return the mismatch of devices that are there, but of another size or kind than those of the netlist."""
    places = tuple((device.id, device.place) for device in drawn)
    return LvsMismatch("wrong_parameter", message, cause, tuple(ids), places)


def at(place: Point | None) -> str:
    """Return `` at (x, y)`` for a sentence, nothing when there is no place."""
    return "" if place is None else f" at ({place.x:g}, {place.y:g}) um"


MAX_MISMATCHES = 50


@dataclass(frozen=True)
class LvsResult:
    """The verdict and its basis.

    Attributes:
        matched: Whether the layout is the circuit.
        mismatches: At most ``MAX_MISMATCHES`` differences, causes first; empty where nothing differs.
        mismatch_count: How many there are in all.
        device_pairs: Extracted device -> ids of the netlist's transistors it stands for; empty unless nets pair up.
        nets: Net of the layout, by number -> net of the netlist: proven under all labels, else what labels say.
        net_pairs: Net of the layout -> net of the netlist; empty unless nets pair up.
        tolerance: Relative difference of sizes that was allowed. [1]
        warnings: What does not decide the verdict but should be known.
        extraction: The layout side.
        reference: The netlist side.
    """

    matched: bool
    mismatches: tuple[LvsMismatch, ...]
    mismatch_count: int
    device_pairs: Mapping[str, tuple[str, ...]]
    nets: Mapping[int, str]
    net_pairs: Mapping[str, str]
    tolerance: float
    warnings: tuple[str, ...]
    extraction: Extraction
    reference: Reference

    @property
    def complete(self) -> bool:
        """Whether extraction read every layer drawn (but for waived ones) and the whole netlist was compared."""
        return not (self.extraction.coverage.unchecked or self.reference.black_boxes)

    @property
    def verdict(self) -> str:
        """The verdict in words; a layout with devices that replace others of the netlist never is just complete."""
        if not self.matched:
            return "not matched"
        if not self.complete:
            return "not complete"
        text = "complete with replaced devices" if self.reference.replaced else "complete"
        return f"{text}, grounds joined by the substrate" if self.joins_grounds else text

    @property
    def joins_grounds(self) -> bool:
        """Whether a marker makes parts of the substrate nets of their own, which silicon joins."""
        technology, layout = self.extraction.technology, self.extraction.layout
        marker, cell = technology.role("substrate_cut"), layout.cell(self.extraction.cell_name)
        layer = None if marker is None else layout.find_layer(*technology.spec(marker).gds)
        return layer is not None and cell is not None and not cell.bbox_per_layer(layer).empty()

    def to_json(self) -> dict[str, Any]:
        """Return verdict, mismatches, counts, ports and dummies as JSON data; places and sizes in micrometres."""
        extraction, reference = self.extraction, self.reference
        wrong = {name for mismatch in self.mismatches for name in mismatch.reference}
        paired = [ref for refs in self.device_pairs.values() for ref in refs]
        labelled = {
            name: net.labels[0].place
            for net in extraction.nets.values()
            for label in net.labels
            if (name := reference.net_named(label.text)) is not None
        }
        return {
            "matched": self.matched,
            "complete": self.complete,
            "verdict": self.verdict,
            "replaced_devices": list(reference.replaced),
            **extraction.coverage.to_data(),
            "not_compared": not_compared(self.reference.black_boxes),
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
            "mismatch_count": self.mismatch_count,
            "devices": {
                "layout": len(extraction.devices),
                "reference": len(reference.devices),
                "matched": sum(1 for ref in set(paired) if ref not in wrong),
                "extracted": [self._device_json(device) for device in extraction.devices],
            },
            "nets": {
                "layout": len(extraction.nets),
                "reference": len(reference.nets),
                "matched": len(self.net_pairs),
            },
            "ports": [{"name": port, **_place_json(labelled.get(port))} for port in reference.ports],
            "dummies": [
                {"device": finger.device, "w_um": finger.w_um, "l_um": finger.l_um, **_place_json(finger.place)}
                for finger in extraction.dummies
            ],
            "warnings": list(self.warnings),
        }

    def _device_json(self, device: ExtractedDevice) -> dict[str, Any]:
        return {
            "name": device.id,
            "reference": list(self.device_pairs.get(device.id, ())),
            "device": device.device,
            "w_um": device.w_um,
            "l_um": device.l_um,
            "fingers": len(device.fingers),
            "nets": {terminal: self.extraction.nets[net].name for terminal, net in sorted(device.nets.items())},
            **_place_json(device.place),
        }


def not_compared(black_boxes: Sequence[BlackBox]) -> list[dict[str, str]]:
    """Return the instances that were not compared, as JSON data."""
    return [{"instance": box.id, "cell": box.cell} for box in black_boxes]


def _place_json(place: Point | None) -> dict[str, float | None]:
    return {"x": None, "y": None} if place is None else {"x": place.x, "y": place.y}


def write_report(result: LvsResult, path: PathLike, sources: Mapping[str, str] | None = None) -> None:
    """Write layout, netlist and their comparison as KLayout's database, for its netlist browser.

    KLayout's comparer is given the nets that were paired, so that it marks what differs and guesses nothing.

    Args:
        result: The comparison.
        path: Target.
        sources: What the report was made from; see ``layoutkit.layout.reports``.

    Raises:
        FileError: If the target cannot be written.
        KlayoutError: If KLayout cannot write the database.
    """
    check_target(path)
    _compare(result)
    with tempfile.TemporaryDirectory() as folder:  # KLayout writes to a named file only
        written = Path(folder) / "report.lvsdb"
        try:
            result.extraction.lvs.write(str(written), False)
        except RuntimeError as error:
            raise KlayoutError(f"KLayout cannot write the LVS report: {error}") from error
        write_bytes(path, noted(written.read_bytes(), sources or {}))


def _compare(result: LvsResult) -> None:
    """Run KLayout's comparer over what was extracted."""
    lvs = result.extraction.lvs
    lvs.reference = klayout_netlist(result.reference, result.extraction.technology)
    ours, theirs = lvs.netlist().top_circuit(), lvs.reference.top_circuit()
    if ours is None:
        return
    if lvs.xref() is not None:
        lvs.xref().clear()  # KLayout would add to what an earlier comparison found
    for netlist in (lvs.netlist(), lvs.reference):
        for device_class in netlist.each_device_class():
            device_class.equal_parameters = _compared(device_class, result.tolerance)
    comparer = kdb.NetlistComparer()
    comparer.same_circuits(ours, theirs)
    for net, name in sorted(result.nets.items()):
        comparer.same_nets(ours, theirs, ours.net_by_cluster_id(net), theirs.net_by_name(name), True)
    lvs.compare(comparer)
    lvs.flag_missing_ports(ours)


def _compared(device_class: kdb.DeviceClass, tolerance: float) -> kdb.EqualDeviceParameters:
    """Return how the sizes of one class are compared: W and L, or an area: of plates, a junction or emitters."""
    names = {parameter.name: parameter.id() for parameter in device_class.parameter_definitions()}
    first, *rest = [kdb.EqualDeviceParameters(names[n], 1e-6, tolerance) for n in ("W", "L", "A", "AE") if n in names]
    if "W" in names:
        return first + rest[0]
    return first


def extracted_spice(extraction: Extraction) -> str:
    """Return the extracted circuit as SPICE, in the form of the technology's own library where its file states one.

    On plain cards, fingers appear in comments only: the simple MOS models have no ``nf``. Dummies carry no current, but
    load the nets that they are on; they stand in a section of their own, as in the reference netlist.

    Transistors carry what was measured of them, under the names that the technology's cards have for it: area and
    perimeter of drain and source, of all fingers together; a diffusion between two fingers is divided evenly between
    them, and each perimeter includes the edge at the channel. ``sa``, ``sb`` and ``sd`` are those with which the model
    computes the mean stress of the fingers (see ``surroundings.model_distances``). The comments state the ``sa`` and
    ``sb`` of one finger under that stress, and the nearest edge of a well, for which the models have no parameter.
    """
    comments = [_comment(device) for device in extraction.devices]
    comments += [
        f"* dummy {finger.device} W={finger.w_um:g}u L={finger.l_um:g}u{at(finger.place)}"
        for finger in extraction.dummies
    ]
    circuit, idle = measured_circuit(extraction)
    devices, technology = list(circuit.devices), extraction.technology
    if "spice" not in technology.netlists:
        devices, idle = ([_plain(device) for device in listed] for listed in (devices, idle))
    circuit = replace(circuit, devices=tuple(devices))
    head, _, rest = write_spice(circuit, technology, dummies=idle).partition("\n")
    return "\n".join([head, *comments, rest])


def measured_circuit(extraction: Extraction) -> tuple[Circuit, list[Device]]:
    """Return the extracted circuit with what was measured of its transistors, and the dummies, ``MDUMMY1`` and so on.

    Area and perimeter of drain and source (``ad as pd ps`` [m2, m]) and the distances ``sa sb sd`` [m] are among the
    ``params`` of each transistor; see ``extracted_spice``.
    """
    circuit = extraction.circuit
    devices = [_measured(*pair) for pair in zip(circuit.devices, extraction.devices, strict=True)]
    substrate = {"b": extraction.substrate} if extraction.substrate else {}
    devices = [
        replace(d, terminals={**substrate, **d.terminals}) if d.type == "mos_capacitor" else d for d in devices
    ]  # extraction does not read the substrate below their wells
    apart = combined(extraction.dummies, extraction.layout.dbu)
    idle = [
        replace(_measured(extraction.as_device(found), found, apart=True), id=f"MDUMMY{number}")
        for number, found in enumerate(apart, 1)
    ]
    return replace(circuit, devices=tuple(devices)), idle


def _measured(device: Device, found: ExtractedDevice, *, apart: bool = False) -> Device:
    """Return a transistor with what was measured of it [m, m2], its fingers ``apart`` or not; others as they are."""
    places = _places(found)
    if not places:
        return device
    distances = model_distances(places, found.l_um)
    if apart:
        distances = ModelDistances(len(places), *equivalent_distances(places, found.l_um), 0.0)
    units = distances.units
    measured = {"w": device.w / units, "nf": device.nf // units, "m": units}
    for terminal in ("d", "s"):
        junction = found.junction(terminal)
        measured[f"a{terminal}"] = round(junction.area_um2 / units * 1e-12, 18)
        measured[f"p{terminal}"] = round(junction.perimeter_um / units * 1e-6, 12)
    for name, distance in zip(("sa", "sb", "sd"), distances[1:], strict=True):
        measured[name] = round(distance * 1e-6, 12)
    return replace(device, params={**device.params, **measured})


def _places(device: ExtractedDevice) -> list[ChannelSurroundings]:
    """Return the distances of a transistor's channels to edges and neighbours; nothing for other devices."""
    return [finger.around for finger in device.fingers if finger.around is not None]


def _comment(device: ExtractedDevice) -> str:
    text = f"* {device.id}: {_parts(device)}, the first{at(device.place)}"
    places = _places(device)
    if not places:
        return text
    sa_um, sb_um = equivalent_distances(places, device.l_um)
    wells = [place.well_um for place in places if place.well_um is not None]
    well = f"{min(wells):g} um from a channel" if wells else f"none within {WELL_RANGE_UM:g} um"
    return f"{text}, mean stress that of sa={sa_um:g}u sb={sb_um:g}u, edge of an n well {well}"


def _plain(device: Device) -> Device:
    kept = {"w", "l"} if device.m == 1 else {"w", "l", "m"}
    return replace(device, params={name: value for name, value in device.params.items() if name in kept})


def _parts(device: ExtractedDevice) -> str:
    return f"{'fingers' if device.kind.is_mos else 'parts'} {len(device.fingers)}"


def write_extracted(extraction: Extraction, path: PathLike, sources: Mapping[str, str] | None = None) -> None:
    """Write the extracted circuit as SPICE to ``path``, with a note of its ``sources`` (see ``reports``).

    Raises:
        FileError: If the target cannot be written.
    """
    write_bytes(path, noted(extracted_spice(extraction).encode(), sources or {}))
