"""What knows nothing of networks: errors, memory budgets, frozen values, progress, threads, atomic files, display."""
