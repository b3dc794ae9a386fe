"""The project around the files: which files there are, and which torch they are written for."""
