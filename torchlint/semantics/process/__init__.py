"""What holds for a whole program: switches, environment variables, versions of torch."""
