"""An image with a SCRAM user and a delegation token."""

import base64
from dataclasses import replace
from typing import Any

from immutables import Map

from kquorum.metadata.delegation_tokens import token_hmac
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.security import DelegationToken, ScramCredential, SecurityImage
from kquorum.metadata.image.security import ScramUser as UserKey
from kquorum.network.security.scram import keys_of

SECRET_KEY = "the key that all nodes share"


MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


NOW_MS = 1_000


def image(**changes: Any) -> MetadataImage:
    """alice has a credential for both mechanisms, and a token that lives until 5 s."""
    scram = Map()
    for code, mechanism in enumerate(MECHANISMS, start=1):
        keys = keys_of(mechanism, "alices", b"salt", 4096)
        scram = scram.set(
            UserKey(code, "alice"),
            ScramCredential(
                salt=keys.salt, stored_key=keys.stored_key, server_key=keys.server_key, iterations=4096
            ),
        )
    token = DelegationToken(
        token_id="a-token",
        owner="User:alice",
        requester="User:alice",
        renewers=(),
        issue_timestamp_ms=0,
        max_timestamp_ms=9_000,
        expiration_timestamp_ms=5_000,
    )
    security = SecurityImage(scram=scram, delegation_tokens=Map({"a-token": token}))
    return MetadataImage(security=replace(security, **changes))


def password_of(token_id: str) -> str:
    return base64.b64encode(token_hmac(SECRET_KEY, token_id)).decode()
