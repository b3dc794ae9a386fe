"""The user's own program on original and fixed copies of its project."""
