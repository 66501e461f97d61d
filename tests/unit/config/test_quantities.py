"""Quantities of site files as numbers in the unit of a check."""

import pytest

from nodetune.config import quantities


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("256MiB", "KiB", 262144),
        ("1.5 GiB", "bytes", 3 << 29),
        ("2kB", "bytes", 2000),
        ("2KB", "bytes", 2000),
        ("3MB", "bytes", 3_000_000),
        ("1PiB", "MiB", 1 << 30),
        ("1TB", "bytes", 10**12),
        ("7bytes", "bytes", 7),
        ("7B", "bytes", 7),
        ("2ms", "us", 2000),
        ("5min", "s", 300),
        ("1h", "s", 3600),
        ("1500ms", "s", 1.5),
        ("1us", "us", 1),
        ("100Gb/s", "Mb/s", 100_000),
        ("25000Mb/s", "Mb/s", 25_000),
        ("700W", "mW", 700_000),
        ("0.7kW", "mW", 700_000),
        ("5mW", "mW", 5),
        ("1.98GHz", "MHz", 1980),
        ("1980MHz", "MHz", 1980),
    ],
)
def test_a_quantity_becomes_a_number_of_the_unit(text, unit, number):
    found = quantities.converted(text, unit)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("5min", "KiB", "'5min' is not a quantity here: write a number of KiB, or a text such as 256MiB"),
        ("5 m i n", "s", "or a text such as 5min"),
        ("1500B", "KiB", "'1500B' is not a whole number of KiB"),
    ],
)
def test_what_is_no_quantity_of_the_unit_is_refused(text, unit, says):
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        quantities.converted(text, unit)


def test_all_quantities_of_a_predicate_are_converted_and_texts_stay():
    given = {"any_of": [{"at_least": "1GiB"}, {"matches": "1GiB"}, {"fact": "1.x"}, "off", 7]}
    wanted = {"any_of": [{"at_least": 1024}, {"matches": "1GiB"}, {"fact": "1.x"}, "off", 7]}
    assert quantities.converted(given, "MiB") == wanted
    assert quantities.converted(given, "%") is given, "a unit without quantities"


@pytest.mark.parametrize(
    ("given", "has"),
    [
        ("1GiB", True),
        ("GiB", False),
        ("", False),
        (1, False),
        (["off", "1GiB"], True),
        ({"at_least": "1GiB"}, True),
        ({"matches": "1GiB", "fact": "1", "empty": "1"}, False),
    ],
)
def test_a_text_that_begins_with_a_digit_may_be_a_quantity(given, has):
    assert quantities.has_quantity(given) is has


def test_a_unit_has_an_example_or_takes_numbers_only():
    assert (quantities.example("mW"), quantities.example("%")) == ("700W", "")
