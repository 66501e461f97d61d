"""What is to be done about a unit, decided from its state; systemd itself is met in the fleet."""

import os

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import unit


def wanted(enabled, found):
    return unit.wanted({"unit": "x.service", "enabled": enabled}, {"enabled": found})["enabled"]


@pytest.mark.parametrize("found", ["enabled", "static", "indirect", "generated", ""])
def test_what_is_started_anyway_needs_no_enabling(found):
    assert wanted("enabled", found) == found


@pytest.mark.parametrize("found", ["disabled", "masked", "masked-runtime", "enabled-runtime", "not-found"])
def test_what_would_not_be_there_after_a_boot_is_enabled(found):
    assert wanted("enabled", found) == "enabled"


@pytest.mark.parametrize("found", ["disabled", "masked", "masked-runtime", "not-found"])
def test_what_is_off_already_is_not_disabled_again(found):
    assert wanted("disabled", found) == found


@pytest.mark.parametrize("found", ["enabled", "enabled-runtime", "static", "generated"])
def test_what_can_start_is_to_be_disabled(found):
    assert wanted("disabled", found) == "disabled"


def test_a_runtime_mask_is_not_enough_for_a_permanent_one():
    assert wanted("masked", "masked-runtime") == "masked"
    assert wanted("masked", "generated") == "masked"
    assert wanted("masked", "not-found") == "not-found"


def test_what_the_change_leaves_alone_is_no_part_of_the_state():
    assert unit.wanted({"unit": "x", "active": "stopped", "enabled": None}, {"active": "started"}) == {
        "active": "stopped"
    }


def test_a_unit_whose_file_goes_later_counts_as_undone():
    assert unit.same({"enabled": "disabled", "active": "stopped"}, {"enabled": "not-found", "active": "stopped"})
    assert unit.same({"enabled": "generated"}, {"enabled": ""})
    assert not unit.same({"enabled": "static"}, {"enabled": "disabled"})
    assert not unit.same({"enabled": "enabled"}, {"enabled": "not-found"})
    assert not unit.same({"enabled": "disabled", "active": "started"}, {"enabled": "disabled", "active": "stopped"})


def test_a_diff_shows_both_halves_in_one_line():
    assert unit.show({"unit": "x"}, {"enabled": "masked", "active": "stopped"}) == "masked, stopped\n"
    assert unit.show({"unit": "x"}, {"enabled": ""}) == "no unit file\n"


@pytest.mark.skipif(os.path.isdir("/run/systemd/system"), reason="about machines without systemd")
def test_without_systemd_a_unit_is_a_problem():
    with pytest.raises(ChangeError, match="systemctl"):
        unit.read({"unit": "x.service", "enabled": "enabled"})
