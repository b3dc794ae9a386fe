"""torchlint: finds code that wastes time in PyTorch programs, and rewrites it."""
