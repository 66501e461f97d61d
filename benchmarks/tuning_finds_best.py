"""Finds out whether `tune tcp` and `tune storage` find what is known to be right, on a path and a disk of this benchmark's own: what
they decide, and the gain. tcp: two network namespaces, joined by a link of 200 Mb/s and 20 ms each way, with buffers of
256 KiB. Bandwidth times round-trip time is 1 MB, and the window is half of the buffer: 4 MiB or more are right, 1 MiB is not.
storage: a loop disk of 2,000 reads a second with a read-ahead of 128 KiB, for reading: more is right. nothing: the same path
with buffers of 64 MiB, where nothing helps. nccl: the socket threads of real NCCL between two ranks that share one GPU, posed
as two hosts; plugin: its algorithms, as rows of the tuner plugin. Both only if named: how fast ranks are that take turns is
of no use elsewhere. What others do on this machine is not counted: run it where nobody else works. It takes root."""

import sys
import tempfile
from pathlib import Path

import click

from benchmarks.support.measuring import benchmark
from benchmarks.support.own_settings import distant_hosts, loop_disk, posed_hosts, set_buffers, slow_disk
from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.tune import space, study
from nodetune.tune.benches import nccl, nccl_cases, storage, tcp
from nodetune.verify import remote

REACH = ConnectionOptions(options=SessionOptions(seconds=120))
SMALL, LARGE = 256 << 10, 64 << 20
MEGABITS, MILLISECONDS = 200, 20
SOCKETS = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")


def tune_path(folder, budget, largest=SMALL):
    """Tune TCP between two namespaces whose buffers have such a maximum."""
    with distant_hosts(folder, MEGABITS, MILLISECONDS) as targets:
        set_buffers(targets, rmem=f"4096 65536 {largest}", wmem=f"4096 65536 {largest}")
        return tune(tcp.TcpBench(targets, tcp.TcpRequest(allow_settings=True), REACH, alone), budget)


def alone(*given):
    """Measure as always, but do not count others on the CPUs: both hosts are this machine."""
    for target, event in remote.measure(*given):
        if isinstance(event, dict) and "done" in event:
            event["done"].pop("others", None)
        yield target, event


def tune_disk(folder, budget):
    with loop_disk(folder) as (place, settings), slow_disk(settings, 2000) as slowed:
        (settings / "read_ahead_kb").write_text("128")
        python = folder / "python"
        python.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in [*slowed, sys.executable]) + ' "$@"\n')
        python.chmod(0o755)
        target = Target("this", connection="local", python=str(python))
        wanted = storage.StorageRequest(str(place), allow_settings=True, size=128 << 20)
        return tune(storage.StorageBench(target, wanted, REACH, alone), budget)


def tune_ranks(folder, budget, **wanted):
    """Tune NCCL between two ranks on the first GPU of this machine."""
    asked = nccl_cases.NcclRequest(sizes=(64 << 20,), collectives=("all_reduce",), gpus=(0,), **wanted)
    return tune(nccl.NcclBench(posed_hosts(folder), asked, REACH, alone), budget)


def tune(bench, budget):
    """Print each trial, and return the decision in words."""
    found = study.tune(bench, budget, report=show)
    for each in found.confirmations:
        gain = f"{each.ratio:+.1%} ({each.low:+.1%} to {each.high:+.1%}), p {each.p:.5f}"
        print(f"  {space.in_words(dict(each.setting))}: {gain}")
    return (
        f"{space.in_words(dict(found.setting))}, {found.confirmations[-1].ratio:+.0%}"
        if found.accepted
        else found.state
    )


def show(phase, trial):
    values = ", ".join(f"{case} {value:.3g}" for case, value in trial.values.items())
    print(f"  {phase}: {space.in_words(dict(trial.setting))}: {values} {trial.failed}{trial.disturbed}", flush=True)


CASES = {
    "tcp": tune_path,
    "storage": tune_disk,
    "nothing": lambda folder, budget: tune_path(folder, budget, LARGE),
    "nccl": lambda folder, budget: tune_ranks(folder, budget, only=SOCKETS),
    "plugin": lambda folder, budget: tune_ranks(folder, budget, plugin=True),
}


@benchmark(__doc__, names=("tcp",), budget=5.0)
@click.argument("names", nargs=-1, type=click.Choice([*CASES]))
@click.option("--budget", default=1800.0, help="Seconds for each tuning.", show_default=True)
def main(names, budget):
    found = []
    for name in names or ("tcp", "storage", "nothing"):
        with tempfile.TemporaryDirectory() as folder:
            found.append(f"{name}: {CASES[name](Path(folder), budget)}")
        print(found[-1], flush=True)
    return {"tuning_finds_best": "; ".join(found)}


if __name__ == "__main__":
    main()
