"""The probe and the measurements as one script each: modules (and pynvml's source) packed into a text that any Python can read."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

PROBE = Path(__file__).parent / "probe"
VERIFY = Path(__file__).parent / "verify"
ALWAYS = ("__init__", "read", "main", "emit")
NONCE = b"<nonce of this run>"
"""Stands for it in a script that is kept; base64 has no such signs."""

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
"""


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """Fact names by family: `["sysctl.vm.swappiness"]` → `{"sysctl": ["vm.swappiness"]}`."""
    asked: dict[str, list[str]] = {}
    for name in sorted(names):
        family, _, rest = name.partition(".")
        asked.setdefault(family, []).append(rest)
    return asked


@cache
def _source(folder: Path, module: str) -> str:
    return (folder / f"{module}.py").read_text("utf-8")


@cache
def pynvml_source() -> str:
    """The source of the installed pynvml (package nvidia-ml-py). Raises PackageNotFoundError."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        raise PackageNotFoundError("nvidia-ml-py")
    return Path(spec.origin).read_text("utf-8")


@cache
def _packed(folder: Path, modules: tuple[str, ...]) -> str:
    """Of the modules of a folder: code that makes them importable as the package nodetune_<folder's name>."""
    package = f"nodetune_{folder.name}"
    sources = {package if name == "__init__" else f"{package}.{name}": _source(folder, name) for name in modules}
    if any(re.search(r"^\s*import pynvml$", text, re.MULTILINE) for text in sources.values()):
        sources["pynvml"] = pynvml_source()
    text = f"PACKAGE = {package!r}\nSOURCES = {sources!r}\n{_LOADER}"
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")


def with_imports(folder: Path, modules: Iterable[str]) -> tuple[str, ...]:
    """Modules of a folder, and all in the same folder that they import."""
    wanted = list(modules)
    for module in wanted:
        wanted += [each for each in _imports(folder, module) if each not in wanted]
    return tuple(sorted(set(wanted)))


@cache
def _imports(folder: Path, module: str) -> tuple[str, ...]:
    """The files of the same folder that a file imports: lines `from . import a, b as c`."""
    lines = re.findall(r"^\s*from \. import ([\w, ]+)$", _source(folder, module), re.MULTILINE)
    return tuple(name.split()[0] for line in lines for name in line.split(","))


def script(asked: Mapping[str, list[str]], seconds: float) -> tuple[bytes, str]:
    """The script to pipe to `python3 -I -S -`, and the nonce that its answer carries."""
    nonce = secrets.token_hex(8)
    return _probe_script(PROBE, json.dumps(dict(asked)), seconds).replace(NONCE, nonce.encode("ascii")), nonce


@lru_cache(maxsize=8)  # thousands of hosts are asked for the same
def _probe_script(folder: Path, asked: str, seconds: float) -> bytes:
    place = NONCE.decode("ascii")
    given = f"ASKED = {asked}\nNONCE = {place!r}\nSECONDS = {seconds!r}\n"
    entry = "from nodetune_probe import emit\nemit.emit(ASKED, NONCE, SECONDS)\n"
    return _script(folder, with_imports(folder, (*ALWAYS, *json.loads(asked))), place, given, entry)


def _script(folder: Path, modules: tuple[str, ...], nonce: str, given: str, entry: str) -> bytes:
    packed = f'exec(zlib.decompress(base64.b64decode("{_packed(folder, modules)}")))\n'
    return (_HEAD.replace("{nonce}", nonce) + given + packed + entry).encode("ascii")


def measuring(plan: Mapping[str, Any]) -> tuple[bytes, str]:
    """The script that carries out a plan of measurements (see nodetune/verify/main.py), and the nonce of what it says.

    It is to be sent to `python3 -I -S` with dialogue.STARTER, and the input kept open as long as it is to run.
    """
    nonce = secrets.token_hex(8)
    names = [each["name"] for each in plan["measurements"]]
    modules = with_imports(VERIFY, ("__init__", "main", "emit", *names))
    given = f"import json\nPLAN = json.loads({json.dumps(plan)!r})\nNONCE = {nonce!r}\n"
    entry = "from nodetune_verify import emit\nemit.emit(PLAN, NONCE)\n"
    return by_length(_script(VERIFY, modules, nonce, given, entry)), nonce


def by_length(script: bytes) -> bytes:
    """A script behind a line that reads it by its length, so that what follows it can be input."""
    size = len(script)
    loop = (
        f"d = b''\nwhile len(d) < {size}:\n p = os.read(0, {size} - len(d))\n if not p: os._exit(1)\n d += p\nexec(d)"
    )
    return f"exec({loop!r})\n".encode("ascii") + script
