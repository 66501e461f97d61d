"""Diagnose what a GPU's job waits for. Pure: figures in, a verdict with its rule and evidence out.

The thresholds come from loads recorded on H100s (tests/data/recordings/watch). A rule names a cause only where the
figures show it; everything else is unknown, because a wrong verdict costs more than a missing one.
"""

from collections.abc import Sequence

from nodetune.jobs.watch import process_waits
from nodetune.jobs.watch.model import (
    COMPUTING,
    FEW_SMS,
    FREE,
    HEAT,
    HOST_COPIES,
    IDLE,
    LATE,
    MEMORY,
    PAUSED,
    PEER,
    POWER,
    TENSOR,
    UNKNOWN,
    Diagnosis,
    GpuUsage,
    Process,
    percent,
)

NOTHING = 0.5
"""A GPU that works for less than this share (%) of the time does nothing."""
BUSY = 85.0
"""% of the time with a kernel running, from which gaps do not matter. Recorded: 98.9 or more without gaps."""
TENSOR_LEAST = 25.0
"""Recorded: 86 to 94 with large products, 6.6 where most of the time is a wait for a peer."""
PIPE_LEAST = 20.0
"""The same for arithmetic without tensor cores. Recorded: 77 for an FP32 product."""
DRAM_LEAST = 60.0
"""% of the bandwidth. Recorded: 91 for a copy, 24 for large products."""
NO_SM = 10.0
FEW = 35.0
"""% of the SMs. NCCL waits on 12 to 24 of 132. Recorded: 23.5 with a late peer, 0.8 for one spinning thread."""
HALF = 50.0
COPIES_LEAST = 0.05
"""Share of the link to the host. Recorded: 0.93 pinned, 0.15 pageable, 0.004 for small launches."""
COPIES_CLEAR = 0.2
PEER_TRAFFIC = 0.2
"""Share of the NVLinks' rate. Recorded: 0.85 copying, 0.63 all-reduce alone, 0.03 for training with it."""
HELD_LEAST = 0.05
"""Share of the time in which heat or the power brake held the clocks back. Recorded: 0 at 698 W."""
CAPPED_LEAST = 0.5
LOWERED = 0.97
"""A power limit below this share of the default was lowered by someone. At the default limit, full load is normal."""
C2C_LIMIT = 450_000.0
"""MB/s in one direction between Grace and its GPU, by NVIDIA's documentation."""
FULL_UTIL = "nvidia-smi's utilization is {:.0f} %, which says only that a kernel or a copy ran"
PIPES = ("fp32", "fp64", "fp16", "integer")


def diagnose(gpu: GpuUsage, processes: Sequence[Process]) -> Diagnosis:
    """Judge one GPU by its figures and the processes on it, with those that these started."""
    if not processes:
        return _without_process(gpu)
    throttled = _throttled(gpu)
    if throttled:
        return throttled
    return _by_gpm(gpu, processes) if gpu.gpm else _without_gpm(gpu, processes)


def _without_process(gpu: GpuUsage) -> Diagnosis:
    busy = gpu.gpm.get("graphics", gpu.counters.get("util"))
    if busy is None or gpu.counters.get("mig"):
        return Diagnosis(UNKNOWN, "no-counters", (gpu.no_gpm, "MIG is on, or the driver counts no use"))
    if busy < NOTHING:
        return Diagnosis(FREE, "no-process", ("no process has it",))
    return Diagnosis(
        UNKNOWN, "process-hidden", (f"it works {busy:.0f} % of the time for a process that is not visible",)
    )


def _throttled(gpu: GpuUsage) -> Diagnosis | None:
    """Return the verdict if heat or power held the clocks back, and not only by the limit that every full load meets."""
    busy = gpu.gpm.get("graphics", gpu.number("util"))
    if busy < NOTHING:
        return None
    thermal = max(gpu.throttling.get(name, 0.0) for name in ("thermal", "sw_thermal", "hw_thermal"))
    brake, capped = gpu.throttling.get("power_brake", 0.0), gpu.throttling.get("power", 0.0)
    limit, default = gpu.number("limit_watts"), gpu.number("default_watts")
    clock = f"SM clock {gpu.number('sm_mhz'):.0f} of {gpu.number('max_sm_mhz'):.0f} MHz"
    if thermal >= HELD_LEAST:
        words = f"heat held the clocks back {percent(thermal)} of the time"
        return Diagnosis(HEAT, "heat", (words, f"{gpu.number('celsius'):.0f} °C", clock))
    if brake >= HELD_LEAST:
        return Diagnosis(
            POWER, "power-brake", (f"the power brake held the clocks back {percent(brake)} of the time", clock)
        )
    if busy >= BUSY and capped >= CAPPED_LEAST and 0 < limit < LOWERED * default:
        lowered = f"the power limit is {limit:.0f} W of {default:.0f} W, and held the clocks back {percent(capped)} of the time"
        return Diagnosis(POWER, "power-limit-lowered", (lowered, clock))
    return None


def _by_gpm(gpu: GpuUsage, processes: Sequence[Process]) -> Diagnosis:
    copies = _copies(gpu)
    if copies:
        return copies
    graphics = gpu.gpm.get("graphics")
    if graphics is None:
        return Diagnosis(UNKNOWN, "no-graphics", ("this GPU does not count the time with a kernel running",))
    if graphics < BUSY:
        return _gaps(gpu, processes, graphics)
    return _computing(gpu) or _occupied(gpu, processes)


def _gaps(gpu: GpuUsage, processes: Sequence[Process], busy: float) -> Diagnosis:
    """Judge a GPU without a kernel for a part of the time, by what its processes do."""
    gap = f"no kernel runs {100 - busy:.0f} % of the time"
    if gpu.number("decoder") >= HALF:
        return Diagnosis(UNKNOWN, "decoder", (gap, f"the video decoder is busy {gpu.number('decoder'):.0f} %"))
    cause = process_waits.cause(processes, busy / 100)
    quiet = process_waits.are_quiet(processes, process_waits.QUIET_CORES if gpu.gpm else process_waits.NO_CORES)
    if cause.verdict in (PAUSED, UNKNOWN) and busy < NOTHING and quiet:
        return Diagnosis(IDLE, "idle", ("nothing runs on it", *cause.evidence))
    return Diagnosis(cause.verdict, cause.rule, (gap, *cause.evidence))


def _copies(gpu: GpuUsage) -> Diagnosis | None:
    """Return the verdict if the time between kernels, or all of it, goes into copies."""
    sm, graphics = gpu.gpm.get("sm", 0.0), gpu.gpm.get("graphics", 0.0)
    peer = _share(gpu.rate("nvlink"), gpu.number("nvlink_limit"))
    moved = f"NVLink carries {_rate(gpu.rate('nvlink'))} ({percent(peer)} of its rate)"
    if peer >= PEER_TRAFFIC and sm < HALF and gpu.gpm.get("tensor", 0.0) < TENSOR_LEAST:
        rule = "peer-copies" if sm < NO_SM else "peer-traffic"
        return Diagnosis(PEER, rule, (moved, f"{sm:.0f} % of the SMs work"))
    link, limit = ("C2C", C2C_LIMIT) if gpu.rate("c2c") > gpu.rate("pcie") else ("PCIe", gpu.number("pcie_limit"))
    rate = gpu.rate(link.lower())
    share = _share(rate, limit)
    alone = share >= COPIES_LEAST and sm < NO_SM and graphics < HALF
    with_kernels = share >= COPIES_CLEAR and (sm < HALF if graphics >= BUSY else share >= (100 - graphics) / 200)
    if alone or (with_kernels and gpu.gpm.get("tensor", 0.0) < TENSOR_LEAST):
        carried = f"{link} carries {_rate(rate)} ({percent(share)} of its rate)"
        return Diagnosis(HOST_COPIES, "host-copies", (carried, f"{sm:.0f} % of the SMs work"))
    return None


def _computing(gpu: GpuUsage) -> Diagnosis | None:
    """Return the verdict for a GPU that computes or moves its own memory all the time."""
    sm, tensor, dram = (gpu.gpm.get(name, 0.0) for name in ("sm", "tensor", "dram"))
    usage = f"SMs {sm:.0f} %, tensor cores {tensor:.0f} %, memory {dram:.0f} % of its bandwidth"
    if dram >= DRAM_LEAST and tensor < dram:
        return Diagnosis(MEMORY, "memory", (usage, *_notes(gpu)))
    if tensor >= TENSOR_LEAST:
        return Diagnosis(TENSOR, "tensor", (usage, *_notes(gpu)))
    pipe = max(PIPES, key=lambda name: gpu.gpm.get(name, 0.0))
    if gpu.gpm.get(pipe, 0.0) >= PIPE_LEAST and sm >= HALF:
        return Diagnosis(COMPUTING, "arithmetic", (f"{usage}, {pipe.upper()} {gpu.gpm[pipe]:.0f} %", *_notes(gpu)))
    return None


def _occupied(gpu: GpuUsage, processes: Sequence[Process]) -> Diagnosis:
    """Judge a GPU on which a kernel always runs and does little."""
    sm, dram, tensor = (gpu.gpm.get(name, 0.0) for name in ("sm", "dram", "tensor"))
    little = f"a kernel always runs, on {sm:.0f} % of the SMs; tensor cores {tensor:.0f} %, memory {dram:.0f} %"
    if sm > FEW or dram > FEW:
        return Diagnosis(UNKNOWN, "occupied", (little, "it waits inside its kernels, or does a little of everything"))
    if any(process.nccl for process in processes):
        return Diagnosis(PEER, LATE, (little, "its job uses NCCL: the kernel waits for another GPU"))
    return Diagnosis(FEW_SMS, "few-sms", (little, "it spins, waits for a peer, or its grid is too small"))


def _without_gpm(gpu: GpuUsage, processes: Sequence[Process]) -> Diagnosis:
    """Judge by the driver's utilization, which does not separate work from waiting once it is high."""
    util = gpu.counters.get("util")
    if util is None:
        return Diagnosis(UNKNOWN, "no-counters", (gpu.no_gpm,))
    if util >= BUSY:
        return Diagnosis(UNKNOWN, "no-gpm", (FULL_UTIL.format(util), gpu.no_gpm))
    gap = _gaps(gpu, processes, util)
    if gap.rule == process_waits.OWN_CPU:  # it may be copying: a thread spins until a copy is done
        return Diagnosis(UNKNOWN, "no-gpm", (*gap.evidence, "or it copies", gpu.no_gpm))
    return Diagnosis(gap.verdict, gap.rule, (*gap.evidence, gpu.no_gpm))


def _notes(gpu: GpuUsage) -> tuple[str, ...]:
    """Return remarks that do not change the verdict."""
    capped = gpu.throttling.get("power", 0.0)
    clock = f"SM clock {gpu.number('sm_mhz'):.0f} of {gpu.number('max_sm_mhz'):.0f} MHz"
    return (
        (f"at its power limit {percent(capped)} of the time, which is normal; {clock}",)
        if capped >= CAPPED_LEAST
        else ()
    )


def _share(rate: float, limit: float) -> float:
    return rate / limit if limit else 0.0


def _rate(megabytes: float) -> str:
    return f"{megabytes / 1e3:.1f} GB/s"
