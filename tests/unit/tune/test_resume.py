"""What a tuning that is continued takes from its journal, and what it measures again."""

import json
import os
import random
from dataclasses import replace

import pytest

from benchmarks.tuning_errors import PARAMETERS, Simulated, gains, is_best
from nodetune.tune import study
from nodetune.tune.journal import Journal, JournalError
from nodetune.tune.model import DEFAULT, BenchError, Trial

SMALL = PARAMETERS[1:2]


class Counted(Simulated):
    """A bench that remembers what it measured; from trial `at` on it gives `instead`."""

    at, instead, count = 10**9, None, 0

    def measure(self, setting, cases):
        self.count += 1
        trial = super().measure(setting, cases)
        return self.instead(trial) if self.count > self.at else trial


def bench(seed=1, at=10**9, instead=None):
    made = Counted(random.Random(seed), gains(0.05), parameters=SMALL)
    made.at, made.instead = at, instead
    return made


def tuned(path, made, budget=1200.0, resume=False):
    journal = Journal(path, {"subject": "nccl"}, resume=resume)
    try:
        return study.tune(made, budget, known=list(journal.known), keep=journal.append)
    finally:
        journal.close()


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def interrupt(_trial):
    raise KeyboardInterrupt


def test_a_default_that_failed_once_is_measured_again_by_resume(tmp_path):
    with pytest.raises(BenchError, match="connection lost"):
        tuned(tmp_path / "t", bench(at=13, instead=lambda trial: Trial(trial.setting, failed="connection lost")))
    assert lines(tmp_path / "t")[-1]["failed"] == "connection lost"
    outcome = tuned(tmp_path / "t", bench(2), resume=True)
    assert is_best(outcome.setting)
    assert not outcome.dropped


def test_hosts_that_were_disturbed_are_tried_again_by_resume(tmp_path):
    outcome = tuned(tmp_path / "t", bench(at=8, instead=lambda trial: replace(trial, disturbed="a job")))
    assert outcome.state == study.DISTURBED
    assert is_best(tuned(tmp_path / "t", bench(2), resume=True).setting)


def test_a_block_that_was_interrupted_is_measured_again_as_a_whole(tmp_path):
    tuned(tmp_path / "t", bench(at=9, instead=interrupt))
    assert len(lines(tmp_path / "t")) == 9, "a block of six, and three of the next one"
    again = bench(2)
    outcome = tuned(tmp_path / "t", again, resume=True)
    assert again.count == len(outcome.trials) - 6
    assert len(lines(tmp_path / "t")) == len(outcome.trials), "the three are gone"


def test_a_pair_of_the_confirmation_is_of_one_time(tmp_path):
    whole = tuned(tmp_path / "whole", bench())
    first = next(place for place, (phase, _) in enumerate(whole.trials) if phase == "confirmation")
    tuned(tmp_path / "t", bench(at=first + 5, instead=interrupt))
    again = bench(2)
    outcome = tuned(tmp_path / "t", again, resume=True)
    assert again.count == len(outcome.trials) - first - 4


def test_more_time_takes_another_way_and_forgets_what_followed(tmp_path):
    short = tuned(tmp_path / "t", bench(), budget=100)
    assert (short.state, len(short.trials)) == (study.NO_TIME, len(lines(tmp_path / "t")))
    longer = tuned(tmp_path / "t", bench(2, at=20, instead=interrupt), resume=True)
    assert len(lines(tmp_path / "t")) == len(longer.trials)
    again = bench(3)
    outcome = tuned(tmp_path / "t", again, resume=True)
    assert is_best(outcome.setting)
    assert again.count < len(outcome.trials) - 20, "nothing of the second run is measured a third time"


def test_a_setting_whose_trial_failed_last_is_not_dropped_by_resume(tmp_path):
    journal = Journal(tmp_path / "t", {"subject": "nccl"}, resume=False)
    journal.append(0, Trial(DEFAULT, {"x": 1.0}))
    journal.append(1, Trial((("A", 1),), failed="host lost"))
    journal.append(2, Trial(DEFAULT, failed="host lost"))
    journal.close()
    again = Journal(tmp_path / "t", {"subject": "nccl"}, resume=True)
    assert [trial.setting for trial in again.known] == [DEFAULT]
    again.append(1, Trial((("A", 2),), {"x": 2.0}))
    again.close()
    assert [line["setting"] for line in lines(tmp_path / "t")] == [[], [["A", 2]]]


def test_a_banned_setting_stays_banned(tmp_path):
    journal = Journal(tmp_path / "t", {"subject": "nccl"}, resume=False)
    journal.append(0, Trial((("A", 1),), banned="wrong data"))
    journal.close()
    again = Journal(tmp_path / "t", {"subject": "nccl"}, resume=True)
    assert [trial.banned for trial in again.known] == ["wrong data"]
    again.close()


@pytest.mark.parametrize(
    "line",
    [
        {"seconds": -1e9},
        {"seconds": "long"},
        {"seconds": float("nan")},
        {"values": {"x": "fast"}},
        {"values": [1]},
        {"setting": [["A", [1]]]},
        {"about": 3},
    ],
    ids=str,
)
def test_a_trial_that_cannot_be_is_refused(tmp_path, line):
    sound = {"setting": [], "values": {}, "banned": "", "failed": "", "disturbed": "", "about": {}, "seconds": 1.0}
    (tmp_path / "t").write_text('{"a": 1}\n' + json.dumps({**sound, **line}) + "\n")
    with pytest.raises(JournalError, match="not a journal of trials"):
        Journal(tmp_path / "t", {"a": 1}, resume=True)


def test_a_value_in_a_journal_is_looked_at_like_a_new_one(tmp_path):
    whole = tuned(tmp_path / "t", bench())
    odd = [
        replace(trial, values={**trial.values, "all_reduce 1 GiB": float("nan")}) if is_best(trial.setting) else trial
        for _, trial in whole.trials[:6]
    ]
    outcome = study.tune(bench(), 1200, known=odd)
    assert is_best(outcome.setting)
    assert sum(bool(trial.failed) for _, trial in outcome.trials) == 1


def test_a_journal_without_room_for_its_header_leaves_no_file(tmp_path, monkeypatch):
    def full(*_given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(JournalError, match="no space left on device"):
        Journal(tmp_path / "t", {"a": 1}, resume=False)
    assert not (tmp_path / "t").exists()


def test_a_pipe_is_no_file_of_trials(tmp_path):
    os.mkfifo(tmp_path / "t")
    with pytest.raises(JournalError, match=r"/t: not a file: give the file of an interrupted tuning"):
        Journal(tmp_path / "t", {"subject": "nccl"}, resume=True)
