# /// script
# requires-python = ">=3.10"
# dependencies = ["analog-layout-skills[models]"]
# ///
"""Propose symmetry, matching and net priorities for a circuit, checked against that circuit."""

from typing import TYPE_CHECKING, Any

try:
    from skillscript import main
except ImportError as missing:
    raise SystemExit(f"{missing}: `pip install -e .` in a clone; `uv run {__file__!r}` in an exported copy") from None

if TYPE_CHECKING:
    from layoutkit.circuit import Circuit
    from skillscript import ModelSettings

TOOL = "plan.suggest_constraints"


def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
    """Return the constraints, who proposed them, and every attempt with a model."""
    from layoutkit.tools.netlist_request import read_circuit, recognition, save_constraints, suggested_by_recognition

    circuit = read_circuit(params)
    settings = settings_for(params)
    suggested = suggested_by_recognition(circuit)
    data: dict[str, Any] = {
        "circuit": circuit.name,
        "source": "recognition",
        "model": "",
        "recognition": recognition(circuit),
        "constraints": suggested,
        "attempts": [],
        "warnings": list(circuit.warnings),
    }
    if settings is not None:
        data.update(ask(circuit, suggested, settings, params, context))
    if params.get("workspace"):
        data["constraints_path"] = save_constraints(params["workspace"], data["constraints"])
    return data


def settings_for(params: dict[str, Any]) -> "ModelSettings | None":
    """Return which models to ask, or None when recognition is to answer."""
    from dataclasses import replace

    from skillscript import SkillError, declared_models, model_settings

    if params["source"] == "recognition":
        return None
    settings = model_settings(declared_models(__file__, TOOL))
    if settings is None and params["source"] == "model":
        text = "no model is configured: set SKILL_MODEL_URL and SKILL_MODEL_PRIMARY, or ask for source recognition"
        raise SkillError("SERVICE_UNAVAILABLE", text)
    if settings is not None and "deadline_s" in params:
        settings = replace(settings, deadline_s=params["deadline_s"])
    return settings


def ask(
    circuit: "Circuit",
    suggested: dict[str, Any],
    settings: "ModelSettings",
    params: dict[str, Any],
    context: dict[str, Any],
) -> dict[str, Any]:
    """Return a model's constraints, which name nothing that the circuit lacks."""
    from layoutkit.tools.netlist_request import proposal_faults
    from skillscript import Fault, Task, ask_model, load_tool, prompt_variables, render_file

    output_schema = load_tool(__file__, TOOL, execute).output_schema
    variables = prompt_variables(params, context)
    variables.update(circuit=circuit.to_json(), suggested=suggested, schema=output_schema["$defs"])
    task = Task(
        prompt=render_file(__file__, "assets/suggest_constraints.jinja", variables),
        schema={"$ref": "#/$defs/constraints", "$defs": output_schema["$defs"]},
        check=lambda value: [Fault(*fault) for fault in proposal_faults(value, circuit)],
        system="You plan analog integrated circuit layout. You answer with one JSON object and nothing else.",
    )
    answer = ask_model(task, settings)
    return {
        "source": "model",
        "model": answer.model,
        "constraints": {**answer.value, **({"supplies": suggested["supplies"]} if "supplies" in suggested else {})},
        "attempts": answer.attempts,
    }


if __name__ == "__main__":
    raise SystemExit(main(__file__, TOOL, execute))
