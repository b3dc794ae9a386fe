"""The language server: texts as they stand in editors, checked and fixed as files are."""
