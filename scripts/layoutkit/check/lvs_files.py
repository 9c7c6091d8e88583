"""The files LVS leaves: KLayout's report database and the extracted netlist."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.check.mismatch import at
from layoutkit.check.reference import klayout_netlist
from layoutkit.circuit.spice_writer import write_spice
from layoutkit.errors import KlayoutError
from layoutkit.files import check_target, write_bytes, write_text

if TYPE_CHECKING:
    from layoutkit.check.extracted import Extraction
    from layoutkit.check.lvs_result import LvsResult
    from layoutkit.files import PathLike


def write_report(result: LvsResult, path: PathLike) -> None:
    """Write layout, netlist and their comparison as KLayout's database, for its netlist browser.

    KLayout's comparer is given the nets that were paired, so that it marks what differs and guesses nothing.

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
        write_bytes(path, written.read_bytes())


def _compare(result: LvsResult) -> None:
    """Run KLayout's comparer over what was extracted."""
    import klayout.db as kdb

    lvs = result.extraction.lvs
    lvs.reference = klayout_netlist(result.reference, result.extraction.technology)
    ours, theirs = lvs.netlist().top_circuit(), lvs.reference.top_circuit()
    if ours is None:
        return
    if lvs.xref() is not None:
        lvs.xref().clear()  # KLayout would add to what an earlier comparison found
    mos = kdb.DeviceClassMOS4Transistor
    for netlist in (lvs.netlist(), lvs.reference):
        for device_class in netlist.each_device_class():
            width = kdb.EqualDeviceParameters(mos.PARAM_W, 1e-6, result.tolerance)
            device_class.equal_parameters = width + kdb.EqualDeviceParameters(mos.PARAM_L, 1e-6, result.tolerance)
    comparer = kdb.NetlistComparer()
    comparer.same_circuits(ours, theirs)
    for net, name in sorted(result.nets.items()):
        comparer.same_nets(ours, theirs, ours.net_by_cluster_id(net), theirs.net_by_name(name), True)
    lvs.compare(comparer)
    lvs.flag_missing_ports(ours)


def extracted_spice(extraction: Extraction) -> str:
    """Return the extracted circuit as SPICE that simple MOS models understand as well as a foundry's.

    Fingers and dummies are told in comments: the simple models know no ``nf``, and a dummy carries no current.
    """
    comments = [
        f"* {device.id}: fingers {len(device.fingers)}, the first{at(device.place)}" for device in extraction.devices
    ]
    comments += [
        f"* dummy {finger.device} W={finger.w_um:g}u L={finger.l_um:g}u{at(finger.place)}"
        for finger in extraction.dummies
    ]
    plain = [
        replace(device, params={key: value for key, value in device.params.items() if key in {"w", "l"}})
        for device in extraction.circuit.devices
    ]
    head, _, rest = write_spice(replace(extraction.circuit, devices=tuple(plain))).partition("\n")
    return "\n".join([head, *comments, rest])


def write_extracted(extraction: Extraction, path: PathLike) -> None:
    """Write the extracted circuit as SPICE to ``path``.

    Raises:
        FileError: If the target cannot be written.
    """
    write_text(path, extracted_spice(extraction))
