"""What a run shows: on the terminal, as pages and as pictures."""
