"""What is made from the current layout: a GDSII or OASIS file, a picture, a comparison, metrics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutkitError
from layoutkit.layout import files
from layoutkit.layout.cells import choose_cell, to_unit
from layoutkit.layout.export import ExportOptions, export_layout, lef_of
from layoutkit.layout.reports import LAYOUT, noted
from layoutkit.layout.workspace_record import STORED_FILES
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.view.comparison import Side, compare, picture, shape_differences
from layoutkit.view.drawing_data import drawing_data, markers_at, read_markers
from layoutkit.view.metrics import compute
from layoutkit.view.render import ViewOptions, render, save

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.circuit.roles import PortUse


def export(params: Mapping[str, Any], current: CurrentLayout) -> dict[str, Any]:
    """Write the current layout, or what ``params`` (of ``export.gds``) select of it, and return what was written.

    Raises:
        FileError: If the target is the layout itself or cannot be written.
        LayoutkitError: If a selected cell or layer does not exist.
    """
    output_path, layer_filter = params["output_path"], params.get("layer_filter")
    named = any(isinstance(entry, str) and not entry.replace("/", "").isdigit() for entry in layer_filter or ())
    technology = current.technology() if named or "technology" in params else None
    layout = current.read()
    if Path(output_path).resolve() == current.path.resolve():
        raise FileError(
            f"output_path is the file the layout comes from ({output_path}); give another name",
            details={"param_name": "output_path", "provided_value": output_path},
        )
    options = ExportOptions(
        cell_name=params.get("cell_name"),
        flatten=params["flatten"],
        layer_filter=layer_filter,
        unit_m=params["unit"],
        precision_m=params["precision"],
        technology=technology,
    )
    return export_layout(layout, output_path, options)


def export_lef(params: Mapping[str, Any], current: CurrentLayout) -> tuple[dict[str, Any], list[str]]:
    """Write the LEF of the exported cell where ``params`` ask for it; return what was written, and warnings.

    Use and direction of the pins are those of the workspace's circuit, where it has these ports.

    Raises:
        FileError: If the file cannot be written.
        LayoutkitError: If the cell has no pins, or a name that LEF cannot hold.
    """
    if "lef_path" not in params:
        return {}, []
    from layoutkit.circuit import find_roles, read_netlist

    layout = current.read()
    uses: Mapping[str, PortUse] = {}
    cell = choose_cell(layout, params.get("cell_name"))
    if current.workspace is not None and current.workspace.circuit_path.is_file():
        uses = find_roles(read_netlist(str(current.workspace.circuit_path), identify_modules=False)).ports
    lef, path = lef_of(cell, current.technology(), uses), Path(params["lef_path"]).resolve()
    files.write_bytes(path, noted(lef.text.encode(), {LAYOUT: current.sha256}))
    return {"lef": {"path": str(path), "pins": list(lef.pins), "inside": list(lef.inside)}}, list(lef.warnings)


def draw_picture(params: Mapping[str, Any], current: CurrentLayout) -> dict[str, Any]:
    """Draw the current layout as ``params`` (of ``layout.render_view``) request and return what the picture shows.

    Raises:
        FileError: If the picture cannot be written, or a report cannot be read.
        LayoutkitError: If there is nothing to draw, or there are too many markers.
    """
    from layoutkit.tools.layout_checks import present_markers

    technology = current.technology()
    layout = current.read()
    suffix = ".html" if "answers" in params else ".png"
    path = _target(params.get("output_path") or str(current.path.with_suffix(suffix)), suffix, current)
    cell = choose_cell(layout, params.get("cell_name"))
    markers, doubts = markers_at(params.get("violations", ())), []
    if "report_path" in params:
        doubts = current.doubts_of(params["report_path"])
        markers += read_markers(params["report_path"], cell)
    if "markers" in params:
        markers += present_markers(params["markers"], layout, cell, current)
    view = ViewOptions(
        width=params["width"],
        height=params["height"],
        region=tuple(params["region"]) if "region" in params else None,
        layers=params.get("layers"),
        legend=params["legend"],
        labels=params["labels"],
        title=params.get("title"),
    )
    picture = render(cell, technology, view, markers)
    if "answers" in params:
        page = _checks_page(params["answers"], cell, picture.png, current)
        files.write_bytes(path, page.encode())
    else:
        save(picture, path, current.sources())
    current.add_reports(str(path))
    return {
        "page_path" if "answers" in params else "image_path": str(path),
        "cell_name": cell.name,
        "width": picture.width,
        "height": picture.height,
        "region": list(picture.region),
        "layers_drawn": list(picture.layers_drawn),
        "labels_drawn": picture.labels_drawn,
        "markers_drawn": picture.markers_drawn,
        "layout_sha256": current.sha256,
        "warnings": [*doubts, *current.warnings],
    }


def _checks_page(answers: Mapping[str, Any], cell: kdb.Cell, png: bytes, current: CurrentLayout) -> str:
    """Return the report page of a layout that was checked; ``answers`` maps each tool to its result."""
    from layoutkit.flow.summary import faults
    from layoutkit.view.report_page import ReportInputs, report_page

    report: dict[str, Any] = {name.partition(".")[0]: dict(data) for name, data in answers.items()}
    for name, data in report.items():
        if data.get("layout_sha256") != current.sha256:
            raise LayoutkitError(f"the result of {name} is for another layout; run {name} again on {current.path}")
    left = [name for name in ("drc", "lvs", "review") if name not in report]
    if "drc" in report:
        report["drc"] |= report["drc"]["summary"]
    if "lvs" in report:
        report["lvs"]["dummies"] = len(report["lvs"]["dummies"])
    technology = current.technology()
    inputs = ReportInputs(
        report={**report, "technology": technology.name, "remaining_stages": left},
        circuit={"name": cell.name, "devices": []},
        drawing=drawing_data(cell, technology),
        picture=png,
        faults=faults(report),
        digests={LAYOUT: current.sha256},
    )
    return report_page(inputs)


def _target(target: str, suffix: str, *currents: CurrentLayout) -> Path:
    """Return the path of a file to write, which replaces none of the layouts that it shows.

    Raises:
        FileError: If it has another suffix, or nothing can be written there.
    """
    if not target.lower().endswith(suffix):
        raise FileError(f"output_path must end in {suffix}, got {target!r}", details={"param_name": "output_path"})
    for current in currents:
        current.check_target(target)
    return Path(target).resolve()


def compare_two(params: Mapping[str, Any]) -> dict[str, Any]:
    """Compare two layouts as ``params`` (of ``layout.compare_layouts``) request; draw both in one picture.

    Each is a workspace or a layout file. Sizes, figures, verdicts and findings are those of the builds.

    Raises:
        FileError: If a layout is missing or cannot be read, or the picture cannot be written.
        LayoutkitError: If there is nothing to draw.
    """
    currents = [_layout_at(params[name], params.get("technology")) for name in ("before", "after")]
    path = _target(params.get("output_path") or str(currents[1].path.with_name("comparison.png")), ".png", *currents)
    layouts = [current.read() for current in currents]
    technology, other = (current.technology() for current in currents)
    sides, warnings = [], []
    drawn = [any(not cell.bbox().empty() for cell in layout.top_cells()) for layout in layouts]
    if technology.name != other.name and all(drawn):  # an empty file names no process
        warnings.append(
            f"the layouts are of two processes: layers have the names of {technology.name}, not {other.name}"
        )
    for current, layout in zip(currents, layouts, strict=True):
        to_unit(layout, min(each.dbu for each in layouts))
        side, doubts = _side(current, choose_cell(layout, params.get("cell_name")))
        sides.append(side)
        warnings += doubts
    before, after = sides
    shapes = shape_differences(before.cell, after.cell, technology)
    data = {"before": str(currents[0].path), "after": str(currents[1].path), **compare(before, after, shapes)}
    image, marked = picture(
        before.cell, after.cell, technology, shapes, ViewOptions(width=params["width"], height=params["height"])
    )
    save(image, path)
    return {**data, "image_path": str(path), "places_marked": marked, "warnings": warnings}


def _layout_at(path: str, technology: str | None) -> CurrentLayout:
    """Return the layout of a workspace's folder, or the layout file ``path``."""
    where = "workspace" if Path(path).is_dir() else "layout_path"
    return CurrentLayout({where: path, **({} if technology is None else {"technology": technology})})


def _side(current: CurrentLayout, cell: kdb.Cell) -> tuple[Side, list[str]]:
    """Return a layout with what its build said of it, and warnings about what is missing."""
    circuit = {each["id"]: each for each in current.devices()}
    workspace, summary = current.workspace, {}
    if workspace is not None and current.path == workspace.layout_path and workspace.path("summary.json").is_file():
        summary = workspace.read_json("summary.json")
    if not STORED_FILES.accepts(summary, "summary") or summary["layout_sha256"] != current.sha256:
        missing = (
            f"{current.path} has no up-to-date summary.json of a build: its verdicts and findings are not compared"
        )
        return Side(cell, {}, circuit), [missing]
    return Side(cell, summary, circuit), []


SHOWN = 20


def measure(params: Mapping[str, Any], current: CurrentLayout) -> tuple[dict[str, Any], list[str]]:
    """Return the metrics of a cell, as ``params`` (of ``eval.compute_metrics``) request, and what was not measured.

    Raises:
        LayoutkitError: If the cell is empty, or a pair or an area names something that does not exist.
    """
    from layoutkit.extract.connectivity import labelled_gates
    from layoutkit.extract.current_limits import judge_currents, labelled_loads
    from layoutkit.extract.extractor import extract
    from layoutkit.extract.matched_groups import MatchingReport, MeasuredGroup
    from layoutkit.extract.strap_loss import strap_losses, straps_data

    technology = current.technology()
    layout = current.read()
    cell = choose_cell(layout, params.get("cell_name"))
    gates = labelled_gates(cell, technology)
    metrics = compute(
        cell,
        technology,
        gates,
        matched_pairs=[tuple(pair) for pair in params.get("matched_pairs", ())],
        area_targets=params.get("area_targets"),
    )
    stated = {entry["net"]: entry["current"] for entry in params.get("net_currents", ())}
    if stated:
        verdicts = judge_currents(cell, technology, labelled_loads(cell, technology, current.devices(), stated))
        metrics["currents"] = [each.to_json() for each in verdicts]
    straps = strap_losses(cell, technology)
    metrics["straps"] = straps_data(straps)
    notes: list[str] = []
    if "matched_groups" in params:
        groups = [MeasuredGroup(tuple(names)) for names in params["matched_groups"]]
    else:
        wanted = current.matched_groups()
        groups = [MeasuredGroup(names) for names in wanted if set(names) <= gates.keys()]
        missing = {names: [name for name in names if name not in gates] for names in wanted}
        notes = [
            f"matched group {' '.join(names)} is not measured: the cell has no labelled gate of {', '.join(absent)}"
            for names, absent in missing.items()
            if absent
        ]
        if not wanted:
            notes.append("no matched groups are known of this layout, so none is measured; give matched_groups")
    if groups:
        report = MatchingReport(extract(layout, cell, technology), cell, straps)
        metrics["matched_groups"] = [dict(group) for group in report.measure(groups)]
    return metrics, notes[:SHOWN]
