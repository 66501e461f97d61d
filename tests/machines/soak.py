"""Kills nodetune again and again at random moments of an apply, on one machine, and looks at what is left each time.

python -m tests.machines.soak --kills 20 [--power-cuts 0] [--seed N]

Every second time the next run continues and then both are undone; every other time the dead run is undone at once.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.machines import template
from tests.machines.faults import Cycle, Site, after
from tests.machines.pool import Fleet


def main() -> int:
    told = _arguments()
    chance = random.Random(told.seed)
    kinds = ["kill"] * told.kills + ["power cut"] * told.power_cuts
    with Fleet(template.ensure()) as fleet, tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        soak = Soak(Site(fleet(1)[0], Path(folder)))
        print(f"seed {told.seed}; an undisturbed apply works on the machine for {soak.cycle.seconds:.1f} s", flush=True)
        for number, kind in enumerate(chance.sample(kinds, len(kinds)), 1):
            seconds = chance.uniform(0, soak.cycle.seconds)
            went_on = bool(number % 2)
            where = soak.cut(kind, seconds, went_on)
            then = "went on" if went_on else "taken back at once"
            print(f"{number:3} {kind} after {seconds:5.1f} s, {where}: whole files, {then}", flush=True)
    print(f"{len(kinds)} times in {time.monotonic() - began:.0f} s; {_tally(soak.places)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.machines.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--power-cuts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    return parser.parse_args()


class Soak:
    """One machine, and how far the dead runs had come on it."""

    def __init__(self, site: Site):
        self.site, self.cycle = site, Cycle(site)
        self.places: list[str] = []

    def cut(self, kind: str, seconds: float, go_on: bool) -> str:
        """One cut run and what follows. Returns how far it had come. Raises AssertionError where anything is amiss."""
        dead = self.cycle.cut(after(seconds), self.site.kill if kind == "kill" else self._without_power)
        self.places.append(self._place(dead))
        if go_on:
            self.cycle.go_on(dead)
        else:
            self.cycle.take_back(dead)
        return self.places[-1]

    def _without_power(self, process: subprocess.Popen) -> None:
        self.site.machine.power_cut()
        self.site.kill(process)
        self.site.machine.power_on()

    def _place(self, run: str) -> str:
        """Counted in what the machine itself wrote down."""
        journal = self.site.says(f"cat /var/lib/nodetune/runs/{run}/journal.jsonl 2>/dev/null")
        changes = journal.count('"before":')
        if not changes:
            return "before the first change"
        return "after the last" if '"ended"' in journal else f"after {changes} changes"


def _tally(places: list[str]) -> str:
    return ", ".join(f"{count} {place}" for place, count in sorted(Counter(places).items()))


if __name__ == "__main__":
    sys.exit(main())
