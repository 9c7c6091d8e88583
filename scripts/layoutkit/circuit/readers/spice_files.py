"""The statements of a SPICE netlist and of the files it includes, read only from the netlist's own folder.

Lines that only drive a simulation, ``.control`` blocks and Spectre's analyses and control statements, are taken out
before lines are split into words, because they are other languages: a script, or blocks in braces.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.circuit.readers.model_names import classify_model
from layoutkit.circuit.readers.source import MAX_NETLIST_BYTES, NetlistText, is_netlist, read_text
from layoutkit.circuit.readers.spice_deck import LIBRARY_PATH
from layoutkit.circuit.readers.spice_expressions import parse_number
from layoutkit.circuit.readers.spice_lines import LogicalLine, Statement, logical_lines, split_statement
from layoutkit.errors import MAX_NAME, FileError, NetlistError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from layoutkit.errors import Findings

MAX_INCLUDE_DEPTH = 8
MAX_INCLUDED_FILES = 64

_INCLUDES = frozenset({".include", ".inc", ".incl", ".lib", "include"})
_FOREIGN_INCLUDES = frozenset({"ahdl_include", ".osdi", ".hdl", ".verilog", "pre_osdi", ".spiceinit"})
SUBCIRCUIT = re.compile(r"^[ \t]*(?:\*\*[ \t]*)?\.?(?:subckt|topckt|macro)\s+\(?(\S+)", re.IGNORECASE | re.MULTILINE)
_SECTION = re.compile(r"\w+")  # ".lib tt" opens a section of a library; ".lib models.lib" reads a file
_STATEMENT_WORDS = frozenset({"subckt", "topckt", "ends", "parameters", "simulator", "global", "model", "include"})

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


class StatementReader:
    """Reads one netlist and what it includes.

    Args:
        path: The netlist file, or the text itself.
        findings: Receives faults and warnings.
    """

    def __init__(self, path: Path | NetlistText, findings: Findings) -> None:
        self._main = path
        self._file = None if isinstance(path, NetlistText) else path.resolve()
        self._findings = findings
        self._files = 0
        self._bytes = 0
        self.included: list[Path] = []
        self.foreign = ""  # the first file without a line of a netlist

    def statements(self) -> Iterator[Statement]:
        """Yield the statements in order, includes in their place.

        What follows ``.end`` is read, too, as by ngspice: schematic tools write it before their subcircuits.

        Raises:
            FileError: If the netlist cannot be read, or includes more than the limits allow.
            NetlistError: If a file includes itself.
        """
        text = read_text(self._main)
        self._bytes = len(text)
        self._look_at(text, self._main.name)
        subcircuits = {match[1].lower() for match in SUBCIRCUIT.finditer(text)}
        lines = self._without_title(logical_lines(text), subcircuits)
        spectre = _speaks_spectre(text, str(self._main))
        if spectre:
            yield Statement("line 1", ("simulator",), {"lang": "spectre"})
        lines = _circuit_lines(lines, self._findings, spectre=spectre)
        yield from self._expand(lines, [self._file] if self._file else [], "")

    def _without_title(self, lines: Iterable[LogicalLine], subcircuits: set[str]) -> Iterator[LogicalLine]:
        """Leave out a first line that is a title: simulators always do, netlists for layout rarely have one."""
        for index, line in enumerate(lines):
            if index == 0 and line.number == 1 and not line.commented:
                if not _is_statement(line, subcircuits):
                    self._findings.warn(f"line 1 is taken as the title: {line.text[:60]}")
                    continue
                if line.text[0].isalpha() and line.text.split()[0].lower() not in _STATEMENT_WORDS:
                    self._findings.warn("line 1 is read as a device; a simulator would take it as the title")
            yield line

    def _expand(self, lines: Iterable[LogicalLine], stack: list[Path], section: str) -> Iterator[Statement]:
        inside = ""  # the section being passed, when the file is a library
        end = ""  # where it says .end
        for line in lines:
            place = f"line {line.number}" if len(stack) <= 1 else f"{stack[-1].name} line {line.number}"
            try:
                statement = split_statement(line, place)
            except NetlistError as error:
                self._findings.faults.append(error.message)
                continue
            head = statement.head
            if head == ".end":
                end = place
                continue
            if end:
                self._findings.warn("what follows .end is read, as ngspice does", f"{end}")
                end = ""
            if head in {".endl", "endsection"}:
                inside = ""
            elif (head == ".lib" and len(statement.words) == 2 and _SECTION.fullmatch(statement.words[1])) or (
                head == "section" and len(statement.words) == 2
            ):
                inside = _unquoted(statement.words[1]).lower()
            elif inside and inside != section:
                continue
            elif head in _INCLUDES:
                yield from self._include(statement, stack)
            elif head in _FOREIGN_INCLUDES:
                self._findings.warn("behavioural model files are not read", _shown(statement))
            elif statement.words:
                yield statement

    def _include(self, statement: Statement, stack: list[Path]) -> Iterator[Statement]:
        if len(statement.words) < 2:
            self._findings.fault(statement.where, f"{statement.head} names no file")
            return
        name = _unquoted(statement.words[1])
        if self._file is None and LIBRARY_PATH.search(name) is None:
            self._findings.fault(
                statement.where,
                f"netlist_text cannot include '{name[:MAX_NAME]}': a text has no folder; write the lines of that file "
                "here, or give both as files, by netlist_path",
            )
            return
        target = self._inside(stack[-1].parent / name) if stack else None
        if target is None:
            yield Statement(statement.where, (".skipped_include", name, statement.head))
            return
        if target in stack:
            raise NetlistError(f"{statement.where}: '{name}' includes itself: {' > '.join(p.name for p in stack)}")
        if len(stack) > MAX_INCLUDE_DEPTH:
            raise FileError(f"{statement.where}: includes are nested deeper than {MAX_INCLUDE_DEPTH} files")
        self._files += 1
        if self._files > MAX_INCLUDED_FILES:
            raise FileError(f"{statement.where}: more than {MAX_INCLUDED_FILES} files are included")
        text = read_text(target, limit=MAX_NETLIST_BYTES - self._bytes)
        self._bytes += len(text)
        self.included.append(target)
        self._look_at(text, name)
        wanted = statement.words[2] if len(statement.words) > 2 else statement.params.get("section", "")
        spectre = _speaks_spectre(text, target.name)
        lines = _circuit_lines(logical_lines(text), self._findings, spectre=spectre)
        yield from self._expand(lines, [*stack, target], _unquoted(wanted).strip("()").lower())

    def _look_at(self, text: str, name: str) -> None:
        """Remember the first file that is not a netlist."""
        if not self.foreign and text.strip() and not is_netlist(text):
            self.foreign = name

    def _inside(self, path: Path) -> Path | None:
        """Return the real file, or ``None`` when it does not exist or lies outside the netlist's folder."""
        try:
            real = path.resolve()
            inside = self._file is not None and real.is_relative_to(self._file.parent)
            return real if inside and real.is_file() else None
        except (OSError, ValueError, RuntimeError):  # too long, a null character, a loop of links
            return None


def _unquoted(word: str) -> str:
    return word.strip("'\"")


def _shown(statement: Statement) -> str:
    return _unquoted(statement.words[1]) if len(statement.words) > 1 else statement.head


def _is_statement(line: LogicalLine, subcircuits: set[str]) -> bool:
    """Whether a first line reads as a statement rather than as a title."""
    text = line.text
    words = text.replace("(", " ").replace(")", " ").split()
    if not text[0].isalpha() or words[0].lower() in _STATEMENT_WORDS:
        return True
    if any("=" in word for word in words):
        return True
    if words[0][0].lower() in "rclvi" and len(words) >= 4:
        return any(parse_number(word) is not None for word in words[3:])
    masters = [word.lower() for word in words[1:]]
    return len(masters) >= 3 and (masters[-1] in subcircuits or _names_a_device(words))


def _names_a_device(words: list[str]) -> bool:
    return classify_model(words[-1], on_mos_card=words[0][0] in "mM" and len(words) == 6) is not None


def _speaks_spectre(text: str, name: str) -> bool:
    """Return whether a file begins in Spectre's language: by its suffix, or as it writes subcircuits without a dot."""
    if name.lower().endswith(".scs"):
        return True
    return _LANGUAGE.search(text) is None and _SPECTRE.search(text) is not None


def _circuit_lines(lines: Iterable[LogicalLine], findings: Findings, *, spectre: bool) -> Iterator[LogicalLine]:
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
