"""Whatever happens to a host between its runs: in the end, everything is rolled back, or refused for a true reason."""

import pytest

from tests.support import sequences

pytestmark = pytest.mark.slow


def goes_well(folder, monkeypatch, seed):
    folder.mkdir()
    host = sequences.Host(folder, monkeypatch, seed)
    sequences.happen(host)
    sequences.check(host, sequences.roll_all_back(host))


@pytest.mark.parametrize("seed", range(12))
def test_a_random_sequence_of_runs_is_rolled_back(tmp_path, monkeypatch, seed):
    goes_well(tmp_path / "seed", monkeypatch, seed)


@pytest.mark.full
@pytest.mark.parametrize("tens", range(1, 21))
def test_two_hundred_random_sequences_are_rolled_back(tmp_path, monkeypatch, tens):
    for seed in range(10 * tens, 10 * tens + 10):
        with monkeypatch.context() as patch:
            goes_well(tmp_path / str(seed), patch, 1000 + seed)
