"""Finding 10,000 skills and writing layer 1, as ratios to the smallest honest program that does the same.

    python tests/bench/loader.py [--runs N] [--skills N]

The floor lists the folder, reads the first 8 KB of each SKILL.md, and has PyYAML's C loader read the frontmatter; it
checks nothing, finds nothing below the first level and knows no second root.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import textwrap
from pathlib import Path

from run import HEADER, print_row, ratio

FLOOR = """
import os, sys, yaml
lines = []
with os.scandir(sys.argv[1]) as entries:
    for entry in sorted(entries, key=lambda entry: entry.name):
        with open(os.path.join(entry.path, "SKILL.md"), "rb") as file:
            head = file.read(8192).decode("utf-8", "ignore")
        fields = yaml.load(head[4 : head.index("\\n---", 3)], Loader=yaml.CBaseLoader)
        lines.append(f"- {fields['name']}: {fields['description']}")
print("\\n".join(lines))
"""
OURS = """
import sys
from skillpack import SkillLoader
print(SkillLoader(sys.argv[1]).get_descriptions())
"""
SEARCH = """
import sys
from skillpack import SkillLoader
print(SkillLoader(sys.argv[1]).search("symmetric mirror routing 差分对")["data"]["total"])
"""
BUDGET = """
import sys
from skillpack import SkillLoader
from skillpack.skills.layer1 import Budget
print(len(SkillLoader(sys.argv[1]).get_descriptions(Budget(400_000))))
"""
WORDS = "bulk check drain draw export gate label layout metal mirror netlist pair process rule source spacing symmetric"


PLAIN = """---
name: {name}
description: {description}
license: Apache-2.0
---
"""
RICH = """---
name: "{name}"
description: >-
  {lines}
license: 'Apache-2.0'
metadata:
  author: example
  version: "1.0"
allowed-tools: Bash(git:*) Read
---
"""


def write_skills(root: Path, number: int, form: str = PLAIN) -> None:
    """Write skills with descriptions of about 207 characters and bodies of 3 kB; a tenth have Chinese words."""
    rng = random.Random(1)
    for index in range(number):
        home = root / f"skill-{index:05}"
        home.mkdir(parents=True)
        words = [*WORDS.split(), *(["差分对"] if index % 10 == 0 else [])]
        description = " ".join(rng.choices(words, k=33))
        body = "\n\n".join(" ".join(rng.choices(words, k=80)) for _ in range(6))
        header = form.format(name=home.name, description=description, lines="\n  ".join(textwrap.wrap(description, 80)))
        (home / "SKILL.md").write_text(f"{header}\n# A skill\n\n{body}\n", encoding="utf-8")


def measure(runs: int, number: int = 10_000) -> None:
    """Print one line a measurement."""
    with tempfile.TemporaryDirectory() as folder:
        root, rich = f"{folder}/skills", f"{folder}/rich"
        write_skills(Path(root), number)
        write_skills(Path(rich), number, RICH)
        cases = [
            (f"{number} skills / scandir, 8 KB head, C YAML", OURS, root, "at most 3"),
            (f"{number} skills with blocks, maps, quotes / the same", OURS, rich, "at most 3"),
            (f"{number} skills within a budget / the same", BUDGET, root, ""),
            (f"{number} skills searched with their bodies / the same", SEARCH, root, ""),
        ]
        for name, program, skills, bound in cases:
            print_row(name, ratio(["-c", program, skills], ["-c", FLOOR, skills], runs, folder), bound)


def main() -> None:
    """Measure the loader alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="pairs measured after one warm-up (default 7)")
    parser.add_argument("--skills", type=int, default=10_000, help="skills to write (default 10000)")
    arguments = parser.parse_args()
    print(HEADER)
    measure(arguments.runs, arguments.skills)


if __name__ == "__main__":
    sys.exit(main())
