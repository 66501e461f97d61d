"""The files that nodetune owns on a host: rendered whole from templates/, their settings kept in them as one line of data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from nodetune.foundation import json_document, templates
from nodetune.foundation import text as plain_text
from nodetune.remediation.host_view import HostView, UnfixableError


def render(template: str, settings: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> str:
    """Render one of nodetune's files from templates/NAME. The settings are data, never a template."""
    return templates.render(template, settings=settings, **(more or {}))


Allowed = Callable[[tuple[str, ...], Any], bool]
"""Whether a file of nodetune's may hold this value under these keys: what the host says that it holds is only a claim."""

DEEPEST = 4


def own_file(
    host: HostView,
    path: str,
    template: str,
    settings: Mapping[str, Any],
    allowed: Allowed,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the change that adds these settings to one of nodetune's files. Raise UnfixableError as `kept` does."""
    return whole_file(path, render(template, json_document.merge(kept(host, path, allowed), settings), more))


def whole_file(path: str, text: str, mode: str = "0644") -> dict[str, Any]:
    """Return the change that writes one of nodetune's files."""
    return {"change": "file", "path": path, "content": text, "mode": mode}


def kept(host: HostView, path: str, allowed: Allowed) -> dict[str, Any]:
    """Return what one of nodetune's files sets on the host. Raise UnfixableError for what nodetune did not write there."""
    found = plain_text.own_settings(host.own(path))
    for keys, value in _leaves(found):
        if not allowed(keys, value):
            name, what = (plain_text.plain(" ".join(each), 100) for each in (keys, [json.dumps(value)]))
            raise UnfixableError(
                f"{path} on the host sets {name} to {what}, which no check sets: give --site with that check, or "
                "remove the file on the host, then plan again"
            )
    return found


def _leaves(found: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value with the keys that lead to it."""
    if isinstance(found, Mapping) and len(keys) < DEEPEST and (found or not keys):
        for key, each in found.items():
            yield from _leaves(each, (*keys, key))
    else:
        yield keys, found


def plain_line(value: Any, shape: str = r".*") -> bool:
    """Tell whether a value of an own file is a text of this shape, on one line."""
    return isinstance(value, str) and value.isprintable() and bool(re.fullmatch(shape, value, re.ASCII))


def among(known: Collection[str], shape: str = r".*") -> Allowed:
    """Allow plain lines of a shape, each under one of the known keys."""
    return lambda keys, value: len(keys) == 1 and keys[0] in known and plain_line(value, shape)


def among_pairs(known: Collection[str], name: str, shape: str) -> Allowed:
    """Allow plain lines of a shape, each under one of the known keys and a name of this shape."""
    return lambda keys, value: (
        len(keys) == 2 and keys[0] in known and plain_line(keys[1], name) and plain_line(value, shape)
    )


def text_of(value: Any) -> str:
    """Return a value as it appears in a file; a list as its parts. Raise UnfixableError if it is not one plain line."""
    if isinstance(value, list | tuple):
        return " ".join(text_of(each) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise UnfixableError(f"{value!r} is neither a number nor a text: change it in the site file")
    text = str(value)
    if not text.isprintable() or text != text.strip():
        raise UnfixableError(f"{text!r} is not one line of plain text, so it is not written")
    return text


def named(text: str, what: str, shape: str = r"[\w.:@+-]+") -> str:
    """Return the text if it is a plain name. Raise UnfixableError if not.

    What comes from a host or a site file ends up in a file's syntax.
    """
    if not re.fullmatch(shape, text, re.ASCII):
        raise UnfixableError(f"{text!r} is not a {what} that can be written safely")
    return text
