"""YAML that people write: what is in it, and on which line."""

import datetime
from itertools import pairwise

import pytest

from nodetune.foundation import yaml_lines
from nodetune.foundation.yaml_lines import CollectedError, FileError

TEXT = """\
# a comment
profile: training
checks:
  swap-in-use:
    severity: low
waivers:
  - id: a
    hosts: gpu1

  - {id: b, until: 2030-01-31}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 2),
        (("profile",), 2),
        (("checks",), 3),
        (("checks", "swap-in-use"), 4),
        (("checks", "swap-in-use", "severity"), 5),
        (("checks", "swap-in-use", "accept"), 4),
        (("waivers", 0), 7),
        (("waivers", 0, "hosts"), 8),
        (("waivers", 1, "until"), 10),
        (("nothing", "at", "all"), 2),
    ],
)
def test_each_part_has_its_line_and_one_that_is_missing_that_of_what_it_would_be_in(path, line):
    assert yaml_lines.parse(TEXT, "site.yml").line(*path) == line


def test_the_data_are_those_of_the_file():
    waivers = [{"id": "a", "hosts": "gpu1"}, {"id": "b", "until": datetime.date(2030, 1, 31)}]
    found = yaml_lines.parse(TEXT, "site.yml")
    assert found.data == {"profile": "training", "checks": {"swap-in-use": {"severity": "low"}}, "waivers": waivers}
    assert found.problems == []
    assert yaml_lines.parse("", "empty.yml").data is None
    assert yaml_lines.parse("", "empty.yml").line("a") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: [\n", "s.yml line 3: not YAML: "),
        ("a: 1\n? [b]\n: 2\n", "s.yml line 2: not YAML: a key is a single word"),
        ("a: 1\n\tb: 2\n", "s.yml line 2: not YAML: "),
        ("a: \x01\n", "s.yml: not YAML: "),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(text, says):
    with pytest.raises(FileError) as caught:
        yaml_lines.parse(text, "s.yml")
    assert str(caught.value).startswith(says)


def test_aliases_of_aliases_end_at_100000_parts():
    rows = "\n".join(f"{name}: &{name} [{', '.join(['*' + before] * 9)}]" for before, name in pairwise("abcdefg"))
    with pytest.raises(FileError, match="more than 100000 parts with its aliases"):
        yaml_lines.parse(f"a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n{rows}\n", "s.yml")


def test_keys_that_appear_twice_and_impossible_dates_are_collected(tmp_path):
    path = tmp_path / "s.yml"
    path.write_text("a: 1\nb: 2025-02-30\na: 2\n")
    found = yaml_lines.load(path, collect=True)
    assert [(each.line, str(each)) for each in found.problems] == [
        (2, f"{path} line 2: '2025-02-30' is not a valid date: day is out of range for month"),
        (3, f"{path} line 3: 'a' appears twice: keep one"),
    ]
    with pytest.raises(
        CollectedError, match=r"line 2: .* \(and 1 more: nodetune profile validate .*s.yml\)$"
    ) as caught:
        yaml_lines.load(path)
    assert caught.value.line == 2
    path.write_text("a: 1\na: 2\n")
    with pytest.raises(FileError, match="line 2: 'a' appears twice: keep one$"):
        yaml_lines.load(path)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(FileError, match="none.yml: no such file or directory$"):
        yaml_lines.load(tmp_path / "none.yml")
    (tmp_path / "s.yml").write_bytes(b"\xff")
    with pytest.raises(FileError, match="s.yml: not UTF-8 text$"):
        yaml_lines.load(tmp_path / "s.yml")


def test_an_unknown_word_is_told_with_what_may_be_meant():
    assert yaml_lines.unknown("chekcs", ["checks", "groups"], "key") == "unknown key 'chekcs': did you mean 'checks'?"
    assert yaml_lines.unknown("xyz", ["checks"], "key", ": one of a") == "unknown key 'xyz': one of a"


def test_a_list_of_too_many_parts_ends_before_the_rest_is_read():
    """The error is in a part that is never reached."""
    with pytest.raises(FileError, match="more than 100000 parts"):
        yaml_lines.parse(f"a: [{'1, ' * 150_000}: [", "s.yml")


def test_faults_beyond_a_thousand_are_not_looked_for():
    found = yaml_lines.parse("a: 1\n", "s.yml")

    def fail():
        with found.collecting():
            found.fail(f"no a: {'z' * 100_000}", "a")

    for _ in range(999):
        fail()
    with pytest.raises(FileError, match=r"no a: z+… \(and 999 more"):
        fail()
