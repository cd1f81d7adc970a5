"""What joins the metadata to asyncio: the controller's listener, the channel to the active controller, gRPC."""
