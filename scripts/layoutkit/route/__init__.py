"""Routing: nets joined by wires and vias on a track graph over the technology's stack."""

from layoutkit.route.drawing import draw_routes
from layoutkit.route.router import route
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
