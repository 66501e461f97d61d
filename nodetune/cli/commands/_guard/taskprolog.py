"""`nodetune guard taskprolog`."""

from pathlib import Path

import click

from nodetune.guard.node import taskprolog


@click.command("taskprolog")
@click.option(
    "--policy",
    type=click.Path(path_type=Path, dir_okay=False),
    default=taskprolog.POLICY,
    show_default=True,
    metavar="FILE",
    help="Guard policy; its `environment` is set as well.",
)
def command(policy: Path) -> None:
    """Print environment variables for a task (Slurm TaskProlog).

    \b
    srun --pty nodetune guard taskprolog     show what a task with these CPUs and GPUs would get

    Sets OMP_NUM_THREADS and MKL_NUM_THREADS to the number of the task's CPUs, and the variables in the policy.
    Variables that are already set keep their value. Never fails.
    """
    taskprolog.main([str(policy)])
