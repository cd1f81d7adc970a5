"""Scenario files: readable scripts that drive a few real replicas through a story, with recorded output."""
