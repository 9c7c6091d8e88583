"""What the flow reports about matching: the figures of each matched group, and which modules are symmetric.

Both are measured in the finished layout, with all wires. The groups are those of the constraints; the circuit says
which net each drain is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.extract.strap_loss import FingerLoss
    from layoutkit.flow.modules import Drawn
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.technology import Technology


SHOWN = 0.01
"""Step to which offsets are shown. [mV, %]"""


def matching_data(
    constraints: Constraints, circuit: Circuit, result: LvsResult, cell: kdb.Cell, straps: Sequence[FingerLoss]
) -> dict[str, Any]:
    """Return the figures of every matched group of transistors, as ``eval.compute_metrics`` gives them.

    Args:
        constraints: Hold the matched groups.
        circuit: What was laid out.
        result: Comparison of ``cell`` with the circuit; its extraction is measured.
        cell: The finished layout.
        straps: What the metal on sources and drains costs each finger of ``cell``.
    """
    from layoutkit.extract.matched_groups import MatchingReport, MeasuredGroup
    from layoutkit.flow.groups import cascodes_of

    report = MatchingReport(result.extraction, cell, straps)
    number_of = {name: number for number, name in result.nets.items()}
    for number, net in result.extraction.nets.items():
        if net.name in result.net_pairs:
            number_of[result.net_pairs[net.name]] = number
    groups: list[MeasuredGroup] = []
    unmeasured: list[dict[str, Any]] = []
    for wanted in constraints.matching:
        devices = [circuit.device(name) for name in wanted.devices]
        if len(devices) < 2 or not all(device.is_mos for device in devices):
            continue
        missing = [device.id for device in devices if device.id not in report.fingers]
        if missing:
            unmeasured.append({"devices": list(wanted.devices), "missing": missing})
            continue
        tops = cascodes_of(circuit, wanted.devices)
        for alike in ([d for d in devices if d.id not in tops], [d for d in devices if d.id in tops]):
            drains = {d.id: number_of[d.terminals["d"]] for d in alike if d.terminals["d"] in number_of}
            if alike:
                groups.append(MeasuredGroup(tuple(d.id for d in alike), drains=drains))
    return {"groups": report.measure(groups), "unmeasured": unmeasured}


def modules_data(placed: PlacedModules, technology: Technology, cell: kdb.Cell) -> list[dict[str, Any]]:
    """Return what was drawn for each group of devices as JSON data, its symmetry as measured in ``cell``. [um]"""
    return [_module(item, placed, technology, cell) for item in placed.drawn]


def _module(item: Drawn, placed: PlacedModules, technology: Technology, cell: kdb.Cell) -> dict[str, Any]:
    from layoutkit.extract.mirror_image import mirror_image
    from layoutkit.flow.symmetric_modules import centroid_error

    channels: dict[kdb.Box, str] = {}
    idle: set[kdb.Box] = set()
    for gate in item.module.gates:
        box = placed.place_of(item.module, gate.box)
        if gate.device:
            channels[box] = gate.device
        else:
            idle.add(box)
    image = mirror_image(cell, technology, channels, idle)
    return {
        "name": item.module.name,
        "type": item.group.type,
        "devices": list(item.module.devices),
        "symmetric": image.symmetric,
        "asymmetries": [dict(each) for each in image.differences],
        "pattern": item.module.pattern,
        "centroid_error": technology.to_um(centroid_error(item.module, item.group)),
        **_dummies(item),
    }


def _dummies(item: Drawn) -> dict[str, Any]:
    """Return how many dummies each end of the rows has, and why; nothing for a block that is no matched group."""
    if item.dummies is None or len(item.module.devices) < 2:
        return {}
    return {"dummies": {"at_each_end": item.dummies.count, "reason": item.dummies.reason}}


def largest_offset(groups: Sequence[Mapping[str, Any]], unit: str = "") -> float | None:
    """Return the largest predicted offset or current error of matched groups, either way; None where none is predicted.

    Args:
        groups: Of the ``matching`` of a report.
        unit: ``mV`` for offsets, ``%`` for errors of mirrors, "" for both.
    """
    offsets = [each for group in groups for each in group["predicted_offsets"] if unit in ("", each["unit"])]
    return max((abs(each["value"]) for each in offsets if each["value"] is not None), default=None)


def lines(groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line for a terminal on each set of devices whose offset was predicted."""
    found = []
    for group in groups:
        unequal = [name.replace("_", " ") for name, equal in group["equal"].items() if not equal]
        rest = f"; differ in {', '.join(unequal)}" if unequal else ""
        for offset in group["predicted_offsets"]:
            left_out = [_left_out(text, offset) for text in offset["unchecked"]]
            unknown = f"; not modelled: {', '.join(left_out)}" if left_out else ""
            found.append(f"{' '.join(offset['devices'])}: {_predicted(offset)}{unknown}{rest}")
            rest = ""
    return found


def _predicted(offset: Mapping[str, Any]) -> str:
    """Return an offset with the effects that it is the sum of; it is no zero, only smaller than what is shown."""
    value, unit = offset["value"], offset["unit"]
    if value is None:
        return "not predicted"
    counted = " and ".join(name for name, part in offset["contributions"].items() if part["counted"])
    size = f"{value:+.2f} {unit}" if abs(value) >= SHOWN / 2 else f"less than {SHOWN:g} {unit}"
    return f"{size} from {counted}"


def _left_out(unchecked: str, offset: Mapping[str, Any]) -> str:
    name = unchecked.partition(":")[0]
    return f"{name} ({offset['centroid_distance_um']:.3g} um between centroids)" if name == "distance" else name
