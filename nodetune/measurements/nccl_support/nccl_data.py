"""Data for collectives on the GPU: written before and compared afterwards at the speed of its memory. See nccl_ops.

A buffer should contain a repeated tile of PERIOD 32-bit words, starting at some phase.
"""

from nodetune.measurements.cuda import driver_api, gpu_kernels
from . import nccl_ops

TILED = """
    ld.param.u64 %d7, [tile];
    cvta.to.global.u64 %d7, %d7;
    cvt.u64.u32 %d8, %r4;
    add.u64 %d8, %d8, %d1;
    rem.u64 %d8, %d8, {period};
    shl.b64 %d8, %d8, 2;
    add.u64 %d7, %d7, %d8;
    ld.global.u32 %r6, [%d7];
""".format(period=nccl_ops.PERIOD)
"""%r6: the word that belongs here; the phase comes as the seed."""

LAY = TILED + "st.global.u32 [%d6], %r6;"
COMPARE = TILED + gpu_kernels.COUNT_WRONG

ENTRY = """.visible .entry {name}(.param .u64 memory, .param .u64 words, .param .u32 seed, .param .u64 tile, .param .u64 wrong)
{{{declared}{body}}}
"""


def _entry(name, work):
    body = gpu_kernels.EACH_WORD.format(index=gpu_kernels.LINEAR_INDEX, body=work)
    return ENTRY.format(name=name, declared=gpu_kernels.DECLARED, body=body)


KERNELS = gpu_kernels.HEAD.format("6.0", "sm_50") + _entry("lay", LAY) + _entry("compare", COMPARE)


class Data:
    """The tiles of all ranks and of their sum, on one GPU."""

    def __init__(self, gpu, kind, ranks):
        self.gpu, self.kind, self.ranks = gpu, kind, ranks
        self.module = gpu.module(KERNELS)
        self.blocks = gpu.attribute(driver_api.MULTIPROCESSORS) * 8
        self.wrong_words = gpu.allocate(8)
        self.limit = nccl_ops.top(kind, ranks)
        self._tiles = {}

    def lay(self, address, size, whose, phase):
        """Fill memory with a rank's data."""
        self._over("lay", address, size, whose, phase)
        self.gpu.wait()

    def wrong(self, base, blocks):
        """Count the words of some blocks (offset, bytes, whose, phase) that are wrong."""
        self.gpu.put(self.wrong_words, bytes(8))
        for offset, size, whose, phase in blocks:
            self._over("compare", base + offset, size, whose, phase)
        self.gpu.wait()
        return int.from_bytes(self.gpu.fetch(self.wrong_words, 8), "little")

    def _over(self, name, address, size, whose, phase):
        arguments = [driver_api.POINTER(address), driver_api.U64(nccl_ops.words(size)), driver_api.U32(phase)]
        arguments += [driver_api.POINTER(self._tile(whose)), driver_api.POINTER(self.wrong_words)]
        self.gpu.launch(self.module[name], self.blocks, gpu_kernels.THREADS, arguments, None)

    def _tile(self, whose):
        """Return the address of a rank's tile; None means the sum over all ranks."""
        if whose not in self._tiles:
            period = nccl_ops.summed(self.ranks, self.limit) if whose is None else nccl_ops.values(whose, self.limit)
            tile = nccl_ops.tile(period, self.kind)
            self._tiles[whose] = self.gpu.allocate(len(tile))
            self.gpu.put(self._tiles[whose], tile)
        return self._tiles[whose]
