"""Programs that measure how long torchlint takes, beside other linters."""
