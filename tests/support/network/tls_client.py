"""A TLS client that sends KeyUpdate messages, through OpenSSL's own functions."""

import ctypes
import ssl
from collections.abc import Mapping

from kquorum.network.security.tls import client_context
from tests.support.network.secured_peers import HOST

# Where CPython's object has its pointer to OpenSSL's: behind its header and the weak reference to the socket.
_SSL_AT = 24


class Client:
    """Can send KeyUpdate messages."""

    def __init__(self, keys: Mapping[str, str], incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self.tls = client_context(keys).wrap_bio(incoming, outgoing, server_hostname=HOST)
        self.outgoing = outgoing

    def update_keys(self, times: int) -> None:
        openssl = ctypes.CDLL(__import__("_ssl").__file__)
        openssl.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
        openssl.SSL_do_handshake.argtypes = [ctypes.c_void_p]
        at = id(self.tls._sslobj) + _SSL_AT  # type: ignore[attr-defined]
        pointer = ctypes.c_void_p.from_address(at)
        for _ in range(times):
            assert openssl.SSL_key_update(pointer, 0) == 1
            assert openssl.SSL_do_handshake(pointer) == 1
