"""Which udev rules set what is wrong with a disk's queue, now or at the next boot."""

from collections.abc import Callable, Iterable
from typing import Any

from nodetune.api import FactsView
from nodetune.foundation import text


def with_next_boot(facts: FactsView, rules: str, now: dict[str, Any], accepts: Callable[[Any], bool]) -> dict[str, Any]:
    """Return what each disk has, or what a udev rule will set where only the next boot makes it wrong."""
    texts = {disk: str(rule["value"]) for disk, rule in _rules(facts, rules, now).items()}
    later = {disk: int(text) if text.isdigit() else text for disk, text in texts.items()}
    lost = {disk for disk, value in later.items() if isinstance(value, type(now[disk])) and not accepts(value)}
    return {disk: later[disk] if disk in lost and accepts(value) else value for disk, value in now.items()}


def set_by_udev(rules: str, current: str) -> Callable[[FactsView, tuple[str, ...]], str]:
    """Return the cause of a check on disks: the rules that set what its failing disks have, or will have."""

    def cause(facts: FactsView, subjects: tuple[str, ...]) -> str:
        found, now = _rules(facts, rules, subjects), facts[current]
        told: dict[str, dict[str, str]] = {"set by udev": {}, "the next boot sets it by udev": {}}
        for disk, rule in found.items():
            when = "set by udev" if str(now.get(disk)) == rule["value"] else "the next boot sets it by udev"
            told[when][disk] = f"{rule['file']} line {rule['line']}"
        return "; ".join(f"{when}: {text.folded(places)}" for when, places in told.items() if places)

    return cause


def _rules(facts: FactsView, name: str, disks: Iterable[str]) -> dict[str, dict[str, Any]]:
    rules = facts.readable(name, {})
    return {disk: rules[disk] for disk in disks if disk in rules}
