"""Routing by name: nets of a request get the pins that the layout names, and pin objects become endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError
from layoutkit.flow.contents import Contents
from layoutkit.layout.cells import choose_cell
from layoutkit.layout.workspace import Workspace
from layoutkit.tools.routing_request import request_data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.flow.contents import NamedPin
    from layoutkit.technology import Technology

LAYERS = ("metal1", "metal2")
VIA = "via1"
OF_BUILD = (
    *("width", "priority", "mirror_of", "current", "symmetric"),
    *("match_length", "shield", "apart_from", "least_cuts", "avoid_layers", "hop_layer"),
)
"""What a net has from the build that made the layout, unless the request states it."""
MIRRORED = ("mirror_of", "symmetric")
COMMON = ("routing_layers", "via_layer", "obstacles", "routing_area", "axis_x")


def with_named_pins(
    params: Mapping[str, Any], technology: Technology, workspace: Workspace | None, source: kdb.Layout | None
) -> dict[str, Any]:
    """Return a request in which every net has endpoints.

    Nets of ``net_pairs`` that the request does not list are added, and the second of a pair mirrors the first. A net
    without endpoints joins all pins with its name; in the layout of a build it has the widths, layers and obstacles of
    that build, unless the request states others.

    Args:
        params: The request.
        technology: The process.
        workspace: Holds the layout and what a build left; None where ``source`` is routed.
        source: The layout to route in; None for that of the workspace.

    Raises:
        LayoutkitError: With everything that is wrong, such as a name that fewer than two pins have.
    """
    nets = [dict(net) for net in params.get("nets", ())]
    for first, second in params.get("net_pairs", ()):
        for name in (first, second):
            if not any(net["net_name"] == name for net in nets):
                nets.append({"net_name": name})
        next(net for net in nets if net["net_name"] == second)["mirror_of"] = first
    for net in nets:
        if "endpoints" in net:
            net["endpoints"] = [_endpoint(point) for point in net["endpoints"]]
    unnamed = [net for net in nets if "endpoints" not in net]
    common = {"routing_layers": list(LAYERS), "via_layer": VIA, "obstacles": []}
    if unnamed:
        layout = source or (workspace or Workspace(None)).read_layout()
        contents = Contents.of(choose_cell(layout, params.get("cell_name")), technology, workspace)
        build = request_data(contents.placement.job) if contents.placement else {}
        known = {net["net_name"]: net for net in build.get("nets", ())}
        common |= {name: build[name] for name in COMMON if name in build}
        names = {net["net_name"] for net in nets}
        paired = {name for pair in params.get("net_pairs", ()) for name in pair}
        for net in unnamed:
            of_build = {
                name: known[net["net_name"]][name] for name in OF_BUILD if name in known.get(net["net_name"], {})
            }
            if net["net_name"] in paired:  # what the request mirrors is not mirrored as the build did
                of_build = {name: value for name, value in of_build.items() if name not in MIRRORED}
            net.update(
                {name: value for name, value in of_build.items() if name not in net and _has(value, name, names)}
            )
        _give_pins(contents, unnamed)
    if not nets and "nets" not in params:  # a pipeline whose modules need no wires states an empty list
        raise LayoutkitError(
            "there is nothing to route: give nets, or net_pairs",
            details={"param_name": "net_pairs", "provided_value": []},
        )
    return {**common, **params, "nets": nets}


def _has(value: Any, name: str, names: set[str]) -> bool:
    """Return whether a request can have this field of a build: the nets that it names are in the request."""
    return name not in {"mirror_of", "shield"} or value in names


def _endpoint(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return an endpoint as ``read_job`` reads it; a pin object has ``layer_name`` and ``box``."""
    if "box" not in point:
        return dict(point)
    box = point["box"]
    size = {"width": box["width"], "height": box["height"]}
    return {
        "layer": point["layer_name"],
        "x": round(box["x"] + box["width"] / 2, 6),
        "y": round(box["y"] + box["height"] / 2, 6),
        **(size if all(size.values()) else {}),
    }


def _give_pins(contents: Contents, nets: Sequence[dict[str, Any]]) -> None:
    """Add the endpoints of nets that have none.

    Raises:
        LayoutkitError: If fewer than two pins have the name of a net.
    """
    faults = []
    for net in nets:
        name = net["net_name"]
        pins = [pin for pin in contents.pins if pin.net == name]
        pins += [label for label in contents.labels if label.net == name and _is_apart(contents, label, pins)]
        if not pins:
            contents.pieces_of(name)  # which lists the nets there are
        if len(pins) < len(("one", "other")):
            faults.append(
                f"net '{name}' has {len(pins)} pin in cell '{contents.cell.name}', so there is nothing to join"
            )
        net["endpoints"] = [_point(contents, pin) for pin in pins]
    if faults:
        raise LayoutkitError(
            f"{'; '.join(faults)}; label its other pins, or give endpoints",
            details={"param_name": "nets", "errors": faults},
        )


def _is_apart(contents: Contents, label: NamedPin, pins: Sequence[NamedPin]) -> bool:
    """Return whether a label of the cell itself is on metal that holds none of ``pins``."""
    here = contents.nets.at(label.layer, label.point)
    if here is None:
        return False
    nets = (contents.nets.at(pin.layer, pin.point) for pin in pins)
    return all(net is None or net.cluster_id != here.cluster_id for net in nets)


def _point(contents: Contents, pin: NamedPin) -> dict[str, Any]:
    um, box = contents.technology.to_um, pin.box
    size = {"width": um(box.width()), "height": um(box.height())} if box.width() and box.height() else {}
    return {"layer": pin.layer, "x": um((box.left + box.right) / 2), "y": um((box.bottom + box.top) / 2), **size}
