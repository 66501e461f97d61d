"""Lists of CPUs, as the kernel and Slurm write them."""

import pytest

from nodetune.onhost import cpu_list


def test_a_list_is_parsed_and_folded_back():
    for text, numbers in {"0-3,8,10-11": [0, 1, 2, 3, 8, 10, 11], "0,2-4,7": [0, 2, 3, 4, 7], "": []}.items():
        assert cpu_list.parse(text + "\n") == numbers
        assert cpu_list.fold(reversed(numbers)) == text


@pytest.mark.parametrize(
    "text", ["3-1", "-3", "3-", "a", "0-131072", "0-99999999999", "(null)", "nonsense", "0-131071,0"]
)
def test_any_other_text_and_an_endless_list_are_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  (int() has words of its own)
        cpu_list.parse(text)
    assert cpu_list.parse_or_empty(text) == []


def test_several_numbers_in_a_name_are_in_brackets():
    assert [cpu_list.bracketed(each) for each in ([3], [0, 1, 2], [0, 2])] == ["3", "[0-2]", "[0,2]"]
