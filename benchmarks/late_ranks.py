"""Plants slow ranks and hosts in simulated jobs (support/late_jobs.py), judges them as `nodetune slow --inspector` does, and counts:
right (all named and nothing else), wrong (something healthy named), part (some of them), none. Healthy jobs, whose GPUs differ,
drift and pause, must name nothing; sets of three jobs say whether a slow host is told from a program that loads one rank more."""

import os
import random
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.support.late_jobs import LAYOUTS, LateJob
from benchmarks.support.measuring import COUNT, benchmark
from nodetune.jobs.late_ranks import analysis
from nodetune.jobs.late_ranks.model import HOST, PROGRAM

CASES = ("healthy", "rank", "two ranks", "host", "host in 3 jobs", "program in 3 jobs")
EFFECTS = (0.05, 0.1, 0.3)


def hosts(rng, counts=(1, 2, 4, 8)):
    return [f"gpu{number:03}" for number in rng.sample(range(100), rng.choice(counts))]


def trial(case, effect, seed):
    """Return the outcome of one job, or of one set of jobs."""
    rng = random.Random(f"{seed} {case} {effect}")
    if case.endswith("3 jobs"):
        return three(case, effect, rng)
    here = hosts(rng, (4, 8) if case == "host" else (1, 2, 4, 8))
    slow = {
        "healthy": {},
        "rank": {(here[0], 3): effect},
        "two ranks": {(here[0], 3): effect, (here[-1], 6): effect},
        "host": {(here[-1], None): effect},
    }[case]
    return outcome(analysis.find_late_ranks([LateJob("1", here, rng, slow).job()]), set(slow))


def three(case, effect, rng):
    """Judge three jobs, with the same slow host in other places, or the same loaded rank on other hosts."""
    jobs, count, layout = [], rng.choice((4, 8)), rng.choice(LAYOUTS)
    for number in range(3):
        others = hosts(rng, (count,))
        slow = {}
        if case.startswith("host"):
            others = [each for each in others if each != "gpu000"]
            others.insert(number % len(others), "gpu000")
            slow = {("gpu000", None): effect}
        program = {} if slow else {5: effect}
        jobs.append(LateJob(str(number), others, rng, slow, program, layout).job())
    found = analysis.find_late_ranks(jobs).causes
    causes = {each.cause for each in found}
    if not causes:
        return "none"
    if case.startswith("host"):
        named = {part.host for each in found if each.cause == HOST for part in each.parts}
        return "wrong" if named - {"gpu000"} or PROGRAM in causes else "right" if named else "part"
    return "wrong" if HOST in causes else "right" if causes == {PROGRAM} else "part"


def outcome(result, truth):
    parts = [part for each in result.causes for part in each.parts]
    named = {(part.host, None if part.is_host else local) for part in parts for local in part.local}
    if named - truth:
        return "wrong"
    return "right" if named == truth else "part" if named else "none"


@benchmark(__doc__, healthy=20, plantings=2)
@click.option("--healthy", type=COUNT, default=1000, show_default=True, help="Healthy jobs.")
@click.option("--plantings", type=COUNT, default=100, show_default=True, help="Jobs a row.")
@click.option("--seed", default="1", show_default=True)
def main(healthy, plantings, seed):
    click.echo("case                    right  wrong   part   none")
    total = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for case in CASES:
            for effect in EFFECTS if case != "healthy" else (0.0,):
                count = plantings if effect else healthy
                jobs = [pool.submit(trial, case, effect, f"{seed}-{number}") for number in range(count)]
                seen = total[case, effect] = Counter(each.result() for each in jobs)
                name = f"{case} {effect:.0%}" if effect else case
                click.echo(f"{name:22}" + "".join(f"{seen[word]:7d}" for word in ("right", "wrong", "part", "none")))
    named = healthy - total["healthy", 0.0]["right"]
    rest = sum((seen for (_, effect), seen in total.items() if effect), Counter())
    wrong = f"{named} of {healthy} healthy jobs"
    return {"late_ranks": f"{wrong}; {rest['right']} right, {rest['wrong']} wrong of {rest.total()} planted"}


if __name__ == "__main__":
    main()
