"""What NCCL measurements count and check, and what is read from NCCL's log and from nccl-tests."""

import json
import os
import re
import stat
from pathlib import Path

import pytest

from nodetune.measurements import nccl
from nodetune.measurements.host.report import MeasurementError, SkipError
from nodetune.measurements.nccl_support import (
    nccl_api,
    nccl_cases,
    nccl_log,
    nccl_ops,
    nccl_rank,
    nccl_results,
    nccl_run,
    nccl_sizes,
    nccl_tests,
)

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings" / "nccl"
TABLES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")


class Heard:
    """Keeps what a measurement reports. Has the parts of Report that need no supervisor."""

    hosts, self = ["localhost"], 0

    def __init__(self):
        self.records, self.failures, self.skips, self.notes = [], [], [], []

    def step(self, text):
        pass

    def note(self, text):
        self.notes.append(text)

    def left(self):
        return 60.0

    def result(self, subject, samples, unit, metric, **about):
        self.records.append({"subject": subject, "samples": samples, "unit": unit, "metric": metric, "about": about})

    def failed(self, reason, subject=None, metric=None):
        self.failures.append(reason)

    def skip(self, reason, subject=None, metric=None):
        self.skips.append(reason)


def recorded(name):
    return (RECORDINGS / name).read_text()


def table(name):
    """((size, in place), seconds, wrong) as our reader sees it, and the bandwidths that the line itself prints."""
    text = recorded(f"nccl-tests-{name}.txt")
    lines = [line.split() for line in text.splitlines() if re.match(r"\s+\d{9,} ", line)]
    printed = {(int(words[0]), False): (float(words[-7]), float(words[-6])) for words in lines}
    printed |= {(int(words[0]), True): (float(words[-3]), float(words[-2])) for words in lines}
    return list(nccl_tests.read("", text, name)), printed


# Arithmetic


@pytest.mark.parametrize("name", TABLES)
def test_bandwidths_equal_those_of_nccl_tests(name):
    found, printed = table(name)
    large = [(case, seconds) for case, seconds, _ in found if case[0] >= 64 << 20]
    assert len(large) == (4 if name == "alltoall" else 8)
    for case, seconds in large:
        algbw, busbw = nccl_ops.bandwidths(name, case[0], seconds, 8)
        assert algbw == pytest.approx(printed[case][0], rel=1e-4)
        assert busbw == pytest.approx(printed[case][1], rel=1e-4)


def test_sizes_are_cut_down_as_nccl_tests_does():
    assert nccl_ops.counted("all_gather", 32, 8) == 0  # its table shows 0 for less than 16 bytes a rank
    assert nccl_ops.counted("all_gather", 128, 8) == 128
    assert nccl_ops.counted("reduce_scatter", 1000, 8) == 896
    assert nccl_ops.counted("all_reduce", 8, 8) == 8
    assert nccl_ops.counted("alltoall", 1 << 30, 3) % 3 == 0


def before(name, size, ranks, rank, in_place, limit):
    """A rank's two buffers before the call, as lists of integers (one an element of 4 bytes); None: undefined."""
    offset, count, phase = nccl_ops.brought(name, size, ranks, rank, in_place)
    data = nccl_ops.values(rank, limit)
    laid = [data[(phase + at) % nccl_ops.PERIOD] for at in range(count // 4)]
    sent, received = [None] * (size // 4), [None] * (size // 4)
    target = received if in_place else sent
    target[offset // 4 : offset // 4 + len(laid)] = laid
    return sent, received


def carried_out(name, buffers, in_place):
    """What each rank has received afterwards, by the definition of the collective."""
    ranks = len(buffers)
    size = len(buffers[0][0])
    sources = [received if in_place else sent for sent, received in buffers]
    part = size // ranks
    after = [list(received) for _, received in buffers]
    for rank in range(ranks):
        if name == "all_reduce":
            after[rank] = [sum(column) for column in zip(*sources, strict=True)]
        elif name == "all_gather":
            pieces = [sources[r][r * part : (r + 1) * part] if in_place else sources[r][:part] for r in range(ranks)]
            after[rank] = [each for piece in pieces for each in piece]
        elif name == "reduce_scatter":
            mine = [
                sum(column) for column in zip(*(each[rank * part : (rank + 1) * part] for each in sources), strict=True)
            ]
            start = rank * part if in_place else 0
            after[rank][start : start + part] = mine
        elif name == "alltoall":
            after[rank] = [each for r in range(ranks) for each in sources[r][rank * part : (rank + 1) * part]]
        else:
            after[rank] = list(sources[(rank - 1) % ranks])
    return after


WAYS = [
    (name, in_place)
    for name in nccl_ops.NAMES
    for in_place in (False, True)
    if not in_place or name in nccl_ops.IN_PLACE
]


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize(("name", "in_place"), WAYS)
def test_each_rank_expects_the_defined_result(name, ranks, in_place):
    size, limit = nccl_ops.counted(name, 24000, ranks), nccl_ops.top("float32", ranks)
    buffers = [before(name, size, ranks, rank, in_place, limit) for rank in range(ranks)]
    after = carried_out(name, buffers, in_place)
    for rank in range(ranks):
        checked = 0
        for offset, count, whose, phase in nccl_ops.wanted(name, size, ranks, rank, in_place):
            period = nccl_ops.summed(ranks, limit) if whose is None else nccl_ops.values(whose, limit)
            expected = [period[(phase + at) % nccl_ops.PERIOD] for at in range(count // 4)]
            assert after[rank][offset // 4 : (offset + count) // 4] == expected
            checked += count
        assert checked == (nccl_ops.share(name, size, ranks) if name == "reduce_scatter" else size)


def test_every_chunk_of_every_rank_has_its_own_pattern():
    period = nccl_ops.values(0, nccl_ops.PERIOD)
    for power in range(2, 34):
        shift = (1 << power) // 4 % nccl_ops.PERIOD
        assert period[shift:] + period[:shift] != period
    assert len({tuple(nccl_ops.values(rank, nccl_ops.PERIOD)) for rank in range(72)}) == 72


@pytest.mark.parametrize(("kind", "ranks"), [("float32", 8), ("float32", 4096), ("bfloat16", 8), ("bfloat16", 128)])
def test_sums_are_exact_in_the_type_that_is_sent(kind, ranks):
    assert max(nccl_ops.summed(ranks, nccl_ops.top(kind, ranks))) <= nccl_ops.EXACT[kind]
    assert nccl_ops.top(kind, ranks) > 1


def test_a_tile_is_one_period_of_words_in_either_type():
    period = list(range(nccl_ops.PERIOD))
    assert len(nccl_ops.tile(period, "float32")) == len(nccl_ops.tile(period, "bfloat16")) == 4 * nccl_ops.PERIOD
    assert nccl_ops.tile([1] * nccl_ops.PERIOD, "bfloat16")[:4] == b"\x80\x3f\x80\x3f"


# Options


def test_cases_cover_each_collective_size_and_place():
    asked = nccl_cases.checked({"collectives": ["all_reduce", "alltoall"], "sizes": [1 << 20]})
    cases = [(case["name"], case["in_place"]) for case in nccl_cases.planned(asked, 8)]
    assert cases == [("all_reduce", False), ("all_reduce", True), ("alltoall", False)]


def test_the_largest_sizes_of_all_collectives_come_last():
    cases = list(nccl_cases.planned(nccl_cases.checked({"sizes": [4 << 30, 1 << 20]}), 8))
    assert [case["size"] for case in cases] == [1 << 20] * 8 + [4 << 30] * 8


GIB = 1 << 30


@pytest.mark.parametrize(
    ("free", "most"), [(139 * GIB, 16), (79 * GIB, 16), (39 * GIB, 16), (22 * GIB, 4), (15 * GIB, 4), (None, 16)]
)
def test_sizes_that_do_not_fit_into_memory_are_left_out(free, most):
    heard = Heard()
    assert nccl_sizes.fitting([GIB, 4 * GIB, 16 * GIB], free, 2, heard)[-1] == most * GIB
    assert bool(heard.notes) is (most < 16)


def test_a_left_out_size_is_named_with_the_memory():
    heard = Heard()
    assert nccl_sizes.fitting([4 * GIB, 16 * GIB], 22 * GIB, 2, heard) == [4 * GIB]
    assert heard.notes == ["16 GiB left out: 2 buffers of that size do not fit into 22 GiB of free memory"]


def test_the_smallest_size_is_tried_where_none_fits():
    assert nccl_sizes.fitting([4 * GIB, 16 * GIB], GIB, 2, Heard()) == [4 * GIB]


def test_the_gpu_with_the_least_memory_decides():
    assert nccl_sizes.least([None, 5, 3]) == 3
    assert nccl_sizes.least([None]) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"collectives": ["broadcast"]}, "no collective broadcast: there are all_reduce"),
        ({"dtype": "int8"}, "dtype int8"),
        ({"repeats": 0}, "repeats 0: 1 to 50"),
        ({"sizes": []}, "empty, or not all are numbers"),
        ({"sizes": ["big"]}, "empty, or not all are numbers"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(options, said):
    with pytest.raises(MeasurementError, match=said):
        nccl_cases.checked(options, nccl.SIZES)


def test_a_gpu_that_is_not_there_is_named():
    with pytest.raises(MeasurementError, match="GPU5 not found: there are GPU0, GPU1"):
        nccl_run.chosen_gpus([0, 5], ["GPU0", "GPU1"])


@pytest.mark.parametrize(
    ("chosen", "places", "text"),
    [
        (["GPU0", "GPU1"], [{"gpus": 2}], "2 GPUs"),
        (["GPU1"], [{"gpus": 2}], "GPU1"),
        (["GPU0", "GPU1"], [{"gpus": 2}, {"gpus": 2}], "2 nodes of 2 GPUs"),
        (["GPU0"], [{"gpus": 1}, {"gpus": 1}, {"gpus": 1}], "3 nodes of 1 GPU"),
    ],
)
def test_the_subject_says_which_gpus(chosen, places, text):
    assert nccl_run.subject(chosen, ["GPU0", "GPU1"], places) == text


@pytest.mark.parametrize(("number", "text"), [(22809, "2.28.9"), (22203, "2.22.3"), (2708, "2.7.8"), (21805, "2.18.5")])
def test_the_release_is_read_from_either_way_of_counting(number, text):
    assert nccl_api.version_text(number) == text


def test_a_library_that_is_none_is_a_fault_that_names_it(tmp_path):
    (tmp_path / "libnccl.so.2").write_text("no library")
    with pytest.raises(MeasurementError, match=rf"NCCL cannot be loaded: {tmp_path}/libnccl.so.2"):
        nccl_api.load(str(tmp_path))


class Functions:
    """A library with these functions. Each remembers its calls."""

    def __init__(self, names):
        self.called = []
        for name in names:
            setattr(self, name, self._function(name))

    def _function(self, name):
        def call(*arguments):
            self.called.append((name, *(getattr(each, "value", each) for each in arguments)))
            return 0

        return call


@pytest.mark.parametrize("newer", [True, False])
def test_an_alltoall_is_one_call_only_where_the_library_has_it(newer):
    library = Functions([*nccl_api.PROTOTYPES, *(["ncclAlltoAll"] if newer else [])])
    rank = nccl_rank.Rank(
        {"rank": 1, "ranks": 2, "dtype": "float32"}, nccl_api.Library(library, "libnccl.so.2"), None, None
    )
    rank.sent, rank.received, rank.communicator, rank.stream = 4096, 8192, 5, 6
    library.called.clear()
    rank._calls({"name": "alltoall", "size": 64, "in_place": False})()
    one_call = [("ncclAlltoAll", 4096, 8192, 8, nccl_api.FLOAT32, 5, 6)]
    group = [
        ("ncclGroupStart",),
        ("ncclSend", 4096, 8, nccl_api.FLOAT32, 0, 5, 6),
        ("ncclSend", 4096 + 32, 8, nccl_api.FLOAT32, 1, 5, 6),
        ("ncclRecv", 8192, 8, nccl_api.FLOAT32, 0, 5, 6),
        ("ncclRecv", 8192 + 32, 8, nccl_api.FLOAT32, 1, 5, 6),
        ("ncclGroupEnd",),
    ]
    assert library.called == (one_call if newer else group)


def test_a_library_without_ncclsend_is_too_old():
    libc = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc.so" in line)
    with pytest.raises(MeasurementError, match="NCCL 2.7 or newer is needed"):
        nccl_api.load(libc)


# The log


def path_of(*names):
    paths = []
    for name in names:
        log = nccl_log.Log()
        log.feed(recorded(name))
        paths.append(log.path())
    return nccl_log.merged(paths)


def test_nvlink_p2p_is_read_from_the_log_of_two_h200():
    path = path_of("log-p2p.txt")
    assert path["transport"] == "P2P"
    assert path["link"] == "NVL"
    assert path["channels"] == 24
    assert path["nvls"] is False
    assert path["gdr"] is None
    assert path["settings"]["NCCL_NVLS_ENABLE"] == "0"


def test_shared_memory_is_read_from_a_log_with_p2p_off():
    path = path_of("log-shm.txt")
    assert (path["transport"], path["link"]) == ("SHM", "PHB")
    assert path["settings"]["NCCL_P2P_DISABLE"] == "1"


def test_sockets_have_an_interface_and_no_address():
    path = path_of("log-net.txt")
    assert (path["transport"], path["nics"], path["gdr"]) == ("NET/Socket", ["eth0"], False)


def test_the_algorithm_ignores_our_own_small_collectives():
    log = nccl_log.Log()
    log.feed(recorded("log-p2p.txt"))
    assert log.chosen("AllReduce", 64 << 20) == {"algorithm": "RING", "protocol": "SIMPLE", "channels": 24}
    assert log.chosen("AllReduce", 4)["protocol"] == "LL"
    assert log.chosen("AllGather", nccl_ops.share("all_gather", 64 << 20, 2))["algorithm"] == "RING"
    assert log.chosen("AllReduce", 1 << 30) == {}
    assert log.version == "2.28.9"


INFINIBAND = """\
n1:9:9 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB eno1:192.0.2.9<0>
n1:9:9 [0] NCCL INFO Channel 00/0 : 11[3] -> 2[2] [receive] via NET/IB/1/GDRDMA
n1:9:9 [0] NCCL INFO Channel 00/0 : 2[2] -> 11[3] [send] via NET/IB/0{}
n1:9:9 [0] NCCL INFO Channel 00/0 : 2[2] -> 3[3] via P2P/CUMEM/read
"""


@pytest.mark.parametrize(("second", "direct"), [("/GDRDMA", True), ("", False), ("/GDRDMA/Shared", True)])
def test_gpudirect_counts_only_if_every_connection_has_it(second, direct):
    log = nccl_log.Log()
    log.feed(INFINIBAND.format(second))
    path = nccl_log.merged([log.path()])
    assert path["transport"] == "NET/IB+P2P"
    assert path["nics"] == ["mlx5_0:1", "mlx5_3:1"]
    assert path["gdr"] is direct


def test_older_releases_log_algorithms_by_number():
    log = nccl_log.Log()
    log.feed("n1:9:9 [0] NCCL INFO 67108864 Bytes -> Algo 4 proto 2 time 250.1\n")
    assert log.chosen("AllReduce", 64 << 20) == {"algorithm": "NVLS", "protocol": "SIMPLE"}


def test_nvls_is_the_transport_where_it_was_the_algorithm():
    log = nccl_log.Log()
    log.feed("h:1:1 [0] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels\n")
    log.feed("h:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n")
    log.feed("h:1:1 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}\n")
    path = nccl_log.merged([log.path()])
    used = nccl_results.described({}, path, log.chosen("AllReduce", 1 << 30))
    assert (used["transport"], used["nvls"], used["channels"]) == ("NVLS", True, 16)
    assert nccl_results.described({}, path, {})["transport"] == "P2P"


def test_a_log_in_pieces_is_joined_and_keeps_warnings():
    text = recorded("log-net.txt") + "host:1:1 [0] NCCL WARN NET/Socket : connection refused\n"
    whole, pieces = nccl_log.Log(), nccl_log.Log()
    whole.feed(text)
    for at in range(0, len(text), 77):
        pieces.feed(text[at : at + 77])
    assert pieces.path() == whole.path()
    assert pieces.warnings == ["NET/Socket : connection refused"]


def test_the_worst_link_of_all_ranks_is_told():
    one = {"via": {}, "nics": [], "settings": {}, "channels": 2, "nvls": True, "link": "NVL"}
    assert nccl_log.merged([one, {**one, "link": "PHB", "nvls": False}])["link"] == "PHB"
    assert nccl_log.merged([one, {**one, "nvls": False}])["nvls"] is False


# Results


def result(case, parts, check=True):
    heard = Heard()
    jobs = [{"rank": n, "gpu": f"GPU{n}", "check": check, "dtype": "float32"} for n in range(len(parts))]
    results = nccl_results.Results([case], jobs, {"gpus": len(parts), "nodes": 1}, "2 GPUs", heard)
    for member, part in parts:
        results.take(member, part)
    return heard


def part(wrong=0, everywhere=0, seconds=(0.004, 0.005, 0.006)):
    path = {"via": {"P2P/CUMEM": 24}, "nics": [], "settings": {"NCCL_DEBUG": "INFO"}, "channels": 24, "nvls": False}
    return {
        "number": 0,
        "seconds": list(seconds),
        "iterations": 20,
        "wrong": wrong,
        "wrong_everywhere": everywhere,
        "path": {**path, "link": "NVL"},
        "chosen": {"algorithm": "RING", "protocol": "SIMPLE", "channels": 24},
    }


CASE = {"name": "all_reduce", "size": 1 << 30, "in_place": False}


def test_a_record_has_the_busbw_of_each_repeat_and_conditions():
    (record,) = result(CASE, [(1, part()), (0, part())]).records
    assert record["metric"] == "all_reduce"
    assert record["samples"] == [268.435, 214.748, 178.957]  # 2 ranks: busbw is algbw
    assert record["about"]["algbw"] == 214.748
    assert record["about"]["time_us"] == 5000.0
    assert record["about"]["via"] == {"P2P/CUMEM": 48}
    assert record["about"]["settings"] == {}


def test_wrong_data_fails_names_the_gpu_and_gives_no_figure():
    heard = result(CASE, [(0, part(everywhere=3)), (1, part(wrong=3, everywhere=3))])
    assert heard.records == []
    assert heard.failures == ["data came back wrong: 3 words of 1 GiB on rank 1 (GPU1)"]


# nccl-tests


def program(folder, name, table_file, json_file=None):
    """A substitute for a program of nccl-tests that prints what the real one printed on a node with eight H200s."""
    path = folder / f"{name}_perf"
    wants_json = f'"{json_file}"' if json_file else ""
    path.write_text(
        "#!/bin/bash\n"
        f'[ "$1" = -h ] && {{ echo "USAGE: {name}_perf {"[-J,--output_file]" if json_file else ""}"; exit 1; }}\n'
        f'echo "$@" > {folder}/arguments\n'
        f'cp {RECORDINGS}/log-p2p.txt "$NCCL_DEBUG_FILE"\n'
        f'for last; do :; done; [ -n {wants_json or chr(34) * 2} ] && cat {wants_json or "/dev/null"} > "$last"\n'
        f"cat {table_file}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def eight_gpus(monkeypatch):
    """nccl_tests with the GPUs of such a node, and an environment that it may change."""
    for name in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(nccl_tests, "known", lambda report: {f"GPU{number}": 139 << 30 for number in range(8)})


def by_program(tmp_path, **options):
    options = {
        "nccl_tests": str(tmp_path),
        "collectives": ["all_reduce"],
        "sizes": [1 << 30, 2 << 30, 4 << 30],
        **options,
    }
    heard = Heard()
    nccl_tests.run(nccl_cases.checked(options, nccl.SIZES), options, heard)
    return heard


def test_the_json_of_nccl_tests_becomes_the_same_kind_of_records(tmp_path, eight_gpus):
    program(tmp_path, "all_reduce", RECORDINGS / "nccl-tests-all_reduce.txt", RECORDINGS / "nccl-tests-all_reduce.json")
    heard = by_program(tmp_path, repeats=2)
    printed = {
        (each["size"], kind == "in_place"): each[kind]["bus_bw"]
        for each in json.loads(recorded("nccl-tests-all_reduce.json"))["results"]
        for kind in ("out_of_place", "in_place")
    }
    assert len(heard.records) == len(printed) == 6
    for record in heard.records:
        about = record["about"]
        assert record["samples"] == pytest.approx([printed[about["size"], about["in_place"]]] * 2, abs=1e-3)
        assert (about["program"], about["nccl"], about["transport"], about["gpus"]) == (
            "nccl-tests",
            "2.28.9",
            "P2P",
            8,
        )
    given = (tmp_path / "arguments").read_text()
    assert f"-b {1 << 30} -e {4 << 30} -f 2 -g 8 -n 20 -w 2 -c 1 -d float -J /proc/self/fd/" in given


def test_nccl_tests_gets_no_size_beyond_memory(tmp_path, eight_gpus, monkeypatch):
    program(tmp_path, "all_reduce", RECORDINGS / "nccl-tests-all_reduce.txt")
    monkeypatch.setattr(nccl_tests, "known", lambda report: {"GPU0": 39 << 30, "GPU1": 39 << 30})
    heard = by_program(tmp_path, sizes=[1 << 30, 4 << 30, 16 << 30])
    assert f"-b {1 << 30} -e {4 << 30} -f 4" in (tmp_path / "arguments").read_text()
    assert heard.notes == ["16 GiB left out: 3 buffers of that size do not fit into 39 GiB of free memory"]


def test_without_json_the_table_is_read(tmp_path, eight_gpus):
    program(tmp_path, "all_reduce", RECORDINGS / "nccl-tests-all_reduce.txt")
    heard = by_program(tmp_path)
    figures = {(each["about"]["size"], each["about"]["in_place"]): each["samples"][0] for each in heard.records}
    assert figures[8589934592, False] == pytest.approx(366.95, abs=0.01)
    assert figures[134217728, True] == pytest.approx(332.63, abs=0.01)
    assert "-J" not in (tmp_path / "arguments").read_text()


def test_chosen_gpus_are_the_only_ones_that_the_program_sees(tmp_path, eight_gpus):
    program(tmp_path, "all_reduce", RECORDINGS / "nccl-tests-all_reduce.txt")
    heard = by_program(tmp_path, gpus=[2, 5])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,5"
    assert {each["subject"] for each in heard.records} == {"GPU2+GPU5"}


def test_wrong_elements_counted_by_nccl_tests_are_a_failure(tmp_path, eight_gpus):
    spoilt = tmp_path / "spoilt.json"
    spoilt.write_text(recorded("nccl-tests-all_reduce.json").replace('"nwrong": 0.0', '"nwrong": 7.0', 1))
    program(tmp_path, "all_reduce", RECORDINGS / "nccl-tests-all_reduce.txt", spoilt)
    heard = by_program(tmp_path)
    assert heard.failures == ["data came back wrong: 7 elements of 1073741824 bytes, by nccl-tests"]
    assert len(heard.records) == 5


def test_a_missing_program_costs_only_its_collective(tmp_path, eight_gpus):
    program(tmp_path, "all_reduce", RECORDINGS / "nccl-tests-all_reduce.txt")
    heard = by_program(tmp_path, collectives=["sendrecv", "all_reduce"])
    assert heard.skips == [f"no program {tmp_path}/sendrecv_perf"]
    assert heard.records


def test_a_program_without_a_table_fails_with_its_last_words(tmp_path, eight_gpus):
    words = tmp_path / "words"
    words.write_text("some host: Test CUDA failure common.cu:1170 'out of memory'\n")
    program(tmp_path, "all_reduce", words)
    assert by_program(tmp_path).failures == [
        "all_reduce_perf printed no result: some host: Test CUDA failure common.cu:1170 'out of memory'"
    ]


def test_several_hosts_are_not_measured_with_nccl_tests(tmp_path):
    heard = Heard()
    heard.hosts = ["a", "b"]
    with pytest.raises(SkipError, match="need MPI"):
        nccl_tests.run(nccl_cases.checked({}, nccl.SIZES), {"nccl_tests": str(tmp_path)}, heard)


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ([1, 4, 16], [(1, 16, 4)]),
        ([64, 32, 64], [(32, 64, 2)]),
        ([8], [(8, 8, 2)]),
        ([1, 3, 8], [(1, 1, 2), (3, 3, 2), (8, 8, 2)]),
    ],
)
def test_sizes_that_grow_by_one_factor_take_one_run(sizes, runs):
    assert nccl_tests.ranges(sizes) == runs
