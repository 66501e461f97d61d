"""The files that nodetune owns on a host: rendered whole from templates/, their settings kept in them as one line of data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from nodetune.foundation import templates
from nodetune.foundation.templates import SETTINGS
from nodetune.remediation.builders import HostView, UnfixableError


def read_settings(text: str) -> dict[str, Any]:
    """Read the settings line of one of nodetune's files; empty if it is gone: then the file counts as empty."""
    for line in text.splitlines():
        if line.startswith(SETTINGS):
            try:
                found = json.loads(line.removeprefix(SETTINGS))
            except ValueError:
                return {}
            return found if isinstance(found, dict) else {}
    return {}


def render(template: str, settings: Mapping[str, Any], **more: Any) -> str:
    """Render one of nodetune's files from templates/NAME. The settings are data, never a template."""
    return templates.render(template, settings=settings, **more)


def own_file(host: HostView, path: str, template: str, settings: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the change that adds these settings to one of nodetune's files."""
    merged = merge(read_settings(host.own(path)), settings)
    return {"change": "file", "path": path, "content": render(template, merged, **more), "mode": "0644"}


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `new` into `old`, mapping by mapping. None removes an entry."""
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
    """Return a value as it appears in a file; a list as its parts. Raise UnfixableError if it is not one plain line."""
    if isinstance(value, list | tuple):
        return " ".join(text_of(each) for each in value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise UnfixableError(f"{value!r} is neither a number nor a text: give it as one in the site file")
    text = str(value)
    if not text.isprintable() or text != text.strip():
        raise UnfixableError(f"{text!r} is not one line of plain text: nothing is written for it")
    return text


def named(text: str, what: str, shape: str = r"[\w.:@+-]+") -> str:
    """Return the text if it is a plain name. Raise UnfixableError if not.

    What comes from a host or a site file ends up in a file's syntax.
    """
    if not re.fullmatch(shape, text, re.ASCII):
        raise UnfixableError(f"{text!r} is no {what} that can be written safely")
    return text
