"""The metadata as immutable values: images, the deltas that advance them, and the records that recreate them.

Read `image.py` first, then `delta.py` (which record changes what) and `partitions.py` (the columns).
"""
