"""The tables that people write as YAML, and the JSON that is read."""

import pytest
import yaml

from nodetune import data
from nodetune.foundation import paths

FILES = [*paths.bundled("data").glob("*.yml"), paths.bundled("checks/fleet_comparisons.yml")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_table_is_what_its_file_says(path):
    assert data.table(path.stem) == yaml.safe_load(path.read_text()), "run make write"
