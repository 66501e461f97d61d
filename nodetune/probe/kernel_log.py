"""The kernel's log since boot: `kernel_log.*`, and the lines for other families (`lines`).

It reads the kernel's buffer; older lines of this boot come from the journal.
"""

import collections
import errno
import functools
import os
import re

from . import hardware_log, nvidia_lines, read

KMSG = "/dev/kmsg"
MAX_RECORD = 8192
MAX_RECORDS = 200000
MAX_READS = 10 * MAX_RECORDS
"""Of the buffer, if the kernel writes as fast as we read."""

MAX_EVENTS = 200
MAX_OF_A_KIND = 20000
KIND = re.compile(r"EDAC \S+ (?:\d+ )?\w+|(?:mlx5_core|efa|nvme|pcieport) \S+|[A-Za-z-]*")
"""Of the journal, the newest lines of each kind are kept: no flood of one event, device or driver pushes out another.

All patterns match at the begin of a line. Some lines begin with a program's name (15 bytes), such as
`NAME[4711]: segfault … in FILE[…]` and `NAME: page allocation failure: …,cpuset=GROUP`: no pattern lets them pass.
"""

OOM = re.compile(r"Out of memory(?: \(oom_kill_allocating_task\))?: Kill(?:ed)? process (\d+) \((.*?)\)")
"""The kernel logs `Memory cgroup out of memory` if only a job's own limit was reached."""
CONSTRAINT = re.compile(r"oom-kill:constraint=CONSTRAINT_(\w+)")
HUNG = re.compile(r"INFO: task ([^\[]{1,60}:\d+) (?:<[^\[]*> )?blocked (?:in I/O wait )?for more than (\d+) seconds")
STALLED = re.compile(r"(?:rcu: )?INFO: rcu_\w+ (?:(self-detected) stall on CPU|detected stalls on CPUs/tasks)")
STALLED_CPU = re.compile(r"(?:rcu: )?(?:\s|\\x09)*(\d+)-[^:\s]{3,5}: \(")
OOPS_CAUSE = re.compile(
    r"BUG: (?:kernel NULL pointer dereference, address: \w+|unable to handle (?:kernel [\w ]+ at|page fault for address:) \w+)"
    r"|kernel BUG at [^\s\[,]+:\d+!|Unable to handle kernel [\w ]+ at virtual address \w+"
)
OOPS = re.compile(
    r"(?:Oops: |Internal error: )?([A-Z]?[a-z][^\[,:]{1,50}(?:, (?:probably|maybe) for [\w -]{1,40} 0x\w+)?): \w{1,16} \[#\d+\]"
)
"""The kernel counts its oopses in `[#1]`. The line before names the cause of most. WARNING and `traps:` are something else."""
MISMATCH = re.compile(r"(\w{1,55}): disagrees about version of symbol (\w{1,127})$")
MACHINE_CHECK = re.compile(
    r"mce: \[Hardware Error\]: CPU (\d+): Machine Check(?: Exception)?: \w+ Bank (\d+): (\w{16})$"
)
UNCORRECTED = 1 << 61
"""Bit of a bank's status register (MCi_STATUS.UC)."""
DECODED = re.compile(
    r"\[Hardware Error\]: (System Fatal error|Uncorrected, software \w+ error|Deferred error, no action required)"
)
FIRMWARE_SEVERITY = re.compile(r"\{(\d+)\}\[Hardware Error\]: event severity: (\w+)")
FIRMWARE_SECTION = re.compile(r"\{(\d+)\}\[Hardware Error\]:\s+section[_ ]type: (.+)$")
"""Errors that the firmware reports. Those of an earlier boot (BERT) have no number in braces."""
CONSUMED = re.compile(r"mce: Uncorrected hardware memory error in user-access at ([0-9a-f]+)")
POISONED = re.compile(
    r"Memory failure: 0x([0-9a-f]+): (?:Sending SIGBUS to|Killing) .{1,32} due to hardware memory corruption"
)
INJECTED = re.compile(r"Injecting memory failure (?:at|for) (?:pfn|page) 0x([0-9a-f]+)")
"""A program used memory that had lost its data: the byte's address, and the number of its page (4 KiB).

Tests log the same about a page, after they log that they inject the error. A page that the kernel offlines softly
ends no program. `MCE: Killing` also comes from pages that are poisoned on purpose (userfaultfd).
"""
JOURNAL = re.compile(r"\[\s*(\d+\.\d+)\] \S+ kernel: (.*)$")
EDAC = re.compile(r"(EDAC (?:MC\d+: (?:UE page 0x|(?:[1-9]\d* )?UE (?:[^\[:]* )?on )|DEVICE\d+: UE: )[^(]*)")
NVME = re.compile(
    r"nvme (nvme\d+): (I/O (?:tag )?\d.*timeout, (?:aborting|reset controller|disable controller|completion polled)"
    r"|controller is down; will reset|Device not ready; aborting|Disabling device after reset failure"
    r"|Removing after probe failure)"
)

XFS = re.compile(
    r"XFS \((\S+)\): (?:(Mounting V\d)|(Unmounting Filesystem|log mount failed)"
    r"|(\S.{1,60}?)(?: \(0x\w+\))? [dD]etected\b.*Shutting down filesystem)"
)


def collect(names, step):
    try:
        found, _ = lines(step)
    except OSError as problem:
        reason = unread(problem)
        for name in FACTS:
            yield name, reason
        return
    for name, read_from in FACTS.items():
        told = read_from(found)
        yield name, read.value(told if isinstance(told, dict) else list(told)[-MAX_EVENTS:])


def unread(problem):
    denied = problem.errno in (errno.EACCES, errno.EPERM)
    return read.unread("the kernel log: " + (read.why(problem) if denied else str(problem.strerror or problem)))


def oom_kills(found):
    """Yield the processes that the kernel killed because the whole host ran out of memory.

    `scope` is NONE for that; CPUSET or MEMORY_POLICY if a process may use only some NUMA nodes; older kernels do not
    report it (null).
    """
    scope = None
    for seconds, text in found:
        constraint, killed = CONSTRAINT.match(text), OOM.match(text)
        if constraint:
            scope = constraint.group(1)
        elif killed:
            yield {"time": seconds, "pid": int(killed.group(1)), "process": killed.group(2)[:64], "scope": scope}
            scope = None


def hung_tasks(found):
    """Yield the tasks that waited too long in the kernel, as `name:pid`."""
    for seconds, text in found:
        hung = HUNG.match(text)
        if hung:
            yield {"time": seconds, "task": hung.group(1)[:64], "seconds": int(hung.group(2))}


def rcu_stalls(found):
    """Yield the stalls of CPUs that held up the kernel's read-copy-update; `cpu` is null if the log does not name it.

    A stall that no CPU detected itself, and for which none is named, may be that of a task that did not get a CPU.
    """
    stall = None
    for seconds, text in found:
        named = STALLED_CPU.match(text) if stall else None
        if named:
            yield {"time": stall["time"], "cpu": int(named.group(1))}
            stall = None
            continue
        begins = STALLED.match(text)
        if begins:
            if stall and stall["itself"]:
                yield {"time": stall["time"], "cpu": None}
            stall = {"time": seconds, "itself": begins.group(1) is not None}
    if stall and stall["itself"]:
        yield {"time": stall["time"], "cpu": None}


def oopses(found):
    """Yield the faults of the kernel itself that it survived (oops), each once, by its cause if the log names it."""
    cause = None
    for seconds, text in found:
        caused, counted = OOPS_CAUSE.match(text), OOPS.match(text)
        if not caused and not counted:
            continue
        if cause and caused:
            yield cause
        event = {"time": seconds, "text": (caused.group() if caused else counted.group(1))[:120]}
        if caused:
            cause = event
        else:
            yield cause or event
            cause = None
    if cause:
        yield cause


def symbol_mismatches(found):
    """Return kernel module → when it was not loaded, and the last symbol for which it was built against another version."""
    told = {}
    for seconds, text in found:
        mismatch = MISMATCH.match(text)
        if mismatch:
            told[mismatch.group(1)] = {"time": seconds, "symbol": mismatch.group(2)}
    return told


def machine_checks(found):
    """Yield the uncorrected hardware errors."""
    severity, pages = {}, set()
    for seconds, text in found:
        page = _lost_page(text, pages)
        if page is not None:
            yield {"time": seconds, "text": "memory at 0x{:x} lost its data while a program used it".format(page << 12)}
        memory = EDAC.match(text)
        if memory:
            yield {"time": seconds, "text": memory.group(1).strip()[:120]}
        if "[Hardware Error]" not in text:
            continue
        check, decoded = MACHINE_CHECK.match(text), DECODED.match(text)
        told, section = FIRMWARE_SEVERITY.match(text), FIRMWARE_SECTION.match(text)
        if check and int(check.group(3), 16) & UNCORRECTED:
            yield {"time": seconds, "text": "CPU {} bank {}: {}".format(*check.groups())}
        elif decoded:
            yield {"time": seconds, "text": decoded.group(1)}
        elif told:
            severity[told.group(1)] = told.group(2)
        elif section and severity.get(section.group(1)) in ("recoverable", "fatal"):
            yield {"time": seconds, "text": "{} ({})".format(section.group(2)[:64], severity[section.group(1)])}


def _lost_page(text, known):
    """Return the number of a page that a program used after it had lost its data, once; None for any other line."""
    injected = INJECTED.match(text)
    if injected:
        known.add(int(injected.group(1), 16))
    consumed, poisoned = CONSUMED.match(text), POISONED.match(text)
    if not consumed and not poisoned:
        return None
    page = int(consumed.group(1), 16) >> 12 if consumed else int(poisoned.group(1), 16)
    if page in known:
        return None
    known.add(page)
    return page


def nvme(found):
    """Yield the driver's messages about local NVMe controllers that did not answer in time."""
    for seconds, text in found:
        event = NVME.match(text)
        if event:
            yield {"time": seconds, "controller": event.group(1), "text": event.group(2)[:200]}


def xfs_shutdowns(found):
    """Return the XFS file systems that stopped after an error and are still mounted: the device, and the last reason."""
    stopped, unmounted = {}, set()
    for seconds, text in found:
        event = XFS.match(text)
        if not event:
            continue
        device, mounted, gone, reason = event.groups()
        if reason and device not in unmounted:
            stopped[device] = {"time": seconds, "device": device, "text": reason}
        elif mounted or gone:
            stopped.pop(device, None)
            unmounted.discard(device) if mounted else unmounted.add(device)
    return list(stopped.values())


FACTS = {
    "oom_kills": oom_kills,
    "hung_tasks": hung_tasks,
    "machine_checks": machine_checks,
    "nvme": nvme,
    "xfs_shutdowns": xfs_shutdowns,
    "nics": hardware_log.nics,
    "pcie_ports": hardware_log.ports,
    "lockups": hardware_log.lockups,
    "rcu_stalls": rcu_stalls,
    "oopses": oopses,
    "symbol_mismatches": symbol_mismatches,
}


@functools.lru_cache(maxsize=1)
def lines(step):
    """Return (seconds since boot, message) of every kernel line, and the source. Raise OSError.

    Families in one child have the same `step`, so the log is read once for all of them.
    """
    step(KMSG)
    try:
        records = _kmsg()
    except OSError:
        step("journalctl")
        found = _journal()
        if not found:
            raise
        return found, "journal"
    found = [(seconds, text) for _, seconds, text in records]
    if not records or records[0][0] == 0:
        return found, "kernel buffer"
    step("journalctl")
    earlier = [line for line in _journal() if line[0] < found[0][0]]
    return earlier + found, "journal and kernel buffer" if earlier else "kernel buffer"


def _kmsg():
    """Return (sequence number, seconds, message) of the newest records of the kernel's buffer. Raise OSError."""
    handle = os.open(read.ROOT + KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    records, rest = collections.deque(maxlen=MAX_RECORDS), b""
    try:
        for _ in range(MAX_READS):
            try:
                data = os.read(handle, MAX_RECORD)
            except OSError as problem:
                if problem.errno == errno.EPIPE:  # overwritten while we were reading: the next read continues after it
                    continue
                if problem.errno == errno.EAGAIN:
                    break
                raise
            if not data:
                break
            whole, _, rest = (rest + data).rpartition(b"\n")  # the kernel gives whole records, a saved log does not
            records.extend(_records(whole))
    finally:
        os.close(handle)
    records.extend(_records(rest))
    return records


def _records(data):
    """Yield the records in the data: `6,123,4567890,-;message`, then lines of properties that begin with a space."""
    for line in data.decode("utf-8", "backslashreplace").split("\n"):
        head, semicolon, message = line.partition(";")
        fields = head.split(",")
        if not semicolon or len(fields) < 3 or not all(field.isdigit() for field in fields[:3]):
            continue
        # The priority is facility * 8 + level: what programs write to the kernel's log has another facility than 0.
        yield int(fields[1]), int(fields[2]) / 1e6, message if int(fields[0]) < 8 else ""


def _journal():
    """Return the journal's kernel lines of this boot; empty without a journal or permission.

    It is read from its end, so that what does not fit into the time is the oldest. Lines that programs wrote to the
    kernel's buffer are there, too, under any name: only the facility separates them (journald-kmsg.c of systemd).
    """
    tool = read.find_tool("journalctl")
    if tool is None:
        return []
    command = [tool, "-k", "-b", "-q", "-r", "--no-pager", "-o", "short-monotonic", "SYSLOG_FACILITY=0"]
    found, kept, taken = [], collections.Counter(), False
    try:
        for line in read.lines(command):
            record = JOURNAL.match(line)
            if record:
                kind = nvidia_lines.kind(record.group(2)) or KIND.match(record.group(2)).group()
                kept[kind] += 1
                taken = kept[kind] <= MAX_OF_A_KIND
                if taken:
                    found.append((float(record.group(1)), record.group(2)))
            elif taken and line.startswith(" "):  # a record of several lines
                found[-1] = found[-1][0], found[-1][1] + " " + line.strip()
    except OSError:
        return []
    return found[::-1]
