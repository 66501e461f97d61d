"""Settings that a site declares for GPU models: {"NVIDIA H200": 600000}. What a GPU does not allow is refused before a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodetune.api.model import Fix
from nodetune.remediation.host_view import HostView, UnfixableError

NEEDS = ("gpu.names", "gpu.power_management_limit_constraints", "gpu.supported_clocks")
CLOCKS = {"locked_clocks": "sm", "locked_memory_clocks": "memory"}
SETTINGS = ("power_limit", *CLOCKS)


def values(fix: Fix, gpus: Sequence[int], host: HostView) -> list[tuple[Any, list[int]]]:
    """Return each value and the GPUs that get it; nothing for a value that is for all of them."""
    if fix.target not in SETTINGS or not isinstance(fix.value, Mapping):
        return []
    names = host.readable("gpu.names") or {}
    found: list[tuple[Any, list[int]]] = []
    for gpu in gpus:
        value = _allowed(fix, gpu, _declared(fix, gpu, names.get(f"GPU{gpu}")), host)
        same = next((each for known, each in found if known == value), None)
        if same is None:
            found.append((value, [gpu]))
        else:
            same.append(gpu)
    return found


def _declared(fix: Fix, gpu: int, model: str | None) -> Any:
    if model is None:
        raise UnfixableError(f"the model of GPU{gpu} could not be read: audit again with the driver loaded")
    if fix.value.get(model) is None:
        raise UnfixableError(f"GPU{gpu} is a {model}, and `set` has no {fix.target} for it: add it in the site file")
    return fix.value[model]


def _allowed(fix: Fix, gpu: int, value: Any, host: HostView) -> Any:
    """Return the value for the host. Raise UnfixableError if it is invalid or the GPU does not allow it."""
    if fix.target == "power_limit":
        return _limit(gpu, value, host)
    return value if value == "none" else _clocks(fix, gpu, value, host)


def _limit(gpu: int, value: Any, host: HostView) -> Any:
    if type(value) is not int or value <= 0:
        raise UnfixableError(f"a power limit is a number of watts such as 600W, not {value!r}")
    least, most = (host.readable("gpu.power_management_limit_constraints") or {}).get(f"GPU{gpu}", (value, value))
    if not least <= value <= most:
        watts = [f"{each / 1000:g} W" for each in (value, least, most)]
        raise UnfixableError(f"GPU{gpu} allows power limits from {watts[1]} to {watts[2]}, not {watts[0]}")
    return value


def _clocks(fix: Fix, gpu: int, value: Any, host: HostView) -> list[int]:
    clocks = [value, value] if type(value) is int else value
    pair = isinstance(clocks, list | tuple) and len(clocks) == 2 and all(type(each) is int for each in clocks)
    if not pair or clocks[0] > clocks[1]:
        raise UnfixableError(f"clocks are one such as 1500MHz, [lowest, highest], or none, not {value!r}")
    known = ((host.readable("gpu.supported_clocks") or {}).get(f"GPU{gpu}") or {}).get(CLOCKS[fix.target]) or []
    for clock in clocks:
        if known and clock not in known:
            near = sorted(known, key=lambda each: abs(each - clock))[:2]
            around = " and ".join(map(str, sorted(near)))
            raise UnfixableError(
                f"GPU{gpu} has no {CLOCKS[fix.target]} clock of {clock} MHz: the nearest are {around}, "
                f"of {min(known)} to {max(known)}"
            )
    return list(clocks)
