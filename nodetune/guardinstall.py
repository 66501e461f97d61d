"""What the guard puts where on a node, as changes for playbooks/guard.yml; and what an upgrade would gate anew. Pure."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import shlex
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nodetune
from nodetune import fixes, guardpolicy, paths

ETC, OPT = "/etc/nodetune", "/opt/nodetune"
POLICY = f"{ETC}/guard.json"
HOME = f"{OPT}/guard"
RUN = "/run/nodetune/guard"
ARCHIVES = "/var/lib/nodetune/programs"
HOOKS = ("prolog", "epilog", "healthcheck", "taskprolog")
"""What Slurm calls, by its names in HOME."""

CHECK = "check"
UNITS = "/etc/systemd/system"
SERVICE, TIMER = "nodetune-guard.service", "nodetune-guard.timer"
PYTHONS = tuple(f"/usr/bin/python3{minor}" for minor in ("", ".14", ".13", ".12", ".11", ".10"))
"""Best first: the system's own is looked after by its updates."""

SLACK_SECONDS = 1
"""What the entry gives the program beyond its own budget before it kills it."""

FOLDER = re.compile(re.escape(HOME) + r"/[\w.+-]+-[0-9a-f]{16}")

SLURM: Mapping[str, str | list[str]] = {
    "Prolog": f"{HOME}/prolog",
    "Epilog": f"{HOME}/epilog",
    "TaskProlog": f"{HOME}/taskprolog",
    "PrologFlags": ["Alloc"],
    "SchedulerParameters": ["nohold_on_prolog_fail"],
    "HealthCheckProgram": f"{HOME}/healthcheck",
    "HealthCheckInterval": "60",
}
"""What slurm.conf has to say: a text, or words that must be among others. Alloc: a prolog on every node of a job before
it starts; nohold_on_prolog_fail: a job that met a sick node is queued again and not held.
"""


@dataclass(frozen=True)
class Program:
    """The program as an archive, the same bytes for the same version and sources."""

    name: str
    archive: bytes

    @property
    def folder(self) -> str:
        return f"{HOME}/{self.name}"

    @property
    def archive_there(self) -> str:
        return f"{ARCHIVES}/{self.name}.zip"


@cache
def program() -> Program:
    """The program of this version of nodetune. Raises OSError."""
    files = {name: _content(source) for name, source in sorted(guardpolicy.program().items())}
    manifest = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"MANIFEST": manifest, **files}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return Program(f"{nodetune.__version__}-{hashlib.sha256(manifest).hexdigest()[:16]}", buffer.getvalue())


def _content(source: Path | str) -> bytes:
    return source.encode() if isinstance(source, str) else source.read_bytes()


@dataclass(frozen=True)
class Wanted:
    """What is to be installed on one host. `conf`: the slurm.conf to write to (empty: none); `textfile`: where the timer
    leaves its metrics (empty: nowhere; None: no timer); `old`: program folders of earlier installs that can go.
    """

    policy: Mapping[str, Any]
    pythons: Sequence[str] = PYTHONS
    conf: str = ""
    textfile: str | None = None
    old: Sequence[str] = ()


def policy_text(policy: Mapping[str, Any], installed: str = "") -> str:
    """The file's text. A policy that differs from the installed one in nothing but its date leaves that as it is."""
    before = read_policy(installed)
    if before and {**before, "time": 0} == {**policy, "time": 0}:
        return installed
    return json.dumps(policy, indent=1) + "\n"


def read_policy(text: str) -> dict[str, Any]:
    """An installed policy; empty where the text is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("schema") == guardpolicy.SCHEMA else {}


def install(wanted: Wanted, installed: str = "") -> list[dict[str, Any]]:
    """The groups of changes of one host: the program before what calls it, slurm.conf last."""
    made = program()
    changes = [
        {"change": "program", "path": made.folder, "archive": made.archive_there, "pythons": list(wanted.pythons)},
        _file(POLICY, policy_text(wanted.policy, installed)),
        *_scripts(wanted, made),
        *(_no_program(path) for path in wanted.old),
    ]
    groups = [_group("guard", changes)]
    if wanted.textfile is not None:
        groups.append(_group("guard-timer", _timer(wanted, made)))
    if wanted.conf:
        groups.append(_group("slurm.conf", [{"change": "slurm", "path": wanted.conf, "settings": dict(SLURM)}]))
    return groups


def _group(name: str, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Only jobs that start afterwards see any of it."""
    return fixes.Group(name, "new sessions", (), tuple(changes)).data()


def _scripts(wanted: Wanted, made: Program) -> list[dict[str, Any]]:
    policy = wanted.policy
    known = {
        "run": RUN,
        "off": list(policy["off"]),
        "seconds": math.ceil(policy["seconds"]["total"]) + SLACK_SECONDS,
        "python": f"{made.folder}/python",
        "program": made.folder,
        "policy": POLICY,
    }
    entry = _render("guard-entry.sh.j2", known)
    texts = {**dict.fromkeys(HOOKS, entry), "taskprolog": _render("guard-taskprolog.sh.j2", known)}
    return [_file(f"{HOME}/{name}", text, "0755", "guarded") for name, text in texts.items()]


@cache
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(  # noqa: S701  (no HTML is made here)
        loader=FileSystemLoader(paths.shared("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["quote"] = lambda text: shlex.quote(str(text))
    return made


def _render(template: str, known: Mapping[str, Any]) -> str:
    text: str = _templates().get_template(template).render(**known)
    return text


def _timer(wanted: Wanted, made: Program) -> list[dict[str, Any]]:
    """No reload of systemd, which can take the GPUs away from running containers: it reads a new unit when it is started."""
    known = {
        "home": HOME,
        "run": RUN,
        "policy": POLICY,
        "program": made.folder,
        "python": f"{made.folder}/python",
        "textfile": wanted.textfile,
        "seconds": math.ceil(wanted.policy["seconds"]["total"]) + SLACK_SECONDS,
    }
    return [
        _file(f"{HOME}/{CHECK}", _render("guard-check.sh.j2", known), "0755"),
        _file(f"{UNITS}/{SERVICE}", _render("guard-service.j2", known)),
        _file(f"{UNITS}/{TIMER}", _render("guard-timer.j2", known)),
        {"change": "unit", "unit": TIMER, "enabled": "enabled", "active": "started"},
    ]


def _file(path: str, text: str | None, mode: str = "0644", kind: str = "file") -> dict[str, Any]:
    return {"change": kind, "path": path, "content": text, "mode": mode}


def detach(conf: str) -> list[dict[str, Any]]:
    """The first part of an uninstall: slurm.conf as it was before."""
    return [_group("slurm.conf", [{"change": "slurm", "path": conf, "settings": {}}])]


def metrics_file(service: str) -> str:
    """Where the installed timer leaves its metrics, by its service's text."""
    found = re.search(rf"^ExecStart={re.escape(HOME)}/{CHECK} (/.*)$", service, re.MULTILINE)
    return found[1] if found else ""


def remove(folders: Iterable[str], service: str | None) -> list[dict[str, Any]]:
    """The second part, once Slurm calls the guard no more: hooks first, and what they call after them. `service`: the
    text of the timer's service, None where there is none.
    """
    metrics = metrics_file(service or "")
    units = [
        {"change": "unit", "unit": TIMER, "enabled": "disabled", "active": "stopped"},
        {"change": "unit", "unit": SERVICE, "active": "stopped"},
        *(_file(path, None) for path in (f"{UNITS}/{TIMER}", f"{UNITS}/{SERVICE}", f"{HOME}/{CHECK}")),
        *([_file(metrics, None)] if metrics else []),
    ]
    changes = [
        *(_gone(f"{HOME}/{name}", OPT) for name in HOOKS),
        _gone(POLICY, ETC),
        *(_no_program(path) for path in folders),
    ]
    return [*([_group("guard-timer", units)] if service is not None else []), _group("guard", changes)]


def _gone(path: str, folder: str) -> dict[str, Any]:
    return {**_file(path, None, kind="guarded"), "folder": folder}


def _no_program(path: str) -> dict[str, Any]:
    archive = f"{ARCHIVES}/{path.rpartition('/')[2]}.zip"
    return {"change": "program", "path": path, "archive": archive, "pythons": [], "folder": OPT}


def folders(found: Iterable[str]) -> list[str]:
    """Of the folders in HOME those that hold a program of ours."""
    return [path for path in found if FOLDER.fullmatch(path)]


def running_settings(text: str) -> dict[str, str]:
    """`scontrol show config` → {name in small letters: text}; what is not set is empty. Newer Slurms number hooks: Prolog[0]."""
    found: dict[str, str] = {}
    for name, said in re.findall(r"^(\w+)(?:\[\d+\])?\s*= ?(.*)$", text, re.MULTILINE):
        known, value = found.get(name.lower(), ""), said.strip().replace("(null)", "")
        found[name.lower()] = f"{known},{value}" if known else value
    return found


def missing(settings: Mapping[str, str]) -> dict[str, str]:
    """The lines that slurm.conf lacks: name → value, where words are wanted with those that are there already."""
    found: dict[str, str] = {}
    for name, value in SLURM.items():
        present = str(settings.get(name.lower(), ""))
        words = [word.strip() for word in present.split(",") if word.strip()]
        if isinstance(value, list):
            added = [word for word in value if word.lower() not in {each.lower() for each in words}]
            if added:
                found[name] = ",".join([*words, *added])
        elif value not in words and (value.startswith("/") or not re.match(r"[1-9]", present)):
            found[name] = value
    return found


def calls_us(settings: Mapping[str, str]) -> bool:
    """Whether a running Slurm calls anything in HOME."""
    return any(f"{HOME}/" in text for text in settings.values())


@dataclass(frozen=True)
class Difference:
    """What another policy would change: ids of checks, and settings as (name, before, after)."""

    gates: tuple[str, ...] = ()
    gates_no_more: tuple[str, ...] = ()
    judged_otherwise: tuple[str, ...] = ()
    settings: tuple[tuple[str, Any, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gates or self.gates_no_more or self.judged_otherwise or self.settings)


SETTINGS = (*guardpolicy.DEFAULTS, "waivers", "profile", "nodetune")


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """What `after` does otherwise than `before` (empty: nothing is installed)."""
    old, new = ({check["id"]: check for check in policy.get("checks", ())} for policy in (before, after))
    return Difference(
        tuple(sorted(set(new) - set(old))),
        tuple(sorted(set(old) - set(new))),
        tuple(sorted(name for name in set(old) & set(new) if _judged(old[name]) != _judged(new[name]))),
        tuple(
            (name, before.get(name), after.get(name))
            for name in SETTINGS
            if before and before.get(name) != after.get(name)
        ),
    )


def _judged(check: Mapping[str, Any]) -> Any:
    return {name: check.get(name) for name in ("accept", "severity", "about", "fact")}
