"""A segmented log on disk, and what it stands on: a port to the file system, durable files, checkpoints, recovery."""
