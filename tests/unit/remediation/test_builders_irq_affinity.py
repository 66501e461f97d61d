"""From findings about interrupts to changes."""

import subprocess

import pytest

from nodetune import checks
from nodetune.api import predicates
from nodetune.api.facts_view import FactsView
from nodetune.api.model import Absent, HostFacts, Value
from nodetune.api.remedies import irq_affinity
from nodetune.remediation import host_changes
from nodetune.remediation.builders.irq_affinity import OPTION, POLICY
from tests.support.fixing import built, files, finding_of, of_kind, refused

FAMILIES = {
    "debian": {"id": "debian", "version": "12", "like": ["debian"], "name": "Debian"},
    "rhel": {"id": "rocky", "version": "9.4", "like": ["rocky", "rhel"], "name": "Rocky"},
}
EXEC = "/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS"
SETTINGS = {"file": "/etc/default/irqbalance", "options": ""}


def host(daemon="running", settings=None, static=(), family="debian", exec_=EXEC):
    units = {
        "running": Value({"active": "active", "enabled": "enabled", "exec": exec_}),
        "off": Value({"active": "inactive", "enabled": "disabled", "exec": exec_}),
        "absent": Absent("not installed"),
    }
    facts = {
        "host.os": Value(FAMILIES[family]),
        "own.files": Value({}),
        "services.irqbalance": units[daemon],
        "irq.irqbalance": Value(SETTINGS if settings is None else settings),
        "irq.static_affinity": Value(list(static)),
    }
    return HostFacts("gpu01", facts)


def step(check="nic-irqs-remote"):
    return finding_of(irq_affinity(), "local", check=check)


def test_interrupts_are_placed_now_and_kept_for_all_checks():
    changes = built(host("absent"), step("nic-irqs-remote"), step("gpu-irqs-remote"))
    (placed,) = of_kind(changes, "irqs")
    assert placed == {"change": "irqs", "checks": ["gpu-irqs-remote", "nic-irqs-remote"]}
    assert "def spread(" in files(changes)["/usr/local/lib/nodetune/irq/nodetune_host/resources/irqs.py"]
    assert of_kind(changes, "unit") == [
        {"change": "unit", "unit": "nodetune-irq.service", "enabled": "enabled", "active": "started"}
    ]


def test_interrupts_are_placed_before_the_unit_that_places_them_starts():
    """The other way round the unit may be first, and nothing is written down that a rollback could bring back."""
    kinds = [change["change"] for change in built(host("absent"), step())]
    assert kinds.index("irqs") < kinds.index("unit")


@pytest.mark.parametrize("daemon", ["off", "absent"])
def test_an_irqbalance_that_does_not_run_is_left_alone(daemon):
    changes = built(host(daemon), step())
    assert of_kind(changes, "edit") == []
    assert POLICY not in files(changes)


def test_irqbalance_is_told_before_interrupts_are_placed():
    changes = built(host(settings={**SETTINGS, "IRQBALANCE_ARGS": "--hintpolicy=ignore"}), step())
    (edit,) = of_kind(changes, "edit")
    assert edit["path"] == "/etc/default/irqbalance"
    assert edit["with"] == {"values": {"IRQBALANCE_ARGS": f'"--hintpolicy=ignore {OPTION}"'}}
    kinds = [change["change"] for change in changes]
    assert kinds.index("run") < kinds.index("irqs")
    assert of_kind(changes, "run")[0] == {"change": "run", "run": "restart irqbalance.service"}


def test_the_variable_is_the_one_that_the_unit_reads():
    changes = built(host(exec_="/usr/sbin/irqbalance --foreground ${OPTIONS}"), step())
    assert of_kind(changes, "edit")[0]["with"] == {"values": {"OPTIONS": f'"{OPTION}"'}}


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"file": "/etc/irqbalance.env", "options": ""}, "/etc/irqbalance.env"),
        ({"options": ""}, "/etc/default/irqbalance"),
    ],
)
def test_the_file_is_the_one_that_the_unit_reads_or_that_of_the_family(settings, path):
    assert of_kind(built(host(settings=settings), step()), "edit")[0]["path"] == path


def test_an_irqbalance_that_was_told_is_not_told_again():
    changes = built(host(settings={**SETTINGS, "IRQBALANCE_ARGS": OPTION}), step())
    assert of_kind(changes, "edit") == []
    assert POLICY in files(changes), "the script is kept in force"


def test_irqbalance_settings_satisfy_the_conflict_check():
    check = checks.load("irqbalance-fights-static-affinity")
    placed = ["/etc/systemd/system/multi-user.target.wants/nodetune-irq.service"]

    def fights(options):
        view = FactsView(host(settings={**SETTINGS, "options": options}, static=placed), check.needs)
        return not predicates.as_predicate(check.accept).test(check.observe(view))

    assert fights("")
    assert not fights(OPTION)


@pytest.mark.parametrize("facts", [host(family="rhel"), host(exec_="/usr/sbin/irqbalance --foreground")])
def test_irqbalance_is_switched_off_where_it_is_uncertain(facts):
    changes = built(facts, step())
    assert changes[0] == {
        "change": "unit",
        "unit": "irqbalance.service",
        "enabled": "disabled",
        "active": "stopped",
    }
    groups, _ = host_changes.build([step()], facts)
    assert "irqbalance is stopped and disabled" in groups[0].notes[0]


def test_a_policy_of_somebody_else_is_not_replaced():
    settings = {**SETTINGS, "IRQBALANCE_ARGS": "--policyscript=/opt/site/policy"}
    assert "has a policy script already" in refused(host(settings=settings), step())


@pytest.mark.parametrize("options", ["$(reboot)", "a\\b", "`id`"])
def test_options_that_a_shell_would_read_are_not_rewritten(options):
    assert "manually" in refused(host(settings={**SETTINGS, "IRQBALANCE_ARGS": options}), step())


def test_another_owner_of_interrupts_at_boot_stays():
    assert "/etc/rc.local already places interrupts at boot" in refused(host(static=["/etc/rc.local"]), step())


def test_its_own_unit_is_nobody_else():
    assert built(host(static=["/etc/systemd/system/multi-user.target.wants/nodetune-irq.service"]), step())


@pytest.mark.parametrize(
    ("kind", "vendor", "banned"),
    [
        ("0x020000", "0x15b3", True),
        ("0x020700", "0x15b3", True),
        ("0x030200", "0x10de", True),
        ("0x030000", "0x10de", True),
        ("0x030000", "0x1a03", False),
        ("0x010802", "0x144d", False),
        (None, None, False),
    ],
)
def test_the_policy_bans_network_cards_and_gpus_only(tmp_path, kind, vendor, banned):
    script = tmp_path / "policy"
    script.write_text(files(built(host(), step()))[POLICY])
    if kind:
        (tmp_path / "class").write_text(f"{kind}\n")
        (tmp_path / "vendor").write_text(f"{vendor}\n")
    done = subprocess.run(["sh", script, tmp_path, "42"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ban=true\n" if banned else "", "")
