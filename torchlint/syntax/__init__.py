"""libcst in one place: parsing, the one walk, helpers on calls and arguments."""
