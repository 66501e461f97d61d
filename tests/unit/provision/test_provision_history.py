"""What the history keeps of a provision."""

from nodetune.audit.selection import Selection
from nodetune.config.site_provision import Provision
from nodetune.foundation.stage_output import Silent
from nodetune.history.history import History
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.provision import run
from nodetune.provision.preflight import Preflight
from nodetune.provision.request import ProvisionRequest


def test_the_history_keeps_what_a_provision_changed(tmp_path, monkeypatch):
    def changed(work, _record):
        work.operations._run.add_entries("gpu3", [{"change": {"change": "package", "name": "nvidia-driver"}}])
        return 0

    monkeypatch.setattr(run.stages, "provision", changed)
    request = ProvisionRequest(
        ConnectionOptions(), Selection(), runs_folder=tmp_path, history=str(tmp_path / "history.db")
    )
    targets = [Target("gpu3"), Target("gpu4")]
    report = run.carry_out(Preflight(request, Provision(), targets, {}, {}, {}, {}), Silent())
    with History(request.history, make=False) as kept:
        (action,) = kept.actions()
    assert (action.kind, action.host, action.run) == ("applied", "gpu3", report.document["run"])
    assert action.reason.startswith("provision: ")
