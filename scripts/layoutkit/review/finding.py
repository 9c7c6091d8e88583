"""What a review says: findings, what it could not judge, and the verdict.

Its limits are those of ``limits.yaml``, with those that the user states instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from layoutkit.errors import LayoutkitError, did_you_mean, listed
from layoutkit.file_schema import read_yaml
from layoutkit.layout.files import write_bytes
from layoutkit.layout.reports import report_bytes

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import klayout.db as kdb


Severity = Literal["must", "should"]
SEVERITIES: tuple[Severity, ...] = ("must", "should")
MOST_PLACES = 24
"""Further places of one finding that are kept, the worst first."""
_IN_WORDS = frozenset({"um", "ohm", "fF"})  # units that a reader needs no sentence for
_FILE = Path(__file__).with_name("limits.yaml")
_LARGEST = 1e6  # figure of a limit; larger distances do not fit in a layout


class Spot(NamedTuple):
    """One more place of a finding: where [dbu], and what is there in words, the shorter ones for a list."""

    box: kdb.Box
    why: str
    brief: str


@dataclass(frozen=True)
class Remark:
    """One thing that an engineer would have changed.

    Attributes:
        id: Kind of finding, a key of the limits.
        severity: ``must`` where nobody would sign, else ``should``.
        box: Where to look. [dbu]
        devices: Devices of the netlist, by their places from the lower left.
        nets: Nets of the netlist.
        measured: The figure, in the limit's unit.
        limit: The limit that it is beyond.
        unit: Unit of both.
        why: What is wrong, with the figures.
        what_to_do: How it is mended.
        cause: What findings that ``by_cause`` merges have in common; empty for a finding that is never merged.
        places: Where else it is so, the worst first.
    """

    id: str
    severity: Severity
    box: kdb.Box
    devices: tuple[str, ...]
    nets: tuple[str, ...]
    measured: float
    limit: float
    unit: str
    why: str
    what_to_do: str
    cause: str = ""
    places: tuple[Spot, ...] = ()

    def to_json(self, dbu_um: float) -> dict[str, Any]:
        """Return the finding as JSON data, its places as left, bottom, right and top. [um]"""
        names = {"devices": list(self.devices), "nets": list(self.nets), "measured": round(self.measured, 6)}
        known = {name: getattr(self, name) for name in ("limit", "unit", "why", "what_to_do")}
        more = [{"place": _sides(each.box, dbu_um), "why": each.why} for each in self.places]
        place = _sides(self.box, dbu_um)
        return {"id": self.id, "severity": self.severity, "place": place, **names, **known, "places": more}

    def everywhere(self) -> Iterator[tuple[kdb.Box, str]]:
        """Yield each of its places, and what is wrong there. [dbu]"""
        yield self.box, self.why
        for place in self.places:
            yield place.box, place.why


def _sides(box: kdb.Box, dbu_um: float) -> list[float]:
    return [round(side * dbu_um, 6) for side in (box.left, box.bottom, box.right, box.top)]


def by_cause(findings: Iterable[Remark], dbu_um: float) -> list[Remark]:
    """Return the findings; those of one kind and cause are one finding, the worst, with the places of all others.

    Severe findings are merged only if their figures are equal, too, as those of equal cells are.
    """
    found: dict[tuple[object, ...], list[Remark]] = {}
    for number, each in enumerate(findings):
        figure = f"{each.measured:.4g}" if each.severity == "must" else ""
        found.setdefault((each.id, each.cause, figure) if each.cause else (number,), []).append(each)
    return [_merged(group, dbu_um) for group in found.values()]


def _merged(findings: Sequence[Remark], dbu_um: float) -> Remark:
    first, *others = sorted(  # rounded: equal figures differ in their last digits
        findings, key=lambda each: (-float(f"{each.measured:.6g}"), each.box.left, each.box.bottom, each.nets)
    )
    places = [*first.places]
    for each in others:
        places += [Spot(each.box, each.why, _brief(each, first)), *each.places]
    if not places:
        return first
    likewise = [f"{each.brief} at ({_spot(each.box, dbu_um)})" for each in places]
    return replace(
        first,
        devices=tuple(dict.fromkeys(name for each in (first, *others) for name in each.devices)),
        nets=tuple(dict.fromkeys(net for each in (first, *others) for net in each.nets)),
        why=f"{first.why}; likewise {listed(likewise)}",
        places=tuple(places[:MOST_PLACES]),
    )


def _brief(finding: Remark, first: Remark) -> str:
    """Return what a finding is about beside another one of its cause, with its figure if that speaks for itself."""
    names = [net for net in finding.nets if net not in first.nets or len(finding.nets) == 1] or list(finding.nets)
    figure = f" ({finding.measured:.3g} {finding.unit})" if finding.unit in _IN_WORDS else ""
    return listed(names or finding.devices, most=4) + figure


def _spot(box: kdb.Box, dbu_um: float) -> str:
    """Return the middle of a box as x and y. [um]"""
    return f"{box.center().x * dbu_um:.1f}, {box.center().y * dbu_um:.1f}"


@dataclass(frozen=True)
class Unjudged:
    """What the review could not judge.

    Attributes:
        id: Kind of finding.
        reason: Why, and of what.
        matters: Whether nobody would sign without knowing it.
    """

    id: str
    reason: str
    matters: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"id": self.id, "reason": self.reason, "matters": self.matters}


@dataclass(frozen=True)
class Review:
    """The review of one layout.

    Attributes:
        findings: Those of severity ``must`` first, then by kind and place.
        unjudged: What could not be judged.
        estimated: Devices with a current that was estimated: the current [A] and how.
        dbu_um: Unit of the places. [um]
        cell_name: The cell.
    """

    findings: tuple[Remark, ...]
    unjudged: tuple[Unjudged, ...]
    estimated: tuple[tuple[str, float, str], ...]
    dbu_um: float
    cell_name: str

    @property
    def would_sign(self) -> bool:
        """Whether an engineer would sign: nothing that must change, and nothing unjudged that matters."""
        return not (self.counts["must"] or any(each.matters for each in self.unjudged))

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by severity."""
        return {name: sum(each.severity == name for each in self.findings) for name in SEVERITIES}

    def write_lyrdb(self, path: str | os.PathLike[str], sources: Mapping[str, str] | None = None) -> None:
        """Write the findings as a report database, which KLayout's marker browser opens.

        Args:
            path: Target.
            sources: What the report was made from; see ``layoutkit.layout.reports``.

        Raises:
            FileError: If ``path`` cannot be written.
        """
        from klayout import rdb

        database = rdb.ReportDatabase("review")
        database.description = "Design review"
        database.generator = "analog-layout-skills review.check_layout"
        database.top_cell_name = self.cell_name
        cell = database.create_cell(self.cell_name)
        names = [f"{each.id} ({each.severity})" for each in self.findings]
        categories = {name: database.create_category(name) for name in dict.fromkeys(names)}
        for name, each in zip(names, self.findings, strict=True):
            for box, why in each.everywhere():
                item = database.create_item(cell.rdb_id(), categories[name].rdb_id())
                item.add_value(box.to_dtype(self.dbu_um))
                item.add_value(why)
        write_bytes(path, report_bytes(database, sources))

    def to_json(self) -> dict[str, Any]:
        """Return the review as JSON data."""
        return {
            "would_sign": self.would_sign,
            **self.counts,
            "findings": [each.to_json(self.dbu_um) for each in self.findings],
            "unjudged": [each.to_json() for each in self.unjudged],
            "estimated_currents": [
                {"device": device, "current": float(f"{current:.4g}"), "how": how}
                for device, current, how in self.estimated
            ],
        }


@dataclass(frozen=True)
class Limit:
    """From where on a figure is a finding.

    Attributes:
        must: Beyond it nobody would sign; None for never.
        should: Beyond it an engineer would mend it; None for never.
        unit: Unit of both.
        source: Where they come from.
        cure: How a finding is mended as a rule.
        at_least: Whether a smaller figure is worse.
        floor: Name of the limit on the absolute difference that a must has to reach as well; empty for none.
    """

    must: float | None
    should: float | None
    unit: str
    source: str
    cure: str = ""
    at_least: bool = False
    floor: str = ""

    @property
    def is_inverted(self) -> bool:
        """Whether what is severe is reached before what is worth mending."""
        if self.must is None or self.should is None:
            return False
        return self.must > self.should if self.at_least else self.must < self.should

    def beyond(self, figure: float) -> tuple[Severity, float] | None:
        """Return the severity of a figure and the limit that it is beyond; None if it is within both."""
        for severity in SEVERITIES:
            limit: float | None = getattr(self, severity)
            if limit is not None and (figure < limit if self.at_least else figure > limit):
                return severity, limit
        return None


@cache
def shipped_limits() -> dict[str, Limit]:
    """Return the limits of the package, by finding and, where it has several figures, by its figure."""
    return {name: Limit(**entry) for name, entry in read_yaml(_FILE.read_text("utf-8"), trusted=True).items()}


def limits_with(given: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Limit]:
    """Return the limits with those that the user states, such as ``{"axis": {"must": 2}}``; null is never.

    Raises:
        LayoutkitError: If a name is no limit, or figures are out of range or inverted; the details list all.
    """
    limits = dict(shipped_limits())
    faults = [f"{name!r} is no limit{did_you_mean(name, limits)}" for name in given or {} if name not in limits]
    if faults:
        message = f"{listed(faults)}; the limits are {listed(limits, most=len(limits))}"
        raise LayoutkitError(message, details={"param_name": "limits", "errors": faults})
    for name, values in (given or {}).items():
        limits[name] = replace(limits[name], **values)
        floor = limits[name].floor
        if floor and "must" in values and floor not in (given or {}):  # the user's share holds for small ones, too
            limits[floor] = replace(limits[floor], must=0.0)
        faults += [
            f"{name}.{severity} is {value}, and must be a figure from 0 to {_LARGEST:g}, or null for never"
            for severity, value in values.items()
            if value is not None and not 0 <= value <= _LARGEST
        ]
        limit = limits[name]
        if limit.is_inverted and "should" not in values:  # the stricter must that the user states holds for both
            limits[name] = replace(limit, should=limit.must)
        elif limit.is_inverted:
            shipped, milder = " as shipped" * ("must" not in values), "more" if limit.at_least else "less"
            faults.append(
                f"{name}: should is {limit.should:g}, and must is {limit.must:g}{shipped}: state a should of "
                f"{limit.must:g} or {milder}, or another must"
            )
    if faults:
        raise LayoutkitError(listed(faults), details={"param_name": "limits", "errors": faults})
    return limits
