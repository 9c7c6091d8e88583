"""Reading netlist text from disk: bounded in size, regular files only, never binary."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from layoutkit.errors import FileError

MAX_NETLIST_BYTES = 16 * 1024 * 1024

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
    r"|(?:ahdl_)?include[ \t]+([\"'])[^\"'\n]*\1(?=[ \t\r]*(?:$|section\b|//))"  # PHP: include 'a.php';
    rf"|{_NAME}(?:[ \t]+{_NET}){{2,}}[ \t]+(?:w|l|m|nf|ng|r|c)[ \t]*=[ \t]*['{{(]?[-+\d.a-z]"  # M1 d g s b nmos w=1u
    rf"|[rclvi](?:\w*\d\w*|\w{{0,2}})(?:[ \t]+{_NET}){{2}}[ \t]+[-+]?\.?\d"  # R1 a b 1k
    rf"|[mxdqj]\w*\d\w*(?:[ \t]+{_NET}){{3,}})",  # X1 a b amplifier
    re.IGNORECASE | re.MULTILINE,
)


def is_netlist(text: str) -> bool:
    """Return whether some line of a text is one of a SPICE, CDL or Spectre netlist.

    An error about any other file must not quote it: it may be secret, and the caller may have no right to read it.
    """
    return _NETLIST_LINE.search(text) is not None


def read_text(path: str | Path, *, limit: int = MAX_NETLIST_BYTES) -> str:
    """Return the text of a netlist file.

    Args:
        path: File to read. Pipes, devices and folders are refused before they are opened.
        limit: Largest size accepted. [bytes]

    Raises:
        FileError: If the file is missing, not a regular file, unreadable, too large, or not text.
    """
    shown = str(path)
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
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Schematic tools of the nineties wrote comments in Latin-1; names are ASCII all the same.
        return data.decode("latin-1")
