"""The collectives: the data that each moves, its bandwidth, and the expected memory afterwards. Arithmetic only.

Sizes and bandwidths are those of nccl-tests (its doc/PERFORMANCE.md): the size is that of the larger of a rank's two
buffers in bytes, algbw = size / time, busbw = algbw times a factor that makes it comparable with the speed of a link
whatever the number of ranks.

Data are small integers, exact in every type, that repeat after PERIOD elements. The period is odd, so that no chunk of
a power of two can take another's place unseen.
"""

import struct

PERIOD = 251
STRIDE = 37
"""Offset between the data of one rank and the next."""

ALIGNMENT = 16
"""nccl-tests rounds a rank's share down to a multiple of this many bytes."""

WORD = 4
WIDTH = {"float32": 4, "bfloat16": 2}
EXACT = {"float32": 1 << 24, "bfloat16": 1 << 8}
"""The largest integer up to which all integers are exact."""

NAMES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
IN_PLACE = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives that NCCL defines in place; nccl-tests also measures the others in place, but with undefined data."""

LATENCY = ("all_reduce", "alltoall")
"""Collectives whose small messages inference waits for: in tensor and expert parallelism."""

LOGGED = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}
"""Names in NCCL's log of the collectives with a choice of algorithm."""


def factor(name, ranks):
    """Return the ratio of busbw to algbw."""
    shares = (ranks - 1.0) / ranks
    return {"all_reduce": 2 * shares, "sendrecv": 1.0}.get(name, shares)


def share(name, size, ranks):
    """Return the bytes of the call's count, which NCCL logs: all of `size`, or a rank's part of it."""
    if name in ("all_reduce", "sendrecv"):
        return size // WORD * WORD
    return size // ranks // ALIGNMENT * ALIGNMENT


def counted(name, size, ranks):
    """Return the actual size when `size` bytes are requested; 0 if too little to divide."""
    part = share(name, size, ranks)
    return part if name in ("all_reduce", "sendrecv") else part * ranks


def bandwidths(name, size, seconds, ranks):
    """Return (algbw, busbw) in GB/s."""
    algbw = size / seconds / 1e9
    return algbw, algbw * factor(name, ranks)


# Data


def top(kind, ranks):
    """Return the bound on data that keeps the sum over all ranks exact; 1 means too many ranks to check sums."""
    return min(PERIOD, EXACT[kind] // ranks + 1)


def values(rank, limit):
    """Return one period of a rank's data."""
    return [(place + STRIDE * rank) % PERIOD % limit for place in range(PERIOD)]


def summed(ranks, limit):
    """Return one period of the sum over all ranks."""
    return [sum(column) for column in zip(*[values(rank, limit) for rank in range(ranks)])]


def tile(period, kind):
    """Return PERIOD 32-bit words: one period of float32, or two of bfloat16 (the upper half of a float32)."""
    floats = struct.pack("<{}f".format(PERIOD), *period)
    if kind == "float32":
        return floats
    return b"".join(floats[at + 2 : at + 4] for at in range(0, len(floats), 4)) * 2


def words(size):
    return size // WORD


def phase(offset):
    """Return the position in the tile for the data at a byte offset."""
    return words(offset) % PERIOD


def brought(name, size, ranks, rank, in_place):
    """Return what a rank writes before: (offset in its buffer, bytes, phase)."""
    part = share(name, size, ranks)
    if name == "all_gather":
        return (rank * part if in_place else 0), part, 0
    return 0, counted(name, size, ranks), 0


def wanted(name, size, ranks, rank, in_place):
    """Return the expected data afterwards: (offset, bytes, whose data, phase) of each part.

    The data are those of a rank; None means the sum.
    """
    part = share(name, size, ranks)
    if name == "all_reduce":
        return [(0, part, None, 0)]
    if name == "all_gather":
        return [(source * part, part, source, 0) for source in range(ranks)]
    if name == "reduce_scatter":
        return [(rank * part if in_place else 0, part, None, phase(rank * part))]
    if name == "alltoall":
        return [(source * part, part, source, phase(rank * part)) for source in range(ranks)]
    return [(0, part, (rank - 1) % ranks, 0)]
