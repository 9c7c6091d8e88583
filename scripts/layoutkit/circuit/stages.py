r"""Find inverters, and the equal stages of ring oscillators and delay lines.

    supply -- source* -- PMOS --.-- NMOS -- source* -- ground
                          |  output   |                           * in a current-starved stage
                          '-- input --'

A stage is an inverter or a differential pair with what is on its outputs and below its sources. Three and more equal
stages that follow each other, in a circle or in a line, are one array of cells.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.mirrors import Group
from layoutkit.circuit.symmetry_graph import drawing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from layoutkit.circuit.channels import Channels
    from layoutkit.circuit.circuit import Device

FEWEST_STAGES = 3
_MOST_ON_AN_OUTPUT = 64  # connections; a net with more is no inner net of a stage


class _Stage(NamedTuple):
    """The core of a stage: an inverter or a pair, and the current sources that are its own.

    Attributes:
        core: Its transistors.
        inputs: Nets at its gates.
        outputs: Nets at its drains.
        sources: Transistors between the core and the supplies.
    """

    core: tuple[Device, ...]
    inputs: frozenset[str]
    outputs: frozenset[str]
    sources: tuple[Device, ...]

    @property
    def devices(self) -> tuple[Device, ...]:
        return (*self.core, *self.sources)


def inverters(channels: Channels, taken: Collection[str], current_sources: Collection[str]) -> list[Group]:
    """Return the inverters, the PMOS transistor first; the properties name the nets of input and output.

    Args:
        channels: The channels of the circuit.
        taken: Transistors that are part of other groups.
        current_sources: Transistors of mirrors: an inverter may lie between two of these.
    """
    return [
        Group(
            "inverter",
            tuple(device.id for device in stage.core),
            {"input": next(iter(stage.inputs)), "output": next(iter(stage.outputs))},
        )
        for stage in _inverter_stages(channels, taken, current_sources)
    ]


def _inverter_stages(channels: Channels, taken: Collection[str], current_sources: Collection[str]) -> list[_Stage]:
    by_nets: dict[tuple[str, str], list[Device]] = defaultdict(list)
    for device in channels.mos.values():
        if device.id not in taken:
            by_nets[device.terminals["g"], device.terminals["d"]].append(device)
    found = []
    for (gate, drain), members in by_nets.items():
        types = {member.type: member for member in members}
        if gate == drain or len(members) != 2 or len(types) != 2:
            continue
        core = (types["pmos"], types["nmos"])
        below = [_source_below(channels, device, current_sources) for device in core]
        if any(sources is None for sources in below):
            continue
        sources = tuple(device for sources in below for device in sources or ())
        if sources and _is_gate_of_logic(channels, drain, core):
            continue
        found.append(_Stage(core, frozenset({gate}), frozenset({drain}), sources))
    return found


def _source_below(channels: Channels, device: Device, current_sources: Collection[str]) -> tuple[Device, ...] | None:
    """Return the current source between a transistor and its rail, nothing where it is on the rail; else None."""
    net = device.terminals["s"]
    if net in channels.supplies:
        return ()
    below = [each for each in channels.drains.get(net, ()) if each.type == device.type]
    starved = below and all(each.id in current_sources and each.terminals["s"] in channels.supplies for each in below)
    return tuple(below) if starved else None


def _is_gate_of_logic(channels: Channels, output: str, core: Sequence[Device]) -> bool:
    """Whether another transistor pulls an output to a rail, as in a NAND gate."""
    return any(
        each.terminals["s"] in channels.supplies and each not in core for each in channels.drains.get(output, ())
    )


def ring_stages(
    channels: Channels, current_sources: Collection[str], pairs: Iterable[tuple[Device, Device]]
) -> list[Group]:
    """Return each array of equal stages that drive each other, as one group; ``stages`` lists them in order."""
    plain = _inverter_stages(channels, (), current_sources)
    found = []
    for stages in (plain, [_pair_stage(channels, *pair) for pair in pairs]):
        for chain, is_ring in _chains(stages):
            cells = _with_loads(channels, chain)
            devices = tuple(name for cell in cells for name in cell)
            properties: dict[str, Any] = {
                "matched": True,
                "arrangement": "ring" if is_ring else "line",
                "stages": [list(cell) for cell in cells],
                "outputs": [sorted(stage.outputs) for stage in chain],
            }
            found.append(Group("ring_stage", devices, properties))
    return found


def _pair_stage(channels: Channels, first: Device, second: Device) -> _Stage:
    tails = {
        source.id: source for net in (first.terminals["s"], second.terminals["s"]) for source in channels.drains[net]
    }
    sides = (first.terminals, second.terminals)
    return _Stage(
        (first, second),
        frozenset(net["g"] for net in sides),
        frozenset(net["d"] for net in sides),
        tuple(tail for tail in tails.values() if tail.type == first.type and tail.terminals["s"] in channels.supplies),
    )


def _chains(stages: Sequence[_Stage]) -> list[tuple[list[_Stage], bool]]:
    """Return the chains of equal stages, each with whether it is a ring; stages with several successors end chains."""
    by_input: dict[tuple[frozenset[str], tuple[Any, ...]], list[int]] = defaultdict(list)
    keys = [tuple(sorted((drawing(d) for d in stage.devices), key=str)) for stage in stages]
    for number, stage in enumerate(stages):
        by_input[stage.inputs, keys[number]].append(number)
    following: dict[int, int] = {}
    for number, stage in enumerate(stages):
        after = by_input.get((stage.outputs, keys[number]), [])
        if len(after) == 1 and after[0] != number:
            following[number] = after[0]
    before = Counter(following.values())
    seen: set[int] = set()
    found = []
    for start in [n for n in range(len(stages)) if not before[n]] + list(range(len(stages))):
        chain: list[int] = []
        at: int | None = start
        while at is not None and at not in seen:
            seen.add(at)
            chain.append(at)
            at = following.get(at)
        if len(chain) >= FEWEST_STAGES:
            found.append(([stages[n] for n in chain], at == chain[0]))
    return found


def _with_loads(channels: Channels, chain: Sequence[_Stage]) -> list[tuple[str, ...]]:
    """Return the devices of each stage, with those that every stage has on its outputs."""
    own = {device.id for stage in chain for device in stage.devices}
    loads: list[dict[Any, list[str]]] = []
    for stage in chain:
        found: dict[Any, list[str]] = defaultdict(list)
        for net in sorted(stage.outputs):
            places = channels.circuit.nets[net]
            for place in places if len(places) <= _MOST_ON_AN_OUTPUT else ():
                device = channels.circuit.device(place.device)
                mos_load = device.is_mos and place.terminal in {"d", "s"}
                if device.id not in own and (mos_load or _is_load(device)):
                    found[drawing(device), "s" if device.is_mos else ""].append(device.id)
        loads.append({key: list(dict.fromkeys(names)) for key, names in found.items()})
    used = Counter(name for each in loads for names in each.values() for name in names)
    alike = Counter((key, len(names)) for each in loads for key, names in each.items())
    cells = []
    for stage, found in zip(chain, loads, strict=True):
        shared = [
            name
            for key, names in found.items()
            if alike[key, len(names)] == len(chain)
            for name in names
            if used[name] == 1
        ]
        cells.append((*(device.id for device in stage.devices), *shared))
    return cells


def _is_load(device: Device) -> bool:
    """Whether a device other than a channel loads the output of a stage: a resistor, a capacitor, a gate as one."""
    if device.is_mos:
        return device.terminals["d"] == device.terminals["s"]
    return device.type in {"resistor", "capacitor", "mos_capacitor"}
