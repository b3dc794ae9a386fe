"""Rules on distributed training."""
