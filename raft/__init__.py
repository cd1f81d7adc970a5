"""The consensus core (KRaft's Raft layer), without clock, entropy, socket or file.

Read `node.py` first (inputs in, one `Ready` out), then `ready.py` (the order of the outputs) and `roles.py`.
"""
