"""Generated kernel logs: hardware Xids of every number among thousands of programs' Xids. None is lost."""

import random

import pytest

from nodetune.audit import evaluate
from nodetune.checks import load
from nodetune.checks.shared.xids import HARDWARE
from nodetune.facts import document
from nodetune.probe import kernel_log, xid

GPUS = [f"0000:{at:02x}:00" for at in (0x1A, 0x3B, 0x5E, 0x9C)]
PROGRAMS = {
    13: "pid=4711, name=python3, Graphics SM Warp Exception on (GPC 9, TPC 5, SM 0): Out Of Range Address",
    31: "pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted",
    43: "pid=4711, name=python3, Ch 00000008",
    45: "pid=4711, name=python3, Ch 00000008",
}
ASKED = "GPU recovery action changed from 0x{} to 0x{} "
FAULTS = [
    *((number, "pid='<unknown>', name=<unknown>, Ch 00000008") for number in HARDWARE),
    (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"),
    (145, "RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x00000000 0x00000000)"),
    (154, ASKED.format("0 (None)", 1) + "(GPU Reset Required)"),
]
MEMORY = [(48, "DBE"), (94, "Contained: CE User Channel (0x9). RST: No, D-RST: No")] * 4
LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"
OTHERS = ("EDAC MC0: 1 CE memory read error", "usb 1-1: new device", f"tmpfs: Unknown parameter '{LOADED}'")


def line(chance, gpu, number, said):
    """MIG instances follow the address of a GPU."""
    instance = chance.choice(["", "", " GPU-I:05", " GPU-I:05 GPU-CI:00"])
    return f"NVRM: Xid (PCI:{gpu}{instance}): {number}, {said}"


def generated(seed, most):
    """The lines of a log, and the hardware Xids that stand at its end as (GPU, number)."""
    chance = random.Random(seed)
    program = chance.choice(GPUS)
    lines, standing = [], []
    events = [chance.choice([*FAULTS, *MEMORY]) for _ in range(chance.randint(0, 6))]
    places = sorted(chance.randint(0, most) for _ in events)
    for at in range(chance.randint(0, most) + 1):
        number, said = chance.choice(list(PROGRAMS.items()))
        lines.append(line(chance, program if chance.random() < 0.7 else chance.choice(GPUS), number, said))
        while places and places[0] <= at:
            places.pop(0)
            number, said = events.pop()
            gpu = chance.choice(GPUS)
            standing.append((len(lines), gpu, number))
            lines.append(line(chance, gpu, number, said))
            if number == 48 and chance.random() < 0.5:
                lines.append(line(chance, gpu, *MEMORY[1]))
        if chance.random() < 0.01:
            lines.append(chance.choice(OTHERS))
        if chance.random() < 1 / most:
            gpu = chance.choice(GPUS)
            lines.append(line(chance, gpu, 154, ASKED.format("1 (GPU Reset Required)", 0) + "(None)"))
            standing = [each for each in standing if each[1] != gpu]
        if chance.random() < 0.3 / most:
            lines.append(LOADED)
            standing = []
    return lines, {
        (f"{gpu}.0", number) for at, gpu, number in standing if number != 94 and not contained(at, gpu, number, lines)
    }


def contained(at, gpu, number, lines):
    """Whether this is a memory error with Xid 94, and no 95, of its GPU in the same minute."""
    near = "\n".join(
        each for place, each in enumerate(lines) if abs(seconds(place) - seconds(at)) <= 60 and gpu in each
    )
    return number in (48, 171, 172) and "): 94," in near and "): 95," not in near


def seconds(place):
    return place / 7


def told(lines):
    """(GPU, number) of each Xid in the finding about a log of these lines."""
    found = xid.scan([(seconds(at), text) for at, text in enumerate(lines)])
    return blamed({f"xid.{name}": {"value": value} for name, value in found.items()})


def blamed(facts):
    facts = {"pci.gpus": {"value": [f"{gpu}.0" for gpu in GPUS]}, **facts}
    finding = evaluate.judge(load("gpu-xid-hardware"), document.from_data({"host": "gpu1", "facts": facts}))
    words = {gpu: " ".join(seen) if isinstance(seen, list) else str(seen) for gpu, seen in finding.subjects.items()}
    return {(gpu, number) for gpu, said in words.items() for number, _ in FAULTS if f"Xid {number} " in said}


def lost(seeds, most):
    logs = ((seed, *generated(seed, most)) for seed in seeds)
    return {seed: standing ^ seen for seed, lines, standing in logs if (seen := told(lines)) != standing}


def test_no_hardware_xid_is_lost_among_those_of_programs():
    assert lost(range(150), 500) == {}


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("part", range(20))
def test_no_hardware_xid_is_lost_in_ten_thousand_logs(part):
    assert lost(range(part * 500, part * 500 + 500), 5000) == {}


@pytest.mark.parametrize("seed", range(5))
def test_no_hardware_xid_is_lost_where_the_buffer_wrapped(seed, tree, collect, monkeypatch):
    """The older half of the log is in the journal only."""
    lines, standing = generated(seed, 3000)
    timed = [(seconds(at), text) for at, text in enumerate(lines)]
    older, newer = timed[: len(timed) // 2], list(enumerate(timed))[len(timed) // 2 :]
    tree({"/dev/kmsg": "".join(f"4,{at + 1},{time * 1e6:.0f},-;{text}\n" for at, (time, text) in newer)})
    monkeypatch.setattr(kernel_log, "_journal", lambda: older)
    assert blamed(collect("xid")) == standing


def test_the_work_for_a_log_grows_as_its_lines_do(monkeypatch):
    """Counted in matches of patterns, and not measured in time."""

    class Counted:
        def __init__(self, pattern):
            self.pattern, self.calls = pattern, 0

        def match(self, text):
            self.calls += 1
            return self.pattern.match(text)

        search = match

    counted = {name: Counted(getattr(xid, name)) for name in ("XID", "SXID", "FALLEN", "WITHOUT_XID", "NAMED")}
    for name, pattern in counted.items():
        monkeypatch.setattr(xid, name, pattern)

    def work(lines):
        before = sum(each.calls for each in counted.values())
        xid.scan([(seconds(at), text) for at, text in enumerate(lines)])
        return sum(each.calls for each in counted.values()) - before

    lines, _ = generated(1, 2000)
    assert work(lines * 10) <= 10 * work(lines)
