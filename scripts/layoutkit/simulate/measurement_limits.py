"""Limits on measurements: of a value after layout, or of its change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KINDS = ("min", "max", "max_change", "max_change_percent", "max_loss_percent")


@dataclass(frozen=True)
class Limit:
    """One bound of one measurement.

    Attributes:
        name: The measurement.
        kind: ``min`` or ``max`` of the extracted value; ``max_change`` and ``max_change_percent`` of the change in
            either direction; ``max_loss_percent`` of a decrease.
        bound: In the unit of the measurement, or in percent.
    """

    name: str
    kind: str
    bound: float

    def fault(self, measured: Mapping[str, Any]) -> str:
        """Return why a measurement does not keep the limit, or cannot be judged; empty where it does."""
        field = {"min": "extracted", "max": "extracted", "max_change": "change"}.get(self.kind, "change_percent")
        value = measured.get(field)
        if value is None and "change" in measured and field == "change_percent":
            return f"{self.name} has no change in percent, so its limit {self.kind} is not checked; give max_change"
        if value is None:
            return f"{self.name}: not measured, so its limit {self.kind} {self.bound:g} is not checked"
        unit = "%" if field == "change_percent" else measured["unit"]
        amount = {"min": value, "max": value, "max_loss_percent": -value}.get(self.kind, abs(value))
        broken = amount < self.bound if self.kind == "min" else amount > self.bound
        return f"{self.name}: {field} {value:.4g} {unit} breaks {self.kind} {self.bound:g} {unit}" if broken else ""


def limits_of(given: Mapping[str, Any]) -> list[Limit]:
    """Return the limits in ``{measurement: {kind: bound}}``.

    Raises:
        LayoutkitError: If a kind is not one of ``KINDS``.
    """
    strange = sorted({kind for bounds in given.values() for kind in bounds} - set(KINDS))
    if strange:
        raise LayoutkitError(
            f"limits: there is no kind {', '.join(strange)}; there are {', '.join(KINDS)}",
            details={"param_name": "limits", "provided_value": strange[0]},
        )
    return [Limit(name, kind, float(bound)) for name, bounds in given.items() for kind, bound in bounds.items()]


def judge(corners: Sequence[dict[str, Any]], limits: Iterable[Limit]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the corners with a verdict on each limited measurement, and the faults in words."""
    faults, broken, limited = [], set(), set()
    for limit in limits:
        for corner in corners:
            place = (corner["corner"], limit.name)
            limited.add(place)
            measured = next((each for each in corner["measurements"] if each["name"] == limit.name), None)
            fault = limit.fault(measured or {"unit": ""})
            if measured is None and corner["measurements"]:
                fault += f"; measured are {', '.join(each['name'] for each in corner['measurements'])}"
            if fault:
                broken.add(place)
                faults.append(f"{corner['corner']}: {fault}")
    judged = [
        {**corner, "measurements": [
            {**each, "passed": (corner["corner"], each["name"]) not in broken}
            if (corner["corner"], each["name"]) in limited else each
            for each in corner["measurements"]
        ]}
        for corner in corners
    ]  # fmt: skip
    return judged, faults
