"""Notices of changed verdicts, for a receiver at a URL. An audit never fails or waits long because of the receiver."""
