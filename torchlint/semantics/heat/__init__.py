"""What runs on every step, and what keeps code from it."""
