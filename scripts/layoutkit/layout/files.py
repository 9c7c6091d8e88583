"""Read layouts from untrusted files, and write files atomically.

Reading always ends: sizes are limited, and OASIS, where 300 corrupt bytes can hang KLayout's reader, is first read in
a process that can be killed. GDSII is read directly, since KLayout's GDSII reader returned on every corrupt file tried.
The format is determined from the content, not from the file name. A layout is returned only if it is complete and
within the limits of ``layoutkit.layout.bounds``.

Writing is deterministic (no timestamps, cells and layers in name order) and atomic (a part file, synced and renamed).
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, Literal

from layoutkit.errors import FileError, KlayoutError
from layoutkit.layout.bounds import gds_faults, layout_faults
from layoutkit.layout.cells import check_cell_name, copy_content, sorted_layers
from sturdy.atomic_files import replace_file, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import klayout.db as kdb

    PathLike = str | os.PathLike[str]

LayoutFormat = Literal["GDS2", "OASIS"]

BASE_TIMEOUT_S = 10.0
TIMEOUT_S_PER_BYTE = 1e-6
DEFAULT_MAX_BYTES = 1 << 29
MAX_MEMORY = 3 << 29
"""Memory that reading one file may take beyond what the process has. [bytes]"""
PROBE_MEMORY_BYTES = 2 << 30  # address space of the process that tries to read an OASIS file

_FORMAT_OF_SUFFIX: dict[str, LayoutFormat] = {".gds": "GDS2", ".gds2": "GDS2", ".oas": "OASIS", ".oasis": "OASIS"}
_GDS_MAGIC = b"\x00\x06\x00\x02"
_OASIS_MAGIC = b"%SEMI-OASIS\r\n"
_GZIP_MAGIC = b"\x1f\x8b"
_OUT_OF_MEMORY = f"it is corrupt, or reading it needs more than the allowed {MAX_MEMORY >> 20} MiB of memory"
_DBU_RANGE_UM = (1e-6, 1e3)

# Runs in the child, with the module search path of the parent, a memory limit, and an alarm that ends the child even
# if the parent has been killed (KLayout holds the GIL, but SIGALRM's default action needs no Python).
_PROBE = """
import sys
sys.path[:] = sys.argv[3:]
try:
    import resource, signal
    signal.alarm(int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
except (ImportError, AttributeError, ValueError, OSError):
    pass
import klayout.db as kdb
from layoutkit.layout.bounds import layout_faults
options = kdb.LoadLayoutOptions()
options.warn_level = 0
layout = kdb.Layout(False)  # keeps repetitions as they are; an editable layout expands them
try:
    layout.read_bytes(sys.stdin.buffer.read(), options)
    faults = layout_faults(layout)
except (RuntimeError, UnicodeDecodeError, MemoryError) as error:
    sys.stderr.buffer.write(b"\\0" + str(error).encode("utf-8", "replace"))
    sys.exit(1)
if faults:
    sys.stderr.buffer.write(b"\\0" + "; ".join(faults).encode("utf-8", "replace"))
    sys.exit(2)
"""


def read_layout(path: PathLike, *, timeout_s: float | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> kdb.Layout:
    """Return the layout that the GDSII or OASIS file ``path`` holds, gzipped or not.

    Args:
        path: File to read; its format is determined from the content, not from the name.
        timeout_s: Time limit for reading an OASIS file; ``None``: 10 s plus 1 s per megabyte. [s]
        max_bytes: Maximum size before and after decompression. [bytes]

    Raises:
        FileError: If the file is missing, not a regular file, empty, neither GDSII nor OASIS, truncated, corrupt,
            too large, takes longer to read than ``timeout_s`` or more than ``MAX_MEMORY``, refers to a cell that it
            does not contain, or exceeds a limit of ``layoutkit.layout.bounds``.
    """
    try:
        with _memory_limit():
            return _read(path, timeout_s, max_bytes)
    except MemoryError as error:
        raise _unreadable(path, _OUT_OF_MEMORY) from error


def _read(path: PathLike, timeout_s: float | None, max_bytes: int) -> kdb.Layout:
    """Return the layout of a file, as ``read_layout``."""
    data = read_bytes(path, max_bytes=max_bytes)
    if data.startswith(_GZIP_MAGIC):
        data = _unzipped(path, data, max_bytes)
    if data.startswith(_OASIS_MAGIC):
        limit_s = BASE_TIMEOUT_S + TIMEOUT_S_PER_BYTE * len(data) if timeout_s is None else timeout_s
        _prove_readable(path, data, limit_s)
    elif not data.startswith(_GDS_MAGIC):
        raise _unreadable(path, "it is neither GDSII nor OASIS; give a layout written as .gds or .oas")
    else:
        _refuse(path, gds_faults(data))
    import klayout.db as kdb

    options = kdb.LoadLayoutOptions()
    options.warn_level = 0  # KLayout prints warnings to stdout, where the result envelope belongs
    layout = kdb.Layout()
    try:
        layout.read_bytes(data, options)
        faults = layout_faults(layout)  # reads names, which may be no text
    except (RuntimeError, UnicodeDecodeError) as error:
        raise _unreadable(path, _reader_reason(str(error))) from error
    if not _DBU_RANGE_UM[0] <= layout.dbu <= _DBU_RANGE_UM[1]:
        raise _unreadable(path, f"its database unit of {layout.dbu:g} um is not usable")
    _refuse(path, faults)
    return layout


@contextmanager
def _memory_limit() -> Iterator[None]:
    """Limit the memory of this process to ``MAX_MEMORY`` more than it has, where the system can.

    An allocation beyond it fails with MemoryError, or with std::bad_alloc inside KLayout.
    """
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
        most = pages * resource.getpagesize() + MAX_MEMORY
        if soft == resource.RLIM_INFINITY or most < soft:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, AttributeError, ValueError, OSError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def read_bytes(path: PathLike, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Return the content of the regular, non-empty file ``path``.

    Raises:
        FileError: If the file is missing, a folder, a pipe or device, empty, unreadable or larger than ``max_bytes``.
    """
    try:
        status = Path(path).stat()
        if S_ISDIR(status.st_mode):
            raise _unreadable(path, "it is a folder; give a file")
        if not S_ISREG(status.st_mode):
            raise _unreadable(path, "it is not a regular file")
        if status.st_size > max_bytes:
            raise _unreadable(path, f"it has {status.st_size} bytes, more than the allowed {max_bytes}")
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise _unreadable(path, "no such file") from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, _os_reason(error)) from error
    if not data:
        raise _unreadable(path, "it is empty")
    return data


def write_layout(layout: kdb.Layout, path: PathLike) -> int:
    """Write ``layout`` to ``path`` and return the size of the file in bytes.

    The same cells, layers and shapes give the same bytes, whatever the order in which cells and layers were created.

    Args:
        layout: What to write; it is not changed.
        path: Target, whose suffix selects the format: .gds .gds2 .oas .oasis, optionally followed by .gz.

    Raises:
        FileError: If the suffix is unknown or the target cannot be written.
        LayoutkitError: If GDSII cannot hold a cell's name.
        KlayoutError: If KLayout's writer refuses the layout.
    """
    layout_format, zipped = format_of(path)
    check_target(path)
    data = layout_bytes(layout, layout_format)
    if zipped:
        data = zipped_bytes(data)
    write_bytes(path, data)
    return len(data)


def layout_bytes(
    layout: kdb.Layout, layout_format: LayoutFormat, *, dbu_um: float | None = None, user_unit_um: float = 1.0
) -> bytes:
    """Return ``layout`` as the bytes of a GDSII or OASIS file.

    Args:
        layout: What to write; it is not changed.
        layout_format: "GDS2" or "OASIS".
        dbu_um: Database unit of the file, to which KLayout rounds; ``None``: that of the layout. [um]
        user_unit_um: The user unit that GDSII's UNITS record names. [um]

    Raises:
        LayoutkitError: If GDSII cannot hold a cell's name.
        KlayoutError: If KLayout's writer refuses the layout.
    """
    import klayout.db as kdb

    options = kdb.SaveLayoutOptions()
    options.format = layout_format
    options.dbu = layout.dbu if dbu_um is None else dbu_um
    options.write_context_info = False  # KLayout 0.28 refuses files that hold it
    options.gds2_write_timestamps = False
    options.gds2_user_units = user_unit_um
    if layout_format == "GDS2":
        for cell in layout.each_cell():
            check_cell_name(cell.name)
    try:
        data: bytes = _in_name_order(layout).write_bytes(options)
    except RuntimeError as error:
        reason = str(error).removesuffix(" in Layout.write_bytes")
        raise KlayoutError(f"KLayout cannot write this layout as {layout_format}: {reason}") from error
    return data


def zipped_bytes(data: bytes) -> bytes:
    """Return ``data`` as a gzip file without a timestamp."""
    return gzip.compress(data, mtime=0)


def format_of(path: PathLike) -> tuple[LayoutFormat, bool]:
    """Return the layout format for the suffix of ``path``, and whether the file is to be gzipped.

    Raises:
        FileError: If the suffix is none of .gds .gds2 .oas .oasis, optionally followed by .gz.
    """
    name = Path(path).name.lower()
    zipped = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in _FORMAT_OF_SUFFIX:
        known = ", ".join(sorted(_FORMAT_OF_SUFFIX))
        raise FileError(
            f"the suffix of {os.fspath(path)!r} is not that of a layout format: use {known}, or one of these with .gz",
            details={"path": os.fspath(path), "suffixes": sorted(_FORMAT_OF_SUFFIX)},
        )
    return _FORMAT_OF_SUFFIX[suffix], zipped


def check_target(path: PathLike) -> Path:
    """Return ``path`` with symbolic links resolved, after checking that a file can be written there.

    Raises:
        FileError: If it is a folder or a device, is write-protected, or its folder is missing or not writable.
    """
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise _unwritable(path, "it is a folder; give the name of a file")
        if target.exists() and not target.is_file():
            raise _unwritable(path, "it is not a regular file")
        if target.exists() and not os.access(target, os.W_OK):
            raise _unwritable(path, "the file is write-protected")
        if not target.parent.is_dir():
            raise _unwritable(path, f"the folder {target.parent} does not exist; create it first")
        if not os.access(target.parent, os.W_OK):
            raise _unwritable(path, f"the folder {target.parent} is not writable")
    except (OSError, ValueError, RuntimeError) as error:
        raise _unwritable(path, _os_reason(error)) from error
    return target


def make_folder(path: PathLike) -> None:
    """Create a folder and those above it, unless it exists.

    Raises:
        FileError: If it cannot be created.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"cannot create the folder {os.fspath(path)}: {_os_reason(error)}", details={"path": os.fspath(path)}
        ) from error


def write_bytes(path: PathLike, data: bytes) -> None:
    """Write ``data`` to ``path``, so that readers see either the old or the complete new file, also after a crash.

    Raises:
        FileError: If the target cannot be written; then an old file stays as it is and no other file remains.
    """
    target = check_target(path)
    try:
        replace_file(target, data)
        with suppress(OSError):  # some file systems do not sync folders; the file itself is whole
            sync_folder(target.parent)
    except OSError as error:
        raise _unwritable(path, _os_reason(error)) from error


def write_text(path: PathLike, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``; see ``write_bytes``."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: PathLike, value: Any) -> None:
    """Write ``value`` as indented JSON with sorted keys to ``path``; see ``write_bytes``."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def _in_name_order(layout: kdb.Layout) -> kdb.Layout:
    """Return a copy whose layers, cells and instances were created in sorted order; the bytes depend on the order."""
    import klayout.db as kdb

    ordered = kdb.Layout()
    ordered.dbu = layout.dbu
    if layout.prop_id:
        ordered.prop_id = ordered.properties_id(layout.properties(layout.prop_id))
    sources = sorted(layout.each_cell(), key=lambda cell: cell.name)
    for info in sorted_layers(layout):
        if any(not cell.shapes(layout.layer(info)).is_empty() for cell in sources):
            ordered.layer(info)
    index = {cell.cell_index(): ordered.create_cell(cell.name).cell_index() for cell in sources}
    for cell in sources:
        copy_content(cell, ordered.cell(index[cell.cell_index()]), index)
    return ordered


def _unzipped(path: PathLike, data: bytes, max_bytes: int) -> bytes:
    """Return the content of the gzip member ``data``, at most ``max_bytes``."""
    decoder = zlib.decompressobj(wbits=31)
    try:
        content = decoder.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise _unreadable(path, f"its gzip data is corrupt ({error})") from error
    if len(content) > max_bytes:
        raise _unreadable(path, f"it unzips to more than the allowed {max_bytes} bytes")
    if not decoder.eof:
        raise _unreadable(path, "its gzip data is truncated")
    return content


def _prove_readable(path: PathLike, data: bytes, timeout_s: float) -> None:
    """Check that a process can read ``data`` within ``timeout_s``, after which it is killed."""
    arguments = [str(int(timeout_s) + 2), str(PROBE_MEMORY_BYTES), *sys.path]
    try:
        outcome = subprocess.run(
            [sys.executable, "-c", _PROBE, *arguments], input=data, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _unreadable(
            path, f"the reader did not finish within {timeout_s:g} s; the file is corrupt or far too large"
        ) from error
    except OSError as error:
        raise KlayoutError(f"cannot start a process to read {os.fspath(path)}: {_os_reason(error)}") from error
    if outcome.returncode != 0:
        _, _, report = outcome.stderr.rpartition(b"\0")
        reason = report.decode("utf-8", "replace") if outcome.returncode in {1, 2} else "the reader crashed"
        raise _unreadable(path, reason if outcome.returncode == 2 else _reader_reason(reason))


def _refuse(path: PathLike, faults: list[str]) -> None:
    if faults:
        raise _unreadable(path, "; ".join(faults))


def _reader_reason(message: str) -> str:
    """Return KLayout's message without its internal details."""
    if "topological_sort" in message:
        return "a cell contains itself"
    if "bad_alloc" in message:
        return _OUT_OF_MEMORY
    reason = message.replace(", in file: data", "").removesuffix(" in Layout.read_bytes").strip()
    return f"it is truncated or corrupt ({reason or 'no reason given'})"


def _os_reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _unreadable(path: PathLike, reason: str) -> FileError:
    return FileError(f"cannot read {os.fspath(path)}: {reason}", details={"path": os.fspath(path), "reason": reason})


def _unwritable(path: PathLike, reason: str) -> FileError:
    return FileError(f"cannot write {os.fspath(path)}: {reason}", details={"path": os.fspath(path), "reason": reason})
