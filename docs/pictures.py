"""The pictures of the pages: what commands print, as SVG (make write), and the HTML page in Chromium, as PNG (make pictures)."""

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

HERE = Path(__file__).parent
ROOT = HERE.parent
WIDTH = 110
MAX_LINES = 10
"""The most lines of a section. Of a longer one the middle is left out."""

FONTS = re.compile(r"^ *@font-face \{.*?\}\n", re.DOTALL | re.MULTILINE)
"""What rich's picture would load from a foreign server."""


def drawn() -> dict[str, str]:
    """Return name → SVG, as the commands print today."""
    with tempfile.TemporaryDirectory() as folder:
        _save(Path(folder), "gpu042", "untuned")
        return {"pictures/audit.svg": _picture("nodetune audit --facts gpu042.json", folder)}


def _save(folder: Path, host: str, state: str) -> None:
    facts = json.loads((ROOT / "tests" / "data" / "synthetic" / f"hgx-h200-{state}.json").read_text("utf-8"))
    new = {**facts, "host": host, "about": {**facts["about"], "time": int(time.time())}}
    (folder / f"{host}.json").write_text(json.dumps(new), "utf-8")


def _picture(command: str, folder: str) -> str:
    shown = "\n\n".join(map(_cut, _run(command, folder).strip("\n").split("\n\n")))
    console = Console(width=WIDTH, record=True, file=io.StringIO(), color_system="truecolor", no_color=False)
    console.print(Text.from_ansi(shown))
    drawing = FONTS.sub("", console.export_svg(title=command, unique_id="audit")).replace("Fira Code, ", "")
    return "".join(f"{line.rstrip()}\n" for line in drawing.splitlines())


def _run(command: str, folder: str) -> str:
    terminal = {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    environment = {**os.environ, **terminal, "PYTHONPATH": str(ROOT), "NODETUNE_CONFIG": ""}
    environment.pop("NO_COLOR", None)
    words = [sys.executable, "-m", *command.split()]
    return subprocess.run(words, check=False, env=environment, cwd=folder, capture_output=True, text=True).stdout


def _cut(section: str) -> str:
    lines = section.splitlines()
    return section if len(lines) <= MAX_LINES else "\n".join([*lines[: MAX_LINES - 2], "  …", lines[-1]])


def photographed() -> None:
    """Write the page of a fleet of which one host is bad, and the plots of what real H200s measured, one of them slowed."""
    from tests.unit.report.test_html import browser
    from tests.unit.report.test_html_measured import SLOW, document, proofs

    hosts = [f"gpu{number:03}" for number in range(1, 17)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "facts").mkdir()
        for host in hosts:
            _save(folder / "facts", host, "untuned" if host == "gpu005" else "tuned")
        (folder / "verify.json").write_text(json.dumps(document(proofs(hosts, {"gpu005": SLOW}), int(time.time()))))
        _run("nodetune audit --facts facts --format html -o fleet.html --measurements verify.json", name)
        with browser(folder / "profile") as driver:
            for picture, view, height in (("page", "", 1130), ("plots", "#measurements", 1060)):
                size = {"width": 1280, "height": height, "deviceScaleFactor": 1, "mobile": False}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                driver.get("about:blank")
                driver.get(f"file://{folder}/fleet.html{view}")
                driver.save_screenshot(str(HERE / "pictures" / f"{picture}.png"))


if __name__ == "__main__":
    photographed()
