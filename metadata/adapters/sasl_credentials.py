"""The credentials in the metadata log, for SCRAM: those of users, and those that follow from delegation tokens."""

import base64
import hmac
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from immutables import Map

from kquorum.metadata.delegation_tokens import is_expired, token_hmac
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.security import ScramUser as UserKey
from kquorum.network.security.scram import MIN_ITERATIONS, ScramKeys, keys_of
from kquorum.network.security.scram_server import ScramLookup, ScramUser
from kquorum.network.security.unknown_user_credentials import form_for
from kquorum.wire.salt_forms import SaltForm

# ScramMechanism, as in UserScramCredentialRecord.
MECHANISM_CODES: Final[Mapping[str, int]] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_MOST_REMEMBERED: Final = 10_000
_TOKEN_FORM: Final = SaltForm(raw_bytes=32)  # of _keys_of_token


class ImageCredentials:
    """Looks into the image of the moment, so a credential counts, or counts no more, once its record is applied.

    The password of a token is its HMAC, which no node stores (KIP-48). Its SCRAM keys take thousands of hashes, so they
    are cached while the token is in use.
    """

    def __init__(
        self,
        image: Callable[[], MetadataImage | None],
        now_ms: Callable[[], int],
        token_secret_key: str | None,
    ) -> None:
        self._image = image
        self._now_ms = now_ms
        self._token_secret_key = token_secret_key
        self._token_keys: dict[tuple[str, str], ScramKeys] = {}

    def lookup(self, pepper: bytes) -> ScramLookup:
        return ScramLookup(
            user=self.user,
            token=self.token,
            pepper=pepper,
            user_form=partial(self._user_form, pepper),
            token_form=lambda *_: _TOKEN_FORM,
        )

    def _user_form(self, pepper: bytes, mechanism: str, name: str) -> SaltForm:
        image = self._image()
        forms = Map() if image is None else image.security.scram_forms
        return form_for(name, forms.get(MECHANISM_CODES[mechanism], Map()), pepper)

    def user(self, mechanism: str, name: str) -> ScramUser | None:
        image = self._image()
        if image is None:
            return None
        credential = image.security.scram.get(UserKey(MECHANISM_CODES[mechanism], name))
        if credential is None:
            return None
        keys = ScramKeys(
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )
        return ScramUser(keys, f"User:{name}")

    def token(self, mechanism: str, token_id: str) -> ScramUser | None:
        image = self._image()
        if image is None or not self._token_secret_key:
            return None
        token = image.security.delegation_tokens.get(token_id)
        if token is None or is_expired(token, self._now_ms()):
            self._token_keys.pop((mechanism, token_id), None)
            return None
        expires_at_ms = min(token.expiration_timestamp_ms, token.max_timestamp_ms)
        keys = self._keys_of_token(self._token_secret_key, mechanism, token_id)
        return ScramUser(
            keys,
            token.owner,
            is_token_authenticated=True,
            expires_at_ms=expires_at_ms,
            is_still_valid=partial(self._is_token_valid, token_id),
        )

    def _is_token_valid(self, token_id: str) -> bool:
        """Whether the token is there and has not expired. A renewed token is."""
        image = self._image()
        token = None if image is None else image.security.delegation_tokens.get(token_id)
        return token is not None and not is_expired(token, self._now_ms())

    def _keys_of_token(self, secret_key: str, mechanism: str, token_id: str) -> ScramKeys:
        known = self._token_keys.get((mechanism, token_id))
        if known is not None:
            return known
        if len(self._token_keys) >= _MOST_REMEMBERED:
            self._token_keys.clear()
        password = base64.b64encode(token_hmac(secret_key, token_id)).decode()
        salt = hmac.digest(secret_key.encode(), f"salt of {mechanism} {token_id}".encode(), "sha256")
        keys = self._token_keys[mechanism, token_id] = keys_of(mechanism, password, salt, MIN_ITERATIONS)
        return keys
