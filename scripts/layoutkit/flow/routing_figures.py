"""What the flow reports about routing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layoutkit.flow.routing_job import Routes
    from layoutkit.technology import Technology


def routing_data(routes: Routes, attempts: int, technology: Technology) -> dict[str, Any]:
    """Return what became of the nets as JSON data, with the length that wires cannot be shorter than. [um]"""
    routing = routes.result
    return {
        "total_nets": len(routing.nets),
        "routed": sum(net.success for net in routing.nets),
        "failed": [
            {
                "net": net.name,
                "reason": net.reason or "no reason given",
                "blocked_by": [each.to_json(technology.to_um) for each in net.blocked_by],
            }
            for net in routing.failed
        ],
        "total_wire_length": technology.to_um(routing.wire_length),
        "wire_length_bound": technology.to_um(routes.length_bound),
        "via_count": sum(net.via_count for net in routing.nets),
        "single_cuts": [
            {"net": net.name, **single.to_json(technology.to_um)} for net in routing.nets for single in net.single_cuts
        ],
        "mirrored": [each.to_json(technology) for each in routes.mirrored],
        "unequal_metal": [each.to_json(technology) for each in routes.unequal],
        "attempts": attempts,
    }
