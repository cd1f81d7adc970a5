"""A broker without data: registers, follows the metadata log, and answers clients from its image of it.

Read `lifecycle.py` first (registration, heartbeats, shutdown), then `apis/registry.py` (which API is answered how).
"""
