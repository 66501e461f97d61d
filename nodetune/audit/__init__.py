"""Facts to findings: select checks, judge hosts, and compare hosts."""
