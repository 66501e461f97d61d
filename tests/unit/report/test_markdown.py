"""The Markdown report says what is wrong, and nothing in it is markup but what nodetune meant."""

import io
from pathlib import Path

from markdown_it import MarkdownIt

from nodetune.report import markdown, sections
from nodetune.report.sections import CommandOptions
from tests.support.reporting import CHECKS, HOSTILE, finding, fixable, hostile, judged, result

MACHINES = sorted((Path(__file__).parents[2] / "data" / "synthetic").glob("*.json"))
ADDRESSES = {word for check in CHECKS.values() for word in check.doc.split() if word.startswith("https://")}


def written(results):
    stream = io.StringIO()
    markdown.write(results, stream, CHECKS, CommandOptions("-i prod"))
    return stream.getvalue()


def parsed(text):
    """All tokens, those of a line too."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    return [each for token in tokens for each in (token, *(token.children or ()))]


def test_the_worst_finding_is_first_with_reason_and_next_step():
    text = written([result("a", fixable(), finding("nvlink-down", "critical", manual="Reset the GPUs."))])
    assert text.index("critical: `nvlink-down`") < text.index("low: `dirty-limit-high`")
    assert "**Why it matters.**" in text
    assert "**Manually.** Reset the GPUs." in text
    assert "**To do.** `nodetune explain -i prod --section by-hand`" in text
    assert "**Fix.** `vm.dirty_bytes` (disruption: none)" in text
    assert "**To do.** `nodetune apply -i prod`" in text


def test_a_thousand_hosts_make_one_line_a_finding():
    text = written([result(f"gpu{number:04}", finding(observed=f"{number % 40} MiB")) for number in range(1000)])
    assert "1000: `gpu[0000-0999]`" in text
    assert "34 other values" in text
    assert len(text) < 10_000


def test_each_section_is_a_table_with_a_row_for_each_cause():
    results = judged(*MACHINES)
    tables = [each.lines for each in sections.build(results, every=True).sections]
    rows = sum(map(len, tables))
    assert {line.check for lines in tables for line in lines} == {f.check for each in results for f in each.causes()}
    tokens = parsed(written(results))
    assert sum(token.type == "tr_open" for token in tokens) == rows + len(tables)
    assert sum(token.type == "td_open" for token in tokens) == 4 * rows


def test_every_text_of_a_host_is_code_and_nothing_else():
    tokens = parsed(written(hostile()))
    allowed = {"text", "code_inline", "inline", "softbreak", "hr"}
    made = ("heading", "paragraph", "bullet_list", "list_item", "table", "thead", "tbody", "tr", "th", "td", "strong")
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}
    assert kinds <= allowed | set(made)
    plain = "".join(token.content for token in tokens if token.type == "text")
    assert not any(part in plain for part in ("script", "onerror", "evil.example", "@everyone", "forged"))
    spans = {token.content for token in tokens if token.type == "code_inline"}
    assert any("</script><script>document.title='taken'</script>" in each for each in spans), "shown as it is"
    assert any(" | cell | " in each for each in spans)


def test_a_code_span_holds_whatever_is_put_in_it():
    for text in [*HOSTILE, "`", "``a`", "a`", "|", "\\|", " "]:
        row = f"| {markdown.cell(markdown.code(text))} | b |\n"
        tokens = parsed(f"| x | y |\n| --- | --- |\n{row}")
        cells = [token for token in tokens if token.type == "td_open"]
        assert len(cells) == 2
        (span,) = [token.content for token in tokens if token.type == "code_inline"]
        assert len(span) <= markdown.MAX_LENGTH
        if text.isprintable() and len(text) <= markdown.MAX_LENGTH:
            assert span.split() == text.split()


def test_our_own_words_are_never_markup():
    assert len(CHECKS) > 100
    for check in CHECKS.values():
        words = " ".join(check.doc.split())
        tokens = parsed(f"Why. {markdown.prose(words)}")
        assert "".join(token.content for token in tokens if token.type == "text") == f"Why. {words}"


def test_lost_hosts_waivers_and_unknowns_are_told():
    results = [
        result(
            "a",
            finding(status="waived", reason="until 2030-01-01: ops"),
            finding("edac", status="unknown", reason="no root"),
        ),
        result("b", state="refused", message="b: port 22"),
        result("c", state="refused", message="c: port 22"),
    ]
    text = written(results)
    assert "1 host audited, **2 not reached**: no findings" in text
    assert "## Waived\n\n- `swap-on` on `a`: `until 2030-01-01: ops`" in text
    assert "## Unknown\n\n- `edac` on `a`: `no root`" in text
    assert "## Not reached\n\n- `b,c`: `refused`, `port 22`" in text or "- `[b-c]`: `refused`, `port 22`" in text
