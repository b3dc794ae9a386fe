"""Code that a compiler of torch reads: `torch.compile` and TorchScript."""
