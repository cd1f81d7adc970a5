"""Garbage thrown at a live listener of a broker."""
