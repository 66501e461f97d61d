"""Measure on the nodes of a Slurm cluster, started by one srun instead of SSH: same script, same protocol.

Task n of the step is the n-th of the hosts. srun gives what it reads to every task and puts `n: ` before each line that
task n prints, so one process here serves all hosts; each task picks its own plan from the plans that all receive. If
this runs in an allocation (salloc, sbatch), the step is part of it; otherwise srun requests one.
"""

import math
import os
import shlex
from collections.abc import Callable, Generator, Sequence
from typing import Any

from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote import payload
from nodetune.remote.live_pool import Ended
from nodetune.remote.live_session import STARTER
from nodetune.remote.slurm import srun
from nodetune.remote.slurm.sinfo import allocated
from nodetune.verify import remote
from nodetune.verify.slurm_step import MeasuringStep

STARTING_SECONDS = 60.0
"""Seconds for srun to get the nodes and start the tasks."""

Event = dict[str, Any] | Ended

__all__ = ["allocated", "command", "measure"]


def measure(
    targets: Sequence[Target], plan_for: Callable[[Target], remote.Plan], _connection: ConnectionOptions
) -> Generator[tuple[Target, Event], None, None]:
    """Run a plan on each host, and yield (target, event) on arrival: remote.measure, started by srun.

    The names of the targets are Slurm's node names; their connection variables do not matter. What srun
    requests (a partition, GPUs) is in the variables that it reads itself: SLURM_PARTITION, SLURM_GPUS_PER_NODE.
    """
    whole = plans_of(targets, plan_for)
    script, nonce = payload.measuring(whole)
    with srun.host_file(whole["hosts"]) as (order, handle):
        try:
            process = srun.start(command(targets, order), {"SLURM_HOSTFILE": order}, [handle])
        except OSError as problem:
            gone = UnreachableError(
                "unsupported", f"srun cannot be run: {problem.strerror}: is this a node of the cluster?"
            )
            yield from ((target, Ended(gone, 0.0)) for target in targets)
            return
        step = MeasuringStep(process, whole, script, nonce)
        try:
            for number, event in step.events(seconds_of(whole)):
                yield targets[number], event
        finally:
            step.close()


def plans_of(targets: Sequence[Target], plan_for: Callable[[Target], remote.Plan]) -> dict[str, Any]:
    """Return the plans of all hosts, equal plans only once (see nodetune/measurements/main.py).

    Raise ValueError.
    """
    run = remote.new_run()
    hosts = [target.name for target in targets]
    plans: list[dict[str, Any]] = []
    of = []
    for target in targets:
        given = plan_for(target)
        plan = remote.complete(given, target.name, run)
        missing = [name for name in plan["group"]["hosts"] if name not in hosts]
        if missing:
            raise ValueError(f"{target.name} should measure with {', '.join(missing)}, which is not in this run")
        plan["group"] = {"hosts": plan["group"]["hosts"]} if given.get("group") else None
        if plan not in plans:
            plans.append(plan)
        of.append(plans.index(plan))
    names = sorted({each["name"] for plan in plans for each in plan["measurements"]})
    return {"measurements": [{"name": name} for name in names], "plans": plans, "hosts": hosts, "of": of}


def seconds_of(whole: remote.Plan) -> float:
    """Return the seconds for the whole step."""
    waits = [[each["seconds"] + remote.ENDING_SECONDS for each in plan["measurements"]] for plan in whole["plans"]]
    return STARTING_SECONDS + max(map(math.fsum, waits))


def command(targets: Sequence[Target], order: str) -> list[str]:
    """Return the srun that starts one Python on each node, in the order of the file.

    The measurements themselves take care of pinning and memory.
    """
    count, pythons = len(targets), {target.python for target in targets}
    python = pythons.pop() if len(pythons) == 1 else "python3"
    options = ["--distribution=arbitrary", f"--nodelist={order}", f"--nodes={count}", f"--ntasks={count}"]
    options += [*srun.OPTIONS, "--job-name=nodetune-verify"]
    if "SLURM_JOB_ID" in os.environ:
        options.append("--overlap")
    else:
        options += ["--exclusive", f"--immediate={STARTING_SECONDS:.0f}"]
    return ["srun", *options, python, "-I", "-S", *shlex.split(STARTER)]
