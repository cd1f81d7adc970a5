"""A channel to a node's gRPC listener, with TLS where it has such."""

import grpc

from cli.command_security import grpc_credentials_for
from node.config.addresses import HostPort


def open_channel(address: HostPort, options: tuple[tuple[str, int], ...]) -> grpc.aio.Channel:
    """For use with `async with`. Raises ConfigError for a command config that cannot be used."""
    credentials = grpc_credentials_for(address)
    if credentials is None:
        return grpc.aio.insecure_channel(str(address), options=options)
    return grpc.aio.secure_channel(str(address), credentials, options=options)
