"""Predicates test, describe themselves and survive the way through a file."""

import pytest

from nodetune.api import predicates
from nodetune.api.model import Ref
from nodetune.api.predicates import AtLeast, AtMost, Contains, Empty, Equals, Matches, Not, OneOf, Subset, Where, Within

EXAMPLES = [
    (Equals(0), 0, 1, "0"),
    (Equals("madvise"), "madvise", "never", "madvise"),
    (AtLeast(5), 5, 4, "at least 5"),
    (AtMost(5), 5, 6, "at most 5"),
    (Within([1, 3]), 3, 4, "1 to 3"),
    (OneOf(["a", "b"]), "b", "c", "a or b"),
    (Matches("^x"), "xy", "yx", "text matching /^x/"),
    (Contains("a"), ["a"], ["b"], "contains a"),
    (Subset(["a", "b"]), ["a"], ["c"], "nothing but a, b"),
    (Empty("no faults"), [], ["one"], "no faults"),
    (Not(Equals(2)), 1, 2, "not 2"),
    (Where({"active": Equals("active")}), {"active": "active"}, {"active": "failed"}, "active active"),
]


@pytest.mark.parametrize(("predicate", "good", "bad", "text"), EXAMPLES)
def test_a_predicate_accepts_what_it_describes(predicate, good, bad, text):
    assert predicate.test(good)
    assert not predicate.test(bad)
    assert predicate.describe() == text


@pytest.mark.parametrize(("predicate", "good", "bad", "text"), EXAMPLES)
def test_a_predicate_survives_as_data(predicate, good, bad, text):
    assert predicates.from_data(predicates.to_data(predicate)) == predicate


def test_a_wanted_zero_is_neither_false_nor_absent():
    assert Equals(0).test(0)
    assert not Equals(0).test(False)
    assert not Equals(0).test(None)
    assert not Equals(0).test("")


@pytest.mark.parametrize("value", ["5", None, [5], True])
def test_a_number_is_wanted_where_sizes_are_compared(value):
    assert not AtLeast(1).test(value)


def test_a_reference_is_replaced_by_the_value_of_its_fact():
    predicate = AtLeast(Ref("net.speed"))
    assert predicates.refs(predicate) == {"net.speed"}
    assert predicates.resolve(predicate, {"net.speed": 7}.__getitem__) == AtLeast(7)
    assert predicates.from_data({"at_least": {"fact": "net.speed"}}) == predicate


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"at_lest": 1}, "unknown predicate 'at_lest'"),
        ({"at_least": "many"}, "at_least must be a number"),
        ({"within": [1]}, "within must be two numbers"),
        ({"one_of": "a"}, "one_of must be a list"),
        ({"matches": "("}, "regular expression"),
        ({"equals": 1, "not": 2}, "expected one predicate"),
        ({}, "expected one predicate"),
    ],
)
def test_a_wrong_predicate_says_what_is_wrong(data, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        predicates.from_data(data)
