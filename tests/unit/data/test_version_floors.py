"""The versions with security fixes: which notice they are from, and the script that reads NVIDIA's bulletins."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from nodetune import data
from nodetune.checks.shared import floors

SCRIPT = Path(__file__).parents[3] / ".ci" / "refresh_floors.py"


@pytest.fixture
def refresh():
    spec = importlib.util.spec_from_file_location("refresh_floors", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bulletin(root, number, date, cve, **fixed):
    """A bulletin in the form of CSAF: product → the version in which it is fixed."""
    names = {name.replace("_", " "): version for name, version in fixed.items()}
    branches = [
        {"name": name, "product": {"name": version, "product_id": f"{name} {version}"}}
        for name, version in names.items()
    ]
    document = {
        "document": {"tracking": {"initial_release_date": f"{date}T00:00:00.000Z"}},
        "product_tree": {"branches": [{"branches": branches}]},
        "vulnerabilities": [{"cve": cve, "product_status": {"fixed": [f"{n} {v}" for n, v in names.items()]}}],
    }
    folder = root / date[:4] / number
    folder.mkdir(parents=True)
    (folder / f"{number}.json").write_text(json.dumps(document))


def row(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


def test_the_newest_bulletin_about_a_product_counts(refresh, tmp_path):
    bulletin(tmp_path, "9001", "2026-10-01", "CVE-2026-1", NVIDIA_Container_Toolkit="v1.21.0")
    bulletin(tmp_path, "9002", "2026-12-01", "CVE-2026-2", NVIDIA_Container_Toolkit="1.22.1", GeForce="1.2.3")
    bulletin(tmp_path, "9000", "2026-11-01", "CVE-2026-3", DCGM_Exporter="5.0.0")
    text = refresh.refreshed(refresh.FLOORS.read_text(), tmp_path)
    assert row(text, "  nvidia-container-toolkit:") == (
        "  nvidia-container-toolkit: {fixed: 1.22.1, notice: NVIDIA bulletin 9002 of 2026-12-01, cve: CVE-2026-2}"
    )
    assert "fixed: 5.0.0" in row(text, "  datacenter-gpu-manager-exporter:")
    assert row(text, "as_of:") == 'as_of: "2026-12-01"'


def test_firmware_has_a_build_for_each_train(refresh, tmp_path):
    bulletin(tmp_path, "9003", "2026-12-02", "CVE-2026-4", ConnectX_GA="48.1000 or newer", BlueField_LTS24="43.9000")
    text = refresh.refreshed(refresh.FLOORS.read_text(), tmp_path)
    assert row(text, "  trains:") == '  trains: {"43": 9000, "48": 1000}'
    assert "bulletin 9003" in row(text, "  notice:")


def test_older_bulletins_do_not_move_the_date_back(refresh, tmp_path):
    bulletin(tmp_path, "1", "2020-01-01", "CVE-2020-1", GeForce="1.2.3")
    assert refresh.refreshed(refresh.FLOORS.read_text(), tmp_path) == refresh.FLOORS.read_text()


def test_a_folder_without_bulletins_is_named_in_one_line(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT, tmp_path, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "give a checkout of github.com/NVIDIA/product-security" in done.stderr


def test_every_row_names_its_notice():
    table = data.table("floors")
    rows = [*table["packages"].values(), *table["distribution_runc"].values(), table["nic_firmware"]]
    assert all(row["notice"] and row["cve"].startswith("CVE-") for row in rows)
    assert all(row["advisory"].startswith("GHSA-") for row in table["runc"])


@pytest.mark.parametrize(
    ("installed", "fixed", "open_"),
    [
        ("1.19.1-1", "1.19.1", False),
        ("1:4.5.2-1", "4.5.3", True),
        ("1:4.5.3-1", "4.5.3", False),
        ("1.3.3-0ubuntu1~24.04.3", "1.3.3-0ubuntu1~24.04.2", False),
        ("1.3.3-0ubuntu1~24.04.1", "1.3.3-0ubuntu1~24.04.2", True),
        ("1.1.12-0ubuntu3.1", "1.3.3-0ubuntu1~24.04.2", True),
    ],
)
def test_versions_are_compared_with_their_kind(installed, fixed, open_):
    assert bool(floors.below(installed, {"fixed": fixed, "notice": "n", "cve": "c"})) is open_
