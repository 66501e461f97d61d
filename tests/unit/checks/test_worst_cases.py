"""What a host may send at most is judged in a time that grows with its length, by every check."""

import functools
import re
import time
from pathlib import Path

import pytest
import yaml

from nodetune import checks
from nodetune.api.model import HostFacts
from nodetune.audit import evaluate
from nodetune.facts import catalogue, document
from nodetune.facts.shapes import MAX_TEXT_LENGTH

CASES = sorted((Path(__file__).parents[2] / "data" / "cases").glob("*.yml"))
FEW, MANY = 250, 4000
SECONDS = 0.5
"""CPU time of judging MANY devices that harms nobody: one host may take 10 s."""
GROWTH = 6 * MANY / FEW
"""Linear work grows MANY / FEW (16) times, quadratic work 256 times: between them lies what noise cannot reach."""
ATTEMPTS = 3

ROWS = [row for name in catalogue.names() for row in catalogue.rows(name) if row.shape]
SHAPES = [*(row.shape for row in ROWS), *re.findall(r"^\w+ = (.+)", catalogue.PATH.read_text(), re.MULTILINE)]
FIXED = {
    *(name for shape in SHAPES for name in re.findall(r"([\w-]+)!?:", shape)),
    *(row.path.rpartition("/")[2] for row in ROWS),
    *("value", "absent", "unread", "all", "rx", "rx_max"),
}
"""Names in objects that mean something; others are those of devices, of which a host can have many."""

EVIL = ("1", "0", "a", " ", ",", "1g.", "0-", "1,", "a,", "=", "/", "-", "[", "(", "1 ", "0x", "gpu:", "x=", "\\")
"""What regular expressions and parsers may read again and again."""


@functools.cache
def facts_of(path):
    """The facts of the first case that passes and of the first that fails."""
    content = yaml.load(path.read_text(), yaml.CSafeLoader)
    groups = [content.get(status) or [] for status in ("pass", "fail")]
    first = [case for group in groups for case in (group if isinstance(group, list) else [group])[:1]]
    return [
        {name: fact for name, fact in {**content.get("given", {}), **case}.items() if name not in ("finding", "site")}
        for case in first
    ]


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


def grows_no_faster(check, many, facts):
    spent = seconds(check, many)
    return spent < SECONDS or spent < seconds(check, large(facts, FEW)) * GROWTH


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_many_devices_take_as_many_times_longer(path):
    check = checks.load(path.stem.replace("_", "-"))
    for facts in facts_of(path):
        many = large(facts, MANY)
        assert any(grows_no_faster(check, many, facts) for _ in range(ATTEMPTS))


@pytest.mark.slow  # every check once a text
@pytest.mark.parametrize("part", EVIL)
def test_no_text_keeps_a_check_busy(part):
    slow = set()
    text = (part * MAX_TEXT_LENGTH)[:MAX_TEXT_LENGTH]
    for path in CASES:
        check = checks.load(path.stem.replace("_", "-"))
        for facts in facts_of(path):
            evil = {name: with_text(fact, text) for name, fact in facts.items()}
            if all(seconds(check, evil) > SECONDS for _ in range(ATTEMPTS)):
                slow.add(check.id)
    assert not slow
