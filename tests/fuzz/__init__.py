"""Programs that nobody wrote: fixtures and published files, changed at random."""
