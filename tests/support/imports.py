"""What a file of Python imports, and what it says besides."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path


def imported(path: Path, package: Path) -> Iterator[str | tuple[str, str]]:
    """Names that a file imports anywhere in it, as modules, and as (a package, what may be a module of it)."""
    folder = list(path.relative_to(package.parent).parent.parts)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from ((base, f"{base}.{each.name}") for each in node.names)


def needed(path: Path, package: Path, room: Path) -> frozenset[Path]:
    """Return the file, and the files of a room that it imports, directly or through one another."""
    found, left = set[Path](), [path]
    while left:
        file = left.pop()
        if file in found or room not in file.parents or not file.is_file():
            continue
        found.add(file)
        names = {name for each in imported(file, package) for name in (each if isinstance(each, tuple) else (each,))}
        left += [package.parent / f"{name.replace('.', '/')}.py" for name in names]
    return frozenset(found)


def code_of(text: str) -> str:
    """Return what a text of Python does: without comments, texts that stand alone, imports and empty lines."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())
