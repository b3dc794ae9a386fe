"""Programs for those who work on torchlint."""
