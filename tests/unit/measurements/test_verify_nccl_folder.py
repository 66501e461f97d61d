"""As root no NCCL library is loaded from where anyone can put one."""

import os
import shutil
import subprocess

import pytest

from nodetune.measurements.cuda import cuda_libraries
from nodetune.measurements.host.report import MeasurementError
from nodetune.measurements.nccl_support import nccl_api

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user loads it with no more rights than its own")


@pytest.fixture
def planted(tmp_path):
    """A library that leaves a mark when it is loaded, in a folder that is root's."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc here")
    mark = tmp_path / "loaded"
    source = f"""#include <fcntl.h>
__attribute__((constructor)) static void loaded(void) {{ open("{mark}", O_CREAT | O_WRONLY, 0600); }}"""
    folder = tmp_path / "lib"
    folder.mkdir()
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / nccl_api.LIBRARY)]
    subprocess.run(command, input=source, text=True, check=True)
    return folder, mark


@pytest.mark.parametrize("open_to_all", ["file", "folder", "parent"])
def test_a_library_that_anyone_can_replace_is_refused(planted, open_to_all):
    folder, mark = planted
    place = {"file": folder / nccl_api.LIBRARY, "folder": folder, "parent": folder.parent}[open_to_all]
    place.chmod(0o777)
    with pytest.raises(MeasurementError, match=f"not loaded as root: anyone can write {place}"):
        nccl_api.load(str(folder))
    assert not mark.exists()


def test_a_file_of_another_user_in_a_sticky_folder_is_refused(planted):
    folder, mark = planted
    folder.chmod(0o1777)
    os.chown(folder / nccl_api.LIBRARY, 65534, 65534)
    with pytest.raises(MeasurementError, match=f"not loaded as root: anyone can write {folder}"):
        nccl_api.load(str(folder))
    assert not mark.exists()


def test_a_library_in_a_folder_of_roots_is_loaded(planted):
    folder, mark = planted
    with pytest.raises(MeasurementError, match="has no ncclGetVersion"):
        nccl_api.load(str(folder))
    assert mark.exists()


def test_the_linkers_folders_are_looked_at_as_well(planted, monkeypatch):
    folder = planted[0]
    folder.chmod(0o777)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.setattr(cuda_libraries, "LDCONFIG", ("/nowhere",))
    assert f"anyone can write {folder}" in cuda_libraries.distrust(nccl_api.LIBRARY)
