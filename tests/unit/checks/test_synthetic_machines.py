"""Machines that nobody has available: built by the real collectors from descriptions, and audited."""

import sys
from types import SimpleNamespace

import pytest
import yaml

from nodetune.facts import document
from tests.data.synthetic import build

NAMES = list(build.MODULES)
HEALTHY = "hgx-h200-tuned"


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_machines_audit_to_their_recorded_findings(name):
    facts = document.load(build.HERE / f"{name}.json")
    recorded = yaml.safe_load((build.HERE / f"{name}.findings.yml").read_text())
    assert build.findings(facts) == recorded


@pytest.mark.parametrize("name", NAMES)
def test_building_a_machine_again_gives_the_same_files(name):
    made = build.texts(build.collect(name), name)
    assert len(made) == 2
    for file, text in made.items():
        # compared as a flag: a difference of such files takes pytest minutes to explain
        same = (build.HERE / file).read_text() == text
        assert same, (
            f"{file} would be made otherwise: run python -m tests.data.synthetic.build --write, and read git diff"
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_synthetic_machine_says_so_and_has_every_fact(name):
    facts = document.load(build.HERE / f"{name}.json")
    assert facts.about["note"].startswith("synthetic: no such machine was read")
    assert build.findings(facts)["unknown"] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_lacks_only_what_it_says_it_lacks(name):
    assert build.forgotten(name, document.load(build.HERE / f"{name}.json")) == []


def test_a_fact_missing_in_the_machines_is_named_with_a_remedy():
    selection = SimpleNamespace(facts=lambda: {"sysctl.vm.panic_on_oom", "services.slurmd", "slurm.config"})
    facts = build.collect("workstation-4x4090", selection)
    (line,) = build.forgotten("workstation-4x4090", facts)
    assert line == (
        "workstation-4x4090 does not describe sysctl.vm.panic_on_oom (not present on this host): add it to"
        " tests/data/synthetic: SYSCTLS of ubuntu.py, or, if such a machine has none, to lacks.yml there"
    )


def test_a_healthy_machine_has_no_findings():
    assert build.findings(document.load(build.HERE / f"{HEALTHY}.json"))["failing"] == {}


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        (
            "hgx-h200-untuned",
            ["gpu-row-remap-pending", "nvlink-down", "gpu-slowdown-active", "rdma-rate-below-siblings"],
        ),
        ("workstation-4x4090", ["gpu-pcie-width-reduced", "gpu-driver-vulnerable"]),
        ("grace-gb200", ["numa-balancing-on", "rdma-port-not-active"]),
        (
            "pcie-8xl40s",
            ["gpus-not-registered", "roce-qos-inconsistent", "arp-answered-by-any-link", "gpu-recovery-needed"],
        ),
    ],
)
def test_planted_faults_are_found(name, faults):
    failing = build.findings(document.load(build.HERE / f"{name}.json"))["failing"]
    assert [fault for fault in faults if fault not in failing] == []


def test_the_generator_says_which_files_it_would_make_otherwise(tmp_path, monkeypatch):
    made = build.texts(build.collect("workstation-4x4090"), "workstation-4x4090")
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["build", "--write", "workstation-4x4090"])
    build.main()
    assert (tmp_path / "workstation-4x4090.json").read_text() == made["workstation-4x4090.json"]
    monkeypatch.setattr(sys, "argv", ["build", "--check", "workstation-4x4090"])
    build.main()
    (tmp_path / "workstation-4x4090.findings.yml").write_text("")
    with pytest.raises(SystemExit, match=r"^these would be made otherwise: workstation-4x4090\.findings\.yml$"):
        build.main()
