"""A bundle for a vendor's support has what is asked for, and no secret, wherever on the host one was."""

import copy
import json
import tarfile
import time
from dataclasses import replace

import pytest

from nodetune.api.conclusion import REPAIR, Action, Conclusion, Examined
from nodetune.api.model import HostFacts
from nodetune.facts import document
from nodetune.foundation import paths
from nodetune.history.history import History
from nodetune.history.snapshot import Sorter
from nodetune.report.support import gather, page, vendor_facts
from nodetune.report.support.request import SupportRequest
from tests.support import commandline

RECORDED = paths.bundled("facts/recorded") / "h100-x2.json"
CORE = "hunter2"
BARE = "correct-horse-battery"
SECRETS = (
    f"password={CORE}",
    f"HF_TOKEN: {CORE}",
    f'"aws_secret_access_key": "{CORE}"',
    f"Authorization: Bearer {CORE}",
    f"https://ana:{CORE}@mirror.example/x",
    f"hf_{CORE}aaaaaaaaaaaa",
    f"ghp_{CORE}aaaaaaaaaaaa",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CORE}\n-----END OPENSSH PRIVATE KEY-----",
    f"eyJ{CORE}aaaa.{CORE}bbbb.{CORE}cccc",
    f"pid=17, name={CORE}, Ch 00000001",
)
SOFTWARE = ("nccl.settings", "cmdline.running", "mounts.points", "services.running", "kernel.next", "host.hostname")
"""Facts that hold what an administrator or a job typed."""


def planted(data, secret):
    """Append a secret to each text in JSON data."""
    if isinstance(data, dict):
        return {key: planted(each, secret) for key, each in data.items()}
    if isinstance(data, list):
        return [planted(each, secret) for each in data]
    return f"{data} {secret}" if isinstance(data, str) else data


@pytest.fixture(scope="module")
def recorded():
    data = json.loads(RECORDED.read_text())
    data["facts"]["kernel_log.nvme"] = {"value": [{"time": 1.0, "controller": "nvme0", "text": "reset"}]}
    data["facts"]["xid.events"] = {"value": [{"bdf": "0000:01:00.0", "xid": 79, "time": 1.0, "text": "fell off"}]}
    data["facts"]["slurm.config"] = {"value": {"file": "/etc/slurm.conf", "settings": {"AuthInfo": "x"}}}
    return data


def infected(recorded, secret, only=lambda _: True):
    """The facts with a secret in every text whose shape takes one, and the names of these facts."""
    data, names = copy.deepcopy(recorded), []
    for name, fact in recorded["facts"].items():
        wanted = planted(fact, secret)
        if wanted != fact and only(name):
            try:
                document.from_data({"host": "gpu017", "facts": {name: wanted}})
            except document.FactsError:
                continue
            data["facts"][name] = wanted
            names.append(name)
    return document.from_data({**data, "host": "gpu017"}), names


def bundled(facts):
    known = gather.Dossier("gpu017", vendor_facts.of(facts))
    return "".join(gather.files(known, page.page(known), "gpu017").values())


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_secret_is_in_no_bundle(recorded, secret):
    facts, names = infected(recorded, secret)
    assert len({name.partition(".")[0] for name in names}) > 15
    assert CORE not in bundled(facts)
    assert vendor_facts.clean({"x": [secret]}) != {"x": [secret]}


def test_facts_of_software_users_and_jobs_are_in_no_bundle(recorded):
    facts, names = infected(recorded, BARE, lambda name: not vendor_facts.is_shown(name))
    assert {"nccl.settings", "slurm.config", "host.hostname"} <= set(names)
    assert BARE not in bundled(facts)
    assert [name for name in SOFTWARE if vendor_facts.is_shown(name)] == []
    hidden = ("gpu.compute_running_processes", "gpu.process_settings", "watch.processes", "own.files", "file./etc/x")
    assert [name for name in hidden if vendor_facts.is_shown(name)] == []


def test_a_secret_is_known_by_the_name_of_its_field():
    assert vendor_facts.clean({"api_key": CORE, "width": 16}) == {"api_key": "removed", "width": 16}


@pytest.mark.parametrize("text", ["GPU-1650", "firmware 28.39.1002", "Xid 79, GPU has fallen off the bus", "A1:B2"])
def test_texts_of_hardware_stay(text):
    assert vendor_facts.clean(text) == text


def test_a_bundle_begins_with_a_page_that_names_the_parts(tmp_path, recorded):
    path = tmp_path / "gpu017.json"
    path.write_text(json.dumps({**recorded, "host": "gpu017"}))
    done = commandline.nodetune("report", "gpu017", "--facts", path, "--runs", tmp_path / "runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "gpu017-report.tar.gz") as archive:
        files = {each.name: archive.extractfile(each).read().decode() for each in archive}
    first = files["gpu017-report/summary.txt"]
    assert first == done.stdout
    assert "GPU1: serial 1650000000002, address " in first
    assert "Xid 79 0000:01:00.0 (1 time): fell off" in first
    assert len(first.splitlines()) < 80
    assert set(files) >= {"gpu017-report/facts.json", "gpu017-report/SHA256SUMS"}


def test_the_past_of_the_hardware_is_in_a_bundle(tmp_path, recorded):
    for at, serial in ((1_800_000_000, "1650000000001"), (1_800_100_000, "1700")):
        data = {**copy.deepcopy(recorded), "host": "gpu017", "about": {"time": at}}
        data["facts"]["gpu.serial"]["each"]["GPU0"] = {"value": serial}
        data["facts"]["cmdline.running.quiet"] = {"value": f"{BARE}-{at}"}
        look = Sorter().look(document.from_data(data))
        with History(str(tmp_path / "fleet.db")) as history:
            history.record([look])
    path = tmp_path / "gpu017.json"
    path.write_text(json.dumps({**recorded, "host": "gpu017"}))
    past = {"history": str(tmp_path / "fleet.db"), "runs_folder": tmp_path / "runs"}
    known = gather.gather(SupportRequest(host="gpu017", facts_path=path, **past), None)
    told = gather.files(known, page.page(known), "gpu017")
    assert "2027-01-16 gpu.serial/GPU0: 1650000000001 → 1700" in told["summary.txt"]
    assert BARE not in "".join(told.values())


def test_what_is_to_be_repaired_and_was_done_is_in_a_bundle(tmp_path, recorded):
    at = int(time.time()) - 3600
    lost = Conclusion("gpu-lost", "guard", ("gpu017",), "critical", f"GPU3 is lost, password={CORE}", at, who=REPAIR)
    later = Conclusion("thp-always", "audit", ("gpu017",), "medium", "THP", at)
    with History(str(tmp_path / "fleet.db")) as history:
        history.conclude(Examined((lost, later)))
        history.act([Action("drained", "gpu017", at, BARE, BARE)])
    path = tmp_path / "gpu017.json"
    path.write_text(json.dumps({**recorded, "host": "gpu017"}))
    asked = SupportRequest(host="gpu017", facts_path=path, history=str(tmp_path / "fleet.db"), runs_folder=tmp_path)
    known = gather.gather(asked, None)
    told = gather.files(known, page.page(known), "gpu017")
    past = json.loads(told["history.json"])
    assert [each["fault"] for each in past["open"]] == ["gpu-lost"]
    assert past["actions"] == [{"at": at, "kind": "drained", "device": ""}]
    assert not [name for name, content in told.items() if CORE in content or BARE in content]


def test_a_nameless_bundle_has_the_hosts_name_nowhere(tmp_path, recorded):
    path = tmp_path / "gpu017.json"
    path.write_text(json.dumps({**recorded, "host": "gpu017"}))
    facts = gather.gather(SupportRequest(host="gpu017", facts_path=path, runs_folder=tmp_path, nameless=True), None)
    told = gather.files(facts, page.page(facts), "gpu017")
    assert not [name for name, content in told.items() if "gpu017" in content]


def test_a_host_that_cannot_be_read_still_gets_a_page():
    known = gather.Dossier("gpu017", vendor_facts.of(HostFacts("gpu017", {}, {})), "timed out: no answer")
    assert "NOT READ: timed out: no answer" in page.page(known)


def test_facts_of_another_host_are_refused(tmp_path, recorded):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({**recorded, "host": "gpu018"}))
    done = commandline.nodetune("report", "gpu017", "--facts", path, cwd=tmp_path)
    assert (done.returncode, "contains facts for gpu018, not for gpu017" in done.stderr) == (2, True)


def test_a_nameless_bundle_stays_json_whatever_the_host_is_called(recorded):
    known = gather.Dossier(
        gather.NAMELESS, replace(vendor_facts.of(document.from_data(recorded)), host=gather.NAMELESS)
    )
    for name in ("01", "0"):
        told = json.loads(gather.files(known, "", name)["facts.json"])
        assert told["facts"]["gpu.serial"] == recorded["facts"]["gpu.serial"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpu017", "host"),
        ("GPU017.example.com", "host.example.com"),
        ("gpu017-ib0, (gpu017:22)", "host-ib0, (host:22)"),
        ("gpu0171 xgpu017", "gpu0171 xgpu017"),
    ],
)
def test_the_name_of_a_host_is_replaced_where_it_stands_alone(text, told):
    assert vendor_facts.renamed({text: [text, 17]}, "gpu017", "host") == {told: [told, 17]}
    assert vendor_facts.renamed("0000:01:00.0 on 01, 2026-01-01", "01", "host") == "0000:01:00.0 on host, 2026-01-01"


def test_a_host_that_the_history_does_not_have_gets_a_bundle(tmp_path, recorded):
    History(str(tmp_path / "fleet.db")).close()
    path = tmp_path / "gpu017.json"
    path.write_text(json.dumps({**recorded, "host": "gpu017"}))
    asked = SupportRequest(host="gpu017", facts_path=path, history=str(tmp_path / "fleet.db"), runs_folder=tmp_path)
    assert gather.gather(asked, None).past == {}
