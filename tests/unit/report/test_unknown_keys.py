"""Hosts whose keys are not known: one cause in every report, with the command that accepts them."""

import io

import pytest

from nodetune.api.model import HostResult
from nodetune.guard.deploy.status import Status
from nodetune.provision.record import StageResult
from nodetune.remediation.plan import HostPlan
from nodetune.report import markdown
from nodetune.report.sections import CommandOptions
from nodetune.report.text import audit, guard, host_names, plan, provision, verify
from nodetune.report.text.lines import console
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest

STATE = host_names.UNKNOWN_KEY
HOSTS = [f"gpu{number}" for number in range(1, 5)]
WHY = {host: f"the host key ssh-ed25519 SHA256:{host * 9} is not in known_hosts: ssh-keyscan {host}" for host in HOSTS}
RESULTS = [HostResult(host, STATE, WHY[host]) for host in HOSTS]

REPORTS = {
    "audit": lambda stream, results: audit.write(results, stream, CommandOptions("-i prod")),
    "plan": lambda stream, results: plan.print_plan(
        stream, [HostPlan(each) for each in results], CommandOptions("-i prod")
    ),
    "verify": lambda stream, results: verify.Printer(
        console(stream),
        [HostVerification(each.host, each.state, each.message) for each in results],
        SuiteRequest(),
        "-i prod",
    ).verify(),
    "guard install": lambda stream, results: guard.print_not_reached(stream, results, "-i prod"),
    "guard status": lambda stream, results: guard.print_status(
        stream,
        [Status(each.host, "IDLE", False, "", problem=f"{each.state}: {each.message}") for each in results],
        "-i prod",
    ),
    "provision": lambda stream, results: provision.print_plan(
        stream, {}, {each.host: StageResult("failed", f"{each.state}: {each.message}") for each in results}, "-i prod"
    ),
    "lock": lambda stream, results: provision.print_unanswered(
        stream, {each.host: f"{each.state}: {each.message}" for each in results}, "-i prod"
    ),
}


def shown(report, results):
    stream = io.StringIO()
    REPORTS[report](stream, results)
    return stream.getvalue()


@pytest.mark.parametrize("report", REPORTS)
def test_several_unknown_keys_are_one_cause_with_one_command(report):
    text = shown(report, RESULTS)
    assert text.count("gpu[1-4]") == 1
    assert text.count("their keys are not in known_hosts") == 1
    assert "SHA256" not in text
    verb = "verify" if report == "verify" else "audit"
    assert f"     nodetune {verb} -i prod --accept-new-host-keys" in text


@pytest.mark.parametrize("report", REPORTS)
def test_one_unknown_key_is_shown(report):
    text = shown(report, RESULTS[:1])
    assert "SHA256:gpu1" in text
    assert "their keys" not in text


def test_other_causes_stay_on_their_own():
    lost = [*RESULTS, HostResult("gpu9", "refused", "nothing listens")]
    assert "refused  gpu9: nothing listens\n" in shown("audit", lost)


def test_markdown_names_them_once():
    stream = io.StringIO()
    markdown.write(RESULTS, stream, {})
    assert stream.getvalue().count("`gpu[1-4]`: `unknown host key`") == 1
