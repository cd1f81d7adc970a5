"""Linearizability, one key after the other: by search for any model, and by order for what carries versions."""
