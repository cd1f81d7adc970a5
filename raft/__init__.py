"""The consensus core (KRaft's Raft layer), without clock, entropy, socket or file."""
