"""Routing: nets joined by wires and vias on a track graph over the technology's stack."""

from layoutkit.route.router import draw_routes, route
from layoutkit.route.routes import (
    NetRequest,
    Patch,
    RoutedNet,
    RouteOptions,
    RoutingResult,
    Terminal,
    Via,
    Wire,
)

__all__ = [
    "NetRequest",
    "Patch",
    "RouteOptions",
    "RoutedNet",
    "RoutingResult",
    "Terminal",
    "Via",
    "Wire",
    "draw_routes",
    "route",
]
