"""The program that runs on guarded nodes: which files it consists of, and the archive in which they travel."""

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nodetune
from nodetune.foundation import paths
from nodetune.guard.deploy.paths import ARCHIVES, HOME, PROGRAM
from nodetune.remote import payload

MODULES = (
    "__init__",
    "audit/__init__",
    "audit/boot_units",
    "audit/devices",
    "audit/evaluate",
    "audit/log_gap",
    "foundation/__init__",
    "facts/__init__",
    "facts/memo",
    "foundation/stats",
    "foundation/text",
    "guard/__init__",
)
READING = ("guard/node", "onhost", "probe")
FOLDERS = ("api", "checks", "data", *READING)
FOLDER = re.compile(re.escape(HOME) + r"/[\w.+-]+-[0-9a-f]{16}")


def files() -> dict[str, Path | str]:
    """Return the files of the program: path below its folder → the file to copy, or the text to write."""
    files: dict[str, Path | str] = {f"nodetune/{name}.py": paths.PACKAGE / f"{name}.py" for name in MODULES}
    for folder in FOLDERS:
        files |= {f"nodetune/{each}": paths.PACKAGE / each for each in _sources(folder)}
    reading = (paths.PACKAGE / each for folder in READING for each in _sources(folder))
    files["nodetune/data/tables.json"] = paths.PACKAGE / "data" / "tables.json"
    return {**files, "pynvml.py": payload.pynvml_for(each.read_text("utf-8") for each in reading)}


def _sources(folder: str) -> Iterable[str]:
    found = sorted((paths.PACKAGE / folder).rglob("*.py"))
    return (str(path.relative_to(paths.PACKAGE)) for path in found)


@dataclass(frozen=True)
class Archive:
    """The program as an archive, the same bytes for the same version and sources."""

    name: str
    content: bytes

    @property
    def folder(self) -> str:
        return f"{HOME}/{self.name}"

    @property
    def there(self) -> str:
        return f"{ARCHIVES}/{self.name}.zip"


@cache
def archive() -> Archive:
    """Build the program of this version of nodetune. Raise OSError."""
    contents = {name: content(source) for name, source in sorted(files().items())}
    manifest = "".join(f"{hashlib.sha256(each).hexdigest()}  {name}\n" for name, each in contents.items()).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, each in {"MANIFEST": manifest, **contents}.items():
            made.writestr(zipfile.ZipInfo(name), each, zipfile.ZIP_DEFLATED)
    return Archive(f"{nodetune.__version__}-{hashlib.sha256(manifest).hexdigest()[:16]}", buffer.getvalue())


def write_tar(path: str, more: Mapping[str, tuple[int, str]]) -> None:
    """Write the program below PROGRAM, and `more` (name → mode, text), as a tar: the same bytes for the same sources."""
    program = {f"{PROGRAM}/{name}": (0o644, content(source)) for name, source in files().items()}
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as made:
        for name, (mode, each) in sorted(
            {**program, **{name: (m, t.encode()) for name, (m, t) in more.items()}}.items()
        ):
            entry = tarfile.TarInfo(name.strip("/"))
            entry.size, entry.mode = len(each), mode
            made.addfile(entry, io.BytesIO(each))


def content(source: Path | str) -> bytes:
    return source.encode() if isinstance(source, str) else source.read_bytes()


def folders(found: Iterable[str]) -> list[str]:
    """Return the folders in HOME that have a program of nodetune."""
    return [path for path in found if FOLDER.fullmatch(path)]
