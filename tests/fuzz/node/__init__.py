"""Hostile inputs at all listeners of a real node, whose event loop's turns are measured."""
