"""A schema-driven fuzzer against the HTTP server: valid requests are answered, invalid ones refused, as documented."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from extras import extra
from patience import WATCHDOG_S

extra("fastapi", reason="skipped: needs the extra http")
extra("uvicorn", reason="skipped: needs the extra http")
FUZZER = shutil.which("schemathesis", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(FUZZER is None, reason="skipped: needs schemathesis")
def test_the_fuzzer_finds_no_answer_that_is_not_documented(tmp_path, tools_of_the_trade):
    pack = tools_of_the_trade.write_pack(tmp_path / "pack", ("bench.echo_text", "memory.count"))
    (tmp_path / "work").mkdir()
    arguments = ("--skills-dir", pack, "--directory", tmp_path / "work")
    with tools_of_the_trade.running("http", *arguments) as (_, address):
        done = subprocess.run(
            [
                *(FUZZER, "run", f"{address}/openapi.json", "--checks", "all", "--phases", "coverage,fuzzing"),
                *("--max-examples", "10", "--seed", "1", "--generation-deterministic", "--no-color"),
                *("--suppress-health-check", "all", "--request-timeout", "30"),
            ],
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": str(Path(__file__).parent)},
            capture_output=True,
            text=True,
            check=False,
            timeout=WATCHDOG_S,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Operations:       9 selected / 9 total" in done.stdout
