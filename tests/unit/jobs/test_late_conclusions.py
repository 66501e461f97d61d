"""What a judgement of jobs proves of the hosts and ranks that it has seen."""

from nodetune.history.closing import folded
from nodetune.jobs.late_ranks.conclude import concluded
from nodetune.jobs.late_ranks.model import (
    HOST,
    ComparedJob,
    Kind,
    LateCause,
    Lateness,
    LatePart,
    Process,
    RasRank,
    SlowRanks,
)
from nodetune.jobs.late_ranks.ras_status import MISSING, RasFinding, RasStatus


def job(ranks):
    return ComparedJob("812", ("n1",), ranks, ranks, of=(ranks,))


def late(*local, of=8):
    row = Lateness("c", 5, Process("n1", 1), Kind("all_reduce", 1024, 8), 100, 0.9, 100.0, 0.2, (0.2,))
    part = LatePart("812", "n1", local, of, frozenset(), local, of, row)
    return concluded(SlowRanks((job(of),), (LateCause(HOST, "it follows the host", (part,)),)), 1)


def after(ranks):
    return concluded(SlowRanks((job(ranks),), ()), 2)


def test_a_late_rank_is_proven_good_by_a_job_with_that_rank_on_its_host_alone():
    assert [each.conclusion.about for each in folded([late(5), after(2)]).open] == ["local rank 5"]
    assert folded([late(5), after(8)]).open == []


def test_a_late_host_is_proven_good_by_any_job_that_was_compared():
    assert folded([late(*range(8)), after(2)]).open == []


def test_a_missing_rank_without_a_host_is_over_by_the_next_answer():
    lost = RasFinding(MISSING, "c1", 8, (RasRank(3, "", "", 0),), "it gives no data")
    bad = concluded(RasStatus("n1", findings=(lost,), hosts=("n1",)), 1)
    assert len(folded([bad, concluded(RasStatus("n1", problem="refused"), 2)]).open) == 1
    assert folded([bad, concluded(RasStatus("n1", hosts=("n1",)), 2)]).open == []
