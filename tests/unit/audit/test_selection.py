"""Which checks a run is about: what `--select` and `--ignore` name must exist."""

import pytest

from nodetune.audit.selection import Selection, comparing
from nodetune.config import site_file
from nodetune.foundation.yaml_lines import FileError

SITE = "add:\n  - {id: site-mine, sysctl: vm.nr_hugepages, accept: 0}\n"


@pytest.fixture
def site(tmp_path):
    (tmp_path / "site.yml").write_text(SITE)
    return site_file.read(tmp_path / "site.yml")


@pytest.mark.parametrize("option", ["select", "ignore"])
@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("nope", "no check matches nope: list them with: nodetune checks"),
        ("numa-balancing-no", "did you mean numa-balancing-on? List all with: nodetune checks"),
        ("nope-*", "no check matches nope-*"),
        ("site-mine", "no check matches site-mine"),
        ("", "no check matches"),
    ],
)
def test_what_no_check_area_or_comparison_is_called_is_refused(option, pattern, said):
    with pytest.raises(FileError) as caught:
        _ = Selection(**{option: (pattern,)}).candidates
    assert said in str(caught.value)


@pytest.mark.parametrize("pattern", ["fleet", "fleet-*", "fleet-kernel-differs", "site", "gpu", "numa-balancing-on"])
def test_ignoring_what_a_run_does_not_have_is_allowed(pattern):
    for choice in (Selection(ignore=(pattern,)), comparing(Selection(ignore=(pattern,)))):
        left = {name for check in choice.candidates for name in (check.id, check.area)}
        assert {"memory", "swappiness-high"} <= left - {pattern} == left


def test_a_check_of_the_site_file_may_be_ignored(site):
    assert "site-mine" in {check.id for check in Selection(site=site).candidates}
    assert "site-mine" not in {check.id for check in Selection(site=site, ignore=("site-mine",)).candidates}
