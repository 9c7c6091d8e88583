"""All faults of a technology file at once, each with its place.

The JSON Schema of the file comes first (``file_schema``). What a schema cannot state is checked here, on the parts that
keep it: references to layers and rules, the grid, limits, and what the generators need.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from layoutkit.errors import TechnologyError, did_you_mean, enumerated
from layoutkit.file_schema import FileSchema, without
from layoutkit.technology.device_kinds import DRAWN_KINDS, KINDS, MOS_KINDS, FileFields
from layoutkit.technology.device_names import faults_of_forms, faults_of_names
from layoutkit.technology.device_specs import FRAMES, OPTIONAL_FRAMES
from layoutkit.technology.parasitic_data import faults_of_parasitics
from layoutkit.technology.technology import (
    AREA_KINDS,
    DIMENSIONLESS_KINDS,
    LENGTHS_OF_CONDUCTORS,
    MAX_LENGTH,
    NO_LENGTHS_OF_CUTS,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

SCHEMA = FileSchema(Path(__file__).with_name("technology.schema.json"))
DIMENSIONS: dict[str, Any] = json.loads(Path(__file__).with_name("dimensions.json").read_text("utf-8"))
"""What each length means, by what a transistor has that needs it; ``always``, ``optional``; those of deep wells."""
WITH = ("poly_contact_marker", "markers", "covers", "block", "drain_marker")
KNOWN = {name: meaning for group in ("always", "optional", *WITH) for name, meaning in DIMENSIONS[group].items()}
PASSIVE = (
    {"type", "min_l", "min_w"},
    {"model", "default", "terminals", "markers", "widths", "max_l", "max_w", "min_area", "max_area", "dimensions"}
    | {"other_models", "like", "options", "ring_text"},
)


def needed_dimensions(traits: Collection[str]) -> set[str]:
    """Return the lengths that drawing a transistor needs which has ``traits``, a part of ``WITH``."""
    return {name for group in ("always", *traits) for name in DIMENSIONS[group]}


@dataclass(frozen=True)
class Flaw:
    """What is wrong and where: ``place`` is the path in the file, such as ``devices.nfet.min_l``."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Inspection:
    """Collects the faults of a technology file; rules and derived layers are judged elsewhere.

    Args:
        data: The parsed file.

    Attributes:
        faults: What is wrong.
        rules: The entries of ``rules`` that keep the schema.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        found = SCHEMA.faults(data)
        self.raw = data
        self.data: dict[str, Any] = without(data, found)
        self.faults = [Flaw(fault.place, fault.message) for fault in found]
        wrong = {fault.path[1] for fault in found if fault.path[:1] == ("rules",) and len(fault.path) > 1}
        listed = data.get("rules")
        entries = list(enumerate(listed)) if isinstance(listed, list) else []
        self.rules: list[dict[str, Any]] = [entry for number, entry in entries if number not in wrong]
        self.rule_of = {entry["id"]: entry for entry in self.data.get("rules", []) if "id" in entry}
        self.dbu_um = float(self.data.get("dbu_um", 0.001))
        self.grid_um = 0.005
        self.layers = self._section("layers")
        self.other_layers = self._section("other_layers")
        self.roles = self._section("roles")
        self.aliases = self._section("aliases")

    def run(self) -> list[Flaw]:
        """Return the faults of every section but ``rules`` and ``derived``, beyond those of the schema."""
        if "grid_um" in self.data:
            self.grid_um = self._length("grid_um", self.data["grid_um"]) or self.grid_um
        self._layers()
        self._roles()
        for well, layers in self._section("silicon_labels").items():
            self._drawn_on(f"silicon_labels.{well}", layers)
        self._stack()
        self._dimension_names("dimensions", self._section("dimensions"))
        devices = self._section("devices")
        for name, entry in devices.items():
            self._device(f"devices.{name}", entry)
        self._alike(devices)
        for name in self._section("matching"):
            self._transistor_named(f"matching.{name}", name)
        if "deep_well" in self.data:
            self._deep_well(self._section("deep_well"))
        for option, values in self._section("option_layers").items():
            place = f"option_layers.{option}"
            if option not in self._section("options"):
                self.add(place, "is no option of the section 'options'")
            for name in sorted({name for named in values.values() for name in named} - self._names("derived")):
                self.add(place, f"there is no derived layer '{name}'")
        conductors = [str(entry.get("name")) for entry in self._section("stack").get("conductors", [])]
        resistors = sorted(name for name, entry in devices.items() if entry.get("type") == "resistor")
        parasitics = faults_of_parasitics(self._section("parasitics"), conductors, resistors)
        names = faults_of_names(self._section("device_names"), devices)
        for place, message in (*parasitics, *faults_of_forms(self.data), *names):
            self.add(place, message)
        return self.faults

    def add(self, place: str, message: str) -> None:
        """Collect one fault."""
        self.faults.append(Flaw(place, message))

    # ---- sections

    def _layers(self) -> None:
        numbers: dict[tuple[int, int], str] = {}
        for name, entry in self.layers.items():
            self._number(f"layers.{name}", name, entry.get("gds"), numbers)
            for key in ("fill", "slots"):
                self._drawn_on(f"layers.{name}.{key}", entry.get(key, []))
        for purpose, named in self.other_layers.items():
            for name, gds in named.items():
                place = f"other_layers.{purpose}.{name}"
                if name in self.layers:
                    self.add(place, "is the name of another layer as well")
                self._number(place, name, gds, numbers)

    def _number(self, place: str, name: str, gds: list[int] | None, numbers: dict[tuple[int, int], str]) -> None:
        if gds is not None and numbers.setdefault((gds[0], gds[1]), name) != name:
            self.add(place, f"has the GDS number of layer '{numbers[gds[0], gds[1]]}'")

    def _roles(self) -> None:
        for section, names in (("roles", self.roles), ("aliases", self.aliases)):
            for name, layer in names.items():
                if layer not in self._names("layers"):
                    self.add(f"{section}.{name}", self._no_layer(layer))

    def _stack(self) -> None:
        stack = self._section("stack")
        conductors, cuts = stack.get("conductors", []), stack.get("cuts", [])
        names = [str(entry.get("name")) for entry in conductors]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.add("stack.conductors", f"two are called '{name}'")
        for name, entry in zip(names, conductors, strict=True):
            self._conductor(f"stack.conductors.{name}", entry)
        joined = [(str(entry.get("below")), str(entry.get("above"))) for entry in cuts]
        if joined != list(pairwise(names)):
            self.add("stack.cuts", f"cuts must join {_chain(pairwise(names))} in this order, got {_chain(joined)}")
        for entry in cuts:
            self._cut(f"stack.cuts.{entry.get('name')}", entry)
        if "contact" in stack:
            self._cut("stack.contact", stack["contact"])

    def _conductor(self, place: str, entry: dict[str, Any]) -> None:
        self._drawn_on(
            place, [entry.get("layer", entry.get("name")), *(entry[key] for key in ("label", "pin") if key in entry)]
        )
        for key in LENGTHS_OF_CONDUCTORS:
            if key in entry:
                self._length(f"{place}.{key}", entry[key])
        if "area" in entry:
            self._area(f"{place}.area", entry["area"])

    def _cut(self, place: str, entry: dict[str, Any]) -> None:
        self._drawn_on(place, [entry.get("layer", entry.get("name"))])
        for key in sorted(entry.keys() - NO_LENGTHS_OF_CUTS):
            self._length(f"{place}.{key}", entry[key])

    def _dimension_names(self, place: str, section: Mapping[str, Any], known: Mapping[str, str] = KNOWN) -> None:
        for name, reference in section.items():
            if name not in known:
                self.add(f"{place}.{name}", f"no generator uses this dimension{did_you_mean(name, known)}")
            self._length(f"{place}.{name}", reference)

    def _deep_well(self, entry: Mapping[str, Any]) -> None:
        """Report what is missing or contradictory in the description of deep wells."""
        drawn_body = "body" in entry
        for role in ("deep_nwell", "nwell"):
            if role not in self._names("roles"):
                self.add("deep_well", f"needs the role {role}")
        if "pwell" in self._names("roles"):
            self.add("deep_well", "a technology that draws all p wells (role pwell) has none")
        if drawn_body:
            self._drawn_on("deep_well.body", [entry["body"]])
        kinds = MOS_KINDS if drawn_body else ("nmos",)
        for name in entry["devices"]:
            if self._section("devices").get(name, {}).get("type") not in kinds:
                text = f"must name {' or '.join(kinds)} transistors of this file, got {short(name)}"
                self.add("deep_well.devices", text)
        for name in entry.get("lvs_deck_models", ()):
            if name not in self._section("devices"):
                self.add("deep_well.lvs_deck_models", f"must name devices of this file, got {short(name)}")
        given, needed = entry.get("dimensions", {}), DIMENSIONS["deep_well_needs"]
        self._dimension_names("deep_well.dimensions", given, DIMENSIONS["deep_well"])
        lacking = [name for name in (*needed["always"], *needed["body" if drawn_body else "ring"]) if name not in given]
        if lacking:
            self.add("deep_well.dimensions", f"drawing deep wells needs {', '.join(lacking)}")

    # ---- devices

    def _device(self, place: str, entry: dict[str, Any]) -> None:
        kind = entry.get("type")
        if kind in MOS_KINDS:
            self._transistor(place, entry)
        elif kind in DRAWN_KINDS:
            self._passive(place, entry)
        elif kind is not None:
            self.add(place, f"type must be {enumerated(DRAWN_KINDS, 'or')}, got {short(kind)}")

    def _transistor(self, place: str, entry: dict[str, Any]) -> None:
        self._drawn_on(place, [entry[key] for key in ("implant", "bulk_implant", "well") if entry.get(key) is not None])
        self._drawn_on(place, [entry[key] for key in ("block", "source_marker", "drain_marker") if key in entry])
        if ("block" in entry) != ("source_marker" in entry):
            self.add(place, "block and source_marker belong together")
        self._drawn_on(place, [name for key in ("markers", "covers", "optional") for name in entry.get(key, [])])
        self._like(place, entry)
        self._limits(place, entry)
        self._dimension_names(f"{place}.dimensions", entry.get("dimensions", {}))
        wanted = needed_dimensions({key for key in WITH if entry.get(key)} | ({"poly_contact_marker"} & {*self.roles}))
        lacking = sorted(wanted - self._names("dimensions") - self._names(*place.split(".", 1), "dimensions"))
        if lacking:
            self.add(place, f"drawing it needs the dimensions {', '.join(lacking)}, stated neither here nor for all")

    def _passive(self, place: str, entry: dict[str, Any]) -> None:
        fields = KINDS[entry["type"]].file or FileFields()
        needed = {*fields.layers, *((fields.value,) if fields.value else ())}
        junction = {"diffusion_of"} if fields.diffusion else set()
        needed |= junction if "body" not in fields.layers else set()
        optional = {*junction, *fields.layer_lists, *((fields.edge_value,) if fields.edge_value else ())}
        fixed = {"frames": fields.frames, "cell": fields.cell, "ring_text": fields.text}
        needed |= {key for key, is_needed in fixed.items() if is_needed}
        optional |= {"body"} if fields.well else set()
        optional |= {"base_growth", "usual_size"} if fields.frames else set()
        optional |= {"usual_size"} if fields.cell else set()
        optional |= {"usual_ma_um"} if entry["type"] in {"npn", "pnp"} else set()
        optional |= {"bend"} if KINDS[entry["type"]].in_series == "lengths" else set()
        self._keys(place, PASSIVE[0] | needed, PASSIVE[1] | optional)
        self._like(place, entry)
        for name in sorted(entry.get("options", {}).keys() - self._section("options").keys()):
            self.add(f"{place}.options.{name}", "is no option of the section 'options'")
        parts = [entry[part] for part in (*fields.layers, *(("body",) if fields.well else ())) if part in entry]
        lists = ("markers", *fields.layer_lists)
        self._drawn_on(place, [*parts, *(layer for key in lists for layer in entry.get(key, []))])
        if "diffusion_of" in entry and fields.diffusion:
            self._transistor_named(f"{place}.diffusion_of", entry["diffusion_of"])
        if fields.frames and "frames" in entry:
            self._frames(f"{place}.frames", entry)
        if fields.cell and isinstance(entry.get("cell"), dict):
            self._cell(f"{place}.cell", entry["cell"], KINDS[entry["type"]].terminals)
        self._limits(place, entry)
        for key in ("min_area", "max_area"):
            if key in entry:
                self._area(f"{place}.{key}", entry[key])
        for name, reference in entry.get("dimensions", {}).items():
            judge = self._area if str(name).endswith("_area") else self._length
            judge(f"{place}.dimensions.{name}", reference)

    def _like(self, place: str, entry: Mapping[str, Any]) -> None:
        if entry.get("ring_text") and "device_text" not in self.roles:
            self.add(f"{place}.ring_text", "there is no layer for the role 'device_text'")
        if "like" in entry and self._section("devices").get(entry["like"], {"like": ""}).get("like") is not None:
            self.add(f"{place}.like", f"must name a device that states its own fields, got {short(entry['like'])}")

    def _cell(self, place: str, cell: Mapping[str, Any], terminals: Sequence[str]) -> None:
        """Check that the layers of a cell exist and that its marker, its emitters and its terminals are drawn."""
        shapes = ("every", "whole", "single", "several", "columns", "grids")
        named = [name for key in (*shapes, "ring") for name in cell.get(key, {})]
        stated = {key: part for key, part in (("marker", "whole"), ("emitter", "every")) if key in cell}
        self._drawn_on(place, [*named, *(cell[key] for key in stated)])
        for key, part in stated.items():
            if cell[key] not in cell.get(part, {}):
                self.add(f"{place}.{part}", f"draws nothing on {cell[key]}, the {key}")
        for terminal in (each for each in terminals if each not in cell["pins"]):
            self.add(f"{place}.pins", f"'{terminal}' is missing")

    def _frames(self, place: str, entry: Mapping[str, Any]) -> None:
        """Check that every frame is named, and ends beyond where it begins in x and in y."""
        frames, markers = entry["frames"], entry.get("markers", [])
        for name in sorted({*FRAMES, *markers} - frames.keys()):
            self.add(place, f"'{name}' is missing")
        for name in sorted(frames.keys() - {*FRAMES, *OPTIONAL_FRAMES, *markers}):
            known = [*FRAMES, *OPTIONAL_FRAMES, *markers]
            self.add(place, f"unknown '{name}': neither a part nor one of the markers{did_you_mean(name, known)}")
        for name, frame in frames.items():
            edges = [edge if isinstance(edge, list) else [edge, edge] for edge in frame]
            found = [[self._length(f"{place}.{name}", side) for side in edge] for edge in edges]
            if any(low is not None and high is not None and low > high for low, high in zip(*found, strict=True)):
                self.add(f"{place}.{name}", "must begin nearer to the emitter than it ends")

    def _transistor_named(self, place: str, name: object) -> None:
        entry = self._section("devices").get(name) if isinstance(name, str) else None
        if not isinstance(entry, dict) or entry.get("type") not in MOS_KINDS:
            self.add(place, f"must name a transistor of this file, got {short(name)}")

    def _limits(self, place: str, entry: Mapping[str, Any]) -> None:
        for size in ("l", "w"):
            low, high = (
                self._length(f"{place}.{key}", entry[key]) if key in entry else None
                for key in (f"min_{size}", f"max_{size}")
            )
            if low is not None and high is not None and low > high:
                self.add(place, f"min_{size} {low:g} um is above max_{size} {high:g} um")

    def _alike(self, devices: Mapping[str, dict[str, Any]]) -> None:
        """Report transistors that a layout cannot distinguish, and types without exactly one default."""
        drawn: dict[tuple[str, frozenset[str]], str] = {}  # the text of a ring counts as a marker does
        for name, entry in devices.items():
            if entry.get("type") in MOS_KINDS:
                marks = frozenset([*entry.get("markers", []), *entry.get("covers", []), entry.get("ring_text", "")])
                marks |= {entry.get("drain_marker", "")}
                other = drawn.setdefault((entry["type"], marks), name)
                if other != name:
                    self.add(
                        f"devices.{name}", f"has the markers and covers of '{other}'; a layout cannot distinguish them"
                    )
        for kind in sorted({entry["type"] for entry in devices.values() if "type" in entry}):
            defaults = [name for name, entry in devices.items() if entry.get("type") == kind and entry.get("default")]
            if len(defaults) != 1:
                self.add("devices", f"exactly one {kind} must be the default, got {', '.join(defaults) or 'none'}")

    # ---- values

    def _section(self, name: str) -> dict[str, Any]:
        section = self.data.get(name, {})
        return section if isinstance(section, dict) else {}

    def _names(self, *path: str) -> set[str]:
        """Return the names of a section or entry of the file, faulty ones too, so that a fault has no consequences."""
        part: Any = self.raw
        for step in path:
            part = part.get(step) if isinstance(part, dict) else None
        return set(map(str, part)) if isinstance(part, dict) else set()

    def _keys(self, place: str, needed: set[str], optional: set[str]) -> None:
        given = self._names(*place.split(".", 1))
        for key in sorted(needed - given - {"type", "min_l", "min_w"}):
            self.add(place, f"'{key}' is missing")
        for key in sorted(given - needed - optional):
            self.add(place, f"unknown '{key}'{did_you_mean(key, needed | optional)}")

    def _drawn_on(self, place: str, names: Iterable[str | None]) -> None:
        drawn = self._names("layers").union(*(self._names("other_layers", purpose) for purpose in self.other_layers))
        for name in names:
            if name is not None and not {str(name), self.aliases.get(name), self.roles.get(name)} & drawn:
                self.add(place, self._no_layer(name))

    def _no_layer(self, name: str) -> str:
        return f"there is no layer {short(name)}{did_you_mean(name, self.layers)}"

    def _length(self, place: str, reference: object) -> float | None:
        """Return the length that ``reference`` states [um], None where it states none; what is wrong is collected."""
        try:
            value = self._resolved(reference)
        except TechnologyError as error:
            self.add(place, str(error))
            return None
        steps = value / self.dbu_um
        if steps > MAX_LENGTH:
            self.add(place, f"{value:g} um is longer than {MAX_LENGTH} database units")
        elif abs(steps - round(steps)) > 1e-6:
            self.add(place, f"{value:g} um is not a whole number of database units of {self.dbu_um:g} um")
        elif place != "grid_um" and abs(value / self.grid_um - round(value / self.grid_um)) > 1e-6:
            self.add(place, f"{value:g} um is off the {self.grid_um:g} um grid")
        return value

    def _resolved(self, reference: object) -> float:
        if isinstance(reference, list) and reference:
            return max(self._resolved(part) for part in reference)
        if isinstance(reference, (int, float)) and not isinstance(reference, bool) and reference >= 0:
            return float(reference)
        if not isinstance(reference, str):
            raise TechnologyError(f"expected a rule id or a length in um, got {short(reference)}")
        if " + " in reference:
            return sum(self._resolved(part) for part in reference.split(" + "))
        rule = self.rule_of.get(reference)
        if rule is None:
            raise TechnologyError(f"there is no rule '{reference}'{did_you_mean(reference, self.rule_of)}")
        if rule.get("kind") in AREA_KINDS | DIMENSIONLESS_KINDS or "value" not in rule:
            raise TechnologyError(f"rule '{reference}' ({rule.get('kind')}) states no length")
        return float(rule["value"])

    def _area(self, place: str, reference: object) -> None:
        rule = self.rule_of.get(reference) if isinstance(reference, str) else None
        if isinstance(reference, str) and (rule is None or rule.get("kind") not in AREA_KINDS):
            self.add(
                place, f"there is no rule '{reference}' that states an area{did_you_mean(reference, self.rule_of)}"
            )


def _chain(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{below}-{above}" for below, above in pairs) or "none"
