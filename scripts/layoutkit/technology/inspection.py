"""All faults of a technology file at once, told by the place where each stands.

``load`` stops at the first fault; this reads the same file leniently, section by section, and goes on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from layoutkit.errors import TechnologyError
from layoutkit.technology import dimensions
from layoutkit.technology.device_kinds import DRAWN_KINDS, KINDS, MOS_KINDS, FileFields, listed_kinds
from layoutkit.technology.loader import AREA_KINDS, DIMENSIONLESS_KINDS
from layoutkit.technology.netlist_forms import faults_of_forms
from layoutkit.technology.technology import PURPOSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TOP = {"technology", "dbu_um", "grid_um", "layers", "roles", "stack", "dimensions", "devices"}
TOP_OPTIONAL = {"description", "sources", "notes", "aliases", "other_layers", "derived", "rules", "netlists"}
LAYER = ({"gds"}, {"color", "description", "purpose", "fill", "slots"})
ROLES = ({"active", "tap", "poly", "contact"}, {"nwell", "pwell", "deep_nwell", "poly_contact_marker", "device_text"})
CONDUCTOR = (
    {"name", "width", "space"},
    {"layer", "label", "pin", "area", "wide_width", "wide_space", "long_edges", "max_width"},
)
CUT = (
    {"name", "below", "above", "size", "space"},
    {"layer", "enclose_below", "enclose_below_end", "enclose_above", "enclose_above_end", "array_space", "array_count"},
)
MOS = (
    {"type", "min_l", "min_w"},
    {"model", "default", "supply_v", "max_l", "max_w", "implant", "bulk_implant", "well"}
    | {"markers", "covers", "dimensions"},
)
PASSIVE = (
    {"type", "min_l", "min_w"},
    {"model", "default", "terminals", "markers", "widths", "max_l", "max_w", "min_area", "max_area", "dimensions"}
    | {"other_models"},
)
LEAST_CONDUCTORS = 3  # strips, rails, risers
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_LARGEST_GDS = 65535


@dataclass(frozen=True)
class Fault:
    """What is wrong and where: ``place`` is the path in the file, such as ``devices.nfet.min_l``."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Inspection:
    """Walks over a parsed technology file and collects its faults; rules are judged elsewhere.

    Args:
        data: The parsed file.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.faults: list[Fault] = []
        self.rules = {str(rule["id"]): rule for rule in self._list("rules") if isinstance(rule, dict) and "id" in rule}
        self.dbu_um = self._positive("dbu_um") or 0.001
        self.layers = self._section("layers")
        self.other_layers = self._section("other_layers", optional=True)
        self.roles = self._section("roles")
        self.aliases = self._section("aliases", optional=True)

    def run(self) -> list[Fault]:
        """Return the faults of every section but ``rules`` and ``derived``."""
        self._keys("file", self.data, TOP, TOP_OPTIONAL)
        self.grid_um = self._length("grid_um", self.data.get("grid_um", 0.005)) or 0.005
        self._layers()
        self._roles()
        self._stack()
        shared = self._dimension_names("dimensions", self._section("dimensions"))
        devices = self._section("devices")
        for name, entry in devices.items():
            self._device(f"devices.{name}", entry, shared)
        self._alike({name: entry for name, entry in devices.items() if isinstance(entry, dict)})
        for place, message in faults_of_forms(self.data):
            self.add(place, message)
        return self.faults

    def add(self, place: str, message: str) -> None:
        """Collect one fault."""
        self.faults.append(Fault(place, message))

    # ---- sections

    def _layers(self) -> None:
        numbers: dict[tuple[int, int], str] = {}
        for name, entry in self.layers.items():
            place = f"layers.{name}"
            if not self._keys(place, entry, *LAYER):
                continue
            self._number(place, name, entry.get("gds"), numbers)
            if "color" in entry and not _COLOR.fullmatch(str(entry["color"])):
                self.add(place, f'color must be "#rrggbb", got {short(entry["color"])}')
            self._purpose(f"{place}.purpose", entry.get("purpose", "mask"))
            for key in ("fill", "slots"):
                self._drawn_on(f"{place}.{key}", self._names(place, entry, key))
        for purpose, named in self.other_layers.items():
            self._purpose("other_layers", purpose)
            if not isinstance(named, dict):
                self.add(f"other_layers.{purpose}", "must be a mapping of names to [layer, datatype]")
                continue
            for name, gds in named.items():
                place = f"other_layers.{purpose}.{name}"
                if name in self.layers:
                    self.add(place, "is the name of another layer as well")
                self._number(place, name, gds, numbers)

    def _number(self, place: str, name: str, gds: object, numbers: dict[tuple[int, int], str]) -> None:
        good = isinstance(gds, list) and [type(number) for number in gds] == [int, int]
        if not good or not all(0 <= number <= _LARGEST_GDS for number in gds):  # type: ignore[attr-defined]
            self.add(place, f"gds must be [layer, datatype], each from 0 to {_LARGEST_GDS}, got {short(gds)}")
        elif numbers.setdefault((gds[0], gds[1]), name) != name:  # type: ignore[index]
            self.add(place, f"has the GDS number of layer '{numbers[gds[0], gds[1]]}'")  # type: ignore[index]

    def _purpose(self, place: str, purpose: object) -> None:
        if purpose not in PURPOSES:
            self.add(place, f"purpose must be one of {', '.join(PURPOSES)}, got {short(purpose)}")

    def _roles(self) -> None:
        self._keys("roles", self.roles, *ROLES)
        for section, names in (("roles", self.roles), ("aliases", self.aliases)):
            for name, layer in names.items():
                if not isinstance(layer, str) or layer not in self.layers:
                    self.add(f"{section}.{name}", self._no_layer(layer))

    def _stack(self) -> None:
        stack = self._section("stack")
        self._keys("stack", stack, {"contact", "conductors", "cuts"}, set())
        conductors = [e for e in stack.get("conductors") or [] if isinstance(e, dict)]
        if len(conductors) < LEAST_CONDUCTORS:
            self.add("stack.conductors", f"the generators need {LEAST_CONDUCTORS} conductors, got {len(conductors)}")
        names = [str(entry.get("name")) for entry in conductors]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.add("stack.conductors", f"two are called '{name}'")
        for name, entry in zip(names, conductors, strict=True):
            self._conductor(f"stack.conductors.{name}", entry)
        cuts = [entry for entry in stack.get("cuts") or [] if isinstance(entry, dict)]
        joined = [(str(entry.get("below")), str(entry.get("above"))) for entry in cuts]
        if joined != list(pairwise(names)):
            self.add("stack.cuts", f"cuts must join {_chain(pairwise(names))} in this order, got {_chain(joined)}")
        for entry in cuts:
            self._cut(f"stack.cuts.{entry.get('name')}", entry)
        self._cut("stack.contact", stack.get("contact"))

    def _conductor(self, place: str, entry: dict[str, Any]) -> None:
        if not self._keys(place, entry, *CONDUCTOR):
            return
        self._drawn_on(
            place, [entry.get("layer", entry.get("name")), *(entry.get(k) for k in ("label", "pin") if k in entry)]
        )
        for key in ("width", "space", "wide_width", "wide_space", "long_edges", "max_width"):
            if key in entry:
                self._length(f"{place}.{key}", entry[key])
        if "area" in entry:
            self._area(f"{place}.area", entry["area"])
        if ("wide_width" in entry) != ("wide_space" in entry):
            self.add(place, "wide_width and wide_space are given together or not at all")
        if "long_edges" in entry and "wide_space" not in entry:
            self.add(place, "long_edges needs wide_space, the spacing of metal whose edges are all longer")

    def _cut(self, place: str, entry: object) -> None:
        if not isinstance(entry, dict):
            self.add(place, "must be a mapping")
            return
        self._keys(place, entry, *CUT)
        self._drawn_on(place, [entry.get("layer", entry.get("name"))])
        for key in sorted((CUT[0] | CUT[1]) - {"name", "layer", "below", "above", "array_count"}):
            if key in entry:
                self._length(f"{place}.{key}", entry[key])
        if ("array_space" in entry) != ("array_count" in entry):
            self.add(place, "array_space and array_count are given together or not at all")

    def _dimension_names(self, place: str, section: object) -> set[str]:
        if not isinstance(section, dict):
            self.add(place, "must be a mapping of names to lengths")
            return set()
        for name, reference in section.items():
            if name not in dimensions.KNOWN:
                self.add(f"{place}.{name}", f"no generator asks for this dimension{_meant(name, dimensions.KNOWN)}")
            self._length(f"{place}.{name}", reference)
        return {str(name) for name in section}

    # ---- devices

    def _device(self, place: str, entry: object, shared: set[str]) -> None:
        kind = entry.get("type") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or kind not in DRAWN_KINDS:
            self.add(place, f"type must be {listed_kinds(last='or')}, got {short(kind)}")
        elif kind in MOS_KINDS:
            self._transistor(place, entry, shared)
        else:
            self._passive(place, entry)

    def _transistor(self, place: str, entry: dict[str, Any], shared: set[str]) -> None:
        self._keys(place, entry, *MOS)
        self._drawn_on(place, [entry[key] for key in ("implant", "bulk_implant", "well") if entry.get(key) is not None])
        self._drawn_on(place, [*self._names(place, entry, "markers"), *self._names(place, entry, "covers")])
        if entry.get("implant") is None and entry.get("bulk_implant") is None:
            self.add(place, "needs an implant or a bulk_implant, else nothing tells its channels from others")
        if entry["type"] == "pmos" and entry.get("well") is None:
            self.add(place, "a pmos needs a well")
        self._limits(place, entry)
        own = self._dimension_names(f"{place}.dimensions", entry.get("dimensions", {}))
        wanted = set(dimensions.ALWAYS)
        wanted |= set(dimensions.WITH_POLY_CONTACT_MARKER) if "poly_contact_marker" in self.roles else set()
        wanted |= set(dimensions.WITH_MARKERS) if entry.get("markers") else set()
        wanted |= set(dimensions.WITH_COVERS) if entry.get("covers") else set()
        lacking = sorted(wanted - own - shared)
        if lacking:
            self.add(place, f"drawing it needs the dimensions {', '.join(lacking)}, stated neither here nor for all")

    def _passive(self, place: str, entry: dict[str, Any]) -> None:
        fields = KINDS[entry["type"]].file or FileFields()
        needed = {*fields.layers, *((fields.value,) if fields.value else ())}
        needed |= {"diffusion_of"} if fields.diffusion else set()
        optional = {*fields.layer_lists, *((fields.edge_value,) if fields.edge_value else ())}
        self._keys(place, entry, PASSIVE[0] | needed, PASSIVE[1] | optional)
        parts = [entry[part] for part in fields.layers if part in entry]
        lists = ("markers", *fields.layer_lists)
        self._drawn_on(place, [*parts, *(layer for key in lists for layer in self._names(place, entry, key))])
        if "diffusion_of" in entry and fields.diffusion:
            self._transistor_named(f"{place}.diffusion_of", entry["diffusion_of"])
        for key in sorted({fields.value, fields.edge_value} - {""}):
            if key in entry and not (_is_number(entry[key]) and entry[key] > 0):
                self.add(f"{place}.{key}", f"must be a number above 0, got {short(entry[key])}")
        if entry.get("terminals", 2) not in {2, 3}:
            self.add(f"{place}.terminals", f"must be 2 or 3, got {short(entry['terminals'])}")
        self._limits(place, entry)
        for key in ("min_area", "max_area"):
            if key in entry:
                self._area(f"{place}.{key}", entry[key])
        for name, reference in (entry.get("dimensions") or {}).items():
            judge = self._area if str(name).endswith("_area") else self._length
            judge(f"{place}.dimensions.{name}", reference)

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
        """Tell transistors that a layout cannot tell apart, and types without exactly one default."""
        drawn: dict[tuple[str, frozenset[str]], str] = {}
        for name, entry in devices.items():
            if entry.get("type") in MOS_KINDS:
                marks = frozenset([*(entry.get("markers") or ()), *(entry.get("covers") or ())])
                other = drawn.setdefault((entry["type"], marks), name)
                if other != name:
                    self.add(
                        f"devices.{name}", f"has the markers and covers of '{other}'; a layout cannot tell them apart"
                    )
        for kind in sorted({str(entry.get("type")) for entry in devices.values()}):
            defaults = [name for name, entry in devices.items() if entry.get("type") == kind and entry.get("default")]
            if len(defaults) != 1:
                told = ", ".join(defaults) or "none"
                self.add("devices", f"exactly one {kind} must be the default, got {told}")

    # ---- values

    def _section(self, name: str, *, optional: bool = False) -> dict[str, Any]:
        section = self.data.get(name)
        if isinstance(section, dict):
            return section
        if section is not None or not optional:
            self.add(name, "must be a mapping" if name in self.data else "is missing")
        return {}

    def _list(self, name: str) -> list[Any]:
        section = self.data.get(name, [])
        if isinstance(section, list):
            return section
        self.add(name, "must be a list")
        return []

    def _keys(self, place: str, entry: object, needed: set[str], optional: set[str]) -> bool:
        if not isinstance(entry, dict):
            self.add(place, f"must be a mapping, got {short(entry)}")
            return False
        for key in sorted(needed - entry.keys()):
            if not (place == "file" and key in {"layers", "roles", "stack", "dimensions", "devices", "dbu_um"}):
                self.add(place, f"'{key}' is missing")
        for key in sorted(map(str, entry.keys() - needed - optional)):
            self.add(place, f"unknown '{key}'{_meant(key, needed | optional)}")
        return True

    def _names(self, place: str, entry: Mapping[str, Any], key: str) -> list[Any]:
        listed = entry.get(key, [])
        if isinstance(listed, list):
            return listed
        self.add(f"{place}.{key}", f"must be a list of layers, got {short(listed)}")
        return []

    def _drawn_on(self, place: str, names: Iterable[object]) -> None:
        for name in names:
            known = (name, self.aliases.get(str(name)), self.roles.get(str(name)))
            others = {other for named in self.other_layers.values() if isinstance(named, dict) for other in named}
            if not any(isinstance(layer, str) and layer in {*self.layers, *others} for layer in known):
                self.add(place, self._no_layer(name))

    def _no_layer(self, name: object) -> str:
        return f"there is no layer {short(name)}{_meant(str(name), self.layers)}"

    def _positive(self, name: str) -> float | None:
        value = self.data.get(name)
        if _is_number(value) and value > 0:  # type: ignore[operator]
            return float(value)  # type: ignore[arg-type]
        self.add(name, f"must be a number above 0, got {short(value)}" if name in self.data else "is missing")
        return None

    def _length(self, place: str, reference: object) -> float | None:
        """Return the length that ``reference`` states [um], None where it states none; what is wrong is collected."""
        try:
            value = self._resolved(reference)
        except TechnologyError as error:
            self.add(place, str(error))
            return None
        steps = value / self.dbu_um
        if abs(steps - round(steps)) > 1e-6:
            self.add(place, f"{value:g} um is no whole number of database units of {self.dbu_um:g} um")
        elif place != "grid_um" and abs(value / self.grid_um - round(value / self.grid_um)) > 1e-6:
            self.add(place, f"{value:g} um is off the {self.grid_um:g} um grid")
        return value

    def _resolved(self, reference: object) -> float:
        if isinstance(reference, list) and reference:
            return max(self._resolved(part) for part in reference)
        if _is_number(reference) and reference >= 0:  # type: ignore[operator]
            return float(reference)  # type: ignore[arg-type]
        if not isinstance(reference, str):
            raise TechnologyError(f"expected a rule id or a length in um, got {short(reference)}")
        if " + " in reference:
            return sum(self._resolved(part) for part in reference.split(" + "))
        rule = self.rules.get(reference)
        if rule is None:
            raise TechnologyError(f"there is no rule '{reference}'{_meant(reference, self.rules)}")
        if rule.get("kind") in AREA_KINDS | DIMENSIONLESS_KINDS or not _is_number(rule.get("value")):
            raise TechnologyError(f"rule '{reference}' ({rule.get('kind')}) states no length")
        return float(rule["value"])

    def _area(self, place: str, reference: object) -> None:
        rule = self.rules.get(reference) if isinstance(reference, str) else None
        if isinstance(reference, str) and (rule is None or rule.get("kind") not in AREA_KINDS):
            self.add(place, f"there is no rule '{reference}' that states an area{_meant(reference, self.rules)}")
        elif not isinstance(reference, str) and not (_is_number(reference) and reference >= 0):  # type: ignore[operator]
            self.add(place, f"expected an area in um2 or the id of an area rule, got {short(reference)}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _meant(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, [str(word) for word in known], 1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _chain(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{below}-{above}" for below, above in pairs) or "none"
