"""Requests that any node answers from its own image, brokers and controllers alike. Read `table.py` first."""
