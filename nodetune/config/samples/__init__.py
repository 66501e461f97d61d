"""The files to start from, which `nodetune init` writes: an inventory, a site file, and a site file for provision."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from nodetune.foundation import paths

INVENTORY = "inventories/prod"
ENDINGS = ("", ".yml", ".yaml", ".ini")
"""Of an inventory named prod: where one is there already, another of that name would hide it."""


def write(folder: Path) -> Iterator[tuple[str, bool]]:
    """Write them below a folder, over no existing file. Yield each path, and whether it was written. Raise OSError."""
    if any((folder / f"{INVENTORY}{ending}").exists() for ending in ENDINGS):
        yield INVENTORY, False
    else:
        yield from _write(folder, _inventory())
    yield from _write(folder, {name: Path(__file__).with_name(name) for name in ("site.yml", "provision.yml")})


def _inventory() -> Mapping[str, Path]:
    example = paths.shared("inventories") / "example"
    return {f"{INVENTORY}/{path.relative_to(example)}": path for path in sorted(example.rglob("*.yml"))}


def _write(folder: Path, files: Mapping[str, Path]) -> Iterator[tuple[str, bool]]:
    for name, source in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as opened:
                opened.write(source.read_text("utf-8"))
        except FileExistsError:
            yield name, False
        else:
            yield name, True
