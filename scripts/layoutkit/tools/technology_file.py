"""Technology files: describe one for those who choose devices, check a whole file, and export it to KLayout.

``validate`` finds every fault; a file without faults loads, draws and can be checked.

A description is plain data: lengths in micrometres, no geometry.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.drc.rule_files import rule_with_faults
from layoutkit.errors import TechnologyError
from layoutkit.layout.klayout_files import write_package
from layoutkit.technology import Technology, load, names
from layoutkit.technology.device_names import values_of
from layoutkit.technology.expressions import require
from layoutkit.technology.inspection import Flaw, Inspection
from layoutkit.technology.technology import AREA_KINDS, DIMENSIONLESS_KINDS, LayerSpec, Rule
from layoutkit.technology.technology_files import file_of, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.technology.device_specs import DeviceSpec, PassiveSpec

# A rule of the first kind contradicts one of the second on the same layer where its number is larger.
_AT_MOST = (("width", "max_width"), ("min_length", "max_length"), ("area", "max_area"), ("width", "exact_size"))
MAX_FAULTS = 100  # in one answer


@dataclass(frozen=True)
class TechnologyCheck:
    """What the check of one technology file says.

    Attributes:
        path: The file.
        name: What it calls itself; empty where it does not say.
        faults: What keeps it from being used, in the order of the file's sections.
        warnings: What is legal and probably not meant.
        technology: The technology, None where there are faults.
    """

    path: str
    name: str
    faults: tuple[Flaw, ...]
    warnings: tuple[Flaw, ...]
    technology: Technology | None

    @property
    def valid(self) -> bool:
        """Whether there is no fault."""
        return not self.faults

    def to_data(self) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        technology = self.technology
        counts = technology and {
            "layers": len(technology.layers),
            "conductors": len(technology.conductors),
            "transistors": len(technology.devices),
            "passives": len(technology.passives),
            "rules": len(technology.rules),
        }
        return {
            "valid": self.valid,
            "technology": self.name,
            "faults": [{"place": fault.place, "message": fault.message} for fault in self.faults[:MAX_FAULTS]],
            "fault_count": len(self.faults),
            "warnings": [{"place": fault.place, "message": fault.message} for fault in self.warnings[:MAX_FAULTS]],
            "counts": counts,
        }


def describe(name_or_path: str) -> dict[str, Any]:
    """Return a technology's layers, wiring, devices with their limits, and the number of rules, as JSON data.

    Raises:
        TechnologyError: If there is no such technology, or its file has faults.
    """
    return {"shipped": names(), **described(load(name_or_path))}


def export_klayout(technologies: Sequence[str], output_dir: str, *, pcells: bool) -> dict[str, Any]:
    """Write a folder that KLayout can use as a package, and return what it holds.

    Args:
        technologies: Names or files of technologies.
        output_dir: The folder to write.
        pcells: Whether the package offers the devices as PCells.

    Raises:
        TechnologyError: If a technology does not exist or has faults.
        FileError: If the folder cannot be written.
    """
    try:
        release = version("analog-layout-skills")
    except PackageNotFoundError:  # a checkout that is only on the path
        release = "0"
    return write_package(technologies, str(Path(output_dir).resolve()), version=release, pcells=pcells)


def validate(name_or_path: str) -> TechnologyCheck:
    """Return everything that is wrong with a technology file.

    Raises:
        TechnologyError: If there is no such file, or it is not a YAML mapping, or has nothing of a technology.
    """
    path = file_of(name_or_path)
    data = read_document(path)
    if not {"technology", "layers", "dbu_um"} & data.keys():  # its faults would quote somebody's secrets
        raise TechnologyError(
            f"{path.name} is not a technology file: it has neither 'technology' nor 'layers' nor 'dbu_um'"
        )
    inspection = Inspection(data)
    faults = inspection.run()
    surroundings = _surroundings(inspection.data, path)
    faults += _derived_faults(surroundings)
    rules: list[Rule] = []
    faults += _rule_faults(inspection, surroundings, rules)
    faults += _contradictions(rules)
    technology = None
    if not faults:
        try:
            technology = load(str(path))
        except TechnologyError as error:
            faults.append(Flaw("file", str(error)))
    return TechnologyCheck(
        path=str(path),
        name=str(data.get("technology", "")),
        faults=tuple(faults),
        warnings=tuple(_warnings(data, rules, technology)),
        technology=technology,
    )


def _surroundings(data: Mapping[str, Any], path: Path) -> Technology:
    """Return a technology that holds what expressions may name, of a file that may not load."""
    layers = {str(name): LayerSpec(str(name), (0, 0)) for name in _mapping(data, "layers")}
    dbu_um = data.get("dbu_um")
    good = isinstance(dbu_um, (int, float)) and not isinstance(dbu_um, bool) and dbu_um > 0
    return Technology(
        name=str(data.get("technology", path.stem)),
        description="",
        path=str(path),
        dbu_um=float(dbu_um) if good else 0.001,  # type: ignore[arg-type]
        grid=1,
        layers=layers,
        roles={str(k): str(v) for k, v in _mapping(data, "roles").items()},
        aliases={str(k): str(v) for k, v in _mapping(data, "aliases").items()},
        conductors=(),
        cuts=(),
        contact=None,  # type: ignore[arg-type]  # expressions do not use it
        dimensions={},
        devices={},
        derived={str(k): str(v) for k, v in _mapping(data, "derived").items()},
        rules=(),
        other_layers={
            str(name): LayerSpec(str(name), (0, 0))
            for named in _mapping(data, "other_layers").values()
            if isinstance(named, dict)
            for name in named
        },
    )


def _mapping(data: Mapping[str, Any], name: str) -> Mapping[Any, Any]:
    section = data.get(name)
    return section if isinstance(section, dict) else {}


def _derived_faults(surroundings: Technology) -> Iterator[Flaw]:
    for name, text in surroundings.derived.items():
        if name in surroundings.layers or name in surroundings.other_layers:
            yield Flaw(f"derived.{name}", "is the name of a drawn layer")
        try:
            require(text, surroundings, (name,))
        except TechnologyError as error:
            yield Flaw(f"derived.{name}", str(error))


def _rule_faults(inspection: Inspection, surroundings: Technology, rules: list[Rule]) -> Iterator[Flaw]:
    """Yield the faults of the rules beyond those of the schema, and collect the readable ones in ``rules``."""
    sources, seen = inspection.data.get("sources", {}), set()
    for entry in inspection.rules:
        place = f"rules.{entry['id']}"
        if entry["kind"] == "unchecked":
            if "layer" in entry:
                try:
                    require(str(entry["layer"]), surroundings, ())
                except TechnologyError as error:
                    yield Flaw(place, f"'layer': {error}")
            continue
        rule, found = rule_with_faults(entry, surroundings)
        yield from (Flaw(place, fault) for fault in found)
        if rule is None:
            continue
        if rule.id in seen:
            yield Flaw(place, "there is another rule of this id")
        seen.add(rule.id)
        rules.append(rule)
        if rule.source and rule.source not in sources:
            yield Flaw(place, f"source '{rule.source}' is none of 'sources': {', '.join(map(str, sources))}")


def _contradictions(rules: list[Rule]) -> Iterator[Flaw]:
    stated: dict[tuple[str, str], Rule] = {}
    for rule in rules:
        layer = rule.options.get("layer")
        if rule.value is None or not isinstance(layer, str):
            continue
        plain = not set(rule.options) - {"layer"}
        other = stated.setdefault((rule.kind, layer), rule) if plain else rule
        if other.value != rule.value:
            yield Flaw(
                f"rules.{rule.id}", f"contradicts {other.id}: {rule.kind} of {layer} is stated as another number"
            )
    for least, most in _AT_MOST:
        for (kind, layer), rule in stated.items():
            limit = stated.get((most, layer)) if kind == least else None
            if limit is not None and (rule.value or 0) > (limit.value or 0):
                yield Flaw(f"rules.{rule.id}", f"contradicts {limit.id}: no {layer} can keep both")


def _warnings(data: Mapping[str, Any], rules: list[Rule], technology: Technology | None) -> Iterator[Flaw]:
    grid = data.get("grid_um")
    for rule in rules:
        if not rule.description or not rule.source:
            yield Flaw(f"rules.{rule.id}", "says not what it is or where its number comes from")
        length = rule.kind not in AREA_KINDS | DIMENSIONLESS_KINDS and rule.value_um is not None
        if length and isinstance(grid, float) and abs(rule.value_um / grid - round(rule.value_um / grid)) > 1e-6:  # type: ignore[operator]
            yield Flaw(
                f"rules.{rule.id}", f"{rule.value_um:g} um is off the {grid:g} um grid; it is met by the next step"
            )
    if technology is None:
        return
    for conductor in technology.conductors:
        ruled = {rule.kind: rule for rule in rules if rule.options == {"layer": conductor.layer}}
        for kind, value in (("width", conductor.width), ("space", conductor.space), ("area", conductor.area)):
            if kind not in ruled and not value:
                continue
            if kind not in ruled:
                yield Flaw(f"stack.conductors.{conductor.name}", f"no rule of kind {kind} checks it")
            elif ruled[kind].value != value:
                yield Flaw(f"stack.conductors.{conductor.name}", f"its {kind} is not that of rule {ruled[kind].id}")


def described(technology: Technology) -> dict[str, Any]:
    """Return layers, wiring, devices and rule counts of ``technology`` as JSON data, in the order of its file."""
    names: dict[str, list[str]] = {}
    devices: tuple[DeviceSpec | PassiveSpec, ...] = (*technology.devices.values(), *technology.passives.values())
    for device in devices:
        names.setdefault(device.type, []).append(device.name)
    return {
        "technology": technology.name,
        "description": technology.description,
        "grid_um": technology.to_um(technology.grid),
        "layers": [
            {"name": spec.name, "gds": list(spec.gds), "description": spec.description}
            for spec in technology.layers.values()
        ],
        "conductors": [
            {
                "name": conductor.name,
                "width_um": technology.to_um(conductor.width),
                "space_um": technology.to_um(conductor.space),
            }
            for conductor in technology.conductors
        ],
        "device_names": names,
        "transistors": [_transistor(spec, technology) for spec in technology.devices.values()],
        "passives": [_passive(spec, technology) for spec in technology.passives.values()],
        "undrawn_devices": [
            {"type": entry.type, "names": list(entry.names), "reason": entry.reason, **values_of(entry)}
            for entry in technology.names.undrawn
        ],
        "rules": {
            "total": len(technology.rules),
            "by_kind": dict(sorted(Counter(rule.kind for rule in technology.rules).items())),
        },
        "notes": list(technology.notes),
    }


def _transistor(spec: DeviceSpec, technology: Technology) -> dict[str, Any]:
    return {**_named(spec), "supply_v": spec.supply_v, **_limits(spec, technology)}


def _passive(spec: PassiveSpec, technology: Technology) -> dict[str, Any]:
    value = "" if spec.kind.file is None else spec.kind.file.value
    return {
        **_named(spec),
        "terminals": spec.terminals,
        **({value: spec.value} if value else {}),
        "widths_um": [technology.to_um(width) for width in spec.widths],
        **_limits(spec, technology),
    }


def _named(spec: DeviceSpec | PassiveSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in ("name", "type", "model", "default")}


def _limits(spec: DeviceSpec | PassiveSpec, technology: Technology) -> dict[str, float | None]:
    return {
        "min_w_um": technology.to_um(spec.min_w),
        "max_w_um": None if spec.max_w is None else technology.to_um(spec.max_w),
        "min_l_um": technology.to_um(spec.min_l),
        "max_l_um": None if spec.max_l is None else technology.to_um(spec.max_l),
    }
