"""Measure the current layout: areas, utilization, aspect ratio, and how well device pairs match."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the metrics of one cell."""
    from layoutkit import metrics
    from layoutkit.cells import choose_cell
    from layoutkit.current_layout import CurrentLayout

    current = CurrentLayout(params)
    process = current.technology()
    layout = current.read()
    cell = choose_cell(layout, params.get("cell_name"))
    gates = metrics.labelled_gates(cell, process)
    measured = metrics.compute(
        cell,
        process,
        gates,
        matched_pairs=[tuple(pair) for pair in params.get("matched_pairs", ())],
        area_targets=params.get("area_targets"),
    )
    return {**measured.to_json(), "layout_sha256": current.sha256, "warnings": current.warnings}


if __name__ == "__main__":
    raise SystemExit(main(__file__, "eval.compute_metrics", execute))
