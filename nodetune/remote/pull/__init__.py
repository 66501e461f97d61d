"""Pull mode: nodes collect their own facts by a timer and leave them in a folder, where an audit reads them."""
