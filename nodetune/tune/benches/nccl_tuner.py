"""The tuner plugin: a setting by size, its rows, and the folder with the plugin's source, its rows and instructions.

NVIDIA's example plugin sets one channel for every row without a number and every collective without a row (NCCL 2.30.7), so it
is not used: nodetune/data/tuner/nodetune_tuner.c leaves everything without a row to NCCL.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodetune.foundation import file_io, paths, text
from nodetune.statistics.thresholds import MIN_GAIN
from nodetune.tune.benches.nccl_space import FUNCTIONS, Survey
from nodetune.tune.model import DEFAULT, Setting, Trial

SOURCE, LIBRARY, ROWS, INSTALL = "nodetune_tuner.c", "libnodetune-tuner.so", "nccl_tuner.csv", "INSTALL.txt"
FOLDER = "/etc/nodetune"
"""Where the plugin finds its rows: it accepts only an absolute path."""

NEAR = 4
"""Measured sizes up to this factor apart form one range of a row. Between others, NCCL decides."""

ROWS_NAME = "TUNER_ROWS"
"""The name of rows in a setting (nodetune/measurements/nccl_support/nccl_plugin.py): lines, separated by semicolons."""

EQUAL = MIN_GAIN
"""Settings whose gains at a size differ by less are equally good there."""

RAISES = ("NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS")
ALGORITHMS = ("tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat")
WITH_CHANNELS, MAX_CHANNELS = ("ring", "tree"), 64
"""The words of rows: the algorithms, those with channels, and the number of these at most."""

HEADER = "# collective,min_bytes,max_bytes,algorithm,channels,nodes,ranks; -1: any, channels: NCCL's choice\n"
STEPS = """NCCL {version}, measured on {nodes} of {gpus} GPUs. On every host of a job, the same files:

gcc -O2 -Wall -Wextra -shared -fPIC -o {library} {source}
install -D -m 644 {rows} {folder}/{rows}
install -D -m 755 {library} {folder}/{library}

and then in /etc/nccl.conf (as the proposal for a site file does), or in the environment of the jobs that it was measured for:

{variables}

NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING shows the number of valid rows and a checksum: it must be the same on all
hosts, since ranks that choose differently wait for each other forever. A tuner turns off NCCL_CTA_POLICY=EFFICIENCY.
"""


Case = tuple[str, int]
"""A collective and a size in bytes."""


def best_by_size(
    keys: Mapping[str, str], gains: Mapping[Setting, Mapping[str, float]], made: Sequence[Trial], survey: Survey
) -> Setting | None:
    """Return by_size of the gains of cases and of what trials say that NCCL used. `keys`: of cases, such as `all_reduce 65536`."""
    parts = {case: key.rsplit(" ", 1) for case, key in keys.items()}
    cases = {case: (name, int(size)) for case, (name, size) in parts.items() if name in FUNCTIONS}

    own = {
        setting: {cases[case]: gain for case, gain in each.items() if case in cases} for setting, each in gains.items()
    }
    used = {trial.setting: trial.about.get("used", {}) for trial in made if trial.counts}
    ways = {
        setting: {cases[case]: way for case, way in each.items() if case in cases} for setting, each in used.items()
    }
    return by_size(own, ways, f",{survey.nodes},{survey.gpus}")


def by_size(
    gains: Mapping[Setting, Mapping[Case, float]], ways: Mapping[Setting, Mapping[Case, Mapping[str, Any]]], shape: str
) -> Setting | None:
    """Return the setting that has the best of each case, or None where nothing is better or NCCL's choices are unknown.

    `gains`: logarithms against the default. `ways`: the algorithm and channels that a setting had. `shape`: `,nodes,ranks`. What
    raises the channels of a communicator raises them at all sizes, so sizes that want fewer have a row with their number.
    """
    cases = sorted({case for each in gains.values() for case in each})
    chosen = {case: _best(case, gains) for case in cases}
    raised = max((_ctas(each) for each in chosen.values()), default=(0, ""))
    common: Setting = ((raised[1], raised[0]),) if raised[1] else ()
    if all(each == common for each in chosen.values()):
        return common or None
    found = []
    for name in dict.fromkeys(name for name, _ in cases):
        sizes = [size for each, size in cases if each == name]
        for size, (low, high) in zip(sizes, _spans(sizes), strict=True):
            setting = chosen[name, size]
            row = _row(setting, ways.get(setting, {}).get((name, size), {}), raised=raised[0])
            if row is None:
                return None
            found += [(FUNCTIONS[name], low, high, row)] if row else []
    return tuple(sorted((*common, (ROWS_NAME, ";".join(_joined(found, shape))))))


def _best(case: Case, gains: Mapping[Setting, Mapping[Case, float]]) -> Setting:
    """Return the simplest of the settings that are as good as the best; the default if none gains enough."""
    known = {setting: each[case] for setting, each in gains.items() if case in each}
    best = max(known.values(), default=0.0)
    if best < MIN_GAIN:
        return DEFAULT
    return min(
        (each for each, gain in known.items() if gain >= best - EQUAL), key=lambda each: (len(each), _ctas(each))
    )


def _ctas(setting: Setting) -> tuple[int, str]:
    return max(((int(value), name) for name, value in setting if name in RAISES), default=(0, ""))


def _row(setting: Setting, way: Mapping[str, Any], *, raised: int) -> str | None:
    """Return `algorithm,channels` of a row; empty where none is needed, None if NCCL's log did not name them."""
    own = _ctas(setting)[0]
    if own == raised and not any(name == "NCCL_ALGO" for name, _ in setting):
        return ""
    algorithm, channels = str(way.get("algorithm") or "").lower().replace("_", ""), way.get("channels")
    if algorithm not in ALGORITHMS:
        return None
    if own == raised or algorithm not in WITH_CHANNELS:
        return f"{algorithm},-1"
    return f"{algorithm},{channels}" if type(channels) is int and 0 < channels <= MAX_CHANNELS else None


def _joined(found: Sequence[tuple[str, int, int, str]], shape: str) -> list[str]:
    """Return the lines of rows: those of adjacent sizes with the same content are one."""
    merged: list[tuple[str, int, int, str]] = []
    for name, low, high, row in found:
        last = merged[-1] if merged else ("", 0, 0, "")
        follows = (last[0], last[2] + 1, last[3]) == (name, low, row)
        merged.append((name, merged.pop()[1] if follows else low, high, row))
    return [f"{name},{low},{high},{row}{shape}" for name, low, high, row in merged]


def _spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the range of each size: near sizes share the range between them, and ends extend by half a power of two."""
    found = []
    for at, size in enumerate(sizes):
        before, after = sizes[at - 1] if at else 0, sizes[at + 1] if at + 1 < len(sizes) else 0
        low = (
            math.isqrt(before * size) + 1 if before and round(size / before) <= NEAR else math.ceil(size / math.sqrt(2))
        )
        high = (
            math.isqrt(size * after) if round(after / size) in range(1, NEAR + 1) else math.floor(size * math.sqrt(2))
        )
        found.append((low, high))
    return found


def rows(setting: Setting) -> list[str]:
    """Return the plugin's rows of a setting."""
    return str(dict(setting).get(ROWS_NAME, "")).split(";") if ROWS_NAME in dict(setting) else []


def source() -> str:
    """Return the source of the plugin."""
    return paths.bundled(f"data/tuner/{SOURCE}").read_text("utf-8")


def variables(setting: Setting) -> list[tuple[str, str]]:
    """Return the variables of jobs that have a setting: those of the plugin in place of its rows."""
    plain = [(name, str(value)) for name, value in setting if name != ROWS_NAME]
    return [*plain, ("NCCL_TUNER_PLUGIN", f"{FOLDER}/{LIBRARY}")] if len(plain) < len(setting) else plain


def write(folder: Path, setting: Setting, survey: Survey) -> list[Path]:
    """Write the plugin's source, its rows and how to install both. Return the files. Raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    nodes = text.count(survey.nodes, "node")
    lines = [f"{name}={value}" for name, value in variables(setting)]
    names = {"library": LIBRARY, "source": SOURCE, "rows": ROWS, "folder": FOLDER, "variables": "\n".join(lines)}
    steps = STEPS.format(version=survey.version, nodes=nodes, gpus=survey.gpus, **names)
    texts = {SOURCE: source(), ROWS: HEADER + "".join(f"{each}\n" for each in rows(setting)), INSTALL: steps}
    for name, content in texts.items():
        file_io.write(folder / name, content)
    return [folder / name for name in texts]
