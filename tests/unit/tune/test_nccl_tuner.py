"""The tuner plugin, built here and called as NCCL calls it: cost tables in, cost tables out."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from nodetune.measurements.host.report import MeasurementError
from nodetune.measurements.nccl_support import nccl_plugin
from nodetune.tune.benches import nccl_tuner
from nodetune.tune.benches.nccl_space import Survey

SOURCE = Path(nccl_tuner.__file__).parents[2] / "data" / "tuner" / nccl_tuner.SOURCE
ALGORITHMS, PROTOCOLS = 7, 3
TREE, RING, NVLS = 0, 1, 4
ALL_GATHER, ALL_REDUCE = 2, 4
VERSIONS = (3, 4, 5, 6)
LOGGER = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
)

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="the plugin is built with gcc")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The plugin, built as INSTALL.txt says, with warnings as errors."""
    path = tmp_path_factory.mktemp("tuner") / nccl_tuner.LIBRARY
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, SOURCE]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


class Tuner:
    """One communicator's tuner, by one version of the interface (NCCL 2.30.7, src/include/plugin/tuner)."""

    def __init__(self, library, version, ranks=8, nodes=1, logged=None):
        members = (ctypes.c_void_p * 5).in_dll(library, f"ncclTunerPlugin_v{version}")
        self._version, self._said = version, logged if logged is not None else []
        self._log = LOGGER(lambda level, flags, file, line, form, first: self._said.append((level, form.decode())))
        self.context, log = ctypes.c_void_p(), ctypes.cast(self._log, ctypes.c_void_p)
        assert ctypes.cast(members[0], ctypes.c_char_p).value == b"nodetune"
        size, out, whole = ctypes.c_size_t, ctypes.byref(self.context), ctypes.c_void_p
        if version < 5:
            init = ctypes.CFUNCTYPE(ctypes.c_int, size, size, whole, whole)(members[1])
            assert init(ranks, nodes, log, ctypes.cast(out, whole)) == 0
        else:
            types = (whole, ctypes.c_uint64, size, size, whole, whole, whole)
            init = ctypes.CFUNCTYPE(ctypes.c_int, *types)(members[1])
            assert init(ctypes.cast(out, whole), 7, ranks, nodes, log, None, None) == 0
        self._info, self._end = members[2], ctypes.CFUNCTYPE(ctypes.c_int, whole)(members[3])
        assert members[4] is None or version < 6, "chunk sizes are NCCL's"

    def ask(self, collective, size, ignored=()):
        """Return (cost table as {(algorithm, protocol): cost}, channels) after NCCL has asked."""
        table = (ctypes.c_float * (ALGORITHMS * PROTOCOLS))()
        for number in range(len(table)):
            table[number] = -1.0 if number // PROTOCOLS in ignored else 10.0 + number
        channels = ctypes.c_int(0)
        before = (
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_int,
        )
        more = () if self._version == 3 else (ctypes.c_int,)
        call = ctypes.CFUNCTYPE(ctypes.c_int, *before, *more, ctypes.c_void_p)(self._info)
        given = (self.context, collective, size, 1, ctypes.cast(table, ctypes.c_void_p), ALGORITHMS, PROTOCOLS)
        assert call(*given, *(0 for _ in more), ctypes.cast(ctypes.byref(channels), ctypes.c_void_p)) == 0
        return [*table], channels.value

    def close(self):
        assert self._end(self.context) == 0


def untouched(ignored=()):
    return [-1.0 if number // PROTOCOLS in ignored else 10.0 + number for number in range(ALGORITHMS * PROTOCOLS)]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Return a function that writes the plugin's file."""

    def write(*lines):
        path = tmp_path / "rows.csv"
        path.write_text("".join(f"{line}\n" for line in lines))
        monkeypatch.setenv("NODETUNE_TUNER_FILE", str(path))
        return path

    return write


def left_alone(tuner):
    for collective in range(5):
        for size in (0, 8, 1 << 20, 1 << 28, 1 << 33):
            if tuner.ask(collective, size) != (untouched(), 0):
                return False
    return True


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_file_or_a_row_nothing_is_changed(library, version, rows, monkeypatch, tmp_path):
    monkeypatch.setenv("NODETUNE_TUNER_FILE", str(tmp_path / "none.csv"))
    assert left_alone(Tuner(library, version))
    rows("# nothing", "", "   ")
    assert left_alone(Tuner(library, version))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_row_rules_out_the_other_algorithms_for_its_sizes_only(library, version, rows):
    rows("allreduce, 1048576, 268435456, tree, -1, 1, 8")
    tuner = Tuner(library, version)
    wanted = [cost if number // PROTOCOLS == TREE else -1.0 for number, cost in enumerate(untouched())]
    for size in (1 << 20, 1 << 25, 1 << 28):
        assert tuner.ask(ALL_REDUCE, size) == (wanted, 0), "NCCL chooses the protocol and the channels"
    for collective, size in ((ALL_REDUCE, (1 << 20) - 1), (ALL_REDUCE, (1 << 28) + 1), (ALL_GATHER, 1 << 25)):
        assert tuner.ask(collective, size) == (untouched(), 0)
    tuner.close()


def test_a_row_may_give_channels_and_have_no_end(library, rows):
    rows("allgather,4294967296,-1,ring,24,-1,-1")
    tuner = Tuner(library, 4)
    assert tuner.ask(ALL_GATHER, 1 << 35)[1] == 24
    assert tuner.ask(ALL_GATHER, (1 << 32) - 1) == (untouched(), 0)


def test_an_algorithm_that_nccl_cannot_run_leaves_all_to_nccl(library, rows):
    rows("allreduce,0,-1,nvls,-1,-1,-1")
    assert Tuner(library, 5).ask(ALL_REDUCE, 1 << 28, ignored=(NVLS,)) == (untouched((NVLS,)), 0)
    rows("allreduce,0,-1,ring,16,-1,-1")
    assert Tuner(library, 5).ask(ALL_REDUCE, 1 << 28, ignored=(RING,)) == (untouched((RING,)), 0)


def test_rows_for_other_communicators_do_not_count(library, rows):
    rows("allreduce,0,-1,tree,-1,2,16", "allreduce,0,-1,ring,-1,1,8")
    assert left_alone(Tuner(library, 6, ranks=4))
    assert Tuner(library, 6, ranks=16, nodes=2).ask(ALL_REDUCE, 8)[0][TREE * PROTOCOLS] == 10.0
    assert Tuner(library, 6, ranks=8, nodes=1).ask(ALL_REDUCE, 8)[0][TREE * PROTOCOLS] == -1.0


def test_the_first_row_that_matches_counts(library, rows):
    rows("allreduce,0,1024,tree,-1,-1,-1", "allreduce,0,-1,ring,-1,-1,-1")
    tuner = Tuner(library, 3)
    assert tuner.ask(ALL_REDUCE, 1024)[0][RING * PROTOCOLS] == -1.0
    assert tuner.ask(ALL_REDUCE, 1025)[0][TREE * PROTOCOLS] == -1.0


BAD = {
    "allreduce,0,-1,tree,-1,-1": "seven columns",
    "allreduce,0,-1,tree,-1,-1,-1,-1": "seven columns",
    "AllReduce,0,-1,tree,-1,-1,-1": "unknown collective",
    "allreduce,0,-1,auto,-1,-1,-1": "unknown algorithm",
    "allreduce,10,9,tree,-1,-1,-1": "no range",
    "allreduce,-1,9,tree,-1,-1,-1": "no range",
    "allreduce,0,1e9,tree,-1,-1,-1": "no range",
    "allreduce,0,99999999999999999999,tree,-1,-1,-1": "no range",
    "allreduce,0,-1,tree,0,-1,-1": "channels are",
    "allreduce,0,-1,tree,65,-1,-1": "channels are",
    "allreduce,0,-1,nvls,8,-1,-1": "ring and tree only",
    "allreduce,0,-1,tree,-1,0,-1": "nodes and ranks",
    "allreduce,0,-1,tree,-1,-1,x": "nodes and ranks",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_row_is_named_and_then_no_row_counts(library, rows, line, capfd):
    path = rows("# first", "allreduce,0,-1,tree,-1,-1,-1", line)
    said = []
    assert left_alone(Tuner(library, 4, logged=said))
    warnings = [form for level, form in said if level == 2]
    assert len(warnings) == 1
    assert "no row of this file counts" in warnings[0]
    assert path.exists()


def test_only_an_absolute_path_is_read(library, tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("allreduce,0,-1,tree,-1,-1,-1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NODETUNE_TUNER_FILE", "rows.csv")
    said = []
    assert left_alone(Tuner(library, 4, logged=said))
    assert any("absolute" in form for level, form in said if level == 2)


@pytest.mark.parametrize("kind", ["folder", "large", "fifo"])
def test_what_is_no_small_file_is_not_read(library, tmp_path, monkeypatch, kind):
    path = tmp_path / "rows"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        subprocess.run(["mkfifo", path], check=True)
    else:
        path.write_text("allreduce,0,-1,tree,-1,-1,-1\n" * 5000)
    monkeypatch.setenv("NODETUNE_TUNER_FILE", str(path))
    assert left_alone(Tuner(library, 4))


def test_more_rows_than_there_is_room_for_are_refused(library, rows):
    rows(*["allreduce,0,8,tree,-1,-1,-1"] * 257)
    assert left_alone(Tuner(library, 4))
    rows(*["allreduce,0,8,tree,-1,-1,-1"] * 256)
    assert not left_alone(Tuner(library, 4))


def test_what_is_written_is_what_the_plugin_reads(library, tmp_path, monkeypatch):
    survey = Survey("2.28.9", nodes=1, gpus=8)
    setting = (("NCCL_MIN_CTAS", 64), (nccl_tuner.ROWS_NAME, "allreduce,189812532,1518500249,tree,-1,1,8"))
    written = {path.name: path for path in nccl_tuner.write(tmp_path / "new", setting, survey)}
    assert written["nodetune_tuner.c"].read_bytes() == SOURCE.read_bytes()
    assert (
        "\nNCCL_MIN_CTAS=64\nNCCL_TUNER_PLUGIN=/etc/nodetune/libnodetune-tuner.so\n"
        in written["INSTALL.txt"].read_text()
    )
    monkeypatch.setenv("NODETUNE_TUNER_FILE", str(written["nccl_tuner.csv"]))
    tuner = Tuner(library, 4)
    assert tuner.ask(ALL_REDUCE, 1 << 29)[0][RING * PROTOCOLS] == -1.0
    assert tuner.ask(ALL_REDUCE, 1 << 31) == (untouched(), 0)
    assert left_alone(Tuner(library, 4, ranks=16, nodes=2))


def test_the_plugin_that_a_measurement_builds_is_read_from_open_files(tmp_path):
    heard = []
    report = type("Report", (), {"step": staticmethod(heard.append)})
    rows = "allreduce,0,1000,ring,2,-1,-1;allgather,0,-1,tree,-1,-1,-1"
    assert nccl_plugin.ROWS == nccl_tuner.ROWS_NAME
    given = [{}, {"NCCL_MIN_CTAS": 64, nccl_plugin.ROWS: rows}]
    default, tuned = nccl_plugin.with_variables(given, SOURCE.read_text(), report)
    assert (default, tuned["NCCL_MIN_CTAS"], heard) == ({}, 64, ["building the tuner plugin"])
    assert Path(tuned["NODETUNE_TUNER_FILE"]).read_text().split() == rows.split(";")
    loaded = ctypes.CDLL(tuned["NCCL_TUNER_PLUGIN"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NODETUNE_TUNER_FILE", tuned["NODETUNE_TUNER_FILE"])
        assert Tuner(loaded, 5).ask(ALL_REDUCE, 500)[1] == 2
    with pytest.raises(MeasurementError, match="failed"):
        nccl_plugin.built("no C")


def test_settings_without_rows_need_no_compiler():
    assert nccl_plugin.with_variables([{}, {"NCCL_ALGO": "Ring"}], "", None) == [{}, {"NCCL_ALGO": "Ring"}]


# --- a setting by size

CASES = [(name, 64 << 2 * n << 10) for name in ("all_gather", "all_reduce") for n in range(8)]
MANY, SOME, TREES = (("NCCL_MIN_CTAS", 64),), (("NCCL_MIN_CTAS", 32),), (("NCCL_ALGO", "allreduce:tree"),)
RINGS = {"algorithm": "RING", "channels": 24}


def composed(gain, ways=lambda setting, case: RINGS):
    """Return what is best by size where `gain(setting, collective, size)` is the truth."""
    settings = (SOME, MANY, TREES)
    gains = {setting: {case: gain(setting, *case) for case in CASES} for setting in settings}
    return nccl_tuner.by_size(
        gains, {setting: {case: ways(setting, case) for case in CASES} for setting in ((), *settings)}, ",1,2"
    )


def test_where_all_sizes_agree_no_row_is_needed():
    assert composed(lambda setting, name, size: 0.1 if setting == MANY else 0.0) == MANY
    assert composed(lambda setting, name, size: 0.005) is None


def test_sizes_that_lose_with_many_channels_keep_the_default_ones():
    found = composed(lambda setting, name, size: (0.1 if size > 1 << 21 else -0.1) if setting == MANY else 0.0)
    assert found == (
        ("NCCL_MIN_CTAS", 64),
        ("TUNER_ROWS", "allgather,46341,2097152,ring,24,1,2;allreduce,46341,2097152,ring,24,1,2"),
    )


def test_each_size_has_the_fewest_channels_that_are_as_good():
    def gain(setting, name, size):
        return {SOME: 0.1, MANY: 0.102 if size < 1 << 24 else 0.2}.get(setting, 0.0) if name == "all_reduce" else 0.0

    found = composed(gain, lambda setting, case: {"algorithm": "RING", "channels": 32 if setting == SOME else 24})
    assert dict(found)["TUNER_ROWS"] == "allgather,46341,1518500249,ring,24,1,2;allreduce,46341,8388608,ring,32,1,2"


def test_an_algorithm_that_is_better_at_small_sizes_has_rows_there():
    found = composed(
        lambda setting, name, size: 0.1 if setting == TREES and name == "all_reduce" and size < 1 << 21 else 0.0,
        lambda setting, case: {"algorithm": "TREE" if setting == TREES else "RING", "channels": 8},
    )
    assert found == (("TUNER_ROWS", "allreduce,46341,2097152,tree,-1,1,2"),)


def test_rows_are_not_guessed_where_the_log_names_no_channels():
    assert (
        composed(lambda setting, name, size: 0.1 if size > 1 << 21 and setting == MANY else 0.0, lambda *_: {}) is None
    )


def test_a_row_leaves_out_sizes_that_nobody_measured():
    assert nccl_tuner._spans([64 << 10, 128 << 10, 1 << 30]) == [
        (46341, 92681),
        (92682, 185363),
        (759250125, 1518500249),
    ]
