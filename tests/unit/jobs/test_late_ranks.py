"""`nodetune slow --inspector`: late ranks and hosts in files as NCCL's Inspector writes them."""

import json
import os
import random
from pathlib import Path

import pytest

from benchmarks.late_ranks import trial
from benchmarks.support.late_jobs import QuietJob
from nodetune.foundation import UserError, schemas
from nodetune.jobs.late_ranks import analysis, inspector, lateness, run
from nodetune.jobs.late_ranks.model import FIRST, HOST, OPEN, PROGRAM, Communicator, Job, Kind, Process
from nodetune.jobs.late_ranks.request import SlowRequest
from tests.support import archives, inspector_files
from tests.support.commandline import nodetune

HOSTS = ["gpu001", "gpu002", "gpu003", "gpu004"]
OTHERS = ["gpu005", "gpu006", "gpu007", "gpu003"]
RECORDED = Path(__file__).parents[2] / "data" / "recordings" / "inspector" / "h200-x4.tar.xz"


def job(name="812", hosts=HOSTS, layout="one", seed=1, **planted):
    return QuietJob(name, hosts, random.Random(seed), layout=layout, **planted).job()


def found(*jobs):
    return analysis.find_late_ranks(jobs)


def named(result):
    return [(each.cause, part.host, part.is_host, part.ranks) for each in result.causes for part in each.parts]


@pytest.mark.parametrize("layout", ["one", "buckets", "same buckets", "tensor"])
def test_a_healthy_job_has_no_late_rank(layout):
    result = found(job(layout=layout))
    assert not result.causes
    assert result.jobs[0].compared == 32
    assert run.exit_code(result) == 0


@pytest.mark.parametrize("layout", ["one", "buckets", "same buckets", "tensor"])
def test_a_slow_rank_is_named_and_not_those_that_wait_for_it(layout):
    result = found(job(layout=layout, slow={("gpu002", 3): 0.1}))
    (only,) = result.causes
    (part,) = only.parts
    assert (part.host, part.local, part.of, part.is_host) == ("gpu002", (3,), 8, False)
    assert part.lateness.last > 0.9
    assert run.exit_code(result) == 1


def test_the_wait_is_what_the_rank_computes_longer():
    (only,) = found(job(slow={("gpu002", 3): 0.1})).causes
    assert only.parts[0].lateness.wait == pytest.approx(10_000, rel=0.1)
    assert only.parts[0].lateness.share == pytest.approx(0.085, abs=0.01)


@pytest.mark.parametrize("layout", ["one", "tensor"])
def test_a_slow_host_is_named_as_one(layout):
    assert [each[1:3] for each in named(found(job(layout=layout, slow={("gpu002", None): 0.1})))] == [("gpu002", True)]


def test_two_slow_ranks_are_both_named():
    result = found(job(slow={("gpu002", 3): 0.1, ("gpu004", 6): 0.3}))
    assert {(part.host, part.local) for each in result.causes for part in each.parts} == {
        ("gpu002", (3,)),
        ("gpu004", (6,)),
    }


def test_one_job_cannot_tell_the_host_from_the_program():
    (only,) = found(job(slow={("gpu003", 5): 0.1})).causes
    assert only.cause == OPEN
    assert "another job, with these ranks on other hosts, would show it" in only.why


def test_what_follows_the_host_to_other_ranks_is_the_hosts():
    slow = {("gpu003", 5): 0.1}
    result = found(job("812", slow=slow), job("815", OTHERS, slow=slow, seed=2))
    assert named(result) == [(HOST, "gpu003", False, (21,)), (HOST, "gpu003", False, (29,))]
    assert "in 2 of 2 jobs there, with different ranks: it follows the host" in result.causes[0].why


@pytest.mark.parametrize("rank", [0, 13])
def test_what_follows_the_rank_to_other_hosts_is_the_programs(rank):
    result = found(job("812", program={rank: 0.1}), job("815", OTHERS, program={rank: 0.1}, seed=2))
    assert [each.cause for each in result.causes] == [PROGRAM]
    assert {part.host for part in result.causes[0].parts} == {HOSTS[rank // 8], OTHERS[rank // 8]}
    assert run.exit_code(result) == 0


def test_a_pipeline_stage_that_does_more_is_the_programs_and_not_its_host():
    stage = dict.fromkeys(range(8), 0.1)
    result = found(job("812", program=stage), job("815", OTHERS, program=stage, seed=2))
    assert [each.cause for each in result.causes] == [PROGRAM]


def test_rank_0_is_the_programs_in_jobs_of_different_shapes():
    result = found(job("812", layout="tensor", program={0: 0.1}), job("815", OTHERS, program={0: 0.1}, seed=2))
    assert [each.cause for each in result.causes] == [PROGRAM]
    assert result.causes[0].parts[0].positions == {FIRST}


def test_the_same_ranks_well_on_another_host_speak_against_the_program():
    slow = {("gpu003", 5): 0.1}
    jobs = [job("1", slow=slow), job("2", slow=slow, seed=2), job("3", ["a", "b", "c", "d"], seed=3)]
    (only,) = found(*jobs).causes
    assert only.cause == HOST
    assert "the same ranks were not late on c" in only.why


@pytest.mark.parametrize("seed", [134, 263])
def test_a_rank_that_is_nearly_as_late_on_another_host_does_not_blame_the_host(seed):
    """The program loads a rank by 5 %: late beyond doubt in two jobs, by chance on one host, and just not in the third."""
    assert trial("program in 3 jobs", 0.05, f"big-{seed}") != "wrong"


def test_a_pause_in_a_tenth_of_the_run_names_nobody():
    paused = job()
    (calls,) = paused.communicators[0].calls.values()
    for number in range(100, 120):
        for rank, of_rank in calls.items():
            time, end = of_rank[number]
            of_rank[number] = (time if rank == 9 else time + 200_000, end)
    assert not found(paused).causes


def test_half_of_the_hosts_late_is_undecided():
    result = found(job(hosts=["a", "b"], slow={("a", None): 0.1}))
    assert not result.causes
    assert "8 of 16 ranks, on a, join AllReduce at least" in result.jobs[0].undecided[0]
    assert "on b they come early" in result.jobs[0].undecided[0]
    assert run.exit_code(result) == 3


def test_files_of_few_ranks_are_not_judged(tmp_path):
    place = inspector_files.write(tmp_path, job())
    for file in place.glob("gpu00[123]*"):
        file.unlink()
    (one,) = run.run(SlowRequest(inspector=place)).jobs
    assert one.not_compared == ("files of 8 of 32 ranks: collect those of all hosts",)


def test_files_that_were_written_at_the_end_alone_have_no_times(tmp_path):
    place = inspector_files.write(tmp_path, job(slow={("gpu003", 5): 0.3}), dumped=1_700_000_000_000_000)
    result = run.run(SlowRequest(inspector=place))
    assert not result.causes
    assert "no times between the collectives: set NCCL_INSPECTOR_DUMP_THREAD_INTERVAL" in result.jobs[0].not_compared[0]
    assert run.exit_code(result) == 3


def test_the_verbose_trace_has_the_times(tmp_path):
    place = inspector_files.write(tmp_path, job(slow={("gpu003", 5): 0.3}), dumped=1_700_000_000_000_000, verbose=True)
    assert [part.host for each in run.run(SlowRequest(inspector=place)).causes for part in each.parts] == ["gpu003"]


def test_a_folder_of_jobs_reads_as_it_was_made(tmp_path):
    made = job("812", layout="tensor")
    inspector_files.write(tmp_path, made)
    inspector_files.write(tmp_path, job("815"))
    jobs, notes = inspector.read(tmp_path)
    assert sorted(each.name for each in jobs) == ["812", "815"]
    assert notes == []
    read = next(each for each in jobs if each.name == "812")
    assert {inspector_files.identity(each.id): each.members for each in made.communicators} == {
        each.id: each.members for each in read.communicators
    }
    first = made.communicators[0]
    again = next(each for each in read.communicators if each.id == inspector_files.identity(first.id))
    assert again.calls == first.calls


def test_jobs_of_one_folder_are_told_apart_by_their_processes(tmp_path):
    for name, hosts in (("a", HOSTS), ("b", ["x", "y"])):
        for file in inspector_files.write(tmp_path, job(name, hosts)).iterdir():
            file.rename(tmp_path / file.name)
    jobs, _ = inspector.read(tmp_path)
    assert [len(each.positions) for each in jobs] == [32, 16]
    assert len({each.name for each in jobs}) == 2


SOUND = json.loads(inspector_files.line(job().communicators[0], 3, Kind("AllReduce", 8192, 32), (7, 50, 99)))


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("header", "id", 5),
        ("header", "rank", 32),
        ("header", "rank", -1),
        ("header", "n_ranks", True),
        ("metadata", "hostname", ""),
        ("metadata", "hostname", "x" * 300),
        ("metadata", "pid", "7"),
        ("coll_perf", "coll", "Broadcast"),
        ("coll_perf", "coll_timing_source", "kernel_cpu"),
        ("coll_perf", "coll_exec_time_us", 0),
        ("coll_perf", "coll_exec_time_us", 1 << 60),
        ("coll_perf", "coll_sn", 1.5),
    ],
)
def test_a_line_that_is_not_a_sound_call_is_left_out(tmp_path, part, name, value):
    file = tmp_path / "gpu001-pid7.log"
    lines = [SOUND, {**SOUND, part: {**SOUND[part], name: value}}, {**SOUND, part: []}]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines) + '{"header":{"id"\n[1]\n\x00\n' + "{" * 100_000)
    (one,), _ = inspector.read(file)
    (communicator,) = one.communicators
    assert communicator.members == {3: Process("gpu001", 1003)}
    assert [list(of_rank) for calls in communicator.calls.values() for of_rank in calls.values()] == [[7]]


def test_a_number_that_comes_twice_is_not_matched(tmp_path):
    (tmp_path / "a.log").write_text((json.dumps(SOUND) + "\n") * 2)
    (one,), notes = inspector.read(tmp_path)
    assert one.communicators[0].calls[Kind("AllReduce", 8192, 32)] == {3: {}}
    assert "1 collectives with the same number as another (CUDA graphs) cannot be matched" in notes[0]


def test_a_long_file_is_used_in_part_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(inspector, "MAX_CALLS", 0)
    text = "".join(
        json.dumps({**SOUND, "coll_perf": {**SOUND["coll_perf"], "coll_sn": sn}}) + "\n" for sn in range(1500)
    )
    (tmp_path / "a.log").write_text(text)
    (one,), notes = inspector.read(tmp_path)
    assert notes == ["of 1 file, only the first 200 collectives are used"]
    assert len(one.communicators[0].calls[Kind("AllReduce", 8192, 32)][3]) == 200


@pytest.mark.parametrize("ranks", [1, 2])
def test_communicators_without_number_are_put_into_jobs_in_linear_time(ranks):
    """A user writes 150,000 in a file: with one look at each pair of them this test would not end."""
    read = {}
    for number in range(150_000):  # alone, or each with the next one
        for rank in range(ranks):
            inspector._add(
                read, inspector.Call(str(number), rank, 4, Process("h", number + rank), "AllReduce", 1, 1, 1, 1), "/d"
            )
    assert len(inspector._jobs(read)) == (150_000 if ranks == 1 else 1)


@pytest.mark.parametrize("text", ["", "nonsense\n", inspector_files.P2P])
def test_a_folder_without_collectives_is_one_clear_line(tmp_path, text):
    (tmp_path / "a.log").write_text(text)
    with pytest.raises(
        UserError, match="no collective of NCCL's Inspector in it: give the folder of NCCL_INSPECTOR_DUMP"
    ):
        inspector.read(tmp_path)


def test_the_command_prints_who_is_late_and_what_to_do(tmp_path):
    slow = {("gpu003", 5): 0.1}
    inspector_files.write(tmp_path, job("812", slow=slow))
    inspector_files.write(tmp_path, job("815", OTHERS, slow=slow, seed=2))
    done = nodetune("slow", "--inspector", tmp_path)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("slow         gpu003, local rank 5 of 8: in 2 of 2 jobs there")
    assert "             nodetune audit -i gpu003 -b" in lines
    assert lines[-1] == "jobs         2 of 2 jobs judged, 7 hosts: 1 late part"


def test_the_document_follows_its_schema(tmp_path):
    inspector_files.write(tmp_path, job("812", slow={("gpu003", None): 0.1}))
    done = nodetune("slow", "--inspector", tmp_path, "--format", "json")
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert list(schemas.violations("slow-ranks", data)) == []
    (late,) = data["late"]
    assert late["parts"][0]["whole_host"] is True


def test_names_of_hosts_are_safe_to_print(tmp_path):
    inspector_files.write(tmp_path, job(hosts=["a\\u001b[2Jb", *HOSTS], slow={("a\\u001b[2Jb", 5): 0.3}))
    done = nodetune("slow", "--inspector", tmp_path)
    assert done.returncode == 1, done.stderr
    assert "\x1b" not in done.stdout
    assert r"a\x1b[2Jb, local rank 5" in done.stdout


@pytest.mark.parametrize("words", [(), ("--inspector", ".", "--ras", "localhost")])
def test_one_of_both_sources_is_asked_for(words):
    done = nodetune("slow", *words)
    assert done.returncode == 2
    assert (
        done.stderr.strip()
        == "nodetune: give either --inspector DIR, for jobs that ran, or --ras HOST, for a job that hangs"
    )


def collective(name, processes, late, size=1 << 20, count=300):
    """A communicator whose members join an all-reduce so many µs late each time, every 10 ms."""
    rng, calls = random.Random(name), {}
    for number in range(count):
        joined = [each + rng.gauss(0, 30) for each in late]
        end = 1_700_000_000_000_000 + number * 10_000 + round(max(joined))
        for rank, at in enumerate(joined):
            calls.setdefault(rank, {})[number] = (200 + round(max(joined) - at), end)
    kind = Kind("AllReduce", size, len(processes))
    return Communicator(name, len(processes), dict(enumerate(processes)), {kind: calls})


def process(host, local):
    return Process(f"gpu{host:03}", 1000 + host * 10 + local)


def test_of_a_pipeline_whose_stages_wait_for_one_another_unseen_none_is_named():
    """Four stages on hosts of their own, eight replicas: the files do not show what the stages send to one another."""
    late = [2000 if replica == 3 else 0 for replica in range(8)]
    stages = [collective(f"d{stage}", [process(10 * stage + each, 0) for each in range(8)], late) for stage in range(4)]
    world = Communicator("w", 32, {rank: process(10 * (rank // 8) + rank % 8, 0) for rank in range(32)}, {})
    result = found(Job("1", [world, *stages]))
    assert not result.causes
    assert result.jobs[0].undecided == (
        "ranks 3, 11, 19, 27 on gpu003, gpu013, gpu023, gpu033 are late together: one of them, which the others may wait for",
    )
    assert run.exit_code(result) == 3


def test_of_two_ranks_that_compute_together_neither_is_named():
    data = [
        collective(f"d{place}", [process(each, place) for each in range(8)], [0, 2000, 0, 0, 0, 0, 0, 0])
        for place in range(2)
    ]
    pairs = [Communicator(f"t{host}", 2, {0: process(host, 0), 1: process(host, 1)}, {}) for host in range(8)]
    more = collective("e", [process(host, 2 + place) for host in range(8) for place in range(2)], [0] * 16)
    result = found(Job("1", [*data, *pairs, more]))
    assert not result.causes
    assert "are late together" in result.jobs[0].undecided[0]


def test_hosts_that_were_compared_with_themselves_only_are_not_well():
    """Tensor-parallel within two hosts, a data-parallel pair across them: that one host is late shows nowhere."""
    inside = [collective(f"t{host}", [process(host, place) for place in range(8)], [0] * 8) for host in range(2)]
    across = [Communicator(f"d{place}", 2, {0: process(0, place), 1: process(1, place)}, {}) for place in range(8)]
    result = found(Job("1", [*inside, *across]))
    assert result.jobs[0].not_compared == ("its hosts were compared with themselves only",)
    assert run.exit_code(result) == 3


def test_ranks_that_were_not_compared_are_counted():
    half = [
        collective(f"t{host}", [process(host, place) for place in range(8)], [0] * 8, count=90 if host else 300)
        for host in range(2)
    ]
    world = Communicator("w", 16, {rank: process(rank // 8, rank % 8) for rank in range(16)}, {})
    result = found(Job("1", [*half, world]))
    assert result.jobs[0].not_compared[0] == "8 of 16 ranks could be compared"


def test_a_process_that_drives_several_gpus_is_not_judged():
    result = found(
        Job("1", [collective("w", [process(rank // 8, 0) for rank in range(16)], [0] * 13 + [2000] + [0] * 2)])
    )
    assert result.jobs[0].compared == 0
    assert result.jobs[0].not_compared == ("processes that drive several GPUs: the Inspector does not name the GPU",)


def test_files_that_were_collected_by_host_are_one_job(tmp_path):
    inspector_files.write(tmp_path, job("812", layout="tensor", slow={("gpu002", 5): 0.1}))
    for file in (tmp_path / "nccl-inspector-812").iterdir():
        folder = tmp_path / "nccl-inspector-812" / file.name.split("-pid")[0]
        folder.mkdir(exist_ok=True)
        file.rename(folder / file.name)
    jobs, _ = inspector.read(tmp_path)
    assert [each.name for each in jobs] == ["812"]
    (only,) = found(*jobs).causes
    assert (only.cause, only.parts[0].host, only.parts[0].local) == (OPEN, "gpu002", (5,))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_what_cannot_be_read_is_noted(tmp_path):
    inspector_files.write(tmp_path, job("812"))
    inspector_files.write(tmp_path, job("815", OTHERS, seed=2))
    (tmp_path / "nccl-inspector-815").chmod(0)
    _, notes = inspector.read(tmp_path)
    assert notes == [f"{tmp_path}/nccl-inspector-815 was left out: permission denied"]


def test_a_file_that_vanishes_is_noted_and_the_others_are_read(tmp_path, monkeypatch):
    inspector_files.write(tmp_path, job("812"))
    first = min((tmp_path / "nccl-inspector-812").iterdir())
    files = inspector._files

    def vanishing(path, notes):
        them = list(files(path, notes))
        first.unlink()
        return them

    monkeypatch.setattr(inspector, "_files", vanishing)
    (only,), notes = inspector.read(tmp_path)
    assert len(only.positions) == 31
    assert notes == [f"{first} was left out: no such file or directory"]


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    done = nodetune("slow", "--inspector", tmp_path / "fifo")
    assert done.returncode == 2
    assert done.stderr.strip() == f"nodetune: {tmp_path}/fifo is not a folder, and not a file"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Folders of NCCL 2.28.9's Inspector on four H200s: rank 2 computes 0 (even_1), 5 (late5_1) and 20 % (late20_1) longer."""
    folder = tmp_path_factory.mktemp("inspector")
    archives.unpack(RECORDED, folder)
    return folder


@pytest.mark.parametrize(("name", "calls"), [("even_1", 400), ("late5_1", 400), ("late20_1", 350)])
def test_every_line_of_a_real_job_is_read(recorded, name, calls):
    (only,), notes = inspector.read(recorded / name)
    (communicator,) = only.communicators
    assert communicator.size == len(communicator.members) == 4
    assert {kind.size for kind in communicator.calls} == {16 << 20, 256 << 20}
    assert {len(of_rank) for calls in communicator.calls.values() for of_rank in calls.values()} == {calls}
    assert not notes


def test_in_a_real_job_the_rank_with_more_to_do_has_the_shortest_kernel(recorded):
    (only,), _ = inspector.read(recorded / "late20_1")
    rows, reasons = lateness.of_communicator(only.communicators[0])
    assert not reasons
    late = {row.kind.size: row for row in rows if row.wait > 300}
    assert set(late) == {16 << 20, 256 << 20}
    for row in late.values():
        assert only.communicators[0].members[2] == row.process
        assert row.last == 1.0
        assert row.wait == pytest.approx(930, rel=0.05)


@pytest.mark.parametrize("name", ["even_1", "late5_1", "late20_1"])
def test_four_real_ranks_are_too_few_to_name_one(recorded, name):
    done = nodetune("slow", "--inspector", recorded / name)
    assert done.returncode == 3, done.stderr
    assert f"job {name}: too few ranks that do the same" in done.stdout
    assert done.stdout.splitlines()[-1] == "jobs         0 of 1 job judged"
    where = "rank 2 of 4, on vm, joins AllReduce last in 100 % of 350"
    assert (where in done.stdout) == (name == "late20_1")
