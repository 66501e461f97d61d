"""How values are written for people."""

import json

import pytest

from nodetune.foundation import text


@pytest.mark.parametrize(
    ("number", "expected"),
    [(1010 << 20, "1010 MiB"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (1 << 30, "1 GiB"), (1000 << 40, "1000 TiB")],
)
def test_a_size_has_no_exponent(number, expected):
    assert text.size(number) == expected


@pytest.mark.parametrize(
    ("number", "unit", "expected"),
    [
        (1234567.0, "us", "1234567 us"),
        (12345678.9, "", "12345679"),
        (0.25, "", "0.25"),
        (99.0, "%", "99 %"),
        (1234567, "Mb/s", "1234.57 Gb/s"),
    ],
)
def test_a_large_number_has_no_exponent(number, unit, expected):
    assert text.value(number, unit) == expected


@pytest.mark.parametrize(
    ("unit", "one"),
    [("banks", "1 bank"), ("cores per GPU", "1 core per GPU"), ("entries", "1 entry"), ("us", "1 us"), ("%", "1 %")],
)
def test_one_of_a_unit_is_in_the_singular(unit, one):
    assert text.value(1, unit) == one
    assert text.value(2, unit) == f"2 {unit}"


def test_a_setting_of_several_numbers_stands_as_in_its_file():
    assert text.setting([4096, 131072, 67108864], "bytes") == "4096 131072 67108864"


def test_a_setting_with_members_stands_as_in_its_file():
    ulimits = {"memlock": {"Name": "memlock", "Hard": -1}}
    assert json.loads(text.setting(ulimits, "bytes")) == ulimits


def test_a_setting_of_one_number_has_its_unit():
    assert text.setting(8 << 30, "bytes") == "8 GiB"
    assert text.setting(True) == "yes"


@pytest.mark.parametrize(
    ("item", "unit", "expected"),
    [
        (None, "", "none"),
        (False, "", "no"),
        ([], "", "none"),
        ([1, 2], "ms", "1 ms 2 ms"),
        ({}, "", "none"),
        ({"now": 1024, "next boot": 2048}, "KiB", "now 1 MiB, next boot 2 MiB"),
        (3, "MiB", "3 MiB"),
        (1000, "Mb/s", "1 Gb/s"),
        (999, "Mb/s", "999 Mb/s"),
        (700_000, "mW", "700 W"),
        (999_999.0, "", "999999"),
    ],
)
def test_a_value_is_one_line_with_its_unit(item, unit, expected):
    assert text.value(item, unit) == expected


@pytest.mark.parametrize(
    ("given", "longest", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("a\x1b[0m\u202e", 400, "a\\x1b[0m\\x202e"),
        ("\n" * 3, 4, "\\x0…"),
        ("\x1b", 4, "\\x1b"),
        (7, 400, "7"),
    ],
)
def test_a_text_of_a_host_is_printable_and_bounded(given, longest, shown):
    assert text.plain(given, longest) == shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("  @x", "'  @x"),
        ("-12.5", "-12.5"),
        ("+3", "+3"),
        ("-", "-"),
        ("-x", "'-x"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_cell_is_no_formula(given, shown):
    assert text.cell(given) == shown


@pytest.mark.parametrize(
    ("given", "folded"),
    [
        (["GPU0", "GPU1", "GPU2"], "GPU0-2"),
        (["GPU0", "GPU2", "GPU3", "nic"], "GPU0, GPU2-3, nic"),
        (["GPU1", "GPU0"], "GPU1, GPU0"),
        (["a1", "b2"], "a1, b2"),
        ([f"{letter}x" for letter in "abcdefghijkl"], ", ".join(f"{letter}x" for letter in "abcdefghijkl")),
        (
            [f"{letter}x" for letter in "abcdefghijklmn"],
            ", ".join(f"{letter}x" for letter in "abcdefghijkl") + " and 2 more",
        ),
    ],
)
def test_runs_of_numbers_in_names_are_folded(given, folded):
    assert text.names(given) == folded


def test_subjects_with_the_same_value_are_told_together():
    assert text.folded({"GPU0": "on", "GPU1": "on", "GPU2": "off", "eth0": "eth0"}) == "GPU0-1: on · GPU2: off · eth0"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.9, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
    ],
)
def test_a_span_is_in_the_largest_unit_with_at_least_two(seconds, shown):
    assert text.span(seconds) == shown


def test_a_number_is_counted_with_its_noun():
    assert [text.count(number, "host") for number in (0, 1, 2)] == ["0 hosts", "1 host", "2 hosts"]
    assert text.day(86_399) == "1970-01-01"


def test_names_near_a_word_contain_it_or_are_alike():
    known = ["swap-in-use", "swappiness-high", "swap-large", "zone-reclaim-on"]
    assert text.near("swap", known) == ["swap-large", "swap-in-use", "swappiness-high"]
    assert text.near("swap", known, 1) == ["swap-large"]
    assert text.near("zone-reclam-on", known) == ["zone-reclaim-on"]
    assert text.near("", known) == text.near("xyz", known) == []


def test_the_settings_line_of_an_own_file_is_read():
    assert text.own_settings('# by nodetune\n# settings: {"a": 1}\nb=2\n') == {"a": 1}
    assert (
        text.own_settings("a=1\n")
        == text.own_settings("# settings: [1]\n")
        == text.own_settings("# settings: {\n")
        == {}
    )
