"""Programs over pinned packages from PyPI: nothing that people published breaks torchlint, or is broken by it."""
