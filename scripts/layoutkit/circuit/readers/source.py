"""The text of a netlist, from a file or given itself: bounded in size, regular files only, never binary.

Also black boxes: instances of empty or undefined subcircuits, kept only if the caller lists the subcircuits.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.errors import MAX_NAME, FileError, NetlistError, listed, sentences

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from layoutkit.circuit.circuit import BlackBox


MAX_NETLIST_BYTES = 16 * 1024 * 1024
NOT_IN_A_NAME = re.compile(r"[,;='\"(){}]")
"""What ``name`` in ``netlist.schema.json`` excludes."""

_DIRECTIVES = (
    "ac alter connect control data dc else end endc endif endl ends func global hdl ic if inc incl include lib macro "
    "meas measure model nodeset noise op opt option options param parameters params plot print probe prot protect save "
    "temp title tran unprot unprotect verilog width"
)
_NAME = r"[mxrcdqlvij](?:[\w.$]*\d[\w.$<>\[\]]*|\w*(?=(?:[ \t]+\S+){4}))"  # a device's: M1, or Mtail before four words
_NET = r"\(?[\w!.][\w!./<>\[\]:#+-]*\)?(?!\S)"
_NETLIST_LINE = re.compile(
    r"^[ \t]*(?:(?:\*\*[ \t]*)?\.?(?:subckt|topckt|macro)[ \t]+\S"
    rf"|\.(?:{'|'.join(_DIRECTIVES.split())})(?![\w.:({{-])|simulator[ \t]+lang"  # other languages: .end() .data:
    r"|parameters[ \t]+\w+[ \t]*=[ \t]*[-+\d.(]|model[ \t]+\w+[ \t]+\w+[ \t]+(?:\{|\w+[ \t]*=)"  # Spectre
    r"|(?:ahdl_)?include[ \t]+([\"'])[^\"'\n]*\1(?=[ \t\r]*(?:$|section\b|//))"  # PHP: include 'a.php';
    rf"|{_NAME}(?:[ \t]+{_NET}){{2,}}[ \t]+(?:w|l|m|nf|ng|r|c)[ \t]*=[ \t]*['{{(]?[-+\d.a-z]"  # M1 d g s b nmos w=1u
    rf"|[rclvi](?:\w*\d\w*|\w{{0,2}})(?:[ \t]+{_NET}){{2}}[ \t]+[-+]?\.?\d"  # R1 a b 1k
    rf"|[mxdqj]\w*\d\w*(?:[ \t]+{_NET}){{3,}})",  # X1 a b amplifier
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class NetlistText:
    """A netlist given as text instead of a file. It has no folder, so it cannot include files."""

    text: str

    name = "netlist_text"
    """What messages call it, after the parameter."""
    stem = "netlist"
    """Name of its circuit if the text contains no subcircuit, as from a file ``netlist.spice``."""

    def __str__(self) -> str:
        """Return what messages call it."""
        return self.name


def given_netlist(params: Mapping[str, Any]) -> str | NetlistText:
    """Return the netlist that a request gives as ``netlist_path`` or as ``netlist_text``.

    Raises:
        NetlistError: If it gives both or neither.
    """
    path, text = params.get("netlist_path"), params.get("netlist_text")
    if (path is None) is (text is None):
        received = "neither" if path is None else "both"
        message = (
            f"give exactly one of netlist_path (a file) and netlist_text (the netlist itself), received {received}"
        )
        raise NetlistError(message, details={"param_name": "netlist_path", "allowed": ["netlist_path", "netlist_text"]})
    return str(path) if text is None else NetlistText(text)


def is_netlist(text: str) -> bool:
    """Return whether some line of a text is one of a SPICE, CDL or Spectre netlist.

    An error about any other file must not quote it: it may be secret, and the caller may have no right to read it.
    """
    return _NETLIST_LINE.search(text) is not None


def read_text(path: str | Path | NetlistText, *, limit: int = MAX_NETLIST_BYTES) -> str:
    """Return the text of a netlist, with newlines alone between lines.

    Args:
        path: File to read, or the text itself. Pipes, devices and folders are refused before they are opened.
        limit: Largest size accepted. [bytes]

    Raises:
        FileError: If the file is missing, not a regular file or unreadable, or the netlist too large or not text.
    """
    shown = str(path)
    if isinstance(path, NetlistText):
        size = len(path.text.encode("utf-8", "surrogatepass"))
        if size > limit:
            raise FileError(
                f"{path} is too large: it has {size} bytes, at most {limit} are read",
                details={"param_name": path.name, "bytes": size, "limit": limit},
            )
        if "\0" in path.text:
            raise FileError(f"{path} is binary, not text: it contains NUL", details={"param_name": path.name})
        return _with_newlines(path.text.removeprefix("\ufeff"))
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        raise FileError(f"Netlist file not found: {shown}", details={"path": shown}) from None
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"Netlist is not a regular file: {shown}", details={"path": shown})
    if status.st_size > limit:
        raise FileError(
            f"Netlist file is too large: {shown} has {status.st_size} bytes, at most {limit} are read",
            details={"path": shown, "bytes": status.st_size, "limit": limit},
        )
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise FileError(f"Netlist file cannot be read: {shown} ({error.strerror})", details={"path": shown}) from None
    if len(data) > limit:
        raise FileError(f"Netlist file is too large: {shown} grew beyond {limit} bytes", details={"path": shown})
    if b"\0" in data:
        raise FileError(f"Netlist file is binary, not text: {shown}", details={"path": shown})
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Schematic tools of the nineties wrote comments in Latin-1; names are ASCII all the same.
        text = data.decode("latin-1")
    return _with_newlines(text)


def _with_newlines(text: str) -> str:
    """Return a text with newlines alone between lines; an ellipsis of cp1252, which reads as NEL, ends none."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


BLACK_BOX_HINT = (
    "add its content to the netlist, or list it in black_boxes, so that its instances are neither drawn nor compared"
)
_SHOWN = 5


def refuse_unknown(kind: str, cells: Mapping[str, Sequence[str]], hint: str = "") -> None:
    """Refuse the instances of empty or undefined subcircuits that are not listed as black boxes.

    Args:
        kind: ``empty`` or ``undefined``.
        cells: Name of each such subcircuit to its instances.
        hint: What to do about some of them, as the end of the message.

    Raises:
        NetlistError: If there is any; it names all of them.
    """
    if cells:
        users = sentences(
            f"'{name[:MAX_NAME]}' (used by {listed(users[:_SHOWN])}{' and more' if len(users) > _SHOWN else ''})"
            for name, users in sorted(cells.items())
        )
        unknown = ", whose devices are unknown" if kind == "empty" else ""
        raise NetlistError(
            f"{kind.capitalize()} subcircuits{unknown}: {users}. For each, {BLACK_BOX_HINT}{hint}",
            details={kind: {name: list(users[:100]) for name, users in sorted(cells.items())}},
        )


def no_top(names: Collection[str], kind: str = "", top: str = "") -> NetlistError:
    """Return the error about a ``top`` that is not among some names of cells, or about several cells without one."""
    known = sorted(names)
    text = f"Ambiguous top: choose one of {listed(known)} with the parameter 'top'"
    if top:
        text = f"Top {kind} '{top}' not found; the netlist defines {listed(known) or 'none'}"
    return NetlistError(text, details={"candidates": known})


def check_listed(names: Collection[str], found: Sequence[BlackBox]) -> None:
    """Refuse listed names that are not black boxes of the circuit, since they may be misspelt.

    Raises:
        NetlistError: If the circuit has no instance of an empty or undefined subcircuit of a listed name.
    """
    used = {box.cell.lower() for box in found}
    unused = sorted(name for name in names if name.lower() not in used)
    if unused:
        raise NetlistError(
            f"black_boxes lists {listed(unused)}: the circuit has no instance of an empty or undefined subcircuit "
            f"of that name; it has {listed(sorted({box.cell for box in found})) or 'none'}",
            details={"param_name": "black_boxes", "provided_value": unused},
        )
