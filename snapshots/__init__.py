"""Snapshots of the metadata: their names, their bytes and the bootstrap checkpoint (KIP-630).

Read `writer.py` and `reader.py` first, then `retention.py` (which snapshots stay).
"""
