"""Reading a GPU's memory by its own kernels: how fast it streams, and how long one access takes.

`stream` reads memory from all multiprocessors at once, past their own caches (ld.cg), 16 bytes a thread. `chase` reads
from one thread, each address from the line before: nothing can be fetched ahead. Lines are LINE bytes apart, and their
order visits each once: next = (5·line + 12345) mod lines.
"""

from nodetune.measurements.host import report as reporting
from . import driver_api, gpu_kernels, gpus

LINE = 256
"""Two lines of the L2 cache, which fetches at most so much at once."""

AT_ONCE, SUMS = 4, 4
"""The reads of a thread that wait at the same time, and the words of each."""

STREAM = """.visible .entry stream(.param .u64 memory, .param .u64 units, .param .u32 rounds, .param .u64 sums)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<40>;
    .reg .b64 %d<20>;
    ld.param.u64 %d3, [memory];
    cvta.to.global.u64 %d3, %d3;
    ld.param.u64 %d4, [units];
    ld.param.u32 %r4, [rounds];
    ld.param.u64 %d7, [sums];
    cvta.to.global.u64 %d7, %d7;
    {index}
    mov.u32 %r5, %nctaid.x;
    mul.wide.u32 %d5, %r2, %r5;
    shl.b64 %d8, %d5, 4;
    mov.u32 %r6, 0;
ROUND:
    mov.u64 %d9, %d1;
    shl.b64 %d10, %d1, 4;
    add.u64 %d10, %d3, %d10;
AGAIN:
    setp.ge.u64 %p1, %d9, %d4;
    @%p1 bra ENDED;
    {loads}
    {adds}
    mad.lo.u64 %d9, %d5, {at_once}, %d9;
    bra AGAIN;
ENDED:
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p2, %r4, 0;
    @%p2 bra ROUND;
    shl.b64 %d11, %d1, 2;
    add.u64 %d11, %d7, %d11;
    st.global.u32 [%d11], %r6;
    ret;
}}
""".format(
    index=gpu_kernels.LINEAR_INDEX,
    at_once=AT_ONCE,
    loads="".join(
        "ld.global.cg.v4.u32 {{%r{}, %r{}, %r{}, %r{}}}, [%d10]; add.u64 %d10, %d10, %d8;\n".format(
            *range(10 + 4 * number, 14 + 4 * number)
        )
        for number in range(AT_ONCE)
    ),
    adds="".join("add.u32 %r6, %r6, %r{};\n".format(10 + number) for number in range(AT_ONCE * SUMS)),
)
"""Each thread adds all words that it reads, and writes the sum."""

CHAIN = """.visible .entry chain(.param .u64 memory, .param .u64 lines)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<10>;
    .reg .b64 %d<12>;
    ld.param.u64 %d3, [memory];
    cvta.to.global.u64 %d3, %d3;
    ld.param.u64 %d4, [lines];
    {index}
    mov.u32 %r5, %nctaid.x;
    mul.wide.u32 %d5, %r2, %r5;
    sub.u64 %d6, %d4, 1;
AGAIN:
    setp.ge.u64 %p1, %d1, %d4;
    @%p1 bra DONE;
    mad.lo.u64 %d7, %d1, 5, 12345;
    and.b64 %d7, %d7, %d6;
    mul.lo.u64 %d8, %d1, {line};
    add.u64 %d8, %d3, %d8;
    st.global.u64 [%d8], %d7;
    add.u64 %d1, %d1, %d5;
    bra AGAIN;
DONE:
    ret;
}}
""".format(index=gpu_kernels.LINEAR_INDEX, line=LINE)

CHASE = """.visible .entry chase(.param .u64 memory, .param .u64 start, .param .u32 steps, .param .u64 end)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [memory];
    cvta.to.global.u64 %d1, %d1;
    ld.param.u64 %d2, [start];
    ld.param.u32 %r1, [steps];
    ld.param.u64 %d3, [end];
    cvta.to.global.u64 %d3, %d3;
AGAIN:
    mad.lo.u64 %d4, %d2, {line}, %d1;
    ld.global.cg.u64 %d2, [%d4];
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    st.global.u64 [%d3], %d2;
    ret;
}}
""".format(line=LINE)

PTX = gpu_kernels.HEAD.format("6.0", "sm_50") + STREAM + CHAIN + CHASE

SEED = 29


class Stream:
    """Reads all of `size` bytes, `rounds` times a sample. Raises MeasurementError."""

    def __init__(self, gpu, size, rounds):
        self.gpu, self.rounds = gpu, rounds
        self.kernels = gpu_kernels.Kernels(gpu)
        self.blocks = self.kernels.blocks // 4
        self.threads = self.blocks * gpu_kernels.THREADS
        self.units = size // (16 * AT_ONCE * self.threads) * AT_ONCE * self.threads
        self.size = 16 * self.units
        self.memory, self.sums = gpu.allocate(self.size), gpu.allocate(4 * self.threads)
        self.stream = gpu.stream()
        self.kernels.fill(self.memory, self.size, SEED, self.stream)
        gpu.poison(self.sums, 4 * self.threads, self.stream)
        self.function = gpu.module(PTX)["stream"]

    def queue(self):
        arguments = [
            driver_api.POINTER(self.memory),
            driver_api.U64(self.units),
            driver_api.U32(self.rounds),
            driver_api.POINTER(self.sums),
        ]
        self.gpu.launch(self.function, self.blocks, gpu_kernels.THREADS, arguments, self.stream)

    def check(self, threads=(0, 77)):
        """Compare the sums of some threads with the CPU's. Raise MeasurementError."""
        for thread in threads:
            units = range(thread, self.units, self.threads)
            words = (gpu_kernels.pattern(4 * unit + part, SEED) for unit in units for part in range(4))
            wanted = self.rounds * sum(words) & 0xFFFFFFFF
            found = int.from_bytes(self.gpu.fetch(self.sums + 4 * thread, 4), "little")
            if found != wanted:
                text = "{}: {}: the sum of what thread {} read is {:#x}, and should be {:#x}"
                raise reporting.MeasurementError(text.format(self.gpu.name, gpus.WRONG, thread, found, wanted))

    def release(self):
        """Give the memory back."""
        for address in (self.memory, self.sums):
            self.gpu.release(address)


class Chase:
    """Reads `steps` lines of `lines`, a power of two, one after the other. Raises MeasurementError."""

    def __init__(self, gpu, lines, steps):
        self.gpu, self.lines, self.steps, self.at = gpu, lines, steps, 0
        self.memory, self.end = gpu.allocate(lines * LINE), gpu.allocate(8)
        self.stream = gpu.stream()
        kernels = gpu_kernels.Kernels(gpu)
        given = [driver_api.POINTER(self.memory), driver_api.U64(lines)]
        gpu.launch(gpu.module(PTX)["chain"], kernels.blocks, gpu_kernels.THREADS, given, self.stream)
        self.function = gpu.module(PTX)["chase"]

    def queue(self):
        """Queue a sample, which starts where the one before ended: no line is read twice before all were."""
        given = [
            driver_api.POINTER(self.memory),
            driver_api.U64(self.at),
            driver_api.U32(self.steps),
            driver_api.POINTER(self.end),
        ]
        self.gpu.launch(self.function, 1, 1, given, self.stream)
        power = pow(5, self.steps, 4 * self.lines)
        self.at = (power * self.at + 12345 * (power - 1) // 4) % self.lines

    def check(self):
        """Compare where the last sample ended with where it should. Raise MeasurementError."""
        found = int.from_bytes(self.gpu.fetch(self.end, 8), "little")
        if found != self.at:
            text = "{}: {}: a chain of reads ended at line {}, and should at {}"
            raise reporting.MeasurementError(text.format(self.gpu.name, gpus.WRONG, found, self.at))

    def release(self):
        """Give the memory back."""
        for address in (self.memory, self.end):
            self.gpu.release(address)
