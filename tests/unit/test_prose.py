"""Messages, help texts and docstrings are native technical English: PATTERNS has wording that is not."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("nodetune", "playbooks")

PATTERNS = {
    r"(?<![Tt]here )\bis no (?!longer|such|more)": "is not a",
    r"(?<![Tt]here )\b(?:is|are|was) none\b": "is not one, is not valid",
    r"\bwhoever\b": "the user who",
    r"\bso (?:many|often)\b": "this many, number of",
    r"\b(?:came|comes?) to\b": "the result",
    r"\bst(?:ands?|ood)\b": "is, is in",
    r"\bt(?:ells?|old)\b": "reports, says, shows",
    r"(?<!,)(?<!each) of which\b": "whose, in which",
    r"\bat work\b": "running, busy",
    r"\b(?:some|any|every)body\b": "someone, a user",
    r"\bbesides?\b": "along with, in addition to",
    r"\bin words\b": "describe",
    r"\bas though\b": "as if",
    r"\bnot known\b": "unknown",
    r"\bknows? (?:no|of|nothing)\b": "has no",
    r"\b(?:is|are) to be\b": "must be",
    r"\bwithout a word\b": "silently, without a message",
    r"\b(?:put|given?|gave|took|taken?)s? back\b": "restore, release",
    r"\btak(?:es?|en) (?:\w+ )?out\b(?! of service)": "remove",
    r"\bwants\b": "needs, must be",
    r"\b(?:hears?|heard)\b": "receive",
    r"\bfor ever\b": "forever",
    r"\bis said\b": "is reported",
    r"\bwhat became\b": "the result",
    r"\b(?:may|can|to) be had\b": "is available",
    r"\bfor want of\b": "for lack of",
    r"\A(?:What|Who|Whose) ": "name the thing",
    r", for (?:it|they|there)\b": "because",
    r"\bmerely\b": "only",
    r"\bin vain\b": "without success",
}
"""Wording that a native writer would not use → what to write instead."""

RIGHT = {
    "nodetune/checks/kubernetes/cpu_manager_not_static.py": {r"(?<![Tt]here )\b(?:is|are|was) none\b"},
    "nodetune/checks/kubernetes/topology_manager_unsuitable.py": {r"(?<![Tt]here )\b(?:is|are|was) none\b"},
    "nodetune/cli/commands/explain.py": {r"(?<!,)(?<!each) of which\b"},
    "nodetune/remote/login/openssh.py": {r"\bnot known\b"},
    "playbooks/module_utils/nodetune_host/resources/slurm.py": {r"\btak(?:es?|en) (?:\w+ )?out\b(?! of service)"},
}
"""Files → patterns that are right there: none is a value of the kubelet, ssh prints it, hosts have the line."""

NAMES = re.compile(r"""`[^`]*`|"\w+"|'\w+'""")
"""Names and values in a text, such as `told`."""


def texts(source):
    """The docstrings and messages in a file: (line, text), with {} for each value that a message contains."""
    tree = ast.parse(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield node.lineno, " ".join("".join(parts).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, " ".join(node.value.split())


def faults(source):
    """The wording in a file that is not native: (pattern, line, text)."""
    for line, text in texts(source):
        plain = NAMES.sub("", text) if " " in text else ""
        yield from ((pattern, line, text) for pattern in PATTERNS if re.search(pattern, plain))


def files():
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.fixture(scope="module")
def found():
    return {
        (path.relative_to(ROOT).as_posix(), pattern): f"{line}: {text[:150]!r}: {PATTERNS[pattern]}"
        for path in files()
        for pattern, line, text in faults(path.read_text("utf-8"))
    }


def right():
    return {(name, pattern) for name, patterns in RIGHT.items() for pattern in patterns}


def test_texts_are_native_english(found):
    wrong = sorted(found.keys() - right())
    assert not wrong, "\n".join(f"{place[0]}:{found[place]}" for place in wrong)


def test_a_right_use_is_still_there(found):
    assert right() <= found.keys()


@pytest.mark.parametrize(
    "source",
    [
        'raise Error(f"{name!r} is no name")',
        'raise Error("the host sent a figure that is none")',
        'click.echo("is slurmctld at work?")',
        '"""Return what the probe tells."""',
        'class Work:\n    """What a run came to."""',
        'raise Error("a text that is "\n    "no number")',
    ],
)
def test_planted_foreign_wording_is_found(source):
    assert list(faults(source))


@pytest.mark.parametrize(
    "source",
    [
        'raise Error(f"{name!r} is not a name")',
        '"""Return the value, or None if there is none."""',
        '"""The event `tell` and the member "told"."""',
        'event = {"told": 1}',
        '"""Return whether the run is no longer active."""',
    ],
)
def test_native_wording_and_names_pass(source):
    assert not list(faults(source))
