"""Consumer groups: who is in a group, which offsets it committed. A state machine for each partition of
`__consumer_offsets`.

Without clock, socket or file. Read `coordinator.py` first (which partition is loaded here), then `shard.py` (one
partition), `classic_group.py` (the rules of a group's members).
"""
