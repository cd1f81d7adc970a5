"""A broker: registers, follows the metadata log, keeps the partitions that it has replicas of, and answers clients.

Read `lifecycle.py` first (registration, heartbeats, shutdown), then `apis/registry.py` (which API is answered how).
"""
