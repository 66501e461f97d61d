"""YAML that people write, read with the line of everything in it, so that an error can say where it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml


class BadFile(ValueError):
    """A file that people write is wrong; the text is one line: file, line, what, and what to do."""


@dataclass(frozen=True)
class Located:
    """The data of a YAML file; `lines` maps a path inside it (a tuple of keys) to its line."""

    file: str
    data: Any
    lines: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def line(self, *path: Any) -> int:
        """The line of the deepest part of `path` that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def fail(self, message: str, *path: Any) -> NoReturn:
        raise BadFile(f"{self.file} line {self.line(*path)}: {message}")


def load(path: Path) -> Located:
    """Read a YAML file. Raises BadFile for one that is not there, cannot be read or is not YAML."""
    try:
        text = path.read_text("utf-8")
    except OSError as problem:
        raise BadFile(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path}: not UTF-8 text") from None
    return parse(text, str(path))


def parse(text: str, file: str) -> Located:
    """The same for text. A key that stands twice in one mapping is an error."""
    found = Located(file, None)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        data = _convert(loader, node, (), found) if node is not None else None
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise BadFile(f"{file} line {mark.line + 1 if mark else 1}: not YAML: {problem.problem or problem}") from None
    except BadFile:  # a ValueError, and our own words already
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        raise BadFile(f"{file}: not YAML: {str(problem).splitlines()[0]}") from None
    return Located(file, data, found.lines)


def _convert(loader: yaml.SafeLoader, node: yaml.Node, path: tuple[Any, ...], found: Located) -> Any:
    found.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_convert(loader, each, (*path, number), found) for number, each in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return _scalar(loader, node, found)
    data: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key is a single word", problem_mark=key_node.start_mark)
        key = _scalar(loader, key_node, found)
        found.lines[(*path, key)] = key_node.start_mark.line + 1
        if key in data:
            found.fail(f"{key!r} stands twice: keep one", *path, key)
        data[key] = _convert(loader, value_node, (*path, key), found)
    return data


def _scalar(loader: yaml.SafeLoader, node: yaml.Node, found: Located) -> Any:
    """Raises BadFile for what has the form of a date (or a number) and is none."""
    try:
        return loader.construct_object(node)
    except ValueError as problem:
        kind = node.tag.rpartition(":")[2].replace("timestamp", "date")
        where = f"{found.file} line {node.start_mark.line + 1}"
        raise BadFile(f"{where}: {str(node.value)[:40]!r} is no {kind}: {problem}") from None
