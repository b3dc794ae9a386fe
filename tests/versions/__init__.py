"""The tests with other versions of Python and of the dependencies."""
