"""Scenario files: readable scripts that drive a few real replicas through a scenario, with recorded output."""
