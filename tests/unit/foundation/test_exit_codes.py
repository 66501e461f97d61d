"""Exit codes: scripts of other people depend on their numbers."""

import re
from pathlib import Path

from nodetune.foundation import exit_codes

PAGE = Path(__file__).parents[3] / "docs" / "exit-codes.md"


def test_each_code_keeps_its_number_and_is_documented():
    codes = {name: code for name, code in vars(exit_codes).items() if name.isupper()}
    assert codes == {
        "OK": 0,
        "FINDINGS": 1,
        "USAGE": 2,
        "INCOMPLETE": 3,
        "END_STATE_MISSED": 4,
        "TOO_SLOW": 5,
        "INTERRUPTED": 130,
        "READER_GONE": 141,
    }
    documented = re.findall(r"^\| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [*map(int, documented)] == [code for code in codes.values() if code != exit_codes.READER_GONE]
