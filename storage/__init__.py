"""A segmented log on disk, and its foundations: a port to the file system, durable files, checkpoints, recovery.

Read `segmented_log.py` first, then `segment.py` and `recovery.py`.
"""
