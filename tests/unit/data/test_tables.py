"""The tables that people write as YAML, and the JSON that is read."""

import datetime

import pytest
import yaml

from nodetune import data
from nodetune.foundation import paths

FILES = [*paths.bundled("data").glob("*.yml"), paths.bundled("checks/fleet_comparisons.yml")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_table_is_what_its_file_says(path):
    assert data.table(path.stem) == yaml.safe_load(path.read_text()), "run make write"


DAYS = {"drivers": 180, "floors": 180}
"""For how many days a table may go without a look at its sources: `as_of`, the date of the last one. Others: a year."""


def dated():
    """Yield (table, date) of every date in a table: its own, and that of a part with another source."""
    for path in [*FILES, *paths.bundled("data/scorecards").glob("*.yml")]:
        found = yaml.safe_load(path.read_text())
        parts = found.values() if isinstance(found, dict) else ()
        yield from (
            (path.stem, part["as_of"]) for part in (found, *parts) if isinstance(part, dict) and "as_of" in part
        )


def test_tables_that_grow_old_say_of_when_they_are():
    assert {"drivers", "floors", "gpus", "machines"} <= {name for name, _ in dated()}


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(("name", "date"), dated())
def test_no_table_is_older_than_its_sources_allow(name, date):
    age = datetime.datetime.now(tz=datetime.timezone.utc).date() - datetime.date.fromisoformat(date)
    most = DAYS.get(name, 365)
    assert age.days <= most, f"{name}.yml is of {date}: read its sources again, then set as_of (at most {most} days)"
