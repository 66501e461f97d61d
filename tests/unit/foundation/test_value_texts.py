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
