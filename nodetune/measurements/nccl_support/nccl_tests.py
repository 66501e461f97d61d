"""Run the programs of nccl-tests, if a site has built them, and read their output.

One process with all GPUs of this node. It reads their JSON (-J, since 2.16) or their table.
https://github.com/NVIDIA/nccl-tests
"""

import json
import os
import tempfile

from nodetune.measurements.cuda import gpus
from nodetune.measurements.host import external_tool
from nodetune.measurements.host import report as reporting
from . import nccl_log, nccl_ops, nccl_results, nccl_sizes

TYPES = {"float32": "float", "bfloat16": "bfloat16"}
ENDING = 2.0
"""Seconds before the deadline at which a program is ended."""


def run(asked, options, report):
    """Record the result of each program. `asked`: the options of the nccl measurement with their defaults."""
    if len(report.hosts) > 1:
        raise reporting.SkipError("nccl-tests between nodes need MPI: measure them without --nccl-tests")
    free = known(report)
    there = list(free)
    chosen = there if options.get("gpus") is None else ["GPU{}".format(each) for each in options["gpus"]]
    if not there:
        raise reporting.SkipError("NVML reports no unpartitioned GPU on this host")
    if len(chosen) < 2:
        raise reporting.SkipError("only one GPU: NCCL has no data to move between GPUs")
    if chosen != there:
        os.environ.update(CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=",".join(name[3:] for name in chosen))
    if asked.get("nccl"):
        folder = asked["nccl"] if os.path.isdir(asked["nccl"]) else os.path.dirname(asked["nccl"])
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
    subject = "{} GPUs".format(len(chosen)) if chosen == there else "+".join(chosen)
    buffers = 3 if asked["check"] else 2  # a smallest size that does not fit is measured beyond the end of its buffers
    sizes = nccl_sizes.fitting(asked["sizes"], nccl_sizes.least(free.get(name) for name in chosen), buffers, report)
    for name in asked["collectives"]:
        program = os.path.join(asked["nccl_tests"], name + "_perf")
        with gpus.apart(report, subject, name):
            if not os.access(program, os.X_OK):
                raise reporting.SkipError("no program {}".format(program))
            _one(
                program,
                name,
                dict(asked, sizes=sizes, repeats=options.get("repeats") or 1),
                subject,
                len(chosen),
                report,
            )


def known(report):
    """Return {GPU: free bytes} of the GPUs of this host that are not partitioned, in order."""
    whole = [seen for seen in gpus.known(report).values() if not seen.partitioned()]
    return {seen.name: seen.free_memory() for seen in sorted(whole, key=lambda seen: int(seen.name[3:]))}


def _one(program, name, asked, subject, count, report):
    """Run a program `repeats` times over all sizes."""
    found, help_text = {}, external_tool.run([program, "-h"], report.left() - ENDING, ok=range(256))
    with tempfile.TemporaryFile() as log, tempfile.TemporaryFile() as answer:
        os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS=nccl_log.SUBSYSTEMS, NCCL_DEBUG_FILE=_path(log))
        for low, high, step in ranges(asked["sizes"]):
            for repeat in range(asked["repeats"]):
                report.step("{} of {} to {} bytes, repeat {}".format(os.path.basename(program), low, high, repeat + 1))
                command = [program, "-b", str(low), "-e", str(high), "-f", str(step), "-g", str(count)]
                command += ["-n", str(asked["iterations"]), "-w", str(asked["warmup"]), "-c", str(int(asked["check"]))]
                command += ["-d", TYPES[asked["dtype"]]] + (["-J", _path(answer)] if "-J" in help_text else [])
                answer.truncate(0)
                printed = external_tool.run(command, report.left() - ENDING, pass_fds=(log.fileno(), answer.fileno()))
                answer.seek(0)
                for case, seconds, wrong in read(answer.read().decode("utf-8", "replace"), printed, name):
                    found.setdefault(case, []).append((seconds, wrong))
        reader = nccl_log.Log()
        reader.feed(log.read().decode("utf-8", "backslashreplace"))
    _tell(found, name, asked, subject, count, reader, report)


def _path(file):
    """Return a name under which a program that inherits the file can open it; nothing is left behind."""
    return "/proc/self/fd/{}".format(file.fileno())


def _tell(found, name, asked, subject, count, log, report):
    path = nccl_log.merged([log.path()])
    for (size, in_place), results in found.items():
        case = {"name": name, "size": size, "in_place": in_place}
        wrong = max(each for _, each in results)
        if wrong:
            report.failed("{}: {} elements of {} bytes, by nccl-tests".format(gpus.WRONG, wrong, size), subject, name)
        elif asked["in_place"] in (None, in_place):
            chosen = log.chosen(nccl_ops.LOGGED.get(name), nccl_ops.share(name, size, count))
            about = {"nccl": log.version, "program": "nccl-tests", "gpus": count, "nodes": 1, "dtype": asked["dtype"]}
            about.update(
                nccl_results.described(case, path, chosen), iterations=asked["iterations"], checked=asked["check"]
            )
            nccl_results.record(report, subject, case, [seconds for seconds, _ in results], count, about)


def ranges(sizes):
    """Return (smallest, largest, factor) of runs that together cover the sizes."""
    sizes = sorted({int(size) for size in sizes})
    step = sizes[1] // sizes[0] if len(sizes) > 1 else 2
    if all(before * step == after for before, after in zip(sizes, sizes[1:])):
        return [(sizes[0], sizes[-1], step)]
    return [(size, size, 2) for size in sizes]


def read(answer, printed, name):
    """Return ((size, in place), seconds, wrong elements) of each line. Raise MeasurementError if there are none."""
    found = from_json(answer) if answer.strip() else from_table(printed)
    kept = [each for each in found if each[0][0] and (not each[0][1] or name in nccl_ops.IN_PLACE)]
    if not kept:
        raise reporting.MeasurementError(
            "{}_perf printed no result: {}".format(name, external_tool.last_line(printed.encode("utf-8")))
        )
    return kept


def from_json(text):
    try:
        for result in json.loads(text)["results"]:
            for kind in ("out_of_place", "in_place"):
                one = result[kind]
                yield (result["size"], kind == "in_place"), one["time"] / 1e6, _wrong(one["nwrong"])
    except (ValueError, KeyError, TypeError) as problem:
        raise reporting.MeasurementError("the JSON of nccl-tests cannot be read: {!r}".format(problem))


def from_table(text):
    """Read lines of size, count, type and more, then two groups of columns, out of place and in place.

    Each group is time (µs), algbw, busbw, wrong.
    """
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 11 and words[0].isdigit() and words[1].isdigit():
            for start, in_place in ((-8, False), (-4, True)):
                seconds = float(words[start]) / 1e6
                yield (int(words[0]), in_place), seconds, _wrong(words[start + 3])


def _wrong(value):
    """Parse `0`, `0.0`, `N/A` (not checked) or a count."""
    try:
        return max(0, int(float(value)))
    except (TypeError, ValueError):
        return 0
