"""The tool ``layout.route_signal_nets_basic``: nets become wires in the workspace's layout.

Nets of a request may be given by name: they get the pins that the layout names, and pin objects become endpoints.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.constraint_faults import check_constraints
from layoutkit.circuit.constraints import Constraints
from layoutkit.drc.check import Options, check, select_rules
from layoutkit.drc.drc_report import nothing_to_check
from layoutkit.errors import LayoutConflictError, LayoutkitError
from layoutkit.flow.contents import Contents, NamedPin
from layoutkit.flow.design import read_constraints, source_of
from layoutkit.flow.editing import delete_wires
from layoutkit.flow.matched_wires import over_gates
from layoutkit.flow.net_wishes import net_outcomes
from layoutkit.flow.pair_loads import finished_routes
from layoutkit.flow.routing import draw_job
from layoutkit.flow.summary import outcomes_data
from layoutkit.layout.cells import check_flat_size, choose_cell, fresh_cell, store_cell
from layoutkit.layout.workspace import Workspace
from layoutkit.layout.workspace_record import check_fits
from layoutkit.route.routes import RoutedNet, RoutingResult, Via
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.tools.routing_request import constraints_of, read_job, request_data, with_constraints

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from layoutkit.flow.routing_job import RoutingJob
    from layoutkit.technology import Technology


def route_in_layout(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the route of every net, or why it has none; successful nets are drawn into the workspace's layout.

    Raises:
        LayoutkitError: If the request, the constraints or the layout cannot be used; nothing is written then.
    """
    workspace, name = Workspace(params.get("workspace")), params.get("cell_name")
    given = CurrentLayout(params) if "layout_path" in params else None
    process = workspace.technology(given.technology().path if given and given.workspace else params.get("technology"))
    constraints = read_constraints(params["constraints"]) if "constraints" in params else Constraints()
    check_constraints(constraints, None)
    source = given.read() if given else None
    widened = [net["net_name"] for net in params.get("nets", ()) if "width" in net and "endpoints" not in net]
    params = with_named_pins(params, process, None if given else workspace, source)
    job = with_constraints(read_job(process, params), constraints)
    if source is not None and given is not None:
        check_fits(source, process, given.path)
    with workspace.update_layout(process.dbu_um, process, f"route {', '.join(n.name for n in job.nets)}") as layout:
        if source is not None:
            cell = store_cell(layout, choose_cell(source, name))
        elif layout.cells() == 0:
            cell = fresh_cell(layout, name or "TOP")
        else:
            cell = choose_cell(layout, name)
        check_flat_size(cell)
        again = _freed(Contents.of(cell, process, workspace), widened) if source is None else []
        routes = finished_routes(layout, cell, job)
        _check_again(layout, cell, job, routes.result, again)
        draw_job(layout, cell, job, routes)
        drc = check_routes(layout, cell, process, routes.result)
        cell_name = cell.name
    saved = workspace.saved
    outcomes = net_outcomes(constraints_of(job, constraints), job, routes, all_nets=False)
    listed, ignored = outcomes_data(source_of(params["constraints"]) if "constraints" in params else "nets", outcomes)
    return {
        **_report(job, routes.result),
        "mirrored": [each.to_json(process) for each in routes.mirrored],
        "unequal_metal": [each.to_json(process) for each in routes.unequal],
        "constraints": listed,
        "drc": drc,
        "layout_path": str(workspace.layout_path),
        "layout_sha256": saved.sha256 if saved else "",
        "cell_name": cell_name,
        "technology": process.name,
        "warnings": [
            *job.warnings,
            *(f"the wires of net '{name}' were replaced, for another width was asked for" for name in again),
            *_unused_currents(job),
            *ignored,
            *over_gates(routes.unequal),
            *(saved.warnings if saved else ()),
        ],
    }


def _freed(contents: Contents, names: Sequence[str]) -> list[str]:
    """Delete the wires of nets that are joined already, to be drawn with another width; return these nets.

    Raises:
        LayoutConflictError: If wires of a net belong to other nets too, or hold the net's label.
    """
    freed = []
    for name in names:
        count, labels, others = delete_wires(contents, name)
        if labels or others:
            why = f"they are joined with {', '.join(sorted(others))}" if others else "the label of the net lies on them"
            raise LayoutConflictError(f"the wires of net '{name}' cannot be replaced by wider ones: {why}")
        freed += [name] if count else []
    return freed


def _check_again(
    layout: kdb.Layout, cell: kdb.Cell, job: RoutingJob, result: RoutingResult, names: Sequence[str]
) -> None:
    """Check that the nets that had wires have some again; otherwise nothing is changed.

    Raises:
        LayoutConflictError: If one has not; the message states the largest width that fits.
    """
    failed = {net.name: f"'{net.name}' ({net.reason})" for net in result.nets if net.name in names and not net.success}
    if failed:
        width = _width_that_fits(layout, cell, job, failed)
        widest = f"The largest width that fits: {job.technology.to_um(width or 0):g} um. Ask for that width, "
        raise LayoutConflictError(
            f"with that width there is no way for net {', '.join(failed.values())}; the wires stay as they are. "
            f"{widest if width else 'No width fits. Ask '}for more routing_layers, or build with more room (row_gap)"
        )


def _width_that_fits(layout: kdb.Layout, cell: kdb.Cell, job: RoutingJob, names: Collection[str]) -> int | None:
    """Return the largest width with which all these nets get wires; None if there is none. [dbu]

    Bisection finds it, provided that a narrower wire has a way wherever a wider one has.
    """
    step = 2 * job.technology.grid
    low = -(-min(job.technology.conductor(layer).width for layer in job.layers) // step)
    high, found = max(net.width or 0 for net in job.nets if net.name in names) // step, None
    while low < high:
        width = (low + high) // 2 * step
        nets = tuple(replace(net, width=min(net.width or 0, width)) if net.name in names else net for net in job.nets)
        routed = finished_routes(layout, cell, replace(job, nets=nets)).result.nets
        if all(net.success for net in routed if net.name in names):
            low, found = width // step + 1, width
        else:
            high = width // step
    return found


def _unused_currents(job: RoutingJob) -> list[str]:
    """Return a warning for each net that states no current, so that the currents of its endpoints are not used."""
    return [
        f"net '{net.name}': the currents of its endpoints are not used, because the net itself states none; "
        "give it a 'current' [A], or state it in the constraints (net_currents)"
        for net in job.nets
        if net.current is None and any(point.draw is not None and point.draw.most > 0 for point in net.endpoints)
    ]


def _report(job: RoutingJob, result: RoutingResult) -> dict[str, Any]:
    """Return the result as JSON data: ``routed_nets`` and ``routing_stats``, lengths in micrometres."""
    technology = job.technology
    succeeded = [net for net in result.nets if net.success]
    return {
        "routed_nets": [_net_data(job, net) for net in result.nets],
        "routing_stats": {
            "total_nets": len(result.nets),
            "success_count": len(succeeded),
            "failed_count": len(result.nets) - len(succeeded),
            "total_wire_length": technology.to_um(sum(net.wire_length for net in succeeded)),
        },
    }


def check_routes(layout: kdb.Layout, cell: kdb.Cell, technology: Technology, result: RoutingResult) -> dict[str, Any]:
    """Return the summary of the technology's rules on wiring and vias where routes were drawn."""
    drawn = kdb.Box()
    for net in result.nets:
        for _, rect in net.metal:
            drawn += kdb.Box(*rect)
    if drawn.empty():
        return nothing_to_check()
    layers = {c.layer for c in technology.conductors} | {c.layer for c in technology.cuts}
    operands = ("layer", "other", "outer", "inner")
    rules = [
        rule.id
        for rule in select_rules(technology, None)
        if {rule.options[name] for name in operands if name in rule.options} <= layers
    ]
    options = Options(rule_ids=rules, region=drawn.to_dtype(layout.dbu))
    return check(layout, cell, technology, options).summary()


def _net_data(job: RoutingJob, net: RoutedNet) -> dict[str, Any]:
    um, spelled = job.technology.to_um, job.spelled
    path: list[dict[str, Any]] = []
    for entry in net.path:
        if isinstance(entry, Via):
            path.append({"layer": spelled.get(entry.cut, entry.cut), "position": [um(entry.x), um(entry.y)]})
        else:
            points = [[um(x), um(y)] for x, y in entry.points]
            path.append({"layer": spelled.get(entry.layer, entry.layer), "points": points})
    data: dict[str, Any] = {
        "net_name": net.name,
        "success": net.success,
        "path": path,
        "wire_length": um(net.wire_length),
        "via_count": net.via_count,
    }
    if net.single_cuts:
        data["single_cuts"] = [single.to_json(um) for single in net.single_cuts]
    if net.patches:
        data["patches"] = [
            {"layer": spelled.get(patch.layer, patch.layer), "box": [um(side) for side in patch.rect]}
            for patch in net.patches
        ]
    if net.reason is not None:
        data["reason"] = net.reason
        data["conflicts"] = list(net.conflicts)
        data["blocked_by"] = [
            {**each.to_json(um), "layer": spelled.get(each.layer, each.layer)} for each in net.blocked_by
        ]
    return data


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
