"""The files LVS leaves: KLayout's report database and the extracted netlist."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.check.mismatch import at
from layoutkit.circuit.spice_writer import write_spice
from layoutkit.errors import KlayoutError
from layoutkit.files import check_target, write_bytes, write_text

if TYPE_CHECKING:
    from layoutkit.check.extracted import Extraction
    from layoutkit.files import PathLike


def write_report(extraction: Extraction, path: PathLike) -> None:
    """Write KLayout's database of the last comparison to ``path``; it opens in KLayout's netlist browser.

    Raises:
        FileError: If the target cannot be written.
        KlayoutError: If KLayout cannot write the database.
    """
    check_target(path)
    with tempfile.TemporaryDirectory() as folder:  # KLayout writes to a named file only
        written = Path(folder) / "report.lvsdb"
        try:
            extraction.lvs.write(str(written), False)
        except RuntimeError as error:
            raise KlayoutError(f"KLayout cannot write the LVS report: {error}") from error
        write_bytes(path, written.read_bytes())


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
