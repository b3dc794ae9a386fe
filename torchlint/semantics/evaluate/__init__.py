"""The lazy evaluator: one module per kind of expression."""
