"""Measure the current layout: areas, utilization, aspect ratio, and how well device pairs match."""

from skillscript import main


def execute(params: dict, context: dict) -> dict:
    """Return the metrics of one cell."""
    from layoutkit import metrics, technology
    from layoutkit.cells import choose_cell
    from layoutkit.workspace import current_layout

    process = technology.load(params["technology"])
    layout, _ = current_layout(params.get("layout_path"), params.get("workspace"))
    cell = choose_cell(layout, params.get("cell_name"))
    gates = metrics.labelled_gates(cell, process)
    measured = metrics.compute(
        cell,
        process,
        gates,
        matched_pairs=[tuple(pair) for pair in params.get("matched_pairs", ())],
        area_targets=params.get("area_targets"),
    )
    return measured.to_json()


if __name__ == "__main__":
    raise SystemExit(main(__file__, "eval.compute_metrics", execute))
