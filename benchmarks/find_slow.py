"""Plants slow parts in fleets of numbers (support/slow_fleet.py), searches them as `verify --find-slow` does, and counts: right
(all named and nothing else), wrong (something healthy named, or the wrong part of a node), cannot tell, missed (nothing
named, and the fleet called well). Healthy fleets must name nothing."""

import os
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.support.measuring import COUNT, benchmark
from benchmarks.support.slow_fleet import KINDS, SlowFleet, searched
from nodetune.verify.find_slow.model import RAIL

EFFECTS = (0.05, 0.5)
WITHOUT_EFFECT = ("hang", "wrong", "pair hang", "healthy", "mixed")


def planted(count, kind, seed, effect=0.0, drift=0.0):
    """Return a fleet, and the parts of it that are to be named."""
    rng = random.Random(f"{seed} {count} {kind} {effect}")
    fleet = SlowFleet(count, rng, drift=rng.uniform(-drift, drift))
    if kind == "mixed":
        faults = [(rng.choice(KINDS[:8]), rng.choice((0.05, 0.2, 0.5))) for _ in range(rng.choice((2, 3)))]
    else:
        faults = [] if kind == "healthy" else [(kind, effect or 0.5)]
    return fleet, {fleet.plant(*each) for each in faults}


def trial(count, kind, effect, seed, drift):
    """Return (outcome, rounds, minutes) of one fleet."""
    fleet, truth = planted(count, kind, seed, effect, drift)
    return outcome(truth, searched(fleet)), fleet.rounds, fleet.seconds / 60


def outcome(truth, result):
    named = {each.part for each in result.culprits}
    open_rails = {part.at for part in named if part.kind == RAIL}
    met = {part for part in truth if part in named or (part.rail is not None and part.at in open_rails)}
    extra = {
        part
        for part in named
        if part not in truth
        and not (part.kind == RAIL and any(part.at == each.at and part.rail == each.rail for each in met))
    }
    if extra:
        return "wrong"
    if met == truth:
        return "right"
    return "cannot" if result.doubts or result.shortfall else "missed"


def row(pool, plantings, count, kind, effect, seed, drift):
    jobs = [pool.submit(trial, count, kind, effect, f"{seed}-{number}", drift) for number in range(plantings)]
    done = [job.result() for job in jobs]
    seen = Counter(each for each, *_ in done)
    rounds, minutes = [each[1] for each in done], [each[2] for each in done]
    shares = " ".join(f"{seen[name]:6d}" for name in ("right", "wrong", "cannot", "missed"))
    name = f"{kind} {effect:.0%}" if effect else kind
    click.echo(
        f"{count:5d} {name:14} {shares}   {sum(rounds) / plantings:5.1f} /{max(rounds):3d}  {sum(minutes) / plantings:5.1f}"
    )
    sys.stdout.flush()
    return seen


@benchmark(__doc__, nodes="8", plantings=2, kinds="node,healthy")
@click.option("--nodes", default="64", show_default=True, help="Sizes of fleets.")
@click.option("--plantings", type=COUNT, default=200, show_default=True, help="Fleets a row.")
@click.option("--kinds", default=",".join((*KINDS, "mixed", "healthy")), show_default=True)
@click.option("--effects", default=",".join(map(str, EFFECTS)), show_default=True, help="Losses that are planted.")
@click.option("--drift", default=0.0, show_default=True, help="How far all figures move a round, at most.")
@click.option("--seed", default="1", show_default=True)
def main(nodes, plantings, kinds, effects, drift, seed):
    click.echo("nodes fault           right  wrong cannot missed   rounds     minutes")
    total = Counter()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for count in map(int, nodes.split(",")):
            for kind in kinds.split(","):
                for effect in [0.0] if kind in WITHOUT_EFFECT else map(float, effects.split(",")):
                    total += row(pool, plantings, count, kind, effect, seed, drift)
    name = "find_slow" if max(map(int, nodes.split(","))) <= 64 else "find_slow_large"
    return {name: f"{total['right']} right, {total['wrong']} wrong of {total.total()}"}


if __name__ == "__main__":
    main()
