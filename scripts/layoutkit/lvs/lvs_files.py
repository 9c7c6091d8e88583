"""The files that LVS writes: KLayout's report database and the extracted netlist."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

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
from layoutkit.layout.provenance import noted
from layoutkit.lvs.lvs_result import LvsResult, at
from layoutkit.lvs.reference import klayout_netlist

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.extract.extracted import ExtractedDevice, Extraction
    from layoutkit.layout.files import PathLike


def write_report(result: LvsResult, path: PathLike, sources: Mapping[str, str] | None = None) -> None:
    """Write layout, netlist and their comparison as KLayout's database, for its netlist browser.

    KLayout's comparer is given the nets that were paired, so that it marks what differs and guesses nothing.

    Args:
        result: The comparison.
        path: Target.
        sources: What the report was made from; see ``layoutkit.layout.provenance``.

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
    """Write the extracted circuit as SPICE to ``path``, with a note of its ``sources`` (see ``provenance``).

    Raises:
        FileError: If the target cannot be written.
    """
    write_bytes(path, noted(extracted_spice(extraction).encode(), sources or {}))
