"""Hosts that send anything, and a command over them: what it took, and that nothing of what they sent reaches a reader."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).parents[1] / "data/synthetic"
MACHINE = json.loads((DATA / "hgx-h200-untuned.json").read_text())
SCRIPT = "<script>planted()</script>"
EVIL = (
    "\x1b]0;planted\x07\x1b[2J",
    SCRIPT,
    "'><img src=x onerror=planted()>",
    "$(touch planted)`touch planted`; touch planted #",
    "{{ lookup('pipe', 'touch planted') }}",
    'x"} 1\nplanted 1\n# ',
    "]]></failure><planted/>",
    "| a | [x](javascript:planted()) |\n# planted",
    "\u202edetnalp\u202c\u200b\ufeff",
    "\ud800",
    "../../planted",
    "=cmd|' /C planted'!A0",
)
RETURNED = (
    "msg",
    "diff",
    "problems",
    "done",
    "entries",
    "waits",
    "interrupted",
    "busy",
    "driver",
    "versions",
    "changed",
)
OWN = ("/etc/sysctl.d/zz-nodetune.conf", "/etc/default/grub.d/zz-nodetune.cfg", "/etc/nodetune/gpu.conf")


def deep(depth):
    return json.loads("[" * depth + "]" * depth)


def wrong(rng):
    """One of everything: types, sizes, depths, texts."""
    evil = rng.choice(EVIL)
    kinds = (
        lambda: rng.choice((None, True, -1, 1 << 70, 1.5, 10**400, [], {}, "", 0)),
        lambda: evil,
        lambda: {evil: evil},
        lambda: [evil] * rng.choice((1, 50, 20_000)),
        lambda: evil * rng.choice((1, 5_000)),
        lambda: deep(rng.choice((3, 90, 150, 300))),
        lambda: {f"{evil}{number}": {evil: number} for number in range(rng.choice((3, 2_000)))},
    )
    return rng.choice(kinds)()


def planted(value, rng):
    """The value with one part of it replaced: it still passes for what it is."""
    if isinstance(value, dict) and value:
        name = rng.choice(sorted(value))
        return {**value, name: planted(value[name], rng)}
    if isinstance(value, list) and value:
        return [planted(value[0], rng), *value[1:]]
    return rng.choice(EVIL) if isinstance(value, str) else wrong(rng)


def hostile(number, machine=MACHINE):
    """A fact document as bytes, different for each number."""
    rng = random.Random(number)
    facts = dict(machine["facts"])
    names = sorted(facts)
    for name in rng.sample(names, rng.choice((1, 5, 40))):
        ((kind, content),) = facts[name].items()
        ways = (
            {kind: planted(content, rng)},
            {"value": wrong(rng)},
            {"each": {rng.choice(EVIL): {"value": wrong(rng)}}},
        )
        facts[name] = rng.choice((*ways, {"absent": rng.choice(EVIL)}, {"unread": rng.choice(EVIL)}))
    settings = {rng.choice(EVIL): rng.choice(EVIL), "vm.swappiness": wrong(rng)}
    facts["own.files"] = {"value": {rng.choice(OWN): f"# settings: {json.dumps(settings)}\n", "/x": rng.choice(EVIL)}}
    data = json.dumps({**machine, "host": f"bad{number}", "facts": facts}).encode("ascii")
    match number % 20:
        case 1:
            return data[: len(data) // 2]
        case 2:
            return data.decode().encode("utf-16")
        case 3:
            return b"\xff\xfe\x00" + data
        case 4:
            return b"[" * 200_000
        case 5:
            return json.dumps(
                {**machine, "host": f"bad{number}", "facts": {**facts, rng.choice(names): wrong(rng)}}
            ).encode("ascii")
        case 6:
            return json.dumps({**machine, "host": rng.choice(EVIL), "facts": wrong(rng)}).encode("ascii")
    return data


def result(rng):
    """What a module of Ansible returns."""
    found = {name: wrong(rng) for name in rng.sample(RETURNED, 4)}
    found |= {rng.choice(("ansible_facts", "warnings", "deprecations", "exception", "_ansible_item_label")): wrong(rng)}
    if rng.random() < 0.5:
        entry = {"label": rng.choice(EVIL), "message": rng.choice(EVIL), "checks": wrong(rng), "changed": True}
        found |= {"changed": False, rng.choice(("problems", "done", "refused", "entries")): [entry, wrong(rng)]}
        found["diff"] = [{"before_header": rng.choice(EVIL), "before": rng.choice(EVIL), "after": rng.choice(EVIL)}]
    return found


MAX_KIB = 500_000
ESCAPES = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u200b\ufeff]")
"""What no text for people holds."""

MEASURED = """
import os, subprocess, sys
started = subprocess.Popen(sys.argv[2:])
_, how, used = os.wait4(started.pid, 0)
open(sys.argv[1], "w").write(f"{os.waitstatus_to_exitcode(how)} {used.ru_maxrss}")
"""
"""Starts a command from a small process: Linux counts the memory of the one that starts it until it has begun (vfork)."""


class Done:
    """A command that has ended: its exit code, the memory that it took, and what it said."""

    def __init__(self, folder, words, environment=None):
        self.folder, used = folder, folder / "used"
        self.out, self.errors = folder / "out", folder / "errors"
        with self.out.open("wb") as out, self.errors.open("wb") as errors:
            measured = [sys.executable, "-I", "-S", "-c", MEASURED, str(used)]
            command = [*measured, sys.executable, "-m", "nodetune", *map(str, words)]
            subprocess.run(command, stdout=out, stderr=errors, cwd=folder, env=environment, check=True)
        self.code, self.kib = map(int, used.read_text().split())
        self.text, self.told = self.out.read_bytes().decode(), self.errors.read_bytes().decode()

    def harmless(self, *codes):
        """Hold that it ended well, in bounds, and passed on nothing that a terminal or a shell would act on."""
        assert "Traceback" not in self.told, self.told[-3000:]
        assert self.code in codes, (self.code, self.told[-500:])
        assert self.kib < MAX_KIB
        assert not ESCAPES.search(self.text + self.told)
        assert list(self.folder.rglob("planted")) == []
        return self
