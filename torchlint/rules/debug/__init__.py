"""Rules on debugging aids, determinism and global switches."""
