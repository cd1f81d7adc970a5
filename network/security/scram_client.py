"""The client's side of one SCRAM exchange."""

import hmac
import secrets
from collections.abc import Callable

from kquorum.network.security.names import SCRAM_HASHES as HASHES
from kquorum.network.security.scram import (
    GS2_HEADER,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramError,
    client_final_without_proof,
    encode_name,
    keys_of_salted,
    parse_server_first,
    salted_password,
    signature,
    to_base64,
    xor,
)


class ScramClient:
    """`first`, then `final` with the server's answer, then `check` with the last one."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        *,
        is_token: bool = False,
        make_nonce: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = make_nonce()
        token = ",tokenauth=true" if is_token else ""
        self._bare = f"n={encode_name(username)},r={self._nonce}{token}"
        self._expected_signature = b""

    def first(self) -> bytes:
        return (GS2_HEADER + self._bare).encode()

    def final(self, data: bytes) -> bytes:
        """Raises ScramError when the server's message is not to be trusted."""
        server = parse_server_first(data)
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise ScramError("the server's nonce does not continue the client's")
        if not MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS:
            raise ScramError(f"the server asks for {server.iterations} iterations")
        salted = salted_password(self._mechanism, self._password, server.salt, server.iterations)
        keys = keys_of_salted(self._mechanism, salted, server.salt, server.iterations)
        without_proof = client_final_without_proof(server.nonce)
        message = f"{self._bare},{server.text},{without_proof}"
        client_key = hmac.digest(salted, b"Client Key", HASHES[self._mechanism])
        proof = xor(client_key, signature(self._mechanism, keys.stored_key, message))
        self._expected_signature = signature(self._mechanism, keys.server_key, message)
        return f"{without_proof},p={to_base64(proof)}".encode()

    def check(self, data: bytes) -> None:
        """Raises ScramError when the server does not know the password either."""
        expected = f"v={to_base64(self._expected_signature)}".encode()
        if not self._expected_signature or not hmac.compare_digest(data, expected):
            raise ScramError("the server could not prove that it knows the credential")
