"""Read YAML written by people with the line of every part, so that errors have a place."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nodetune.foundation import UserError
from nodetune.foundation import text as plain_text

if TYPE_CHECKING:
    import yaml


MAX_PARTS = 100_000
"""Limit for the parts of a file. Aliases of aliases multiply: nine levels of nine are a billion."""


MAX_PROBLEMS, MAX_MESSAGE = 1000, 1000


class FileError(UserError):
    """A file written by people is invalid; the text is one line: file, line, fault, and what to do."""

    line = 0


class CollectedError(FileError):
    """Several errors of a file: the text has the first, `problems` has all of them in line order."""

    def __init__(self, file: str, problems: Sequence[FileError]) -> None:
        self.problems = sorted(problems, key=lambda each: each.line)
        super().__init__(f"{self.problems[0]} (and {len(problems) - 1} more: nodetune profile validate {file})")
        self.line = self.problems[0].line


class _FullError(CollectedError):
    """The rest of a file is not read: what is wrong in each of its parts alike takes minutes to say."""


@dataclass(frozen=True)
class LocatedYaml:
    """The data of a YAML file; `lines` maps a path inside it (a tuple of keys) to its line.

    A reader that continues after an error collects it in `problems`, and calls `finish` at the end.
    """

    file: str
    data: Any
    lines: dict[tuple[Any, ...], int] = field(default_factory=dict)
    problems: list[FileError] = field(default_factory=list)

    def line(self, *path: Any) -> int:
        """Return the line of the deepest part of `path` that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def fail(self, message: str, *path: Any) -> NoReturn:
        raise self.error(message, *path)

    def error(self, message: str, *path: Any) -> FileError:
        """Return an error with the line of its place."""
        line = self.line(*path)
        problem = FileError(f"{self.file} line {line}: {plain_text.plain(message, MAX_MESSAGE)}")
        problem.line = line
        return problem

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect an error instead of raising it, so that the rest is read too."""
        try:
            yield
        except _FullError:
            raise
        except CollectedError as several:
            self.problems.extend(several.problems)
        except FileError as problem:
            self.problems.append(problem)
        if len(self.problems) >= MAX_PROBLEMS:
            raise _FullError(self.file, self.problems)

    def finish(self) -> None:
        """Raise the collected errors as FileError."""
        if len(self.problems) > 1:
            raise CollectedError(self.file, self.problems)
        for problem in self.problems:
            raise problem


def unknown(word: Any, words: Iterable[str], kind: str, otherwise: str = "") -> str:
    """Return the message for an unknown word with a suggestion; `otherwise` is used if no word is similar."""
    close = plain_text.alike(str(word), words, 1)
    return f"unknown {kind} {word!r}" + (f": did you mean {close[0]!r}?" if close else otherwise)


def load(path: Path, *, collect: bool = False) -> LocatedYaml:
    """Read a YAML file. Raise FileError if it is missing, cannot be read or is not YAML.

    With `collect`, keys that appear twice and impossible dates are left for `finish`.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as problem:
        raise FileError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: not UTF-8 text") from None
    found = parse(text, str(path))
    if not collect:
        found.finish()
    return found


def parse(text: str, file: str) -> LocatedYaml:
    """Parse text. A key that appears twice in one mapping is an error, which is collected."""
    import yaml  # here and below: it takes 12 ms, and few runs read what people write

    found = LocatedYaml(file, None)
    try:
        loader = _bounded()(text)
        node = loader.get_single_node()
        data = _convert(loader, node, (), found) if node is not None else None
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise FileError(f"{file} line {mark.line + 1 if mark else 1}: not YAML: {problem.problem or problem}") from None
    except FileError:  # a ValueError, and our own words already
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        raise FileError(f"{file}: not YAML: {str(problem).splitlines()[0]}") from None
    return LocatedYaml(file, data, found.lines, found.problems)


def _too_many(mark: yaml.Mark) -> yaml.YAMLError:
    import yaml

    return yaml.MarkedYAMLError(problem=f"more than {MAX_PARTS} parts with its aliases", problem_mark=mark)


@cache
def _bounded() -> type[yaml.SafeLoader]:
    """Return a loader that ends at too many parts, before it has read the others."""
    import yaml

    class Bounded(yaml.SafeLoader):
        parts = 0

        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            self.parts += 1
            if self.parts > MAX_PARTS:
                raise _too_many(self.get_mark())
            return super().compose_node(parent, index)

    return Bounded


def _convert(loader: yaml.SafeLoader, node: yaml.Node, path: tuple[Any, ...], found: LocatedYaml) -> Any:
    import yaml

    found.lines.setdefault(path, node.start_mark.line + 1)
    if len(found.lines) > MAX_PARTS:
        raise _too_many(node.start_mark)
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
            found.problems.append(found.error(f"{key!r} appears twice: keep one", *path, key))
        data[key] = _convert(loader, value_node, (*path, key), found)
    return data


def _scalar(loader: yaml.SafeLoader, node: yaml.Node, found: LocatedYaml) -> Any:
    """Convert a scalar. Collect an error for an invalid date or number."""
    try:
        read = loader.construct_object(node)
        if isinstance(read, int):
            str(read)  # hexadecimal digits are read without a limit
    except ValueError as problem:
        kind = node.tag.rpartition(":")[2].replace("timestamp", "date")
        line = node.start_mark.line + 1
        wrong = FileError(
            f"{found.file} line {line}: {str(node.value)[:40]!r} is not a valid {kind}: {plain_text.unread(problem)}"
        )
        wrong.line = line
        found.problems.append(wrong)
        return datetime.date.max  # what comes after it is read too
    return read
