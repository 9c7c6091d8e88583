"""uvx and pipx run the command of the wheel without an installation."""

import pytest


@pytest.mark.parametrize(
    "command",
    [
        ["--from", "WHEEL", "skillpack"],  # uvx --from WHEEL skillpack
        ["analog-layout-skills"],  # uvx analog-layout-skills, the wheel in UV_FIND_LINKS
        ["pipx", "run", "--spec", "WHEEL", "skillpack"],
        ["pipx", "run", "analog-layout-skills"],
    ],
    ids=" ".join,
)
def test_uvx_and_pipx_run_the_wheel(command, uv, built_wheel, tmp_path):
    wheel = next(built_wheel.glob("*.whl"))
    line = [str(wheel) if word == "WHEEL" else word for word in command]
    answered = uv(
        "tool", "run", *line, "tools", "--json", cwd=tmp_path, UV_FIND_LINKS=str(built_wheel), PIPX_HOME=str(tmp_path)
    )
    assert answered.returncode == 0, answered.stderr
    assert "flow.build_layout" in answered.stdout
