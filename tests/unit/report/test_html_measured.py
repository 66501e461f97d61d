"""What verify measured is drawn on the audit's page: the worst first, to be read without seeing it, for any number of hosts."""

import base64
import json
import random
from dataclasses import replace

import pytest

from nodetune.foundation.json_document import DocumentError
from nodetune.report.html import measured as measured_page
from nodetune.report.html import measured_reader
from nodetune.report.html import page as html_page
from nodetune.verify import document as verify
from nodetune.verify.diagnosis import named
from nodetune.verify.evaluate import again, judge
from nodetune.verify.model import FAILED, PEERS, SKIP, Figure, Unmeasured, VerifyFinding
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records
from tests.support.reporting import HOSTILE, finding, hostile, result
from tests.unit.report.test_html import MACHINES, Page, browser, data_of, in_browser, nodetune, written

SLOW = {"gpu_copy h2d GPU2": 26.4, "gpu_copy d2h GPU2": 26.1}
"""A GPU whose link came up at half its speed."""


def proofs(names, planted=None, missing=()):
    """Hosts as the stages judge them together: what a real node measured, a little different on each; planted faults."""
    planted, figures = planted or {}, []
    for name in names:
        noise = random.Random(name)
        noisy = [_noisy(each, noise) for each in records.whole()]
        of_host = planted.get(name, {})
        figures += records.read([records._planted(each, of_host) for each in noisy], name)
    machines = {name: records.h200(name) for name in names}
    verdicts = [again(each, each.figure) if each.status == "short" else each for each in judge(figures, machines)]
    for name in names:
        mine = [each for each in verdicts if each.figure.host == name]
        yield HostVerification(
            name, machine=machines[name], verdicts=tuple(named(mine, [], machines[name])), unmeasured=missing
        )


def _noisy(record, noise):
    scale = 1 + noise.gauss(0, 0.004)
    return {**record, "samples": [each * scale for each in record["samples"]]}


def document(every, time=1_750_000_000):
    return {**verify.document(list(every), SuiteRequest(suite="full"), "-i prod"), "time": time}


REAL = {
    "a": ("h200-x2-run1.jsonl", "nccl-h200-2gpu.jsonl"),
    "b": ("h200-x2-run3.jsonl", "nccl-h200-2nodes.jsonl"),
    "c": ("h200-x2-run5.jsonl", "nccl-h200-4nodes.jsonl", "nccl-h200-shm.jsonl"),
}
"""Recordings of real nodes with two H200s, as if they were hosts of one fleet; one has NCCL going through host memory."""


def recorded():
    figures = []
    for name, files in REAL.items():
        texts = [(records.HERE / "data" / "recordings" / "verify" / file).read_text() for file in files]
        figures += records.read([json.loads(line) for text in texts for line in text.splitlines()], name)
    machines = {name: records.h200(name) for name in REAL}
    verdicts = judge([each for each in figures if isinstance(each, Figure)], machines)
    for name in REAL:
        yield HostVerification(
            name, machine=machines[name], verdicts=tuple(each for each in verdicts if each.figure.host == name)
        )


def saved(folder, given, name="verify.json"):
    path = folder / name
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    return path


def measured(folder, *given):
    return measured_page.read([saved(folder, each, f"{place}.json") for place, each in enumerate(given)])


def fleet(folder, count, planted=None, figures=None):
    """Very many hosts: 16 as they were judged, and the sound ones again under other names, a little different each."""
    names = [f"gpu{number:05}" for number in range(16)]
    parts = measured_reader.RecordReader().read(saved(folder, document(proofs(names, planted))))
    sound = [part for part in parts if part.name not in (planted or {})]
    for number in range(16, count):
        like, name = sound[number % len(sound)], f"gpu{number:05}"
        noise = random.Random(name)
        parts.append(
            replace(like, name=name, rows=[_again(row, like.name, name, noise) for row in like.rows[:figures]])
        )
    return measured_page.FigureData(parts)


def _again(row, old, name, noise):
    by = 1 + noise.gauss(0, 0.003)
    expected = (row.expected[0], measured_reader.number(row.expected[1] * by)) if row.expected else None
    value = measured_reader.number(row.value * by)
    return row._replace(value=value, expected=expected, command=row.command.replace(old, name))


def audited(*names):
    return [result(name, finding(status="pass")) for name in names]


def told(data):
    """All single figures of the page's data: (host, title, subject, size) → (value, status, bound, limit, command)."""
    every = {}
    for name, _, _, shape, values, held, odd, *_ in data["hosts"]:
        statuses = {place: measured_reader.STATUSES[status] for place, status, *_ in odd}
        for place, (slot, value) in enumerate(zip(data["shapes"][shape], values, strict=True)):
            kind, subject, size, command, limit, _ = data["slots"][slot]
            bound, limit = data["expected"][data["held"][held][place]], data["limits"][limit]
            key = name, data["kinds"][kind]["title"], data["texts"][subject], size
            every[key] = (
                value,
                statuses.get(place, "pass"),
                bound and (data["texts"][bound[0]], bound[1]),
                limit and limit[1],
                data["texts"][command].replace("{host}", name),
            )
    return every


def test_all_that_was_measured_is_in_the_page(tmp_path):
    given = document(proofs(["a", "b"], {"a": SLOW}))
    found = told(measured(tmp_path, given).document())
    every = [(host["name"], each) for host in given["hosts"] for each in host["measurements"]]
    assert len(found) == len(every) == 256
    for name, each in every:
        size = each["about"]["size"] if each["measurement"] == "nccl" else 0
        (key,) = [
            key
            for key in found
            if (key[0], *key[2:]) == (name, each["subject"], size)
            and key[1].startswith(each["measurement"])
            and each["metric"] in key[1]
            and ("far" in key[1]) == (each["measurement"] == "gpu_copy" and not each["about"]["local"])
        ]
        value, status, bound, limit, command = found[key]
        assert value == pytest.approx(each["value"], rel=1e-4)
        assert (status, command) == (each["status"], each["reproduce"])
        kind = each["expected"] and each["expected"]["kind"]
        assert (bound and bound[0]) == ("peers" if kind == PEERS else kind)
        assert not bound or bound[1] == pytest.approx(each["expected"]["bound"], rel=1e-3)
        assert (limit is None) == (each["limit"] is None)


def test_a_collective_is_one_kind_with_what_is_short_by_size(tmp_path):
    given = document(proofs([f"gpu{number}" for number in range(5)], {"gpu2": {"nccl all_reduce 8 GPUs": 300.0}}))
    (kind,) = [each for each in measured(tmp_path, given).document()["kinds"] if each["title"] == "nccl all_reduce"]
    assert [size for size, *_ in kind["sizes"]] == sorted(records.COLLECTIVES["all_reduce"])
    assert [short for *_, short, _ in kind["sizes"]] == [1, 1, 1, 1]
    assert all(low > 300 for _, low, *_ in kind["sizes"]), "the range is that of what is not below target"
    assert kind["counts"] == [16, 4, 0]
    assert kind["hosts"] == [5, 1]
    assert kind["bins"] is None


def test_bins_count_every_figure(tmp_path):
    given = document(proofs([f"gpu{number}" for number in range(5)], {"gpu2": SLOW}))
    kinds = [kind for kind in measured(tmp_path, given).document()["kinds"] if kind["bins"]]
    assert kinds
    for kind in kinds:
        _, _, good, short = kind["bins"]
        assert [sum(good), sum(short)] == [kind["counts"][0] + kind["counts"][2], kind["counts"][1]]


def test_files_are_merged_by_host_and_the_newest_figures_win(tmp_path):
    old, new, other = (document(proofs([name]), time) for name, time in (("a", 100), ("a", 200), ("b", 150)))
    for each in old["hosts"][0]["measurements"]:
        each["value"] = 1.0
    new["hosts"][0]["measurements"] = [
        each for each in new["hosts"][0]["measurements"] if each["measurement"] == "gemm"
    ]
    old["hosts"][0]["notes"] = ["of then"]
    for order in ([old, new, other], [new, other, old]):
        data = measured(tmp_path, *order).document()
        values = {key[:2]: value for key, (value, *_) in told(data).items()}
        assert values["a", "gemm bf16"] > 1
        assert values["a", "memory local"] == 1, "what the newer file does not have"
        assert values["b", "memory local"] > 1
        assert data["times"] == [100, 200]
        assert sorted(host[0] for host in data["hosts"]) == ["a", "b"]


def test_an_older_file_yields_to_a_newer_complete_one(tmp_path):
    old, new = document(proofs(["a"]), 100), document(proofs(["a"]), 200)
    old["hosts"][0]["notes"] = ["of then"]
    old["hosts"][0]["findings"] = [{"status": "short", "title": "wrong path", "subjects": ["GPU0"], "next": ""}]
    (host,) = measured(tmp_path, old, new).document()["hosts"]
    assert host[-2:] == [[], []]


def test_of_too_many_figures_the_short_and_the_worst_are_kept(tmp_path, monkeypatch):
    given = document(proofs([f"gpu{number}" for number in range(5)], {"gpu2": SLOW}))
    whole = told(measured(tmp_path, given).document())
    monkeypatch.setattr(measured_page, "MAX_SINGLE", 100)
    thinned = measured(tmp_path, given).document()
    kept = told(thinned)
    assert len(kept) < len(whole) == thinned["every"]
    assert kept.items() <= whole.items()
    assert {key for key, each in whole.items() if each[1] == "short"} <= kept.keys()
    for host, kind in {key[:2] for key in whole}:
        both = [[each[0] for key, each in some.items() if key[:2] == (host, kind)] for some in (whole, kept)]
        assert (max if "latency" in kind else min)(both[0]) in both[1]
    assert [each["counts"] for each in thinned["kinds"]] == [
        each["counts"] for each in measured(tmp_path, given).document()["kinds"]
    ]


@pytest.mark.slow
def test_the_page_of_ten_thousand_hosts_stays_small(tmp_path):
    data = fleet(tmp_path, 10_000, {"gpu00003": SLOW}, figures=64).document()
    assert data["every"] > 630_000
    assert len(html_page.embedded(data).encode()) < 8 << 20


def test_pieces_that_are_none_are_passed_over(tmp_path):
    given = document(proofs(["a"]))
    whole = given["hosts"][0]["measurements"]
    sound = dict(whole[0])
    wrong = [
        *({**sound, "subject": "node7", "value": value} for value in ("1", None, -1, 1e300, True, [1])),
        *({**sound, "subject": "node7", key: 3} for key in ("measurement", "subject", "status", "better")),
        {**sound, "subject": "node7", "status": "passed"},
        *(3, None, [], {}, {"measurement": {}, "status": []}),
    ]
    strange = [
        {**sound, "subject": f"node{place}", key: value}
        for place, (key, value) in enumerate(
            [("about", 3), ("expected", 3), ("limit", "x"), ("reproduce", []), ("runs", 3), ("again", {"a": 1})], 10
        )
    ]
    given["hosts"][0]["measurements"] = [*whole, *wrong, *strange]
    given["hosts"] += [3, None, {}, {"name": 3, "measurements": 3, "machine": [], "findings": [3, {}], "notes": [1]}]
    data = measured(tmp_path, given).document()
    assert data["every"] == len(whole) + len(strange)
    assert not any("node7" in key for key in told(data))
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "3",
        '{"schema": "nodetune.audit/1", "hosts": []}',
        '{"schema": "nodetune.verify/1", "hosts": 3}',
        '{"measurement": "x", "status": "pass"}',
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("\x00", id="binary"),
    ],
)
def test_a_file_that_is_no_verify_result_is_refused_by_name(content, tmp_path):
    with pytest.raises(DocumentError, match=r"verify\.json: not .*save one with nodetune verify --format json"):
        measured_page.read([saved(tmp_path, content)])


def test_a_missing_or_too_large_file_is_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        measured_page.read([tmp_path / "none.json"])
    (tmp_path / "vast.json").touch()
    with (tmp_path / "vast.json").open("r+b") as vast:
        vast.truncate(measured_reader.LARGEST + 1)
    with pytest.raises(DocumentError, match=r"vast\.json: larger than 1 GiB"):
        measured_page.read([tmp_path / "vast.json"])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            "nodetune verify -i prod -l gpu1 --only gemm --gpu 2",
            "nodetune verify -i prod -l {host} --only gemm --gpu 2",
        ),
        ("nodetune verify --site 'a file.yml'", "nodetune verify --site 'a file.yml'"),
        ("rm -rf /", ""),
        ("nodetune verify; rm -rf /", ""),
        ("nodetune verify $(rm -rf /)", ""),
        ("nodetune verify 'x", ""),
        ("nodetune verify\nrm x", ""),
        ("", ""),
    ],
)
def test_only_commands_of_nodetunes_own_are_proposed(given, kept):
    assert measured_reader.command(given, "gpu1") == kept


def test_a_page_with_measurements_serves_as_an_earlier_audit(tmp_path):
    from nodetune.report.html import previous

    (tmp_path / "page.html").write_text(written(audited("a"), measured=measured(tmp_path, document(proofs(["a"])))))
    assert previous.read(tmp_path / "page.html").hosts == {"a": (frozenset({"swap-on"}), frozenset())}


def test_measurements_come_into_the_page_from_the_command_line(tmp_path):
    host = json.loads((MACHINES[0]).read_text())["host"]
    files = [saved(tmp_path, document(proofs([name])), f"{name}.json") for name in (host, "other")]
    page = tmp_path / "page.html"
    done = nodetune(
        "--format",
        "html",
        "-o",
        page,
        "--fail-on",
        "never",
        *(word for file in files for word in ("--measurements", file)),
    )
    assert (done.returncode, "written to" in done.stderr) == (0, True)
    assert [each[0] for each in data_of(page.read_text())["measured"]["hosts"]] == [host, "other"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "text", "--measurements", __file__], "--measurements needs --format html"),
        (["--format", "html", "--measurements", __file__], "test_html_measured.py: not JSON"),
        (["--format", "html", "--measurements", str(MACHINES[0])], ".json: not a nodetune.verify/1 document"),
        (["--format", "html", "--measurements", "/nowhere/x.json"], "/nowhere/x.json: No such file"),
    ],
)
def test_bad_measurements_are_a_usage_error_in_one_line(options, message):
    done = nodetune(*options)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(driver, tmp_path):
    return Page(driver, tmp_path)


@pytest.fixture(scope="module")
def sixty_four(tmp_path_factory):
    """A fleet with a slow GPU link, a slow collective, a failure, a wrong path, a host that refused, one not audited."""
    names = [f"gpu{number:03}" for number in range(64)]
    planted = {"gpu017": SLOW, "gpu033": {"nccl all_reduce 8 GPUs": 301.0}}
    skipped = Unmeasured("", "rdma", SKIP, "perftest is not installed: apt install perftest")
    given = document(proofs(names, planted, (skipped,)))
    failed = vars(Unmeasured("", "gemm", FAILED, "CUDA error 719", "bf16", "GPU3"))
    given["hosts"][5]["measurements"].append({key: failed[key] for key in failed if key != "host"})
    wrong = VerifyFinding(
        "collective-over-wrong-path",
        "",
        "short",
        "NCCL goes through host memory",
        ("8 GPUs",),
        "nodetune audit -s nccl",
    )
    given["hosts"][9]["findings"].append(verify._finding(wrong))
    given["hosts"].append({**given["hosts"][0], "name": "stranger"})
    refused = HostVerification("gpu064", "refused", "gpu064: port 22: connection refused")
    given["hosts"] += document([refused])["hosts"]
    return names, measured(tmp_path_factory.mktemp("verify"), given)


def flat(words):
    return " ".join(words.split())


@pytest.mark.slow
class TestInABrowser:
    pytestmark = in_browser

    def open(self, page, fleet, fragment="#/measurements", **more):
        names, kept = fleet
        return page.open(audited(*names), measured=kept, fragment=fragment, **more)

    def test_the_overview_names_who_is_below_target_in_one_line(self, page, sixty_four):
        self.open(page, sixty_four, "#/")
        assert flat(page.text(".measuredline")) == (
            "▼ below target Measured: 61 of 65 hosts as expected; gpu[009,017,033] are below target in 8 figures and "
            "by 1 finding; "
            "something failed on 1 host; 1 not measured."
        )
        page.run("document.querySelector('.measuredline a').click()")
        page.until("return document.querySelector('h1').innerText === 'Measurements'")
        assert page.texts("nav a[aria-current]") == ["Measurements"]

    def test_without_measurements_the_page_says_nothing_of_them(self, page):
        page.open(audited("a", "b"), fragment="#/measurements")
        assert page.text("h1") == "Not in this audit"
        assert page.texts("nav a") == ["Overview", "Findings", "Hosts"]
        assert not page.run("return document.querySelector('.measuredline')")

    def test_plots_come_worst_first_each_with_text_and_table(self, page, sixty_four):
        self.open(page, sixty_four)
        counts = page.run(
            "return [...document.querySelectorAll('.kind')].map((kind) => "
            "[kind.querySelector('h3').firstChild.textContent,"
            " kind.querySelector('.counts').innerText.replace(/\\s+/g, ' ').trim()])"
        )
        assert len(counts) == 13
        assert counts[0] == ["nccl all_reduce", "▼ below target 4 on 1 host ● as expected 256"]
        assert [("below target" in each, "failed" in each) for _, each in counts] == (
            [(True, False)] * 5 + [(False, True)] + [(False, False)] * 7
        )
        pictures = page.run(
            "return [...document.querySelectorAll('.kind')].map((kind) => "
            "[kind.querySelectorAll('svg[role=img]').length,"
            " kind.querySelector('svg').getAttribute('aria-label'), kind.querySelectorAll('details.figures').length])"
        )
        assert all((pictures, tables) == (1, 1) for pictures, _, tables in pictures)
        near = next(words for _, words, _ in pictures if words.startswith("gpu_copy h2d: "))
        assert "520 figures on 65 hosts, median 54" in near
        assert ", expected at least 50.4 (shipped), expected at least 51" in near
        assert near.endswith("1 below target, the worst gpu017 GPU2 with 26.4 GB/s.")

    def test_peers_are_called_peers(self, page, sixty_four):
        self.open(page, sixty_four, "#/measurements?of=gpu_copy")
        shown = page.text()
        assert (" peers\n" in shown, "sibling" in shown) == (True, False), shown

    def test_the_name_of_a_host_is_in_one_line_on_a_phone(self, page, sixty_four):
        self.open(page, sixty_four, width=390)
        code = "const link = document.querySelector('main tbody td a'); return [link.innerText, link.getClientRects().length]"
        assert page.run(code) == ["gpu017", 1]

    def test_a_short_figure_is_a_triangle_below_the_line(self, page, sixty_four):
        self.open(page, sixty_four, "#/measurements?of=gpu_copy")
        page.until(
            "const svg = document.querySelector('.kind svg'); return svg.viewBox.baseVal.width === "
            "svg.parentElement.clientWidth"
        )
        short, floor, left, ticks = page.run(
            "const kind = document.querySelector('.kind'), box = (what) => "
            "kind.querySelector(what).getBoundingClientRect();"
            "return [[box('path.short').x + box('path.short').width / 2, box('path.short').y], box('.floor').y, "
            "box('svg').x,"
            " [...kind.querySelectorAll('.axis text')].map((each) => [parseFloat(each.textContent), "
            "Number(each.getAttribute('x'))])]"
        )
        (low, at_low), (high, at_high) = ticks[0], ticks[-1]
        value = low + (short[0] - left - at_low) / (at_high - at_low) * (high - low)
        assert value == pytest.approx(26.4, abs=0.5)
        assert short[1] > floor

    def test_a_curve_has_lines_below_target_and_a_range_of_others(self, page, sixty_four):
        self.open(page, sixty_four, "#/measurements?of=nccl")
        shapes = "return ['.band', '.median', '.line.fell', '.short'].map((each) => document.querySelector('.kind svg').querySelectorAll(each).length)"
        assert page.run(shapes) == [1, 1, 1, 4]
        assert page.texts(".kind:first-of-type .worst a") == ["gpu033"]
        assert "128 MiB" in page.run("return document.querySelector('.kind .axis:nth-of-type(2)').textContent")

    def test_few_real_nodes_are_drawn_with_a_line_each(self, page, tmp_path):
        page.open(audited(*REAL), measured=measured(tmp_path, document(recorded())), fragment="#/measurements?of=nccl")
        kinds = page.run(
            "return [...document.querySelectorAll('.kind')].map((kind) => "
            "[kind.querySelector('h3').firstChild.textContent,"
            " kind.querySelectorAll('svg .line').length, kind.querySelectorAll('svg .median').length,"
            " kind.querySelectorAll('svg .short').length, kind.querySelectorAll('svg .bound path').length])"
        )
        assert kinds[0] == ["nccl all_reduce", 2, 0, 1, 2]  # a bound for each number of GPUs
        assert page.driver.get_log("browser") == []

    def test_few_figures_are_dots_that_each_say_what_they_are(self, page, tmp_path):
        page.open(
            audited("a"), measured=measured(tmp_path, document(proofs(["a"], {"a": SLOW}))), fragment="#/measurements"
        )
        dots = (
            "return [...document.querySelector('.kind').querySelectorAll(arguments[0])].map((each) => each.textContent)"
        )
        assert len(page.run(dots, "circle.good")) == 7
        assert page.run(dots, "path.short") == ["a GPU2: 26.4 GB/s"]
        assert page.run("return document.querySelectorAll('circle.unheld').length") == 4, "two NUMA nodes: no verdict"

    def test_a_table_says_the_same_and_the_keyboard_opens_it(self, page, sixty_four):
        self.open(page, sixty_four, "#/measurements?of=gpu_copy")
        page.run("document.querySelector('details.figures summary').focus()")
        page.keys("\ue007")
        page.until("return document.querySelector('details.figures table')")
        rows = page.run(
            "return [...document.querySelectorAll('details.figures tbody tr')].map((row) => "
            "[...row.cells].map((each) => each.innerText))"
        )
        assert sum(int(good) for _, _, good, _ in rows) == 519
        assert sum(int(short) for *_, short in rows) == 1

    def test_filters_narrow_the_kinds(self, page, sixty_four):
        self.open(page, sixty_four, "#/measurements?verdict=short&of=gpu_copy")
        assert flat(page.text(".count")) == "4 kinds of figures"
        self.open(page, sixty_four, "#/measurements?verdict=failed")
        assert page.run(
            "return [...document.querySelectorAll('.kind h3')].map((each) => each.firstChild.textContent)"
        ) == ["gemm bf16"]

    def test_unmeasured_figures_have_a_reason_and_folded_hosts(self, page, sixty_four):
        self.open(page, sixty_four)
        rows = page.run(
            "return [...document.querySelectorAll('table[aria-label=\"Could not be measured\"] tbody tr')].map((row) "
            "=> row.innerText)"
        )
        assert [flat(each) for each in rows] == [
            "refused the host port 22: connection refused gpu064",
            "failed gemm bf16 GPU3 CUDA error 719 gpu005",
            "skipped rdma perftest is not installed: apt install perftest 64 hosts gpu[000-063] and stranger",
        ]
        assert "Measured, but not in this audit: stranger." in page.text()
        assert "NCCL goes through host memory" in page.text()

    def test_a_hosts_page_has_its_figures_with_the_command_for_each(self, page, sixty_four):
        self.open(page, sixty_four, "#/host/gpu017")
        article = flat(page.text("article"))
        assert article.startswith(
            "▼ below target gpu_copy GPU2 Measured gpu_copy h2d GPU2: 26.4 GB/s, expected at least"
        )
        assert "Suspect GPU2's PCIe link" in article
        assert article.endswith("nodetune verify -i prod -l gpu017 --only gpu_copy --gpu 2 Copy")
        page.run(
            "[...document.querySelectorAll('.more > button')].forEach((each) => { while (!each.hidden) each.click(); })"
        )
        rows = page.run(
            "return [...document.querySelector('table[aria-label=Figures]').tBodies[0].rows].map((row) => "
            "[...row.cells].map((each) => each.innerText))"
        )
        assert len(rows) == 128
        assert [flat(each) for each in rows[0]][1:6] == ["gpu_copy h2d", "GPU2", "26.4 GB/s", rows[0][4], "42 %"]
        assert all(row[6].startswith("nodetune verify -i prod -l gpu017 --only ") for row in rows)

    def test_search_finds_what_is_below_target(self, page, sixty_four):
        self.open(page, sixty_four, "#/search/pcie%20gpu2")
        assert flat(page.text(".count")) == "0 findings and 0 hosts, 4 measurements below target with “pcie gpu2”"
        assert set(page.texts("main tbody a")) == {"gpu017"}

    @pytest.mark.parametrize("fragment", ["#/", "#/measurements", "#/host/gpu017", "#/search/gpu017"])
    def test_a_telephone_shows_all_without_scrolling_sideways(self, page, sixty_four, fragment):
        self.open(page, sixty_four, fragment, width=375)
        assert page.run("return [innerWidth, document.documentElement.scrollWidth]") == [375, 375]

    def test_a_plot_fills_the_width_and_keeps_its_text_size(self, page, sixty_four):
        self.open(page, sixty_four)
        width = "const svg = document.querySelector('.kind svg'); return [svg.viewBox.baseVal.width, svg.parentElement.clientWidth]"
        wide = page.run(width)
        device = {"width": 500, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
        page.until(
            f"const [drawn, room] = (() => {{ {width} }})(); return drawn === room && drawn < arguments[0]", wide[0]
        )

    def test_nothing_that_a_result_says_runs_or_becomes_an_element(self, page, tmp_path):
        given = document(proofs(["a"], {"a": SLOW}))
        (host,) = given["hosts"]
        for text in HOSTILE:
            one = json.loads(json.dumps(host))
            one |= {"name": text, "message": text, "state": text, "notes": [text]}
            one["findings"] = [{"status": "short", "title": text, "subjects": [text], "next": text}]
            one["machine"] |= {"model": text, "fabric": text}
            for each in one["measurements"][::9]:
                texts = ("measurement", "metric", "subject", "unit", "reason", "suspect", "reproduce")
                each.update(dict.fromkeys(texts, text), status="short", about={"dtype": text, "nccl": text})
                each.update(
                    limit={"value": 1e3, "what": text}, expected={"kind": text, "bound": 1.0, "provenance": text}
                )
            one["measurements"].append(
                {"measurement": text, "metric": text, "subject": text, "status": "failed", "reason": text}
            )
            given["hosts"].append(one)
        kept = measured(tmp_path, given)
        pages = ["#/", "#/measurements", "#/search/a", "#/measurements?of=%3Cb%3E&verdict=constructor"]
        hosts = page.open(hostile(), measured=kept).run(
            "return hosts.map((host) => '#/host/' + encodeURIComponent(host.key))"
        )
        for fragment in [*pages, *hosts[: len(HOSTILE)]]:
            page.open(hostile(), measured=kept, fragment=fragment)
            page.run("for (const each of document.querySelectorAll('details')) each.open = true")
            page.run("for (const each of document.querySelectorAll('.more > button')) each.click()")
            assert "taken" not in page.run("return document.title").replace("document.title='taken'", "")
            assert (
                page.run("return document.querySelectorAll('main img, main script, main svg a, main svg image').length")
                == 0
            )
            assert not page.run("return [...document.links].some((a) => !/^(file|https):/.test(a.href))")
            assert page.driver.get_log("browser") == []
        assert [each for each in page.requests() if not each.startswith(("file:///", "data:"))] == []

    def test_two_thousand_hosts_are_drawn_and_searched(self, page, tmp_path):
        names = [f"gpu{number:05}" for number in range(2000)]
        self.open(page, (names, fleet(tmp_path, 2000, {"gpu00003": SLOW}, figures=64)), "#/")
        assert "1,999 of 2,000 hosts as expected; gpu00003 is below target in 4 figures" in flat(
            page.text(".measuredline")
        )
        page.run("location.hash = '#/measurements'")
        page.until("return document.querySelectorAll('.kind svg').length === 13")
        assert page.run("return document.querySelectorAll('svg *').length") < 6000, "bars, not a dot for each of them"
        assert (
            page.run("return document.documentElement.outerHTML.length")
            < page.run("return document.getElementById('data').textContent.length") + 400_000
        )
        page.run("location.hash = '#/host/gpu01999'")
        page.until("return document.querySelectorAll('table[aria-label=Figures] tbody tr').length === 40")
        assert page.driver.get_log("browser") == []

    def test_printing_keeps_plots_and_drops_huge_tables(self, page, sixty_four):
        self.open(page, sixty_four)
        page.run("window.dispatchEvent(new Event('beforeprint'))")
        assert page.run("return document.querySelectorAll('details.figures[open]').length") == 0
        paper = base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
        assert paper.startswith(b"%PDF")
