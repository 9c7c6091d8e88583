"""The limits of the review, from ``limits.yaml``, with those that the user states instead."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError, did_you_mean, listed
from layoutkit.file_schema import read_yaml
from layoutkit.review.finding import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.review.finding import Severity

_FILE = Path(__file__).with_name("limits.yaml")


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
        LayoutkitError: If a name is no limit, or a figure is negative or inverted; the details list every fault.
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
            f"{name}.{severity} is {value}, and must be a figure of 0 or more, or null for never"
            for severity, value in values.items()
            if value is not None and not 0 <= value < math.inf
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
