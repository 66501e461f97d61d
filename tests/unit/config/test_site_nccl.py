"""Lines of /etc/nccl.conf that a site wants: judged by what a login session gets, and fixed there."""

import pytest

from nodetune.config import site_checks
from nodetune.foundation.yaml_lines import load
from nodetune.remediation.builders import nccl_conf
from tests.support import commandline


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
        ([setting("16")], 16, True),
        ([setting("8"), setting("16", line=2)], 8, False),
        ([setting("16"), setting("8", "environment")], 8, False),
        ([setting("8"), setting("16", "environment")], 16, True),
        ([setting(None)], "not set", False),
        ([setting("16", name="NCCL_MAX_CTAS")], "not set", False),
    ],
)
def test_what_a_login_session_gets_is_judged(check, settings, seen, passes):
    assert check.observe(View({"nccl.settings": settings})) == seen
    assert bool(check.accept.test(seen)) == passes


@pytest.mark.parametrize(
    ("accept", "value", "passes"),
    [
        ("{at_least: 16}", "32", True),
        ("{at_least: 16}", "8", False),
        ("{one_of: ['16', 32]}", "16", True),
        ("'16'", "16", True),
        ("Ring", "Ring", True),
        ("Ring", "Tree", False),
        ("'010'", "010", True),
        ("16", "0x10", False),
    ],
)
def test_numbers_and_texts_of_numbers_are_one_value(tmp_path, accept, value, passes):
    path = tmp_path / "site.yml"
    path.write_text(f"add:\n  - {{id: site-a, nccl_conf: NCCL_MIN_CTAS, accept: {accept}}}\n")
    check = site_checks.read(load(path))[0]
    seen = check.observe(View({"nccl.settings": [setting(value)]}))
    assert bool(check.accept.test(seen)) == passes


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("set: 8", "a fix would set 8, which accept rejects"),
        ("set: 16, gate: true", "site-a cannot gate: it needs what reads nccl.conf"),
        ("set: 16", "valid"),
        ("set: '16'", "valid"),
    ],
)
def test_a_value_that_accept_refuses_and_a_gate_are_named(tmp_path, more, said):
    path = tmp_path / "site.yml"
    path.write_text(f"add:\n  - {{id: site-a, nccl_conf: NCCL_MIN_CTAS, accept: 16, {more}}}\n")
    done = commandline.nodetune("profile", "validate", str(path))
    assert said in done.stdout + done.stderr
    assert done.returncode == (0 if said == "valid" else 2)


def test_the_fix_is_a_line_of_text(check):
    assert (check.remedy.kind, check.remedy.target, check.set) == ("nccl_conf", "NCCL_MIN_CTAS", "16")
    assert check.needs == ("nccl.settings",)
    assert check.remedy.file == nccl_conf.PATHS[0]
