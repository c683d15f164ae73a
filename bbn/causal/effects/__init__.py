"""Effects from data, how sure they are, whether the data agree with the graph, and counterfactuals."""
