"""Hosts of one kind are compared with each other, and only what is known counts."""

import pytest
import yaml

from nodetune import checks
from nodetune.api.model import SEVERITIES
from nodetune.audit import explain, fleet
from nodetune.audit.selection import Selection
from nodetune.checks import fleet_comparisons
from nodetune.facts import document
from nodetune.foundation import paths
from nodetune.foundation import text as plain_text
from nodetune.statistics import outliers

H200 = {f"GPU{number}": {"value": "NVIDIA H200"} for number in range(8)}
DRIVER = "gpu.driver_version"


def host(name, **facts):
    """A host with eight H200; fact names are written with __ for the first dot."""
    given = {key.replace("__", "."): value for key, value in facts.items()}
    shaped = {key: value if isinstance(value, dict) else {"value": value} for key, value in given.items()}
    return document.from_data({"host": name, "facts": {"gpu.names": {"each": H200}, **shaped}})


def found(hosts, check, by="gpu", reference=None, groups=None):
    census = fleet.FleetComparison([fleet_comparisons.every()[check]], by, reference)
    if groups:
        census.expect(groups)
    for each in hosts:
        census.add(each)
    return {name: runs[0][0] for name, runs in fleet.findings(census).items()}


def drivers(*versions):
    return [host(f"n{number}", gpu__driver_version=version) for number, version in enumerate(versions)]


def test_the_majority_is_named_and_the_odd_one_told():
    told = found(drivers("1", "1", "1", "1", "2"), "fleet-driver-differs")
    assert [each.status for each in told.values()] == ["pass"] * 4 + ["fail"]
    odd = told["n4"]
    assert (odd.observed, odd.wanted, odd.agree, odd.compared) == ("2", "1", 4, 5)
    assert "4 of 5 hosts (NVIDIA H200)" in odd.reason


def test_hosts_that_are_odd_in_the_same_way_share_one_finding():
    told = found(drivers(*"11111111", "2", "2"), "fleet-driver-differs")
    assert told["n8"] is told["n9"]


def test_without_a_majority_nobody_is_called_odd():
    told = found(drivers(*"111222"), "fleet-driver-differs")
    assert {each.status for each in told.values()} == {"fail"}
    assert not any(each.decided for each in told.values())
    assert "no majority" in told["n0"].reason
    assert "3 have 1, 3 have 2" in told["n0"].reason


@pytest.mark.parametrize(
    ("counts", "names", "severity"),
    [
        ((8, 8, 8, 8, 7), {"each": H200}, "high"),
        ((8, 8, 8, 7, 7, 7), {"each": H200}, "info"),
        ((8, 8, 8, 8, 7), {"unread": "NVML: driver not loaded"}, "info"),
    ],
    ids=["an odd one", "no majority", "GPUs that no driver tells"],
)
def test_an_odd_number_of_gpus_is_high_where_it_is_known(counts, names, severity):
    hosts = [
        host(f"n{at}", **{"gpu.names": names}, pci__gpus=[f"0000:{bus:02x}:00.0" for bus in range(count)])
        for at, count in enumerate(counts)
    ]
    failing = [each for each in found(hosts, "fleet-gpu-count-differs").values() if each.status == "fail"]
    assert {(each.severity, each.repair, each.cost) for each in failing} == {(severity, severity == "high", "hardware")}


def test_too_few_hosts_are_said_to_be_too_few():
    told = found(drivers("1", "1", "2"), "fleet-driver-differs")
    assert {each.status for each in told.values()} == {"skip"}
    assert "at least 4" in told["n0"].reason


def test_four_hosts_are_enough_for_a_majority():
    told = found(drivers(*"1112"), "fleet-driver-differs")
    assert [each.status for each in told.values()] == ["pass", "pass", "pass", "fail"]


def test_one_host_alone_is_compared_with_nothing():
    assert not found(drivers("1"), "fleet-driver-differs")


def test_a_host_with_an_unread_fact_is_not_odd():
    told = found(
        [*drivers(*"1111"), host("x", gpu__driver_version={"unread": "permission denied"})], "fleet-driver-differs"
    )
    assert told["x"].status == "skip"
    assert "permission denied" in told["x"].reason
    assert told["n0"].compared == 4


def test_a_driver_that_is_absent_is_odd():
    told = found([*drivers(*"1111"), host("x", gpu__driver_version={"absent": "no driver"})], "fleet-driver-differs")
    assert told["x"].status == "fail"
    assert told["x"].observed == "no driver"


def test_an_absent_setting_is_no_difference_by_default():
    hosts = [
        document.from_data({"host": f"n{each}", "facts": {"sysctl.vm.swappiness": {"value": 10}}}) for each in range(4)
    ]
    hosts.append(document.from_data({"host": "x", "facts": {"sysctl.vm.swappiness": {"absent": "not there"}}}))
    assert found(hosts, "fleet-sysctl-differs")["x"].status == "skip"


def test_kinds_of_gpu_are_compared_within_themselves():
    others = [
        document.from_data(
            {
                "host": f"l{each}",
                "facts": {"gpu.names": {"each": {"GPU0": {"value": "NVIDIA L40S"}}}, DRIVER: {"value": "2"}},
            }
        )
        for each in range(4)
    ]
    told = found([*drivers(*"1111"), *others], "fleet-driver-differs")
    assert {each.status for each in told.values()} == {"pass"}
    assert {each.group for each in told.values()} == {"NVIDIA H200", "NVIDIA L40S"}


def test_pci_ids_keep_a_host_without_nvml_in_its_cohort():
    bus = {"pci.gpus": {"value": ["0000:1b:00.0"]}, "pci.devices": {"value": {"0000:1b:00.0": {"device": "2335"}}}}
    hosts = [
        document.from_data(
            {"host": f"n{each}", "facts": {"gpu.names": {"each": H200}, "host.kernel": {"value": "6"}, **bus}}
        )
        for each in range(4)
    ]
    dead = {"gpu.names": {"unread": "the driver does not answer"}, "host.kernel": {"value": "5"}, **bus}
    told = found([*hosts, document.from_data({"host": "dead", "facts": dead})], "fleet-kernel-differs")
    assert told["dead"].group == "NVIDIA H200"
    assert told["dead"].status == "fail"


@pytest.mark.parametrize(
    ("by", "groups", "names"),
    [
        ("all", None, {"all hosts"}),
        ("host.kernel", None, {"host.kernel 5", "host.kernel 6"}),
        ("inventory", {f"n{each}": ("a",) if each < 4 else ("a", "b") for each in range(8)}, {"a", "a+b"}),
    ],
)
def test_hosts_can_be_grouped_otherwise(by, groups, names):
    hosts = [host(f"n{each}", gpu__driver_version="1", host__kernel="5" if each < 4 else "6") for each in range(8)]
    told = found(hosts, "fleet-driver-differs", by, groups=groups)
    assert {each.group for each in told.values()} == names


def test_a_fact_to_group_by_that_no_host_has_is_an_error():
    with pytest.raises(fleet.CohortError, match="host.kernl"):
        found(drivers(*"1111"), "fleet-driver-differs", "host.kernl")


def test_a_reference_host_replaces_the_majority():
    told = found(drivers("1", "1", "1", "1", "2"), "fleet-driver-differs", reference="n4")
    assert [each.status for each in told.values()] == ["fail"] * 4 + ["pass"]
    assert told["n0"].wanted == "2"
    assert "n4" in told["n0"].reason


def test_a_reference_file_serves_a_single_host():
    told = found(drivers("1"), "fleet-driver-differs", reference=host("golden", gpu__driver_version="2"))
    assert (told["n0"].observed, told["n0"].wanted) == ("1", "2")


def test_a_reference_of_another_kind_is_not_compared_with():
    told = found(drivers("1"), "fleet-driver-differs", reference=document.from_data({"host": "cpu1", "facts": {}}))
    assert told["n0"].status == "skip"
    assert "in another group" in told["n0"].reason


def test_a_reference_that_nobody_knows_is_an_error():
    with pytest.raises(fleet.ReferenceHostError, match="nobody"):
        found(drivers(*"1111"), "fleet-driver-differs", reference="nobody")


def test_a_reference_that_was_not_reached_is_said_so():
    groups = {"n0": (), "n1": (), "down": ()}
    told = found(drivers("1", "2"), "fleet-driver-differs", reference="down", groups=groups)
    assert "not reached" in told["n0"].reason


def test_the_device_that_differs_is_named():
    def links(last):
        active = {f"GPU{each}": {"value": {"active": list(range(18)), "inactive": []}} for each in range(7)}
        return {"each": {**active, "GPU7": {"value": {"active": list(range(last)), "inactive": []}}}}

    hosts = [host(f"n{each}", gpu__nvlink_state=links(18)) for each in range(4)]
    told = found([*hosts, host("x", gpu__nvlink_state=links(12))], "fleet-nvlink-differs")
    assert told["x"].subjects == {"GPU7": "12"}
    assert told["x"].wanted == "18"


@pytest.mark.parametrize(
    ("common", "other", "observed"), [({}, {"isolcpus": "1"}, "isolcpus: 1"), ({"quiet": ""}, {}, "quiet: not given")]
)
def test_what_one_host_has_more_or_less_than_the_others_is_told(common, other, observed):
    hosts = [host(f"n{each}", cmdline__running={"value": common}) for each in range(4)]
    told = found([*hosts, host("x", cmdline__running={"value": other})], "fleet-kernel-arguments-differ")
    assert told["x"].observed == observed


def test_the_memory_slot_that_lost_its_module_is_named():
    def modules(lost=""):
        return [
            {"slot": slot, "bank": "", "type": 34, "size_mb": 0 if slot == lost else 65536, "speed_mts": 4800}
            for slot in ("A1", "B1")
        ]

    hosts = [host(f"n{number}", memory__modules=modules("B1" if number == 4 else "")) for number in range(5)]
    told = found(hosts, "fleet-memory-modules-differ")
    assert [told[f"n{number}"].status for number in range(5)] == ["pass"] * 4 + ["fail"]
    assert (told["n4"].observed, told["n4"].wanted) == ("B1: 0 bytes", "64 GiB")


def test_arguments_that_name_a_machine_are_never_compared():
    hosts = [
        host(f"n{each}", cmdline__running={"value": {"root": f"UUID={each}", "ip": str(each)}}) for each in range(5)
    ]
    assert {each.status for each in found(hosts, "fleet-kernel-arguments-differ").values()} == {"pass"}


def test_cards_are_compared_with_cards_of_their_model():
    def cards(first, second):
        return {
            "value": {"mlx5_0": {"firmware": first, "board_id": "A"}, "mlx5_1": {"firmware": second, "board_id": "B"}}
        }

    hosts = [host(f"n{each}", rdma__devices=cards("1", "2")) for each in range(4)]
    told = found([*hosts, host("x", rdma__devices=cards("1", "9"))], "fleet-rdma-firmware-differs")
    assert {each.status for name, each in told.items() if name != "x"} == {"pass"}
    assert told["x"].subjects == {"mlx5_1": "9"}


def test_counters_that_are_all_alike_make_no_noise_an_outlier():
    bounds = outliers.bounds([0.0] * 99 + [3.0], least=100, times=20, below=False)
    assert bounds.high == 100


def test_a_second_population_is_no_outlier():
    assert outliers.bounds([1.0] * 6 + [90.0] * 4, least=5, times=1, below=False).high == float("inf")


def test_up_to_a_quarter_of_the_values_may_be_outliers():
    bounds = outliers.bounds([1.0] * 6 + [90.0] * 2, least=5, times=1, below=False)
    assert bounds.high == 6


def test_a_job_that_has_just_ended_makes_no_gpu_stand_apart():
    def hot(degrees):
        return {
            "gpu__temperature": {"each": {name: {"value": degrees} for name in H200}},
            "gpu__power_usage": {"each": {name: {"value": 90_000} for name in H200}},
            "gpu__power_management_limit": {"each": {name: {"value": 700_000} for name in H200}},
        }

    hosts = [host(f"n{each}", **hot(32)) for each in range(9)] + [host("ended", **hot(70))]
    for check, status in (("fleet-gpu-hot", "pass"), ("fleet-host-hot", "skip")):
        assert [each.status for each in found(hosts, check).values()] == [status] * 10, check


def powered(enforced, wanted=350, default=350, gpus=1, model="NVIDIA L40S"):
    def each(value):
        return {"each": {f"GPU{number}": {"value": value} for number in range(gpus)}}

    watts = {
        "enforced_power_limit": enforced,
        "power_management_limit": wanted,
        "power_management_default_limit": default,
    }
    limits = {f"gpu__{name}": each(value * 1000) for name, value in watts.items()}
    return {"gpu__names": each(model), **limits}


@pytest.mark.parametrize(
    ("odd", "status"),
    [
        (powered(200), "fail"),
        (powered(200, wanted=200), "skip"),  # fleet-gpu-settings-differ
        (powered(200, gpus=2), "fail"),
        (powered(349), "pass"),
    ],
)
def test_the_power_of_a_host_is_compared_with_that_of_others(odd, status):
    told = found(
        [*(host(f"n{each}", **powered(350)) for each in range(4)), host("odd", **odd)], "fleet-gpu-power-capped"
    )
    assert [each.status for each in told.values()] == ["pass"] * 4 + [status]
    assert "200" in told["odd"].observed or status != "fail"


def test_gpus_that_share_power_with_their_cpu_are_not_compared():
    shared = {"model": "NVIDIA GH200 480GB", "wanted": 700, "default": 700}
    hosts = [host(f"n{each}", **powered(700, **shared)) for each in range(4)] + [host("busy", **powered(500, **shared))]
    assert {each.status for each in found(hosts, "fleet-gpu-power-capped").values()} == {"skip"}


@pytest.mark.parametrize("shape", [[], "x", 5, None, {"a": {"firmware": ["\x1b[2J"]}}, {"a": 5}, {"a": None}, [[]]])
def test_hostile_shapes_harm_nobody(shape):
    names = sorted({name for each in fleet_comparisons.every().values() for name in each.needs})
    good = [host(f"n{each}", rdma__devices={"value": {}}) for each in range(4)]
    for given in ({"value": shape}, {"each": {"GPU0": {"value": shape}}}):
        nasty = document.from_data({"host": "x", "facts": dict.fromkeys(names, given)})
        census = fleet.FleetComparison(by="all")
        for each in (*good, nasty):
            census.add(each)
        texts = [one.observed + one.wanted + one.reason for runs in fleet.findings(census).values() for one in runs[0]]
        assert any(texts)
        assert all(text == plain_text.plain(text, 5000) for text in texts)


@pytest.mark.parametrize("name", sorted(fleet_comparisons.every()))
def test_a_comparison_is_whole(name):
    each = fleet_comparisons.every()[name]
    assert name.startswith("fleet-") and name not in checks.catalogue()
    assert each.severity in SEVERITIES
    assert each.kind in ("same", "outlier") and (each.kind == "outlier") == bool(each.measure)
    assert all((each.title, each.why, each.confirm, each.next, each.sources))
    assert all(source.startswith("https://") for source in each.sources)
    assert each.facts or each.measure
    assert set(each.part_of) <= set(checks.catalogue())
    assert not each.missing or each.alike == "name", "what is missing is known by its name"
    told = explain.explain(each.as_check())
    assert set(explain.HEADINGS) - set(explain.OPTIONAL) == set(told.sections)
    assert all(told.sections.values())


def test_saved_facts_hold_all_that_is_compared():
    needed = {name for each in fleet_comparisons.every().values() for name in each.needs}
    assert needed <= Selection().facts()


def test_each_entry_of_the_file_is_a_comparison_of_its_own():
    entries = yaml.safe_load(paths.bundled("checks/fleet_comparisons.yml").read_text())
    assert sorted(each["id"] for each in entries) == sorted(fleet_comparisons.every())
