"""Devices that are drawn as others than the netlist names: which models a user replaces, and what changed by it.

``device_map`` replaces the models it names and nothing else. A model of the process that has no drawing and that the
map does not name is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.bipolar_map import SMALLEST_FACTOR, sized
from layoutkit.circuit.circuit import ReplacedDevice
from layoutkit.circuit.readers.model_names import rated_voltage, width_in_name
from layoutkit.errors import (
    LayoutkitError,
    NetlistError,
    UnsupportedOperationError,
    did_you_mean,
    listed,
    repeated,
    sentences,
)
from layoutkit.technology.device_names import (
    OTHER,
    DeviceNames,
    UndrawnDevice,
    drawn_alternatives,
    noun_of,
    rating,
    refusal,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.technology.device_specs import DeviceSpec, PassiveSpec
    from layoutkit.technology.technology import Technology

SHOWN = 20


class ModelNames:
    """What the model names of one netlist mean.

    Args:
        technology: The process; None where none is known, so that no name is refused.
        device_map: Model -> device of the process, for what the user replaces.

    Attributes:
        technology: The process.

    Raises:
        LayoutkitError: If there is a map and no technology.
    """

    def __init__(self, technology: Technology | None = None, device_map: Mapping[str, str] | None = None) -> None:
        if device_map and technology is None:
            raise LayoutkitError(
                "device_map names devices of a technology; give technology, too",
                details={"param_name": "technology", "required_by": "device_map"},
            )
        self.technology = technology
        self._names = DeviceNames() if technology is None else technology.device_names
        self._map = dict(device_map or {})
        self._targets = {self._names.plain(model): self._names.drawn(target) for model, target in self._map.items()}
        self._micrometres: dict[str, bool] = {}

    def variant(self, model: str, parameters: Collection[str]) -> str:
        """Return the name of the device that ``model`` is with these parameters, which are not 0."""
        return self._names.variant(model, parameters)

    def is_variant(self, parameter: str) -> bool:
        """Whether this parameter makes devices of the process others."""
        return parameter in self._names.variants

    def in_micrometres(self, model: str) -> bool:
        """Whether netlists of the process that has this device state lengths as plain numbers in micrometres."""
        if model not in self._micrometres:
            process = process_of(model) if self.kind(model) is None else self.technology
            forms = {} if process is None else process.netlists.get("spice", {})
            self._micrometres[model] = any(form.lengths == "micrometres" for form in forms.values())
        return self._micrometres[model]

    def refuses(self, model: str) -> bool:
        """Whether this is a device of the process that is neither drawn nor replaced."""
        return self._names.plain(model) not in self._targets and self._names.undrawn(model) is not None

    def is_same_device(self, model: str, name: str) -> bool:
        """Whether both names mean one device of the process that is drawn."""
        return self._names.drawn(model) is not None and self._names.drawn(model) is self._names.drawn(name)

    def is_other_device(self, model: str, name: str) -> bool:
        """Whether ``model`` is a device of the process that is drawn, and another one than ``name``."""
        return self._names.drawn(model) is not None and self._names.drawn(model) is not self._names.drawn(name)

    def hint_at_cells(self, names: Iterable[str]) -> str:
        """Return what to do about subcircuits that are cells of the process's libraries; empty where none is."""
        cells = [name for name in names if self._names.is_cell(name)]
        if self.technology is None or not cells:
            return ""
        return (
            f". Of these, {listed(sorted(cells), SHOWN)} are cells of the libraries of "
            f"{self.technology.name}. The flow places no finished cells: include the netlist that comes with the "
            "library, and their transistors are drawn one by one; or list them in black_boxes, and place the library's "
            "cells by hand and wire them to the nets that the layout labels for them"
        )

    def refuse(self, users: Mapping[str, Sequence[str]]) -> None:
        """Refuse models that ``refuses`` names, given with the ids of their devices.

        Raises:
            UnsupportedOperationError: If there are any.
        """
        if users and self.technology is not None:
            raise refusal(self.technology.name, self._names, users)

    def kind(self, model: str) -> str | None:
        """Return the kind of the process's device of this name; None where the process has none."""
        found = self._names.drawn(model) or self._names.undrawn(model)
        return None if found is None or found.type == OTHER else found.type

    def target_kind(self, model: str) -> str | None:
        """Return the kind of the device that the user names for a model; None where the map does not name it."""
        target = self._targets.get(self._names.plain(model))
        return None if target is None else target.type

    def applied(self, circuit: Circuit) -> Circuit:
        """Return the circuit with the models of the map replaced.

        Raises:
            UnsupportedOperationError: If it holds devices of the process that are neither drawn nor replaced.
            NetlistError: If a device names one of the process of another kind.
            LayoutkitError: If the map names a model that the circuit does not have, or a device that the process does
                not have or that is of another kind; the error lists all of these.
        """
        if self.technology is None:
            return circuit
        circuit = replace(circuit, devices=tuple(map(self._as_variant, circuit.devices)))
        self._check_map(circuit, self.technology)
        self._check_kinds(circuit, self.technology)
        refuse_undrawn(self.technology, (d for d in circuit.devices if self._names.plain(d.model) not in self._targets))
        if not self._targets:
            return circuit
        devices, replaced = [], []
        for device in circuit.devices:
            target = self._targets.get(self._names.plain(device.model))
            if target is None or target is self._names.drawn(device.model):
                devices.append(device)
                continue
            devices.append(_as(device, target))
            replaced.append(ReplacedDevice(device.id, device.model, dict(device.params), asked=True))
        return replace(circuit, devices=tuple(devices), replaced=(*circuit.replaced, *replaced))

    def _as_variant(self, device: Device) -> Device:
        """Return a device under the name that its parameters make of its model's, without these parameters."""
        model = self.variant(device.model, [name for name, value in device.params.items() if value])
        params = {name: value for name, value in device.params.items() if name not in self._names.variants}
        if len(params) == len(device.params):
            return device
        return replace(device, model=model, params=params)

    def _check_kinds(self, circuit: Circuit, technology: Technology) -> None:
        """Refuse devices that name a device of the process of another kind than their card or their entry is."""
        named = ((device, technology.device_names.drawn(device.model)) for device in circuit.devices)
        faults = [
            f"{device.id} is a {noun_of(device.type)}, and {device.model} of {technology.name} "
            f"is a {noun_of(spec.type)}"
            for device, spec in named
            if spec is not None and spec.type != device.type and self._names.plain(device.model) not in self._targets
        ]
        if faults:
            raise NetlistError(f"Invalid netlist: {sentences(faults, SHOWN)}", details={"faults": faults})

    def _check_map(self, circuit: Circuit, technology: Technology) -> None:
        faults = []
        models = {self._names.plain(device.model): device for device in circuit.devices}
        before = {self._names.plain(each.model) for each in circuit.replaced}
        twice = repeated(map(self._names.plain, self._map))
        faults += [f"two names mean the model {name}" for name in twice]
        known = [*technology.devices, *technology.passives]
        for model, name in self._map.items():
            device, target = models.get(self._names.plain(model)), self._names.drawn(name)
            if device is None and self._names.plain(model) not in before:
                present = sorted({each.model for each in circuit.devices})
                faults.append(f"the netlist has no model '{model}'{did_you_mean(model, present)}")
            if target is None:
                faults.append(f"{technology.name} draws no device '{name}'{did_you_mean(name, known)}")
            elif device is not None and device.type != target.type:
                faults.append(f"{model} is a {noun_of(device.type)}, and {name} is a {noun_of(target.type)}")
        if not faults:
            return
        present = sorted({device.model for device in circuit.devices})
        kinds = dict.fromkeys(device.type for device in circuit.devices)
        allowed = {
            kind: [entry["name"] for entry in drawn_alternatives(technology.device_names, kind)] for kind in kinds
        }
        choice = "; ".join(f"{kind}: {', '.join(names) or 'none'}" for kind, names in allowed.items())
        raise LayoutkitError(
            f"device_map: {sentences(faults, SHOWN)}. Models of the netlist: "
            f"{listed(present, SHOWN) or 'none'}. {technology.name} draws {choice}",
            details={
                "param_name": "device_map",
                "provided_value": self._map,
                "faults": faults,
                "models": present,
                "allowed": allowed,
            },
        )


def refuse_undrawn(technology: Technology, devices: Iterable[Device]) -> None:
    """Refuse the devices of the process that have no drawing.

    Raises:
        UnsupportedOperationError: If there are any; the error names all of them.
    """
    users: dict[str, list[str]] = {}
    for device in devices:
        users.setdefault(device.model, []).append(device.id)
    undrawn = {model: ids for model, ids in users.items() if technology.device_names.undrawn(model) is not None}
    if undrawn:
        raise refusal(technology.name, technology.device_names, undrawn)


def notes_on_options(technology: Technology, devices: Iterable[Device]) -> list[str]:
    """Return a sentence on each option of the masks that devices need with another value than the process has.

    Raises:
        UnsupportedOperationError: If devices need two values of one option; the error names all of them.
    """
    users: dict[str, dict[str, dict[str, None]]] = {}
    for device in devices:
        spec = technology.device_names.drawn(device.model)
        for option, value in getattr(spec, "options", {}).items():
            users.setdefault(option, {}).setdefault(value, {})[device.model] = None
    mixed = [
        f"{option} is " + " and ".join(f"{value} for {', '.join(models)}" for value, models in values.items())
        for option, values in users.items()
        if len(values) > 1
    ]
    if mixed:
        raise UnsupportedOperationError(
            f"one set of masks of {technology.name} cannot make all of these devices: {'; '.join(mixed)}. Use devices "
            "of one value of each option, or replace some on purpose with device_map",
            details={
                "param_name": "device_map",
                "options": {
                    option: {value: list(models) for value, models in of.items()} for option, of in users.items()
                },
            },
        )
    return [
        f"{', '.join(models)}: made with the option {option} {value} of the masks, and {technology.name} as its PDK "
        f"installs it has {technology.options.get(option)}; order that option"
        for option, values in users.items()
        for value, models in values.items()
        if value != technology.options.get(option)
    ]


def _as(device: Device, target: DeviceSpec | PassiveSpec) -> Device:
    """Return the device as if the netlist named ``target`` for it; what only its own model states is made explicit."""
    params = dict(device.params)
    if device.kind.in_cells:  # the length of an emitter is that of the target, their number is kept
        params = {name: params[name] for name in ("nf", "nx", "m") if name in params}
    elif device.kind.area_counts:  # the emitter is that of the target
        factor = params.get("area", 0.0)
        params = {"m": device.m, **({"area": factor} if factor >= SMALLEST_FACTOR else {})}
    elif (width := width_in_name(device.model)) is not None and device.kind.in_series == "lengths":
        params.setdefault("w", width)
    return replace(device, model=target.name, params=params)


def replaced_data(circuit: Circuit, technology: Technology) -> list[dict[str, Any]]:
    """Return what each replaced device is in the netlist and in the layout, as JSON data; equal ones are one entry.

    An entry has ``devices``, ``type``, ``reason`` (``device_map``, ``other_process``, ``generic`` or ``size``: a device
    of the process of a size that it does not have), and ``before`` and ``after`` with model, size [um], value [ohm, F]
    and rating [V], as far as they are known.
    """
    found: dict[str, dict[str, Any]] = {}
    drawn = {device.id: device for device in circuit.devices}
    origins: dict[tuple[str, str], _Origin] = {}
    for each in circuit.replaced:
        device = drawn.get(each.device)
        if device is None:
            continue
        key = each.model, device.type
        origin = origins[key] if key in origins else origins.setdefault(key, _origin(*key, technology))
        is_foreign = origin.technology is not technology
        before = _figures(replace(device, model=each.model, params=each.params), origin)
        if is_foreign:
            before["technology"] = origin.technology.name
        drawn_as = technology.device_names.drawn(device.model)
        own = "size" if origin.spec is drawn_as else "generic"
        reason = "device_map" if each.asked else "other_process" if is_foreign else own
        after = _figures(device, _Origin(technology, drawn_as))
        data = {"type": device.type, "reason": reason, "before": before, "after": after}
        found.setdefault(repr(data), {"devices": [], **data})["devices"].append(device.id)
    return list(found.values())


class _Origin(NamedTuple):
    """A device and its process; the device is None where no process that this package knows has it."""

    technology: Technology
    spec: DeviceSpec | PassiveSpec | UndrawnDevice | None


def _named(model: str) -> Iterator[tuple[Technology, DeviceSpec | PassiveSpec | UndrawnDevice]]:
    """Yield the shipped processes that have a device of this name, those based on another one last, and the device."""
    from layoutkit.technology import load, originals_first

    for process in map(load, originals_first()):
        found = process.device_names.drawn(model) or process.device_names.undrawn(model)
        if found is not None:
            yield process, found


def _origin(model: str, kind: str, technology: Technology) -> _Origin:
    """Return where a model comes from: the process at hand, else another shipped one, else the process at hand."""
    own = technology.device_names.drawn(model) or technology.device_names.undrawn(model)
    for process, found in _named(model) if own is None else ():
        if process.name not in (technology.name, "generic") and found.type in (kind, OTHER):
            return _Origin(process, found)
    return _Origin(technology, own)


def undrawn_in_any_process(model: str) -> tuple[str, UndrawnDevice] | None:
    """Return the shipped process that has a device of this name, and the device, where none of them draws it."""
    named = [(process.name, found) for process, found in _named(model)]
    undrawn = [(name, found) for name, found in named if isinstance(found, UndrawnDevice)]
    return undrawn[0] if undrawn and len(undrawn) == len(named) else None


def process_of(model: str) -> Technology | None:
    """Return the first shipped process that has a device of this name, drawn or not; None if none has."""
    return next((process for process, _ in _named(model)), None)


def _figures(device: Device, origin: _Origin) -> dict[str, Any]:
    """Return model, size, value and rating of a device, as far as its parameters and its process state them."""
    spec, stated = origin.spec, {} if origin.spec is None else values_of(origin.spec)
    if device.type in ("npn", "pnp") and spec is not None and not isinstance(spec, UndrawnDevice):
        device = sized(origin.technology, spec, device)  # type: ignore[arg-type]
    params = dict(device.params)
    if "w" not in params and device.kind.in_series == "lengths" and (width := width_in_name(device.model)):
        params["w"] = width
    data: dict[str, Any] = {"model": device.model}
    data |= {f"{name}_um": round(params[name] * 1e6, 6) for name in ("w", "l") if name in params}
    data |= {name: int(params[name]) for name in ("nf", "m", "series") if name in params}
    if device.kind.value == "r":
        data |= _value("ohm", _ohm(params, stated.get("ohm_per_square")))
    elif device.kind.value == "c":
        edge = 0.0 if spec is None else getattr(spec, "edge_value", 0.0)
        data |= _value("farad", _farad(params, stated.get("farad_per_um2"), edge))
    return data | _value("supply_v", stated.get("supply_v") or rated_voltage(device.model))


def _value(name: str, value: float | None) -> dict[str, float]:
    return {name: float(f"{value:.6g}")} if value else {}


def _ohm(params: Mapping[str, float], per_square: float | None) -> float | None:
    """Return the resistance that is stated, else that of the size. [ohm]"""
    ohm = params.get("r")
    if not ohm and per_square and params.get("w") and params.get("l"):
        ohm = per_square * params["l"] / params["w"] * params.get("series", 1) * params.get("s", 1)
    return ohm and ohm / params.get("m", 1)


def _farad(params: Mapping[str, float], per_um2: float | None, per_um: float) -> float | None:
    """Return the capacitance that is stated, else that of the size. [F]"""
    farad = params.get("c")
    if not farad and per_um2 and params.get("w") and params.get("l"):
        width, length = params["w"] * 1e6, params["l"] * 1e6
        farad = (per_um2 * width * length + 2 * per_um * (width + length)) / params.get("series", 1)
    return farad and farad * params.get("m", 1)


def replaced_lines(replaced: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line for each entry of ``replaced_data``, at most ``SHOWN`` and a count."""
    lines = []
    for entry in replaced[:SHOWN]:
        devices = entry["devices"]
        lines.append(f"{listed(devices, 5)}: {in_words(entry['before'])} drawn as {in_words(entry['after'])}")
    if len(replaced) > SHOWN:
        lines.append(f"{len(replaced) - SHOWN} more kinds of replaced devices, in the field replaced_devices")
    return lines


def in_words(figures: Mapping[str, Any]) -> str:
    """Return the model of a side of an entry with its size, value and rating."""
    words = []
    if "w_um" in figures and "l_um" in figures:
        words.append(f"{figures['w_um']:g} x {figures['l_um']:g} um")
    if figures.get("m", 1) != 1:
        words.append(f"m={figures['m']}")
    if "ohm" in figures:
        words.append(f"{figures['ohm']:g} ohm")
    if "farad" in figures:
        words.append(f"{figures['farad'] * 1e15:g} fF")
    if "supply_v" in figures:
        words.append(rating(figures["supply_v"], None, None))
    of = f" of {figures['technology']}" if "technology" in figures else ""
    return f"{figures['model']}{of}" + (f" ({', '.join(words)})" if words else "")
