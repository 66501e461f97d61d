"""Facts become findings: absent is not zero, unread is not a pass, running is not persisted."""

import time
from dataclasses import replace

import pytest

from nodetune.api.facts_view import FactUndeclaredError
from nodetune.api.model import Check, Ref, When
from nodetune.api.predicates import AtLeast, Equals
from nodetune.api.remedies import cpufreq, irq_affinity, kernel_arg, manual, sysctl
from nodetune.audit import evaluate
from nodetune.facts import document

CHECK = Check(
    fact="a.b",
    accept=Equals(0),
    set=0,
    severity="high",
    remedy=sysctl("a.b", boot_default=60),
    id="x",
    doc="A fault.\n",
)
PERSISTED = "persisted.sysctl.a.b"


def judge(check, **facts):
    named = {name.replace("__", "."): fact for name, fact in facts.items()}
    return evaluate.judge(check, document.from_data({"facts": named}))


def kept(value):
    return {"value": {"value": value, "file": "/etc/sysctl.d/a.conf", "line": 3}}


def test_a_zero_that_is_wanted_and_kept_passes():
    assert judge(CHECK, a__b={"value": 0}, **{PERSISTED: kept(0)}).status == "pass"


def test_a_wrong_value_fails_with_its_fix():
    finding = judge(CHECK, a__b={"value": 1}, **{PERSISTED: {"absent": ""}})
    assert (finding.status, finding.observed, finding.wanted) == ("fail", "1", "0")
    assert (finding.fix.kind, finding.fix.target, finding.fix.value) == ("sysctl", "a.b", 0)


def test_a_wrong_value_names_the_file_that_sets_it():
    finding = judge(CHECK, a__b={"value": 1}, **{PERSISTED: kept(1)})
    assert finding.reason == "set by /etc/sysctl.d/a.conf line 3 (1)"


@pytest.mark.parametrize("later", [0, 7])
def test_a_file_with_another_value_did_not_set_it(later):
    finding = judge(CHECK, a__b={"value": 1}, **{PERSISTED: kept(later)})
    assert "set by" not in finding.reason
    assert finding.reason.startswith(f"the next boot sets {later}: /etc/sysctl.d/a.conf line 3; ")
    assert "changed at run time" in finding.reason


def test_a_file_that_the_boot_has_read_is_undone_by_something_later():
    kept_since = {"value": {**kept(7)["value"], "at_boot": True}}
    finding = judge(CHECK, a__b={"value": 1}, **{PERSISTED: kept_since})
    assert finding.reason.endswith(
        "; this boot has read that file, so something sets it later in the boot, or did at run time"
    )


def test_a_running_kernel_keeps_its_arguments_until_the_boot():
    check = replace(CHECK, fact="cmdline.running.x", accept=Equals("0"), set="0", remedy=kernel_arg("x"))
    boot = {"value": {"value": "0", "file": "/boot/grub/grub.cfg"}}
    finding = judge(check, **{"cmdline.running.x": {"value": "1"}, "cmdline.installed.x": boot})
    assert finding.reason == "the next boot sets 0: /boot/grub/grub.cfg"
    assert finding.not_installed == ""
    other = {"value": {"value": "1", "file": "/boot/grub/grub.cfg"}}
    for installed, told in (
        ({"absent": "not there"}, "the boot loader starts the kernel without x=0"),
        ({"unread": "denied"}, "whether the next boot has x=0 is unknown: denied"),
        (other, "/boot/grub/grub.cfg has x=1"),
    ):
        lacking = judge(check, **{"cmdline.running.x": {"value": "1"}, "cmdline.installed.x": installed})
        assert lacking.not_installed == told


def test_a_check_may_name_the_cause_of_its_failing_subjects():
    check = replace(CHECK, cause=lambda facts, subjects: f"because of {facts['a.c']} on {', '.join(subjects)}")
    check = replace(check, needs=("a.c",), remedy=manual("look"), set=None)
    each = {"each": {"GPU0": {"value": 1}, "GPU1": {"value": 0}}}
    assert judge(check, a__b=each, a__c={"value": "x"}).reason == "because of x on GPU0"
    for unknown in ({"unread": "denied"}, {"absent": "none"}):
        finding = judge(check, a__b=each, a__c=unknown)
        assert (finding.status, finding.reason) == ("fail", "")


def test_a_cause_of_odd_facts_costs_no_verdict():
    check = replace(CHECK, needs=("a.c",), cause=lambda facts, _: facts["a.c"]["x"]["y"])
    assert judge(check, a__b={"value": 1}, a__c={"value": 7}).status == "fail"


def test_a_ceiling_that_is_too_low_goes_with_the_fix():
    check = replace(CHECK, accept=AtLeast(9), set=20, ceiling="sysctl.top")
    facts = {"sysctl.top": {"value": 5}, "persisted.sysctl.top": {"absent": "none"}}
    finding = judge(check, a__b={"value": 1}, **facts)
    assert finding.reason == "top = 5 caps it"
    assert finding.fix.params["ceiling"] == {"sysctl": "top", "reason": "top = 5 caps it"}
    named = {**facts, "persisted.sysctl.top": {"value": {"value": 5, "file": "/etc/sysctl.d/a.conf", "line": 3}}}
    assert judge(check, a__b={"value": 1}, **named).reason.endswith("set by /etc/sysctl.d/a.conf line 3")
    assert "ceiling" not in judge(check, a__b={"value": 1}, **{**facts, "sysctl.top": {"value": 9}}).fix.params


def test_a_value_overwritten_at_boot_fails_and_names_the_file():
    finding = judge(CHECK, a__b={"value": 0}, **{PERSISTED: kept(1)})
    assert finding.status == "fail"
    assert finding.reason == "the next boot sets 1: /etc/sysctl.d/a.conf line 3"


def test_a_value_in_no_file_fails_if_the_default_differs():
    finding = judge(CHECK, a__b={"value": 0}, **{PERSISTED: {"absent": ""}})
    assert finding.status == "fail"
    assert finding.reason == "no file persists it: the next boot starts with 60"


def test_an_unknown_boot_default_is_no_fault():
    check = replace(CHECK, remedy=sysctl("a.b"))
    assert judge(check, a__b={"value": 0}, **{PERSISTED: {"absent": ""}}).status == "pass"


@pytest.mark.parametrize("meaning", ["skip", "pass", "fail"])
def test_the_check_says_what_absence_means(meaning):
    finding = judge(replace(CHECK, absent=meaning), a__b={"absent": "no such file"})
    assert finding.status == meaning


def test_what_could_not_be_read_is_unknown_and_says_why():
    finding = judge(CHECK, a__b={"unread": "permission denied"})
    assert (finding.status, finding.reason) == ("unknown", "permission denied")


def test_a_fact_that_was_not_collected_is_unknown():
    assert judge(CHECK).status == "unknown"


def test_a_failed_family_explains_its_facts():
    host = document.from_data({"facts": {}, "failed": {"a": "did not return within 6 s in reading a"}})
    assert evaluate.judge(CHECK, host).reason == "did not return within 6 s in reading a"


def test_the_failing_subjects_and_the_odd_one_are_named():
    each = {f"GPU{number}": {"value": int(number == 5)} for number in range(8)}
    check = replace(CHECK, remedy=manual("look"), set=None)
    finding = judge(check, a__b={"each": each})
    assert list(finding.subjects) == ["GPU5"]
    assert finding.odd == ("GPU5",)
    assert finding.peers == 8
    assert finding.observed == "GPU5: 1"


def test_subjects_that_all_fail_have_no_odd_one():
    finding = judge(
        CHECK, a__b={"each": {f"GPU{number}": {"value": 1} for number in range(8)}}, **{PERSISTED: {"absent": ""}}
    )
    assert finding.observed == "GPU0-7: 1"
    assert finding.odd == ()


def test_one_unreadable_subject_among_good_ones_is_unknown():
    each = {"GPU0": {"value": 0}, "GPU1": {"unread": "GPU is lost"}}
    finding = judge(CHECK, a__b={"each": each})
    assert (finding.status, dict(finding.subjects)) == ("unknown", {"GPU1": "GPU is lost"})


def test_a_failing_subject_outweighs_an_unreadable_one():
    each = {"GPU0": {"value": 1}, "GPU1": {"unread": "GPU is lost"}}
    finding = judge(CHECK, a__b={"each": each}, **{PERSISTED: {"absent": ""}})
    assert (finding.status, list(finding.subjects), finding.unread) == ("fail", ["GPU0"], ("GPU1",))


def test_a_check_that_does_not_apply_is_skipped_with_the_reason():
    check = replace(CHECK, applies=(When("host.virtual", Equals(wanted=False), "a virtual machine"),))
    finding = judge(check, a__b={"value": 1}, host__virtual={"value": True})
    assert (finding.status, finding.reason) == ("skip", "a virtual machine")


def test_a_condition_that_cannot_be_read_is_unknown_not_skipped():
    check = replace(CHECK, applies=(When("host.virtual", Equals(wanted=False), "a virtual machine"),))
    assert judge(check, a__b={"value": 1}, host__virtual={"unread": "no"}).status == "unknown"


def test_an_empty_override_leaves_the_setting_untouched():
    assert judge(replace(CHECK, accept=None), a__b={"value": 1}).status == "skip"


def test_a_reference_compares_each_subject_with_its_own_value():
    check = Check(
        fact="pcie.width", accept=Equals(Ref("pcie.max")), severity="high", remedy=manual("reseat"), id="x", doc="A.\n"
    )
    each = {"GPU0": {"value": 16}, "GPU1": {"value": 8}}
    most = {"GPU0": {"value": 16}, "GPU1": {"value": 16}}
    finding = judge(check, pcie__width={"each": each}, pcie__max={"each": most})
    assert list(finding.subjects) == ["GPU1"]


def test_a_reference_to_many_subjects_stays_linear():
    check = Check(fact="a.x", accept=Equals(Ref("a.y")), severity="high", remedy=manual(""), id="x", doc="A.\n")
    many = {"each": {f"GPU{number}": {"value": number} for number in range(10_000)}}
    began = time.thread_time()
    assert judge(check, a__x=many, a__y=many).status == "pass"
    assert time.thread_time() - began < 20


def test_an_unread_reference_subject_affects_only_itself():
    check = Check(fact="a.x", accept=Equals(Ref("a.y")), severity="high", remedy=manual(""), id="x", doc="A.\n")
    now = {"each": {"GPU0": {"value": 8}, "GPU1": {"value": 16}}}
    finding = judge(check, a__x=now, a__y={"each": {"GPU0": {"value": 16}, "GPU1": {"unread": "lost"}}})
    assert (finding.status, list(finding.subjects)) == ("fail", ["GPU0"])


def test_texts_of_a_host_are_bounded_and_safe_to_print():
    nasty = {"value": {"value": 1, "file": "/etc/\x1b]0;x\x07.conf", "line": "\x1b"}}
    finding = judge(CHECK, a__b={"value": 1}, **{"persisted.sysctl.a.b": nasty})
    assert not set(finding.reason) & set("\x1b\x07")
    finding = judge(CHECK, a__b={"value": ["x" * 300] * 1000})
    assert len(finding.observed) < 5000


def test_a_computed_wanted_value_is_what_the_fix_sets():
    check = Check(
        fact="sysctl.x",
        accept=AtLeast(Ref("a.want")),
        set=Ref("a.want"),
        severity="low",
        remedy=sysctl("x"),
        id="x",
        doc="A.\n",
    )
    finding = judge(check, sysctl__x={"value": 1}, a__want={"value": 9}, **{"persisted.sysctl.x": {"absent": ""}})
    assert (finding.wanted, finding.fix.value) == ("at least 9", 9)


def test_a_check_sees_only_the_facts_that_it_declared():
    check = Check(
        observe=lambda facts: facts["other.fact"],
        needs=("a.b",),
        accept=Equals(0),
        severity="low",
        remedy=manual("x"),
        id="x",
        doc="A.\n",
    )
    with pytest.raises(FactUndeclaredError):
        judge(check, a__b={"value": 0}, other__fact={"value": 0})


def test_an_observation_may_mix_values_and_unreadable_subjects():
    from nodetune.api.model import Unread

    check = Check(
        observe=lambda facts: {"eth0": 1, "eth1": Unread("down")},
        needs=("a.b",),
        accept=Equals(1),
        severity="low",
        remedy=manual("x"),
        id="x",
        doc="A.\n",
    )
    assert judge(check, a__b={"value": 0}).status == "unknown"


@pytest.mark.parametrize("shape", ["text", 5, [], {"a": 1}, [[[]]], True, None, {"GPU0": None}])
def test_facts_of_an_unexpected_shape_give_no_verdict(shape):
    """Some checks can say something of any shape (a number is at most 60, a list is empty); most have no verdict."""
    from nodetune import checks

    for fact in ({"value": shape}, {"each": {"GPU0": {"value": shape}}}):
        named = [(each, dict.fromkeys(evaluate.raw(evaluate.declared(each)), fact)) for each in checks.load_all()]
        found = [judge(each, **facts) for each, facts in named]
        odd = ("not understood: ", "the facts have an unexpected shape: ")
        puzzled = [each for each in found if any(words in each.reason for words in odd)]
        assert len(puzzled) > 50
        assert {(each.status, each.fix, "\n" in each.reason) for each in puzzled} == {("unknown", None, False)}
        assert len([each for each in found if each.status == "pass"]) <= 24


@pytest.mark.parametrize("problem", [TypeError, ValueError, KeyError, AttributeError, ZeroDivisionError, MemoryError])
def test_a_check_that_fails_over_facts_says_why(problem):
    def observe(_facts):
        raise problem("odd")

    check = replace(CHECK, fact=None, set=None, observe=observe, needs=("a.b",), remedy=manual("x"))
    finding = judge(check, a__b={"value": 0})
    assert finding.status == "unknown"
    assert finding.reason == f"the facts have an unexpected shape: {problem('odd')!r}"


GOVERNOR = replace(CHECK, remedy=cpufreq("governor"), accept=Equals("performance"), set="performance")
WRONG = {"each": {"cpu0-7": {"value": "schedutil"}}}
UNIT = {"load": "loaded", "active": "active", "sub": "exited", "enabled": "enabled"}


def at_boot(active, settings='{"governor": "performance"}'):
    conf = (
        {"absent": "no such file"}
        if settings is None
        else {"value": f"# Written by nodetune\n# settings: {settings}\n"}
    )
    return {"services.nodetune-cpu": {"value": {**UNIT, "active": active}}, "file./etc/nodetune/cpu.conf": conf}


@pytest.mark.parametrize(
    ("active", "reason"),
    [
        ("failed", "nodetune-cpu.service, which sets it at boot, has failed: journalctl -b -u nodetune-cpu.service"),
        (
            "activating",
            "nodetune-cpu.service, which sets it at boot, is still starting: systemctl status nodetune-cpu.service",
        ),
        ("active", ""),
    ],
)
def test_a_boot_unit_that_did_not_do_its_work_is_the_reason(active, reason):
    finding = judge(GOVERNOR, a__b=WRONG, **at_boot(active))
    assert (finding.status, finding.reason) == ("fail", reason)
    assert finding.fix is not None


@pytest.mark.parametrize("settings", [None, "{}", '{"boost": true}', "[]", "{", '{"governor"'])
def test_a_failed_boot_unit_for_other_settings_is_no_reason(settings):
    assert judge(GOVERNOR, a__b=WRONG, **at_boot("failed", settings)).reason == ""


@pytest.mark.parametrize("unit", [{"absent": "not installed"}, {"unread": "timed out"}, {"value": ["odd"]}])
def test_a_boot_unit_that_is_not_known_is_no_reason(unit):
    facts = {**at_boot("failed"), "services.nodetune-cpu": unit}
    assert (judge(GOVERNOR, a__b=WRONG, **facts).status, judge(GOVERNOR, a__b=WRONG, **facts).reason) == ("fail", "")


def test_the_unit_that_keeps_interrupts_has_no_settings_file():
    check = replace(CHECK, remedy=irq_affinity(), set="local")
    unit = {"services.nodetune-irq": {"value": {**UNIT, "active": "failed"}}}
    assert "nodetune-irq.service" in judge(check, a__b={"value": 1}, **unit).reason


def test_a_check_that_sets_nothing_asks_for_no_boot_unit():
    assert evaluate.declared(replace(GOVERNOR, set=None)) == {"a.b"}


def test_a_fact_for_each_gpu_shows_that_there_is_one():
    check = replace(CHECK, fact="gpu.fan", remedy=manual(""), set=None, applies=(When("gpu.count", AtLeast(2), "one"),))
    one, two = ({"each": {f"GPU{at}": {"value": 1} for at in range(count)}} for count in (1, 2))
    assert judge(check, gpu__fan=two).status == "fail"
    assert judge(check, gpu__fan=one).status == "unknown"
    assert judge(check, gpu__fan=two, gpu__count={"value": 1}).status == "skip"
    assert judge(check).status == "unknown"
