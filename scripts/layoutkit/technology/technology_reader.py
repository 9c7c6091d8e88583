"""Read a technology file into a Technology; technology-format.md of the skill technology-files describes the format."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from layoutkit.errors import TechnologyError, sentences
from layoutkit.file_schema import frozen
from layoutkit.technology.device_cell import read_cell
from layoutkit.technology.device_kinds import KINDS, PASSIVE_KINDS, FileFields
from layoutkit.technology.device_names import read_forms, read_names
from layoutkit.technology.device_specs import DeepWell, DeviceSpec, PassiveSpec
from layoutkit.technology.parasitic_data import (
    read_matching,
    read_parasitics,
    read_simulation_models,
    uncertain_parasitics,
)
from layoutkit.technology.technology import (
    AREA_KINDS,
    DIMENSIONLESS_KINDS,
    LENGTHS_OF_CONDUCTORS,
    MAX_LENGTH,
    NO_LENGTHS_OF_CUTS,
    Conductor,
    Cut,
    ElectricalSources,
    LayerSpec,
    Rule,
    Silicon,
    Technology,
)
from layoutkit.technology.technology_files import SHIPPED, document_of, file_of, names, texts_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

RULE_FIELDS = frozenset({"id", "kind", "value", "description", "severity", "source"})
_BEND = ("widths", "length_um", "space_um")
MAX_SHOWN = 20  # faults in a message; the details hold all


def originals_first() -> list[str]:
    """Return the names of the shipped technologies, sorted, those that are based on another one last."""
    return sorted(names(), key=lambda name: load(name).based_on != "")


def without_variants(found: Collection[str]) -> list[str]:
    """Return names of shipped technologies without those that are based on another one of them."""
    return [name for name in found if load(name).based_on not in found]


def load(name_or_path: str) -> Technology:
    """Return the technology called ``name_or_path``: a shipped name or the path of a YAML file.

    Raises:
        TechnologyError: If there is none, or the file does not describe a technology.
    """
    return _loaded(texts_of(file_of(name_or_path)))


@lru_cache(maxsize=16)
def _loaded(texts: tuple[tuple[Path, str], ...]) -> Technology:
    """Return the technology that a file with this content and these bases describes; parsing YAML costs 20 ms."""
    path, data = texts[0][0], document_of(texts)
    if path.resolve().parent != SHIPPED.resolve():  # the shipped files are checked by the tests
        from layoutkit.technology.inspection import Inspection

        faults = [str(fault) for fault in Inspection(data).run()]
        if faults:
            raise TechnologyError(
                f"technology file {path.name} has {len(faults)} fault(s): {sentences(faults, MAX_SHOWN)}",
                details={"faults": faults},
            )
    return _Reader(data, path).technology()


def read_rule(entry: Mapping[str, Any], dbu_um: float) -> Rule:
    """Return the rule that one checked entry of a list of rules states, its number in database units.

    Raises:
        TechnologyError: If its value is beyond the lengths of a layout.
    """
    kind, raw, rule_id = entry["kind"], entry.get("value"), entry["id"]
    number = None if raw is None else float(raw)
    if number is not None and kind not in DIMENSIONLESS_KINDS:
        number = round(number / dbu_um ** (2 if kind in AREA_KINDS else 1))
    rule = Rule(
        id=rule_id,
        kind=kind,
        description=entry.get("description", ""),
        severity=entry.get("severity", "error"),
        value=int(number) if number is not None and (kind not in DIMENSIONLESS_KINDS or kind == "angle") else None,
        value_um=None if raw is None else float(raw),
        source=entry.get("source", ""),
        options={key: value for key, value in entry.items() if key not in RULE_FIELDS},
    )
    if abs(rule.value or 0) > MAX_LENGTH ** (2 if kind in AREA_KINDS else 1):
        raise TechnologyError(f"rule '{rule_id}': its value {raw:g} is beyond {MAX_LENGTH} database units")
    return rule


def _layer(name: str, entry: Mapping[str, Any]) -> LayerSpec:
    plain = {key: entry[key] for key in ("color", "description", "purpose") if key in entry}
    return LayerSpec(name, (int(entry["gds"][0]), int(entry["gds"][1])), **plain, **_lists(entry, "fill", "slots"))


def _lists(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the lists of layers that an entry states."""
    return {name: tuple(entry[name]) for name in names if name in entry}


def _options(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of the masks that a file or a device states."""
    return {str(name): str(value) for name, value in entry.get("options", {}).items()}


def _known(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers that an entry of ``silicon`` states."""
    return {key: value for key, value in entry.items() if key != "uncertain"}


def _uncertainties(stack: Mapping[str, Any], parasitics: Mapping[str, Any]) -> list[str]:
    """Return a note on each electrical number that the file marks as uncertain."""
    named = [*stack.get("silicon", {}).items(), *uncertain_parasitics(parasitics)]
    named += [(str(entry["name"]), entry) for part in ("conductors", "cuts") for entry in stack[part]]
    return [
        f"{name}: {key} is uncertain: {reason}"
        for name, entry in named
        for key, reason in entry.get("uncertain", {}).items()
    ]


class _Reader:
    """Turns the parsed file into the model; lengths become database units here and nowhere else."""

    def __init__(self, data: dict[str, Any], path: Path) -> None:
        self.data = data
        self.path = path
        self.dbu_um = float(data["dbu_um"])
        try:
            self.rules = tuple(read_rule(entry, self.dbu_um) for entry in data.get("rules", []))
        except TechnologyError as error:
            raise self._fault(str(error)) from error
        self.rule_values = {rule.id: rule.value for rule in self.rules}
        if len(self.rule_values) != len(self.rules):
            seen: set[str] = set()
            twice = sorted({r.id for r in self.rules if r.id in seen or seen.add(r.id)})  # type: ignore[func-returns-value]
            raise self._fault(f"rules defined twice: {', '.join(twice)}")

    def technology(self) -> Technology:
        data = self.data
        try:
            stack = data["stack"]
            devices = {n: self._device(n, e) for n, e in data["devices"].items() if e["type"] not in PASSIVE_KINDS}
            netlists = read_forms(data)
            return Technology(
                name=str(data["technology"]),
                description=str(data.get("description", "")),
                path=str(self.path),
                based_on=str(data.get("based_on", "")),
                dbu_um=self.dbu_um,
                grid=self._length(data["grid_um"], "grid_um"),
                layers={name: _layer(name, entry) for name, entry in data["layers"].items()},
                roles=dict(data["roles"]),
                aliases=dict(data.get("aliases", {})),
                conductors=tuple(self._conductor(entry) for entry in stack["conductors"]),
                cuts=tuple(self._cut(entry) for entry in stack["cuts"]),
                contact=self._cut(stack["contact"]),
                dimensions=self._dimensions(data["dimensions"], "dimensions"),
                devices=devices,
                derived=dict(data.get("derived", {})),
                rules=self.rules,
                passives={
                    n: self._passive(n, e, [cards[n].model for cards in netlists.values()], devices)
                    for n, e in data["devices"].items()
                    if e["type"] in PASSIVE_KINDS
                },
                netlists=netlists,
                silicon={name: Silicon(**_known(entry)) for name, entry in stack.get("silicon", {}).items()},
                electrical=ElectricalSources(**stack.get("electrical", {})),
                notes=(
                    *(str(note) for note in data.get("notes", ())),
                    *_uncertainties(stack, data.get("parasitics", {})),
                ),
                parasitics=read_parasitics(data.get("parasitics", {})),
                deep_well=self._deep_well(),
                silicon_labels={well: tuple(layers) for well, layers in data.get("silicon_labels", {}).items()},
                simulation=read_simulation_models(data.get("simulation")),
                names=read_names(data.get("device_names", {})),
                options=_options(data),
                option_layers=dict(data.get("option_layers", {})),
                other_layers={
                    name: _layer(name, {"gds": gds, "purpose": purpose})
                    for purpose, named in data.get("other_layers", {}).items()
                    for name, gds in named.items()
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise self._fault(f"malformed entry ({type(error).__name__}: {error})") from error

    def _fault(self, text: str) -> TechnologyError:
        return TechnologyError(f"technology file {self.path.name}: {text}")

    def _length(self, reference: Any, where: str) -> int:
        """Return a length [dbu] from a number in um, a rule id, or a list of these (the largest counts)."""
        if isinstance(reference, list):
            return max(self._length(part, where) for part in reference)
        if isinstance(reference, bool) or reference is None:
            raise self._fault(f"{where}: expected a rule id or a length in um, got {reference!r}")
        if isinstance(reference, (int, float)):
            if not abs(reference / self.dbu_um) <= MAX_LENGTH:
                raise self._fault(f"{where}: {reference:g} um is longer than {MAX_LENGTH} database units")
            return round(reference / self.dbu_um)
        if " + " in reference:
            return sum(self._length(part, where) for part in reference.split(" + "))
        value = self.rule_values.get(reference)
        if value is None:
            raise self._fault(f"{where}: there is no rule '{reference}' with a number")
        return value

    def _dimensions(self, section: Mapping[str, Any], where: str) -> dict[str, int]:
        return {name: self._length(reference, f"{where}.{name}") for name, reference in section.items()}

    def _lengths(self, entry: Mapping[str, Any], names: Iterable[str], where: str) -> dict[str, Any]:
        """Return those of the lengths of an entry that it states. [dbu]"""
        return {name: self._length(entry[name], where) for name in names if entry.get(name) is not None}

    def _conductor(self, entry: Mapping[str, Any]) -> Conductor:
        name = entry["name"]
        lengths = self._lengths(entry, (*LENGTHS_OF_CONDUCTORS, "area"), name)
        known = {"name", "layer", "label", "pin", "uncertain", *LENGTHS_OF_CONDUCTORS, "area"}
        limits = {key: value for key, value in entry.items() if key not in known}
        layer, label = entry.get("layer", name), entry.get("label", name)
        return Conductor(name, layer, label, entry.get("pin"), **lengths, **limits)

    def _cut(self, entry: Mapping[str, Any]) -> Cut:
        name = entry["name"]
        lengths = self._lengths(entry, entry.keys() - NO_LENGTHS_OF_CUTS, name)
        for key, same in (("enclose_below_end", "enclose_below"), ("enclose_above_end", "enclose_above")):
            lengths.setdefault(key, lengths.get(same, 0))
        lengths.setdefault("array_reach", lengths.get("array_space", 0))
        limits = {key: entry[key] for key in ("array_count", "current_ma", "resistance_ohm") if key in entry}
        return Cut(name, entry.get("layer", name), entry["below"], entry["above"], **lengths, **limits)

    def _deep_well(self) -> DeepWell | None:
        entry = self.data.get("deep_well")
        if entry is None:
            return None
        dimensions = self._dimensions(entry.get("dimensions", {}), "deep_well.dimensions")
        return DeepWell(**{**frozen(entry), "dimensions": dimensions})

    def _stated(self, name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an entry states that devices of all kinds may state."""
        where = f"devices.{name}"
        return {
            "name": name,
            "type": entry["type"],
            "model": entry.get("model", name),
            "dimensions": self._dimensions(entry.get("dimensions", {}), f"{where}.dimensions"),
            **self._lengths(entry, ("min_l", "min_w", "max_l", "max_w"), where),
            **{key: entry[key] for key in ("default", "ring_text") if key in entry},
        }

    def _device(self, name: str, entry: Mapping[str, Any]) -> DeviceSpec:
        stated = (
            "implant",
            "bulk_implant",
            "well",
            "supply_v",
            "saturation_ma_um",
            "block",
            "source_marker",
            "drain_marker",
        )
        return DeviceSpec(
            matching=read_matching(self.data.get("matching", {}).get(name, {})),
            **self._stated(name, entry),
            **{key: entry[key] for key in stated if key in entry},
            **_lists(entry, "markers", "covers", "optional"),
        )

    def _passive(
        self, name: str, entry: Mapping[str, Any], on_cards: list[str], transistors: Mapping[str, DeviceSpec]
    ) -> PassiveSpec:
        where, stated = f"devices.{name}", self._stated(name, entry)
        fields = KINDS[entry["type"]].file or FileFields()
        widths = tuple(self._length(width, f"{where}.widths") for width in entry.get("widths", ()))
        least = stated["min_w"], stated["min_l"]
        cell = read_cell(entry["cell"], least, self._length, f"{where}.cell") if fields.cell else None
        if cell is not None and cell.fixed:
            stated |= {"max_w": least[0], "max_l": least[1]}
        elif cell is not None:
            widths = tuple(least[0] * count for count in range(1, cell.most + 1))
            stated["max_w"] = widths[-1]
        return PassiveSpec(
            other_models=tuple(sorted({*entry.get("other_models", ()), *on_cards} - {stated["model"]})),
            terminals=int(entry.get("terminals", len(KINDS[entry["type"]].terminals))),
            parts={part: str(entry[part]) for part in fields.layers},
            value=float(entry[fields.value]) if fields.value else 0.0,
            edge_value=float(entry.get(fields.edge_value, 0.0)),
            widths=widths,
            min_area=self._area(entry.get("min_area", 0), f"{where}.min_area"),
            max_area=self._area(entry["max_area"], f"{where}.max_area") if "max_area" in entry else None,
            conductor=self._conductor_of(entry.get("body")),
            well=str(entry["body"]) if entry.get("body") in {*self._wells(), entry.get("core")} - {None} else "",
            diffusion_of=transistors[entry["diffusion_of"]] if "diffusion_of" in entry else None,
            frames={key: self._frame(frame, f"{where}.frames.{key}") for key, frame in entry.get("frames", {}).items()},
            base_growth=self._growth(entry.get("base_growth"), f"{where}.base_growth"),
            usual_size=self._pair(entry["usual_size"], f"{where}.usual_size") if "usual_size" in entry else None,
            usual_ma_um=entry.get("usual_ma_um"),
            bend=tuple(float(entry["bend"][part]) for part in _BEND) if "bend" in entry else None,
            options=_options(entry),
            cell=cell,
            **stated,
            **_lists(entry, "markers", *fields.layer_lists),
        )

    def _wells(self) -> set[str]:
        """Return the layers of n wells, of deep wells, and of the p wells that are drawn in these."""
        drawn = (*(self.data["roles"].get(role) for role in ("nwell", "deep_nwell")), self._in_deep_well())
        return {name for name in drawn if name}

    def _in_deep_well(self) -> str | None:
        return (self.data.get("deep_well") or {}).get("body")

    def _conductor_of(self, body: str | None) -> str:
        """Return the name of the conductor that is drawn on the layer ``body``; empty for other layers."""
        listed = self.data["stack"]["conductors"] if body else ()
        return next((entry["name"] for entry in listed if entry.get("layer", entry["name"]) == body), "")

    def _frame(self, frame: Any, where: str) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the distances of the inner and outer edges of a frame in x and y. [dbu]"""
        inner, outer = (self._pair(edge if isinstance(edge, list) else [edge, edge], where) for edge in frame)
        return inner, outer

    def _pair(self, pair: Any, where: str) -> tuple[int, int]:
        return self._length(pair[0], where), self._length(pair[1], where)

    def _growth(self, entry: Any, where: str) -> tuple[float, int] | None:
        return None if entry is None else (float(entry["share"]), self._length(entry["above"], where))

    def _area(self, reference: Any, where: str) -> int:
        """Return an area [dbu2] from a number in um2 or the id of an area rule."""
        if isinstance(reference, str):
            return self._length(reference, where)
        return round(float(reference) / self.dbu_um**2)
