"""From a source to its diagnostics, for one file and for many."""
