"""Attacks on a node, on a command or on its files, each as its author would make it; each failed to be held off once."""
