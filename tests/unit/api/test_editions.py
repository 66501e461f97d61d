"""Editions of nodetune: which of two is the earlier one."""

from itertools import pairwise

import pytest

from nodetune.api.conclusion import is_older

IN_ORDER = ("0.1.0", "0.2.0.dev1", "0.2.0.dev12", "0.2.0", "0.2.1", "0.10.0", "1.0")


@pytest.mark.parametrize(("earlier", "later"), list(pairwise(IN_ORDER)))
def test_an_edition_is_older_than_those_after_it(earlier, later):
    assert is_older(earlier, later)
    assert not is_older(later, earlier)
    assert not is_older(earlier, earlier)
