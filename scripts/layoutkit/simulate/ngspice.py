"""Runs ngspice on one deck: in a folder of its own, within a time limit, without the user's start-up files.

ngspice runs commands that a netlist contains (``.control``, ``shell``) and reads files that it names. Of the netlists
and decks of users, only cards of devices, subcircuits, parameters and, in a deck, analyses and measurements pass; any
other card is an error that names its line. The models come through ``device_models``, which copies models and
parameters only.

The raw file holds one part for each analysis: a header in text and, after ``Binary:``, one record of doubles a point,
pairs of doubles where the values are complex. (ngspice manual, chapter "rawfile".)
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from layoutkit.errors import LayoutkitError, NetlistError, UnsupportedOperationError, listed
from layoutkit.other_programs import LOG, OtherProgram, ProgramRun, run_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MAX_TEXT = 64 << 20
DEVICES = frozenset("rclmqdjxkviefgh")
"""First letters of the devices that pass. Code models (a), expressions as sources (b) and others are refused."""
IN_NETLISTS = frozenset({".subckt", ".ends", ".param", ".global", ".end"})
IN_DECKS = frozenset(
    {".op", ".ac", ".dc", ".tran", ".tf", ".noise", ".meas", ".measure", ".ic", ".nodeset", ".temp", ".option",
     ".options", ".save", ".print", ".model", ".func"}
)  # fmt: skip
_SET = re.compile(r"([a-z_]\w*)\s*=(?!=)")
_WIDTH = re.compile(r"(\sw\s*=\s*)(\d[\d.]*(?:e[+-]?\d+)?)(?=[a-z]*(?:\s|$))", re.IGNORECASE)
_FINGERS = re.compile(r"\snf\s*=\s*(\d+)(?:\s|$)", re.IGNORECASE)
_DIRECTIVE = re.compile(r"^\s*\.(subckt|ac|dc|tran|op|tf|noise|meas|measure)\b", re.IGNORECASE | re.MULTILINE)
_INSIDE = 1 + 1e-7
"""ngspice takes the model of a transistor by the width of its fingers, W/nf, which rounding puts below the narrowest
model where it is exactly that wide, such as 4.2 um over ten fingers of 0.42 um."""
_REFUSED_WORDS = re.compile(r"\b(file|filename|input_file|path)\s*=|`|\$\(|;\s*shell\b", re.IGNORECASE)
MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class CardNetlist:
    """A netlist whose every card is of an allowed kind.

    Attributes:
        cell: Name of its top subcircuit, as spelled.
        ports: The ports of that subcircuit, in order.
        models: Names that its device cards call and it does not define itself.
        text: The cards, one a line, without comments.
    """

    cell: str
    ports: tuple[str, ...]
    models: frozenset[str]
    text: str


def read_cards(text: str, where: str, cell: str = "", ignored: Sequence[str] = ()) -> CardNetlist:
    """Return a netlist that ngspice may read.

    Args:
        text: Cards of subcircuits.
        where: What the text is, for messages.
        cell: The subcircuit to simulate, without regard to case; empty for the last one defined.
        ignored: Parameters to leave out.

    Raises:
        NetlistError: If a card is of another kind, or there is no such subcircuit; all faulty lines are named.
    """
    check_is_netlist(text, where)
    cards = harmless_cards(text, where, IN_NETLISTS)
    if ignored:
        cards = [re.sub(rf"\s(?:{'|'.join(ignored)})\s*=\s*\S+", "", card, flags=re.IGNORECASE) for card in cards]
    cards = [_inside_of_its_model(card) for card in cards]
    headers = [words for words in map(str.split, cards) if len(words) > 1 and words[0].lower() == ".subckt"]
    subcircuits = {words[1].lower(): words[1:] for words in headers}
    if not subcircuits or (cell and cell.lower() not in subcircuits):
        has = listed(words[0] for words in subcircuits.values()) or "none"
        raise NetlistError(f"{where} has no subcircuit {cell or 'at all'}; it has {has}")
    head = subcircuits[cell.lower()] if cell else list(subcircuits.values())[-1]
    ports = tuple(word for word in head[1:] if "=" not in word and word.lower() != "params:")
    return CardNetlist(head[0], ports, called_models(cards), "\n".join(cards) + "\n")


def _inside_of_its_model(card: str) -> str:
    """Return a card of a transistor with several fingers with a width that is larger by far less than an atom."""
    fingers = _FINGERS.search(card)
    if fingers is None or int(fingers[1]) < 2:
        return card
    return _WIDTH.sub(lambda match: f"{match[1]}{float(match[2]) * _INSIDE:.14g}", card)


def called_models(cards: Iterable[str]) -> frozenset[str]:
    """Return the lowercase models and subcircuits that device cards call and that ``cards`` do not define.

    A value may be a parameter: the names that ``.param`` sets are none of them.
    """
    called: set[str] = set()
    defined: set[str] = set()
    for card in cards:
        words = card.lower().split()
        if words[0] in (".subckt", ".model"):
            defined.update(words[1:2])
        elif words[0] == ".param":
            defined.update(_SET.findall(card.lower()))
        elif not words[0].startswith("."):
            called.update(_called(card))
    return frozenset(called - defined)


def check_is_netlist(text: str, where: str) -> None:
    """Refuse a file that is no netlist before any message quotes it: it may be any file.

    Raises:
        NetlistError: If it is binary, or no line is a directive that every netlist or deck has.
    """
    if "\0" in text:
        raise NetlistError(f"{where} is binary, not text: it contains NUL")
    if _DIRECTIVE.search(text) is None:
        raise NetlistError(
            f"{where} has no subcircuit and no analysis: no line of it is a directive such as .subckt, .tran or .meas"
        )


def harmless_cards(text: str, where: str, commands: Iterable[str]) -> list[str]:
    """Return the cards of a text, continuation lines joined, without comments, title and ``.end``.

    Args:
        text: SPICE.
        where: What the text is, for messages.
        commands: Words with a dot that may begin a card.

    Raises:
        NetlistError: If the text is too long or a card is of another kind; the first ten are named.
    """
    if len(text) > MAX_TEXT:
        raise NetlistError(f"{where} has {len(text)} characters, at most {MAX_TEXT} are read")
    allowed, cards, faults = frozenset(commands), [], []
    for number, card in _joined(text):
        word = card.split(None, 1)[0].lower()
        known = word in allowed if word.startswith(".") else word[0] in DEVICES
        if not known or _REFUSED_WORDS.search(card):
            faults.append(f"line {number}: {word[:20]}")
        elif word != ".end":
            cards.append(card)
    if faults:
        more = f" and {len(faults) - 10} more" if len(faults) > 10 else ""
        raise NetlistError(
            f"{where} holds cards that are not simulated: {'; '.join(faults[:10])}{more}; allowed are "
            f"{' '.join(sorted(allowed))} and devices {' '.join(sorted(DEVICES))}; no commands, files or code models",
            details={"lines": faults[:100]},
        )
    return cards


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each card: no comment, continuation lines joined."""
    start, card = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.split(r"(?<!\S)[$;]", raw.strip(), maxsplit=1)[0].strip()
        if not line or line.startswith("*"):
            continue
        if line.startswith("+") and card:
            card += " " + line[1:].strip()
            continue
        if card:
            yield start, card
        start, card = number, line
    if card:
        yield start, card


def _called(card: str) -> Iterator[str]:
    """Yield the lowercase names after the nodes of a device card, one of which is its model or subcircuit."""
    letter = card[0].lower()
    words = [word for word in card.split()[1:] if "=" not in word and word.lower() != "params:"]
    if letter == "x" and words:
        yield words[-1].lower()
    elif letter == "m" and len(words) > 4:
        yield words[4].lower()
    elif letter in "dj" and len(words) > (2 if letter == "d" else 3):
        yield words[2 if letter == "d" else 3].lower()
    elif letter == "q":  # three or four nodes, the model, then perhaps an area
        yield from [word.lower() for word in words[3:] if not word[0].isdigit()][-1:]
    elif letter in "rc" and len(words) > 2 and words[2][0].isalpha():
        yield words[2].lower()


@dataclass(frozen=True)
class Plot:
    """The result of one analysis.

    Attributes:
        name: What ngspice calls it, such as ``AC Analysis``.
        vectors: Name in lowercase, such as ``v(out)``, to its values; the first one is the scale.
    """

    name: str
    vectors: Mapping[str, np.ndarray]

    @property
    def scale(self) -> np.ndarray:
        """The time, frequency or swept value of each point."""
        return np.real(next(iter(self.vectors.values())))

    def of(self, name: str) -> np.ndarray:
        """Return a vector: ``v(node)`` or ``i(source)``."""
        return self.vectors[name.lower()]


def read_raw(path: Path) -> list[Plot]:
    """Return the analyses of a raw file, none where the file is missing or cut off.

    Raises:
        ValueError: If the file is larger than a simulation of these test benches makes.
    """
    if not path.is_file():
        return []
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"the result of the simulation has {path.stat().st_size} bytes, at most {MAX_BYTES} are read")
    rest, plots = path.read_bytes(), []
    while (mark := rest.find(b"Binary:\n")) >= 0:
        header = rest[:mark].decode("utf-8", "replace").splitlines()
        plot, size = _plot(header, rest[mark + 8 :])
        if plot is None:
            break
        plots.append(plot)
        rest = rest[mark + 8 + size :]
    return plots


def _plot(header: list[str], data: bytes) -> tuple[Plot | None, int]:
    """Return one analysis and the bytes of its values."""
    fields = dict(line.split(":", 1) for line in header if ":" in line and not line.startswith("\t"))
    count, points = int(fields["No. Variables"]), int(fields["No. Points"])
    kind = np.dtype("<c16" if "complex" in fields["Flags"] else "<f8")
    size = count * points * kind.itemsize
    if not points or len(data) < size:
        return None, 0
    names = [line.split("\t")[2].lower() for line in header if line.startswith("\t")][:count]
    values = np.frombuffer(data[:size], dtype=kind).reshape(points, count)
    return Plot(fields["Plotname"].strip(), {name: values[:, i] for i, name in enumerate(names)}), size


def mean_over_time(time: np.ndarray, values: np.ndarray) -> float:
    """Return the mean of values at uneven times, straight lines between them."""
    return float(np.sum((values[1:] + values[:-1]) / 2 * np.diff(time)) / (time[-1] - time[0]))


PROGRAM_VARIABLE = "ANALOG_LAYOUT_NGSPICE"
DEFAULT_TIMEOUT_S = 300.0
NGSPICE = OtherProgram(
    "ngspice",
    "circuits are simulated by ngspice",
    "install ngspice (Debian: apt-get install ngspice; others: https://ngspice.sourceforge.io) and put it on PATH, "
    f"or name its program in ${PROGRAM_VARIABLE}",
    PROGRAM_VARIABLE,
)
SETTINGS = ("set ngbehavior=hsa", "set ng_nomodcheck", "set no_auto_gnd", "set num_threads=1")
"""Settings with which ngspice reads the models of every PDK. A net called gnd is not node 0."""
_MAX_LOG = 200_000
_TROUBLE = re.compile(
    r"error|unknown|can't find|could not find|cannot find|undefined|singular matrix|too small|no convergence|"
    r"not converge|failed|aborted|no such|too many|too few",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"^(note|warning|no\. of|reducing trtol|doing analysis|trying gmin|supplies reduced)", re.IGNORECASE
)


class SimulationError(LayoutkitError):
    """ngspice did not finish a deck; the message holds what it said."""

    default_code = "UNSUPPORTED_OPERATION"


@dataclass(frozen=True)
class Start:
    """How ngspice is started.

    Attributes:
        osdi: Compiled Verilog-A models to load.
        seed: Seed of the random numbers in the models; 0 for ngspice's own.
        timeout_s: Longest time of one run. [s]
    """

    osdi: tuple[str, ...] = ()
    seed: int = 0
    timeout_s: float = DEFAULT_TIMEOUT_S

    def lines(self) -> list[str]:
        """Return the start-up file."""
        return [*SETTINGS, *(f"osdi '{path}'" for path in self.osdi)]


@lru_cache
def ngspice_version(program: str) -> str:
    """Return what ngspice calls itself, such as ``ngspice-39``; empty where it does not say."""
    done = subprocess.run(
        [program, "--version"], capture_output=True, timeout=30, check=False, stdin=subprocess.DEVNULL
    )
    found = re.search(rb"ngspice-[\w.+]+", done.stdout)
    return found[0].decode() if found else ""


@lru_cache
def loads_osdi(program: str, paths: tuple[str, ...]) -> str:
    """Return why ngspice cannot load these compiled models; empty if it can."""
    log = _run(program, "osdi\nv1 1 0 1\n.op\n.end\n", Start(paths, timeout_s=60.0))[1]
    if "no such command" in log:
        return "this ngspice was built without OSDI (configure --enable-osdi)"
    said = [
        line.strip()
        for line in log.splitlines()
        if re.search(r"osdi.*(error|not|could)|error.*osdi", line, re.IGNORECASE)
    ]
    return f"ngspice cannot load them: {said[0][:300]}" if said else ""


def simulate(deck: str, start: Start, expected: int) -> list[Plot]:
    """Return the results of a deck's analyses, the operating point first: ngspice runs it after the others.

    Args:
        deck: Title line, cards and ``.end``.
        start: How to start ngspice.
        expected: Number of analyses in the deck.

    Raises:
        SimulationError: If fewer analyses finished; the message holds what ngspice said.
        TimeLimitError: If it took longer than allowed; its process has ended.
    """
    plots, log = _run(NGSPICE.path(), deck, start)
    if len(plots) < expected:
        raise SimulationError(f"ngspice finished {len(plots)} of {expected} analyses: {trouble(log)}")
    return sorted(plots, key=lambda plot: plot.name != "Operating Point")


def measure_log(deck: str, start: Start) -> str:
    """Return what ngspice prints for a deck with ``.meas`` cards, which it evaluates only without a raw file.

    Raises:
        TimeLimitError: If it took longer than allowed; its process has ended.
    """
    return _run(NGSPICE.path(), deck, start, raw=False)[1]


def trouble(log: str) -> str:
    """Return the lines of a log that say what went wrong, at most five."""
    lines = [line.strip() for line in re.sub(r"(Error on line:)\s+", r"\1 ", log).splitlines()]
    said = [line for line in lines if line and _TROUBLE.search(line) and not _HARMLESS.match(line)]
    return "; ".join(dict.fromkeys(line[:200] for line in said[:5])) or "it gave no reason"


def _run(program: str, deck: str, start: Start, *, raw: bool = True) -> tuple[list[Plot], str]:
    """Return the results and the log of one run."""
    with tempfile.TemporaryDirectory(prefix="simulation-") as name:
        folder = Path(name)
        (folder / "deck.cir").write_text(deck, encoding="utf-8")
        (folder / ".spiceinit").write_text("\n".join(start.lines()) + "\n", encoding="utf-8")
        command = [program, "-b", *(["-r", "results.raw"] if raw else []), "deck.cir"]
        environment = {"HOME": str(folder), "OMP_NUM_THREADS": "1"}
        in_batch_mode = ProgramRun(
            command, folder, start.timeout_s, "a simulation", environment, starts_others=False, max_bytes=MAX_BYTES
        )
        try:
            run_program(in_batch_mode)
        except UnsupportedOperationError as error:
            raise SimulationError(
                f"{error.message}; simulate a shorter time or larger steps, or save fewer voltages"
            ) from error
        with (folder / LOG).open("rb") as stream:
            log = stream.read(_MAX_LOG).decode("utf-8", "replace")
        try:
            return read_raw(folder / "results.raw"), log
        except ValueError as error:
            raise SimulationError(str(error)) from error
