"""Search with bounds: proved answers where no tree holds the question."""
