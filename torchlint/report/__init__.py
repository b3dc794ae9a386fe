"""Results to text: one module per output format, each a function over plain data."""
