"""What is known of torch and its neighbours, as data."""
