"""Worlds of brokers that replicate partitions: real replica managers, logs in memory, and a model of the
controller."""
