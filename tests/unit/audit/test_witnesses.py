"""Every check has whole hosts as witnesses: one on which it alone fails, and one on which it passes."""

import pytest

from nodetune import checks
from tests.support import witnesses

EXCEPTIONS = frozenset()
"""Checks that may lack a witness. This may only shrink: find a witness, or fix what keeps the check from being judged."""


@pytest.mark.parametrize("status", witnesses.JUDGED)
@pytest.mark.parametrize("check", [name for name in checks.catalogue() if name not in EXCEPTIONS])
def test_a_whole_host_is_witness_of_the_check(check, status):
    if witnesses.witness(check, status) is None:
        pytest.fail(
            f"no whole host is witness of {check} ({status}): `python -m tests.support.witnesses {check}` says what was"
            " tried; describe one in tests/data/witnesses.yml, or make the facts of the check's case agree with each other",
            pytrace=False,
        )


def test_exceptions_have_reasons_and_no_witness():
    assert {*witnesses.told()["exceptions"]} == EXCEPTIONS
    assert not [each for each in EXCEPTIONS if all(witnesses.witness(each, status) for status in witnesses.JUDGED)]


def test_described_witnesses_are_of_checks_that_exist():
    told = {name for status in witnesses.JUDGED for name in witnesses.told()[status]}
    assert not told - {*checks.catalogue()}


@pytest.mark.parametrize("host", witnesses.told()["hosts"])
def test_a_described_host_has_no_fault_that_its_origin_lacks(host):
    assert _failing(witnesses.hosts()[host]) <= _failing(witnesses.origin(witnesses.told()["hosts"][host]["from"]))


def _failing(facts):
    found = witnesses.judged(facts).values()
    return {each.check for each in found if each.status == "fail" and each.severity in witnesses.COUNTED}
