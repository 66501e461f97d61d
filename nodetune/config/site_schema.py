"""Validate a site file by the JSON schema that `nodetune profile schema` prints. An error is one line that names its place."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from nodetune.config.site_checks import KINDS
from nodetune.foundation import schemas, text
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

YAML_BOOLEANS = ("on", "off", "true", "false", "yes", "no")

ENTRIES = ("checks", "add", "waivers", "when", "groups", "hosts")
"""Keys whose entries can be invalid one by one."""


def check(file: LocatedYaml) -> None:
    """Collect an error for each violation of the schema, and remove the invalid part from the data."""
    if file.data is None:
        return
    found = [each for error in schemas.violations("site", file.data) for each in _problems(error)]
    if not isinstance(file.data, dict):
        file.fail(found[0][0])
    for message, *path in sorted(dict.fromkeys(found), key=lambda each: (file.line(*each[1:]), -len(each), each[0])):
        file.problems.append(file.error(message, *path))
        _take_out(file.data, path)


def _take_out(data: dict[Any, Any], path: Sequence[Any]) -> None:
    """Remove the entry at this path: one check, waiver or section, or a whole key. In a list, None remains.

    Of an entry that is valid without the key, remove only the key: the rest of the entry may have more errors.
    """
    depth = 4 if path[2:3] == ["checks"] else 2 if path[0] in ENTRIES else 1
    *above, last = path[:depth]
    holder: Any = data
    for key in above:
        holder = holder.get(key) if isinstance(holder, dict) else holder and holder[key]
    entry = holder.get(last) if isinstance(holder, dict) else holder and holder[last]
    if len(path) > depth and isinstance(entry, dict) and _is_optional(path, path[depth]):
        entry.pop(path[depth], None)
    elif isinstance(holder, list):
        holder[last] = None
    elif isinstance(holder, dict):
        holder.pop(last, None)


def _is_optional(path: Sequence[Any], key: Any) -> bool:
    """Return whether an entry is valid without this key. Without its `accept`, its `set` would contradict another one."""
    if path[0] == "add":
        return key not in ("id", "accept", *KINDS)
    return key != "accept" and (path[0] == "checks" or path[2:3] == ["checks"])


def _problems(error: Any) -> Iterator[tuple[Any, ...]]:
    """Yield (error, path)."""
    path = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        for word in (key for key in error.instance if key not in known):
            yield unknown(word, known, "key", f"; there are: {', '.join(known)}"), *path, word
        return
    names = [each for each in path if isinstance(each, str)] or ["a site file"]
    name = f"an item of {names[-1]}" if path and isinstance(path[-1], int) else names[-1]
    said = _SAID.get(error.validator)
    yield f"{name} {said(error)}" if said else text.plain(error.message), *path


def _kind(error: Any) -> str:
    kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
    quoted = "boolean" in kinds and error.instance in YAML_BOOLEANS
    why = f": write {error.instance} without quotes" if quoted else ""
    return f"must be {error.schema.get('description') or ' or '.join(TYPES[each] for each in kinds)}{why}"


def _one_of(error: Any) -> str:
    words = ", ".join("false" if each is False else str(each) for each in error.validator_value)
    why = error.schema.get("description")
    return f"must be one of {words}; found {text.plain(repr(error.instance), 80)}" + (f" ({why})" if why else "")


_SAID: dict[str, Callable[[Any], str]] = {
    "type": _kind,
    "pattern": _kind,
    "enum": _one_of,
    "exclusiveMinimum": lambda error: f"must be {error.schema['description']}; found {error.instance}",
    "required": lambda error: (
        f"lacks {', '.join(each for each in error.validator_value if each not in error.instance)}"
    ),
    "maxProperties": lambda error: f"must have one key; found {text.plain(', '.join(map(str, error.instance)), 80)}",
    "oneOf": lambda error: (
        f"must have exactly one of {', '.join(each['required'][0] for each in error.validator_value)}"
    ),
}
