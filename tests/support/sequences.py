"""A host in a folder, and random sequences of apply, rollback, hand edits, kills and boots on it.

The controller's part is real (records, which runs stand, rollback), and so are the modules' sessions on the host; only
Ansible in between is replaced, by calls in this process or in a child that is killed.
"""

import contextlib
import itertools
import os
import random
import re
import shutil

from nodetune_host import core, journal, lock, session
from nodetune_host.problem import StopError

from nodetune.foundation.stage_output import Silent
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation import rollback
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.request import RollbackRequest
from nodetune.remediation.rollback import Undoing
from nodetune.remediation.runs import earlier_runs, record
from nodetune.remediation.runs.files import RunError
from tests.support import killing

NAME = "gpu1"
ELSE = "changed since by someone else"
MOVED = re.compile(r"it was (?P<then>\S+) in that run and is (?P<now>\S+) now: ")
LATER = re.compile(r"(changed by|kept with \S+, which) run (?P<run>\S+?)( changed)? since: roll that back first")


class Host:
    """One host: /etc, links, kernel values with their sysctl.d files, the state folder, /run, and the controller's records."""

    def __init__(self, folder, patch, seed):
        self.root, self.chance, self.boots = folder / "host", random.Random(seed), 0
        self.records, self.kill, self.told = folder / "runs", 0, []
        self.plans = []
        patch.setattr(journal, "HOME", str(self.root / "var"))
        patch.setattr(journal, "IN_MEMORY", str(self.root / "run/journals"))
        patch.setattr(lock, "FOLDER", str(self.root / "run/lock"))
        for module in (journal, lock):
            patch.setattr(module, "boot_id", lambda: f"boot {self.boots}")
        numbers = iter(range(1, 10_000))
        patch.setattr(record, "_new_folder", lambda home: self._record_folder(home, next(numbers)))
        patch.setattr(rollback.play, "play", self.play)
        self._lay_out()
        self.before = self.files()
        self.by_hand = {path: {state} for path, state in self.before.items()}
        """Each path → the states in which it was before the runs, or that a hand gave it."""

        self.touched = set()

    def _record_folder(self, home, number):
        there = home / f"20261123-{number:06}-0000"
        there.mkdir(parents=True)
        return there

    def _lay_out(self):
        for folder in ("etc/sysctl.d", "real", "proc", "run"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "etc/a.conf").write_bytes(b"A=0\n\xff\n")
        (self.root / "etc/b.conf").write_text("B=0\n")
        (self.root / "etc/b.conf").chmod(0o640)
        with contextlib.suppress(OSError):
            os.setxattr(self.root / "etc/b.conf", "user.label", b"etc_t")
        for name in ("d", "e"):
            (self.root / f"real/{name}.conf").write_text(f"{name}=0\n")
        (self.root / "etc/link.conf").symlink_to("../real/d.conf")
        self._values()

    def _values(self):
        """Set the kernel's values as a boot does."""
        found = {"x": "10", "y": "20"}
        for path in sorted((self.root / "etc/sysctl.d").iterdir()):
            found.update(line.split(" = ") for line in path.read_text().splitlines() if " = " in line)
        for name in ("x", "y"):
            (self.root / "proc" / name).write_text(found[name] + "\n")

    def files(self):
        """Return {path: its state} of all files and links."""
        found = {}
        for top in ("etc", "real", "proc"):
            for path in (self.root / top).rglob("*"):
                if path.is_symlink():
                    found[str(path)] = os.readlink(path)
                elif path.is_file():
                    about = path.stat()
                    labels = tuple((name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)))
                    found[str(path)] = path.read_bytes(), about.st_mode, about.st_uid, about.st_gid, labels
        return found

    # What happens to the host

    def boot(self):
        self.boots += 1
        shutil.rmtree(self.root / "run")
        (self.root / "run").mkdir()
        before = self.files()
        self._values()
        files = [path for path in self.touched if "/sysctl.d/" in path]
        self._seen(before, allowed=[str(self.root / "proc" / os.path.basename(path)[0]) for path in files])

    def hand(self):
        """Change a file, a value or a link manually."""
        before, path = (
            self.files(),
            self.root
            / self.chance.choice(
                [
                    "etc/a.conf",
                    "etc/b.conf",
                    "etc/new.d/c.conf",
                    "etc/sysctl.d/x.conf",
                    "proc/y",
                    "etc/link.conf",
                    "real/d.conf",
                ]
            ),
        )
        if path.name == "link.conf":
            path.unlink()
            path.symlink_to(f"../real/{self.chance.choice('de')}.conf")
        elif path.exists() and self.chance.random() < 0.3 and "proc" not in path.parts:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"x = {self.chance.randrange(90, 99)}\n" if "proc" not in path.parts else "77\n")
        self._seen(before)

    def _seen(self, before, allowed=None):
        now = self.files()
        for path in {*before, *now}:
            if before.get(path) != now.get(path) and (allowed is None or path in allowed):
                self.by_hand.setdefault(path, set()).add(now.get(path))
                self.touched.add(path)

    # What nodetune does

    def apply(self):
        """Make a plan, or the same again."""
        if self.plans and self.chance.random() < 0.4:
            plan = self.chance.choice(self.plans)
        else:
            plan = [
                [self._change() for _ in range(self.chance.randint(1, 3))] for _ in range(self.chance.randint(1, 3))
            ]
            self.plans.append(plan)
        run = record.Run.create("apply", {}, [NAME], f"{NAME},", self.records)
        groups = [
            {"group": f"g{n}", "guard": {}, "checks": [], "changes": list(itertools.chain(*group))}
            for n, group in enumerate(plan)
        ]
        work = [lambda result, group=group: session.change(run.id, group, result) for group in groups]
        outcome = self._call(run, work)
        run.finish(0 if outcome.state == "ok" else 3)

    def _change(self):
        kind, number = self.chance.choice(["file", "gone", "edit", "value"]), self.chance.randrange(3)
        if kind == "value":
            name = self.chance.choice("xy")
            value = {"change": "value", "path": str(self.root / "proc" / name), "value": str(30 + number)}
            kept = {
                "change": "file",
                "path": str(self.root / f"etc/sysctl.d/{name}.conf"),
                "content": f"{name} = {30 + number}\n",
            }
            return [value, kept]
        names = [
            "a.conf",
            "b.conf",
            "link.conf",
            *(["new.d/c.conf"] if kind != "gone" else []),
        ]  # what a plan made stays
        path = str(self.root / "etc" / self.chance.choice(names))
        if kind == "edit":
            return [{"change": "edit", "path": path, "how": "assignments", "with": {"values": {"N": number}}}]
        return [{"change": "file", "path": path, "content": None if kind == "gone" else f"{number}\n"}]

    def roll_back(self, force=False):
        """Roll back the last run, any run, or all."""
        found = record.listing(self.records)
        which = self.chance.choice(["last", "all", "any"])
        if which == "all":
            request = RollbackRequest(every=NAME, force=force, runs_folder=self.records)
        else:
            name = self.chance.choice(found).id if which == "any" and found else "last"
            request = RollbackRequest(name, force=force, runs_folder=self.records)
        with contextlib.suppress(RunError):
            self.carry_out(request)

    def carry_out(self, request):
        """Roll back as the command does. Return {run: outcome}."""
        outcomes = {}
        for of, _ in rollback.runs_of(request):
            undoing = Undoing(of, [Target(NAME)], ConnectionOptions(), request, {})
            outcomes[of.id] = undoing.carry_out(Silent())[1][NAME]
        return outcomes

    def play(self, _name, _targets, variables, _options, run, _on_event):
        """What Ansible does with revert.yml."""
        mine = variables[NAME]
        given = {"run": run.id, "of": mine["nodetune_of"], "entries": mine["nodetune_entries"]}
        given["least"] = mine["nodetune_least"]
        given |= {"force": mine["nodetune_force"], "guard": {}, "guarded": []}
        work = [
            lambda result, timed=timed: session.revert(dict(given, timed=timed), result, False)
            for timed in (True, False)
        ]
        return {NAME: self._call(run, work)}

    def _call(self, run, work):
        number, self.kill = self.kill, 0
        if number:
            killing.survives(lambda: self._session(run, work), number)
            return Outcome(NAME, "unreachable", "lost")
        return self._session(run, work)

    def _session(self, run, work):
        results = []
        try:
            session.begin(run.id, "me", earlier_runs.over(run).get(NAME, ""), False)
            run.add_event({"host": NAME, "task": "Begin", "status": "ok"})
            for each in work:
                results.append(core.Result())
                try:
                    each(results[-1])
                finally:
                    run.add_entries(NAME, results[-1].entries)
            session.end(run.id)
            run.add_event({"host": NAME, "task": "End", "status": "ok"})
        except StopError as stop:
            return Outcome(NAME, "failed", str(stop))
        return Outcome(NAME, results=tuple(Event(NAME, "Revert", result=result.data()) for result in results))


def happen(host):
    """One to four runs with whatever else comes in between."""
    for _ in range(host.chance.randint(1, 4)):
        for step in host.chance.choices([host.hand, host.boot, host.roll_back], [2, 1, 2], k=host.chance.randrange(3)):
            _perhaps_killed(host, step)
        _perhaps_killed(host, host.apply)
    for step in host.chance.choices([host.hand, host.boot, host.roll_back], [1, 1, 3], k=host.chance.randrange(4)):
        _perhaps_killed(host, step)


def _perhaps_killed(host, step):
    host.kill = host.chance.randrange(1, 60) if host.chance.random() < 0.3 else 0
    if step == host.roll_back:
        host.roll_back(force=host.chance.random() < 0.15)
    else:
        step()
    host.kill = 0


def roll_all_back(host):
    """Roll everything back until nothing moves any more. Return what was refused last: [(run, path, message)]."""
    request, before = RollbackRequest(every=NAME, runs_folder=host.records), None
    while before != host.files():
        before, refused = host.files(), []
        if not next(earlier_runs.standing(record.listing(host.records)), None):
            return []
        outcomes = host.carry_out(request)
        for run, outcome in outcomes.items():
            assert (outcome.state, outcome.gathered("problems")) == ("ok", []), (run, outcome)
            refused += [(run, _path(each), each["message"]) for each in outcome.gathered("refused")]
    return refused


def _path(refused):
    moved = MOVED.match(refused["message"])
    return moved["then"] if moved else re.sub(r".* \(a link to (.*)\)$", r"\1", refused["label"])


def check(host, refused):
    """Every file is as before or as a hand left it, or its refusal is true; nothing waits for itself."""
    standing = [run.id for run, _ in earlier_runs.standing(record.listing(host.records))]
    for run, path, message in refused:
        assert run in standing
        if moved := MOVED.match(message):
            assert moved["then"] != moved["now"] == os.path.realpath(moved["now"])
            assert str(host.root / "etc/link.conf") in host.touched
        elif later := LATER.match(message):
            assert later["run"] > run, "only a later run is in the way"
            assert later["run"] in standing, "and only one that stands"
        else:
            assert message == ELSE
            assert path in host.touched, (path, "nobody else changed it")
    assert bool(standing) == bool(refused)
    assert not refused or any(not LATER.match(message) for _, _, message in refused), "each waits for another"
    kept, now = {path for _, path, _ in refused}, host.files()
    for path in {*host.before, *now}:
        if path not in kept:
            assert now.get(path) in host.by_hand.get(path, {None}), path
    assert [*host.root.glob("etc/**/*nodetune-part"), *host.root.glob("real/*nodetune-part")] == []
    made = host.root / "etc/new.d"
    assert not made.exists() or any(made.iterdir()) or str(made / "c.conf") in host.touched
