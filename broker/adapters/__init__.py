"""What joins the broker to asyncio: its client listener and its channel to the active controller."""
