"""Pull mode: nodes collect their own facts by a timer and leave them in a folder, where an audit reads them."""

from nodetune.pull.files import Rules, missing, whose

__all__ = ["Rules", "missing", "whose"]
