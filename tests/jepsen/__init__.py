"""Real processes, real faults, and a judgement of what the clients saw; shaped as Jepsen is."""
