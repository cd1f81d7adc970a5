"""Worlds whose voters run the real controller, and whose observers are brokers that come and go."""
