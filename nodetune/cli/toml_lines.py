"""The lines of the keys in a TOML file, for messages."""

from __future__ import annotations

import re


class TomlLines:
    """Find the lines of a table's keys: tomllib does not report them."""

    def __init__(self, content: str, head: str) -> None:
        lines = content.splitlines()
        self._first = next((number for number, line in enumerate(lines) if line.strip().startswith(head)), 0)
        self._lines = lines[self._first :]

    def of(self, key: str) -> str:
        """Return `:LINE`; nothing for a key that is written in another way."""
        name = re.escape(key)
        begins = re.compile(rf"""\s*(?:\[?\s*)(?:{name}|"{name}"|'{name}')\s*[=.\]]""")
        for number, line in enumerate(self._lines, self._first + 1):
            if begins.match(line):
                return f":{number}"
        return ""
