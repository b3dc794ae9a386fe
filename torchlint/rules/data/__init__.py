"""Rules on loading data."""
