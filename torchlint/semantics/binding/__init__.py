"""Who gives a name its meaning, and which of its bindings can reach a use."""
