"""Replication of partitions: leader, follower, in-sync replicas, high watermark. Without clock, socket or file."""
