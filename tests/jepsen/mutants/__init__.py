"""Bugs planted into real nodes: a workload is trusted for what it has caught."""
