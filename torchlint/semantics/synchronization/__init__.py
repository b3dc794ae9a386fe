"""Where the host waits for the device, and what it does with what it gets."""
