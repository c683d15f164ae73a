"""What moved an answer, what would move it, and what to ask next."""
