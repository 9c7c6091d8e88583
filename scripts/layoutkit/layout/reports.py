"""Reports on a layout: KLayout's report databases, and which layout and circuit any report was made from.

A report is valid only for the exact bytes of the layout that it was made from. Every report that the pack writes holds
``layout_sha256``, the SHA-256 of the layout file, and ``circuit_sha256``, that of ``circuit.json`` if the
workspace's circuit was used: a DRC report in its description, an LVS database, LEF or SPICE file in a comment, a PNG
picture in a ``tEXt`` chunk, a JSON file in a field. ``sha256sum layout.gds`` prints the value to compare with.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.errors import FileError
from layoutkit.layout import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from klayout import rdb

LAYOUT = "layout_sha256"
CIRCUIT = "circuit_sha256"
MAX_REPORT_BYTES = 1 << 28
_NOTE = re.compile(rb"(layout_sha256|circuit_sha256)\W{1,4}([0-9a-f]{64})(?![0-9a-f])")
_PNG_NOTE = re.compile(rb"tEXt(layout_sha256|circuit_sha256)\0([0-9a-f]{64})")  # a checksum follows, of any bytes
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_PNG_HEAD_BYTES = 33  # the magic number and the chunk IHDR, which must come first
_LVSDB_MAGIC = b"#%lvsdb"
_LEF_MAGIC = b"VERSION "
MAX_PLACES = 100_000  # of one cell; a violation in a cell below is one at each place of that cell


def sha256_of(path: str | os.PathLike[str]) -> str | None:
    """Return the SHA-256 of the file ``path`` as hexadecimal digits; None if it is not a regular file."""
    digest = hashlib.sha256()
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - reading a pipe would block forever
            return None
        with open(path, "rb") as stream:  # noqa: PTH123 - hashed in pieces because it may be large
            while piece := stream.read(1 << 20):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def noted(report: bytes, sources: Mapping[str, str]) -> bytes:
    """Return ``report`` with the digests of its sources added.

    Args:
        report: A KLayout report database, a KLayout LVS database, a PNG picture, LEF, SPEF or SPICE text.
        sources: ``LAYOUT``, ``CIRCUIT`` or both, each with a SHA-256 as hexadecimal digits; if empty, nothing is added.
    """
    if not sources:
        return report
    if report.startswith(_PNG_MAGIC):
        chunks = b"".join(_png_text(name, value) for name, value in sorted(sources.items()))
        return report[:_PNG_HEAD_BYTES] + chunks + report[_PNG_HEAD_BYTES:]
    words = [f"{name}={value}" for name, value in sorted(sources.items())]
    if report.lstrip().startswith(b"<"):
        return report.replace(b"</description>", f" [{', '.join(words)}]</description>".encode(), 1)
    sign = "#" if report.startswith((_LVSDB_MAGIC, _LEF_MAGIC)) else "//" if report.startswith(b"*SPEF") else "*"
    head, _, rest = report.partition(b"\n")
    return b"\n".join([head, *(f"{sign} {word}".encode() for word in words), rest])


def sources_of(path: str | os.PathLike[str]) -> dict[str, str] | None:
    """Return the digests of the sources stated in the report ``path``, {} if none; None if there is no such file."""
    try:
        report = files.read_bytes(path, max_bytes=MAX_REPORT_BYTES)
    except FileError:
        return None if not os.path.isfile(path) else {}  # noqa: PTH113
    found: dict[str, str] = {}
    pattern = _PNG_NOTE if report.startswith(_PNG_MAGIC) else _NOTE
    for name, value in pattern.findall(report):
        found.setdefault(name.decode(), value.decode())
    return found


def _png_text(name: str, value: str) -> bytes:
    body = b"tEXt" + name.encode() + b"\0" + value.encode()
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def shapes_of(item: rdb.RdbItem) -> Iterator[kdb.DPolygon | kdb.DEdge | kdb.DEdgePair]:
    """Yield the shapes that an item holds, boxes and paths as polygons. [um]"""
    for value in item.each_value():
        if value.is_polygon():
            yield value.polygon()
        elif value.is_box():
            yield kdb.DPolygon(value.box())
        elif value.is_edge_pair():
            yield value.edge_pair()
        elif value.is_edge():
            yield value.edge()
        elif value.is_path():
            yield value.path().polygon()


def places_of(reported: rdb.RdbCell, top: kdb.Cell) -> list[kdb.DCplxTrans]:
    """Return the transformations of a reported cell in ``top``, none where ``top`` does not hold it. [um]

    A cell that the layout lacks is a variant that the application made: the report names its places, or it is ``top``.
    """
    layout = top.layout()
    cell = layout.cell(reported.name())
    if cell is None:
        return [reference.trans() for reference in reported.each_reference()] or [kdb.DCplxTrans()]
    if cell.cell_index() == top.cell_index():
        return [kdb.DCplxTrans()]
    places: list[kdb.DCplxTrans] = []
    instances = top.begin_instances_rec()
    instances.targets = [cell.cell_index()]
    while not instances.at_end() and len(places) < MAX_PLACES:
        places.append(instances.dtrans() * instances.inst_dtrans())
        instances.next()
    return places


def report_bytes(database: rdb.ReportDatabase, sources: Mapping[str, str] | None = None) -> bytes:
    """Return a report database as the bytes of a file, with the digests of its sources."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.lyrdb"
        database.save(str(file))
        return noted(file.read_bytes(), sources or {})
