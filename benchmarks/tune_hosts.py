"""Whether `tune tcp` and `tune storage` find what is known to be right, on a path and a disk of this benchmark's own.

    sudo python benchmarks/tune_hosts.py [tcp | storage | nothing | nccl | plugin] …

tcp: two network namespaces, joined by a link of 200 Mb/s and 20 ms each way, with buffers of 256 KiB. Bandwidth times
round-trip time is 1 MB, and the window is half of the buffer: 4 MiB or more are right, 1 MiB is not. storage: a loop disk of 2,000 reads a
second with a read-ahead of 128 KiB, for reading: more is right. nothing: the same path with buffers of 64 MiB, where nothing
helps. nccl: the socket threads of real NCCL between two ranks that share one GPU, posed as two hosts; plugin: its algorithms,
as rows of the tuner plugin. Both only where there is a GPU, and only when named: how fast ranks are that take turns is of no
use elsewhere. What others do on this machine is not counted: run it where nobody else works. Each prints the decision, its gain with the interval, and how long it took.
"""

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.own_settings import distant_hosts, loop_disk, posed_hosts, run, slow_disk
from nodetune.hosts.target import ConnectionOptions, SessionOptions, Target
from nodetune.tune import space, study
from nodetune.tune.benches import nccl, nccl_cases, storage, tcp
from nodetune.verify import remote

REACH = ConnectionOptions(options=SessionOptions(seconds=120))
BUDGET = 1800.0
SMALL, LARGE = 256 << 10, 64 << 20
MEGABITS, MILLISECONDS = 200, 20


def main(words):
    for name in words or ("tcp", "storage", "nothing"):
        with tempfile.TemporaryDirectory() as folder:
            CASES[name](Path(folder))
    return 0


def path_with(folder, largest):
    """Tune TCP between two namespaces whose buffers have such a maximum."""
    with distant_hosts(folder, MEGABITS, MILLISECONDS) as targets:
        for target in targets:
            for which in ("rmem", "wmem"):
                sizes = f"net.ipv4.tcp_{which}=4096 65536 {largest}"
                run("ip", "netns", "exec", target.name, "sysctl", "-qw", sizes)
        told("tcp", tcp.TcpBench(targets, tcp.TcpRequest(allow_settings=True), REACH, alone))


def alone(*given):
    """Measure as always, but do not count others on the CPUs: both hosts are this machine."""
    for target, event in remote.measure(*given):
        if isinstance(event, dict) and "done" in event:
            event["done"].pop("others", None)
        yield target, event


def disk(folder):
    with loop_disk(folder) as (place, settings), slow_disk(settings, 2000) as slowed:
        (settings / "read_ahead_kb").write_text("128")
        python = folder / "python"
        python.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in [*slowed, sys.executable]) + ' "$@"\n')
        python.chmod(0o755)
        target = Target("this", connection="local", python=str(python))
        wanted = storage.StorageRequest(str(place), allow_settings=True, size=128 << 20)
        told("storage", storage.StorageBench(target, wanted, REACH, alone))


SOCKETS = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")


def ranks(folder, **wanted):
    """Tune NCCL between two ranks on the first GPU of this machine."""
    asked = nccl_cases.NcclRequest(sizes=(64 << 20,), collectives=("all_reduce",), gpus=(0,), **wanted)
    told("nccl", nccl.NcclBench(posed_hosts(folder), asked, REACH, alone))


def told(name, bench):
    began = time.monotonic()
    found = study.tune(bench, BUDGET, tell=tell)
    print(f"{name}: {found.state}: {found.reason}; {len(found.trials)} trials, {time.monotonic() - began:.0f} s")
    for each in found.confirmations:
        print(
            f"  {space.in_words(each.setting)}: {each.ratio:+.1%} ({each.low:+.1%} to {each.high:+.1%}), p {each.p:.5f}"
        )


def tell(phase, trial):
    values = ", ".join(f"{case} {value:.3g}" for case, value in trial.values.items())
    print(f"  {phase}: {space.in_words(trial.setting)}: {values} {trial.failed}{trial.disturbed}", flush=True)


CASES = {
    "tcp": lambda folder: path_with(folder, SMALL),
    "storage": disk,
    "nothing": lambda folder: path_with(folder, LARGE),
    "nccl": lambda folder: ranks(folder, only=SOCKETS),
    "plugin": lambda folder: ranks(folder, plugin=True),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
