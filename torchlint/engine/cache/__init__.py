"""What is kept from one run to the next: the results of files that did not change, and the words of the rules."""
