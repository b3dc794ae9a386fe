"""How tensors come to be and on which device: factories, arrays, casts, moves."""
