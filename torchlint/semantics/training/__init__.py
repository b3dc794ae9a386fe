"""What a program does to train: the order of its steps, gradients, optimizers, precision."""
