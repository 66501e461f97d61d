"""The published JSON schemas of nodetune's documents, and where data violates one."""

import json
from collections.abc import Iterator
from typing import Any

from nodetune.foundation import paths


def names() -> list[str]:
    return sorted(path.stem for path in paths.bundled("data/schemas").glob("*.json"))


def text(name: str) -> str:
    """Return a published schema."""
    return paths.bundled("data/schemas").joinpath(f"{name}.json").read_text("utf-8")


def violations(name: str, data: Any) -> Iterator[Any]:
    """Yield jsonschema's error for each violation."""
    from jsonschema import Draft202012Validator  # here: it takes a tenth of a second

    schema = json.loads(text(name))
    del schema["$id"]  # jsonschema before 4.18, which the zipapp has, takes it for an address to fetch
    yield from Draft202012Validator(schema).iter_errors(data)
