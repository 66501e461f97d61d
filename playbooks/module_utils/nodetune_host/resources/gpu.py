"""Settings of GPUs through NVML: {"setting", "gpus": [index, …], "value"}; as a program, it sets them at boot.

State: {"0": {"uuid", "value"}, …}. Settings and their values:
  persistence_mode, accounting_mode, mig_mode   enabled, disabled
  compute_mode                                  default, exclusive_process, prohibited
  ecc_mode                                      enabled, disabled: the mode after the next reset or reboot
  power_limit                                   default, or milliwatts
  applications_clocks                           max, or [memory MHz, SM MHz]
  locked_clocks, locked_memory_clocks           none, or [lowest MHz, highest MHz]
  mig_devices                                   {"1g.18gb": 7} or [["1g.18gb", 7]]
"""

import json
import sys

from .. import clocks, mig, nvml, settings
from ..problem import ChangeError

SETTINGS_FILE = "/etc/nodetune/gpu.conf"
MIG_SECONDS = 120
ON_OFF = {0: "disabled", 1: "enabled"}
COMPUTE = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}


class Choice:
    """A setting that is one of a few words."""

    def __init__(self, get, set_, words, pick=lambda answer: answer):
        self.get, self.set, self.words, self.pick = get, set_, words, pick

    def read(self, gpu):
        answer = self.pick(gpu(self.get))
        return self.words.get(answer, f"unknown ({answer})")

    def resolve(self, gpu, value):
        if value not in self.words.values():
            raise ChangeError(f"{value!r} is not one of {', '.join(self.words.values())}")
        return value

    def put(self, gpu, state):
        gpu(self.set, {word: number for number, word in self.words.items()}[state])


class PowerLimit:
    def read(self, gpu):
        return gpu("nvmlDeviceGetPowerManagementLimit")

    def resolve(self, gpu, value):
        if value == "default":
            return gpu("nvmlDeviceGetPowerManagementDefaultLimit")
        least, most = gpu("nvmlDeviceGetPowerManagementLimitConstraints")
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ChangeError(f"GPU{gpu.index}: a power limit of {value} mW is not between {least} and {most}")
        return value

    def put(self, gpu, state):
        gpu("nvmlDeviceSetPowerManagementLimit", state)


KINDS = {
    "persistence_mode": Choice("nvmlDeviceGetPersistenceMode", "nvmlDeviceSetPersistenceMode", ON_OFF),
    "ecc_mode": Choice("nvmlDeviceGetEccMode", "nvmlDeviceSetEccMode", ON_OFF, lambda modes: modes[1]),
    "mig_mode": mig.Mode(),
    "mig_devices": mig.Devices(),
    "compute_mode": Choice("nvmlDeviceGetComputeMode", "nvmlDeviceSetComputeMode", COMPUTE),
    "accounting_mode": Choice("nvmlDeviceGetAccountingMode", "nvmlDeviceSetAccountingMode", ON_OFF),
    "power_limit": PowerLimit(),
    "applications_clocks": clocks.Applications(),
    "locked_clocks": clocks.Locked(
        clocks.SM, "locked_clocks", "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"
    ),
    "locked_memory_clocks": clocks.Locked(
        clocks.MEMORY, "locked_memory_clocks", "nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceResetMemoryLockedClocks"
    ),
}
"""In the order of setting: persistence preserves later settings, and a change of the MIG mode may reset the GPU."""


def read(change):
    kind = _kind(change)

    def work(session):
        gpus = [session.gpu(index) for index in change["gpus"]]
        return {str(gpu.index): {"uuid": gpu.uuid, "value": kind.read(gpu)} for gpu in gpus}

    return nvml.ask(work, len(change["gpus"]))


def wanted(change, now):
    kind = _kind(change)

    def work(session):
        return {index: kind.resolve(session.same_gpu(index, at["uuid"]), change["value"]) for index, at in now.items()}

    if kind in MIG:
        return {index: dict(at, value=kind.after(at["value"], change["value"])) for index, at in now.items()}
    values = nvml.ask(work, len(now))
    return {index: dict(at, value=values[index]) for index, at in now.items()}


def put(change, state):
    """Set every GPU, and report the errors at the end."""
    kind = _kind(change)

    def work(session):
        problems = []
        for index, at in state.items():
            try:
                gpu = session.same_gpu(index, at["uuid"])
                # unless it has the value: some drivers reject even that while the GPU is busy
                if _folded(kind.read(gpu)) != _folded(at["value"]):
                    kind.put(gpu, at["value"])
            except ChangeError as problem:
                problems.append(str(problem))
        return problems

    problems = nvml.ask(work, len(state), MIG_SECONDS if kind in MIG else nvml.CALL_SECONDS)
    if problems:
        raise ChangeError(f"{change['setting']}: {'; '.join(problems)}")


def same(one, other):
    """Compare; MIG instances that differ only in their places are equal to users."""
    return _comparable(one) == _comparable(other)


def show(change, state):
    return "".join(
        f"GPU{index} {change['setting']}: {json.dumps(_folded(at['value']))}\n" for index, at in state.items()
    )


def label(change):
    return f"{change['setting']} of {', '.join(f'GPU{index}' for index in change['gpus'])}"


def _kind(change):
    if change["setting"] not in KINDS:
        raise ChangeError(f"{change['setting']} is not a GPU setting")
    return KINDS[change["setting"]]


MIG = (KINDS["mig_mode"], KINDS["mig_devices"])


def _folded(value):
    return mig.folded(value) if isinstance(value, dict) else value


def _comparable(state):
    return {index: (at["uuid"], _folded(at["value"])) for index, at in state.items()}


# --- at boot


def main(path=SETTINGS_FILE):
    """Apply the file, {setting: {GPU index: value}}. Print what was set and all errors."""
    problems = []
    for change in _at_boot(path, problems):
        problems += _set(change)
    for problem in problems:
        print(f"nodetune: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _set(change):
    """Set the GPUs together, or each alone if that fails, and return the problems: a lost GPU affects no other."""
    try:
        now = read(change)
        after = wanted(change, now)
        if not same(now, after):
            put(change, after)
            print(show(change, after), end="")
    except ChangeError as problem:
        alone = [dict(change, gpus=[index]) for index in change["gpus"]]
        return [each for one in alone for each in _set(one)] if len(alone) > 1 else [str(problem)]
    return []


def _at_boot(path, problems):
    """Return the changes of the file: one for all GPUs with the same value."""
    try:
        found = settings.load(path)
    except ChangeError as problem:
        problems.append(problem)
        return []
    changes = []
    for name in KINDS:
        for index, value in sorted(found.get(name, {}).items(), key=lambda item: int(item[0])):
            alike = [each for each in changes if (each["setting"], each["value"]) == (name, value)]
            if alike:
                alike[0]["gpus"].append(int(index))
            else:
                changes.append({"change": "gpu", "setting": name, "gpus": [int(index)], "value": value})
    return changes


if __name__ == "__main__":
    sys.exit(main())
