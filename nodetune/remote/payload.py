"""The probe and the measurements as one script each: modules and pynvml's source, packed for any Python to run."""

import base64
import json
import re
import secrets
import zlib
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from nodetune.foundation import paths
from nodetune.remote.login.script import by_length

RELAY = Path(__file__).parent / "slurm"
ONHOST = Path(__file__).parents[1] / "onhost"
PROBE = Path(__file__).parents[1] / "probe"
MEASUREMENTS = Path(__file__).parents[1] / "measurements"
NONCE = b"<nonce of this run>"
"""Placeholder for the nonce in a cached script; base64 does not have these characters."""

EMIT = "from nodetune.probe import main\nmain.emit(ASKED, NONCE, SECONDS, {most!r})\n"

IN_POD = """import ctypes, importlib, subprocess, encodings.ascii, encodings.latin_1
for name in SOURCES:
    importlib.import_module(name)
from nodetune.onhost import in_pod
from nodetune.probe import main
sys.exit(in_pod.run(lambda: main.emit(ASKED, NONCE, SECONDS, {most!r}), {whole!r}))
"""
"""Everything is imported before the root of the host becomes that of the program."""

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
            return importlib.machinery.ModuleSpec(name, self, is_package=name in PACKAGES)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__], "<" + module.__name__ + ">", "exec"), module.__dict__)
sys.meta_path.insert(0, Loader())
sys.modules["__main__"].__dict__.pop("_", None)
"""


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """Group fact names by family: `["sysctl.vm.swappiness"]` → `{"sysctl": ["vm.swappiness"]}`."""
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
    return paths.source_of("pynvml", "nvidia-ml-py")


_STATEMENT = re.compile(r"^(?:@.*\n)*[^\s#@)\]}].*\n(?:(?:[ \t#)\]}].*)?\n)*", re.MULTILINE)
_DEFINED = re.compile(r"(?:@.*\n)*(?:(?:def|class) +|(?!NVML_ERROR_)(?=\w+ *=[^=]))(\w+)|")
_WORD = re.compile(r"\w+")


def pynvml_for(sources: Iterable[str]) -> str:
    """Return the part of pynvml that code needs: a host compiles the whole in 50 ms, and this in 7.

    A definition stays if its name is in the code, or in what stays. So do the errors, which pynvml finds by their
    prefix, and statements that define nothing.
    """
    whole = pynvml_source()
    statements = [(_DEFINED.match(text)[1], text) for text in _STATEMENT.findall(whole)]  # type: ignore[index]
    defined: dict[str | None, list[str]] = {}
    for name, text in statements:
        defined.setdefault(name, []).append(text)
    kept: set[str | None] = {None}
    unread = [*sources, *defined[None]]
    while unread:
        named = (defined.keys() & _WORD.findall(unread.pop())) - kept
        kept |= named
        unread += [text for name in named for text in defined[name]]
    part = "".join(text for name, text in statements if name in kept)
    try:
        compile(part, "pynvml", "exec")
    except SyntaxError:
        return whole  # a pynvml that is written in another way
    return whole[: whole.index(statements[0][1])] + part


Module = tuple[Path, str]
"""A folder, and the path of a file in it or below it without its `.py`: `host/report`."""


@cache
def _packed(modules: tuple[Module, ...]) -> str:
    """Return code that makes modules importable as nodetune.FOLDER.MODULE. An `__init__.py` only explains: it stays here."""
    files = {f"nodetune/{folder.name}/{path}".replace("/", "."): _source(folder, path) for folder, path in modules}
    packages = sorted({each for name in files for each in accumulate(name.split(".")[:-1], "{}.{}".format)})
    sources = dict.fromkeys(packages, "") | files
    if any(re.search(r"^\s*import pynvml$", text, re.MULTILINE) for text in sources.values()):
        sources["pynvml"] = pynvml_for(sources.values())
    text = f"PACKAGES = {tuple(packages)!r}\nSOURCES = {sources!r}\n{_LOADER}"
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode("ascii")


def with_imports(folder: Path, modules: Iterable[str]) -> tuple[Module, ...]:
    """Return modules of a folder with all modules that they import from it and from onhost/."""
    wanted = [(folder, module) for module in modules]
    for each in wanted:
        wanted += [other for other in _imports(*each) if other not in wanted]
    return tuple(sorted(set(wanted)))


_IMPORT = re.compile(r"^\s*from (\.|nodetune\.(?:onhost|measurements))\.?([\w.]*) import ([\w, ]+)$", re.MULTILINE)


@cache
def _imports(folder: Path, module: str) -> tuple[Module, ...]:
    """Return the imports of a file from its folder and those below, and from onhost/: of modules, or of names in one."""
    found = []
    for base, package, names in _IMPORT.findall(_source(folder, module)):
        room = ONHOST if base == "nodetune.onhost" else folder
        above = module.rpartition("/")[0] if base == "." else ""
        place = "/".join(filter(None, (above, package.replace(".", "/"))))
        one = package and (room / f"{place}.py").is_file()
        found += [(room, place if one else f"{place}/{name.split()[0]}".lstrip("/")) for name in names.split(",")]
    return tuple(found)


def script(asked: Mapping[str, list[str]], seconds: float, most: float = 0.0) -> tuple[bytes, str]:
    """Return the script to pipe to `python3 -I -S -` and the nonce in its answer. A busy host gets `most` seconds."""
    nonce = secrets.token_hex(8)
    cached = probing(PROBE, json.dumps(dict(asked)), seconds, EMIT.format(most=most))
    return cached.replace(NONCE, nonce.encode("ascii")), nonce


def script_in_pod(
    asked: Mapping[str, list[str]], seconds: float, most: float = 0.0, whole: float = 60.0
) -> tuple[bytes, str]:
    """Return the script for a pod that can see its host, for live_session.STARTER. `whole`: the seconds after which it ends itself."""
    nonce = secrets.token_hex(8)
    entry = IN_POD.format(most=most, whole=whole)
    cached = probing(PROBE, json.dumps(dict(asked)), seconds, entry, with_imports(ONHOST, ["in_pod"]))
    return by_length(cached.replace(NONCE, nonce.encode("ascii"))), nonce


@lru_cache(maxsize=8)  # thousands of hosts are asked for the same
def probing(folder: Path, asked: str, seconds: float, entry: str, more: tuple[Module, ...] = ()) -> bytes:
    """Return the script that probes the families in `asked` (JSON); `entry` is the code at its end, which needs `more`."""
    place = NONCE.decode("ascii")
    given = f"ASKED = {asked}\nNONCE = {place!r}\nSECONDS = {seconds!r}\n"
    modules = {*with_imports(folder, ("main", *json.loads(asked))), *more}
    return _script(tuple(sorted(modules)), place, given, entry)


def relay(nonce: str) -> str:
    """Return the script that runs a command on a node of a Slurm step."""
    entry = "from nodetune.slurm import relay\nrelay.main()\n"
    return _script(with_imports(RELAY, ["relay"]), nonce, "", entry).decode("ascii")


def _script(modules: tuple[Module, ...], nonce: str, given: str, entry: str) -> bytes:
    packed = f'exec(zlib.decompress(base64.b64decode("{_packed(modules)}")))\n'
    return (_HEAD.replace("{nonce}", nonce) + given + packed + entry).encode("ascii")


def measuring(plan: Mapping[str, Any]) -> tuple[bytes, str]:
    """Return the script that runs a plan of measurements (see nodetune/measurements/main.py), and its nonce.

    Send it to `python3 -I -S` with live_session.STARTER, and keep the input open as long as it must run.
    """
    nonce = secrets.token_hex(8)
    names = [each["name"] for each in plan["measurements"]]
    modules = with_imports(MEASUREMENTS, ("main", *names))
    given = f"import json\nPLAN = json.loads({json.dumps(plan)!r})\nNONCE = {nonce!r}\n"
    entry = "from nodetune.measurements import main\nmain.emit(PLAN, NONCE)\n"
    return by_length(_script(modules, nonce, given, entry)), nonce
