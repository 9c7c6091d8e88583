"""From one card to a device: its type, its model and its nodes. Its sizes: ``card_sizes``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.circuit.readers.model_names import classify_model
from layoutkit.circuit.readers.spice_expressions import parse_number
from layoutkit.circuit.replaced_devices import ModelNames, undrawn_in_any_process
from layoutkit.errors import NetlistError, listed
from layoutkit.technology.device_kinds import KINDS, MOS_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.readers.spice_deck import Subcircuit
    from layoutkit.circuit.readers.spice_expressions import Scope
    from layoutkit.circuit.readers.spice_lines import Statement

SOURCE = "source"
WIRE = "wire"
UNKNOWN = "unknown"
UNDRAWN = "undrawn"

_LAST_MODEL = {"d": 3, "q": 4, "m": 5}
"""Letter of a card to the place of its model where it has the fewest nodes; `off` stands behind it."""
_IDEAL_NODES = {**dict.fromkeys("viefghbsw", 2), "t": 4, "o": 4, "u": 3, "y": 4, "k": 0, "a": -2}
"""First letter of an ideal element's card to its nodes that carry current: sources, switches, lines, couplings.

Those of a code model of XSPICE are all up to its model.
"""
_IDEAL_TYPES = (
    "vsource isource vcvs vccs cccs ccvs pvcvs pvccs pcccs pccvs bsource iprobe port vdc idc vpulse ipulse vsin isin "
    "vpwl ipwl vexp iexp psin switch relay tline mtline delay mutual_inductor transformer"
)
_IDEAL_MASTERS = frozenset(_IDEAL_TYPES.split())
_BY_LETTER: dict[str, tuple[str, ...]] = {}  # kinds whose cards begin with a letter
for _name, _kind in KINDS.items():
    if _kind.letter != "X":
        _BY_LETTER[_kind.letter.lower()] = (*_BY_LETTER.get(_kind.letter.lower(), ()), _name)


@dataclass(frozen=True)
class Card:
    """One card's meaning before its parameters are evaluated.

    ``kind`` is a device type, ``source`` (drawn by nobody), ``wire`` (a source of 0 V), ``unknown`` (an undefined
    subcircuit) or ``undrawn`` (a device of the process without a drawing).
    """

    name: str
    kind: str
    model: str
    nodes: tuple[str, ...]
    params: dict[str, str]
    where: str


def read_card(
    statement: Statement,
    definition: Subcircuit,
    scope: Scope,
    names: ModelNames | None = None,
    *,
    keep_unknown: bool = False,
) -> Card:
    """Return what a card that is not a subcircuit instance describes.

    Args:
        statement: The card.
        definition: The subcircuit that holds it.
        scope: The parameters there.
        names: What the names of models mean in the process at hand.
        keep_unknown: Whether a call whose name means a device of another number of nodes is an undefined subcircuit.

    Raises:
        NetlistError: If the card has the wrong number of nodes or its type is unknown.
    """
    name, letter = statement.words[0], statement.words[0][0].lower()
    last = _LAST_MODEL.get(letter, len(statement.words))  # earlier words are nets, even if called off
    words = [word for place, word in enumerate(statement.words) if place <= last or word.lower() != "off"]
    known = _Kinds(definition, names or ModelNames())
    words = known.with_variant(words, statement.params)
    undrawn = known.undrawn(words, statement.params)
    if undrawn:
        return Card(name, UNDRAWN, undrawn, tuple(words[1:-1]), {}, statement.where)
    spectre_type = _spectre_type(words, known) if definition.spectre else None
    if spectre_type is not None:
        kind, model, nodes, params = spectre_type, words[-1], words[1:-1], dict(statement.params)
        kind = WIRE if kind == SOURCE and _is_spectre_wire(model.lower(), nodes, params, scope) else kind
    elif letter in _BY_LETTER:
        kinds = _BY_LETTER[letter]
        if KINDS[kinds[0]].is_mos:
            kind, model, nodes, params = _mos(words, statement, known)
        elif any(KINDS[each].value for each in kinds):
            kind, model, nodes, params = _passive(words, statement, scope, known)
        else:
            kind, model, nodes, params = _junction(words, statement, known)
    elif letter == "x" or definition.spectre:
        if len(words) < 2:
            raise NetlistError(f"'{name}' names no subcircuit")
        model, nodes, params = words[-1], words[1:-1], dict(statement.params)
        kind = known.of(model) or (known.by_shape(model, nodes, params) if letter == "x" else None) or UNKNOWN
    elif letter in _IDEAL_NODES:
        is_wire = letter == "v" and len(words) > 2 and _is_zero(words[3:], statement.params, scope)
        kind, model, nodes, params = WIRE if is_wire else SOURCE, "", _ideal_nodes(words), {}
    else:
        raise NetlistError(f"'{name}': cards of type '{name[0].upper()}' are not supported")
    if keep_unknown and kind in KINDS and not _has_nodes(kind, nodes):
        kind = UNKNOWN if letter in "dx" or definition.spectre or undrawn_in_any_process(model) else kind
    if kind in KINDS:
        _check_nodes(name, kind, model, nodes)
    return Card(name, kind, model, tuple(nodes), params, statement.where)


def _ideal_nodes(words: list[str]) -> list[str]:
    """Return the nodes of an ideal element; brackets of a code model hold vectors, words with % say what a node is."""
    nodes = words[1 : 1 + _IDEAL_NODES[words[0][0].lower()]]
    return [node for word in nodes if "%" not in word and (node := word.strip("[]~"))]


class _Kinds:
    """Finds the kinds of the models that cards of one subcircuit name."""

    def __init__(self, definition: Subcircuit, names: ModelNames) -> None:
        self._definition = definition
        self._names = names

    def of(self, model: str, *, on_mos_card: bool = False) -> str | None:
        """Return the kind of a model: as the process has it, else as a model card or its name states it."""
        listed, stated = self._names.kind(model), self._definition.model_type(model)
        if {listed, stated} in ({"nmos", "pmos"}, {"npn", "pnp"}):
            raise NetlistError(f"the .model card of {model} makes it a {stated}, and the process has it as a {listed}")
        return listed or stated or classify_model(model, on_mos_card=on_mos_card) or self._names.target_kind(model)

    def by_shape(self, model: str, nodes: list[str], params: Mapping[str, str]) -> str | None:
        """Return the MOS type that the name of an undefined cell of four nodes, a width and a length says."""
        if len(nodes) != len(KINDS["nmos"].terminals) or not {"w", "l"} <= params.keys():
            return None
        return self.of(model, on_mos_card=True)

    def undrawn(self, words: list[str], params: Mapping[str, str]) -> str:
        """Return the model of a card if the process has it without a drawing; else nothing."""
        place = self._place(words)
        model = params.get("model", words[place] if place else "")
        return model if self._names.refuses(model) else ""

    def with_variant(self, words: list[str], params: Mapping[str, str]) -> list[str]:
        """Return the words of a card with the name of the device that its parameters make of the model's."""
        place, given = self._place(words), [name for name, text in params.items() if parse_number(text) != 0]
        if not place or (model := self._names.variant(words[place], given)) == words[place]:
            return words
        return [*words[:place], model, *words[place + 1 :]]

    def _place(self, words: list[str]) -> int:
        """Return where a card names its model: its last word that is no number; 0 where none can be a model."""
        first = 2 if words[0][0] in "xX" or self._definition.spectre else 3
        places = (place for place in range(len(words) - 1, first - 1, -1) if words[place][0] != "'")
        return next((place for place in places if parse_number(words[place]) is None), 0)


def _spectre_type(words: list[str], known: _Kinds) -> str | None:
    """Return the type of a Spectre instance, which its master names and its own first letter does not."""
    if len(words) < 2:
        return None
    master = words[-1].lower()
    if master in _IDEAL_MASTERS:
        return SOURCE
    if len(words) < 3:
        return None
    on_mos_card = words[0][0] in "mM" and len(words) == 6
    return known.of(master, on_mos_card=on_mos_card)


def _is_spectre_wire(master: str, nodes: list[str], params: Mapping[str, str], scope: Scope) -> bool:
    """Return whether an ideal element of Spectre is a probe of a current or a source of 0 V."""
    stated = {name: text for name, text in params.items() if (name, text) != ("type", "dc")}
    return len(nodes) == 2 and (master == "iprobe" or (master == "vsource" and _is_zero([], stated, scope)))


def _is_zero(words: list[str], params: Mapping[str, str], scope: Scope) -> bool:
    """Return whether a voltage source of these words and parameters has 0 V and nothing else, as an ammeter has."""
    stated = [word for word in words if word.lower() != "dc"] + [params[name] for name in params.keys() & {"dc"}]
    if len(stated) > 1 or params.keys() - {"dc"}:
        return False
    try:
        return all(scope.value(text) == 0 for text in stated)
    except NetlistError:
        return False


def _split_trailing_numbers(words: list[str], keep: int) -> tuple[list[str], list[str]]:
    end = len(words)
    while end > keep and parse_number(words[end - 1]) is not None:
        end -= 1
    return words[:end], words[end:]


def _mos(words: list[str], statement: Statement, known: _Kinds) -> tuple[str, str, list[str], dict[str, str]]:
    params = dict(statement.params)
    if len(words) == 5 and "model" in params:
        words = [*words, params["model"]]
    words, sizes = _split_trailing_numbers(words, keep=6)
    params = {**dict(zip(("l", "w"), sizes, strict=False)), **params}
    if len(words) != 6:
        raise NetlistError(
            f"'{words[0]}' has {max(0, len(words) - 2)} nodes; a MOS transistor needs drain, gate, source and bulk, "
            "then the model name"
        )
    model = words[5]
    kind = known.of(model, on_mos_card=True)
    if kind not in MOS_KINDS:
        raise NetlistError(f"'{words[0]}': it is unknown whether model '{model}' is nmos or pmos; add a .model card")
    return kind, model, words[1:5], params


def _passive(
    words: list[str], statement: Statement, scope: Scope, known: _Kinds
) -> tuple[str, str, list[str], dict[str, str]]:
    kinds = _BY_LETTER[words[0][0].lower()]
    kind = next(each for each in kinds if KINDS[each].model_cards)
    params = dict(statement.params)
    model = params.get("model", "")
    nodes, rest = words[1:3], words[3:]
    values = [word for word in rest if _has_value(word, scope)]
    names = [word for word in rest if not _has_value(word, scope)]
    if len(names) == 3 and not values:  # decks write a device of more terminals, such as a varactor, on this card
        named, nodes = known.of(names[-1]), [*nodes, *names[:-1]]
        return str(named) if named in kinds and _has_nodes(str(named), nodes) else UNKNOWN, names[-1], nodes, params
    if len(names) > 1:  # a third node before the model name
        nodes, names = [*nodes, names[0]], names[1:]
    elif "sub" in params and len(nodes) == 2:
        nodes = [*nodes, params["sub"]]
    if len(names) > 1 or len(values) > 1:
        raise NetlistError(f"'{words[0]}' has words that are not understood: {listed(rest, joint=' ')}")
    if values:
        params.setdefault(KINDS[kind].value, values[0])
    model = names[0] if names else model or kind
    named = known.of(model)
    if named is None and values and len(nodes) > 2:
        raise NetlistError(
            f"'{words[0]}' has {len(nodes) + 1} nodes and a value, or the unknown model '{model}' behind {len(nodes)} "
            f"nodes; a {KINDS[kind].noun} has {len(KINDS[kind].terminals)} nodes, with a body one more. Correct the "
            "card, or add a .model card"
        )
    if named in kinds:
        kind = str(named)
    return kind, model, nodes, params


def _has_value(word: str, scope: Scope) -> bool:
    if parse_number(word) is not None or word.startswith("'"):
        return True
    try:
        scope.lookup(word.lower())
    except KeyError:
        return False
    return True


def _junction(words: list[str], statement: Statement, known: _Kinds) -> tuple[str, str, list[str], dict[str, str]]:
    kinds = _BY_LETTER[words[0][0].lower()]
    words, sizes = _split_trailing_numbers(words, keep=len(KINDS[kinds[0]].terminals) + 2)
    stated = ("area", "perimeter") if KINDS[kinds[0]].parameter("perimeter") else ("area",)  # as HSPICE and CDL
    params = {**dict(zip(stated, sizes, strict=False)), **statement.params}
    model = words[-1]
    if len(kinds) == 1:
        return kinds[0], model, words[1:-1], params
    kind = known.of(model) or next((each for each in kinds if each in model.lower()), None)
    if kind not in kinds and "diode" in kinds:
        kind = "diode"
    if kind not in kinds:
        choice = " or ".join(kinds)
        raise NetlistError(f"'{words[0]}': it is unknown whether model '{model}' is {choice}; add a .model card")
    return kind, model, words[1:-1], params


def _has_nodes(kind: str, nodes: list[str]) -> bool:
    return len(KINDS[kind].terminals) <= len(nodes) <= len(KINDS[kind].all_terminals)


def _check_nodes(name: str, kind: str, model: str, nodes: list[str]) -> None:
    needed, every = KINDS[kind].terminals, KINDS[kind].all_terminals
    if not _has_nodes(kind, nodes):
        if (found := undrawn_in_any_process(model)) is not None:
            raise NetlistError(f"'{name}': {model} is a device of {found[0]} that has no drawing: {found[1].reason}")
        wanted = " ".join(needed) + "".join(f" [{terminal}]" for terminal in every[len(needed) :])
        other = f", unless {model} is a subcircuit, which the netlist does not define" if name[0] in "xX" else ""
        raise NetlistError(f"'{name}' ({kind} {model}) has {len(nodes)} nodes; it needs {wanted}{other}")
    if any(node.startswith("'") for node in nodes):
        raise NetlistError(f"'{name}' has an expression where a node is needed")
