"""What a file of Python imports, and what it says besides."""

from __future__ import annotations

import ast
import io
import re
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


def spelled(path: Path, package: Path) -> Iterator[tuple[str, bool]]:
    """Modules of the package that a file has in texts, so that it may import them; and whether a variable follows.

    Such texts are dotted names (also `a.b:function`), and what import_module gets behind a dot.
    """
    folder = ".".join(path.relative_to(package.parent).parent.parts)
    own = {"__package__": folder, "__name__": folder if path.stem == "__init__" else f"{folder}.{path.stem}"}
    tree = ast.parse(path.read_text("utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text, is_open = ("", False) if id(node) in alone else _beginning(node, own)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            text, is_open = _beginning(node.args[0], own)
            above = len(text) - len(text.lstrip("."))
            if above:
                text = ".".join([*folder.split(".")[: folder.count(".") + 2 - above], text[above:]])
        name = re.match(rf"{package.name}(?:\.\w+)+\.?", text)
        if name:
            rest = text[name.end() :]
            if is_open or re.fullmatch(r"(:\w+)?|[{%].*", rest, re.DOTALL):
                yield name[0], is_open or name[0].endswith(".") or rest[:1] in {"{", "%"}


def _beginning(node: ast.AST, own: dict[str, str]) -> tuple[str, bool]:
    """Return what a text begins with, and whether more follows that only a run knows."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value, False
    if isinstance(node, ast.Name) and node.id in own:
        return own[node.id], False
    if isinstance(node, ast.BinOp):
        text, is_open = _beginning(node.left, own)
        more, ends_open = ("", True) if is_open else _beginning(node.right, own)
        return text + more, ends_open or not more
    if isinstance(node, ast.JoinedStr):
        text = ""
        for part in node.values:
            more, is_open = _beginning(part.value if isinstance(part, ast.FormattedValue) else part, own)
            text += more
            if is_open or not more:
                return text, True
        return text, False
    return "", False


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
