"""Leaders, ISRs, reassignments and directories of partitions that exist, one by one and by columns.

Read `partition_change.py` first (the rules of one partition), then `broker_movement.py` (many at once).
"""
