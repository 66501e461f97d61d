"""Patterns for the text of Xids, for the probe and the checks."""

LINK_5 = r"(Nonfatal|Fatal) +XC ?\d+ +i ?(\d+)(?: +Link (-?\d+)(?: \(0x([0-9a-f]{3}))?)?"
"""NVLink 5 (Xid 144 to 150): severity, injected by a test, link, the digits with bits 20 to 25 of `intrinfo` (sub-code)."""
CAUSE = r"caused by previous Xid (\d{1,4})$"
"""An earlier Xid. The log may have lost it."""
