"""`nodetune taskprolog`."""

from __future__ import annotations

from pathlib import Path

import click

from nodetune.guard import taskprolog


@click.command("taskprolog")
@click.option(
    "--policy",
    type=click.Path(path_type=Path, dir_okay=False),
    default=taskprolog.POLICY,
    show_default=True,
    metavar="FILE",
    help="The guard's policy, whose `environment` is set as well.",
)
def command(policy: Path) -> None:
    """Print what a task of a Slurm job should have in its environment; Slurm's TaskProlog.

    \b
    srun --pty nodetune taskprolog     see what a task with these CPUs and GPUs would get

    OMP_NUM_THREADS and MKL_NUM_THREADS by the task's own CPUs, and what the policy names. What is set already stays.
    Never fails.
    """
    taskprolog.main([str(policy)])
