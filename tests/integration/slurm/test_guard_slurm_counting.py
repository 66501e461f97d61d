"""A real Slurm whose gres.conf does not list GPUs from /dev/nvidia0 on: which of them a job holds."""

import guarded
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
]


class Backwards(guarded.Guarded):
    """GPU 0 of Slurm is /dev/nvidia1, and the other way round."""

    def _write_gres(self):
        super()._write_gres()
        lines = "".join(f"Name=gpu File={self.folder}/dev/nvidia{number}\n" for number in (1, 0))
        (self.folder / "etc" / "gres.conf").write_text(f"AutoDetect=off\n{lines}")


@pytest.fixture(scope="module")
def cluster(parts):
    with Backwards(parts, nodes=1) as started:
        yield started


@pytest.mark.parametrize(("lost", "held"), [(1, True), (0, False)])
def test_only_a_fault_of_its_own_gpu_holds_a_job(cluster, lost, held):
    cluster.mend()
    cluster.control("n01", f"lost@{lost}=1")
    code, said = cluster.call("srun", "--gres=gpu:1", "sh", "-c", "echo holds $CUDA_VISIBLE_DEVICES")
    assert (code != 0) is held, said
    assert ("holds 0" in said) is not held
