"""One node: its config, the parts that it is joined of, what it shows of itself, and the repair of its folder.

This is the only package that joins adapters to cores.
"""
