"""What happens to variables on the way: writes in place, other names for the same memory, what loops leave as it is."""
