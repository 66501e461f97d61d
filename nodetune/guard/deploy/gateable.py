"""Which checks can gate: those that need nothing on a node but the guard's program. Pure."""

from __future__ import annotations

import ast
import sys
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import nodetune
from nodetune import checks
from nodetune.config.profile import Overlay, Profile
from nodetune.foundation import yaml_lines
from nodetune.guard.deploy import archive


def require(resolved: Profile, site: Overlay | None) -> None:
    """Raise FileError for the first check that gates in a site file but that a node cannot judge on its own."""
    for check in resolved.checks:
        gates = site and check.id in resolved.gates and check.accept is not None
        own = "" if check.area != "site" or check.fact else "what reads nccl.conf"
        lacking = (own or lacks(check.id)) if gates else ""
        if site and lacking:
            yaml_lines.load(Path(site.file)).fail(
                f"{check.id} cannot gate: it needs {lacking}, which the guard's program on a node does not have; "
                "let it not gate (gate: false)",
                "checks",
                check.id,
                "gate",
            )


@cache
def lacks(check_id: str) -> str:
    """Return what a check imports that the guard's program does not have, and where; empty if it has everything."""
    module = checks.catalogue().get(check_id)  # a site's own check needs nothing that is imported
    left, seen = {module} if module else set(), set[str]()
    while left:
        name = left.pop()
        seen.add(name)
        for imported in _imports(name):
            if imported in _modules():
                left |= {imported} - seen
            elif imported.partition(".")[0] not in sys.stdlib_module_names:
                return f"{imported} (for {name})"
    return ""


@cache
def _modules() -> dict[str, Path]:
    """Return the modules of the guard's program: name → source."""
    found = {name: source for name, source in archive.files().items() if isinstance(source, Path)}
    return {name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): each for name, each in found.items()}


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Return the modules that a module of the program imports anywhere in it."""
    return tuple(_imported(ast.parse(_modules()[name].read_text("utf-8")), _modules()))


def _imported(tree: ast.Module, modules: Container[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{each.name}" for each in node.names]
            yield from (each if each in modules or _is_module(each) else node.module for each in inside)


def _is_module(name: str) -> bool:
    """Return whether nodetune has a module of that name, be it in the guard's program or not."""
    package, *parts = name.split(".")
    path = Path(nodetune.__file__).parent.joinpath(*parts)
    return package == "nodetune" and (path.with_suffix(".py").is_file() or (path / "__init__.py").is_file())
