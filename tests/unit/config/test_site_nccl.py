"""Lines of /etc/nccl.conf that a site wants: judged by what a login session gets, and fixed there."""

import pytest

from nodetune.config import site_checks
from nodetune.foundation.yaml_lines import load
from nodetune.remediation.builders import nccl_conf


class View(dict):
    """Facts by name, as a check sees them."""


def setting(value, scope="nccl.conf", line=1, name="NCCL_MIN_CTAS"):
    file = "/etc/nccl.conf" if scope == "nccl.conf" else "/etc/environment"
    return {"name": name, "value": value, "file": file, "line": line, "raw": f"{name}={value}", "scope": scope}


@pytest.fixture
def check(tmp_path):
    path = tmp_path / "site.yml"
    path.write_text("add:\n  - {id: site-nccl-min-ctas, nccl_conf: NCCL_MIN_CTAS, accept: 16, set: 16}\n")
    return site_checks.read(load(path))[0]


@pytest.mark.parametrize(
    ("settings", "seen", "passes"),
    [
        ([], "not set", False),
        ([setting("16")], "16", True),
        ([setting("8"), setting("16", line=2)], "8", False),
        ([setting("16"), setting("8", "environment")], "8", False),
        ([setting("8"), setting("16", "environment")], "16", True),
        ([setting(None)], "not set", False),
        ([setting("16", name="NCCL_MAX_CTAS")], "not set", False),
    ],
)
def test_what_a_login_session_gets_is_judged(check, settings, seen, passes):
    assert check.observe(View({"nccl.settings": settings})) == seen
    assert bool(check.accept.test(seen)) == passes


def test_the_fix_is_a_line_of_text(check):
    assert (check.remedy.kind, check.remedy.target, check.set) == ("nccl_conf", "NCCL_MIN_CTAS", "16")
    assert check.needs == ("nccl.settings",)
    assert check.remedy.file == nccl_conf.PATH
