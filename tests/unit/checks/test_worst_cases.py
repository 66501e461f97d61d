"""What a host may send at most is judged in a time that grows with its length, by every check."""

import re
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml

from nodetune import checks
from nodetune.api.model import HostFacts
from nodetune.audit import evaluate
from nodetune.facts import document, gate
from nodetune.facts.shapes import LONGEST_TEXT

CASES = sorted((Path(__file__).parents[2] / "data" / "cases").glob("*.yml"))
FEW, MANY = 250, 4000
SECONDS, TIMES = 0.1, 3
"""What takes less than so long is no matter; else it may grow so many times more than the data."""

FIXED = set(re.findall(r"([\w-]+)!?:", gate.TABLE.read_text())) | {"value", "absent", "unread", "all", "rx", "rx_max"}
"""Names in objects that mean something; others are those of devices, of which a host can have many."""

EVIL = ("1", "0", "a", " ", ",", "1g.", "0-", "1,", "a,", "=", "/", "-", "[", "(", "1 ", "0x", "gpu:", "x=", "\\")
"""What regular expressions and parsers may read again and again."""


def facts_of(path):
    """The facts of the first case that passes and of the first that fails."""
    content = yaml.safe_load(path.read_text())
    for status in ("pass", "fail"):
        group = content.get(status) or []
        for case in (group if isinstance(group, list) else [group])[:1]:
            own = {name: fact for name, fact in case.items() if name != "finding"}
            yield {**content.get("given", {}), **own}


def names_in(data):
    """The names of objects, and the texts of lists, which may be those of devices."""
    if isinstance(data, dict | list):
        yield from (str(name) for name in data if isinstance(name, str | int))
    for each in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from names_in(each)


def copy(data, number, names):
    """The same device once more: its name, and those that it names, get a number."""
    if isinstance(data, dict):
        return {str(name) + ("" if name in FIXED else number): copy(each, number, names) for name, each in data.items()}
    if isinstance(data, list):
        return [copy(each, number, names) for each in data]
    return data + number if data in names else data


def grown(data, many, names):
    """The same with so many devices."""
    if isinstance(data, dict) and set(data) <= FIXED:
        return {name: grown(each, many, names) for name, each in data.items()}
    if not data or not isinstance(data, dict | list):
        return data
    copies = [copy(data, f"~{number}", names) for number in range(many // len(data))]
    if isinstance(data, list):
        return [each for one in copies for each in one]
    return {name: each for one in copies for name, each in one.items()}


def large(facts, many):
    names = {name for fact in facts.values() for part in fact.values() for name in names_in(part)} - FIXED
    return {name: {kind: grown(part, many, names) for kind, part in fact.items()} for name, fact in facts.items()}


def with_text(data, text):
    if isinstance(data, dict):
        return {name: with_text(each, text) for name, each in data.items()}
    if isinstance(data, list):
        return [with_text(each, text) for each in data]
    return text if isinstance(data, str) else data


def seconds(check, facts):
    host = HostFacts("x", document.from_data({"facts": facts}).facts)
    began = time.thread_time()
    evaluate.judge(check, host)
    return time.thread_time() - began


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_many_devices_take_as_many_times_longer(path):
    check = checks.load(path.stem.replace("_", "-"))
    for facts in facts_of(path):
        spent = seconds(check, large(facts, MANY))
        assert spent < SECONDS or spent < max(SECONDS, seconds(check, large(facts, FEW)) * TIMES * MANY / FEW)


@pytest.mark.parametrize("part", EVIL)
def test_no_text_keeps_a_check_busy(part):
    slow = Counter()
    text = (part * LONGEST_TEXT)[:LONGEST_TEXT]
    for path in CASES:
        check = checks.load(path.stem.replace("_", "-"))
        for facts in facts_of(path):
            spent = seconds(check, {name: with_text(fact, text) for name, fact in facts.items()})
            if spent > 10 * SECONDS:
                slow[check.id] = spent
    assert not slow
