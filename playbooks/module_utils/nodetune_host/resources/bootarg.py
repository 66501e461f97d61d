"""An argument of the installed kernels if grubby manages them (the RHEL family): {"name", "value"}.

value: null removes the argument, "" writes the bare name. State: the values of the argument, a list (empty: not
there) if all kernels agree, else {kernel: list}. If they agree, the kernels are left out so that a kernel update
in between does not look like a change. Before a change it is {"values": that, "files": {path: text}} of the files that
grubby edits: it puts an argument back at the end of its line, behind those that tuned adds.
"""

import glob
import os
import re

from .. import atomic_file, boot_space, command
from ..problem import ChangeError, why

ENTRIES = "/boot/loader/entries/*.conf"
FILES = (ENTRIES, "/etc/kernel/cmdline", "/etc/default/grub")
MAX_BYTES = 64 << 10


def read(change):
    return {
        "values": agreed(_by_kernel(change)),
        "files": {path: _text(path) for each in FILES for path in glob.glob(each)},
    }


def wanted(change, now):
    value = change["value"]
    if re.search(r"[\s\"']", change["name"] + (value or "")):
        raise ChangeError(f"{label(change)}: blanks and quotes are not supported")
    return [] if value is None else [value]


def same(one, other):
    one, other = _values(one), _values(other)
    if isinstance(one, dict) and isinstance(other, dict):  # kernels come and go
        both = one.keys() & other.keys()
        return bool(both) and all(one[kernel] == other[kernel] for kernel in both)
    return one == other


def put(change, state):
    for path in glob.glob(ENTRIES)[:1]:  # grubby writes each entry again, and succeeds where it could not
        boot_space.require("grubby", path)
    values = _values(state)
    if isinstance(values, dict):
        there = _by_kernel(change)
        values = {kernel: each for kernel, each in values.items() if kernel in there} or values
    for argv in updates(change, values):
        command.run(argv)
    for path, text in sorted(_files(state).items()):
        _bring_back(path, text, change["name"])


def show(change, state):
    values = _values(state)
    by_kernel = values if isinstance(values, dict) else {"all kernels": values}
    written = {kernel: " ".join(_written(change["name"], values)) for kernel, values in by_kernel.items()}
    return "".join(f"{kernel}: {text or 'not there'}\n" for kernel, text in written.items())


def label(change):
    return "kernel argument " + change["name"]


def parse(info, name):
    """Parse the output of `grubby --info=ALL` into {kernel: values of the argument in their order}."""
    found, kernel = {}, None
    for line in info.splitlines():
        key, _, text = line.partition("=")
        text = text.strip()
        text = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
        if key == "index":
            kernel = None
        elif key == "kernel":
            kernel = text
            found[kernel] = []
        elif key == "args" and kernel:
            found[kernel] = [each.partition("=")[2] for each in text.split() if each.partition("=")[0] == name]
    return found


def agreed(by_kernel):
    """Return the values that all kernels share, or those of each. Raise ChangeError if there is no kernel."""
    if not by_kernel:
        raise ChangeError("grubby lists no kernels: check `grubby --info=ALL`")
    values = list(by_kernel.values())
    return values[0] if all(each == values[0] for each in values) else by_kernel


def updates(change, state):
    """Return the commands for a state. ALL also applies to kernels that are installed later; exceptions follow."""
    name = change["name"]
    by_kernel = state if isinstance(state, dict) else {}
    usual = by_kernel[_newest(by_kernel)] if by_kernel else state
    exceptions = [(kernel, values) for kernel, values in by_kernel.items() if values != usual]
    return [_update(kernel, name, values) for kernel, values in [("ALL", usual), *exceptions]]


def _update(kernel, name, values):
    argv = ["grubby", f"--update-kernel={kernel}", f"--remove-args={name}"]
    return [*argv, "--args=" + " ".join(_written(name, values))] if values else argv


def _written(name, values):
    return [f"{name}={value}" if value else name for value in values]


def _by_kernel(change):
    return parse(command.run(["grubby", "--info=ALL"]), change["name"])


def _newest(kernels):
    """Return the newest kernel that is not for rescue: what is set for ALL counts for later kernels, too."""
    return max(kernels, key=lambda each: ("rescue" not in each, [int(part) for part in re.findall(r"\d+", each)]))


def _values(state):
    return state["values"] if isinstance(state, dict) and "files" in state else state


def _files(state):
    return state.get("files", {}) if isinstance(state, dict) and "values" in state else {}


def _text(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as opened:
        return opened.read(MAX_BYTES)


def _bring_back(path, text, name):
    """Write the text of before into a file that differs from it in nothing but the argument and the order of words."""
    try:
        now = _text(path)
        if now != text and _other_words(now, name) == _other_words(text, name):
            about = os.stat(path)
            content = text.encode("utf-8", "surrogateescape")
            atomic_file.replace(os.path.realpath(path), content, about.st_mode & 0o7777, about.st_uid, about.st_gid)
    except FileNotFoundError:
        return  # of a kernel that was removed
    except OSError as error:
        raise ChangeError(f"{path} has its arguments in another order, and cannot be written: {why(error)}") from None


def _other_words(text, name):
    return sorted(word for word in re.split(r"[\s\"]+", text) if word.partition("=")[0] != name)
