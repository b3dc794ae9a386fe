"""Methods that put something into the containers of Python, or take something out of them."""

APPENDS = ("append", "appendleft")
"""Methods of lists and deques that add one item at an end."""

EXTENDS = ("extend", "extendleft")
ADDS_TO_LIST = (*APPENDS, *EXTENDS, "insert")
PUTS_INTO = (*ADDS_TO_LIST, "add", "setdefault")
"""Methods of lists, deques, sets and dictionaries that keep what they are given, with its graph."""

STORES = (*PUTS_INTO, "update", "put", "push")
"""Those, and methods of what may keep values only: dictionaries, but also metrics, queues and replay memories."""

TAKES_ONE_OUT = ("pop", "popleft", "popitem")
TAKES_OUT = (*TAKES_ONE_OUT, "remove", "discard", "clear")
CHANGES_KEYS = ("update", "setdefault", "pop", "popitem", "clear")
"""Methods of dictionaries that change what is under their keys."""
