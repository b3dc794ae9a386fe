"""Where models are run without training, and in which mode."""
