"""Rules on devices, transfers and synchronisation."""
