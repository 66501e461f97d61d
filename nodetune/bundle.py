"""The probe as one script for `python3 -`: its modules (and pynvml's source) packed into a text that any Python can read."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path

PROBE = Path(__file__).parent / "probe"
PACKAGE = "nodetune_probe"
ALWAYS = ("__init__", "read", "main", "emit")

# Every Python since 2.6 can read this much; one that is too old says so in a frame instead of a traceback.
_HEAD = """import sys, zlib, base64
if sys.version_info < (3, 6):
    sys.stdout.write("\\n<<nodetune {nonce} old %d.%d>>\\n" % sys.version_info[:2])
    sys.exit(0)
"""

_LOADER = """
import importlib.abc, importlib.machinery
class Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES:
            return importlib.machinery.ModuleSpec(name, self, is_package=name == PACKAGE)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__], "<" + module.__name__ + ">", "exec"), module.__dict__)
sys.meta_path.insert(0, Loader())
sys.modules["__main__"].__dict__.pop("_", None)
from nodetune_probe import emit
emit.emit(ASKED, NONCE, SECONDS)
"""


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """Fact names by family: `["sysctl.vm.swappiness"]` → `{"sysctl": ["vm.swappiness"]}`."""
    asked: dict[str, list[str]] = {}
    for name in sorted(names):
        family, _, rest = name.partition(".")
        asked.setdefault(family, []).append(rest)
    return asked


@cache
def _source(module: str) -> str:
    return (PROBE / f"{module}.py").read_text("utf-8")


@cache
def pynvml_source() -> str:
    """The source of the installed pynvml (package nvidia-ml-py). Raises PackageNotFoundError."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        raise PackageNotFoundError("nvidia-ml-py")
    return Path(spec.origin).read_text("utf-8")


@cache
def _packed(modules: tuple[str, ...]) -> str:
    sources = {PACKAGE if module == "__init__" else f"{PACKAGE}.{module}": _source(module) for module in modules}
    if "gpu" in modules:
        sources["pynvml"] = pynvml_source()
    text = f"PACKAGE = {PACKAGE!r}\nSOURCES = {sources!r}\n{_LOADER}"
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")


def modules_for(asked: Mapping[str, list[str]]) -> tuple[str, ...]:
    """The probe's files that a set of families needs: theirs, what those import, and the machinery."""
    wanted = [*ALWAYS, *asked]
    for module in wanted:
        wanted += [each for each in _imports(module) if each not in wanted]
    return tuple(sorted(set(wanted)))


@cache
def _imports(module: str) -> tuple[str, ...]:
    """The probe's own files that a file imports: lines `from . import a, b`."""
    lines = re.findall(r"^\s*from \. import ([\w, ]+)$", _source(module), re.MULTILINE)
    return tuple(name.strip() for line in lines for name in line.split(","))


def script(asked: Mapping[str, list[str]], seconds: float) -> tuple[bytes, str]:
    """The script to pipe to `python3 -I -S -`, and the nonce that its answer carries."""
    nonce = secrets.token_hex(8)
    text = _HEAD.replace("{nonce}", nonce) + (
        f"ASKED = {json.dumps(dict(asked))}\nNONCE = {nonce!r}\nSECONDS = {seconds!r}\n"
        f'exec(zlib.decompress(base64.b64decode("{_packed(modules_for(asked))}")))\n'
    )
    return text.encode("ascii"), nonce
