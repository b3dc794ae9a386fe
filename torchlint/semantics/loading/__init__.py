"""Datasets, and the loaders that make batches of them."""
