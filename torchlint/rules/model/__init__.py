"""Rules on the definition of models."""
