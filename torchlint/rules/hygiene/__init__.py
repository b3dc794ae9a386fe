"""Rules on what can be repeated and trusted, for teams that want to be told."""
