"""The BMC collector with a substitute for ipmitool that prints what the real one does (there is no BMC to ask)."""

import pytest

CHASSIS = """System Power         : on
Power Overload       : false
Power Interlock      : inactive
Main Power Fault     : false
Power Control Fault  : false
Power Restore Policy : previous
Last Power Event     :
Chassis Intrusion    : inactive
Front-Panel Lockout  : inactive
Drive Fault          : {drive}
Cooling/Fan Fault    : {fan}
"""
LOG = """SEL Information
Version          : 1.5 (v1.5, v2 compliant)
Entries          : 497
Free Space       : 256 bytes
Percent Used     : {used}
Last Add Time    : 03/05/2025 10:11:12
Last Del Time    : Not Available
Overflow         : {overflow}
Supported Cmds   : 'Reserve' 'Get Alloc Info'
"""
SUPPLIES = """PS1 Status       | C8h | ok  | 10.1 | Presence detected
PS2 Status       | C9h | ok  | 10.2 | Presence detected, Power Supply AC lost
"""


@pytest.fixture
def bmc(tree):
    def plant(drive="false", fan="false", used="97%", overflow="false", script=None):
        outputs = {
            "chassis": CHASSIS.format(drive=drive, fan=fan),
            "sel": LOG.format(used=used, overflow=overflow),
            "sdr": SUPPLIES,
        }
        answers = "".join(f"{word}) cat <<'END'\n{text}END\n;;\n" for word, text in outputs.items())
        root = tree({"/dev/ipmi0": "", "/usr/bin/ipmitool": script or f"#!/bin/sh\ncase $1 in\n{answers}esac\n"})
        (root / "usr/bin/ipmitool").chmod(0o755)

    return plant


def test_a_host_without_bmc_has_none(tree, collect):
    tree({"/dev/": None})
    assert collect("bmc", ["fans"]) == {
        f"bmc.{name}": {"absent": "no BMC interface (/dev/ipmi0)"} for name in ("faults", "event_log", "fans")
    }


def test_a_bmc_shows_by_its_interface_and_is_not_asked_for_that(bmc, tree, collect):
    bmc(script="#!/bin/sh\nexit 1\n")
    assert collect("bmc", ["present"]) == {"bmc.present": {"value": True}}
    (tree({"/dev/": None}) / "dev/ipmi0").unlink()
    assert collect("bmc", ["present"]) == {"bmc.present": {"value": False}}


def test_without_ipmitool_the_bmc_is_not_asked(tree, collect):
    tree({"/dev/ipmi0": ""})
    assert "ipmitool is not installed" in collect("bmc")["bmc.faults"]["absent"]


def test_faults_are_named_as_ipmitool_names_them(bmc, collect):
    bmc(fan="true")
    assert collect("bmc")["bmc.faults"] == {"value": ["Cooling/Fan Fault"]}


def test_no_fault_is_an_empty_list(bmc, collect):
    bmc()
    assert collect("bmc")["bmc.faults"] == {"value": []}


def test_the_event_log_tells_how_full_it_is(bmc, collect):
    bmc()
    assert collect("bmc")["bmc.event_log"] == {"value": {"used_percent": 97, "entries": 497, "overflow": False}}


def test_a_log_of_unknown_size_is_not_taken_for_empty(bmc, collect):
    bmc(used="unknown", overflow="true")
    assert collect("bmc")["bmc.event_log"] == {"value": {"used_percent": None, "entries": 497, "overflow": True}}


def test_sensors_are_read_only_when_asked_for(bmc, collect):
    bmc()
    assert "bmc.power_supplies" not in collect("bmc", ["faults"])
    assert collect("bmc", ["power_supplies"])["bmc.power_supplies"]["value"]["PS2 Status"] == {
        "status": "ok",
        "reading": "Presence detected, Power Supply AC lost",
    }


def test_a_controller_that_fails_is_unread(bmc, collect):
    bmc(script="#!/bin/sh\necho 'Could not open device at /dev/ipmi0: No such device' >&2\nexit 1\n")
    assert "Could not open device".lower() in collect("bmc")["bmc.faults"]["unread"].lower()


def test_an_answer_that_says_nothing_is_unread(bmc, collect):
    bmc(script="#!/bin/sh\necho hello\n")
    assert collect("bmc")["bmc.faults"] == {"unread": "unexpected answer of ipmitool chassis status"}
