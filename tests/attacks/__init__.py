"""Attacks on a node, a command or its files, as an attacker would make them. Each succeeded before it was mended."""
