"""What a network is: variables, factors, conditionals, the network and the factor graph, their graphs and edits."""
