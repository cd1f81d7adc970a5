"""The gRPC services of a node, and what they share. Read `server.py` first, then `source.py` and `feed.py`."""
