"""Kernel arguments: those of the running kernel, and those that the next boot will have.

`cmdline.running` is the whole; `cmdline.running.NAME` and `cmdline.installed.NAME` are single arguments: the value,
an empty text for a bare flag, the last one where an argument is given twice (as the kernel does).
"""

import os
import re
import shlex

from . import read

GRUB_CONFIGS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
BLS_FOLDER = "/boot/loader/entries"
KERNEL_CMDLINE = "/etc/kernel/cmdline"


def collect(names, step):
    running = read.file_fact("/proc/cmdline", parse)
    yield "running", running
    step("boot loader configuration")
    installed = installed_arguments()
    yield "installed", installed
    for name in names:
        side, _, argument = name.partition(".")
        if not argument:
            continue
        whole = running if side == "running" else installed
        yield name, _single(whole, argument, with_file=side == "installed")


def parse(content):
    """`a=1 b a=2 c="x y"` → {"a": "2", "b": "", "c": "x y"}: an argument given twice keeps its last value."""
    try:
        parts = shlex.split(content)
    except ValueError:
        parts = content.split()
    ours = parts[: parts.index("--")] if "--" in parts else parts  # what follows belongs to init
    return {name: setting for name, _, setting in (part.partition("=") for part in ours)}


def _single(whole, argument, with_file):
    if "value" not in whole:
        return whole
    arguments = whole["value"]["arguments"] if with_file else whole["value"]
    if argument not in arguments:
        return read.absent("not on the kernel command line")
    found = arguments[argument]
    return read.value({"value": found, "file": whole["value"]["file"]} if with_file else found)


def installed_arguments():
    """What the boot loader will pass: the first entry of a grub.cfg, or the newest boot loader entry."""
    problem = None
    for path in GRUB_CONFIGS:
        try:
            found = _from_grub(read.text(path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as failed:
            problem = read.unread("{}: {}".format(path, read.why(failed)))
            continue
        if found is not None:
            return read.value({"arguments": found, "file": path})
    entry = _from_entries()
    return entry or problem or read.absent("no boot loader configuration on this host")


def _from_grub(content):
    found = re.search(r"^\s*linux(?:16|efi)?\s+\S+[ \t]*(.*)$", content, re.M)
    return parse(found.group(1)) if found else None


def _from_entries():
    try:
        names = [name for name in read.names_in(BLS_FOLDER) if name.endswith(".conf") and "rescue" not in name]
        if not names:
            return None
        path = os.path.join(BLS_FOLDER, names[-1])
        options = re.findall(r"^options\s+(.*)$", read.text(path), re.M)
    except OSError as failed:
        return read.unread("{}: {}".format(BLS_FOLDER, read.why(failed)))
    options = " ".join(options).replace("$kernelopts", read.text_or(KERNEL_CMDLINE))
    return read.value({"arguments": parse(options), "file": path})
