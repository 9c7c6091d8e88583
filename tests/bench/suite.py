"""Lay out folders of netlists in several processes and print the scoreboard; what got worse is an error.

    python tests/bench/suite.py FOLDER... [--technologies sky130A,sg13g2] [--jobs 2] [--out DIR] [--against BOARD]

Each circuit is built by a program of its own with a time limit, so a crash or a hang is a line of the board. Beside
NAME.spice, NAME.options.json may hold further parameters of flow.build_layout, such as {"width_per": "finger"}. The
board is written after every circuit, as OUT/board.json and OUT/board.html; the layouts are in OUT/TECHNOLOGY/NAME.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import klayout.db as kdb
from board_page import page
from scoreboard import FIGURES, FORMAT, row, slower, worse

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "skills/netlist-to-gds/scripts/build_layout.py"
SUFFIXES = frozenset({".sp", ".spi", ".spice", ".cdl", ".cir", ".ckt", ".net", ".scs"})
TECHNOLOGIES = "sky130A,gf180mcuD,sg13g2"
TIME_LIMIT_S = 600.0
SHOWN = ("devices", "area_um2", "area_over_modules", "aspect", "wire_over_bound", "vias", "single_cuts", "mirror_error",
         "offset_mv", "ports_inside", "unrouted", "drc", "lvs", "cpu_s", "peak_mb")  # fmt: skip
_measuring = threading.Lock()


@dataclass(frozen=True)
class Circuit:
    """One netlist in one process; ``name`` is its path below the folder that was given, without suffix."""

    name: str
    netlist: Path
    technology: str

    @property
    def key(self) -> str:
        """Its key in the board."""
        return f"{self.technology} {self.name}"


def circuits(folders: list[Path], technologies: list[str]) -> list[Circuit]:
    """Return the netlists of ``folders`` and of the folders in them, in each technology."""
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            sys.exit(f"{folder} is not a folder")
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() in SUFFIXES and path.is_file():
                name = path.relative_to(folder).with_suffix("").as_posix()
                if name in found:
                    sys.exit(f"{found[name]} and {path} have the same name in the board; rename one")
                found[name] = path
    if not found:
        sys.exit(f"no netlist ({', '.join(sorted(SUFFIXES))}) in {', '.join(map(str, folders))}")
    return [Circuit(name, path, technology) for technology in technologies for name, path in sorted(found.items())]


def lay_out(circuit: Circuit, out: Path, limit_s: float) -> dict[str, Any]:
    """Return the row of ``circuit``, whatever happens to its build."""
    workspace = out / circuit.technology / circuit.name
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir(parents=True)
    params = {"netlist_path": str(circuit.netlist), "technology": circuit.technology, "workspace": str(workspace)}
    options = circuit.netlist.with_suffix(".options.json")
    try:
        if options.is_file():
            params |= json.loads(options.read_text(encoding="utf-8"))
        (workspace / "params.json").write_text(json.dumps(params), encoding="utf-8")
        with (workspace / "envelope.json").open("wb") as envelope, (workspace / "stderr.txt").open("wb") as talk:
            command = [sys.executable, str(SCRIPT), "--params", str(workspace / "params.json")]
            code, usage = _run(command, envelope, talk, limit_s)
        return {**_outcome(workspace, code, limit_s), "cpu_s": round(usage[0], 2), "peak_mb": round(usage[1], 1)}
    except Exception as error:  # noqa: BLE001 - a row for every circuit, whatever is wrong with one
        return {"status": "failed", "error": f"{type(error).__name__}: {error}"[:500]}


def _run(command: list[str], output: Any, talk: Any, limit_s: float) -> tuple[int | None, tuple[float, float]]:
    """Return the exit code, None at the time limit, and CPU time [s] and peak memory [MB] of a program."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=talk, start_new_session=True)
    deadline = time.monotonic() + limit_s
    late = False
    try:
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline and not late:
                late = True
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        os.wait4(process.pid, 0)
        raise
    finally:
        process.returncode = 0  # waited for here, not by subprocess
    code = None if late else os.waitstatus_to_exitcode(status)
    return code, (usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def _outcome(workspace: Path, code: int | None, limit_s: float) -> dict[str, Any]:
    if code is None:
        return {"status": "time limit", "error": f"not finished after {limit_s:g} s"}
    try:
        envelope = json.loads((workspace / "envelope.json").read_text(encoding="utf-8"))
    except ValueError:
        return {"status": "crashed", "error": f"exit code {code} without an answer"}
    error = envelope["error"]["message"][:500] if envelope["error"] else ""
    if code not in (0, 1) or not (workspace / "summary.json").is_file():
        return {"status": "failed", "error": error or f"exit code {code}"}
    with _measuring:  # KLayout holds Python's lock while it computes; the builds go on
        figures = row(workspace)
    return {"status": "done", **({"error": error} if error else {}), **figures}


def reference_cpu_s() -> float:
    """Return the CPU time of a fixed computation, to which CPU times are compared. [s]"""
    times = []
    for _ in range(3):
        begun = time.process_time()
        boxes = kdb.Region()
        for number in range(40_000):
            boxes.insert(
                kdb.Box(number % 200 * 150, number // 200 * 150, number % 200 * 150 + 160, number // 200 * 150 + 90)
            )
        boxes.merge()
        boxes.space_check(70)
        times.append(time.process_time() - begun)
    return round(statistics.median(times), 4)


def heading() -> str:
    """Return the first line of the board as text."""
    titles = {figure.name: figure.title for figure in FIGURES}
    return f"{'circuit':<48} " + " ".join(f"{titles[name]:>14}" for name in SHOWN)


def line(key: str, found: dict[str, Any]) -> str:
    """Return the line of a row as text."""
    if found["status"] != "done":
        return f"{key:<48} {found['status']}: {found.get('error', '')[:150]}"
    values = ["-" if found.get(name) is None else f"{found[name]:g}" for name in SHOWN]
    return f"{key:<48} " + " ".join(f"{value:>14}" for value in values)


def write_board(board: dict[str, Any], out: Path, wanted: list[str]) -> None:
    """Write the board as JSON and HTML, rows in the order of ``wanted``."""
    board["rows"] = {key: board["rows"][key] for key in wanted if key in board["rows"]}
    for name, text in (("board.json", json.dumps(board, indent=1) + "\n"), ("board.html", page(board))):
        part = out / f"{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(out / name)


def main() -> int:
    """Run the suite; return 1 if something is worse than the board it is compared with."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders of netlists")
    parser.add_argument("--technologies", default=TECHNOLOGIES, help=f"names, separated by commas ({TECHNOLOGIES})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="circuits at a time (default: all cores)")
    parser.add_argument("--out", type=Path, default=Path("build/suite"), help="where everything is written")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT_S, help="of one circuit [s]")
    parser.add_argument("--against", type=Path, help="board.json to compare with; exit code 1 if something is worse")
    options = parser.parse_args()
    committed = json.loads(options.against.read_text(encoding="utf-8")) if options.against else None
    todo = circuits(options.folders, [name for name in options.technologies.split(",") if name])
    options.out.mkdir(parents=True, exist_ok=True)
    board: dict[str, Any] = {"format": FORMAT, "reference_cpu_s": reference_cpu_s(), "rows": {}}
    wanted = [circuit.key for circuit in todo]
    print(heading(), flush=True)
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        running = {pool.submit(lay_out, each, options.out.resolve(), options.time_limit): each for each in todo}
        try:
            for finished in as_completed(running):
                key = running[finished].key
                board["rows"][key] = finished.result()
                print(line(key, board["rows"][key]), flush=True)
                write_board(board, options.out, wanted)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    print(f"board: {options.out / 'board.html'}")
    if committed is None:
        return 0
    for text in slower(board, committed):
        print(f"slower  {text}")
    found = worse(board, committed)
    for text in found:
        print(f"WORSE   {text}")
    print(f"{len(found)} figures are worse by more than 3 % than in {options.against}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
