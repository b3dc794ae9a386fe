"""Which operations a value went through: products, activations, chains of pointwise functions, sizes."""
