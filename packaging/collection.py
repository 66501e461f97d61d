"""Build the Ansible collection nodetune.node in a folder, from playbooks/ and templates/. Needs ansible-core.

The playbooks for people, their two roles, the modules and filters of these, and modules that read and audit. The same sources give the same bytes.
"""

# ruff: noqa: INP001  (a program, not part of a package)

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tree
import version
import yaml

from nodetune.audit.selection import Selection
from nodetune.foundation import paths
from nodetune.remote import payload
from nodetune.remote.pull.collector import PROBE_SECONDS

HERE = Path(__file__).resolve().parent
NAME = "nodetune.node"
HOST_CODE = f"ansible_collections.{NAME}.plugins.module_utils.nodetune_host"
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "1735689600"))
MODULES = ("begin", "change", "confirm", "end", "revert", "runs")
JUNK = shutil.ignore_patterns("__pycache__", "*.pyc")
PLACES = {
    '*[".."] * 4, "templates"': '*[".."] * 2, "templates"',
    '*[".."] * 3, "module_utils", "nodetune_host"': '"..", "module_utils", "nodetune_host"',
    "ansible-playbook playbooks/{subject}.yml": f"ansible-playbook {NAME}.{{subject}}",
}
"""Texts of the filters that name places: in playbooks/, and in the collection."""

ANSIBLES = range(16, 22)
GALAXY = {
    "namespace": "nodetune",
    "name": "node",
    "version": version.semantic(version.of()),
    "readme": "README.md",
    "authors": ["nodetune"],
    "description": "Tune the settings of GPU servers, and take it back",
    "license_file": "LICENSE",
    "tags": ["linux", "gpu", "hpc", "tuning"],
    "repository": tree.URL,
    "build_ignore": ["*.pyc"],
}


def write(folder: Path) -> None:
    """Write the sources of the collection: folder/ansible_collections/nodetune/node."""
    playbooks = paths.shared("playbooks")
    examples, returns = (
        yaml.safe_load((HERE / f"collection/{each}.yml").read_text()) for each in ("examples", "returns")
    )
    modules = folder / "plugins/modules"
    modules.mkdir(parents=True)
    for name in MODULES:
        text = (playbooks / f"library/nodetune_{name}.py").read_text()
        (modules / f"nodetune_{name}.py").write_text(_module(text, examples[name], returns[name]))
    shutil.copytree(
        playbooks / "module_utils/nodetune_host", folder / "plugins/module_utils/nodetune_host", ignore=JUNK
    )
    _filters(playbooks / "roles/tuning/filter_plugins/nodetune_changes.py", folder / "plugins/filter")
    shutil.copytree(paths.shared("templates"), folder / "templates", ignore=JUNK)
    for role in ("changes", "tuning"):
        shutil.copytree(
            playbooks / "roles" / role,
            folder / "roles" / role,
            ignore=shutil.ignore_patterns("filter_plugins", "__pycache__"),
        )
    (folder / "playbooks").mkdir()
    for each in playbooks.glob("*.yml"):
        (folder / "playbooks" / each.name).write_text(_yaml(each.read_text()))
    for each in (folder / "roles").rglob("*.yml"):
        each.write_text(_yaml(each.read_text()))
    shutil.copytree(
        HERE / "collection",
        folder,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("examples.yml", "returns.yml", "ignore.txt"),
    )
    _probe(folder / "plugins/module_utils/probe.py")
    (folder / "tests/sanity").mkdir(parents=True)
    for minor in ANSIBLES:
        shutil.copy(HERE / "collection/ignore.txt", folder / f"tests/sanity/ignore-2.{minor}.txt")
    for each in ("LICENSE", ".ansible-lint"):
        shutil.copy(HERE.parent / each, folder)
    (folder / "galaxy.yml").write_text(yaml.safe_dump(GALAXY, sort_keys=False))


def _module(text: str, examples: str, returns: Any) -> str:
    """Complete the documentation of a module, and put it before the imports, as Ansible wants them in a collection."""
    (found,) = re.finditer(r'DOCUMENTATION = """(.*?)"""\n\n', text, re.DOTALL)
    about = json.loads(found[1])
    head, rest = (text[: found.start()] + text[found.end() :]).split("\n\n", 1)
    about.setdefault("description", head.split('"""')[1])
    about["author"] = ["nodetune (@nodetune)"]
    docs = f'DOCUMENTATION = r"""{json.dumps(about, indent=1)}"""\n\nEXAMPLES = r"""\n{examples}"""\n'
    docs += f'\nRETURN = r"""{json.dumps(returns, indent=1)}"""\n'
    return f"{head}\n\n{docs}\n{rest}".replace("ansible.module_utils.nodetune_host", HOST_CODE)


def _probe(path: Path) -> None:
    """Write the script that an audit sends over SSH, of all facts, as a module."""
    asked = json.dumps(payload.families(Selection().facts()))
    entry = "import json\nfrom nodetune.probe import main\nfound = main.document(ASKED, SECONDS)\n"
    entry += "sys.stdout.write(json.dumps(dict(found, schema='nodetune.facts/1')))\n"
    script = payload.probing(payload.PROBE, asked, PROBE_SECONDS, entry).decode()
    lines = "\n".join(f"    {script[at : at + 100]!r}" for at in range(0, len(script), 100))
    path.write_text(
        f'"""The script that reads the facts of a host: python3 -I -S - runs it."""\n\nSCRIPT = (\n{lines}\n)\n'
    )


def _filters(source: Path, folder: Path) -> None:
    text = source.read_text()
    for before, after in PLACES.items():
        if before not in text:
            raise SystemExit(f"packaging/collection.py: {source} no longer has {before!r}: see PLACES")
        text = text.replace(before, after)
    folder.mkdir()
    (folder / source.name).write_text(text)


def _yaml(text: str) -> str:
    """Name modules, filters, roles and playbooks as those of the collection."""
    text = re.sub(rf"^(\s+)(nodetune_(?:{'|'.join(MODULES)}):)$", rf"\1{NAME}.\2", text, flags=re.MULTILINE)
    text = re.sub(r"\| (nodetune_\w+)", rf"| {NAME}.\1", text)
    text = re.sub(r"^(\s+name: )(changes|tuning)$", rf"\1{NAME}.\2", text, flags=re.MULTILINE)
    return re.sub(r"playbooks/(\w+)\.yml", rf"{NAME}.\1", text)


def build(out: Path) -> Path:
    """Build the archive. Return its path."""
    with TemporaryDirectory() as work:
        source = Path(work) / "ansible_collections/nodetune/node"
        write(source)
        galaxy = shutil.which("ansible-galaxy", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        done = subprocess.run(
            [str(galaxy), "collection", "build", str(source), "--output-path", work],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},  # Ansible refuses to start in the locale C
        )
        if done.returncode:
            raise SystemExit(f"packaging/collection.py: {done.stderr or done.stdout}")
        (made,) = Path(work).glob("*.tar.gz")
        out.mkdir(parents=True, exist_ok=True)
        _repack(made, out / made.name)
        return out / made.name


def _repack(made: Path, out: Path) -> None:
    """Write the archive in one order and with one time: ansible-galaxy takes both from the disk and the clock."""
    with tarfile.open(made) as archive:
        files = {each.name: (each, archive.extractfile(each)) for each in archive}
        contents = {name: (entry, stream.read() if stream else b"") for name, (entry, stream) in files.items()}
    listed = json.loads(contents["FILES.json"][1])
    listed["files"].sort(key=lambda each: each["name"])
    manifest = json.loads(contents["MANIFEST.json"][1])
    text = json.dumps(listed, indent=1).encode()
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(text).hexdigest()
    changed = {"FILES.json": text, "MANIFEST.json": json.dumps(manifest, indent=1).encode()}
    with (
        out.open("wb") as stream,
        gzip.GzipFile("", "wb", 6, stream, TIME) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, (entry, content) in sorted(contents.items()):
            text = changed.get(name, content)
            entry.size, entry.mtime, entry.pax_headers = len(text), TIME, {}
            entry.mode = 0o755 if entry.isdir() else 0o644
            archive.addfile(entry, io.BytesIO(text) if entry.isfile() else None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="the folder")
    try:
        print(build(parser.parse_args().out))
    except OSError as problem:
        parser.error(str(problem))
