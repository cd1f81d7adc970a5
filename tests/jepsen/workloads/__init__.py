"""What the clients do, and how it is judged."""
