"""Real processes, real clients."""
