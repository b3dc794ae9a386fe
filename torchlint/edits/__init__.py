"""From edits on nodes to edits on text: where they go, whether they are safe, what they make of the file."""
