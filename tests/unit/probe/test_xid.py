"""The kernel log: which Xids still count, and what is said where it cannot be read."""

import os

import pytest

from nodetune.probe import kernel_log, read, xid

XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
LOST_AT_ONCE = "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus."
SXID_FATAL = "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"


def kmsg(*messages, first=0):
    """Records as /dev/kmsg gives them, one second apart."""
    return "".join(f"4,{first + at},{(first + at) * 1000000},-;{text}\n" for at, text in enumerate(messages))


@pytest.fixture
def events(tree, collect):
    def run(*messages, first=0):
        tree({"/dev/kmsg": kmsg(*messages, first=first)})
        return collect("xid")

    return run


def test_an_xid_is_told_with_its_gpu_and_time(events):
    facts = events("NVRM: loading NVIDIA UNIX Open Kernel Module", XID_79)
    assert facts["xid.events"]["value"] == [
        {
            "bdf": "0000:3b:00.0",
            "xid": 79,
            "time": 1.0,
            "text": "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "first": 1.0,
            "count": 1,
        }
    ]


@pytest.mark.parametrize("instance", [" GPU-I:05", " GPU-I:05 GPU-CI:00"])
def test_an_xid_of_a_mig_instance_is_its_gpus(events, instance):
    facts = events(
        f"NVRM: Xid (PCI:0000:3b:00{instance}): 94, pid=7194, Contained: CE User Channel (0x9). RST: No, D-RST: No"
    )
    assert [(each["bdf"], each["xid"]) for each in facts["xid.events"]["value"]] == [("0000:3b:00.0", 94)]
    assert facts["xid.events"]["value"][0]["text"].startswith("pid=7194, Contained")


def test_a_healthy_log_has_no_events(events):
    facts = events(
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build",
        "NVRM: gpuClearFbhubPoisonIntrForBug2924523_GA100: FBHUB Interrupt detected. Clearing it.",
    )
    assert facts["xid.events"] == {"value": []}
    assert facts["xid.log"]["value"]["source"] == "kernel buffer"


def test_a_recovery_of_one_gpu_clears_its_events_only(events):
    facts = events(
        XID_79,
        "NVRM: Xid (PCI:0000:5e:00): 48, An uncorrectable double bit error (DBE) has been detected",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
    )
    assert [each["bdf"] for each in facts["xid.events"]["value"]] == ["0000:5e:00.0"]


def test_loading_the_driver_again_clears_all(events):
    facts = events(
        XID_79,
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "NVRM: loading NVIDIA UNIX Open Kernel Module",
    )
    assert facts["xid.events"] == {"value": []}
    assert facts["xid.nvswitch"] == {"value": []}


def test_nvswitch_errors_and_lost_gpus_are_told_apart(events):
    facts = events(
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    )
    assert facts["xid.events"] == {"value": []}
    assert facts["xid.nvswitch"]["value"][0]["xid"] == 20034
    assert facts["xid.nvswitch"]["value"][0]["text"] == "Fatal, Link 30 LTSSM Fault Up"
    assert facts["xid.fallen_off_bus"]["value"][0]["bdf"] == "0000:3b:00.0"


LOADING = "nvidia-nvlink: Nvlink Core is being initialized, major device number 510"
LOADED = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  470.141.03"
LOST = (
    "NVRM: The NVIDIA GPU 0000:b3:00.0",
    "NVRM: (PCI ID: 10de:20b0) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)


@pytest.mark.parametrize("message", [LOST, ("\\x0a".join(LOST),)])
def test_a_gpu_that_is_lost_while_the_driver_loads_is_told(events, message):
    facts = events(XID_79, LOADING, *message, LOADED)
    assert facts["xid.events"] == {"value": []}
    assert [each["bdf"] for each in facts["xid.fallen_off_bus"]["value"]] == ["0000:b3:00.0"]


def test_the_next_load_clears_a_gpu_lost_in_the_last_one(events):
    assert events(LOADING, *LOST, LOADED, LOADING, LOADED)["xid.fallen_off_bus"] == {"value": []}
    assert events(LOADING, *LOST, LOADED, LOADED)["xid.fallen_off_bus"] == {"value": []}


REFUSED = "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)"
LIMITED = (
    "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30)."
    "  The GPU likely needs to be reset."
)


def test_a_driver_that_refuses_work_before_a_reset_is_told(events):
    found = events(REFUSED, LIMITED)["xid.reset_required"]["value"]
    assert [(each["bdf"], each["time"]) for each in found] == [("", 0.0), ("0000:9b:00.0", 1.0)]


@pytest.mark.parametrize(
    ("line", "bdf"),
    [
        ("NVRM: GPU 0000:98:00.0: RmInitAdapter failed! (0x62:0x55:2477)", "0000:98:00.0"),
        ("NVRM: GPU0 nvAssertFailedNoLog: Assertion failed: GPU marked for reset @ kernel_gsp.c:2607", ""),
        (REFUSED, ""),
        ("NVRM: GPU4 _kgspClassifyGspTimeout: ================ GSP core unresponsive ===============", ""),
        ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7", ""),
        # issues 1230, 688, 1342 of the same repository, and openwall/john#5835
        ("NVRM: GPU6 kgmmuCheckMemSubsysError_IMPL: Memory Subsystem Error detected. kgmmuInvalidateTlb failed.", ""),
        ("NVRM: _issueRpcAndWait: rpcSendMessage failed with status 0x0000000f for fn 76!", ""),
        ("NVRM: GPU0 _issueRpcAndWait: rpcSendMessage failed with status 0x0000000f for fn 10 sequence 768!", ""),
        ("NVRM: GPU0 rpcRmApiFree_GSP: GspRmFree failed: hClient=0xc1d00018; paramsStatus=0x0; status=0x0000000f", ""),
        (
            "NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned from x(a, b)",
            "",
        ),
        (
            "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.",
            "",
        ),
    ],
)
def test_lines_without_an_xid_are_told_with_the_gpu_they_name(events, line, bdf):
    """The lines of osinit.c, kernel_gsp.c and kernel_rc_watchdog_callback.c of NVIDIA/open-gpu-kernel-modules."""
    (found,) = events(line, line)["xid.reset_required"]["value"]
    assert (found["bdf"], found["count"], found["text"]) == (bdf, 2, line)


@pytest.mark.parametrize(
    "line",
    [
        # issue 1064 of the same repository: the heartbeat stays 0 on a GPU that works
        "NVRM: GPU0 _kgspIsHeartbeatTimedOut: Heartbeat timed out, currentTimeMs 322227881 heartbeat 0 diff 4129040 timeout 5200",
        "NVRM: GPU0 _kgspRpcRecvPoll: GSP RM heartbeat timed out",
        "NVRM: GPU0 _kgspClassifyGspTimeout: =================== GSP-RM is slow ===================",
        "NVRM: _issueRpcAndWait: rpcRecvPoll failed with status 0x00000055 for fn 76 sequence 2!",
        "NVRM: [4711]: segfault at 0 ip 0 sp 0 error 4 in failed with status 0x0000000f[1000+2000]",
    ],
)
def test_what_says_nothing_about_a_gpu_is_no_event(events, line):
    assert events(line)["xid.reset_required"]["value"] == []


def test_a_recovery_clears_what_names_no_gpu(events):
    recovered = (
        "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    )
    assert [each["bdf"] for each in events(REFUSED, LIMITED, recovered)["xid.reset_required"]["value"]] == [
        "0000:9b:00.0"
    ]


def test_an_old_style_xid_is_read_too(events):
    assert events("NVRM: Xid (0000:03:00): 6, PE0001")["xid.events"]["value"][0]["xid"] == 6


def test_what_a_program_writes_to_the_log_is_no_event(tree, collect):
    tree({"/dev/kmsg": f"12,0,1000000,-;{XID_79}\n"})
    assert collect("xid")["xid.events"] == {"value": []}


@pytest.fixture
def journal(tmp_path, monkeypatch):
    """journal(*lines): a journalctl that prints these lines, the newest first, and notes its arguments."""
    tool, lines = tmp_path / "usr/bin/journalctl", read.lines
    tool.parent.mkdir(parents=True, exist_ok=True)

    def run(*printed):
        (tmp_path / "journal").write_text("".join(f"{line}\n" for line in reversed(printed)))
        tool.write_text(f'#!/bin/sh\necho "$*" > {tmp_path}/asked\ncat {tmp_path}/journal\n')
        tool.chmod(0o755)
        monkeypatch.setattr(read, "lines", lambda argv, *rest: lines([str(tmp_path) + argv[0], *argv[1:]], *rest))
        return tmp_path / "asked"

    return run


def test_lines_that_the_buffer_lost_come_from_the_journal(events, journal):
    journal("[    2.000000] host kernel: NVRM: Xid (PCI:0000:3b:00): 48, DBE")
    facts = events(XID_79, first=5000)
    assert [each["xid"] for each in facts["xid.events"]["value"]] == [48, 79]
    assert facts["xid.log"]["value"]["source"] == "journal and kernel buffer"


XID_45 = "NVRM: Xid (PCI:0000:3b:00): 45, pid=1818990, name=python3, Ch {:08x}"
XID_95 = "NVRM: Xid (PCI:0000:3b:00): 95, pid=7194, name=python3, Uncontained: LTC TAG. RST: Yes, D-RST: No"


def numbers(facts):
    return {each["xid"]: each["count"] for each in facts["xid.events"]["value"]}


def test_no_flood_of_a_programs_xids_pushes_out_another(events):
    """11,760 Xid 45 on one GB200 node: NVIDIA/NVSentinel#1748."""
    assert numbers(events(XID_95, *(XID_45.format(at) for at in range(11760)))) == {95: 1, 45: 11760}


def test_no_flood_in_the_journal_pushes_out_an_xid(events, journal):
    flood = [XID_45.format(at) for at in range(kernel_log.MAX_OF_A_KIND + 5)]
    other = ["pcieport 0000:00:01.0: AER: Corrected error received"] * (kernel_log.MAX_OF_A_KIND + 5)
    asked = journal(*(f"[{at:5}.000000] host kernel: {each}" for at, each in enumerate([XID_95, *flood, *other], 10)))
    assert numbers(events("Linux", first=500000)) == {95: 1, 45: kernel_log.MAX_OF_A_KIND}
    assert "SYSLOG_FACILITY=0" in asked.read_text(), "programs write to the journal's kernel lines under any name"


@pytest.mark.parametrize(
    ("line", "noise", "fact"),
    [
        (
            "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x25:0x65:1457)",
            "NVRM: nvAssertFailedNoLog: x",
            "reset_required",
        ),
        (
            "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed!",
            "NVRM: GPU 0000:5e:00.0: RmInitAdapter failed!",
            "reset_required",
        ),
        (LOST_AT_ONCE, "NVRM: GPU0 gpuHandleSanityCheckRegReadError_GH100: bad", "fallen_off_bus"),
        (SXID_FATAL, "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress", "nvswitch"),
    ],
)
def test_no_flood_pushes_out_a_line_that_decides(events, journal, line, noise, fact):
    flood = [line] + [noise] * (kernel_log.MAX_OF_A_KIND + 5)
    journal(*(f"[{at:5}.000000] host kernel: {each}" for at, each in enumerate(flood, 10)))
    assert 10.0 in [each["first"] for each in events("Linux", first=500000)[f"xid.{fact}"]["value"]]


def test_a_fatal_error_of_each_link_of_a_switch_is_told(events):
    found = events(SXID_FATAL, SXID_FATAL.replace("30", "31"), SXID_FATAL)["xid.nvswitch"]["value"]
    assert [(each["text"], each["count"]) for each in found] == [
        ("Fatal, Link 30 LTSSM Fault Up", 2),
        ("Fatal, Link 31 LTSSM Fault Up", 1),
    ]


def test_an_event_of_a_kind_tells_first_last_and_count(events):
    (found,) = events(XID_45.format(1), XID_45.format(2), XID_45.format(3))["xid.events"]["value"]
    assert (found["first"], found["time"], found["count"]) == (0.0, 2.0, 3)
    assert found["text"].endswith("Ch 00000003")


@pytest.mark.parametrize(
    "line",
    [
        f"tmpfs: Unknown parameter '{XID_95}'",
        f"tmpfs: Unknown parameter '{LOST_AT_ONCE}'",
        f"traps: x[7] trap invalid opcode in {SXID_FATAL}",
        "NVRM: x[4711]: segfault at 0 ip 7f0 sp 7ff error 4 in GPU marked for reset[7f00+1000]",
        "NVRM: x[4711]: segfault at 0 ip 7f0 sp 7ff error 4 in 0000:3b:00 fallen off the bus[7f00+1000]",
        "NVRM: x: page allocation failure: order:0, mode:0xcc0(GFP_KERNEL), cpuset=RmInitAdapter failed",
    ],
)
def test_what_a_program_gets_into_other_lines_is_no_event(events, line):
    facts = events(line)
    assert [facts[f"xid.{name}"]["value"] for name in xid.KINDS] == [[]] * len(xid.KINDS)


def test_a_memory_error_has_the_fate_that_the_same_minute_tells(events):
    of = "NVRM: Xid (PCI:0000:3b:00): {}, pid=7194, name=python3, {}"
    dbe, contained = of.format(48, "DBE"), of.format(94, "Contained: LTC DATA. RST: No, D-RST: Yes")
    quiet = ["usb 1-1: new device"] * 70
    told = events(dbe, contained, *quiet, dbe, *quiet, contained)["xid.events"]["value"]
    assert [(each["xid"], each["first"], each.get("contained")) for each in told] == [
        (48, 0.0, True),
        (94, 1.0, None),
        (48, 72.0, False),
    ]


def test_without_permission_it_says_what_it_needs(tree, collect, monkeypatch):
    tree({"/dev/": None})

    def refused(path, *rest):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "open", refused)
    facts = collect("xid")
    assert "needs root" in facts["xid.events"]["unread"]
    assert "needs root" in facts["xid.nvswitch"]["unread"]


def test_properties_of_a_record_are_not_messages():
    data = b"4,1,1000000,-;NVRM: hello\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"
    assert list(kernel_log._records(data)) == [(1, 1.0, "NVRM: hello")]


BAR = "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:61:00.0)"
REGION = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:"
GSP = "NVRM: installed in this system is not supported by open"


@pytest.mark.parametrize(
    ("lines", "texts"),
    [
        (("nvidia: probe of 0000:61:00.0 failed with error -1",), ["probe of 0000:61:00.0 failed"]),
        (("nvidia 0000:61:00.0: probe with driver nvidia failed with error -1",), ["probe with driver nvidia failed"]),
        ((REGION, BAR), ["BAR1 is 0M"]),
        ((REGION + r"\x0a" + BAR, "nvidia: probe of 0000:61:00.0 failed with error -1"), ["BAR1 is 0M", "probe of"]),
        (("NVRM: The NVIDIA GPU 0000:61:00.0 (PCI ID: 10de:1b82)", GSP), ["not supported by open"]),
        ((r"NVRM: The NVIDIA GPU 0000:61:00.0 (PCI ID: 10de:1b82)\x0a" + GSP,), ["not supported by open"]),
    ],
)
def test_a_gpu_that_the_driver_does_not_take_is_told(events, lines, texts):
    begin = "nvidia-nvlink: Nvlink Core is being initialized, major device number 511"
    found = events(begin, *lines, "NVRM: loading NVIDIA UNIX Open Kernel Module")["xid.reset_required"]["value"]
    assert [each["bdf"] for each in found] == ["0000:61:00.0"] * len(texts)
    assert all(words in each["text"] for words, each in zip(texts, found, strict=True))


@pytest.mark.parametrize(
    "line",
    [
        "nvidia: probe of x[4711]: segfault at 0 ip 00007f0000401136 sp 00007ffd1c7f2b50 error 4 in x[401000+1000]",
        "NVRM: x[4711]: segfault at 0 ip 0 sp 0 error 4 in BAR1 is 0M @ 0x0 (PCI:0000:61:00.0)[401000+1000]",
        "nvidia 0000:1b:00.0: vgaarb: changed VGA decodes: olddecodes=none,decodes=none:owns=none",
        "NVRM: The NVIDIA probe routine failed for 1 device(s).",
        GSP,
    ],
)
def test_a_line_that_names_no_refused_gpu_is_no_event(events, line):
    assert events(line)["xid.reset_required"]["value"] == []


def test_a_gpu_that_the_driver_takes_when_loaded_again_is_not_refused(events):
    begin = "nvidia-nvlink: Nvlink Core is being initialized, major device number 511"
    loaded = "NVRM: loading NVIDIA UNIX Open Kernel Module"
    found = events(begin, "nvidia: probe of 0000:61:00.0 failed with error -1", loaded, begin, loaded)
    assert found["xid.reset_required"]["value"] == []
