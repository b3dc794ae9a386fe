"""Graphs: what gradients are computed from, and which parameters want none."""
