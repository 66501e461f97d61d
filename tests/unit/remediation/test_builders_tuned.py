"""Where tuned runs: what a plan sets against its profile goes into a profile of nodetune's, or is refused with the reason."""

import json

import pytest

from nodetune.api import remedies
from nodetune.api.model import Absent, HostFacts, HostResult, Value
from nodetune.foundation.text import own_settings
from nodetune.remediation import export, host_changes, plan
from nodetune.remediation.builders import cpufreq
from tests.support.fixing import built, files, finding_of, of_kind, refused

RUNS = {"active": "active", "enabled": "enabled"}
STOCK = "/usr/lib/tuned/throughput-performance/tuned.conf"
PATH = "/etc/tuned/nodetune/tuned.conf"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SETS = {"cpu": {"governor": "powersave"}, "vm": {"transparent_hugepages": "never"}, "sysctl": {"vm.swappiness": "10"}}
SWAPPINESS = finding_of(remedies.sysctl("vm.swappiness"), 1, check="swappiness-high")
HUGE_PAGES = finding_of(remedies.sysfs(THP), "madvise", check="thp-unsuitable")
GOVERNOR = finding_of(remedies.cpufreq("governor"), "performance", ("cpu0",), "governor-wrong")


def host(sets=None, own=None, unit=RUNS, **more):
    settings = {
        section: {key: {"value": text, "file": STOCK} for key, text in keys.items()}
        for section, keys in (SETS if sets is None else sets).items()
    }
    profile = {"name": "site", "chain": ["site"], "files": [STOCK], "settings": settings}
    profile |= {"post_loaded": "", "reapply_sysctl": True, "home": "/etc/tuned"} | more
    facts = {f"services.{name}": Absent("not installed") for name in cpufreq.SERVICES}
    facts |= {"services.tuned": Value(unit), "services.tuned_profile": Value(profile), "own.files": Value(own or {})}
    return HostFacts("gpu01", facts | {"host.os": Value({"id": "debian", "version": "12", "like": []})})


def sections(changes):
    (made,) = of_kind(changes, "tuned")
    return {name: keys for name, keys in own_settings(made["content"]).items() if name != "main"}


def lines(changes):
    (made,) = of_kind(changes, "tuned")
    return [line for line in made["content"].splitlines() if line and not line.startswith("#")]


def test_a_profile_includes_the_active_one_and_sets_one_value():
    changes = built(host(), SWAPPINESS)
    assert [change["change"] for change in changes] == ["value", "file", "tuned"]
    assert {key: changes[-1][key] for key in ("path", "includes", "mode", "checks")} == {
        "path": PATH,
        "includes": "site",
        "mode": "0644",
        "checks": ["swappiness-high"],
    }
    assert lines(changes)[0] == "[main]"
    assert lines(changes)[2:] == ["include=site", "[sysctl]", "vm.swappiness=1"]


@pytest.mark.parametrize("theirs", ["1", '"1"', "<5", ">0"])
def test_a_value_that_tuned_does_not_change_needs_no_profile(theirs):
    assert of_kind(built(host({"sysctl": {"vm.swappiness": theirs}}), SWAPPINESS), "tuned") == []


@pytest.mark.parametrize("theirs", ["10", ">5", "<0", "${swappiness}"])
def test_a_value_that_tuned_changes_is_set_in_the_profile(theirs):
    assert sections(built(host({"sysctl": {"vm.swappiness": theirs}}), SWAPPINESS)) == {
        "sysctl": {"vm.swappiness": "1"}
    }


@pytest.mark.parametrize("given", [SWAPPINESS, HUGE_PAGES])
def test_a_tuned_that_is_stopped_or_sets_nothing_is_left_alone(given):
    assert of_kind(built(host(unit={"active": "inactive", "enabled": "disabled"}), given), "tuned") == []
    assert of_kind(built(host({}), given), "tuned") == []


def test_a_byte_limit_is_set_against_the_ratio_of_the_profile():
    given = finding_of(remedies.sysctl("vm.dirty_bytes"), 1 << 30)
    assert sections(built(host({"sysctl": {"vm.dirty_ratio": "40"}}), given)) == {
        "sysctl": {"vm.dirty_bytes": str(1 << 30)}
    }


def test_each_section_of_the_plugin_is_set_with_its_type():
    sets = {"sysctl": {"vm.swappiness": "10"}, "mine": {"type": "sysctl", "vm.swappiness": "20"}}
    assert sections(built(host(sets), SWAPPINESS)) == {
        "sysctl": {"vm.swappiness": "1"},
        "mine": {"type": "sysctl", "vm.swappiness": "1"},
    }


@pytest.mark.parametrize(
    ("sets", "wanted"),
    [
        ({"vm": {"transparent_hugepage": "never"}}, {"vm": {"transparent_hugepage": "madvise"}}),
        ({"sysfs": {"/sys/kernel/mm/*/enabled": "never"}}, {"sysfs": {THP: "madvise"}}),
    ],
)
def test_huge_pages_are_set_where_the_profile_sets_them(sets, wanted):
    assert sections(built(host(sets), HUGE_PAGES)) == wanted


def test_tuned_sets_the_frequency_in_place_of_our_unit():
    epp = finding_of(remedies.cpufreq("epp"), "performance", ("cpu0",))
    changes = built(host(), GOVERNOR, epp)
    assert sections(changes) == {
        "cpu": {"governor": "performance"},
        "sysfs": {"/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference": "performance"},
    }
    assert files(changes) == {} and of_kind(changes, "unit") == []
    assert [change["setting"] for change in of_kind(changes, "cpu")] == ["epp", "governor"]


def test_boost_is_set_in_each_of_its_forms():
    changes = built(host({"cpu": {"no_turbo": "1"}}), finding_of(remedies.cpufreq("boost"), value=True))
    cpu = "/sys/devices/system/cpu"
    assert sections(changes) == {
        "cpu": {"no_turbo": "0"},
        "sysfs": {f"{cpu}/intel_pstate/no_turbo": "0", f"{cpu}/cpufreq/boost": "1"},
    }


def test_our_unit_from_before_tuned_sets_the_same():
    own = {"/etc/nodetune/cpu.conf": '# settings: {"governor": "powersave"}\n'}
    assert own_settings(files(built(host(own=own), GOVERNOR))["/etc/nodetune/cpu.conf"]) == {"governor": "performance"}


def test_kinds_of_one_plan_add_to_one_profile_and_repeat_equal():
    planned, unfixable = host_changes.build([SWAPPINESS, HUGE_PAGES, GOVERNOR], host())
    assert unfixable == []
    made = [change for each in planned for change in each.changes if change["change"] == "tuned"]
    assert [each.name for each in planned] == ["cpufreq", "sysctl", "sysfs"]
    assert set(own_settings(made[-1]["content"])) == {"main", "cpu", "sysctl", "vm"}
    assert made[0]["or"] == [made[2]["content"], made[1]["content"]]
    again = host(own={PATH: made[-1]["content"]}, name="nodetune", chain=["nodetune", "site"])
    (repeated,) = of_kind(built(again, SWAPPINESS), "tuned")
    assert (repeated["content"], repeated["includes"]) == (made[-1]["content"], "site")


def test_several_active_profiles_are_all_included():
    (change,) = of_kind(built(host(name="a b", chain=["a", "b"]), SWAPPINESS), "tuned")
    assert change["includes"] == "a b"
    assert "include=a,b" in change["content"]


def test_another_profile_since_is_the_one_to_include():
    own = {PATH: '# settings: {"main": {"include": "old"}, "vm": {"transparent_hugepages": "madvise"}}\n'}
    changes = built(host(own=own), SWAPPINESS)
    assert own_settings(of_kind(changes, "tuned")[0]["content"])["main"] == {"include": "site"}
    assert sections(changes)["vm"] == {"transparent_hugepages": "madvise"}


NEWER = {"home": "/etc/tuned/profiles"}
IN_THE_WAY = [
    ({"home": ""}, "profile_dirs"),
    ({"post_loaded": "last"}, "last"),
    ({"chain": []}, "no file"),
    ({"chain": ["site", "nodetune"]}, "nodetune's profile"),
    (
        {"sets": {**SETS, "bootloader": {"cmdline": "x"}, "run": {"type": "script", "script": "s"}}},
        "bootloader, script",
    ),
    ({"sets": {**SETS, "net": {"ring": "rx 4096"}, "modules": {"mlx5_core": "+r,x=1"}}}, "modules, net"),
]


@pytest.mark.parametrize(("more", "named"), IN_THE_WAY)
@pytest.mark.parametrize("given", [HUGE_PAGES, GOVERNOR])
def test_what_no_profile_can_be_put_before_is_refused(given, more, named):
    assert named in refused(host(**more), given)


@pytest.mark.parametrize(("more", "named"), IN_THE_WAY)
def test_a_parameter_stays_in_sysctl_d_where_that_wins(more, named):
    (group,), unfixable = host_changes.build([SWAPPINESS], host(**more))
    assert unfixable == []
    assert [change["change"] for change in group.changes] == ["value", "file"]
    assert named in group.notes[0]
    assert named in refused(host(reapply_sysctl=False, **more), SWAPPINESS)


def test_facts_from_before_this_version_are_not_built_upon():
    facts = host()
    old = {key: facts.facts["services.tuned_profile"].value[key] for key in ("name", "chain", "files", "settings")}
    facts = HostFacts(facts.host, {**facts.facts, "services.tuned_profile": Value(old)})
    assert "audit again" in refused(facts, GOVERNOR)
    assert of_kind(built(facts, SWAPPINESS), "tuned") == []


def test_a_module_that_tuned_loads_again_is_no_obstacle():
    """The stock profile balanced does so."""
    sets = {**SETS, "modules": {"cpufreq_conservative": "+r", "mlx5_core": "x=1"}}
    assert sections(built(host(sets), GOVERNOR)) == {"cpu": {"governor": "performance"}}


def test_a_section_for_some_cpus_is_refused():
    assert "devices" in refused(host({"cpu": {"governor": "powersave", "devices": "cpu0"}}), GOVERNOR)


def test_an_idle_limit_and_a_tuned_without_profile_are_refused():
    idle = finding_of(remedies.cpufreq("idle_latency_us"), 99, ("cpu0",))
    assert "idle_latency_us" in refused(host(), idle)
    facts = host()
    without = HostFacts(facts.host, {**facts.facts, "services.tuned_profile": Absent("no tuned profile is active")})
    reason = refused(without, GOVERNOR)
    assert "without a profile" in reason and "systemctl disable --now tuned" in reason


def test_an_own_profile_that_lost_its_settings_is_refused():
    assert "activate another profile" in refused(host(own={PATH: "[main]\n"}, name="nodetune"), GOVERNOR)


@pytest.mark.parametrize(
    "hostile",
    [
        {"name": "a;b", "chain": ["a"]},
        {"own": {PATH: '# settings: {"main": {"include": "a\\n[script]"}}\n'}},
        {"own": {PATH: '# settings: {"script": {"script": "/tmp/x"}}\n'}},
        {"own": {PATH: '# settings: {"sysctl\\n[x]": {"vm.swappiness": "1"}}\n'}},
        {"own": {PATH: json.dumps({"sysctl": {"kernel.core_pattern": "|/tmp/x"}}).join(["# settings: ", "\n"])}},
        {"sets": {"x]\n[script": {"type": "cpu", "governor": "powersave", "devices": "*"}}},
    ],
)
def test_what_a_hostile_host_says_never_reaches_the_file(hostile):
    assert refused(host(**hostile), GOVERNOR)


@pytest.mark.parametrize("value", ["a # b", "${x}", ">5", "a;b", '"1"'])
def test_a_value_that_tuned_would_read_otherwise_is_refused(value):
    given = finding_of(remedies.sysctl("kernel.core_pattern"), value)
    assert "that can be written safely" in refused(host({"sysctl": {"kernel.core_pattern": "core"}}), given)


def test_a_newer_tuned_has_its_profiles_in_a_folder_of_their_own():
    (change,) = of_kind(built(host(**NEWER), SWAPPINESS), "tuned")
    assert change["path"] == "/etc/tuned/profiles/nodetune/tuned.conf"


def test_the_plan_and_its_export_show_the_profile(tmp_path):
    (group,), _ = host_changes.build([SWAPPINESS], host())
    planned = plan.HostPlan(HostResult("gpu01", "ok"), (SWAPPINESS,), changes=(group,))
    assert PATH in plan.kept_in(planned, SWAPPINESS)
    export.write(tmp_path / "out", [planned])
    assert "include=site" in (tmp_path / "out/files/etc/tuned/nodetune/tuned.conf").read_text()
    assert "echo nodetune > /etc/tuned/active_profile" in (tmp_path / "out/README.md").read_text()
