"""Simulates fleets of 200 hosts that break by chance, half an episode a host in 90 days, and counts which hosts the rule about episodes
names: hosts that are alike; common causes that hit 30 hosts within an hour; two models, of which one breaks ten times as often; three
hosts that break twenty times as often as the others."""

import random
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.support.measuring import COUNT, benchmark
from nodetune.history.episodes import Event, lemons
from nodetune.history.points import DAY
from nodetune.statistics.thresholds import EPISODE_DAYS

HOSTS, RATE, LEMONS, TIMES = 200, 0.5, 3, 20
END = 20_700 * DAY


def events(rates, generator):
    """Return what begins on hosts with these numbers of episodes in all the time."""
    found = []
    for host, rate in rates.items():
        at = END - EPISODE_DAYS * DAY
        while (at := at + int(generator.expovariate(rate / EPISODE_DAYS) * DAY) + 1) < END:
            found += [Event(host, at + 600 * more, "gpu-lost") for more in range(generator.randint(1, 3))]
    return found


def common(hosts, generator):
    """Return what one to six common causes begin on 30 hosts each, within an hour."""
    found = []
    for _ in range(generator.randint(1, 6)):
        at = END - generator.randint(1, EPISODE_DAYS * DAY - 3600)
        found += [
            Event(host, at + generator.randint(0, 3599), "drained: fabric") for host in generator.sample(hosts, 30)
        ]
    return found


def fleet(world, generator):
    """Return the events, host → model, and the lemons of a fleet."""
    names = [f"n{number:03}" for number in range(HOSTS)]
    models = dict.fromkeys(names, "one")
    rates = dict.fromkeys(names, RATE)
    bad = set()
    if world == "two models":
        models |= dict.fromkeys(names[HOSTS // 2 :], "other")
        rates |= dict.fromkeys(names[HOSTS // 2 :], 10 * RATE)
    if world == "lemons":
        bad = set(generator.sample(names, LEMONS))
        rates |= dict.fromkeys(bad, TIMES * RATE)
    return [*events(rates, generator), *(common(names, generator) if world != "alike" else ())], models, bad


@benchmark(__doc__, fleets=3)
@click.option("--fleets", type=COUNT, default=1000, show_default=True, help="Fleets a row.")
@click.option("--seed", default="1", show_default=True)
def main(fleets, seed):
    click.echo("world          wrong fleets  lemons named  wrong names")
    healthy = of_lemons = 0
    for world in ("alike", "common causes", "two models", "lemons"):
        generator = random.Random(f"{world} {seed}")
        right = wrong = fleets_wrong = 0
        for _ in range(fleets):
            happened, models, bad = fleet(world, generator)
            named = {each.host for each in lemons(happened, models)}
            right, wrong = right + len(named & bad), wrong + len(named - bad)
            fleets_wrong += bool(named - bad)
        click.echo(f"{world:14} {fleets_wrong:12} {right:13} {wrong:12}")
        if world == "lemons":
            of_lemons = f"{100 * right / (LEMONS * fleets):.1f} % named, {wrong} others of {right + wrong} names"
        else:
            healthy += fleets_wrong
    return {"lemons": f"a wrong name in {healthy} of {3 * fleets} healthy fleets; {of_lemons}"}


if __name__ == "__main__":
    main()
