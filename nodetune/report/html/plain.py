"""A page without a script: one template in the frame of assets/plain.html, with assets/plain.css in it."""

import base64
import hashlib
from pathlib import Path
from typing import Any, TextIO

ASSETS = Path(__file__).parent / "assets"


def write(stream: TextIO, template: str, **values: Any) -> None:
    """Write the page of a template."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(ASSETS), autoescape=True, undefined=StrictUndefined)
    style = (ASSETS / "plain.css").read_text("utf-8")
    stream.write(environment.get_template(template).render(style=style, style_source=source(style), **values))


def source(text: str) -> str:
    """Return a script or style as a source in the Content-Security-Policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
