"""Draw a picture (PNG) of the current layout, with layer colours, labels, legend, scale and DRC markers."""

try:
    from skillscript import main
except ModuleNotFoundError:  # the same lines in every script: a Python without the package answers an envelope, too
    HELP = "this Python lacks analog-layout-skills: in a clone run python3 -m venv .venv && .venv/bin/pip install -e . "
    HELP += "(elsewhere .venv/bin/pip install its wheel), then start the script with .venv/bin/python"
    ERROR = f'{{"code": "SERVICE_UNAVAILABLE", "message": "{HELP}", "details": {{"missing": "skillscript"}}}}'
    print(f'{{"ok": false, "error": {ERROR}, "data": null, "duration_ms": 0}}')
    raise SystemExit(3) from None


def execute(params: dict, context: dict) -> dict:
    """Return where the picture is and what it shows."""
    from layoutkit.errors import FileError
    from layoutkit.layout.cells import choose_cell
    from layoutkit.layout.files import check_target
    from layoutkit.tools.current_layout import CurrentLayout
    from layoutkit.view.markers import markers_at, read_markers
    from layoutkit.view.render import View, render, save

    current = CurrentLayout(params)
    process = current.technology()
    layout = current.read()
    target = params.get("output_path") or str(current.path.with_suffix(".png"))
    if not target.lower().endswith(".png"):
        raise FileError(f"output_path must end in .png, got {target!r}", details={"param_name": "output_path"})
    target = check_target(target)
    cell = choose_cell(layout, params.get("cell_name"))
    markers = markers_at(params.get("violations", ()))
    doubts = current.doubts_of(params["report_path"]) if "report_path" in params else []
    if "report_path" in params:
        markers += read_markers(params["report_path"], cell)
    view = View(
        width=params["width"],
        height=params["height"],
        region=tuple(params["region"]) if "region" in params else None,
        layers=params.get("layers"),
        legend=params["legend"],
        labels=params["labels"],
        title=params.get("title"),
    )
    picture = render(cell, process, view, markers)
    save(picture, target, current.sources())
    current.add_reports(str(target))
    return {
        "image_path": str(target),
        "cell_name": cell.name,
        "width": view.width,
        "height": view.height,
        "region": list(picture.region),
        "layers_drawn": list(picture.layers_drawn),
        "labels_drawn": picture.labels_drawn,
        "markers_drawn": picture.markers_drawn,
        "layout_sha256": current.sha256,
        "warnings": [*doubts, *current.warnings],
    }


if __name__ == "__main__":
    raise SystemExit(main(__file__, "layout.render_view", execute))
