"""What the package modules make of what dpkg, rpm and apt say."""

from pathlib import Path

import ansible.module_utils
import pytest

ansible.module_utils.__path__.append(str(Path(__file__).parents[3] / "playbooks" / "module_utils"))

from ansible.module_utils.nodetune_host import command  # noqa: E402
from ansible.module_utils.nodetune_packages import held, question  # noqa: E402

OLD, NEW = "580.159.04", "580.178.04"


@pytest.mark.parametrize("other", [f"{OLD}-1", f"{NEW}-2"])
def test_two_versions_of_a_package_disagree_with_the_driver(monkeypatch, other):
    for lines in ([other, f"{NEW}-1"], [f"{NEW}-1", other]):
        out = "".join(f"ii|nvidia-fabricmanager|{each}\n" for each in lines)
        monkeypatch.setattr(command, "attempt", lambda argv, seconds=60, out=out: (0, out, ""))
        found = held.every_version("dnf", ["nvidia-fabricmanager"])
        told = question.disagreeing(["nvidia-fabricmanager"], found, NEW)
        assert told == [f"nvidia-fabricmanager {' and '.join(lines)}"]


def test_one_version_of_a_package_in_two_architectures_agrees(monkeypatch):
    out = f"ii|nvidia-driver-libs|3:{NEW}-1.el9\n" * 2
    monkeypatch.setattr(command, "attempt", lambda argv, seconds=60: (0, out, ""))
    found = held.every_version("dnf", ["nvidia-driver-libs"])
    assert question.disagreeing(["nvidia-driver-libs"], found, NEW) == []
