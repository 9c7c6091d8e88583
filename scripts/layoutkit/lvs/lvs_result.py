"""The verdict of LVS as data, and the differences that it reports. Each text names both sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import BlackBox
    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction, Point
    from layoutkit.lvs.reference import Reference


# Kinds in the order of the report: causes first, possible consequences last.
KINDS = (
    "nothing_compared",
    "unrecognised_device",
    "short",
    "open",
    "floating_bulk",
    "missing_device",
    "extra_device",
    "swapped_nets",
    "swapped_ports",
    "wrong_connection",
    "wrong_parameter",
    "missing_port",
    "extra_port",
    "net_mismatch",
)


@dataclass(frozen=True)
class LvsMismatch:
    """One difference.

    Attributes:
        kind: One of ``KINDS``.
        message: What differs, naming net or device on both sides.
        cause: What most often is behind it, and what to look at.
        reference: Names of the netlist's nets or devices concerned.
        layout: The layout's names of nets or devices, with a place to look at where there is one.
        terminals: Of each net of a short, its net in the layout and the fingers with the terminal that is on it.
    """

    kind: str
    message: str
    cause: str
    reference: tuple[str, ...] = ()
    layout: tuple[tuple[str, Point | None], ...] = ()
    terminals: tuple[tuple[tuple[int, DrawnFinger, str], ...], ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the mismatch as JSON data; places in micrometres."""
        return {
            "kind": self.kind,
            "message": self.message,
            "cause": self.cause,
            "reference": list(self.reference),
            "layout": [{"name": name, **_place_json(place)} for name, place in self.layout],
        }

    @property
    def rank(self) -> tuple[int, str]:
        """Sorts mismatches: by kind, then by text."""
        return KINDS.index(self.kind), self.message


def wrong_parameter(message: str, cause: str, ids: Sequence[str], drawn: Iterable[ExtractedDevice]) -> LvsMismatch:
    """Return the mismatch of devices that are there, but of another size or kind than those of the netlist."""
    places = tuple((device.id, device.place) for device in drawn)
    return LvsMismatch("wrong_parameter", message, cause, tuple(ids), places)


def at(place: Point | None) -> str:
    """Return `` at (x, y)`` for a sentence, nothing when there is no place."""
    return "" if place is None else f" at ({place.x:g}, {place.y:g}) um"


MAX_MISMATCHES = 50


@dataclass(frozen=True)
class LvsResult:
    """The verdict and its basis.

    Attributes:
        matched: Whether the layout is the circuit.
        mismatches: At most ``MAX_MISMATCHES`` differences, causes first; empty where nothing differs.
        mismatch_count: How many there are in all.
        device_pairs: Extracted device -> ids of the netlist's transistors it stands for; empty unless nets pair up.
        nets: Net of the layout, by number -> net of the netlist: proven under all labels, else what labels say.
        net_pairs: Net of the layout -> net of the netlist; empty unless nets pair up.
        tolerance: Relative difference of sizes that was allowed. [1]
        warnings: What does not decide the verdict but should be known.
        extraction: The layout side.
        reference: The netlist side.
    """

    matched: bool
    mismatches: tuple[LvsMismatch, ...]
    mismatch_count: int
    device_pairs: Mapping[str, tuple[str, ...]]
    nets: Mapping[int, str]
    net_pairs: Mapping[str, str]
    tolerance: float
    warnings: tuple[str, ...]
    extraction: Extraction
    reference: Reference

    @property
    def complete(self) -> bool:
        """Whether extraction read every layer drawn (but for waived ones) and the whole netlist was compared."""
        return not (self.extraction.coverage.unchecked or self.reference.black_boxes)

    @property
    def verdict(self) -> str:
        """The verdict in words; a layout with devices that replace others of the netlist never is just complete."""
        if not self.matched:
            return "not matched"
        if not self.complete:
            return "not complete"
        text = "complete with replaced devices" if self.reference.replaced else "complete"
        return f"{text}, grounds joined by the substrate" if self.joins_grounds else text

    @property
    def joins_grounds(self) -> bool:
        """Whether a marker makes parts of the substrate nets of their own, which silicon joins."""
        technology, layout = self.extraction.technology, self.extraction.layout
        marker, cell = technology.role("substrate_cut"), layout.cell(self.extraction.cell_name)
        layer = None if marker is None else layout.find_layer(*technology.spec(marker).gds)
        return layer is not None and cell is not None and not cell.bbox_per_layer(layer).empty()

    def to_json(self) -> dict[str, Any]:
        """Return verdict, mismatches, counts, ports and dummies as JSON data; places and sizes in micrometres."""
        extraction, reference = self.extraction, self.reference
        wrong = {name for mismatch in self.mismatches for name in mismatch.reference}
        paired = [ref for refs in self.device_pairs.values() for ref in refs]
        labelled = {
            name: net.labels[0].place
            for net in extraction.nets.values()
            for label in net.labels
            if (name := reference.net_named(label.text)) is not None
        }
        return {
            "matched": self.matched,
            "complete": self.complete,
            "verdict": self.verdict,
            "replaced_devices": list(reference.replaced),
            **extraction.coverage.to_data(),
            "not_compared": not_compared(self.reference.black_boxes),
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
            "mismatch_count": self.mismatch_count,
            "devices": {
                "layout": len(extraction.devices),
                "reference": len(reference.devices),
                "matched": sum(1 for ref in set(paired) if ref not in wrong),
                "extracted": [self._device_json(device) for device in extraction.devices],
            },
            "nets": {
                "layout": len(extraction.nets),
                "reference": len(reference.nets),
                "matched": len(self.net_pairs),
            },
            "ports": [{"name": port, **_place_json(labelled.get(port))} for port in reference.ports],
            "dummies": [
                {"device": finger.device, "w_um": finger.w_um, "l_um": finger.l_um, **_place_json(finger.place)}
                for finger in extraction.dummies
            ],
            "warnings": list(self.warnings),
        }

    def _device_json(self, device: ExtractedDevice) -> dict[str, Any]:
        return {
            "name": device.id,
            "reference": list(self.device_pairs.get(device.id, ())),
            "device": device.device,
            "w_um": device.w_um,
            "l_um": device.l_um,
            "fingers": len(device.fingers),
            "nets": {terminal: self.extraction.nets[net].name for terminal, net in sorted(device.nets.items())},
            **_place_json(device.place),
        }


def not_compared(black_boxes: Sequence[BlackBox]) -> list[dict[str, str]]:
    """Return the instances that were not compared, as JSON data."""
    return [{"instance": box.id, "cell": box.cell} for box in black_boxes]


def _place_json(place: Point | None) -> dict[str, float | None]:
    return {"x": None, "y": None} if place is None else {"x": place.x, "y": place.y}
