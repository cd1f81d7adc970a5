"""The server's side of one SCRAM exchange. A user who does not exist fails where a wrong password fails."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from kquorum.network.security.names import SCRAM_HASHES as HASHES
from kquorum.network.security.scram import (
    MIN_ITERATIONS,
    ClientFirst,
    ScramError,
    ScramKeys,
    parse_client_final,
    parse_client_first,
    signature,
    to_base64,
    xor,
)
from kquorum.network.security.unknown_user_credentials import AS_KAFKA, unknown_user_credentials
from kquorum.wire.salt_forms import SaltForm


@dataclass(frozen=True, slots=True)
class ScramUser:
    """`principal` is the peer's identity once its proof holds: a token's owner for a token.

    `is_still_valid`, where it is given, is asked before each later request of the connection.
    """

    keys: ScramKeys
    principal: str
    is_token_authenticated: bool = False
    expires_at_ms: int | None = None
    is_still_valid: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class ScramLookup:
    """Where credentials come from: `user` and `token` take mechanism and name; None if there is no such credential.

    `pepper` makes the salts for unknown users. If it is the same on all nodes of a cluster, a client cannot find
    unknown users by comparing nodes. `user_form` and `token_form` take mechanism and name too, and return the form of
    these salts.
    """

    user: Callable[[str, str], ScramUser | None]
    token: Callable[[str, str], ScramUser | None]
    pepper: bytes
    user_form: Callable[[str, str], SaltForm] = lambda *_: AS_KAFKA
    token_form: Callable[[str, str], SaltForm] = lambda *_: AS_KAFKA


class ScramServer:
    """Feed it the client's two messages. Raises ScramError at the second for every kind of wrong credential."""

    def __init__(
        self, mechanism: str, lookup: ScramLookup, make_nonce: Callable[[], str] = secrets.token_urlsafe
    ) -> None:
        self._mechanism = mechanism
        self._lookup = lookup
        self._make_nonce = make_nonce
        self._client_first: ClientFirst | None = None
        self._user: ScramUser | None = None
        self._keys: ScramKeys | None = None
        self._nonce = ""
        self._server_first = ""
        self.authenticated: ScramUser | None = None

    @property
    def claimed_name(self) -> str:
        """The name that the client claims, for the log; empty before its first message."""
        return "" if self._client_first is None else self._client_first.username

    def step(self, data: bytes) -> bytes:
        """The server's next message. Raises ScramError."""
        if self._client_first is None:
            return self._first(data)
        if self.authenticated is not None or not self._server_first:
            raise ScramError("the exchange is over")
        return self._final(data, self._client_first)

    def _first(self, data: bytes) -> bytes:
        first = self._client_first = parse_client_first(data)
        if first.authorization_id not in ("", first.username):
            raise ScramError("a client may act for itself only")
        is_token = first.extensions.get("tokenauth", "").lower() == "true"
        lookup = self._lookup
        find, form = (lookup.token, lookup.token_form) if is_token else (lookup.user, lookup.user_form)
        self._user = find(self._mechanism, first.username)
        # Computed for unknown users too, so that the time it takes reveals nothing.
        unknown = unknown_user_credentials(
            self._mechanism, first.username, form(self._mechanism, first.username), lookup.pepper
        )
        self._keys = unknown if self._user is None else self._user.keys
        if self._keys.iterations < MIN_ITERATIONS:
            raise ScramError(f"the credential has fewer than {MIN_ITERATIONS} iterations: set it again")
        self._nonce = first.nonce + self._make_nonce()
        salt = to_base64(self._keys.salt)
        self._server_first = f"r={self._nonce},s={salt},i={self._keys.iterations}"
        return self._server_first.encode()

    def _final(self, data: bytes, first: ClientFirst) -> bytes:
        signed_before, self._server_first = self._server_first, ""
        final = parse_client_final(data, first)
        if not hmac.compare_digest(final.nonce.encode(), self._nonce.encode()):
            raise ScramError("the client's final message has another nonce")
        assert self._keys is not None
        message = f"{first.bare},{signed_before},{final.without_proof}"
        if not self._is_proof(final.proof, self._keys, message) or self._user is None:
            raise ScramError("wrong password" if self._user is not None else "no such user")
        self.authenticated = self._user
        return f"v={to_base64(signature(self._mechanism, self._keys.server_key, message))}".encode()

    def _is_proof(self, proof: bytes, keys: ScramKeys, message: str) -> bool:
        expected = signature(self._mechanism, keys.stored_key, message)
        if len(proof) != len(expected):
            return False
        client_key = xor(proof, expected)
        stored_key = hashlib.new(HASHES[self._mechanism], client_key).digest()
        return hmac.compare_digest(stored_key, keys.stored_key)
