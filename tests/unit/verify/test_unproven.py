"""What a run leaves unproven: skipped measurements of GPUs that are there, and required ones that did not pass."""

from dataclasses import replace

import pytest

from nodetune.api.model import HostFacts, Unread, Value
from nodetune.facts import machine as machines
from nodetune.facts.machine import Machine
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.foundation.request import RequestError
from nodetune.verify import unproven
from nodetune.verify.exit_code import exit_code
from nodetune.verify.model import PASS, SHORT, SKIP, UNKNOWN, Figure, Unmeasured, Verdict
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records

NO_DRIVER = "no libcuda.so.1 on this host"


def verdict(name="memory", status=PASS, host="gpu1", subject="node0", reason=""):
    return Verdict(Figure(host, name, name, subject, ((1.0,),), "GB/s"), status, reason=reason)


def host(*verdicts, machine=None, unmeasured=(), name="gpu1"):
    return HostVerification(
        name, machine=machine or Machine("NVIDIA H200", 8), verdicts=verdicts or (verdict(),), unmeasured=unmeasured
    )


def skip(name, reason=NO_DRIVER, metric="", subject=""):
    return Unmeasured("gpu1", name, SKIP, reason, metric, subject)


def test_gpus_on_pci_without_a_driver_do_not_pass():
    seen = host(machine=Machine(pci_gpus=8), unmeasured=(skip("gemm"), skip("gpu_p2p")))
    assert [each.measurement for each in unproven.skipped(seen)] == ["gemm", "gpu_p2p"]
    assert exit_code([seen]) == INCOMPLETE


def test_a_host_without_gpus_has_none_to_measure():
    assert exit_code([host(machine=Machine(cpu="EPYC"), unmeasured=(skip("gemm"),))]) == OK


@pytest.mark.parametrize("name", ["gpu_p2p", "nccl", "nccl_overlap"])
def test_one_gpu_alone_has_no_links_to_measure(name):
    one, two = (host(machine=Machine("NVIDIA H100 PCIe", gpus), unmeasured=(skip(name),)) for gpus in (1, 2))
    assert (exit_code([one]), exit_code([two])) == (OK, INCOMPLETE)


def test_a_number_format_that_a_gpu_lacks_is_nothing_missing():
    assert exit_code([host(unmeasured=(skip("roofline", "no fp8", "fp8", "GPU0"),))]) == OK


def test_a_skipped_measurement_of_the_host_is_nothing_missing():
    assert exit_code([host(unmeasured=(skip("clock"),))]) == OK


def test_a_figure_below_target_outranks_what_is_missing():
    seen = host(verdict(status=SHORT), unmeasured=(skip("nccl"),))
    assert exit_code([seen]) == TOO_SLOW


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (host(), "gemm is required: not measured (gpu1)"),
        (host(unmeasured=(skip("gemm"),)), f"gemm is required: skip: {NO_DRIVER} (gpu1)"),
        (
            host(verdict("gemm", UNKNOWN, subject="GPU0", reason="no baseline"), verdict("gemm", subject="GPU1")),
            "gemm is required: 1 of 2 figures prove nothing, gemm of GPU0: no baseline (gpu1)",
        ),
        (replace(host(verdict("gemm")), state="busy"), "gemm is required: busy (gpu1)"),
    ],
)
def test_what_is_required_has_to_pass(seen, why):
    assert unproven.lacking([seen], ("gemm",)) == [why]
    assert exit_code([seen], ("gemm",)) == INCOMPLETE


def test_what_is_required_and_passed_lacks_nothing():
    assert exit_code([host(verdict("gemm"))], ("gemm",)) == OK


def test_what_hosts_measure_together_counts_for_each_of_them():
    both = [host(verdict("nccl")), host(name="gpu2")]
    assert unproven.lacking(both, ("nccl",)) == []
    assert unproven.lacking([host(verdict("gemm")), host(name="gpu2")], ("gemm",)) == [
        "gemm is required: not measured (gpu2)"
    ]


def test_a_gpu_that_was_asked_for_and_is_not_there_is_told():
    seen = host(machine=Machine(cpu="EPYC"), unmeasured=(skip("gemm"),))
    assert exit_code([seen]) == OK
    assert exit_code([seen], gpus=(5,)) == INCOMPLETE
    assert unproven.lacking([seen], (), (5, 6)) == ["--gpu: nothing was measured on GPU5, GPU6 (gpu1)"]


def test_a_gpu_that_was_asked_for_and_measured_lacks_nothing():
    assert exit_code([host(verdict("gemm", subject="GPU5"))], gpus=(5,)) == OK
    together = [host(verdict("nccl")), host(name="gpu2")]
    assert unproven.lacking(together, (), (0,)) == []


def test_only_what_is_measured_can_be_required():
    assert SuiteRequest(require=("gemm",)).words == ["--require", "gemm"]
    with pytest.raises(RequestError, match="--require clock: this run does not measure it"):
        SuiteRequest(require=("clock",))


def test_gpus_for_virtual_machines_are_not_this_hosts():
    devices = {
        "0000:18:00.0": {"driver": "nvidia"},
        "0000:2a:00.0": {"driver": "vfio-pci"},
        "0000:3a:00.4": {"driver": "nvidia", "virtual_function": True},
        "0000:5d:00.0": {"driver": None},
    }
    facts = HostFacts("gpu1", {"pci.gpus": Value(list(devices)), "pci.devices": Value(devices)})
    assert machines.of(facts).most_gpus == 2


def test_gpus_that_nobody_could_look_for_are_none():
    assert machines.of(HostFacts("gpu1", {"pci.gpus": Unread("no permission")})).most_gpus == 0


def test_a_recorded_node_has_as_many_gpus_on_pci_as_in_its_driver():
    assert (records.h200().gpus, records.h200().pci_gpus) == (8, 8)
