"""The status of hosts from all sources: one model (standing.py), and a file for each format."""

from importlib import import_module
from typing import TextIO

from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import Standing

FORMATS = ("text", "json", "html", "csv", "lines", "junit", "markdown", "prometheus", "nfd")
FILES = {"json": "document", "csv": "rows", "lines": "rows"}


def write(found: Standing, asked: Asked, output_format: str, stream: TextIO) -> None:
    """Write one of FORMATS. `asked`: the options for proposed commands."""
    module = import_module(f"nodetune.report.status.{FILES.get(output_format, output_format)}")
    if output_format in ("csv", "lines"):
        module.write(found, asked, output_format, stream)
    else:
        module.write(found, asked, stream)
