"""Simulates fleets whose hosts break by chance, and counts what the rule about episodes names: `python -m benchmarks.lemons`.

A fleet has 200 hosts and 90 days, in which a host has 0.5 episodes on average. Worlds: hosts that are alike; common causes that
drain 30 hosts within an hour; two models, of which one breaks ten times as often; three hosts that break twenty times as often.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence

from nodetune.history.episodes import Event, lemons
from nodetune.history.points import DAY
from nodetune.statistics.thresholds import EPISODE_DAYS

HOSTS, RATE, LEMONS, TIMES = 200, 0.5, 3, 20
END = 20_700 * DAY


def events(rates: Mapping[str, float], generator: random.Random) -> list[Event]:
    """Return what begins on hosts with these numbers of episodes in all the time."""
    found = []
    for host, rate in rates.items():
        at = END - EPISODE_DAYS * DAY
        while (at := at + int(generator.expovariate(rate / EPISODE_DAYS) * DAY) + 1) < END:
            found += [Event(host, at + 600 * more, "gpu-lost") for more in range(generator.randint(1, 3))]
    return found


def common(hosts: Sequence[str], generator: random.Random) -> list[Event]:
    """Return what one to six common causes begin on 30 hosts each, within an hour."""
    found = []
    for _ in range(generator.randint(1, 6)):
        at = END - generator.randint(1, EPISODE_DAYS * DAY - 3600)
        found += [
            Event(host, at + generator.randint(0, 3599), "drained: fabric") for host in generator.sample(hosts, 30)
        ]
    return found


def fleet(world: str, generator: random.Random) -> tuple[list[Event], dict[str, str], set[str]]:
    """Return the events, host → model, and the lemons of a fleet."""
    names = [f"n{number:03}" for number in range(HOSTS)]
    models = dict.fromkeys(names, "one")
    rates = dict.fromkeys(names, RATE)
    bad: set[str] = set()
    if world == "two models":
        models |= dict.fromkeys(names[HOSTS // 2 :], "other")
        rates |= dict.fromkeys(names[HOSTS // 2 :], 10 * RATE)
    if world == "lemons":
        bad = set(generator.sample(names, LEMONS))
        rates |= dict.fromkeys(bad, TIMES * RATE)
    return [*events(rates, generator), *(common(names, generator) if world != "alike" else ())], models, bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{'world':14} {'fleets':>6} {'with a wrong name':>18} {'lemons named':>13} {'wrong names':>12}")
    for world in ("alike", "common causes", "two models", "lemons"):
        generator = random.Random(f"{world} {given.seed}")
        right = wrong = fleets_wrong = of = 0
        for _ in range(given.fleets):
            happened, models, bad = fleet(world, generator)
            named = {each.host for each in lemons(happened, models)}
            right, wrong, of = right + len(named & bad), wrong + len(named - bad), of + len(bad)
            fleets_wrong += bool(named - bad)
        share = f"{100 * right / of:.1f} %" if of else "-"
        of_names = f"{100 * wrong / max(1, right + wrong):.2f} %" if of else str(wrong)
        print(
            f"{world:14} {given.fleets:6} {100 * fleets_wrong / given.fleets:16.2f} % {share:>13} {of_names:>12}",
            flush=True,
        )


if __name__ == "__main__":
    main()
