"""Judges a history."""
