"""Snapshots of the metadata: their names, their bytes and the bootstrap checkpoint (KIP-630)."""
