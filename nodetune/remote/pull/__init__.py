"""Pull mode: a timer on each node collects its facts into a folder, from which an audit reads them."""
