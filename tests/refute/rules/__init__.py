"""One module per rule with safe fixes, named as the rule; each holds ``search``, a `tests.refute.search.Search`."""
