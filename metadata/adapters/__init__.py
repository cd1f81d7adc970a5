"""What joins the metadata to asyncio: the controller's listener, the channel to the active controller, snapshots.

Read `listener.py` first, then `controller_channel.py` and `snapshot_manager.py`. The gRPC services: metadata/grpc.
"""
