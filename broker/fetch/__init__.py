"""Serving readers: fetch sessions, reading several partitions for one request, and requests that wait for data."""
