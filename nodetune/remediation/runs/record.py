"""The record of runs that change hosts: one folder a run, all that shows what was done and all that takes it back.

    run.json            command, options (no passwords), hosts, inventory, when, by whom, which process, exit code;
                        of each host's journal the number of entries and the checksum
    plan.json           the plan; before.json and after.json: the audits around it; outcomes.json: the outcome of each
    step
    before-verify.json, after-verify.json   the figures before and after (--verify)
    provision.json      the result of each host at each stage; held.json: the versions that it had before;
    audit.json, verify.json, back-verify.json   the audit and the measurements of a provision, and those after going back
    events.jsonl        what happened, in order
    facts/HOST.json     what was read before; changes/HOST.json: what was to be done; diffs/HOST.diff: what that changed
    entries/HOST.jsonl  the host's journal, as it came in

Every file is written whole or appended to by whole lines, so that the folder of a killed run is correct too.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import getpass
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodetune import __version__
from nodetune.api.model import HostFacts
from nodetune.facts import document as facts_document
from nodetune.foundation import text
from nodetune.foundation.exit_codes import END_STATE_MISSED
from nodetune.remediation.runs import diffs as differences
from nodetune.remediation.runs import files, journal_copy, process
from nodetune.remediation.runs.files import DamageError, RunError
from nodetune.remediation.runs.journal_copy import JournalCopy, Seal

SCHEMA = "nodetune.run/1"
RUNNING, DONE, INTERRUPTED, ELSEWHERE, UNREADABLE = "running", "done", "interrupted", "elsewhere", "unreadable"
"""`elsewhere`: not ended, and begun on another machine that shares this folder, which alone knows its state."""

MEASURED = ("before-verify", "after-verify")
PROVISIONED = ("provision", "held", "audit", "verify", "back-verify")
DOCUMENTS = ("plan", "before", "after", "outcomes", *MEASURED, *PROVISIONED)

_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
_MAX_NAME_LENGTH = 60
_NEAR = 3


def place(root: Path | None = None) -> Path:
    """Return the folder of all runs: --runs, NODETUNE_RUNS, or the user's state folder."""
    told = root or os.environ.get("NODETUNE_RUNS")
    if told:
        return Path(os.path.expanduser(told)).absolute()  # noqa: PTH111  (Path.expanduser raises)
    state = os.environ.get("XDG_STATE_HOME") or ""
    home = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return home / "nodetune" / "runs"


class Run:
    """One run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._about: dict[str, Any] | None = None
        self._seals: dict[str, Seal] = {}
        self.code = END_STATE_MISSED
        """The exit code of the command (see `recorded`)."""

        self.undone: list[str] | None = None
        """The hosts where a rollback is complete; None if this is not a rollback."""

    @staticmethod
    def create(
        command: str,
        record_options: Mapping[str, Any],
        hosts: Sequence[str],
        inventory: str | None = None,
        root: Path | None = None,
    ) -> Run:
        """Begin the record of a `command` on `hosts`, by name. `record_options` must hold no password. Raise OSError."""
        run = Run(_new_folder(place(root)))
        taken: dict[str, None] = {}
        for host in hosts:  # shortened: the file system counts bytes, and a letter may be four of them
            taken[facts_document.file_name(host[:_MAX_NAME_LENGTH], taken)] = None
        run._write_about(
            {
                "schema": SCHEMA,
                "id": run.id,
                "nodetune": __version__,
                "command": command,
                "options": dict(record_options),
                "inventory": inventory,
                "hosts": {host: name.removesuffix(".json") for host, name in zip(hosts, taken, strict=True)},
                "user": _user(),
                "controller": process.this_one(),
                "started": _now(),
                "ended": None,
                "exit": None,
            }
        )
        return run

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def about(self) -> Mapping[str, Any]:
        """The content of run.json. Raise RunError."""
        if self._about is None:
            found = self.document("run")
            if not isinstance(found, dict) or found.get("schema") != SCHEMA or not _has_shape(found):
                raise DamageError(
                    f"{self.folder / 'run.json'} is missing, damaged or from another version of nodetune ({SCHEMA})"
                )
            self._about = found
        return self._about

    @property
    def hosts(self) -> list[str]:
        return [text.plain(host) for host in self.about["hosts"]]

    def state(self) -> str:
        """Return running, done, interrupted or elsewhere. Raise RunError."""
        if self.about.get("ended"):
            return DONE
        then, now = self.about.get("controller"), process.this_one()
        if not isinstance(then, dict):
            return INTERRUPTED
        if then.get("machine") != now["machine"]:
            return ELSEWHERE
        same = then.get("boot") == now["boot"] and then.get("start") == process.started(then.get("pid"))
        return RUNNING if same and then.get("start") else INTERRUPTED

    def save(self, name: str, document: Any) -> None:
        """Write one of DOCUMENTS."""
        files.write(self.folder / f"{name}.json", files.as_json(document))

    def save_facts(self, facts: HostFacts) -> None:
        files.write(self._file("facts", facts.host, "json"), facts_document.dump(facts))

    def facts(self, host: str) -> HostFacts | None:
        """Return the facts that were saved of a host; None if there are none that can be read."""
        try:
            return facts_document.load(self._file("facts", host, "json"))
        except facts_document.FactsError:
            return None

    def save_changes(self, host: str, changes: Any) -> None:
        """Save what was sent to the host, in Ansible's form: a list of groups."""
        files.write(self._file("changes", host, "json"), files.as_json(changes))

    def add_entries(self, host: str, entries: Iterable[Mapping[str, Any]]) -> None:
        """Keep journal entries of a host; they are on the disk when this returns."""
        lines = files.as_lines(entries)
        files.append(self._file("entries", host, "jsonl"), lines, sync=True)
        self._seals.setdefault(host, Seal()).add(lines)

    def add_diffs(self, host: str, diffs: Iterable[Mapping[str, Any]]) -> None:
        """Keep differences as Ansible's modules return them, as unified diffs."""
        files.append(self._file("diffs", host, "diff"), differences.unified(diffs))

    def add_event(self, event: Mapping[str, Any]) -> None:
        files.append(self.folder / "events.jsonl", files.as_lines([{"time": _now(), **event}]))

    def finish(self, code: int) -> None:
        """Record the end of the run, with the exit code of the command."""
        undone = {} if self.undone is None else {"undone": self.undone}
        journals = {host: self._seals.get(host, Seal()).data for host in self.about["hosts"]}
        self._write_about({**self.about, "ended": _now(), "exit": code, "journals": journals, **undone})

    def document(self, name: str) -> Any:
        """Return run.json or one of DOCUMENTS, or None. Raise RunError."""
        return files.read(self.folder / f"{name}.json")

    def changes(self, host: str) -> Any:
        return files.read(self._file("changes", host, "json"))

    def entries(self, host: str) -> list[dict[str, Any]]:
        """Return the journal entries of a host that can be read."""
        return self.journal(host).entries

    def journal(self, host: str) -> JournalCopy:
        """Return the copy of a host's journal."""
        seals = self.about.get("journals")
        seal = seals.get(host, []) if isinstance(seals, dict) else seals
        return journal_copy.read(self._file("entries", host, "jsonl"), seal, self._file("diffs", host, "diff").exists())

    def events(self) -> list[dict[str, Any]]:
        return list(files.objects(self.folder / "events.jsonl"))

    def diff(self, host: str) -> str:
        try:
            return self._file("diffs", host, "diff").read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def _file(self, kind: str, host: str, ending: str) -> Path:
        name = self.about["hosts"].get(host)
        if not isinstance(name, str) or not name or Path(name).name != name:
            raise RunError(f"run {self.id} has no host {text.plain(host)!r}: its hosts: {text.names(self.hosts)}")
        return self.folder / kind / f"{name}.{ending}"

    def _write_about(self, about: dict[str, Any]) -> None:
        files.write(self.folder / "run.json", files.as_json(about))
        self._about = about


@contextlib.contextmanager
def recorded(
    command: str,
    record_options: Mapping[str, Any],
    hosts: Sequence[str],
    inventory: str | None = None,
    root: Path | None = None,
) -> Iterator[Run]:
    """Record a run (see `Run.create`). It ends with the `code` that the body sets, 4 if it sets none. Raise OSError."""
    run = Run.create(command, record_options, hosts, inventory, root)
    try:
        yield run
    finally:
        run.finish(run.code)


def listing(root: Path | None = None) -> list[Run]:
    """Return all runs, newest first; ignore everything else in that folder."""
    home = place(root)
    try:
        found = [each for each in home.iterdir() if _ID.fullmatch(each.name) and each.is_dir()]
    except FileNotFoundError:
        return []
    return [Run(each) for each in sorted(found, key=lambda each: each.name, reverse=True)]


def find(name: str, root: Path | None = None) -> Run:
    """Find the run with that id, the only one whose id begins so, or the `last`. Raise RunError."""
    found = listing(root)
    if not found:
        raise RunError(f"no runs are recorded in {place(root)}: give another folder with --runs")
    if name == "last":
        return found[0]
    fitting = [run for run in found if name and run.id.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise RunError(f"{text.plain(name)} may be {_or(run.id for run in fitting)}: give more characters")
    known = [run.id for run in found]
    near = difflib.get_close_matches(name, known, _NEAR, 0.7) or known[:_NEAR]
    raise RunError(f"no run {text.plain(name, 60)!r}; similar: {_or(near)}. To list all: nodetune runs")


def _or(names: Iterable[str]) -> str:
    return " or ".join([*names][: 2 * _NEAR])


def _new_folder(home: Path) -> Path:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S")
        folder = home / f"{stamp}-{secrets.token_hex(2)}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return folder


def _has_shape(about: Mapping[str, Any]) -> bool:
    texts = (about.get("inventory"), about.get("command"), about.get("started"))
    names = isinstance(about.get("hosts"), dict) and all(isinstance(name, str) for name in about["hosts"].values())
    return names and isinstance(about.get("options", {}), dict) and all(isinstance(each, str | None) for each in texts)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry
        name = str(os.getuid())
    return f"{os.environ['SUDO_USER']} (by sudo)" if os.environ.get("SUDO_USER") and os.getuid() == 0 else name
