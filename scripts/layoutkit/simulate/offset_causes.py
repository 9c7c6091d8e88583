"""The offset of a layout by its causes: simulated, predicted from the figures of a build, and random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TOLD = ("devices", "value", "unit", "unchecked")


def offsets_apart(answer: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the offset by its causes: what the layout adds, what its figures predict, and what is random.

    Args:
        answer: Of ``compare_post_layout``.
        groups: The matched groups of a build's ``matching``.
    """
    told: dict[str, Any] = {}
    layout = [each for each in answer["corners"][0]["measurements"] if each["name"] == "offset" and "change" in each]
    random = [each for each in answer.get("monte_carlo", ()) if each["name"] == "offset"]
    predicted = [
        {**{name: offset[name] for name in _TOLD if name in offset}, **_sigma(offset)}
        for group in groups
        for offset in group.get("predicted_offsets", ())
    ]
    if layout:
        told["layout"] = layout[0]["change"]
    if random:
        told["random_sigma"] = random[0]["sigma"]
    if predicted:
        told["predicted"] = predicted
    return {"offset": told} if told else {}


def _sigma(offset: Mapping[str, Any]) -> dict[str, float]:
    """Return the random part that the technology states, in the unit of the offset."""
    random = offset.get("random_sigma")
    return {} if random is None or "value" not in random else {"random_sigma": random["value"]}
