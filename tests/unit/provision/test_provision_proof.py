"""What a provision makes of figures that were compared with nothing."""

from nodetune.provision import results
from nodetune.provision.record import DONE, StageResult
from nodetune.verify import document as verify
from nodetune.verify.model import PASS, UNKNOWN, Verdict
from nodetune.verify.run import HostVerification
from tests.support import verify_records as records


def proof(*statuses):
    """A host with one figure for each status."""
    sizes = [1 << 30 + at for at in range(len(statuses))]
    told = [records.record("nccl", "all_reduce", "8 GPUs", 300.0, **records.NCCL, size=size) for size in sizes]
    verdicts = tuple(map(Verdict, records.read(told), statuses))
    return HostVerification("gpu1", machine=records.h200(), verdicts=verdicts)


def test_a_figure_without_a_reference_is_named_as_such():
    told = "3 figures, 2 of them without a reference: nccl all_reduce"
    assert results.proved(proof(PASS, UNKNOWN, UNKNOWN)) == StageResult(DONE, told)
    assert results.proved(proof(PASS, PASS)) == StageResult(DONE, "2 figures")


def test_a_figure_without_reference_enters_no_baseline():
    both = [proof(PASS, UNKNOWN)]
    (kept,) = verify.kept(both, unproven=False)["figures"]
    assert kept["conditions"]["size"] == 1 << 30
    assert len(verify.kept(both)["figures"]) == 2, "who saves them by verify decides that they are good"
