"""Mutants of the protocol: each takes one safeguard out of the core, and the simulation must notice."""
