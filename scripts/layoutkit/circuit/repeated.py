"""Subcircuits that a circuit uses more than once: which instances are equal, and the circuit that they share.

Two instances are equal if their devices have the same names, models and sizes and are connected alike inside. They are
laid out once. An instance inside another one is a part of the outer one's circuit::

    top:  X1 X2 (pair of stages)          shared: stage (2 uses), with the parts X1 X2
          X1.X1 X1.X2 X2.X1 X2.X2         shared: inverter (4 uses)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.circuit.canonical import roles_of
from layoutkit.circuit.circuit import Circuit
from layoutkit.circuit.ranked_names import RankedName, named_after, ranked
from layoutkit.circuit.symmetry_graph import grouped
from layoutkit.errors import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Device, SubcircuitInstance

FEWEST_DEVICES = 2
"""A subcircuit of fewer devices is not worth a cell of its own: its device is a module in any case."""


@dataclass(frozen=True)
class Use:
    """One instance of a shared subcircuit, in the names of the flat circuit.

    Attributes:
        path: Path of the instance.
        devices: Id in the shared circuit to id in the flat circuit.
        nets: Net of the shared circuit to net of the flat circuit.
    """

    path: str
    devices: Mapping[str, str]
    nets: Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """A shared subcircuit as a part of a larger circuit, in that circuit's names.

    Attributes:
        name: Path of the instance from the larger circuit.
        shared: Name of the shared subcircuit.
        devices: Id in the shared circuit to id in the larger one.
        nets: Net of the shared circuit to net of the larger one.
    """

    name: str
    shared: str
    devices: Mapping[str, str]
    nets: Mapping[str, str]


@dataclass(frozen=True)
class SharedSubcircuit:
    """What several instances have in common.

    Attributes:
        name: Name of the subcircuit, with a number where instances of one subcircuit differ.
        subcircuit: Name of the subcircuit.
        circuit: Its devices in names of its own; its ports are the nets that lead out of it. A net that is the same
            one for all instances has the name of that net.
        parts: Shared subcircuits inside it, whose devices are among those of ``circuit``.
        uses: Every instance in the flat circuit.
    """

    name: str
    subcircuit: str
    circuit: Circuit
    parts: tuple[Part, ...]
    uses: tuple[Use, ...]


@dataclass(frozen=True)
class Hierarchy:
    """The shared subcircuits of a circuit, inner ones first, and those that are parts of the circuit itself."""

    shared: tuple[SharedSubcircuit, ...] = ()
    parts: tuple[Part, ...] = ()


def find_repeated(
    circuit: Circuit,
    kind_of: Callable[[Mapping[str, str]], Hashable] = lambda _: None,
    refused: Collection[str] = (),
    moved: Mapping[str, Collection[str]] | None = None,
) -> Hierarchy:
    """Return the subcircuits that are worth laying out once.

    Args:
        circuit: The flat circuit with the instances that its devices came from.
        kind_of: What else has to be equal, for the devices of an instance by their names inside it.
        refused: Paths of instances that share nothing.
        moved: Device to the paths of the instances around it of which it is no part (``across_cells``).
    """
    if not circuit.subcircuits:
        return Hierarchy()
    return _Search(circuit, kind_of, refused, moved or {}).hierarchy()


class _Search:
    def __init__(
        self,
        circuit: Circuit,
        kind_of: Callable[[Mapping[str, str]], Hashable],
        refused: Collection[str],
        moved: Mapping[str, Collection[str]],
    ) -> None:
        self.circuit = circuit
        self.kind_of = kind_of
        self.instances = {instance.path: instance for instance in circuit.subcircuits}
        self.children: dict[str, list[str]] = defaultdict(list)
        for instance in circuit.subcircuits:
            self.children[instance.parent].append(instance.path)
        self.owner = {device: each.path for each in circuit.subcircuits for device in each.devices}
        self.inside: dict[str, list[Device]] = defaultdict(list)
        for device in circuit.devices:
            for path in self._around(self.owner.get(device.id, "")):
                if path not in moved.get(device.id, ()):
                    self.inside[path].append(device)
        self.terminals: dict[str, dict[str, dict[str, str]]] = {}
        self.key_of: dict[str, Hashable] = {}
        boxes = tuple(box.id for box in circuit.black_boxes)
        for path in self.instances:
            whole = len(self.inside[path]) >= FEWEST_DEVICES and path not in refused
            if whole and not any(box.startswith(f"{path}.") for box in boxes) and self._is_consistent(path):
                self.key_of[path] = self._key(path)
        self.members = grouped(self.key_of, self.key_of.__getitem__)

    def hierarchy(self) -> Hierarchy:
        shared = {key for key, paths in self.members.items() if len(paths) > 1}
        while True:
            drawn = self._drawn_counts(shared)
            rare = {key for key in shared if drawn[key] < 2}
            if not rare:
                break
            shared -= rare
        self.names = self._names(shared)
        self.nets = {key: self._merged_nets(self.members[key]) for key in self.names}
        self.circuits = {key: self._circuit(key) for key in self.names}
        inner_first = sorted(self.names, key=self._depth)
        return Hierarchy(tuple(self._shared(key) for key in inner_first), self._parts(""))

    def _around(self, path: str) -> Iterator[str]:
        """Yield ``path`` and the paths of the instances around it."""
        while path:
            yield path
            path = self.instances[path].parent

    def _terminals(self, path: str) -> dict[str, dict[str, str]]:
        """Return each device inside an instance with the nets of its terminals, named from that instance."""
        if path not in self.terminals:
            found = {}
            for device in self.inside[path]:
                own = self.instances[self.owner[device.id]]
                names = own.devices[device.id]
                found[device.id] = {
                    terminal: self._seen_from(path, own, names[terminal]) if terminal in names else f"={net}"
                    for terminal, net in device.terminals.items()
                }
            self.terminals[path] = found
        return self.terminals[path]

    def _seen_from(self, path: str, instance: SubcircuitInstance, net: str) -> str:
        """Return the name of a net of an inner instance as the instance ``path`` around it has it.

        A net of the flat circuit, whose name begins with ``=``, has one name everywhere.
        """
        while instance.path != path and not net.startswith("="):
            if net not in instance.ports:
                return f"{instance.path[len(path) + 1 :]}.{net}"
            net, instance = instance.ports[net], self.instances[instance.parent]
        return net

    def _flat_nets(self, path: str) -> dict[str, set[str]]:
        """Return each net of an instance with its names in the flat circuit; there is one."""
        nets: dict[str, set[str]] = defaultdict(set)
        terminals = self._terminals(path)
        for device in self.inside[path]:
            for terminal, net in device.terminals.items():
                nets[terminals[device.id][terminal]].add(net)
        return nets

    def _is_consistent(self, path: str) -> bool:
        return all(len(names) == 1 for names in self._flat_nets(path).values())

    def _key(self, path: str) -> Hashable:
        terminals = self._terminals(path)
        inside = sorted((self._own_id(path, device.id), device) for device in self.inside[path])
        devices = tuple(
            (
                name,
                device.type,
                device.model,
                tuple(sorted(device.params.items())),
                tuple(sorted((roles_of(device)[end], net) for end, net in terminals[device.id].items())),
            )
            for name, device in inside
        )
        names = {name: device.id for name, device in inside}
        return self.instances[path].cell, devices, self.kind_of(names)

    @staticmethod
    def _own_id(path: str, device: str) -> str:
        return device[len(path) + 1 :]

    def _drawn_counts(self, shared: Collection[Hashable]) -> Counter[Hashable]:
        """Return how often each shared subcircuit is placed when each of them is drawn once."""
        counts: Counter[Hashable] = Counter()
        waiting: list[str] = [""]
        seen: set[Hashable] = set()
        while waiting:
            for child in self.children[waiting.pop()]:
                key = self.key_of.get(child)
                if key in shared:
                    counts[key] += 1
                    if key in seen:
                        continue
                    seen.add(key)
                waiting.append(child)
        return counts

    def _names(self, shared: Collection[Hashable]) -> dict[Hashable, str]:
        found: dict[Hashable, str] = {}
        taken: set[str] = set()
        for key in (key for key in self.members if key in shared):
            stem = self.instances[self.members[key][0]].cell
            found[key] = numbered(stem, lambda name: name.lower() not in taken)
            taken.add(found[key].lower())
        return found

    def _depth(self, key: Hashable) -> int:
        """Return how many levels of shared subcircuits are inside one."""
        inner = self._part_paths(self.members[key][0])
        return 1 + max((self._depth(self.key_of[path]) for path in inner), default=0)

    def _part_paths(self, path: str) -> list[str]:
        """Return the outermost shared instances inside an instance, in the order of the netlist."""
        found = []
        for child in self.children[path]:
            found += [child] if self.key_of.get(child) in self.names else self._part_paths(child)
        return found

    def _merged_nets(self, paths: Sequence[str]) -> tuple[dict[str, str], frozenset[str]]:
        """Return each net of equal instances with the name of the shared net, and which of these lead outside.

        Nets that are one net for every instance become one. A net that leads to one and the same net from every
        instance has that net's name.
        """
        flat = [{net: min(names) for net, names in self._flat_nets(path).items()} for path in paths]
        groups = grouped(flat[0], lambda net: tuple(each[net] for each in flat))
        ports = self.instances[paths[0]].ports
        inside = [{device.id for device in self.inside[path]} for path in paths]
        outer = {names for names, nets in groups.items() if any(n in ports for n in nets) or self._leads(names, inside)}
        merged: dict[str, str] = {}
        taken: set[str] = set()
        for names, nets in sorted(groups.items(), key=lambda entry: entry[0] not in outer):
            stem = (
                names[0] if names in outer and len(set(names)) == 1 else next((n for n in nets if n in ports), nets[0])
            )
            name = stem
            while name in taken:
                name += "_"
            taken.add(name)
            merged.update(dict.fromkeys(nets, name))
        return merged, frozenset(merged[nets[0]] for names, nets in groups.items() if names in outer)

    def _leads(self, names: Sequence[str], inside: Sequence[Collection[str]]) -> bool:
        ports = set(self.circuit.ports)
        return any(
            net in ports or any(place.device not in devices for place in self.circuit.nets[net])
            for net, devices in zip(names, inside, strict=True)
        )

    def _circuit(self, key: Hashable) -> Circuit:
        """Return the circuit that equal instances share, in canonical order."""
        first = self.members[key][0]
        merged, outer = self.nets[key]
        devices = tuple(
            replace(
                device,
                id=self._own_id(first, device.id),
                terminals={terminal: merged[net] for terminal, net in self._terminals(first)[device.id].items()},
            )
            for device in self.inside[first]
        )
        order = dict.fromkeys(net for device in devices for net in device.terminals.values())
        # What is alike inside is told apart by what hangs on the first instance.
        flat = {merged[net]: min(names) for net, names in self._flat_nets(first).items()}
        flat |= {self._own_id(first, device.id): device.id for device in self.inside[first]}
        before = {own: name.rank for own, name in flat.items() if isinstance(name, RankedName)}
        ports = tuple(net for net in order if net in outer)
        return ranked(Circuit(self.names[key], devices, ports), turn=False, before=before)

    def _shared(self, key: Hashable) -> SharedSubcircuit:
        paths = self.members[key]
        cell = self.instances[paths[0]].cell
        uses = tuple(self._use(path) for path in paths)
        return SharedSubcircuit(self.names[key], cell, self.circuits[key], self._parts(paths[0]), uses)

    def _use(self, path: str) -> Use:
        circuit, merged = self.circuits[self.key_of[path]], self.nets[self.key_of[path]][0]
        devices = {self._own_id(path, device.id): device.id for device in self.inside[path]}
        nets = {merged[net]: min(names) for net, names in self._flat_nets(path).items()}
        return Use(
            path, {each.id: devices[each.id] for each in circuit.devices}, {net: nets[net] for net in circuit.nets}
        )

    def _parts(self, path: str) -> tuple[Part, ...]:
        """Return the shared subcircuits inside an instance, or the top for ``""``, in the names of its circuit."""
        parts = []
        for inner in self._part_paths(path):
            key = self.key_of[inner]
            use = self._use(inner)
            if path:
                around, merged = self.circuits[self.key_of[path]], self.nets[self.key_of[path]][0]
                own = {name: name for each in around.devices for name in (each.id, *each.terminals.values())}
                nets = {
                    self.nets[key][0][n]: own[merged[self._seen_from(path, self.instances[inner], n)]]
                    for n in self._flat_nets(inner)
                }
                devices = {name: own[self._own_id(path, flat)] for name, flat in use.devices.items()}
                use = replace(use, devices=devices, nets={net: nets[net] for net in use.nets})
            name = named_after(min(use.devices.values()), self._own_id(path, inner) if path else inner)
            parts.append(Part(name, self.names[key], use.devices, use.nets))
        return tuple(sorted(parts, key=lambda part: part.name))
