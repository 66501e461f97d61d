"""Results for the tests of reports: findings as checks make them, and hosts that are not what they should be."""

from nodetune import checks
from nodetune.api.model import Finding, Fix, HostResult
from nodetune.audit import auditor
from nodetune.audit.selection import Selection
from nodetune.facts import document

CHECKS = {check.id: check for check in checks.load_all()}

HOSTILE = (
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "]]></failure><testcase name='x'/>",
    '"}\nnodetune_audit_reached{host="forged"} 1\n#',
    "`code` **bold** [link](https://evil.example) | cell | <b>x</b> @everyone &lt;",
    "\x1b[2J\x07\u202egnp.exe\ud800\x00\ufffe",
    "\\",
    "``",
    "{{data}}",
    "javascript:alert(1)//",
    "a" * 5000,
)


def finding(check="swap-on", severity="high", status="fail", **more):
    fields = {"title": "Swap is on", "observed": "8 GiB", "wanted": "none", **more}
    return Finding(check, status, severity, **fields)


def fixable(check="dirty-limit-high", severity="low", **more):
    return finding(
        check, severity, fix=Fix("sysctl", "vm.dirty_bytes", 8 << 30, "none", "/etc/x", unit="bytes"), **more
    )


def result(host, *findings, state="ok", message="", profile="training"):
    return HostResult(host, state, message, None, tuple(findings), profile if state == "ok" else "", "")


def hostile():
    """Hosts whose names, values, reasons and messages are attacks on each format."""
    found = [
        result(
            text,
            finding(observed=text, wanted=text, reason=text),
            finding("edac", status="unknown", reason=text),
        )
        for text in HOSTILE
    ]
    return [*found, *(result(f"{number}{text}", state=text, message=text) for number, text in enumerate(HOSTILE))]


def judged(*paths):
    """The audits of fact files."""
    judge = auditor.Auditor(Selection())
    return [judge.result(document.load(path)) for path in paths]
