"""Random sequences of apply, rollback, manual edits, kills and boots on a machine, each ended by rolling everything back.

tests/unit/playbooks/test_sequences.py does it two hundred times in a folder; here are a real kernel, services and boots.
NODETUNE_SEQUENCES says how many, NODETUNE_SEED where they begin.
"""

import os
import random
import re

import pytest

from tests.machines.faults import SECONDS, SEVERAL, after, ended, selected
from tests.machines.place import until

COUNT, SEED = int(os.environ.get("NODETUNE_SEQUENCES", "10")), int(os.environ.get("NODETUNE_SEED", "0"))
OURS, SITE, LOGIND = "/etc/sysctl.d/zz-nodetune.conf", "/etc/sysctl.d/10-site.conf", "/etc/systemd/logind.conf.d"
MANUAL = {
    OURS: "if [ -e {0} ]; then echo 'vm.swappiness = 44' >> {0}; fi",
    SITE: "echo 'vm.swappiness = 55' > {0}",
    LOGIND: "rm -f {0}/*nodetune*",
    "vm.swappiness": "sysctl -q -w vm.swappiness=77",
}
"""What is changed manually → how. A file of nodetune's is changed or removed, one of the site is made."""

END_OF_BOOT = "timeout 600 systemctl is-system-running --wait"
ELSE = "changed since by someone else"
LATER = re.compile(r"(?:changed by|kept with \S+, which) run (\S+?)(?: changed)? since: roll that back first")
UNDO = "rm -rf /var/lib/nodetune /run/nodetune /etc/sysctl.d/*nodetune* {0} && sysctl -q -w vm.swappiness=60"


class Story:
    """One sequence: what was there before, and what was touched manually."""

    def __init__(self, site, seed):
        self.site, self.chance, self.touched, self.done = site, random.Random(seed), set(), []
        site.runs = site.folder / f"runs-{seed}"
        site.environment["NODETUNE_RUNS"] = str(site.runs)
        self.files, self.values = site.files(), site.values()

    def happen(self):
        for _ in range(self.chance.randint(1, 4)):
            for step in self.chance.choices(
                [self.edit, self.boot, self.roll_back], [2, 1, 2], k=self.chance.randrange(3)
            ):
                step()
            self.apply()

    def edit(self):
        what = self.chance.choice([*MANUAL])
        self.done.append(f"manually {what}")
        before = self.site.files()
        self.site.machine.ssh(MANUAL[what].format(what))
        now = self.site.files()
        self.touched |= {path for path in {*before, *now} if before.get(path) != now.get(path)}
        self.touched |= {what} if what not in (OURS, LOGIND) else set()

    def boot(self):
        self.done.append("boot")
        self.site.machine.reboot()
        self.site.machine.ssh(END_OF_BOOT, check=False, timeout=660)
        if self.touched & {OURS, SITE}:
            self.touched.add("vm.swappiness")

    def apply(self):
        checks = tuple(self.chance.sample(SEVERAL, self.chance.randint(1, 3)))
        self._perhaps_killed("apply", *selected(checks))

    def roll_back(self):
        runs = sorted(self.site.run_ids())
        which = self.chance.choice(["last", "all", "any"])
        words = ("--all", self.site.machine.name) if which == "all" else ("last",)
        if which == "any" and runs:
            words = (self.chance.choice(runs),)
        self._perhaps_killed("rollback", *words)

    def _perhaps_killed(self, command, *words):
        seconds = self.chance.uniform(0, 60) if self.chance.random() < 0.3 else 0
        self.done.append(f"{command} {' '.join(words)}" + (f", killed after {seconds:.0f} s" if seconds else ""))
        process = self.site.start(command, *words)
        if not seconds:
            answer = ended(process)
            assert answer.code in (0, 2, 4), (self.done, answer)
            assert answer.code != 2 or "roll back" in answer.error, (self.done, answer)
            return
        after(seconds)(process, "")
        if process.poll() is not None:
            ended(process)
        else:
            self.site.kill(process)
            until("no call of the dead run works", lambda: not self.site.says("pgrep -x python3"), SECONDS)

    def roll_all_back(self):
        """Roll back until nothing more is undone. Return what is refused then: [(label, message)]."""
        told = None
        while True:
            answer = self.site.nodetune("rollback", "--all", self.site.machine.name)
            if answer.code == 2:
                assert "nothing to roll back" in answer.error, (self.done, answer)
                return []
            (host,) = answer.data["hosts"]
            assert (host["state"], host["problems"]) == ("ok", []), (self.done, answer)
            refused = [(each["label"], each["message"]) for each in host["refused"]]
            if refused == told:
                return refused
            told = refused

    def check(self, refused):
        """Every file is as before or as it was left manually, or its refusal is true; nothing waits for itself."""
        labels = [label for label, message in refused if message == ELSE]
        for label in labels:
            assert any(each in label or each.replace(".", "/") in label for each in self.touched), (label, self.done)
        assert all(message == ELSE or LATER.match(message) for _, message in refused), (refused, self.done)
        assert bool(refused) == bool(labels), ("each waits for another", refused, self.done)
        now, kept = self.site.files(), " ".join(label for label, _ in refused)
        differing = {path for path in {*now, *self.files} if now.get(path) != self.files.get(path)}
        assert not {path for path in differing if path not in self.touched and path not in kept}, self.done
        assert self.site.left_behind() == "", self.done
        if not self.touched and not refused:
            assert self.site.values() == self.values, self.done

    def clean_up(self):
        """Make the machine as it was: what manual edits left is removed."""
        self.site.machine.ssh(UNDO.format(SITE))
        self.site.machine.ssh(f"rm -f {LOGIND}/*nodetune*; find /etc/systemd/system -name '*nodetune*' -delete")
        self.site.machine.ssh("find /etc -type d -empty -name '*.conf.d' -delete; systemctl daemon-reload")
        self.boot()
        assert self.site.files() == self.files, self.done


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_a_random_sequence_on_a_machine_is_rolled_back(site, seed):
    story = Story(site, seed)
    story.happen()
    refused = story.roll_all_back()
    print(seed, story.done, refused, sep="\n")
    story.check(refused)
    if story.touched or refused:
        story.clean_up()
