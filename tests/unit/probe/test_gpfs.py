"""gpfs.config: what the daemon of IBM Storage Scale uses."""

MMDIAG = "/usr/lpp/mmfs/bin/mmdiag"


def planted(tree, script):
    (tree({MMDIAG: "#!/bin/sh\n" + script}) / MMDIAG.lstrip("/")).chmod(0o755)


def test_without_gpfs_there_is_nothing_to_tell(tree, collect):
    tree({"/usr/": None})
    assert collect("gpfs")["gpfs.config"] == {"absent": "GPFS is not installed"}


def test_settings_are_numbers_whether_default_or_not(tree, collect):
    planted(tree, 'echo "\n=== mmdiag: config ==="; echo " ! pagepool 17179869184"; echo "   maxMBpS 2048"\n')
    assert collect("gpfs")["gpfs.config"] == {"value": {"pagepool": 17179869184}}


def test_a_daemon_that_does_not_run_is_unread(tree, collect):
    planted(tree, "echo 'mmfsd is not running' >&2; exit 1\n")
    assert "mmfsd is not running" in collect("gpfs")["gpfs.config"]["unread"]
    planted(tree, "echo 'pagepool lots'\n")
    assert "none of the settings" in collect("gpfs")["gpfs.config"]["unread"]
