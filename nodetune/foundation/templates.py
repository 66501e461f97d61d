"""Files from templates/, filled in. Values are data and are never interpreted as templates."""

import json
import shlex
from functools import cache
from typing import Any

from nodetune.foundation import paths, text


def render(template: str, **known: Any) -> str:
    """Fill in templates/NAME. A missing value is an error."""
    return str(_templates().get_template(template).render(**known))


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(  # noqa: S701  (no HTML is made here)
        loader=FileSystemLoader(paths.shared("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["quote"] = lambda given: shlex.quote(str(given))
    made.filters["line"] = lambda settings: text.SETTINGS + json.dumps(settings, sort_keys=True)
    return made
