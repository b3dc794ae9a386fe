"""Rules on the training step."""
