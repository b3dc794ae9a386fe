"""Where a file uses names that a table speaks of, under which versions, and whether it replaces them."""
