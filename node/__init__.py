"""One node: its config, the assembly of its parts, its metrics and health, and the repair of its folder.

This is the only package that joins adapters to cores. Read `process.py` first (how a node runs), then
`cluster_node.py` (its parts, and the order in which they start and stop).
"""
