"""Snapshots as files."""
