"""`Inspect`: the log, the image, its changes, and copies of the log. Read `service.py` first."""
