"""Machines for developers, numbers 1 to 39; tests take 40 and above.

python -m tests.machines template           make the image and the frozen machine, unless they are there
python -m tests.machines up 1 [2 …]         new machines, resumed; --cold boots them through GRUB
python -m tests.machines ssh 1 [COMMAND …]  log in as root
python -m tests.machines reboot 1 [2 …]     reboot from inside; cut: no power any more; on: power again
python -m tests.machines ls                 what runs
python -m tests.machines inventory FILE     all that run, for nodetune -i and ansible -i
python -m tests.machines down [1 …]         stop these, or all of 1 to 39, and drop their disks
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.machines import inventory, place, template
from tests.machines.machine import Machine

DEVELOPERS = range(1, 40)
AT_ONCE = 2


def main(words: list[str]) -> int:
    command, *rest = words or ["help"]
    if command not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        COMMANDS[command](*rest)
    except place.FleetError as error:
        print(f"fleet: {error}", file=sys.stderr)
        return 1
    return 0


def _number(word: str) -> int:
    if not word.isdigit() or int(word) not in DEVELOPERS:
        raise place.FleetError(f"{word!r} is no machine: give numbers from 1 to 39")
    return int(word)


def _running() -> list[Machine]:
    return [found for number in DEVELOPERS if (found := Machine.find(number))]


def _each(action, machines: list[Machine]) -> None:
    def timed(machine: Machine) -> str:
        began = time.monotonic()
        action(machine)
        return f"{machine.name} {machine.address} {time.monotonic() - began:.1f} s"

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in pool.map(timed, machines):
            print(line, flush=True)


def make_template(*_: str) -> None:
    print(template.ensure().folder)


def up(*words: str) -> None:
    mode = "cold" if "--cold" in words else "resume"
    numbers = [_number(word) for word in words if word != "--cold"]
    made = template.ensure()
    _each(lambda machine: machine.start(mode), [Machine(number, made) for number in numbers])


def _on_those_given(action):
    def command(*words: str) -> None:
        _each(action, [_find(word) for word in words])

    return command


def _find(word: str) -> Machine:
    if found := Machine.find(_number(word)):
        return found
    raise place.FleetError(f"machine {word} does not exist: python -m tests.machines up {word}")


def ssh(*words: str) -> None:
    number, *command = words or [""]
    machine = _find(number)
    os.execvp("ssh", ["ssh", *machine.ssh_options(), f"root@{machine.address}", *command])


def ls(*_: str) -> None:
    for machine in _running():
        print(machine.number, machine.address, "running" if machine.running() else "without power")


def write_inventory(*words: str) -> None:
    if not (found := _running()):
        raise place.FleetError("no machine runs: python -m tests.machines up 1")
    print(inventory.write(Path(words[0] if words else "inventory.yml"), found))


def down(*words: str) -> None:
    for machine in [_find(word) for word in words] or _running():
        machine.stop()


COMMANDS = {
    "template": make_template,
    "up": up,
    "ssh": ssh,
    "reboot": _on_those_given(Machine.reboot),
    "cut": _on_those_given(Machine.power_cut),
    "on": _on_those_given(Machine.power_on),
    "ls": ls,
    "inventory": write_inventory,
    "down": down,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
