"""The pictures of the pages: what commands print, as SVG. `python docs/pictures.py` also writes the PNGs, with Chromium."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
FACTS = ROOT / "tests" / "data" / "synthetic" / "hgx-h200-untuned.json"
WIDTH = 110
MOST = 10
"""The most lines of a section. Of a longer one the middle is left out."""

FONTS = re.compile(r"^ *@font-face \{.*?\}\n", re.DOTALL | re.MULTILINE)
"""What rich's picture would load from a foreign server."""


def drawn() -> dict[str, str]:
    """Return name → SVG, as the commands print today."""
    with tempfile.TemporaryDirectory() as folder:
        saved = json.loads(FACTS.read_text("utf-8"))
        new = {**saved, "host": "gpu042", "about": {**saved["about"], "time": int(time.time())}}
        Path(folder, "gpu042.json").write_text(json.dumps(new), "utf-8")
        return {"pictures/audit.svg": _picture("nodetune audit --facts gpu042.json", folder)}


def _picture(command: str, folder: str) -> str:
    environment = {
        **os.environ,
        "COLUMNS": str(WIDTH),
        "FORCE_COLOR": "1",
        "PYTHONPATH": str(ROOT),
        "NODETUNE_CONFIG": "",
    }
    environment.pop("NO_COLOR", None)
    words = [sys.executable, "-m", *command.split()]
    done = subprocess.run(words, check=False, env=environment, cwd=folder, capture_output=True, text=True)
    shown = "\n\n".join(map(_cut, done.stdout.strip("\n").split("\n\n")))
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(shown))
    drawing = FONTS.sub("", console.export_svg(title=command, unique_id="audit")).replace("Fira Code, ", "")
    return "".join(f"{line.rstrip()}\n" for line in drawing.splitlines())


def _cut(section: str) -> str:
    lines = section.splitlines()
    return section if len(lines) <= MOST else "\n".join([*lines[: MOST - 2], "  …", lines[-1]])


if __name__ == "__main__":
    for name, text in drawn().items():
        Path(__file__).parent.joinpath(name).write_text(text, "utf-8")
