"""What outlives the step that computed it: graphs, totals, lists, tensors that grow."""
