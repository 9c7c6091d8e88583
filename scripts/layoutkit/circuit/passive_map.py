"""Map resistors, capacitors and other devices that are not transistors to a technology: device and legal size.

- **Device**: the technology's device of the same model (a model of fixed width states its width); else its default, or
  the one that the masks of the other devices make. A junction of another process is drawn in the substrate only where
  one end is the net of the substrate, else in a well.
- **Size**: width and length as the netlist states them; ``series`` bars become one length. Where the model is another
  process's, or no size is stated, the value decides: the size that has this resistance or capacitance. A foreign
  resistor without a value keeps its number of squares, a foreign capacitor or diode its size, with a warning. The name
  of a foreign resistor's model may state its width, as ``sky130_fd_pr__res_high_po_0p35`` does.
- Capacitors that state values in an integer ratio and share a net become plates of one size, in that ratio.
- Sizes are snapped to the nearest grid point, so that every bar of a folded resistor is on the grid. A foreign width
  below the minimum becomes the minimum, the squares stay; of the process's own resistors such a width is refused.
- Bipolar transistors: ``bipolar_map``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutkit.circuit.bipolar_map import map_bipolar, sized, with_units
from layoutkit.circuit.readers.model_names import width_in_name
from layoutkit.circuit.roles import find_roles
from layoutkit.circuit.supplies import structural_supplies
from layoutkit.circuit.symmetry_graph import shared_nets
from layoutkit.circuit.widths import nearest_width
from layoutkit.errors import GeometryError, NetlistError, listed, sentences
from layoutkit.technology.device_kinds import DEEP_WELL
from layoutkit.technology.passive_sizes import (
    MOST_IN_SERIES,
    SIZE_OF_VALUE,
    PassiveSize,
    capacitance,
    common_plates,
    drawn_length,
    folded_gate,
    integer_ratio,
    rectangle_sides,
    smallest_plate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device

    Report = Callable[[str, str | float | None, str | float, str], None]
    DeviceReport = Callable[[Device, str, tuple[str | float | None, str | float], str], None]


_ROUNDING = 1e-9  # relative difference of two equal sizes
_OTHER_VALUE = 2  # ratio from which a stated value is not that of the size, whatever the ends of a resistor add
_LEAST_DRAWN = 1e-15  # F, where no technology says which plates it draws
_SHOWN = 20  # most devices in a message


class _Choice(NamedTuple):
    spec: Any
    exact: bool
    width_m: float | None


def map_passive(technology: Any, device: Device, report: Report, substrate: str = "") -> Device:
    """Return ``device`` as one of the technology's, with ``w``, ``l`` and ``m``.

    Args:
        technology: A ``layoutkit.technology.Technology`` that has devices of this type.
        device: Device that is not a transistor, as a reader returned it.
        report: Receives field, value before, value after and reason of every change.
        substrate: Net of the substrate; empty where the circuit names none.

    Raises:
        NetlistError: If neither its size nor its value says what to draw.
    """
    device = with_units(device)
    if "area" in device.params and "perimeter" not in device.params and with_sides(device) is not device:
        report("area", None, device.params["area"], "an area without a perimeter is taken as a square")
    if device.kind.in_cells:
        return map_bipolar(technology, device, report)
    device = with_sides(device)
    if device.kind.area_counts:
        return map_bipolar(technology, device, report)
    choice = _chosen(technology, device, substrate)
    if choice.spec.cell is not None:
        return replace(sized(technology, choice.spec, device), model=choice.spec.name)
    if not choice.exact:
        reason = f"{device.type} {device.model} drawn as {choice.spec.name} of {technology.name}"
        report("model", device.model, choice.spec.name, reason)
    try:
        size = _size(technology, device, choice, report)
    except GeometryError as error:
        raise NetlistError(f"'{device.id}': {error}") from error
    width, length = (
        _on_grid(technology, device, name, value, report) for name, value in (("w", size.w_m), ("l", size.l_m))
    )
    bends = {"bends": device.params["b"]} if choice.exact and choice.spec.bend and device.params.get("b") else {}
    if device.kind.in_series == "lengths" and not bends:
        length = _in_bars(technology, choice.spec, width, length, report)
    if choice.spec.type == "mos_capacitor":
        size, width = _folded(technology, choice.spec, size, width, report)
    params: dict[str, float] = {
        "w": width,
        "l": length,
        "m": device.m * size.m,
        **bends,
        **deep_well(technology, device),
    }
    if size.series > 1:
        params["series"] = size.series
    if choice.spec.fed:
        usual = choice.spec.usual_feed(round(width * 1e6 / technology.dbu_um)) * technology.dbu_um * 1e-6
        params["wfeed"] = _on_grid(technology, device, "wfeed", device.params.get("wfeed") or usual, report)
    return replace(device, model=choice.spec.name, params=params)


def deep_well(technology: Any, device: Device) -> dict[str, float]:
    """Return the parameter of a device that its netlist puts in a deep well, by its name or by the parameter."""
    named = technology is not None and technology.device_names.in_deep_well(device.model)
    return {DEEP_WELL: 1} if named or device.in_deep_well else {}


def without_parasitics(circuit: Circuit, technology: Any, *, keep: bool = False) -> Circuit:
    """Return the circuit without the capacitances of wires that layout extractors write as capacitors.

    They are the capacitors without a model that are smaller than the smallest that the technology draws, and those of
    0 and less. Where there is one of these, an extractor wrote the netlist, and those smaller than one plate count,
    too, which plates in series would make up otherwise. A warning states their number and sum.

    Args:
        circuit: What a reader returned.
        technology: A ``layoutkit.technology.Technology``; None where none is known: its plates are of 1 fF then.
        keep: Whether they stay, so that those that cannot be drawn are refused.

    Raises:
        NetlistError: If capacitors of 0 and less are to stay.
    """
    plain = [device for device in circuit.devices if device.type == "capacitor" and device.model == device.type]
    sized = {"w", "l", "area"}
    values = {each.id: each.params["c"] for each in plain if "c" in each.params and not sized & each.params.keys()}
    if keep:
        wrong = [f"'{name}': c must be positive, got {value:g}" for name, value in values.items() if value <= 0]
        if wrong:
            raise NetlistError(f"Invalid netlist: {sentences(wrong, _SHOWN)}")
        return circuit
    bound, plate = f"below {_LEAST_DRAWN * 1e15:g} fF, which no process draws,", _LEAST_DRAWN
    specs = [] if technology is None else [spec for spec in technology.passives.values() if spec.type == "capacitor"]
    if specs:
        spec = max(specs, key=lambda each: bool(each.default))
        side = technology.to_um(smallest_plate(technology, spec))
        plate = capacitance(spec, side, side)
        bound = f"below {plate * 1e15:.4g} fF, the smallest plate of {technology.name},"
    if not any(value <= 0 or value < plate / MOST_IN_SERIES * (1 - _ROUNDING) for value in values.values()):
        return circuit
    dropped = {name: value for name, value in values.items() if value <= 0 or value < plate * (1 - _ROUNDING)}
    sum_ff = sum(circuit.device(name).m * value for name, value in dropped.items()) * 1e15
    shown = listed(dropped)
    text = (
        f"capacitors without a model and {bound} are taken for capacitances of wires and left out: "
        f"{len(dropped)} with {sum_ff:.4g} fF in all; keep_parasitics keeps them: {shown}"
    )
    devices = tuple(device for device in circuit.devices if device.id not in dropped)
    return replace(circuit, devices=devices, warnings=(*circuit.warnings, text))


def with_common_plates(
    technology: Any, circuit: Circuit, mapped: Sequence[Device], report: DeviceReport
) -> list[Device]:
    """Return mapped devices, capacitors that share a net and state values in an integer ratio made of equal plates.

    Only capacitors that state a value and no size are changed, and only where they share a net that is no supply.

    Args:
        technology: Process.
        circuit: The circuit before mapping.
        mapped: Its devices after mapping, in order.
        report: Receives device, field, value before and after, and reason of every change.
    """
    found = {device.id: device for device in mapped}
    models = {device.id: device.model for device in mapped if device.params.get("series", 1) == 1}
    for members in value_groups(circuit, models):
        spec = technology.passives[models[members[0].id]]
        try:
            size, counts = common_plates(technology, spec, [device.params["c"] * device.m for device in members])
        except GeometryError:
            continue  # each keeps the plates of its own value
        params = {"w": round(size.w_m, 15), "l": round(size.l_m, 15)}
        ratio = ":".join(map(str, counts))
        for device, count in zip(members, counts, strict=True):
            before = found[device.id]
            after = {**params, "m": count, **deep_well(technology, before)}
            if dict(before.params) != after:
                report(device, "m", (device.m, count), f"capacitors in an integer ratio are {ratio} equal plates")
                found[device.id] = replace(before, params=after)
    return [*found.values()]


def with_common_bars(technology: Any, circuit: Circuit, mapped: Sequence[Device], report: DeviceReport) -> list[Device]:
    """Return mapped devices, resistors that state values in an integer ratio that counts as long as so many equal bars.

    Each length alone would be rounded to the grid, so that 20 kohm were not twice 10 kohm.

    Args:
        technology: Process.
        circuit: The circuit before mapping.
        mapped: Its devices after mapping, in order.
        report: Receives device, field, value before and after, and reason of every change.
    """
    found = {device.id: device for device in mapped}
    stated = {
        each.id for each in circuit.devices if each.type == "resistor" and "r" in each.params and "l" not in each.params
    }
    if len(stated) < 2:
        return [*mapped]
    for module in (each for each in find_roles(circuit).groups if each.type == "resistor_ratio"):
        alike: dict[tuple[str, float], list[Device]] = {}
        for device in (circuit.device(name) for name in module.devices if name in stated):
            after = found[device.id]
            if after.m == device.m == 1 and after.params.get("series", 1) == 1:
                alike.setdefault((after.model, after.w), []).append(device)
        for members in alike.values():
            for device, length_m in _in_equal_bars(technology, members, [found[each.id] for each in members]):
                before = found[device.id]
                report(device, "l", (before.l, length_m), "resistors in an integer ratio are multiples of one bar")
                found[device.id] = replace(before, params={**before.params, "l": length_m})
    return [*found.values()]


def _in_equal_bars(technology: Any, stated: Sequence[Device], mapped: Sequence[Device]) -> list[tuple[Device, float]]:
    """Return the resistors whose length changes where all become multiples of one length on the grid, and to what."""
    try:
        counts = integer_ratio([device.params["r"] for device in stated])
    except GeometryError:
        return []
    spec, dbu_m = technology.passives[mapped[0].model], technology.dbu_um * 1e-6
    width = round(mapped[0].w / dbu_m)
    unit = technology.snap(sum(device.l for device in mapped) / sum(counts) / dbu_m)
    lengths = [unit * count for count in counts]
    if unit < spec.min_l or any(drawn_length(technology, spec, width, length) != length for length in lengths):
        return []
    return [
        (device, round(length * dbu_m, 15))
        for device, before, length in zip(stated, mapped, lengths, strict=True)
        if abs(length * dbu_m - before.l) > dbu_m / 2
    ]


def value_groups(circuit: Circuit, models: Mapping[str, str]) -> list[list[Device]]:
    """Return the capacitors that state a value and no size in groups of one model that share a net that is no supply.

    Args:
        circuit: The circuit.
        models: Those that count, with the model of each.
    """
    supplies = structural_supplies(circuit)
    return shared_nets(
        [
            device
            for device in circuit.devices
            if device.id in models
            and device.kind.value == "c"
            and device.params.get("c", 0) > 0
            and not {"w", "l", "area"} & device.params.keys()
        ],
        lambda device: models[device.id],
        supplies.nets,
    )


def with_sides(device: Device) -> Device:
    """Return the device with ``w`` and ``l`` where it states an area instead; an area alone is that of a square.

    Raises:
        NetlistError: If no rectangle has its area and perimeter.
    """
    params = device.params
    if "area" not in device.kind.compared or "area" not in params or {"w", "l"} <= params.keys():
        return device
    area = params["area"]
    sides = sides_of(area, params.get("perimeter", 4 * max(0.0, area) ** 0.5), device.id)
    return replace(device, params={**params, **sides})


def sides_of(area: float, perimeter: float, device_id: str) -> dict[str, float]:
    """Return w and l of the rectangle of this area [m2] and perimeter [m], as LVS decks state capacitors and diodes.

    Raises:
        NetlistError: If there is no such rectangle.
    """
    sides = rectangle_sides(area, perimeter)
    if sides is None:
        raise NetlistError(
            f"'{device_id}': no rectangle has the area a={area:g} m2 and the perimeter p={perimeter:g} m"
            f"; a square of this area has a perimeter of {4 * math.sqrt(max(0.0, area)):.4g} m"
        )
    return {"w": round(sides[0], 12), "l": round(sides[1], 12)}


def stated_length(device: Device, bend_m: float | None = None) -> float | None:
    """Return the length [m] of a passive with its bars in series (``series``, gf180mcu's ``s``), None if not stated.

    Args:
        device: The passive.
        bend_m: Length that a bend of a resistor (sg13g2's ``b``) counts as in its model; None where none is known. [m]

    Raises:
        NetlistError: If it has bends of unknown length.
    """
    length = device.params.get("l")
    if device.kind.in_series != "lengths":
        return length
    bends = device.params.get("b", 0)
    if bends > 0 and length is not None:
        if bend_m is None:
            raise NetlistError(
                f"'{device.id}' ({device.model}) has b={bends:g} bends, whose length is not known here; "
                "state its whole length as l, without b"
            )
        length = length * (bends + 1) + bends * bend_m
    return None if length is None else length * device.params.get("series", 1) * device.params.get("s", 1)


def bend_length(spec: Any, width_m: float | None) -> float | None:
    """Return the straight length [m] that the process's model gives a bend of a resistor, None where it has none."""
    if spec.bend is None or width_m is None:
        return None
    return float(spec.bend_um(width_m * 1e6) * 1e-6)


def _chosen(technology: Any, device: Device, substrate: str) -> _Choice:
    unit = technology.dbu_um * 1e-6
    alike = [spec for spec in technology.passives.values() if spec.type == device.type]
    exact = technology.device_names.drawn(device.model)
    if exact is not None and exact.type == device.type:
        width = technology.device_names.fixed_width(device.model)
        return _Choice(exact, True, None if width is None else width * unit)
    fitting = [spec for spec in alike if not spec.in_substrate or device.terminals.get(spec.body_terminal) == substrate]
    return _Choice(max(fitting or alike, key=lambda spec: (technology.makes(spec), bool(spec.default))), False, None)


def _size(technology: Any, device: Device, choice: _Choice, report: Report) -> PassiveSize:
    spec, params = choice.spec, device.params
    width = choice.width_m or params.get("w")
    if width is not None and abs(params.get("w", width) - width) > technology.dbu_um * 1e-6:
        reason = f"the model of {device.type}s states their width, whatever w says"
        report("w", params["w"], width, reason)
    length = stated_length(device, bend_length(spec, width) if choice.exact else None)
    if length is not None and params.get("b", 0) > 0:
        reason = "bends of resistors count as long as the model of the process has them"
        report("l", params["l"], length, reason)
    key = device.kind.value
    if width is None and length is not None and device.kind.in_series == "lengths":
        if choice.exact:
            width = (spec.widths[0] if spec.widths else spec.min_w) * technology.dbu_um * 1e-6
            report("w", None, width, f"missing width of {device.type}s taken as the minimum")
        elif named := width_in_name(device.model):
            width = named
            report("w", None, width, f"missing width of {device.type}s read from the name of their model")
    if width is not None and length is not None and (choice.exact or key not in params):
        _tell_other_value(device, spec, PassiveSize(width, length), report)
        return _legal(technology, device, choice, PassiveSize(width, length), report)
    if params.get(key, 0) <= 0 or device.type not in SIZE_OF_VALUE:
        other = f"a value {key} above 0" if device.type in SIZE_OF_VALUE else "an area"
        given = ", ".join(f"{name}={params[name]:g}" for name in ("w", "l", key) if name in params)
        raise NetlistError(
            f"'{device.id}' ({device.model}) states neither w and l nor {other}{given and f' (only {given})'}, and "
            f"{device.model} is no model of {technology.name} that has a size; state them in the netlist"
        )
    size = SIZE_OF_VALUE[device.type](technology, spec, params[key])
    reason = f"sizes of {device.type}s follow from their values, {key} = {params[key]:g}"
    if size.series > 1:
        reason = (
            f"{device.type}s smaller than the smallest {spec.name}, {key} = {params[key]:g}, are {size.series} larger "
            "ones in series"
        )
    report("l", None, size.l_m, reason)
    return size


def _tell_other_value(device: Device, spec: Any, size: PassiveSize, report: Report) -> None:
    """Tell a value far from that of the size beside it, per unit and in all; ends and edges are within reach."""
    stated = device.params.get(device.kind.value, 0)
    if stated <= 0 or device.type not in ("resistor", "capacitor"):
        return
    width_um, length_um = size.w_m * 1e6, size.l_m * 1e6
    is_resistor = device.kind.in_series == "lengths"
    value = spec.value * length_um / width_um if is_resistor else capacitance(spec, width_um, length_um)
    total = value / device.m if is_resistor else value * device.m
    if all(max(each / stated, stated / each) > _OTHER_VALUE for each in (value, total)):
        reason = f"{device.type}s are drawn with their w and l, which are those of another value than is stated"
        report(device.kind.value, f"{stated:.4g}", f"{value:.4g}", reason)


def _legal(technology: Any, device: Device, choice: _Choice, size: PassiveSize, report: Report) -> PassiveSize:
    """Return ``size``; a resistor of a width that is not allowed is scaled to one that is."""
    spec = choice.spec
    if device.kind.in_series != "lengths":
        return size if choice.exact else _foreign_rectangle(technology, spec, size, report)
    width = nearest_width(technology, spec, size.w_m)
    if width == size.w_m:
        return size
    report("w", size.w_m, width, "resistors of a width that the process does not have keep their number of squares")
    return PassiveSize(width, size.l_m * width / size.w_m, size.m)


def _foreign_rectangle(technology: Any, spec: Any, size: PassiveSize, report: Report) -> PassiveSize:
    """Return the plate or junction of a device of another process, grown where this one has none so small."""
    unit = technology.dbu_um * 1e-6
    width, length = max(size.w_m, spec.min_w * unit), max(size.l_m, spec.min_l * unit)
    if width * length < spec.min_area * unit**2 * (1 - _ROUNDING):
        width = length = technology.snap_up(math.sqrt(spec.min_area)) * unit
    grown = [
        (name, before, after)
        for name, before, after in (("w", size.w_m, width), ("l", size.l_m, length))
        if abs(after - before) > _ROUNDING * before
    ]
    for name, before, after in grown:
        report(name, before, after, f"{spec.kind.noun}s smaller than this process allows became the smallest")
    if not grown:
        reason = f"{spec.kind.noun}s of other processes keep their size, which is another value here"
        report("w", size.w_m, size.w_m, reason)
        return size
    return PassiveSize(width, length, size.m)


def _folded(technology: Any, spec: Any, size: PassiveSize, width_m: float, report: Report) -> tuple[PassiveSize, float]:
    """Return size and width of the gates of a MOS capacitor, wide ones cut into equal narrower ones."""
    width = round(width_m * 1e6 / technology.dbu_um)
    part, m = folded_gate(technology, spec, width, size.m)
    if part == width:
        return size, width_m
    narrow: float = round(part * technology.dbu_um * 1e-6, 15)
    report("w", width_m, narrow, "wide gates of MOS capacitors are cut into equal narrower ones")
    return replace(size, m=m), narrow


def _in_bars(technology: Any, spec: Any, width_m: float, length_m: float, report: Report) -> float:
    """Return the length that the bars of a resistor have together: each of them is on the grid."""
    width, length = (round(each * 1e6 / technology.dbu_um) for each in (width_m, length_m))
    drawn = drawn_length(technology, spec, width, length)
    if drawn == length:
        return length_m
    result: float = round(drawn * technology.dbu_um * 1e-6, 15)
    report("l", length_m, result, "lengths of resistors made a whole number of grid steps in each bar")
    return result


def _on_grid(technology: Any, device: Device, name: str, length_m: float, report: Report) -> float:
    dbu = length_m * 1e6 / technology.dbu_um
    snapped = technology.snap(dbu)
    result: float = round(snapped * technology.dbu_um * 1e-6, 15)
    if abs(snapped - dbu) > 0.01:
        report(
            name, length_m, result, f"{device.type} sizes snapped to the {technology.to_um(technology.grid):g} um grid"
        )
    return result
