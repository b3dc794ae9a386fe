"""What feeds what inside modules: sequences of layers, and the flow of tensors through them in ``forward``."""
