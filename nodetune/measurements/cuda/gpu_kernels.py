"""The few kernels that the GPU measurements need, as PTX text that the driver itself compiles.

The host needs only the driver, which compiles for its GPU. `fill` and `check` write and verify a pattern that differs
in every word, `bell` writes random bf16 numbers, `bits` random bits under a mask, `fma` and `mma` keep the GPU busy, `empty` does nothing. Blocks have
THREADS threads.
"""

from nodetune.measurements.host import report as reporting
from . import driver_api, gpus

THREADS = 256

LINEAR_INDEX = """
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %d1, %r1, %r2;
    cvt.u64.u32 %d2, %r3;
    add.u64 %d1, %d1, %d2;
"""
"""%d1: this thread's number in the grid."""

HASH = """
    mul.lo.u32 {x}, {x}, 0x9E3779B1;
    shr.u32 %r9, {x}, 15;
    xor.b32 {x}, {x}, %r9;
    mul.lo.u32 {x}, {x}, 0x85EBCA77;
    shr.u32 %r9, {x}, 13;
    xor.b32 {x}, {x}, %r9;
"""
"""A number to a well mixed one, in place (constants of xxHash)."""

EACH_WORD = """
    ld.param.u64 %d3, [memory];
    cvta.to.global.u64 %d3, %d3;
    ld.param.u64 %d4, [words];
    ld.param.u32 %r4, [seed];
    {index}
    mov.u32 %r5, %nctaid.x;
    mul.wide.u32 %d5, %r2, %r5;
AGAIN:
    setp.ge.u64 %p1, %d1, %d4;
    @%p1 bra DONE;
    shl.b64 %d6, %d1, 2;
    add.u64 %d6, %d3, %d6;
    cvt.u32.u64 %r6, %d1;
    {body}
NEXT:
    add.u64 %d1, %d1, %d5;
    bra AGAIN;
DONE:
    ret;
"""
"""For every 32-bit word: its number in %d1 (low half in %r6), its address in %d6."""

FILL = "add.u32 %r6, %r6, %r4;" + HASH.format(x="%r6") + "st.global.u32 [%d6], %r6;"

COUNT_WRONG = """
    ld.global.u32 %r7, [%d6];
    setp.eq.u32 %p2, %r6, %r7;
    @%p2 bra NEXT;
    ld.param.u64 %d7, [wrong];
    cvta.to.global.u64 %d7, %d7;
    atom.global.add.u64 %d8, [%d7], 1;
"""
"""Continues only if the word in memory is not that in %r6, and counts it."""

CHECK = "add.u32 %r6, %r6, %r4;" + HASH.format(x="%r6") + COUNT_WRONG + "atom.global.min.u64 %d8, [%d7+8], %d1;"
"""Counts the wrong words and keeps the lowest."""

BELL_HALF = (
    HASH.format(x="{x}")
    + """
    and.b32 %r7, {x}, 0xFF;
    shr.u32 %r8, {x}, 8;
    and.b32 %r8, %r8, 0xFF;
    add.u32 %r7, %r7, %r8;
    shr.u32 %r8, {x}, 16;
    and.b32 %r8, %r8, 0xFF;
    add.u32 %r7, %r7, %r8;
    shr.u32 %r8, {x}, 24;
    add.u32 %r7, %r7, %r8;
    cvt.rn.f32.u32 %f1, %r7;
    sub.f32 %f1, %f1, 0f43FF0000;
    mul.f32 %f1, %f1, 0f3BDDB47B;
    mov.b32 {x}, %f1;
"""
)
"""The sum of a number's four bytes, less its mean 510, over its deviation 147.8: nearly a bell curve of width one."""

BELL = (
    "add.u32 %r6, %r6, %r4; shl.b32 %r6, %r6, 1; add.u32 %r10, %r6, 1;"
    + BELL_HALF.format(x="%r6")
    + BELL_HALF.format(x="%r10")
    + """
    shr.u32 %r6, %r6, 16;
    and.b32 %r10, %r10, 0xFFFF0000;
    or.b32 %r6, %r6, %r10;
    st.global.u32 [%d6], %r6;
"""
)
"""Two numbers a word: the upper half of a float is a bf16."""

BITS = (
    "add.u32 %r6, %r6, %r4;"
    + HASH.format(x="%r6")
    + """
    ld.param.u32 %r7, [keep];
    ld.param.u32 %r8, [more];
    and.b32 %r6, %r6, %r7;
    or.b32 %r6, %r6, %r8;
    st.global.u32 [%d6], %r6;
"""
)

DECLARED = """
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %d<10>;
    .reg .f32 %f<4>;
"""


def _per_word(name, body, parameters=""):
    text = ".visible .entry {}(.param .u64 memory, .param .u64 words, .param .u32 seed{})\n{{{}{}}}\n"
    return text.format(name, parameters, DECLARED, EACH_WORD.format(index=LINEAR_INDEX, body=body))


def _load(name, unroll, setup, work, registers, fold):
    """Return a kernel that does `work` repeatedly in registers, and writes one result word for each thread.

    Every warp does the same work, so the words of all warps stay equal. A word is multiplied by a constant before the
    result is added: one wrong result shows from then on, and the same wrong result again does not cancel it.
    """
    return """.visible .entry {name}(.param .u64 memory, .param .u32 rounds)
{{{declared}{registers}
    ld.param.u64 %d3, [memory];
    cvta.to.global.u64 %d3, %d3;
    ld.param.u32 %r4, [rounds];
    {index}
    mov.u32 %r5, %laneid;
    {setup}
ROUND:
    {work}
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra ROUND;
    mov.u32 %r6, 0;
    {fold}
    shl.b64 %d6, %d1, 2;
    add.u64 %d6, %d3, %d6;
    ld.global.u32 %r7, [%d6];
    mad.lo.u32 %r6, %r7, 0x9E3779B1, %r6;
    st.global.u32 [%d6], %r6;
    ret;
}}
""".format(
        name=name,
        declared=DECLARED,
        registers=registers,
        index=LINEAR_INDEX,
        setup=setup,
        work=work * unroll,
        fold=fold,
    )


def _fold(registers):
    """Fold all registers into %r6, so that every bit of the result counts."""
    return "".join("mov.b32 %r7, {}; xor.b32 %r6, %r6, %r7;\n".format(each) for each in registers)


def _random(register, number, mask, ones):
    """Fill a register with random bits for each lane, the same in every warp."""
    text = "mad.lo.u32 %r8, %r5, 64, {number};" + HASH + "and.b32 %r8, %r8, {mask}; or.b32 {to}, %r8, {ones};\n"
    return text.format(x="%r8", to=register, number=number, mask=mask, ones=ones)


CHAINS = 8
"""Independent sums in one thread, so that none waits for the one before."""


def _fma():
    """Return fp32 work: x goes to 1.5 - x and back, where an error stays. 2 operations per lane and instruction."""
    sums = ["%s{}".format(number) for number in range(CHAINS)]
    setup = "".join(_random("%q0", number, "0x007FFFFF", "0x3F000000") + "mov.b32 {}, %q0;\n".format(each)
                    for number, each in enumerate(sums))  # fmt: skip
    setup += "mov.f32 %f1, 0fBF800000; mov.f32 %f2, 0f3FC00000;\n"
    work = "".join("fma.rn.f32 {0}, {0}, %f1, %f2;\n".format(each) for each in sums)
    return _load("fma", FMA_UNROLL, setup, work, ".reg .f32 %s<8>; .reg .b32 %q<1>;", _fold(sums))


def _mma():
    """Return bf16 work on the tensor cores: 16 by 8 by 16 products of random numbers from 0.5 to 1, of either sign."""
    setup = ""
    for number in range(16):
        setup += _random("%q{}".format(number), number, "0x807F807F", "0x3F003F00")
    sums = ["%s{}".format(number) for number in range(4 * CHAINS)]
    setup += "".join("mov.f32 {}, 0f00000000;\n".format(each) for each in sums)
    work = ""
    for chain in range(CHAINS):
        four = "{" + ", ".join(sums[4 * chain : 4 * chain + 4]) + "}"
        left = "{" + ", ".join("%q{}".format(chain % 2 * 4 + part) for part in range(4)) + "}"
        right = "{" + ", ".join("%q{}".format(8 + chain // 2 * 2 + part) for part in range(2)) + "}"
        text = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {0}, {1}, {2}, {0};\n"
        work += text.format(four, left, right)
    return _load("mma", MMA_UNROLL, setup, work, ".reg .f32 %s<32>; .reg .b32 %q<16>;", _fold(sums))


FMA_UNROLL, MMA_UNROLL = 16, 4
FLOPS = {"fma": 2 * CHAINS * FMA_UNROLL, "mma": 2 * 16 * 8 * 16 // 32 * CHAINS * MMA_UNROLL}
"""Floating-point operations of one thread in one round."""

HEAD = ".version {}\n.target {}\n.address_size 64\n"

COMMON = (
    HEAD.format("6.0", "sm_50")
    + ".visible .entry empty() { ret; }\n"
    + _per_word("fill", FILL)
    + _per_word("check", CHECK, ", .param .u64 wrong")
    + _per_word("bell", BELL)
    + _per_word("bits", BITS, ", .param .u32 keep, .param .u32 more")
    + _fma()
)
TENSOR = HEAD.format("7.0", "sm_80") + _mma()


def pattern(number, seed):
    """Compute the word that `fill` writes at a position."""
    word = (number + seed) * 0x9E3779B1 & 0xFFFFFFFF
    word = (word ^ word >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    return word ^ word >> 13


class Kernels:
    """The common kernels, loaded on one GPU."""

    def __init__(self, gpu):
        self.gpu = gpu
        self.module = gpu.module(COMMON)
        self.blocks = gpu.attribute(driver_api.MULTIPROCESSORS) * 8
        self.wrong = gpu.allocate(16)

    def _over(self, name, address, size, seed, stream, *more):
        arguments = [driver_api.POINTER(address), driver_api.U64(size // 4), driver_api.U32(seed)]
        self.gpu.launch(self.module[name], self.blocks, THREADS, arguments + list(more), stream)

    def fill(self, address, size, seed, stream=None):
        """Write the pattern into `size` bytes."""
        self._over("fill", address, size, seed, stream)

    def bell(self, address, size, seed, stream=None):
        """Write random bf16 numbers into `size` bytes."""
        self._over("bell", address, size, seed, stream)

    def bits(self, address, size, seed, keep, more, stream=None):
        """Write the pattern into `size` bytes, each word reduced to the bits of `keep`, with those of `more` set."""
        self._over("bits", address, size, seed, stream, driver_api.U32(keep), driver_api.U32(more))

    def wrong_words(self, address, size, seed, stream=None):
        """Return (how many words differ from the pattern, the byte offset of the first). Wait for the stream."""
        self.gpu.put(self.wrong, bytes(8) + b"\xff" * 8)
        self._over("check", address, size, seed, stream, driver_api.POINTER(self.wrong))
        self.gpu.wait(stream)
        data = self.gpu.fetch(self.wrong, 16)
        return int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little") * 4

    def confirm(self, address, size, seed, stream, what):
        """Wait for the stream. Raise MeasurementError if memory does not hold the pattern."""
        count, first = self.wrong_words(address, size, seed, stream)
        if count:
            text = "{}: {}: {}: {} of {} words differ, the first at byte {}"
            raise reporting.MeasurementError(text.format(self.gpu.name, gpus.WRONG, what, count, size // 4, first))
