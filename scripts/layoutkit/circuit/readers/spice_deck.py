"""From statements to a deck: nested subcircuit definitions, parameters, models, global nets and options.

Vectors of instances and of nets are ``XM1<1:0>``, ``a[3:0]``, ``<*2>a``, ``2*(a)``; bits are in the order of writing::
    XM1<1:0> y a<1:0> n vss nch    becomes    XM1<1> y a<1> n vss nch
                                              XM1<0> y a<0> n vss nch
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from layoutkit.circuit.readers.spice_expressions import Scope
from layoutkit.circuit.readers.spice_lines import Statement
from layoutkit.errors import MAX_NAME, NetlistError, listed, repeated
from layoutkit.technology.device_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from layoutkit.errors import Findings


GROUND_NAMES = frozenset({"0", "gnd", "gnd!"})
_MODEL_TYPES = {card: name for name, kind in KINDS.items() for card in kind.model_cards}
_OPENING = frozenset({".subckt", ".macro", "subckt", "topckt", ".topckt"})
_CLOSING = frozenset({".ends", ".eom", "ends"})
_PARAMETERS = frozenset({".param", ".params", ".parameter", ".parameters", "parameters"})
_REFUSED = {
    ".connect": "it joins nets",
    ".if": "it chooses devices by condition",
    ".del": "it removes parts of the deck",
}
_ANALYSES = frozenset({".tran", ".ac", ".dc", ".op", ".noise", ".tf", ".pz", ".sens", ".four", ".disto"})
_SPECTRE_KEYWORDS = frozenset({"simulator", "global", "model", "library", "endlibrary", "save"})
_NO_SIMULATION = frozenset({"title", "prot", "protect", "unprot", "unprotect", "library", "endlibrary"})
LIBRARY_PATH = re.compile(r"\$|pdk|(?:^|[/\\])(?:libs?|models?|corners?|libs\.\w+)[/\\]|\.lib\b", re.IGNORECASE)
"""What the path of a library has: a variable, or a folder of a kit; it defines models and cells."""
_MODEL_FILE = re.compile(
    r"model|corner|process|tech|(?:^|[_.-])(?:tt|ff|ss)\b|\.(?:mod|mdl|pm|va|osdi|l)$", re.IGNORECASE
)
_SPECTRE_TYPES = {"n": "nmos", "p": "pmos", "npn": "npn", "pnp": "pnp"}
"""``type=`` of a Spectre model to the type of a device, as most transistor models name no polarity otherwise."""
MAX_NESTED_DEFINITIONS = 40
_MICRON_SCALE = {"micron": 1e-6, "meter": 1.0}
MAX_BITS = 4096
VECTOR = re.compile(r"[<\[]\d+:\d+(?::\d+)?[>\]]")
"""What only the name of a vector contains."""
_BITS = re.compile(r"(?P<stem>[^<>\[\]]+)(?P<open>[<\[])(?P<first>\d{1,6}):(?P<last>\d{1,6})[>\]]")
_REPEATED = re.compile(r"(?:<\*(\d{1,6})>|(\d{1,6})\*)(.*)")


@dataclass
class Subcircuit:
    """One subcircuit definition; the main deck is one with an empty name.

    ``widths`` are the bits of each port as written: ``a<1:0> b`` are the ports ``a<1> a<0> b`` of widths 2 and 1.
    """

    name: str
    ports: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()
    where: str = ""
    parent: Subcircuit | None = None
    spectre: bool = False
    commented: bool = False
    is_top: bool = False
    params: dict[str, str] = field(default_factory=dict)
    cards: list[Statement] = field(default_factory=list)
    subcircuits: dict[str, Subcircuit] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Subcircuit | None:
        """Return the definition that ``name`` means here: the innermost one around."""
        key = name.lower()
        return next((scope.subcircuits[key] for scope in self._scopes() if key in scope.subcircuits), None)

    def _scopes(self) -> Iterator[Subcircuit]:
        """Yield this definition and those around it, the innermost first."""
        scope: Subcircuit | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def master_of(self, statement: Statement) -> Subcircuit | None:
        """Return the definition that a card here instantiates, None where it is a device.

        In SPICE only cards of letter X do: ``D1 a k dio`` is a diode of model ``dio``, also in a subcircuit ``dio``. In
        Spectre the name of an instance says nothing.
        """
        words = statement.words
        if len(words) < 2 or not (self.spectre or words[0][0] in "xX"):
            return None
        return self.find(words[-1])

    def model_type(self, name: str) -> str | None:
        """Return the device type that a ``.model`` card around here gives ``name``."""
        key = name.lower()
        return next((scope.models[key] for scope in self._scopes() if key in scope.models), None)


@dataclass
class Deck:
    """Everything one netlist defines.

    ``missing_parts`` are files that the main deck includes and that may hold devices, by the place of the statement.
    """

    main: Subcircuit
    globals: dict[str, str] = field(default_factory=dict)
    scale: float = 1.0
    has_analyses: bool = False
    skipped_includes: list[str] = field(default_factory=list)
    missing_parts: dict[str, str] = field(default_factory=dict)


class DeckBuilder:
    """Collects statements into a deck.

    Args:
        findings: Receives faults and warnings.
        keep_unknown: Whether a subcircuit that includes a file which is not read is taken as it is.
    """

    def __init__(self, findings: Findings, *, keep_unknown: bool = False) -> None:
        self._keep_unknown = keep_unknown
        self._findings = findings
        self._deck = Deck(Subcircuit(""))
        self._stack = [self._deck.main]
        self._altered = 0  # after .alter one more than the subcircuits that are open since

    def build(self, statements: Iterable[Statement]) -> Deck:
        """Return the deck of all statements; faults go to the findings."""
        for statement in statements:
            self._take(statement)
        self._expand_vectors(self._deck.main)
        before = " before .alter" if self._altered else ""
        while len(self._stack) > 1:
            last = self._stack[-1]
            if not last.commented:
                self._findings.fault(last.where, f"subcircuit '{last.name}' is never closed; write .ends{before}")
            self._close(Statement(last.where, (".ends",)))
        self._deck.has_analyses |= any(word == ".control" or word[0] != "." for word in self._findings.left_out)
        return self._deck

    def _expand_vectors(self, definition: Subcircuit) -> None:
        """Replace each card with vectors, here and in the definitions inside, by one card for each instance."""
        cards = []
        for card in definition.cards:
            if not any(map(is_vector, card.words)):
                cards.append(card)
                continue
            master = definition.master_of(card)
            try:
                single = single_instances(card, None if master is None else master.widths)
            except NetlistError as error:
                self._findings.fault(card.where, error.message)
                continue
            if single != [card]:
                self._findings.warn("vectors are read bit by bit", card.words[0])
            cards += single
        definition.cards[:] = cards
        for inner in definition.subcircuits.values():
            self._expand_vectors(inner)

    @property
    def _home(self) -> Subcircuit:
        """Where definitions and parameters belong: a commented-out top is the main deck to a simulator."""
        return self._stack[0] if self._stack[-1].commented else self._stack[-1]

    def _take(self, statement: Statement) -> None:
        head = statement.head
        if head == ".alter":
            self._altered = self._altered or 1
            self._findings.warn("lines after .alter describe a further simulation and are not read")
        if self._altered:
            self._altered += head in _OPENING
            self._altered -= head in _CLOSING and (self._altered > 1 or len(self._stack) > 1)
            if not self._altered:  # the subcircuit that the .alter stands in ends both
                self._close(statement)
            return
        if head in _OPENING:
            self._open(statement, statement.words)
        elif head == "inline" and len(statement.words) > 1 and statement.words[1].lower() == "subckt":
            self._open(statement, statement.words[1:])
        elif head in _CLOSING:
            self._close(statement)
        elif head in _PARAMETERS:
            self._home.params.update(statement.params)
        elif head in _REFUSED:
            self._findings.fault(statement.where, f"{head} is not supported: {_REFUSED[head]}")
        elif head == ".skipped_include":
            self._skipped_include(statement)
        elif head.startswith(".") or head in _SPECTRE_KEYWORDS:
            self._directive(statement, head.lstrip("."))
        elif statement.words:
            self._stack[-1].cards.append(statement)

    def _open(self, statement: Statement, words: tuple[str, ...]) -> None:
        if len(words) < 2:
            self._findings.fault(statement.where, f"{words[0]} has no name")
            return
        if statement.commented and len(self._stack) > 1:
            return
        if len(self._stack) > MAX_NESTED_DEFINITIONS:
            text = (
                f"subcircuit definitions are nested deeper than {MAX_NESTED_DEFINITIONS} levels; is an .ends missing?"
            )
            raise NetlistError(f"Invalid netlist: {statement.where}: {text}")
        home = self._home
        try:
            ports, widths = with_bits([word for word in words[2:] if word.lower() != "optional"])
        except NetlistError as error:
            self._findings.fault(statement.where, error.message)
            ports, widths = [], []
        definition = Subcircuit(
            name=words[1],
            ports=tuple(ports),
            widths=tuple(widths),
            where=statement.where,
            parent=home,
            spectre=not words[0].startswith("."),
            commented=statement.commented,
            is_top=words[0].lower().endswith("topckt"),
            params=dict(statement.params),
        )
        self._stack.append(definition)
        twice = repeated(ports if definition.spectre else [port.lower() for port in ports])
        if twice:
            self._findings.warn("ports listed twice are one port", f"{words[1]} ({listed(twice, joint=' ')})")

    def _close(self, statement: Statement) -> None:
        definition = self._stack[-1]
        if statement.commented and not definition.commented:
            definition.commented = True
            return
        if len(self._stack) == 1:
            self._findings.fault(statement.where, f"{statement.head} closes no subcircuit")
            return
        if len(statement.words) > 1 and statement.words[1].lower() != definition.name.lower():
            text = f"{statement.where}: {statement.head} {statement.words[1]} closes subcircuit '{definition.name}'"
            self._findings.warn(text)
        self._stack.pop()
        self._drop_comment(definition)
        if definition.commented and not definition.cards:
            return
        home = self._home
        known = home.subcircuits.get(definition.name.lower())
        if known is None:
            home.subcircuits[definition.name.lower()] = definition
        elif _same(known, definition):
            self._findings.warn("subcircuits defined twice alike are read once", definition.name)
        else:
            text = f"subcircuit '{definition.name}' is defined differently at {known.where}"
            self._findings.fault(definition.where, text)

    def _drop_comment(self, definition: Subcircuit) -> None:
        """Drop ``*words`` behind the ports, which nothing in the subcircuit is on: a comment."""
        first = next((i for i, port in enumerate(definition.ports) if port.startswith("*")), None)
        behind = {port.lower() for port in definition.ports[first:]}
        if first is not None and behind.isdisjoint(word.lower() for card in definition.cards for word in card.words):
            definition.widths = definition.widths[: bisect_right([*accumulate(definition.widths)], first)]
            definition.ports = definition.ports[:first]

    def _skipped_include(self, statement: Statement) -> None:
        name, head = statement.words[1].strip("'\"")[:MAX_NAME], statement.words[2]
        self._deck.skipped_includes.append(name)
        inside = len(self._stack) > 1 and not self._stack[-1].commented
        if inside and head != ".lib" and LIBRARY_PATH.search(name) is None and not self._keep_unknown:
            text = f"'{name}' is not read: includes must lie in the netlist's own folder"
            self._findings.fault(statement.where, f"{text}, and a subcircuit without its include would be incomplete")
            return
        known = LIBRARY_PATH.search(name) or _MODEL_FILE.search(name)
        if len(self._stack) == 1 and not (known or self._keep_unknown):
            self._deck.missing_parts[statement.where] = name
        self._findings.warn("included files that the netlist's folder does not hold are not read", name)

    def _directive(self, statement: Statement, name: str) -> None:
        words = statement.words
        if name == "model" and len(words) > 2:
            stated = _SPECTRE_TYPES.get(statement.params.get("type", "").lower(), "")
            self._home.models[words[1].lower()] = _MODEL_TYPES.get(words[2].lower(), stated)
        elif name == "global":
            self._deck.globals |= {net.split(":")[0].lower(): net.split(":")[0] for net in words[1:]}
        elif name in {"option", "options", "opt"} and "scale" in statement.params:
            try:
                self._deck.scale = Scope().value(statement.params["scale"])
            except NetlistError as error:
                self._findings.fault(statement.where, f"option scale: {error}")
        elif name == "scale" and len(words) > 1:
            self._deck.scale = _MICRON_SCALE.get(words[1].lower(), 1.0)
        elif name == "simulator":
            if not self._deck.main.cards:
                self._deck.main.spectre = statement.params.get("lang", "").lower() == "spectre"
        elif name == "func":
            self._findings.warn("user functions are not read", " ".join(words[1:2]))
        elif name not in _NO_SIMULATION:
            self._deck.has_analyses |= "." + name in _ANALYSES
            self._findings.leave_out(statement.head)


def _same(first: Subcircuit, second: Subcircuit) -> bool:
    def content(definition: Subcircuit) -> object:
        cards = [(card.words, card.params) for card in definition.cards]
        return (definition.ports, definition.params, cards, sorted(definition.subcircuits))

    return content(first) == content(second)


def is_vector(word: str) -> bool:
    """Return whether a word stands for several nets or instances."""
    return _BITS.fullmatch(word) is not None or _REPEATED.fullmatch(word) is not None


def bits(word: str) -> list[str]:
    """Return the single names that a word stands for: the word itself if it is no vector.

    Raises:
        NetlistError: If it stands for more than ``MAX_BITS``.
    """
    again = _REPEATED.fullmatch(word)
    found = _BITS.fullmatch(word)
    if again is not None and again[3]:
        count, names = int(again[1] or again[2]), bits(again[3])
        if not 0 < count * len(names) <= MAX_BITS:
            raise NetlistError(f"'{word}' has {'no' if count == 0 else f'more than {MAX_BITS}'} bits")
        return names * count
    if found is None:
        return [word]
    first, last = int(found["first"]), int(found["last"])
    if abs(first - last) >= MAX_BITS:
        raise NetlistError(f"'{word}' has more than {MAX_BITS} bits")
    step = 1 if last >= first else -1
    close = ">" if found["open"] == "<" else "]"
    return [f"{found['stem']}{found['open']}{number}{close}" for number in range(first, last + step, step)]


def with_bits(words: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the single names of all words, and how many each word stands for."""
    each = [bits(word) for word in words]
    return [name for names in each for name in names], [len(names) for names in each]


def _joined(words: Sequence[str]) -> list[str]:
    """Return words with ``2*`` and ``a``, which ``2*(a)`` was split into, as one."""
    joined: list[str] = []
    for word in words:
        if joined and re.fullmatch(r"\d+\*", joined[-1]):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def single_instances(statement: Statement, widths: Sequence[int] | None) -> list[Statement]:
    """Return a card as one card for each instance that its name stands for, with the nodes of each.

    A node as wide as its port leads to every instance; one as wide as the ports of all instances is divided among them,
    in the order of its bits, as in CDL.

    Args:
        statement: The card.
        widths: Bits of each port of the subcircuit that it instantiates; None where it is a device.

    Raises:
        NetlistError: If a node has another width.
    """
    name, *nodes = statement.words if widths is None else _joined(statement.words)
    names = bits(name)
    if len(names) == 1 and widths is not None:
        return [replace(statement, words=(name, *with_bits(nodes[:-1])[0], nodes[-1]))]
    if len(names) == 1:
        return [statement]
    if not nodes:
        raise NetlistError(f"'{name}' has no nodes")
    if statement.pins:
        raise NetlistError(f"'{name}': a vector of instances needs its nodes in order, without $PINS")
    if widths is not None and len(widths) != len(nodes) - 1:
        raise NetlistError(f"'{name}' connects {len(nodes) - 1} nodes to a subcircuit of {len(widths)} ports")
    shared: list[list[list[str]]] = []
    for node, width in zip(nodes, [*(widths or [1] * (len(nodes) - 1)), 1], strict=True):
        found = bits(node) if widths is not None or VECTOR.search(node) else [node]
        if len(found) == width:
            shared.append([found] * len(names))
        elif len(found) == width * len(names):
            shared.append([found[start : start + width] for start in range(0, len(found), width)])
        else:
            allowed = f"{width} or {width * len(names)}"
            raise NetlistError(f"'{name}': '{node}' has {len(found)} bits; {len(names)} instances need {allowed}")
    cards = []
    for number, single in enumerate(names):
        words = (word for node in shared for word in node[number])
        cards.append(replace(statement, words=(single, *words)))
    return cards
