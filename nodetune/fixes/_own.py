"""The files that nodetune owns on a host: rendered whole from templates/, their settings kept in them as one line of data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from nodetune import templates
from nodetune.fixes import Host, Unfixable
from nodetune.templates import SETTINGS


def read_settings(text: str) -> dict[str, Any]:
    """The settings line of an own file; empty where it is gone: then the file counts as empty."""
    for line in text.splitlines():
        if line.startswith(SETTINGS):
            try:
                found = json.loads(line.removeprefix(SETTINGS))
            except ValueError:
                return {}
            return found if isinstance(found, dict) else {}
    return {}


def render(template: str, settings: Mapping[str, Any], **more: Any) -> str:
    """The text of an own file from templates/NAME. The settings are data: what is in them is never a template."""
    return templates.render(template, settings=settings, **more)


def own_file(host: Host, path: str, template: str, settings: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The change that writes an own file with these settings added to those that it holds already."""
    merged = merge(read_settings(host.own(path)), settings)
    return {"change": "file", "path": path, "content": render(template, merged, **more), "mode": "0644"}


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`new` laid over `old`, mapping by mapping. None takes an entry away."""
    merged = dict(old)
    for key, value in new.items():
        if isinstance(value, Mapping):
            under = merged.get(key)
            merged[key] = merge(under if isinstance(under, Mapping) else {}, value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def text_of(value: Any) -> str:
    """A value as it stands in a file: numbers of a list side by side. Raises Unfixable for what is not one plain line."""
    if isinstance(value, list | tuple):
        return " ".join(text_of(each) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Unfixable(f"{value!r} is neither a number nor a text: give it as one in the site file")
    text = str(value)
    if not text.isprintable() or text != text.strip():
        raise Unfixable(f"{text!r} is not one line of plain text: nothing is written for it")
    return text


def named(text: str, what: str, shape: str = r"[\w.:@+-]+") -> str:
    """The text when it is a plain name. Raises Unfixable: what comes from a host or a site file lands in a file's syntax."""
    if not re.fullmatch(shape, text, re.ASCII):
        raise Unfixable(f"{text!r} is no {what} that can be written safely")
    return text
