"""Rules of the family modern."""
