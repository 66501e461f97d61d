"""The collectives: what each moves, how its speed is counted, and what must be in memory after it. Arithmetic only.

Sizes and bandwidths are those of nccl-tests (its doc/PERFORMANCE.md): the size is that of the larger of a rank's two
buffers in bytes, algbw = size / time, busbw = algbw times a factor that makes it comparable with the speed of a link
whatever the number of ranks.

Data are small integers, exact in every type, that repeat after PERIOD elements. The period is odd, so that no chunk of
a power of two can take another's place unseen.
"""

import struct

PERIOD = 251
STRIDE = 37
"""How far one rank's data are ahead of the next one's."""

ALIGNMENT = 16
"""nccl-tests cuts a rank's share down to whole multiples of so many bytes."""

WORD = 4
WIDTH = {"float32": 4, "bfloat16": 2}
EXACT = {"float32": 1 << 24, "bfloat16": 1 << 8}
"""The largest integer up to which every one is exact."""

NAMES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
IN_PLACE = ("all_reduce", "all_gather", "reduce_scatter")
"""Those that NCCL defines in place; nccl-tests measures the others so too, but their data come out undefined."""

LOGGED = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}
"""What NCCL's log calls those that it chooses an algorithm for."""


def factor(name, ranks):
    """busbw / algbw."""
    shares = (ranks - 1.0) / ranks
    return {"all_reduce": 2 * shares, "sendrecv": 1.0}.get(name, shares)


def share(name, size, ranks):
    """Bytes that the call is given as its count: all of `size`, or a rank's part of it."""
    if name in ("all_reduce", "sendrecv"):
        return size // WORD * WORD
    return size // ranks // ALIGNMENT * ALIGNMENT


def counted(name, size, ranks):
    """The size that is really moved where `size` bytes were asked for; 0 where that is too little to divide."""
    part = share(name, size, ranks)
    return part if name in ("all_reduce", "sendrecv") else part * ranks


def bandwidths(name, size, seconds, ranks):
    """(algbw, busbw) in GB/s."""
    algbw = size / seconds / 1e9
    return algbw, algbw * factor(name, ranks)


def logged_bytes(name, size, ranks):
    """How NCCL's log counts it."""
    return share(name, size, ranks)


# Data


def top(kind, ranks):
    """Data are below this, so that the sum over all ranks is exact. One: too many ranks to check sums in this type."""
    return min(PERIOD, EXACT[kind] // ranks + 1)


def values(rank, limit):
    """One period of what a rank brings."""
    return [(place + STRIDE * rank) % PERIOD % limit for place in range(PERIOD)]


def summed(ranks, limit):
    """One period of the sum over all ranks."""
    return [sum(column) for column in zip(*[values(rank, limit) for rank in range(ranks)])]


def tile(period, kind):
    """PERIOD 32-bit words: one period of float32, or two of bfloat16 (the upper half of a float32)."""
    floats = struct.pack("<{}f".format(PERIOD), *period)
    if kind == "float32":
        return floats
    return b"".join(floats[at + 2 : at + 4] for at in range(0, len(floats), 4)) * 2


def words(size):
    return size // WORD


def phase(offset):
    """Where in the tile the data of a byte offset begin."""
    return words(offset) % PERIOD


def brought(name, size, ranks, rank, in_place):
    """What a rank fills before: (offset in its buffer, bytes, phase)."""
    part = share(name, size, ranks)
    if name == "all_gather":
        return (rank * part if in_place else 0), part, 0
    return 0, counted(name, size, ranks), 0


def wanted(name, size, ranks, rank, in_place):
    """What must be there after: a list of (offset, bytes, whose data: a rank or None for the sum, phase)."""
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
