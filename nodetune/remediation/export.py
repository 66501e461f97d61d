"""A plan as plain files and as an Ansible role, for image builds and for sites whose hosts belong to other tools.

    DIR/README.md            what to run for images and for hosts
    DIR/files/…              files of nodetune's own, as they would land (one folder for each set of hosts that are alike)
    DIR/snippets/…           what to add to files of others
    DIR/apply.yml, DIR/role  the same changes, made by nodetune's own modules
    DIR/test_wanted.py       a test by testinfra that the plan holds on hosts (wanted.json)

Whatever came from a host is data in all of it: every text in the role's variables is tagged so that Ansible takes no part
of it for a template.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from nodetune.foundation import UserError, file_io, json_document, nodeset, paths, templates
from nodetune.foundation import text as plain_text
from nodetune.foundation.json_document import merge
from nodetune.remediation import expected_state
from nodetune.remediation.ansible.inventory import DataDumper
from nodetune.remediation.host_changes import PlannedChange
from nodetune.remediation.host_view import FILES
from nodetune.remediation.plan import HostPlan, alike, edited
from nodetune.remote import payload

Change = Mapping[str, Any]
Set = tuple[str, tuple[PlannedChange, ...], list[str]]
"""Its name, its changes, its hosts."""

TASKS = ("change.yml", "confirm.yml")


class ExportError(UserError):
    """A folder that cannot be written to, or a plan with nothing in it."""


def write(folder: Path, plans: Iterable[HostPlan]) -> str:
    """Write the folder; returns what was written, in a line. Raise ExportError or OSError."""
    sets = [(f"set-{number}", changes, hosts) for number, (changes, hosts) in enumerate(alike(plans), 1)]
    if not sets:
        raise ExportError("nothing to export: the plan has no automatic steps")
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty: give --export a new folder, or empty it first")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _fill(folder, sets)
    except BaseException:
        for each in folder.iterdir():  # half an export is none, and the next try wants an empty folder
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        raise
    hosts = sum(len(hosts) for _, _, hosts in sets)
    return f"{folder}: {plain_text.count(len(sets), 'set')} of changes for {plain_text.count(hosts, 'host')}; see README.md"


def _fill(folder: Path, sets: Sequence[Set]) -> None:
    for each in sets:
        _files(folder, each, alone=len(sets) == 1)
    _role(folder / "role", sets)
    _put(folder / "apply.yml", _own("apply.yml"))
    _put(folder / "test_wanted.py", templates.render("test_wanted.py.j2"))
    _put(folder / "wanted.json", _wanted(sets))
    _put(folder / "README.md", "\n".join([_own("README.md"), *(_about(each, alone=len(sets) == 1) for each in sets)]))


def _wanted(sets: Sequence[Set]) -> str:
    """Return the data of the exported test."""
    known = {name: expected_state.wanted(_changes(planned)) for name, planned, _ in sets}
    return json_document.text({"hosts": _set_of(sets), "sets": known})


def _set_of(sets: Sequence[Set]) -> dict[str, str]:
    return {host: name for name, _, hosts in sets for host in hosts}


def _own(name: str) -> str:
    """Return a file of templates/export, which is copied as it is."""
    return paths.shared("templates").joinpath("export", name).read_text("utf-8")


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file_io.write(path, text)


# --- plain files


def _files(folder: Path, of: Set, *, alone: bool) -> None:
    name, planned, _ = of
    for change in _changes(planned):
        if change["change"] in FILES and change["content"] is not None:
            _put(_below(folder / "files" / ("" if alone else name), change["path"]), change["content"])
    for path, text in _snippets(planned).items():
        _put(_below(folder / "snippets" / ("" if alone else name), path), f"{text}\n")


def _snippets(planned: Iterable[PlannedChange]) -> dict[str, str]:
    """Return path of a file of others → what to put there. Keys for one JSON file are merged."""
    found: dict[str, Change] = {}
    text: dict[str, str] = {}
    for change in _changes(planned):
        if change["change"] == "edit":
            path = change["path"]
            if path in found and change["how"] == found[path]["how"] == "json":
                keys = merge(found[path]["with"]["keys"], change["with"]["keys"])
                found[path] = {**change, "with": {"keys": keys}}
                text[path] = edited(found[path])
            else:
                text[path] = "\n".join([*filter(None, [text.get(path)]), edited(change)])
                found[path] = change
    return text


def _below(root: Path, path: str) -> Path:
    """Return a host's path inside a folder. Raise ExportError for one that leads out of it."""
    if not path.startswith("/") or ".." in path.split("/"):
        raise ExportError(f"{path!r} is not a path that can be written below {root}")
    return root / path.lstrip("/")


def _changes(planned: Iterable[PlannedChange]) -> Iterable[Change]:
    return (change for each in planned for change in each.changes)


# --- the role


def _role(role: Path, sets: Sequence[Set]) -> None:
    playbooks = paths.shared("playbooks")
    for part in ("library", "module_utils"):
        for source in _sources(playbooks / part):
            _put(role / source.relative_to(playbooks), source.read_text("utf-8"))
    _put(role / "module_utils" / "pynvml.py", payload.pynvml_source())
    own = playbooks / "roles" / "changes"
    for name in TASKS:
        more = f"\n{_own('remember.yml')}" if name == "change.yml" else ""
        _put(role / "tasks" / name, (own / "tasks" / name).read_text("utf-8") + more)
    _put(role / "tasks" / "remediate.yml", (own / "tasks" / "main.yml").read_text("utf-8"))
    _put(role / "tasks" / "main.yml", _own("main.yml"))
    for name, planned, _ in sets:
        _put(role / "vars" / f"{name}.yml", "---\n" + _as_data("nodetune_groups", [each.data() for each in planned]))
    variables = (own / "vars" / "main.yml").read_text("utf-8")
    _put(role / "vars" / "main.yml", f"---\n{variables}\n{_as_data('nodetune_sets', _set_of(sets))}")


def _sources(folder: Path) -> Iterable[Path]:
    """Yield the modules in a folder, also behind links: in a source tree one leads to nodetune/onhost."""
    for place, _, names in os.walk(folder, followlinks=True):
        yield from (Path(place, name) for name in sorted(names) if name.endswith(".py"))


class _Dumper(DataDumper):
    """Writes each value in full, for people."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _as_data(name: str, value: Any) -> str:
    dumped = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=1 << 30)
    return f"{name}:\n{textwrap.indent(dumped, '  ')}"


# --- what to do with it


def _about(of: Set, *, alone: bool) -> str:
    name, planned, hosts = of
    below = "" if alone else f"/{name}"
    units = [each for each in _changes(planned) if each["change"] == "unit"]
    unread = {*FILES, "edit", "unit", "run", "bootarg"}
    running = sorted({each.name for each in planned for change in each.changes if change["change"] not in unread})
    parts = [
        f"## {name}: {plain_text.plain(nodeset.fold(hosts), 2000)}\n",
        f"For an image mounted at /mnt:\n\n    cp -a files{below}/. /mnt/\n",
        _listed("Then in it (chroot /mnt):", [*map(_of_unit, units), *_in_image(planned)]),
        _listed(
            "Files of others, to be edited (what to put there: snippets):",
            [f"{path}: {plain_text.plain(' '.join(text.split()), 300)}" for path, text in _snippets(planned).items()],
        ),
        _listed("Only on a running host (the role does it; an image needs nothing):", running),
        _listed("To know:", [note for each in planned for note in each.notes]),
    ]
    return "\n".join(part for part in parts if part)


def _listed(title: str, lines: Iterable[str]) -> str:
    once = dict.fromkeys(lines)
    return f"{title}\n\n" + "".join(f"    {plain_text.plain(line, 1000)}\n" for line in once) if once else ""


def _of_unit(change: Change) -> str:
    verb = {"enabled": "enable", "disabled": "disable", "masked": "mask"}.get(change["enabled"], "")
    return f"systemctl {verb} {change['unit']}" if verb else f"# {change['unit']}: {change['active']} on a running host"


IN_IMAGE = {
    "update-grub": "update-grub",
    "initramfs": "update-initramfs -u -k all    # RHEL: dracut -f --regenerate-all",
}


def _in_image(planned: Iterable[PlannedChange]) -> list[str]:
    """Return the commands that an image needs instead of those on hosts: services do not run there."""
    found = [IN_IMAGE.get(str(each["run"]), "") for each in _changes(planned) if each["change"] == "run"]
    for each in _changes(planned):
        if each["change"] == "bootarg":
            argument = f"{each['name']}={each['value']}" if each["value"] else each["name"]
            found.append(f'grubby --update-kernel=ALL --args="{argument}"')
        if each["change"] == "tuned":
            found.append("echo nodetune > /etc/tuned/active_profile; echo manual > /etc/tuned/profile_mode")
    return [command for command in found if command]
