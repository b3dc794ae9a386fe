"""What lets other tools run torchlint."""
