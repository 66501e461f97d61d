"""Settings of NCCL in one process or in several: which communicator carries what, and what is told of the places."""

import ctypes
import json
import os

import pytest

from nodetune.measurements import nccl_settings
from nodetune.measurements.host.report import MeasurementError
from nodetune.measurements.nccl_support import nccl_communicators, nccl_config

DEFAULT, CTAS, BUFFER, BOTH = (
    {},
    {"NCCL_MIN_CTAS": 64},
    {"NCCL_BUFFSIZE": 2097152},
    {"NCCL_BUFFSIZE": 2097152, "NCCL_MIN_CTAS": 32},
)
MINIMUM = {"overlap_sizes": [1 << 20], "overlap_collectives": ["all_reduce"]}


@pytest.mark.parametrize(
    ("setting", "version", "expected"),
    [
        (CTAS, "2.28.9", ({}, {}, {"minCTAs": 64, "maxCTAs": 64})),
        ({"NCCL_MIN_CTAS": 16}, "2.18.1", ({}, {}, {"minCTAs": 16, "maxCTAs": 32})),
        ({"NCCL_MAX_CTAS": 8}, "2.28.9", ({}, {}, {"minCTAs": 1, "maxCTAs": 8})),
        ({"NCCL_MIN_CTAS": 4, "NCCL_MAX_CTAS": 8}, "2.28.9", ({}, {}, {"minCTAs": 4, "maxCTAs": 8})),
        ({"NCCL_MIN_CTAS": 16}, "2.16.2", ({"NCCL_MIN_CTAS": "16"}, {}, {})),
        ({"NCCL_CTA_POLICY": "EFFICIENCY"}, "2.27.3", ({}, {}, {"CTAPolicy": 1})),
        ({"NCCL_CTA_POLICY": "EFFICIENCY"}, "2.26.2", ({"NCCL_CTA_POLICY": "EFFICIENCY"}, {}, {})),
        ({"NCCL_ALGO": "allreduce:tree"}, "2.28.9", ({}, {"NCCL_ALGO": "allreduce:tree"}, {})),
        (BUFFER, "2.28.9", ({"NCCL_BUFFSIZE": "2097152"}, {}, {})),
    ],
)
def test_a_communicator_carries_what_its_release_lets_it(setting, version, expected):
    assert nccl_config.split(setting, version) == expected


def test_what_the_site_has_set_is_replaced_in_the_process():
    assert nccl_config.split(CTAS, "2.28.9", ["NCCL_MIN_CTAS"]) == ({"NCCL_MIN_CTAS": "64"}, {}, {})


@pytest.mark.parametrize(("version", "size", "number"), [("2.18.1", 40, 21700), ("2.28.9", 72, 22700)])
def test_a_config_is_as_long_as_its_release_says(version, size, number):
    """As nccl.h lays it out: 8 + 2·4 + 4·4 + 8 bytes; from 2.27 on 2·4 + 8 + 4·4 more."""
    config = nccl_config.made({"minCTAs": 64, "maxCTAs": 64}, version)
    raw = bytes(config)
    assert (ctypes.sizeof(config), config.size, config.version) == (size, size, number)
    assert raw[8:12] == (0xCAFEBEEF).to_bytes(4, "little")
    assert raw[16:24] == (0x80000000).to_bytes(4, "little") * 2, "left to NCCL"
    assert raw[24:32] == (64).to_bytes(4, "little") * 2


def grouped(settings, version="2.28.9", **more):
    return nccl_settings.grouped(nccl_settings.checked({"settings": settings, **MINIMUM, **more}), version)


def test_settings_of_communicators_share_a_process():
    groups = grouped([DEFAULT, CTAS, BUFFER, BOTH])
    by_process = {
        group["process"].get("NCCL_BUFFSIZE"): [place["setting"] for place in group["places"]] for group in groups
    }
    assert set(by_process) == {None, "2097152"}
    assert sorted(by_process[None]) == [0, 0, 0, 1]
    assert sorted(by_process["2097152"]) == [2, 3]


def test_the_default_is_first_in_the_middle_and_last():
    several = [DEFAULT, *({"NCCL_MIN_CTAS": count} for count in (8, 16, 32, 64))]
    (group,) = grouped(several)
    order = [place["setting"] for place in group["places"]]
    assert [order[0], order[3], order[6]] == [0, 0, 0]
    assert sorted(order) == [0, 0, 0, 1, 2, 3, 4]


def test_apart_each_setting_has_a_process_with_variables():
    groups = grouped([DEFAULT, CTAS, DEFAULT], apart=True)
    assert sorted(json.dumps(group["process"]) for group in groups) == ['{"NCCL_MIN_CTAS": "64"}', "{}", "{}"]
    assert all(place["fields"] == {} and len(group["places"]) == 1 for group in groups for place in group["places"])


def test_the_order_is_random_and_the_same_everywhere():
    orders = {tuple(nccl_communicators.shuffled(range(4), seed)) for seed in range(40)}
    assert len(orders) > 15
    assert nccl_communicators.shuffled(range(4), 1, 0, 2) == nccl_communicators.shuffled(range(4), 1, 0, 2)
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)


def test_the_cases_are_of_four_kinds():
    asked = nccl_settings.checked(
        {
            "sizes": [1 << 20],
            "collectives": ["all_gather"],
            "latency_sizes": [8],
            "latency_collectives": ["all_reduce"],
            "call_sizes": [1 << 16],
            "call_collectives": ["all_gather"],
            **MINIMUM,
        }
    )
    keys = ("metric", "size", "products", "recorded")
    assert [tuple(case[key] for key in keys) for case in nccl_settings.planned(asked, 2)] == [
        ("all_reduce_latency", 8, False, True),
        ("all_gather_call", 1 << 16, False, False),
        ("all_gather", 1 << 20, False, True),
        ("all_reduce_step", 1 << 20, True, False),
    ]


def test_only_the_named_cases_are_planned():
    options = {"settings": [{}], "sizes": [1 << 20, 1 << 30], "collectives": ["all_reduce", "all_gather"]}
    asked = nccl_settings.checked({**options, "only": ["all_gather 1048576"]})
    assert [case["key"] for case in nccl_settings.planned(asked, 2)] == ["all_gather 1048576"]


def test_too_many_settings_are_refused():
    with pytest.raises(MeasurementError, match="settings: 1 to 16 are possible"):
        nccl_settings.checked({"settings": [DEFAULT] * 17, **MINIMUM})


class Team:
    """Ranks whose answers are known: at each place, the seconds that a test says."""

    def __init__(self, groups, gpus, seconds, about):
        self.sent, self.said, self.seconds, self.about, self.groups = [], [], seconds, about, groups
        self.members = [Member(self, number) for number in range(len(groups) * gpus)]
        self.gpus = gpus
        for number in range(len(self.members)):
            self.said.append((number, "ready", ["id"] if number % gpus == 0 else None))

    def heard(self, number, line):
        kind, group = (line[0] if isinstance(line[0], str) else "ids"), number // self.gpus
        places = self.groups[group]["places"]
        if kind == "id":
            self.said.append((number, "joined", None))
        elif kind == "set up":
            self.said.append((number, kind, {"places": [self.about] * len(places), "amounts": [2, 0], "launched": ""}))
        elif kind == "turn":
            self.sent.append((group, line[1], line[2]))
            found = [self.seconds(place["setting"], at, line[2]) for at, place in enumerate(places)]
            self.said.append((number, kind, None if None in found else found))

    def events(self):
        while self.said:
            yield self.said.pop(0)


class Member:
    def __init__(self, team, number):
        self.team, self.number = team, number

    def send(self, text):
        self.team.heard(self.number, json.loads(text))


class Heard:
    def __init__(self):
        self.records, self.hosts, self.self = [], ["one"], 0

    def step(self, _):
        pass

    def result(self, subject, samples, unit, better="higher", metric=None, **about):
        self.records.append((subject, metric, samples, unit, about))

    def failed(self, reason, subject=None, metric=None):
        self.records.append((subject, metric, reason))


PATH = {"via": {"P2P/CUMEM": 2}, "nics": [], "settings": {}, "channels": 24, "nvls": False, "link": "NVL"}
ABOUT = {"path": PATH, "chosen": {"algorithm": "RING"}, "wrong": 0, "wrong_everywhere": 0}


def told(settings, seconds, about=ABOUT, **more):
    options = {"settings": settings, "sizes": [1 << 30], "collectives": ["all_reduce"], "rounds": 3, **more}
    asked = nccl_settings.checked(options)
    groups, cases = nccl_settings.grouped(asked, "2.28.9"), list(nccl_settings.planned(asked, 2))
    team, report = Team(groups, 2, seconds, about), Heard()
    turns = nccl_settings.Turns(team, groups, 2, team.events(), report)
    turns.join()
    results = nccl_settings.Results(cases, groups, turns, {"gpus": 2, "nccl": "2.28.9"}, asked, report)
    results.tell(nccl_settings.rounds(turns, cases, groups, asked))
    return team, report.records


def test_a_sample_is_one_round_of_all_places_of_a_setting():
    team, records = told(
        [DEFAULT, CTAS, BUFFER], lambda setting, at, turn: (1 + turn) * (0.5 if setting == 1 else 1.0) / 1e3
    )
    assert [(subject, metric, unit) for subject, metric, _, unit, _ in records] == [
        (f"setting {number}", "all_reduce", "GB/s") for number in range(3)
    ]
    default = records[0][2]
    assert default == pytest.approx([1073.7418, 536.8709, 357.914], rel=1e-4)
    assert records[1][2] == pytest.approx([2 * each for each in default], rel=1e-4)
    assert [len(records[number][4]["places"]) for number in range(3)] == [3, 1, 1]
    assert len(set(team.sent)) == 2 * 3, "each process has a turn in each round"


def test_rounds_end_where_the_time_is_over():
    _, records = told([DEFAULT], lambda setting, at, turn: None if turn == 2 else 1e-3)
    assert len(records[0][2]) == 2


def test_wrong_data_are_told_of_their_setting_and_no_figure():
    _, records = told([DEFAULT], lambda *_: 1e-3, {**ABOUT, "wrong": 3, "wrong_everywhere": 3})
    assert records == [("setting 0", "all_reduce", records[0][2])]
    assert "6 words of all_reduce of 1 GiB" in records[0][2]


def test_a_capture_that_fails_falls_back_and_says_so():
    rank = nccl_communicators.Rank.__new__(nccl_communicators.Rank)

    class Gpu:
        @staticmethod
        def graph(_stream, _queue):
            raise MeasurementError("recording a graph: CUDA_ERROR_NOT_SUPPORTED")

    called = []
    rank.gpu, rank.stream = Gpu, None
    rank.agree = lambda values: values
    rank._calls = lambda *_: lambda: called.append(1)
    work, why = rank._made({"recorded": True}, 7, [4, 0])
    work()
    assert (len(called), why) == (4, "recording a graph: CUDA_ERROR_NOT_SUPPORTED")
    work, why = rank._made({"recorded": False}, 7, [2, 0])
    work()
    assert (len(called), why) == (6, ""), "launched one by one on purpose"


def test_variables_of_a_communicator_are_gone_after_its_first_call(monkeypatch):
    monkeypatch.setenv("NCCL_PROTO", "Simple")
    rank, seen = nccl_communicators.Rank.__new__(nccl_communicators.Rank), []

    class Nccl:
        version = "2.28.9"

        @staticmethod
        def join(*_):
            seen.append((os.environ["NCCL_PROTO"], os.environ["NCCL_ALGO"]))
            return 5

        @staticmethod
        def call(*_):
            pass

    rank.nccl, rank.ranks, rank.rank, rank.small, rank.stream = Nccl, 2, 0, 0, 0
    rank.wait = lambda: None
    assert rank._joined({"making": {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL"}, "fields": {}}, b"id") == 5
    assert seen == [("LL", "Ring")]
    assert (os.environ["NCCL_PROTO"], "NCCL_ALGO" in os.environ) == ("Simple", False)
