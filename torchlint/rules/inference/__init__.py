"""Rules on inference."""
