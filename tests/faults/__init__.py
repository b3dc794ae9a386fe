"""Runs of the installed command that are killed."""
