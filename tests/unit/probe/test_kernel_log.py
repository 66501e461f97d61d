"""What the kernel logged of its own faults. The lines are of kernels 4.18 to 6.17."""

import pytest

from nodetune.probe import kernel_log, read


@pytest.fixture
def logged(tree, collect):
    """Facts of a kernel log with these messages, one second apart."""

    def run(*messages):
        tree({"/dev/kmsg": "".join(f"3,{at},{at * 1000000},-;{text}\n" for at, text in enumerate(messages))})
        return {name: fact["value"] for name, fact in collect("kernel_log").items()}

    return run


def test_a_module_that_was_built_against_another_version_is_told_with_the_symbol(logged):
    refused = "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client"
    again = "nvidia_peermem: disagrees about version of symbol ib_unregister_peer_memory_client"
    program = "python[7]: segfault at 0 in x: disagrees about version of symbol y"
    assert logged(refused, again, program)["kernel_log.symbol_mismatches"] == {
        "nvidia_peermem": {"time": 1.0, "symbol": "ib_unregister_peer_memory_client"}
    }


def test_a_healthy_log_has_no_faults(logged):
    found = logged("Linux version 6.8.0", "mce: CPU0: Thermal monitoring enabled (TM1)", "nvme nvme0: 63/0/0 queues")
    assert found.keys() == {f"kernel_log.{name}" for name in kernel_log.FACTS}
    assert not any(found.values())


def test_memory_that_ran_out_on_the_host_is_told_with_its_scope(logged):
    found = logged(
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task=python3,pid=412",
        "Out of memory: Killed process 412 (python3) total-vm:9000kB, anon-rss:8000kB, UID:1000 pgtables:1 oom_score_adj:0",
        "oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=1,cpuset=/,task=a.out,pid=7",
        "Out of memory: Killed process 7 (a.out) total-vm:9000kB",
        "Out of memory: Kill process 9 (old) score 900 or sacrifice child",
        "Killed process 9 (old) total-vm:9000kB, anon-rss:8000kB",
    )["kernel_log.oom_kills"]
    assert [(each["pid"], each["process"], each["scope"], each["time"]) for each in found] == [
        (412, "python3", "NONE", 1.0),
        (7, "a.out", "MEMORY_POLICY", 3.0),
        (9, "old", None, 4.0),
    ]


def test_a_job_that_reached_its_own_limit_is_no_fault(logged):
    found = logged(
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/slurm/job_7,task=python3,pid=412",
        "Memory cgroup out of memory: Killed process 412 (python3) total-vm:9000kB",
    )
    assert found["kernel_log.oom_kills"] == []


def test_hung_tasks_are_told_with_name_and_time(logged):
    found = logged(
        "INFO: task kworker/u513:2:7711 blocked for more than 120 seconds.",
        "INFO: task dd:456 blocked in I/O wait for more than 122 seconds.",
        "INFO: task dd:456 is blocked on a mutex likely owned by task cp:9.",
    )["kernel_log.hung_tasks"]
    assert [(each["task"], each["seconds"]) for each in found] == [("kworker/u513:2:7711", 120), ("dd:456", 122)]


def test_only_machine_checks_that_nothing_corrected_are_told(logged):
    found = logged(
        "mce: [Hardware Error]: Machine check events logged",
        "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: 8c00004000010090",
        "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: bd80000000100134",
        "mce: [Hardware Error]: CPU 4: Machine Check Exception: 5 Bank 1: be00000000800400",
        "[Hardware Error]: Corrected error, no action required.",
        "[Hardware Error]: Deferred error, no action required.",
        "[Hardware Error]: Uncorrected, software containable error.",
    )["kernel_log.machine_checks"]
    assert [each["text"] for each in found] == [
        "CPU 3 bank 7: bd80000000100134",
        "CPU 4 bank 1: be00000000800400",
        "Deferred error, no action required",
        "Uncorrected, software containable error",
    ]


def test_errors_of_the_firmware_are_told_by_severity_and_section(logged):
    found = logged(
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
        "{1}[Hardware Error]: event severity: corrected",
        "{1}[Hardware Error]:   section_type: memory error",
        "{2}[Hardware Error]: event severity: recoverable",
        "{2}[Hardware Error]:  Error 0, type: recoverable",
        "{2}[Hardware Error]:   section_type: memory error",
        "[Hardware Error]: event severity: fatal",
        "[Hardware Error]:   section_type: memory error",
    )["kernel_log.machine_checks"]
    assert [each["text"] for each in found] == ["memory error (recoverable)"]


def test_an_unknown_section_of_the_firmware_is_told_too(logged):
    found = logged(
        "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 9",
        "{1}[Hardware Error]: event severity: recoverable",
        "{1}[Hardware Error]:  Error 0, type: recoverable",
        "{1}[Hardware Error]:   section type: unknown, e8ed898d-df16-43cc-8ecc-54f060ef157f",
        "{1}[Hardware Error]:   section length: 0x30",
        "[Hardware Error]: event severity: fatal",
        "[Hardware Error]:   section type: unknown, 81212a96-09ed-4996-9471-8d729c8e69ed",
    )["kernel_log.machine_checks"]
    assert [each["text"] for each in found] == ["unknown, e8ed898d-df16-43cc-8ecc-54f060ef157f (recoverable)"]


def test_uncorrected_errors_of_edac_are_told_with_the_module(logged):
    uncorrected = "EDAC MC3: 1 UE memory read error on CPU_SrcID#0_MC#3_Chan#0_DIMM#0"
    found = logged(
        uncorrected + " (channel:0 slot:0 page:0x7e025e offset:0x400 grain:32 -  err_code:0x00a0:0x0090)",
        "EDAC MC0: 2 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
        "EDAC MC0: 0 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
        "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0",
    )["kernel_log.machine_checks"]
    assert [each["text"] for each in found] == [uncorrected]


USED = "Memory failure: 0x8c53ae: Sending SIGBUS to landscape-sysin:8540 due to hardware memory corruption"
RECOVERED = "Memory failure: 0x8c53ae: recovery action for dirty LRU page: Recovered"


@pytest.mark.parametrize(
    "lines",
    [
        ("mce: Uncorrected hardware memory error in user-access at 8c53aee80", USED, RECOVERED),
        (USED, USED),
        (USED.replace("Sending SIGBUS to", "Killing"),),  # before Linux 5.3
    ],
)
def test_memory_that_lost_its_data_while_a_program_used_it_is_told_once(logged, lines):
    (found,) = logged(*lines)["kernel_log.machine_checks"]
    assert found["text"] == "memory at 0x8c53ae000 lost its data while a program used it"


@pytest.mark.parametrize(
    "lines",
    [
        ("Injecting memory failure for pfn 0x8c53ae at process virtual address 0x7f00", USED, RECOVERED),
        ("Injecting memory failure at pfn 0x8c53ae", USED),
        ("Soft offlining pfn 0x8c53ae at process virtual address 0x7f00", "soft_offline: 0x8c53ae: page migrated"),
        (RECOVERED,),
        ("MCE: Killing uffd-unit-tests:1321817 due to hardware memory corruption fault at 4631e000",),
    ],
)
def test_memory_that_a_test_or_an_administrator_takes_out_of_use_is_no_fault(logged, lines):
    assert logged(*lines)["kernel_log.machine_checks"] == []


@pytest.mark.parametrize(
    ("lines", "cpus"),
    [
        (("rcu: INFO: rcu_preempt self-detected stall on CPU",), [None]),
        (
            (
                "rcu: INFO: rcu_sched self-detected stall on CPU",
                r"rcu: \x0924-....: (14837 ticks this GP) idle=521c/1/0x4 softirq=230597/230597 fqs=2489",
                r"rcu: \x09(t=15004 jiffies g=26003221 q=211022 ncpus=96)",
            ),
            [24],
        ),
        (("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", "rcu: \t3-...0: (1 GPs behind) idle=b23c"), [3]),
        (("INFO: rcu_sched self-detected stall on CPU", "\t3-...: (1 GPs behind) idle=b23c"), [3]),
        # a task that did not get a CPU
        (("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "rcu: \tTasks blocked on level-0 rcu_node: P7"), []),
        (("rcu: rcu_preempt kthread starved for 20964 jiffies!",), []),
    ],
)
def test_a_stall_of_a_cpu_is_told_with_its_number(logged, lines, cpus):
    assert logged(*lines)["kernel_log.rcu_stalls"] == [{"time": 0.0, "cpu": cpu} for cpu in cpus]


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        (
            (
                "BUG: kernel NULL pointer dereference, address: 0000000000000008",
                "#PF: supervisor read access in kernel mode",
                "Oops: 0000 [#1] PREEMPT SMP NOPTI",
                "general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#2] SMP NOPTI",
            ),
            [
                "BUG: kernel NULL pointer dereference, address: 0000000000000008",
                "general protection fault, probably for non-canonical address 0xdead000000000122",
            ],
        ),
        (
            ("BUG: unable to handle page fault for address: ffff8dfcc0003000", "Oops: Oops: 0002 [#1] SMP"),
            ["BUG: unable to handle page fault for address: ffff8dfcc0003000"],
        ),
        (
            ("BUG: unable to handle kernel paging request at ffff8dfcc0003000",),
            ["BUG: unable to handle kernel paging request at ffff8dfcc0003000"],
        ),
        (("kernel BUG at mm/slub.c:4023!", "invalid opcode: 0000 [#1] SMP"), ["kernel BUG at mm/slub.c:4023!"]),
        (("divide error: 0000 [#1] SMP NOPTI",), ["divide error"]),
        (
            (
                "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000020",
                "Internal error: Oops: 0000000096000004 [#1] SMP",
            ),
            ["Unable to handle kernel NULL pointer dereference at virtual address 0000000000000020"],
        ),
        (("Internal error: Oops - BUG: 00000000f2000800 [#1] SMP",), ["Oops - BUG"]),
    ],
)
def test_a_fault_of_the_kernel_is_told_once_by_its_cause(logged, lines, texts):
    assert [each["text"] for each in logged(*lines)["kernel_log.oopses"]] == texts


@pytest.mark.parametrize(
    "line",
    [
        "traps: python3[4711] general protection fault ip:7f0000401136 sp:7ffd1c7f2b50 error:0 in libc.so.6[401000+1000]",
        "WARNING: CPU: 3 PID: 4711 at mm/page_alloc.c:5544 __alloc_pages+0x2f1/0x330",
        "BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 34s!",
        "Oops[4711]: segfault at 0 ip 00007f0000401136 sp 00007ffd1c7f2b50 error 4 in x: 0000 [#1][401000+1000]",
        "Oops: page allocation failure: order:0, mode:0xcc0(GFP_KERNEL), nodemask=(null),cpuset=x: 0000 [#1]",
        "kernel BUG at x[4711]: segfault at 0 ip 0 sp 0 error 4 in a:1![401000+1000]",
    ],
)
def test_a_fault_of_a_program_is_no_fault_of_the_kernel(logged, line):
    assert logged(line)["kernel_log.oopses"] == []


def test_an_xfs_that_shut_down_is_told_until_it_is_mounted_again(logged):
    found = logged(
        "XFS (dm-8): Corruption of in-memory data detected.  Shutting down filesystem",
        "XFS (dm-8): Please unmount the filesystem and rectify the problem(s)",
        "XFS (sdb): Mounting V5 Filesystem 7834ea96-eab0-46c5-9b18-c8f054fa9cf4",
        "XFS (sdb): Metadata corruption detected at xfs_inode_buf_verify+0x168/0x190 [xfs], xfs_inode block 0x1405a0",
        "XFS (sdb): Unmount and run xfs_repair",
        "XFS (nvme1n1p2): log I/O error -5",
        "XFS (nvme1n1p2): Log I/O Error (0x2) detected at xlog_ioend_work+0x60/0xb0 [xfs] (fs/xfs/xfs_log.c:1377).  "
        "Shutting down filesystem.",
        "XFS (loop0): Metadata I/O Error (0x1) detected at xfs_trans_read_buf_map+0x1fe/0x4c0 [xfs] "
        "(fs/xfs/xfs_trans_buf.c:311).  Shutting down filesystem.",
        "XFS (loop0): Unmounting Filesystem 9faf1858-4d74-4b58-b0e7-68fd1d90762a",
        # while it is unmounted, and at a mount that fails
        "XFS (loop0): Log I/O Error (0x2) detected at xlog_ioend_work+0x60/0xb0 [xfs] (fs/xfs/xfs_log.c:1377).  "
        "Shutting down filesystem.",
        "XFS (loop1): Mounting V5 Filesystem",
        "XFS (loop1): Corruption of in-memory data (0x8) detected at _xfs_buf_ioapply+0xe1e/0x10e0 "
        "(fs/xfs/xfs_buf.c:1580).  Shutting down filesystem.",
        "XFS (loop1): log mount failed",
    )["kernel_log.xfs_shutdowns"]
    assert found == [
        {"time": 0.0, "device": "dm-8", "text": "Corruption of in-memory data"},
        {"time": 6.0, "device": "nvme1n1p2", "text": "Log I/O Error"},
    ]


def test_nvme_timeouts_and_resets_are_told_by_controller(logged):
    found = logged(
        "nvme nvme3: I/O 114 QID 19 timeout, completion polled",
        "nvme nvme3: I/O tag 114 (1072) opcode 0x2 (I/O Cmd) QID 19 timeout, aborting req_op:READ(0) size:4096",
        "nvme nvme3: I/O 114 QID 19 timeout, reset controller",
        "nvme nvme4: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
        "nvme nvme4: Abort status: 0x0",
        "nvme nvme5: I/O tag 5 (1005) type 4 opcode 0x2 (I/O Cmd) QID 2 timeout",
    )["kernel_log.nvme"]
    assert [each["controller"] for each in found] == ["nvme3", "nvme3", "nvme3", "nvme4"]
    assert found[-1]["text"] == "controller is down; will reset"


SEGFAULT = "[4711]: segfault at 0 ip 00007f0000401136 sp 00007ffd1c7f2b50 error 4 in {}[401000+1000]"
STACK = " (4711) used greatest stack depth: 11264 bytes left"


@pytest.mark.parametrize(
    "line",
    [
        "x" + SEGFAULT.format("[Hardware Error]: System Fatal error"),
        "EDAC MC0: 1 UE" + SEGFAULT.format("memory read error on DIMM_A1 ("),
        "EDAC MC0: 1 UE: page allocation failure: order:0, mode:0xcc0(GFP_KERNEL), nodemask=(null),cpuset=a on b (c",
        "EDAC MC0: 1 UE" + STACK,
        "INFO: task x" + SEGFAULT.format("y:1 blocked for more than 122 seconds."),
        "nvme nvme0: I/O" + SEGFAULT.format("1 QID 1 timeout, reset controller"),
        "nvme nvme0: x: page allocation failure: order:0, mode:0xcc0(GFP_KERNEL), cpuset=timeout, reset controller",
        "mlx5_core: x" + SEGFAULT.format("x timeout. Will cause a leak of a command resource"),
    ],
)
def test_what_a_program_gets_into_a_line_is_no_fault(logged, line):
    assert not any(logged(line).values())


def test_an_uncorrected_error_of_an_edac_device_is_told(logged):
    line = "EDAC DEVICE0: UE: tegra194-ccplex instance: cpu0 block: L2 count: 1 'L2 Cache error'"
    old = 'EDAC MC1: UE page 0x3f, offset 0x0, grain 4096, row 2, labels ":": i3000 UE'
    assert [each["text"] for each in logged(line, old)["kernel_log.machine_checks"]] == [line, old]


def test_the_log_is_read_once_for_all_families_of_a_reader(tree, monkeypatch):
    tree({"/dev/kmsg": "3,0,1000000,-;hello\n"})
    reads = []
    monkeypatch.setattr(kernel_log, "_kmsg", lambda: reads.append(1) or [(0, 1.0, "hello")])

    class Report:
        def step(self, text):
            pass

    report = Report()
    assert kernel_log.lines(report.step) == kernel_log.lines(report.step) == ([(1.0, "hello")], "kernel buffer")
    assert len(reads) == 1


def test_a_record_of_several_lines_stays_one_in_the_journal(monkeypatch):
    output = ("[    2.000000] host kernel: NVRM: The NVIDIA GPU 0000:b3:00.0", " " * 17 + "NVRM: fallen off the bus")
    monkeypatch.setattr(read, "find_tool", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(read, "lines", lambda *_: output)
    assert kernel_log._journal() == [(2.0, "NVRM: The NVIDIA GPU 0000:b3:00.0 NVRM: fallen off the bus")]


def test_a_log_that_may_not_be_read_is_unread_for_every_fact(tree, collect):
    tree({"/dev/": None})
    assert {"unread"} == {kind for fact in collect("kernel_log").values() for kind in fact}
