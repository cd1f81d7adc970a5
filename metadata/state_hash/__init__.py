"""The hash of a state, and its comparison between nodes. Read `image_hash.py` first, then `comparison.py`."""
