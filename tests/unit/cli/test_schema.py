"""nodetune schema: the published schemas, by name."""

import json

import pytest

from nodetune.foundation import schemas
from tests.support.commandline import nodetune


def test_the_names_of_all_schemas_are_listed():
    listed = nodetune("schema").stdout.split()
    assert listed == schemas.names()
    assert {"audit", "site", "plan"} <= set(listed)


@pytest.mark.parametrize("name", schemas.names())
def test_a_schema_is_printed_by_its_name(name):
    printed = json.loads(nodetune("schema", name).stdout)
    assert printed["$id"] == f"nodetune.{name}/1"
    assert nodetune("schema", printed["$id"]).stdout == nodetune("schema", name).stdout


@pytest.mark.parametrize("name", ["nothing", "audit/2", "../tables", ""])
def test_an_unknown_schema_is_one_line(name):
    done = nodetune("schema", name)
    assert done.returncode == 2
    assert done.stderr == f"nodetune: no schema {name!r}: list them with: nodetune schema\n"
