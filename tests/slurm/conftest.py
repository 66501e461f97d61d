"""What all guarded clusters share is made once."""

import guarded
import pytest


@pytest.fixture(scope="session")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for path in [folder, *folder.parents]:  # task prologs run as users of their own
        path.chmod(path.stat().st_mode | 0o011)
    return guarded.parts(folder)
