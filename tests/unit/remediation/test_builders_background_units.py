"""Units that work in the background: left alone, until a site file says what is to become of them."""

import json
from dataclasses import replace

import pytest

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.facts import document
from tests.support.commandline import nodetune
from tests.support.fixing import built, files, of_kind, refused

ON = {"active": "active", "enabled": "enabled", "pid": None}
DROP_IN = "/etc/systemd/system/man-db.timer.d/zz-nodetune.conf"


def host(drop_ins=(), **units):
    every = checks.load("background-timers-active").needs
    known = {name: {"absent": "not installed"} for name in every}
    known |= {
        "services.man-db.timer": {"value": {**ON, **units, "drop_ins": list(drop_ins)}},
        "own.files": {"value": {}},
    }
    known |= {"services.cups": {"value": ON}, "services.running": {"value": ["cups.service"]}}
    return document.from_data({"host": "gpu01", "facts": {"pci.gpus": {"value": ["0000:1b:00.0"]}, **known}})


def found(check, value, facts=None):
    return evaluate.judge(replace(checks.load(check), set=value), facts or host())


def test_units_in_the_background_are_as_the_site_file_says():
    (masked,) = built(host(), found("background-timers-active", "masked"))
    assert {key: masked[key] for key in ("unit", "enabled", "active")} == {
        "unit": "man-db.timer", "enabled": "masked", "active": "stopped"
    }  # fmt: skip
    (disabled,) = built(host(), found("background-services-running", "disabled"))
    assert (disabled["unit"], disabled["enabled"]) == ("cups.service", "disabled")


def test_without_a_choice_of_the_site_there_are_only_steps():
    left = found("background-timers-active", None)
    assert (left.status, left.fix) == ("fail", None)
    assert "systemctl mask --now NAME" in left.manual


def test_a_timer_gets_one_time_for_all_hosts_and_passes_then():
    changes = built(host(), found("background-timers-active", "Sun 06:00"))
    assert files(changes)[DROP_IN].endswith("\nOnCalendar=\nOnCalendar=Sun 06:00\nRandomizedDelaySec=0\n")
    assert [change["run"] for change in of_kind(changes, "run")] == ["daemon-reload", "restart man-db.timer"]
    assert found("background-timers-active", "Sun 06:00", host([DROP_IN])).status == "pass"


@pytest.mark.parametrize("value", ["off", "Sun 06:00"])
def test_a_service_gets_no_time(value):
    assert "a service is set to disabled or masked" in refused(host(), found("background-services-running", value))


def test_a_time_that_systemd_would_read_as_more_is_refused():
    assert "is not a time" in refused(host(), found("background-timers-active", "Sun\nUnit=x.service"))


def test_the_choice_comes_from_a_site_file(tmp_path):
    site, facts = tmp_path / "site.yml", tmp_path / "facts.json"
    site.write_text("checks:\n  background-timers-active: {set: masked}\n")
    facts.write_text(document.dump(host()))
    done = nodetune("plan", "--facts", facts, "--site", site, "-s", "background-timers-active", "--format", "json")
    (step,) = json.loads(done.stdout)["steps"]
    assert (step["check"], step["after"], step["unfixable"]) == ("background-timers-active", "masked", "")
