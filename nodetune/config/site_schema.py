"""Validate a site file by the JSON schema that `nodetune profile schema` prints. An error is one line that names its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nodetune.foundation import paths, text
from nodetune.foundation.yaml_lines import LocatedYaml, unknown

TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}


def schema() -> str:
    """Return the schema as it is published."""
    return paths.bundled("documents/schemas").joinpath("site.json").read_text("utf-8")


def check(file: LocatedYaml) -> None:
    """Raise FileError for the first line that the schema does not allow."""
    from jsonschema import Draft202012Validator  # here: it takes a tenth of a second

    if file.data is None:
        return
    found = [_problem(error) for error in Draft202012Validator(json.loads(schema())).iter_errors(file.data)]
    if found:
        message, *path = min(found, key=lambda each: (file.line(*each[1:]), -len(each)))
        file.fail(message, *path)


def _problem(error: Any) -> tuple[Any, ...]:
    """Return (what is wrong, and the path to it)."""
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        word = next(key for key in error.instance if key not in known)
        return unknown(word, known, "key", f"; there are: {', '.join(known)}"), *path, word
    names = [each for each in path if isinstance(each, str)] or ["a site file"]
    name = f"an item of {names[-1]}" if path and isinstance(path[-1], int) else names[-1]
    said = _SAID.get(error.validator)
    return f"{name} {said(error)}" if said else text.plain(error.message), *path


def _kind(error: Any) -> str:
    kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
    return f"wants {error.schema.get('description') or ' or '.join(TYPES[each] for each in kinds)}"


def _one_of(error: Any) -> str:
    words = ", ".join("false" if each is False else str(each) for each in error.validator_value)
    why = error.schema.get("description")
    return f"wants one of {words}; found {text.plain(repr(error.instance), 80)}" + (f" ({why})" if why else "")


_SAID: dict[str, Callable[[Any], str]] = {
    "type": _kind,
    "pattern": _kind,
    "enum": _one_of,
    "required": lambda error: (
        f"lacks {', '.join(each for each in error.validator_value if each not in error.instance)}"
    ),
    "oneOf": lambda error: f"wants exactly one of {', '.join(each['required'][0] for each in error.validator_value)}",
}
