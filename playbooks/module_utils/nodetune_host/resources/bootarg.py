"""An argument of the installed kernels if grubby manages them (the RHEL family): {"name", "value"}.

value: null removes the argument, "" writes the bare name. State: the values of the argument, a list (empty: not
there) if all kernels agree, else {kernel: list}. If they agree, the kernels are left out so that a kernel update
in between does not look like a change.
"""

import re

from .. import command
from ..problem import ChangeError


def read(change):
    return agreed(parse(command.run(["grubby", "--info=ALL"]), change["name"]))


def wanted(change, now):
    value = change["value"]
    if re.search(r"[\s\"']", change["name"] + (value or "")):
        raise ChangeError(f"{label(change)}: blanks and quotes are not supported")
    return [] if value is None else [value]


def put(change, state):
    for argv in updates(change, state):
        command.run(argv)


def show(change, state):
    by_kernel = state if isinstance(state, dict) else {"all kernels": state}
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
    usual = next(iter(by_kernel.values()), state)
    exceptions = [(kernel, values) for kernel, values in by_kernel.items() if values != usual]
    return [_update(kernel, name, values) for kernel, values in [("ALL", usual), *exceptions]]


def _update(kernel, name, values):
    argv = ["grubby", f"--update-kernel={kernel}", f"--remove-args={name}"]
    return [*argv, "--args=" + " ".join(_written(name, values))] if values else argv


def _written(name, values):
    return [f"{name}={value}" if value else name for value in values]
