"""Writes NVIDIA's part of nodetune/data/floors.yml from a checkout of github.com/NVIDIA/product-security.

python .ci/refresh_floors.py ~/product-security [--check]: prints what it changes; --check changes nothing and exits with 1 if
something is to change. For each package it takes the newest bulletin (CSAF) that names its product, and the version in which the
product is fixed there. Then: make write.
"""

# ruff: noqa: INP001  (a program, not part of a package)

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLOORS = Path(__file__).resolve().parents[1] / "nodetune/data/floors.yml"
PRODUCTS = {
    "NVIDIA Container Toolkit": ["nvidia-container-toolkit"],
    "DCGM": ["datacenter-gpu-manager", "datacenter-gpu-manager-4-core"],
    "DCGM Exporter": ["datacenter-gpu-manager-exporter"],
}
"""Product as bulletins name it → packages."""

FIRMWARE = re.compile(r"(?:ConnectX|BlueField)", re.IGNORECASE)
BUILD = re.compile(r"(\d\d)\.(\d{4})\b")


def bulletins(root: Path) -> list[tuple[str, str, Any]]:
    """Return (date, number, document) of every bulletin, the oldest first."""
    found = []
    for path in root.glob("20??/*/*.json"):
        if path.stem == path.parent.name:
            document = json.loads(path.read_text("utf-8"))
            date = document["document"]["tracking"]["initial_release_date"][:10]
            found.append((date, path.stem, document))
    return sorted(found, key=lambda each: each[:2])


def versions(document: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (product, version, product id) of what a bulletin names."""

    def walk(branches: Any) -> Iterator[tuple[str, str, str]]:
        for branch in branches:
            if "product" in branch:
                yield branch["name"], branch["product"]["name"], branch["product"]["product_id"]
            yield from walk(branch.get("branches", ()))

    yield from walk(document["product_tree"].get("branches", ()))


def fixed(document: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (product, fixed version, CVE) of a bulletin."""
    names = {id_: (product, version) for product, version, id_ in versions(document)}
    for fault in document.get("vulnerabilities", ()):
        for id_ in fault.get("product_status", {}).get("fixed", ()):
            if id_ in names:
                yield *names[id_], fault["cve"]


def refreshed(text: str, root: Path) -> str:
    """Return floors.yml with the newest bulletins, and its date that of the newest bulletin of all."""
    date = ""
    for date, number, document in bulletins(root):
        notice = f"NVIDIA bulletin {number} of {date}"
        trains, cves = {}, set()
        for product, version, cve in fixed(document):
            for package in PRODUCTS.get(product, ()):
                numbers = re.findall(r"\d+(?:\.\d+)+", version)
                row = f"  {package}: {{fixed: {numbers[0]}, notice: {notice}, cve: {cve}}}"
                text = re.sub(rf"^  {re.escape(package)}: .*$", row, text, flags=re.MULTILINE)
            build = BUILD.search(version)
            if FIRMWARE.match(product) and build:
                trains[build.group(1)] = int(build.group(2))
                cves.add(cve)
        if trains:
            told = ", ".join(f'"{train}": {build}' for train, build in sorted(trains.items()))
            firmware = f"  trains: {{{told}}}\n  notice: {notice}\n  cve: {max(cves)}"
            text = re.sub(r"^  trains: .*\n  notice: .*\n  cve: .*$", firmware, text, flags=re.MULTILINE)
    return re.sub(r'^as_of: ".*"$', f'as_of: "{max(date, _date(text))}"', text, flags=re.MULTILINE)


def _date(text: str) -> str:
    found: list[str] = re.findall(r'^as_of: "(.*)"$', text, re.MULTILINE)
    return found[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bulletins", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if not any(given.bulletins.glob("20??/*/*.json")):
        sys.exit(f"{given.bulletins}: no bulletins there: give a checkout of github.com/NVIDIA/product-security")
    before = FLOORS.read_text("utf-8")
    after = refreshed(before, given.bulletins)
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    print("\n".join(changed) or "nothing new")
    if not given.check:
        FLOORS.write_text(after, "utf-8")
    return 1 if given.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
