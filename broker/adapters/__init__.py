"""What joins the broker to asyncio: its client listener and its channel to the active controller.

Read `listener.py` first, then `forwarding.py` and `lifecycle_runner.py`.
"""
