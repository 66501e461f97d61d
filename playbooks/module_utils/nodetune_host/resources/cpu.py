"""Frequency and idle states of CPUs: {"setting", "value"}; as a program, it sets them at boot.

Settings: governor and epp (a word of the kernel's), boost (true, false), max_perf_pct (percent), idle_latency_us (CPUs
enter no idle state that takes longer to leave). State: {"cpufreq/policy*/scaling_governor": {"performance": "0-63"}}:
the text of the file, and the numbers in place of the star.
"""

import os
import re
import sys
import time

from .. import settings
from ..onhost import cpu_list
from ..problem import ChangeError, why

CPUS = "/sys/devices/system/cpu"
NO_TURBO = "intel_pstate/no_turbo"
SETTINGS_FILE = "/etc/nodetune/cpu.conf"
ORDER = ("epp", "governor", "boost", "max_perf_pct", "idle_latency_us")
"""While the governor is performance, the kernel rejects every other energy preference. For both directions to
work, the preference is written first, and last in a rollback."""

LATE_SECONDS = 60
"""Seconds to wait for the driver at boot. A later driver starts the unit again by a udev rule."""
AGAIN_SECONDS = 1


class MissingError(ChangeError):
    """This host does not (yet) have the setting."""


def read(change):
    found = {pattern: _folded(pattern) for pattern in _wanted(change)}
    if not any(found.values()):
        raise MissingError(f"{change['setting']}: {', '.join(found) or 'such idle states'}: not on this host")
    return found


def wanted(change, now):
    texts = _wanted(change)
    return {pattern: {texts[pattern]: _numbers(_listed(held))} for pattern, held in now.items()}


def put(change, state):
    """Write every file; report the first error and the number of all."""
    refused = []
    for pattern, held in state.items():
        for text, numbers in held.items():
            refused += [_write(_path(pattern, number), text) for number in _listed({text: numbers})]
    refused = [each for each in refused if each]
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise ChangeError(f"{change['setting']}: {refused[0]}{more}")


def show(change, state):
    lines = [(pattern.replace("*", numbers), text) for pattern, held in state.items() for text, numbers in held.items()]
    return "".join(f"{path}: {text}\n" for path, text in lines)


def label(change):
    return f"CPU {change['setting']}"


def _wanted(change):
    """Return {pattern: the text that its files should have}."""
    setting, value = change["setting"], change["value"]
    if setting in ("governor", "epp") and isinstance(value, str):
        name = {"governor": "scaling_governor", "epp": "energy_performance_preference"}[setting]
        return {f"cpufreq/policy*/{name}": value}
    if setting == "boost" and isinstance(value, bool):
        intel = os.path.exists(f"{CPUS}/{NO_TURBO}")
        return {NO_TURBO: str(int(not value))} if intel else {"cpufreq/boost": str(int(value))}
    if setting == "max_perf_pct" and type(value) is int:
        return {"intel_pstate/max_perf_pct": str(value)}
    if setting == "idle_latency_us" and type(value) is int:
        return {f"cpu*/cpuidle/{state}/disable": "1" for state in _slow_states(value)}
    raise ChangeError(f"unknown CPU setting: {setting} = {value!r}")


def _slow_states(most):
    """Return the idle states with an exit latency of more than `most` microseconds on any CPU."""
    found = set()
    for cpu in _matching("cpu*/cpuidle"):
        folder = f"{CPUS}/cpu{cpu}/cpuidle"
        found |= {state for state in os.listdir(folder) if int(_text(f"{folder}/{state}/latency") or 0) > most}
    return sorted(found)


def _folded(pattern):
    held = {}
    for number in _matching(pattern):
        try:
            held.setdefault(_text(_path(pattern, number)), []).append(number)
        except OSError as error:
            raise ChangeError(f"{_path(pattern, number)} cannot be read: {why(error)}") from None
    return {text: _numbers(numbers) for text, numbers in held.items()}


def _matching(pattern):
    """Return the numbers that match the star; [None] for a file without one."""
    before, star, _ = pattern.partition("*")
    if not star:
        return [None] if os.path.exists(f"{CPUS}/{pattern}") else []
    folder, prefix = os.path.split(f"{CPUS}/{before}")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbers = sorted(int(name[len(prefix) :]) for name in names if re.match(re.escape(prefix) + r"\d+$", name))
    return [number for number in numbers if os.path.exists(_path(pattern, number))]


def _path(pattern, number):
    return f"{CPUS}/{pattern}".replace("*", str(number))


def _numbers(numbers):
    """Fold [0, 1, 2, 8] into "0-2,8"; empty for the one file of a pattern without a star."""
    return cpu_list.fold(number for number in numbers if number is not None)


def _listed(held):
    """Return all the numbers of a folded state, in order."""
    if "" in held.values():
        return [None]
    return sorted(number for numbers in held.values() for number in cpu_list.parse(numbers))


def _text(path):
    with open(path) as opened:
        return opened.read().strip()


def _write(path, text):
    """Write a file unless it is correct: some drivers reject even that. Return the error, or an empty text."""
    try:
        if _text(path) == text:
            return ""
        with open(path, "w") as opened:
            opened.write(text)
    except OSError as error:
        return f"{path}: {text} was rejected: {why(error)}"
    return ""


# --- at boot


def main(path=SETTINGS_FILE, now=time.monotonic, sleep=time.sleep):
    """Apply the file until everything is set: a driver may load late, with its CPUs one after another."""
    end = now() + LATE_SECONDS
    problems, unfinished = _set_all(path)
    while unfinished and now() < end:
        sleep(AGAIN_SECONDS)
        problems, unfinished = _set_all(path)
    for problem in problems:
        print(f"nodetune: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _set_all(path):
    """Return the problems, and whether to look again: something is missing or was just changed."""
    problems, unfinished = [], False
    try:
        found = settings.load(path)
    except ChangeError as problem:
        return [problem], False
    for setting in (each for each in ORDER if each in found):
        try:
            unfinished |= _set({"change": "cpu", "setting": setting, "value": found[setting]})
        except ChangeError as problem:
            problems.append(problem)
            unfinished |= isinstance(problem, MissingError)
    return problems, unfinished


def _set(change):
    """Return whether anything was changed."""
    before = read(change)
    after = wanted(change, before)
    if after != before:
        put(change, after)
    return after != before


if __name__ == "__main__":
    sys.exit(main())
