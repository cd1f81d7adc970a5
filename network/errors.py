"""What goes wrong between two machines, each naming the address and, where there is one, the remedy."""

import errno


class NetworkError(Exception):
    """The base of all errors here; none of them says whether a request that was sent took effect."""


class CannotListen(NetworkError):
    """The address of a listener could not be bound."""

    def __init__(self, host: str, port: int, reason: str, remedy: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"cannot listen on {host or '*'}:{port}: {reason}; {remedy}")


class PortInUse(CannotListen):
    """Another socket listens there."""

    def __init__(self, host: str, port: int) -> None:
        remedy = "stop the process that holds it, or give this listener another port in `listeners`"
        super().__init__(host, port, "the port is already in use", remedy)


class CannotConnect(NetworkError):
    """No connection came about (definite: nothing was sent)."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"cannot connect to {host}:{port}: {reason}")


class ConnectTimedOut(CannotConnect):
    """The peer did not accept, or did not say who it is, in time."""


class AuthenticationFailed(CannotConnect):
    """TLS or SASL failed: one side does not accept the other's identity. A retry fails too until a certificate, a
    password or a setting changes."""


class ConnectionLost(NetworkError):
    """The connection ended while a request was under way (not definite: the peer may have carried it out)."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"lost the connection to {host}:{port}: {reason}")


class HungUp(ConnectionLost):
    """The peer ended the connection before it said anything, as those do that want TLS, or another certificate."""


class CertificateRefused(HungUp):
    """The peer said why: with TLS 1.3 it does so when this side's handshake is done. Trying again is in vain."""


class RequestTimedOut(NetworkError):
    """No response within the time given (not definite: the peer may have carried the request out)."""

    def __init__(self, host: str, port: int, request: str, timeout_ms: int) -> None:
        self.host = host
        self.port = port
        self.request = request
        self.timeout_ms = timeout_ms
        super().__init__(f"{host}:{port} did not answer {request} within {timeout_ms} ms")


class NoCommonVersion(NetworkError):
    """The peer offers the API not at all, or not in a version known here (definite: nothing was sent)."""

    def __init__(
        self, host: str, port: int, api: str, ours: tuple[int, int], theirs: tuple[int, int] | None
    ) -> None:
        self.host = host
        self.port = port
        offered = "does not offer it" if theirs is None else f"offers versions {theirs[0]} to {theirs[1]}"
        super().__init__(
            f"{api} cannot be sent to {host}:{port}: known are {ours[0]} to {ours[1]}, the peer {offered}"
        )


class UnsupportedField(NoCommonVersion):
    """The highest version that both sides know lacks a field which is set, and without it the request would mean
    something else (definite: nothing was sent)."""

    def __init__(self, host: str, port: int, api: str, reason: str) -> None:
        self.host = host
        self.port = port
        NetworkError.__init__(self, f"{api} cannot be sent to {host}:{port}: {reason}")


def listen_error(host: str, port: int, error: OSError) -> CannotListen:
    """The environment's refusal in our words."""
    if error.errno == errno.EADDRINUSE:
        return PortInUse(host, port)
    if error.errno == errno.EACCES:
        return CannotListen(host, port, "the system does not permit it", "ports below 1024 need a privilege")
    remedy = "check the host of this listener in `listeners`: it must be an address of this machine"
    return CannotListen(host, port, error.strerror or str(error), remedy)
