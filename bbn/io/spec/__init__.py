"""What bbn's own format means, in YAML and JSON alike: documents, nodes, and what each type of node may hold."""
