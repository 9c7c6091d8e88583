"""The lines of a deck that only drive a simulation: ``.control`` blocks, and Spectre's analyses and control statements.

They are taken out before lines are split into words, because they are other languages: a script, or blocks in braces.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.circuit.readers.spice_lines import LogicalLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from layoutkit.circuit.readers.findings import Findings

_ANALYSIS_TYPES = (
    "ac acmatch alter altergroup check checklimit dc dcmatch envlp hb hbac hbnoise hbsp hbstb hbxf info lf loadpull "
    "montecarlo noise options pac paramset pdisto pnoise psp pss pstb pxf pz qpac qpnoise qpsp qpss qpxf reliability "
    "sens set shell sp stb sweep tdr thermal tran xf"
)
_ANALYSES = frozenset(_ANALYSIS_TYPES.split())
"""Types of Spectre's analyses and of its other named statements for a simulation."""
_CONTROL = frozenset(["assert", "correlate", "export", "ic", "nodeset", "print", "save", "statistics"])
"""First words of Spectre's statements without a name."""
_DIRECTIVE_NAMES = "ac dc four ic meas measure nodeset noise op plot print probe save tf tran"
_DIRECTIVES = frozenset(f".{name}" for name in _DIRECTIVE_NAMES.split())
"""SPICE's directives whose words and pairs belong to a simulation: a name may have several values."""
_LANGUAGE = re.compile(r"simulator\s+lang\s*=\s*(\w+)", re.IGNORECASE)
_SPECTRE = re.compile(r"^[ \t]*(?:inline[ \t]+)?(?:subckt|topckt)\s", re.IGNORECASE | re.MULTILINE)
_STATED_TYPE = re.compile(r"\btype\s*=\s*\w+", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def speaks_spectre(text: str, name: str) -> bool:
    """Return whether a file begins in Spectre's language: by its suffix, or as it writes subcircuits without a dot."""
    if name.lower().endswith(".scs"):
        return True
    return _LANGUAGE.search(text) is None and _SPECTRE.search(text) is not None


def circuit_lines(lines: Iterable[LogicalLine], findings: Findings, *, spectre: bool) -> Iterator[LogicalLine]:
    """Yield the lines that may belong to the circuit; what is left out goes to the findings.

    Args:
        lines: Lines of one file.
        findings: Receives what is left out, and blocks that are not closed.
        spectre: Whether the file begins in Spectre's language; ``simulator lang=spice`` changes it.
    """
    waiting = iter(lines)
    for line in waiting:
        language = _LANGUAGE.match(line.text)
        if language is not None:
            spectre = language[1].lower() == "spectre"
        head = line.text.split(maxsplit=1)[0].lower()
        if head == ".control":
            _leave_out_script(line, waiting, findings)
            continue
        if head in _DIRECTIVES:
            yield replace(line, text=head)
            continue
        kind = _spectre_kind(line.text, head) if spectre else ""
        if not kind:
            yield line
            continue
        block = _whole_block(line, waiting)
        if block.count("{") > block.count("}"):
            findings.fault(f"line {line.number}", f"the block of {kind} is never closed; write }}")
        if kind == "model":
            stated = _STATED_TYPE.search(block)
            yield LogicalLine(line.number, f"{block.partition('{')[0]} {stated[0] if stated else ''}")
        elif kind == "if":
            findings.fault(f"line {line.number}", "if is not supported: it chooses devices by condition")
        else:
            findings.leave_out(kind)


def _spectre_kind(text: str, head: str) -> str:
    """Return what a Spectre statement is that is no part of the circuit; ``model`` where it has a block; else empty."""
    if head in _CONTROL or head.startswith("if("):
        return "if" if head.startswith("if") else head
    if head == "if":
        return head
    if head == "model" and "{" in text:
        return head
    words = text.partition("=")[0].replace("(", " ").replace(")", " ").replace("{", " ").split()
    if "=" in text and len(words) > 1:
        words.pop()  # the name of the first parameter
    return words[-1].lower() if len(words) > 1 and words[-1].lower() in _ANALYSES else ""


def _leave_out_script(opening: LogicalLine, lines: Iterator[LogicalLine], findings: Findings) -> None:
    for line in lines:
        if line.text.lower().startswith(".endc"):
            findings.leave_out(".control")
            return
    findings.fault(f"line {opening.number}", ".control is never closed; write .endc")


def _whole_block(line: LogicalLine, lines: Iterator[LogicalLine]) -> str:
    """Return a statement with the lines up to the brace that closes its block, taken from ``lines``."""
    text = _QUOTED.sub("", line.text)
    while text.count("{") > text.count("}"):
        following = next(lines, None)
        if following is None:
            break
        text += f" {_QUOTED.sub('', following.text)}"
    return text
