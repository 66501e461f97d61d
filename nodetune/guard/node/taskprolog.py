"""Set the environment of a task: Slurm's TaskProlog, run as the job's user before each task.

Threads that fit the task's CPUs, the settings that the policy names (NCCL's of the profile) and, where the policy says so
and the plugin is there, NCCL's Inspector. What the user has set stays. Whatever happens here, the task runs: the exit
code is 0. Run by its path, and imports nothing of nodetune.

Of the threads: one a core, shared among the GPUs of the task (a launcher starts a process for each) and, where there
are GPUs, within one NUMA node. OMP_PLACES only for tasks without GPUs that have their CPUs for themselves: it makes
libgomp pin the first thread, and data loaders that are forked from it would all share its core.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

POLICY = "/etc/nodetune/guard.json"
SYS = "/sys/devices/system"
OURS = "NODETUNE_TASKPROLOG"
"""Variables of an earlier task prolog in the same job (batch step): a step inherits them but may need other values."""
THREADS, PLACES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "OMP_PLACES"
PINNING = ("OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
FIRST = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
LARGEST = 1 << 20
PROFILER, FOLDER = "NCCL_PROFILER_PLUGIN", "NCCL_INSPECTOR_DUMP_DIR"
INSPECTOR = {"NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "500"}
"""The interval is that of NVIDIA's examples. Without it, files have no times, and before NCCL 2.30 there are no files."""


def main(arguments: Iterable[str] = ()) -> None:
    """Print the lines that Slurm takes up. Never fails."""
    try:
        policy = next(iter(arguments), POLICY)
        _print(settings(os.environ, policy))
        _print(inspector(os.environ, policy))  # last: a folder of the site that hangs must not cost the others
    except BaseException:  # noqa: BLE001, S110  (no task may fail for this, and Slurm shows nobody what we could say)
        pass


def _print(found: Mapping[str, str]) -> None:
    text = "".join(f"export {name}={value}\n" for name, value in found.items())
    os.write(1, text.encode("utf-8", "backslashreplace"))


def inspector(environment: Mapping[str, str], policy: str = POLICY) -> dict[str, str]:
    """Return the variables of NCCL's Inspector, if the policy names its library and that exists, and create the job's folder.

    A user's own profiler wins.
    """
    given = _policy(policy).get("inspector")
    job = environment.get("SLURM_JOB_ID", "")
    if not isinstance(given, dict) or not _number(job):
        return {}
    plugin, folder = str(given.get("plugin")), str(given.get("folder"))
    ours = environment.get(PROFILER) == plugin and environment.get(FOLDER, "").startswith(
        folder + "/"
    )  # a job of a job
    taken = {*(() if ours else environment), *_in_nccl_files(environment)}
    if not _is_path(plugin) or not _is_path(folder) or PROFILER in taken or not os.path.isfile(plugin):
        return {}
    wanted = {PROFILER: plugin, **INSPECTOR, FOLDER: f"{folder}/{job}"}
    if FOLDER not in taken and not _made(wanted[FOLDER]):
        return {}
    return {name: value for name, value in wanted.items() if name not in taken}


def _made(folder: str) -> bool:
    """Create a folder. Of ranks that start together, the Inspector itself writes nothing for those that create it too late."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def _is_path(text: str) -> bool:
    return text.startswith("/") and text.isprintable()


def settings(
    environment: Mapping[str, str], policy: str = POLICY, sys_folder: str = SYS, cpus: Iterable[int] = ()
) -> dict[str, str]:
    """Return what to set: name → value. `cpus` are those that the task may use (empty: ask the kernel)."""
    earlier = dict(part.partition("=")[::2] for part in environment.get(OURS, "").split())
    users = {name: value for name, value in environment.items() if earlier.get(name) != value}
    found = _threads(users, environment, set(cpus) or os.sched_getaffinity(0), sys_folder)
    if found or earlier:
        found[OURS] = " ".join(f"{name}={value}" for name, value in found.items())
    taken = {*users, *_in_nccl_files(environment)}
    return found | {name: value for name, value in _wanted(policy).items() if name not in taken}


def _threads(
    users: Mapping[str, str], environment: Mapping[str, str], mask: set[int], sys_folder: str
) -> dict[str, str]:
    if "OMP_NUM_THREADS" in users:  # MKL and others follow it
        return {}
    tasks, gpus = _tasks_here(environment), _gpus(environment)
    share = _number(environment.get("SLURM_CPUS_PER_TASK")) or (_number(environment.get("SLURM_CPUS_ON_NODE")) // tasks)
    own = 0 < len(mask) <= share
    cores = _cores(mask, sys_folder)
    if share and not own:  # the CPUs are the whole job's: this is the task's part of them
        cores = cores * share // len(mask)
    if gpus:
        cores = min(cores // max(1, gpus // tasks), _largest_within_a_node(mask, sys_folder))
    count = str(max(1, cores))
    found = {name: count for name in THREADS if name not in users}
    if own and not gpus and int(count) > 1 and not any(name in users for name in PINNING):
        found[PLACES] = "cores"
    return found


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0


def _tasks_here(environment: Mapping[str, str]) -> int:
    """Return the tasks of this step on this node: `2(x3),1`, by the node's number in the step."""
    text = environment.get("SLURM_STEP_TASKS_PER_NODE") or environment.get("SLURM_TASKS_PER_NODE") or "1"
    each: list[int] = []
    for part in text.split(","):
        count, _, times = part.partition("(x")
        each += [_number(count)] * min(_number(times.rstrip(")")) or 1, 1 << 17)
    at = _number(environment.get("SLURM_NODEID"))
    return max(1, each[at] if at < len(each) else 1)


def _gpus(environment: Mapping[str, str]) -> int:
    """Count the GPUs of the job on this node."""
    visible = environment.get("CUDA_VISIBLE_DEVICES") or environment.get("SLURM_JOB_GPUS") or ""
    return _number(environment.get("SLURM_GPUS_ON_NODE")) or len([each for each in visible.split(",") if each])


def _cores(mask: Iterable[int], folder: str) -> int:
    return len({_text(f"{folder}/cpu/cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in mask})


def _largest_within_a_node(mask: set[int], folder: str) -> int:
    """Return the largest number of these CPUs' cores in one NUMA node."""
    try:
        nodes = [name for name in os.listdir(f"{folder}/node") if name.startswith("node") and name[4:].isdigit()]
    except OSError:
        nodes = []
    parts = [mask & set(_cpus(_text(f"{folder}/node/{name}/cpulist"))) for name in nodes]
    return max((_cores(part, folder) for part in parts if part), default=_cores(mask, folder))


def _cpus(text: str) -> Iterator[int]:
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        yield from range(_number(first), _number(last or first) + 1)


def _text(path: str) -> str:
    """Return the text of a small file, stripped; empty if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(handle, LARGEST).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(handle)


def _wanted(policy: str) -> dict[str, str]:
    """Return the policy's `environment`."""
    given = _policy(policy).get("environment")
    if not isinstance(given, dict):
        return {}
    texts = {name: value for name, value in given.items() if isinstance(value, str) and value.isprintable()}
    return {name: value for name, value in texts.items() if _is_name(name)}


def _policy(policy: str) -> dict[str, Any]:
    """Return the policy if only root can have written it."""
    text = _text(policy)
    if '"environment"' not in text:
        return {}
    import json

    seen, given = os.stat(policy), json.loads(text)
    return given if isinstance(given, dict) and seen.st_uid == 0 and not seen.st_mode & 0o022 else {}


def _is_name(text: str) -> bool:
    return bool(text) and text[0] in FIRST and text.isascii() and text.replace("_", "a").isalnum()


def _in_nccl_files(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the names that the user's own NCCL file sets: a variable would override them."""
    home = environment.get("HOME", "")
    path = environment.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if home.startswith("/") else "")
    for line in _text(path).splitlines() if path else ():
        yield line.partition("=")[0].strip()


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
