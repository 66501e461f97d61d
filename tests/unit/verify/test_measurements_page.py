"""The page that lists the measurements."""

import sys
from pathlib import Path

from nodetune.verify import catalogue

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))

import measurements_page as measurements


def test_every_measurement_is_on_the_page_with_what_it_does():
    page = measurements.page()
    for name, each in catalogue.measurements().items():
        assert f"\n## {name}\n" in page
        assert f"[{name}](#{name})" in page
        assert f"{each.seconds:g} s" in page
        assert "Manually:" in page.split(f"\n## {name}\n")[1].split("\n## ")[0], name


def test_what_adds_a_measurement_is_told():
    page = measurements.page()
    for name, told in (
        ("memory", "quick, full"),
        ("disk_files", "`--disk`"),
        ("tcp", "`--pairs`"),
        ("rdma_gpu", "`--only rdma_gpu`"),
        ("disk_gds", "`--only disk_gds --disk`"),
        ("slurm_binding", "`--only slurm_binding`"),
    ):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| [{name}](")]
        assert row.split(" | ")[2] == told
