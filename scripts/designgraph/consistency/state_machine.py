"""Check state machines: every state must be reachable, and every state must have a transition for every case.

Transitions are StateTransition nodes (properties ``from``, ``to``, ``condition``) and STATETRANSITION relations between
State nodes. They belong to the machine that their property ``machine`` names, or to the signal (the state register)
that has a STATETRANSITION relation to them.

A condition is Boolean, such as ``start && !busy`` or ``mode == 2 or ready``. A name is a signal with the value 0 or 1.
If it is compared with other values, it has one of these or another value. Anything else (``count < 7``, free text)
raises ``NotUnderstoodError``; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from designgraph.graph import incoming, outgoing, type_of

if TYPE_CHECKING:
    from designgraph.consistency.consistency_rules import Breaches
    from designgraph.graph import Graph

MAX_CASES = 4096
OTHER = "another value"
_ELSE = frozenset({"else", "default", "otherwise", "others"})
_TOKEN = re.compile(
    r"\s*(?:(?P<op>\|\||&&|==|!=|[!~&|^()=])|(?P<number>\d*'[bdohBDOH]?[0-9a-fA-FxXzZ_]+|\d+)"
    r"|(?P<name>[A-Za-z_][\w.$]*(?:\[[\w:]+\])?))"
)
_WORDS = {"and": "&&", "or": "||", "not": "!", "&": "&&", "|": "||", "~": "!", "=": "=="}
_CONSTANTS = {"true": "1", "false": "0"}

Case = Mapping[str, str]
Test = Callable[[Case], bool]


class NotUnderstoodError(ValueError):
    """A condition that is not Boolean, or has too many cases."""


class Condition:
    """A Boolean condition.

    Args:
        text: The condition.

    Raises:
        NotUnderstoodError: If it is not Boolean.
    """

    def __init__(self, text: str) -> None:
        self.is_else = text.strip().lower() in _ELSE
        self.compared: dict[str, set[str]] = {}
        self._tokens = [] if self.is_else else _tokens(text)
        self._place = 0
        self.holds: Test = (lambda _: False) if self.is_else else self._either()
        if self._place < len(self._tokens):
            raise NotUnderstoodError(f"'{self._tokens[self._place][1]}' is not expected there")

    def _either(self) -> Test:
        return self._joined("||", self._different, any)

    def _different(self) -> Test:
        return self._joined("^", self._both, lambda values: sum(values) % 2 == 1)

    def _both(self) -> Test:
        return self._joined("&&", self._negated, all)

    def _joined(self, operator: str, part: Callable[[], Test], judge: Callable[[Iterator[bool]], bool]) -> Test:
        """Return the test of what an operator joins; the parts alone where it does not occur."""
        parts = [part()]
        while self._take(operator):
            parts.append(part())
        return parts[0] if len(parts) == 1 else lambda case: judge(each(case) for each in parts)

    def _negated(self) -> Test:
        if self._take("!"):
            inner = self._negated()
            return lambda case: not inner(case)
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                raise NotUnderstoodError("a bracket is not closed")
            return inner
        kind, text = self._next()
        if kind == "number":
            return lambda _: _value(text) != "0"
        if self._take("=="):
            return self._compared_with(text, equal=True)
        if self._take("!="):
            return self._compared_with(text, equal=False)
        self.compared.setdefault(text, set()).update("01")
        return lambda case: case[text] == "1"

    def _compared_with(self, name: str, *, equal: bool) -> Test:
        value = _value(self._next()[1])
        self.compared.setdefault(name, set()).add(value)
        return lambda case: (case[name] == value) is equal

    def _take(self, operator: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place] == ("op", operator):
            self._place += 1
            return True
        return False

    def _next(self) -> tuple[str, str]:
        if self._place == len(self._tokens) or self._tokens[self._place][0] == "op":
            raise NotUnderstoodError("a signal or value is missing")
        self._place += 1
        return self._tokens[self._place - 1]


def cases(conditions: Iterable[Condition]) -> list[Case]:
    """Return all combinations of the values of the signals in ``conditions``.

    Raises:
        NotUnderstoodError: If there are more than 4096.
    """
    values: dict[str, set[str]] = {}
    for condition in conditions:
        for name, compared in condition.compared.items():
            values.setdefault(name, set()).update(compared)
    names = sorted(values)
    domains = [sorted({"0", "1"} if values[n] <= {"0", "1"} else {*values[n], OTHER}) for n in names]
    if prod(map(len, domains)) > MAX_CASES:
        raise NotUnderstoodError(f"its conditions have more than {MAX_CASES} combinations")
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*domains)]


def case_text(case: Case) -> str:
    """Return a combination as text."""
    return ", ".join(f"{name} = {value}" for name, value in case.items()) or "always"


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    place = 0
    text = text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotUnderstoodError(f"{text[place : place + 20].strip()!r} is not understood")
        kind = str(match.lastgroup)
        word = match[kind]
        if kind == "name" and word.lower() in _CONSTANTS:
            kind, word = "number", _CONSTANTS[word.lower()]
        operator = _WORDS.get(word.lower() if kind == "name" else word)
        found.append(("op", operator) if operator else (kind, word))
        place = match.end()
    if not found:
        raise NotUnderstoodError("it is empty")
    return found


def _value(text: str) -> str:
    """Return a number in one form, so that 1'b1 and 1 are equal; return a name unchanged."""
    size, mark, digits = text.partition("'")
    if not mark:
        return str(int(text)) if text.isdigit() else text
    base = {"b": 2, "d": 10, "o": 8, "h": 16}.get(digits[:1].lower())
    try:
        return str(int(digits[1:] if base else digits, base or 10))
    except ValueError:
        return f"{size}'{digits}"


TRANSITION, STATE, RELATION = "StateTransition", "State", "STATETRANSITION"
INITIAL_NAMES = ("reset", "rst", "idle", "init", "start", "s0")
_ANYWHERE = frozenset({"", "*", "any", "reset"})
Properties = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Transition:
    """A step from one state to another; ``condition`` is ``None`` if it is unknown."""

    source: str
    target: str
    condition: str | None
    node_id: str


@dataclass
class Machine:
    """One state machine.

    Attributes:
        name: Name; empty for the machine without a name.
        transitions: Steps between states.
        initial: States in which it may start.
        final: States that need no outgoing transition.
        declared: States that a node other than a transition names, with the id of that node.
    """

    name: str
    transitions: list[Transition] = field(default_factory=list)
    initial: set[str] = field(default_factory=set)
    final: set[str] = field(default_factory=set)
    declared: dict[str, str] = field(default_factory=dict)

    def states(self) -> set[str]:
        """Return the names of all states."""
        ends = {end for step in self.transitions for end in (step.source, step.target)}
        return ends | set(self.declared)

    def ids(self, *states: str) -> tuple[str, ...]:
        """Return the ids of the nodes that name these states."""
        named = [self.declared[state] for state in states if state in self.declared]
        steps = [step.node_id for step in self.transitions if {step.source, step.target} & set(states)]
        return tuple(dict.fromkeys([*named, *steps]))


def check_machines(graph: Graph, properties: Properties, rule: dict[str, Any], findings: Breaches) -> None:
    """Check every state machine of a graph."""
    for machine in find_machines(graph, properties, rule, findings):
        _check_reachable(machine, rule, findings)
        _check_dead_ends(machine, rule, findings)
        for state in sorted({step.source for step in machine.transitions}):
            _check_conditions(machine, state, rule, findings)


def find_machines(graph: Graph, properties: Properties, rule: dict[str, Any], findings: Breaches) -> list[Machine]:
    """Return the state machines of a graph, sorted by name."""
    machines: dict[str, Machine] = {}
    for node_id, given in properties.items():
        if type_of(graph, node_id) == STATE:
            _add_state(machines, graph, node_id, given)
        if type_of(graph, node_id) != TRANSITION:
            continue
        register = next((source for source, _, kind in incoming(graph, node_id) if kind == RELATION), "")
        machine = machines.setdefault(_text(given.get("machine")) or register, Machine(""))
        source, target = _text(given.get("from")), _text(given.get("to"))
        if not target or ("from" not in given and not given.get("initial")):
            text = f"transition '{node_id}' does not say from which state it leads to which"
            cure = "Give the transition the properties from and to."
            findings.add(rule, text, (node_id,), id="incomplete_transition", suggestion=cure)
            continue
        if given.get("initial") is True or source.lower() in _ANYWHERE:
            machine.initial.add(target if source.lower() in _ANYWHERE else source)
        if source.lower() not in _ANYWHERE:
            condition = given.get("condition")
            machine.transitions.append(
                Transition(source, target, condition if isinstance(condition, str) else None, node_id)
            )
        if register and register in properties:
            _add_register(machine, properties[register], register)
    for name, machine in machines.items():
        machine.name = name
    return [machines[name] for name in sorted(machines)]


def _add_state(machines: dict[str, Machine], graph: Graph, node_id: str, given: dict[str, Any]) -> None:
    machine = machines.setdefault(_text(given.get("machine")), Machine(""))
    machine.declared[node_id] = node_id
    if given.get("initial") is True:
        machine.initial.add(node_id)
    if given.get("final") is True:
        machine.final.add(node_id)
    for _, target, kind in outgoing(graph, node_id):
        if kind == RELATION and type_of(graph, target) == STATE:
            machine.transitions.append(Transition(node_id, target, None, node_id))


def _add_register(machine: Machine, given: dict[str, Any], register: str) -> None:
    """Read the properties of a state register: ``states``, ``initial`` and ``final``."""
    for name in ("initial", "initial_state", "reset_state"):
        if _text(given.get(name)):
            machine.initial.add(_text(given[name]))
    for name, add in (("states", lambda s: machine.declared.setdefault(s, register)), ("final", machine.final.add)):
        listed = given.get(name)
        for state in [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else ():
            if isinstance(state, str):
                add(state)


def _check_reachable(machine: Machine, rule: dict[str, Any], findings: Breaches) -> None:
    import networkx as nx

    states = machine.states()
    initial = machine.initial & states
    assumed = ""
    if not initial:
        by_name = {state.lower(): state for state in sorted(states, reverse=True)}
        likely = next((by_name[name] for name in INITIAL_NAMES if name in by_name), None)
        if likely is None:
            text = (
                f"{_called(machine)}the initial state is not known, so reachability cannot be checked; set the "
                "property initial of the state register to a state, or of a transition or State node to true"
            )
            findings.skip(rule, text, machine.ids(*sorted(states)))
            return
        initial, assumed = {likely}, " (assumed by its name)"
    steps = nx.DiGraph((step.source, step.target) for step in machine.transitions)
    steps.add_nodes_from(initial)
    reached = initial.union(*(nx.descendants(steps, state) for state in initial))
    for state in sorted(states - reached):
        text = f"{_called(machine)}state '{state}' cannot be reached from {', '.join(sorted(initial))}{assumed}"
        cure = f"Add a transition to {state}, or remove the state and its transitions."
        findings.add(rule, text, machine.ids(state), id="unreachable_state", suggestion=cure)


def _check_dead_ends(machine: Machine, rule: dict[str, Any], findings: Breaches) -> None:
    leaving = {step.source for step in machine.transitions}
    for state in sorted(machine.states() - leaving - machine.final):
        text = f"{_called(machine)}no transition leaves state '{state}'"
        cure = f"Add a transition from {state}, or name it in the property final of the state register."
        findings.add(rule, text, machine.ids(state), id="missing_transition", suggestion=cure)


def _check_conditions(machine: Machine, state: str, rule: dict[str, Any], findings: Breaches) -> None:
    """Check that the transitions that leave a state cover every case, and each case only once."""
    steps = [step for step in machine.transitions if step.source == state]
    ids = tuple(dict.fromkeys(step.node_id for step in steps))
    if all(step.condition is None for step in steps):
        return  # an outline without conditions: only reachability can be checked
    if len(steps) == 1 and not (steps[0].condition or "").strip():
        return  # the only transition is always taken
    try:
        conditions = [Condition(step.condition or "") for step in steps]
        every = cases(conditions)
    except NotUnderstoodError as error:
        findings.skip(rule, f"{_called(machine)}whether state '{state}' covers every case is not known: {error}", ids)
        return
    has_else = any(condition.is_else for condition in conditions)
    told: set[str] = set()  # the first case of each kind stands for all
    for case in every:
        taken = {step.target for step, condition in zip(steps, conditions, strict=True) if condition.holds(case)}
        if not taken and not has_else and "missing" not in told:
            told.add("missing")
            text = f"{_called(machine)}state '{state}' has no transition when {case_text(case)}"
            cure = "Add a transition for this case, or one with the condition else."
            findings.add(rule, text, ids, id="missing_transition", severity="warning", suggestion=cure)
        if len(taken) > 1 and "conflicting" not in told:
            told.add("conflicting")
            text = f"{_called(machine)}state '{state}' leads to {' and '.join(sorted(taken))} when {case_text(case)}"
            cure = "Make the conditions exclude each other."
            findings.add(rule, text, ids, id="conflicting_transition", suggestion=cure)


def _called(machine: Machine) -> str:
    return f"state machine '{machine.name}': " if machine.name else ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
